# SPDX-License-Identifier: Apache-2.0
"""From matches to output rows: through users' functions, or column by column."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.errors import CepError, FunctionError
from pyflinkcep.functions import OutputTag, PatternProcessFunction, TimedOutPartialMatchHandler
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.event_store import EventStore
from pyflinkcep.spark.results import Result
from pyflinkcep.spark.rows import RowWriter, arrow_schema
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["MAIN", "ColumnConsumer", "Consumer", "FunctionConsumer", "Outputs"]

MAIN = "main"
"""The name of the main output among the tagged ones."""

Outputs = dict[str, pa.Table]
"""Rows by output name, :data:`MAIN` among them."""


class Consumer(Protocol):
    """
    What becomes of matches and timeouts.

    Attributes
    ----------
    schemas : dict of str to StructType
        The schema of each output, the main one first.
    wants_timeouts : bool
        Whether timed-out partial matches are wanted.
    """

    schemas: dict[str, StructType]
    wants_timeouts: bool

    def open(self, context: RuntimeContext) -> None:
        """Prepare for work on a worker."""

    def consume(self, results: Sequence[Result], events: EventStore) -> Outputs:
        """Make the rows of some results."""

    def close(self) -> None:
        """End work on a worker."""


@attrs.define(eq=False)
class FunctionConsumer:
    """
    Calls a user's process function for every match.

    Attributes
    ----------
    function : PatternProcessFunction
        The function, or an adapter around one.
    schema : StructType
        The schema of the main output.
    tags : sequence of OutputTag
        The side outputs, with their schemas parsed.
    """

    function: PatternProcessFunction
    schema: StructType
    tags: Sequence[OutputTag]
    schemas: dict[str, StructType] = attrs.field(init=False)
    wants_timeouts: bool = attrs.field(init=False)
    _writers: dict[str, RowWriter] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.schemas = {MAIN: self.schema, **{tag.name: tag.schema for tag in self.tags}}
        self.wants_timeouts = isinstance(self.function, TimedOutPartialMatchHandler)

    def open(self, context: RuntimeContext) -> None:
        """Open the function."""
        self._writers = {
            name: RowWriter(schema, self._source(name)) for name, schema in self.schemas.items()
        }
        self.function.setRuntimeContext(context)
        self.function.open(context)

    def close(self) -> None:
        """Close the function."""
        self.function.close()

    def consume(self, results: Sequence[Result], events: EventStore) -> Outputs:
        """Call the function for each result; give its rows."""
        flat = [h for _, _, match in results for handles in match.values() for h in handles]
        rows = iter(events.rows(flat) if flat else [])
        context = _Context({name: [] for name in self.schemas})
        out = _Collector(context.rows[MAIN])
        for is_match, timestamp, handles_by_stage in results:
            match = {
                stage: [next(rows) for _ in handles] for stage, handles in handles_by_stage.items()
            }
            context.now = timestamp
            try:
                if is_match:
                    self.function.processMatch(match, context, out)
                else:
                    self.function.processTimedOutMatch(match, context)  # type: ignore[attr-defined]
            except CepError:
                raise
            except Exception as cause:
                raise FunctionError(
                    f"{self.function!r} failed on the {'match' if is_match else 'timeout'} "
                    f"{match}: {type(cause).__name__}: {cause}",
                    timestamp_ms=timestamp,
                ) from cause
        return {name: self._writers[name].table(rows) for name, rows in context.rows.items()}

    def _source(self, output: str) -> str:
        where = "" if output == MAIN else f" for side output {output!r}"
        return f"{self.function!r}{where}"


class _Collector:
    def __init__(self, rows: list[Any]) -> None:
        self.collect = rows.append


@attrs.define(eq=False)
class _Context:
    """The process functions' context."""

    rows: dict[str, list[Any]]
    now: int = 0

    def timestamp(self) -> int:
        return self.now

    def currentProcessingTime(self) -> int:
        return time.time_ns() // 1_000_000

    def output(self, outputTag: OutputTag, value: Any) -> None:
        rows = self.rows.get(outputTag.name)
        if rows is None or outputTag.name == MAIN:
            raise FunctionError(
                f"side output {outputTag.name!r} is not declared",
                f"list it in the function's outputTags; declared: {list(self.rows)[1:]}",
            )
        rows.append(value)


@attrs.define(eq=False)
class ColumnConsumer:
    """
    Gives each match as a row of Arrow lists; no Row is made.

    Attributes
    ----------
    schemas : dict of str to StructType
        The main output, and the timeouts' where they are wanted: key columns, time, stages.
    key_columns : sequence of str
        The key's columns among the events' columns.
    stages : sequence of str
        The stages in pattern order.
    event_columns : sequence of str
        The columns of an event that the stages' structs have.
    time_unit : int or None
        Units of the time column in a millisecond; None when it is in milliseconds as bigint.
    """

    schemas: dict[str, StructType]
    key_columns: Sequence[str]
    stages: Sequence[str]
    event_columns: Sequence[str]
    time_unit: int | None
    wants_timeouts: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.wants_timeouts = len(self.schemas) > 1

    def open(self, context: RuntimeContext) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def consume(self, results: Sequence[Result], events: EventStore) -> Outputs:
        """Make the rows."""
        outputs = {}
        for (name, schema), kind in zip(self.schemas.items(), (True, False), strict=False):
            chosen = [result for result in results if result[0] is kind]
            outputs[name] = self._table(chosen, events, arrow_schema(schema))
        return outputs

    def _table(self, results: list[Result], events: EventStore, schema: pa.Schema) -> pa.Table:
        if not results:
            return schema.empty_table()
        columns = self._keys(results, events)
        columns.append(self._times([timestamp for _, timestamp, _ in results]))
        columns += self._stages(results, events)
        return pa.table(
            [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
            schema=schema,
        )

    def _keys(self, results: list[Result], events: EventStore) -> list[pa.Array]:
        if not self.key_columns:
            return []
        first = events.take([next(iter(match.values()))[0] for _, _, match in results])
        return [first.column(name) for name in self.key_columns]

    def _times(self, timestamps: list[int]) -> pa.Array:
        if self.time_unit is None:
            return pa.array(timestamps, pa.int64())
        unit = self.time_unit
        # The end of input is no moment that a timestamp can tell.
        return pa.array([None if t == MAX_WATERMARK else t * unit for t in timestamps], pa.int64())

    def _stages(self, results: list[Result], events: EventStore) -> list[pa.Array]:
        flat: list[int] = []
        offsets = []
        for stage in self.stages:
            begins = [len(flat)]
            for _, _, match in results:
                flat += match.get(stage, ())
                begins.append(len(flat))
            offsets.append(begins)
        table = events.take(flat).select(list(self.event_columns)).combine_chunks()
        chunks = table.to_batches()
        batch = chunks[0] if chunks else pa.RecordBatch.from_pylist([], schema=table.schema)
        structs = pa.StructArray.from_arrays(batch.columns, fields=list(table.schema))
        return [
            pa.ListArray.from_arrays(
                pa.array(np.asarray(begins, np.int32) - begins[0]),
                structs.slice(begins[0], begins[-1] - begins[0]),
            )
            for begins in offsets
        ]
