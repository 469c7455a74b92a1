# SPDX-License-Identifier: Apache-2.0
"""From matches to output rows: through the user's functions, or column by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from pyflinkcep.adapters import FunctionAdapter, collect_returned
from pyflinkcep.errors import CepRuntimeError, FunctionError
from pyflinkcep.functions import (
    Match,
    OutputTag,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
)
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import key_values
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.output import known_times, stage_column
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.retyping import retyped
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import RowWriter, shortened
from pyflinkcep.time import clock_ms

__all__ = [
    "MAIN",
    "TAG",
    "ColumnConsumer",
    "Consumer",
    "FunctionConsumer",
    "MatchTimes",
    "Outputs",
    "batches_of",
    "key_columns",
    "output_schema",
    "to_batches",
]

MAIN = "main"
"""The name of the main output among the tagged ones."""

TAG = "tag"
"""The column of tagged outputs that names the output a row belongs to."""

Outputs = dict[str, pa.Table]
"""Rows by output name, including :data:`MAIN`."""


class Consumer(Protocol):
    """
    Turns matches and timeouts into rows.

    Attributes
    ----------
    schemas : dict of str to StructType
        The schema of each output, the main one first.
    wants_timeouts : bool
        Whether timed-out partial matches are needed.
    wants_reached : bool
        Whether stages that partial matches reach are needed.
    shows_time : bool
        Whether the outputs show the time at which a match is emitted.
    by_windows : bool
        Whether they show the end of a window as the time of what it released.
    most_events : int
        About how many events the results may have that it is given at a time.
    """

    schemas: dict[str, StructType]
    wants_timeouts: bool
    wants_reached: bool
    shows_time: bool
    by_windows: bool
    most_events: int

    def open(self, context: RuntimeContext) -> None:
        """Prepare for work on a worker."""

    def consume(self, found: Found, events: EventStore) -> Outputs:
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
    schemas : dict of str to StructType
        The schema of each output by name, including :data:`MAIN`.
    keys : mapping of str to str
        The events' columns that form the key, by the key's names; for errors.
    """

    function: PatternProcessFunction
    schemas: dict[str, StructType]
    keys: Mapping[str, str] = attrs.field(factory=dict)
    wants_timeouts: bool = attrs.field(init=False)
    wants_reached: bool = attrs.field(init=False, default=False)
    shows_time: bool = attrs.field(init=False)
    by_windows: bool = attrs.field(init=False, default=False)
    most_events: int = attrs.field(init=False, default=1 << 14)  # each becomes a Row
    _writers: dict[str, RowWriter] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.wants_timeouts = isinstance(self.function, TimedOutPartialMatchHandler)
        self.shows_time = not isinstance(self.function, FunctionAdapter)

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

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Call the function for each result; return its rows."""
        rows = events.rows(found.handles)
        context = _Context(self._writers)
        out = _Collector(context)
        for number, (is_match, timestamp, match) in enumerate(found.results(rows)):
            context.now = timestamp
            try:
                if is_match:
                    returned = self.function.processMatch(match, context, out)
                    if returned is not None:
                        collect_returned(returned, out, repr(self.function))
                else:
                    self._time_out(match, context)
            except (Exception, SystemExit, KeyboardInterrupt) as cause:
                error = self._failure(cause, "match" if is_match else "timeout", match)
                key = self._key(found, number, events)
                raise error.at_time(timestamp).at_key(key) from error.__cause__
        return {name: self._writers[name].table(rows) for name, rows in context.rows.items()}

    def _time_out(self, match: Match, context: _Context) -> None:
        returned = self.function.processTimedOutMatch(match, context)  # type: ignore[attr-defined]
        if returned is not None:
            raise FunctionError(
                f"{self.function!r}: processTimedOutMatch returned {type(returned).__name__}",
                "put the rows of timeouts into a side output: ctx.output(tag, row)",
            )

    def _failure(self, cause: BaseException, what: str, match: Match) -> CepRuntimeError:
        if isinstance(cause, CepRuntimeError):
            return cause
        error = FunctionError(
            f"{self.function!r} failed on the {what} {shortened(match)}: "
            f"{type(cause).__name__}: {cause}"
        )
        error.__cause__ = cause
        return error

    def _key(self, found: Found, number: int, events: EventStore) -> dict[str, Any] | None:
        """Return the key of a result, which all of its events share."""
        first = found.handles[found.firsts[number]]
        return key_values(self.keys, events.take([first]), 0)

    def _source(self, output: str) -> str:
        where = "" if output == MAIN else f" for side output {output!r}"
        return f"{self.function!r}{where}"


class _Context:
    """The process functions' context; checks the rows they emit."""

    def __init__(self, writers: Mapping[str, RowWriter]) -> None:
        self._writers = writers
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in writers}
        self.now = 0

    def timestamp(self) -> int:
        return self.now

    def currentProcessingTime(self) -> int:
        return clock_ms()

    def output(self, outputTag: OutputTag, value: Any) -> None:
        if outputTag.name == MAIN or outputTag.name not in self.rows:
            raise FunctionError(
                f"side output {outputTag.name!r} is not declared",
                f"list it in the function's outputTags; declared: {list(self.rows)[1:]}",
            )
        self.add(outputTag.name, value)

    def add(self, output: str, value: Any) -> None:
        self.rows[output].append(self._writers[output].row(value))


