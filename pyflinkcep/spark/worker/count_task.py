# SPDX-License-Identifier: Apache-2.0
"""A task that counts the matches of a query and aggregates over them, listing none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.compact.counting import Total
from pyflinkcep.compact.matches import Measured
from pyflinkcep.evaluation import compressed_matches
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.table import EventTable
from pyflinkcep.spark.arrow.columns import PREFIX
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.matching.query_table import QueryColumns
from pyflinkcep.spark.worker.query_task import keyed_tables
from pyflinkcep.spark.worker.runtime import running

__all__ = ["COUNT_TEXT", "CountTask", "count_batch", "count_row", "event_values"]

COUNT_TEXT = f"{PREFIX}count"
"""The column with the count as text, exact to any size."""

_MOST = 10**38
_NOTHING: Total = (0, 0, None, None)


@attrs.frozen(eq=False)
class CountTask:
    """
    The work on one partition.

    Attributes
    ----------
    query : Query
        The query.
    columns : QueryColumns
        What it reads of events.
    measured : tuple of Measured
        The aggregates.
    key_columns : tuple of str
        The key's columns.
    schema : StructType
        The key, the time, the counts and the aggregates.
    time_unit : int or None
        Units of the time column in a millisecond; None if it is in milliseconds.
    """

    query: Query
    columns: QueryColumns
    measured: tuple[Measured, ...]
    key_columns: tuple[str, ...]
    schema: StructType
    time_unit: int | None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the matches of a partition; yield a row for each event that completes some."""
        with running(self.columns.layout.pattern):
            for events, table in keyed_tables(batches, self.columns):
                rows = list(self._rows(events, table))
                if rows:
                    yield count_batch(rows, self.schema)

    def _rows(self, events: pa.Table, table: EventTable) -> Iterator[tuple[Any, ...]]:
        found = compressed_matches(self.query, table)
        asked = [m for m in self.measured if m.variable is not None]
        measures = [(str(m.variable), event_values(events, m.attribute)) for m in asked]
        for at, count, totals in found.totals_by_event(measures):
            keys = [events.column(name)[at].as_py() for name in self.key_columns]
            time = table.times[at] * (self.time_unit or 1)
            yield count_row(self.schema, self.measured, keys, time, count, totals)


def count_row(
    schema: StructType,
    measured: Sequence[Measured],
    keys: Sequence[Any],
    time: int | None,
    count: int,
    totals: Iterable[Total],
) -> tuple[Any, ...]:
    """Return a row of the counts and aggregates of the matches that end with an event."""
    own = iter(totals)
    values = [m.result(count, _NOTHING if m.variable is None else next(own)) for m in measured]
    fields = schema.fields[len(schema.fields) - len(measured) :]
    shown = (_as(v, f.dataType.typeName()) for v, f in zip(values, fields, strict=True))
    exact = Decimal(count) if count < _MOST else None
    return *keys, time, exact, _log10(count), str(count), *shown


def count_batch(rows: Sequence[Sequence[Any]], schema: StructType) -> pa.RecordBatch:
    """Return rows of counts as a batch."""
    wanted = arrow_schema(schema)
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def event_values(events: pa.Table, attribute: str | None) -> Sequence[Any] | None:
    """Return an attribute of all events; None to count events."""
    if attribute is None:
        return None
    values: Sequence[Any] = events.column(attribute).to_pylist()
    return values


def _as(value: Any, type_name: str) -> Any:
    if value is None or type_name == "string":
        return value
    if type_name == "decimal":
        return Decimal(value) if abs(value) < _MOST else None
    return float(value) if type_name == "double" else int(value)


def _log10(count: int) -> float:
    """Return the logarithm of a count that may be too large for a float."""
    shift = max(count.bit_length() - 1000, 0)
    return math.log10(count >> shift) + shift * math.log10(2)