@attrs.frozen(eq=False)
class _Collector:
    """Collects the functions' rows of the main output."""

    context: _Context

    def collect(self, record: Any) -> None:
        self.context.add(MAIN, record)


@attrs.frozen
class MatchTimes:
    """
    The times of matches as a column.

    Attributes
    ----------
    unit : int or None
        Units of the time column per millisecond; None if it is bigint milliseconds.
    column : str or None
        The time column of events; None in processing time.
    is_last : bool
        Whether a match that waited has the time of its last event, as in queries.

    Notes
    -----
    A match that an event completes or releases has the event's time; one that the end of a window
    releases has that time. Where micro-batches end makes no difference, and the watermark before is
    not ahead of it.
    """

    unit: int | None
    column: str | None = None
    is_last: bool = False

    def of(self, found: Found, events: EventStore) -> Ints:
        """Return the times of matches, epoch milliseconds."""
        if not self.is_last:
            return found.times
        lasts: Ints = np.maximum.reduceat(self.of_events(found, events), found.firsts)
        return lasts

    def of_events(self, found: Found, events: EventStore) -> Ints:
        """Return the times of the events of matches, epoch milliseconds."""
        assert self.column is not None
        own: Ints = events.take(found.handles, [self.column]).column(0).cast(pa.int64()).to_numpy()
        return own if self.unit is None else np.floor_divide(own, self.unit)

    def column_of(self, times: Ints) -> pa.Array:
        """Return times in the type of the time column."""
        return pa.array(times) if self.unit is None else known_times(times, self.unit)


@attrs.define(eq=False)
class ColumnConsumer:
    """
    Turns each match into a row of Arrow lists, without making Rows.

    Attributes
    ----------
    schemas : dict of str to StructType
        The main output, and the timeouts' if needed: key columns, time, stages.
    key_columns : sequence of str
        The key's columns among the events' columns.
    stages : sequence of str
        The stages in pattern order.
    event_columns : sequence of str
        The columns of an event in the stages' structs.
    times : MatchTimes
        The times of matches and timeouts.
    """

    schemas: dict[str, StructType]
    key_columns: Sequence[str]
    stages: Sequence[str]
    event_columns: Sequence[str]
    times: MatchTimes
    wants_timeouts: bool = attrs.field(init=False)
    wants_reached: bool = attrs.field(init=False, default=False)
    shows_time: bool = attrs.field(init=False, default=True)
    by_windows: bool = attrs.field(init=False, default=True)
    most_events: int = attrs.field(init=False, default=MOST_EVENTS)

    def __attrs_post_init__(self) -> None:
        self.wants_timeouts = len(self.schemas) > 1

    def open(self, context: RuntimeContext) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows."""
        outputs = {}
        for (name, schema), kind in zip(self.schemas.items(), (1, 0), strict=False):
            chosen = found if found.kinds.all() and kind else found.only(found.kinds == kind)
            outputs[name] = self._table(chosen, events, arrow_schema(schema), kind == 1)
        return outputs

    def _table(
        self, found: Found, events: EventStore, schema: pa.Schema, are_matches: bool
    ) -> pa.Table:
        if not len(found):
            return schema.empty_table()
        columns = key_columns(found, events, self.key_columns)
        times = self.times.of(found, events) if are_matches else found.times
        columns.append(self.times.column_of(times))
        columns += [
            stage_column(found, stage, lambda handles: events.take(handles, self.event_columns))
            for stage in self.stages
        ]
        return pa.table(
            [retyped(column, field.type) for column, field in zip(columns, schema, strict=True)],
            schema=schema,
        )


def key_columns(found: Found, events: EventStore, names: Sequence[str]) -> list[pa.Array]:
    """Return the key's columns of matches."""
    if not names:
        return []
    first = events.take(found.handles[found.firsts], names)
    return [first.column(name) for name in names]


# --- all outputs of a job in one DataFrame: a tag, and a struct column for each output


def output_schema(consumer: Consumer) -> StructType:
    """Return the schema of the job: the main output's, or with side outputs the tagged one."""
    schemas = consumer.schemas
    if len(schemas) == 1:
        return schemas[MAIN]
    structs = [StructField(name, schema) for name, schema in schemas.items()]
    return StructType([StructField(TAG, StringType(), False), *structs])


def batches_of(consumer: Consumer, found: Found, events: EventStore) -> Iterator[pa.RecordBatch]:
    """Yield the rows of results as batches of the job's schema, made in portions."""
    for part in found.parts(consumer.most_events):
        yield from to_batches(consumer, consumer.consume(part, events))


def to_batches(consumer: Consumer, outputs: Outputs) -> Iterator[pa.RecordBatch]:
    """Yield rows of outputs as batches of the job's schema."""
    if len(consumer.schemas) == 1:
        yield from outputs[MAIN].to_batches()
        return
    schema = arrow_schema(output_schema(consumer))
    for name, table in outputs.items():
        for batch in table.to_batches():
            if batch.num_rows:
                yield _tagged(name, batch, schema)


def _tagged(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    size = batch.num_rows
    struct = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    columns = [
        pa.array([name] * size, pa.string())
        if field.name == TAG
        else retyped(struct, field.type)
        if field.name == name
        else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
