# SPDX-License-Identifier: Apache-2.0
"""A row for each event that completes matches: counts and aggregates, or packed matches."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.engines.compressed.counting import NOTHING, Total
from pyflinkcep.engines.compressed.matches import Measured
from pyflinkcep.engines.compressed.nodes import Node
from pyflinkcep.engines.compressed.packed import Packed, packed
from pyflinkcep.engines.compressed.payloads import Ended, MeasuredValues
from pyflinkcep.matching.columns import PREFIX
from pyflinkcep.matching.pieces import structs
from pyflinkcep.matching.retyping import retyped
from pyflinkcep.spark.arrow.internals import arrow_schema

__all__ = [
    "COUNT_TEXT",
    "Ask",
    "Counted",
    "Ending",
    "EndingRows",
    "PackedRows",
    "TotalRows",
    "event_values",
]

COUNT_TEXT = f"{PREFIX}count"
"""The column with the count as text, exact to any size."""

Ending = tuple[int, int | None, Sequence[Any]]
"""(position of the completing event, time in milliseconds or None for the end of the input, the
result for its matches)."""


class Counted(Protocol):
    """The matches of a query or a pattern, not listed."""

    def totals_by_event(self, measures: Sequence[MeasuredValues]) -> Iterator[Ended]:
        """Yield where matches end, their number, and the requested totals of the measures."""

    def roots_by_event(self) -> Iterator[tuple[int, list[Node]]]:
        """Yield where matches end, and their nodes."""


Ask = Callable[[Counted], Iterator[tuple[Any, ...]]]
"""Returns endings: the position of the completing event, followed by the results for its
matches."""

_MOST = 10**38


@attrs.frozen(eq=False)
class EndingRows(ABC):
    """
    Makes the rows.

    Attributes
    ----------
    schema : StructType
        The key, the time, and what subclasses add.
    key_columns : tuple of str
        The key's columns.
    time_unit : int or None
        Units of the time column in a millisecond; None if it is in milliseconds.
    """

    schema: StructType
    key_columns: tuple[str, ...]
    time_unit: int | None

    @property
    @abstractmethod
    def what(self) -> str:
        """Their content, in a word, to distinguish the outputs of a query."""

    @abstractmethod
    def asked(self, events: pa.Table, keys: Sequence[int] = ()) -> Ask:
        """
        Return the function that finds endings.

        Parameters
        ----------
        events : pyarrow.Table
            The events.
        keys : sequence of int
            The number of each event's key, which windows are parts of; patterns have no windows.
        """

    @abstractmethod
    def columns(self, events: pa.Table, found: Sequence[Any]) -> list[pa.Array]:
        """Return the columns after key and time, given the results of endings."""

    def times(self, events: pa.Table, listed: Sequence[Ending]) -> list[pa.Array]:
        """Return the columns of times after the key."""
        times = [None if time is None else time * (self.time_unit or 1) for _, time, _ in listed]
        return [pa.array(times, pa.int64())]

    def table(self, events: pa.Table, listed: Sequence[Ending]) -> pa.Table:
        """Return the rows of endings."""
        last = events.select(list(self.key_columns)).take(
            pa.array([at for at, _, _ in listed], pa.int64())
        )
        columns = [
            *last.columns,
            *self.times(events, listed),
            *self.columns(events, [found for _, _, found in listed]),
        ]
        wanted = arrow_schema(self.schema)
        shown = [retyped(c, field.type) for c, field in zip(columns, wanted, strict=True)]
        return pa.table(shown, schema=wanted)


@attrs.frozen(eq=False)
class TotalRows(EndingRows):
    """
    Rows of counts of matches and aggregates over them.

    Attributes
    ----------
    measured : tuple of Measured
        The aggregates; their columns are the last ones of the schema.
    """

    measured: tuple[Measured, ...]

    @property
    def what(self) -> str:
        """Totals."""
        return "totals"

    def asked(self, events: pa.Table, _keys: Sequence[int] = ()) -> Ask:
        """Return the function that finds counts and totals."""
        measures = [
            (str(m.variable), event_values(events, m.attribute), m.function) for m in self.of_events
        ]
        return lambda found: found.totals_by_event(measures)

    @property
    def of_events(self) -> list[Measured]:
        """The aggregates over events, not just over matches."""
        return [m for m in self.measured if m.variable is not None]

    def columns(self, events: pa.Table, found: Sequence[Any]) -> list[pa.Array]:
        """Return the count, its logarithm, its text, and the aggregates."""
        counts = [count for count, _ in found]
        fields = self.schema.fields[len(self.schema.fields) - len(self.measured) :]
        values = [self._values(count, totals) for count, totals in found]
        return [
            pa.array([_decimal(count) for count in counts], pa.decimal128(38, 0)),
            pa.array([_log10(count) for count in counts], pa.float64()),
            pa.array([str(count) for count in counts]),
            *(
                pa.array([_as(row[n], field.dataType.typeName()) for row in values], type_)
                for n, (field, type_) in enumerate(zip(fields, self._types(), strict=True))
            ),
        ]

    def _types(self) -> list[pa.DataType]:
        types = arrow_schema(self.schema).types
        return list(types[len(types) - len(self.measured) :])

    def _values(self, count: int, totals: Iterable[Total]) -> list[Any]:
        own = iter(totals)
        return [
            m.result(count, NOTHING if m.variable is None else next(own)) for m in self.measured
        ]


@attrs.frozen(eq=False)
class PackedRows(EndingRows):
    """
    Rows of matches in packed form.

    Attributes
    ----------
    event_columns : tuple of str
        The events' own columns.
    """

    event_columns: tuple[str, ...]

    @property
    def what(self) -> str:
        """Packed matches."""
        return "packed"

    def asked(self, events: pa.Table, _keys: Sequence[int] = ()) -> Ask:
        """Return the function that finds the nodes of last events."""
        return lambda found: found.roots_by_event()

    def columns(self, events: pa.Table, found: Sequence[Any]) -> list[pa.Array]:
        """Return the count, the events, the nodes and the roots."""
        rows = [packed(roots) for (roots,) in found]
        shown = events.select(list(self.event_columns))
        taken = shown.take(pa.array([at for row in rows for at in row.events], pa.int64()))
        return [
            pa.array([_decimal(row.count) for row in rows], pa.decimal128(38, 0)),
            pa.ListArray.from_arrays(_offsets(len(row.events) for row in rows), structs(taken)),
            _nodes(rows),
            pa.array([row.roots for row in rows], pa.list_(pa.int32())),
        ]


def event_values(events: pa.Table, attribute: str | None) -> Sequence[Any] | None:
    """Return an attribute of all events; None to count events."""
    if attribute is None:
        return None
    values: Sequence[Any] = events.column(attribute).to_pylist()
    return values


def _nodes(rows: Sequence[Packed]) -> pa.Array:
    nodes = [node for row in rows for node in row.nodes]
    columns = [
        pa.array([stage for stage, _, _ in nodes], pa.int32()),
        pa.array([event for _, event, _ in nodes], pa.int32()),
        pa.array([following for _, _, following in nodes], pa.list_(pa.int32())),
    ]
    own = pa.StructArray.from_arrays(columns, names=["stage", "event", "next"])
    return pa.ListArray.from_arrays(_offsets(len(row.nodes) for row in rows), own)


def _offsets(sizes: Iterable[int]) -> pa.Array:
    return pa.array(np.r_[0, np.cumsum(list(sizes), dtype=np.int64)], pa.int32())


def _as(value: Any, type_name: str) -> Any:
    if value is None:
        return value
    if type_name == "decimal":
        return _decimal(value)
    if type_name == "double":
        return float(value)
    return int(value) if type_name == "long" else value


def _decimal(value: int) -> Decimal | None:
    """Return a number as decimal(38,0); None beyond its range."""
    return Decimal(value) if abs(value) < _MOST else None


def _log10(count: int) -> float:
    """Return the logarithm of a count that may be too large for a float."""
    shift = max(count.bit_length() - 1000, 0)
    return math.log10(count >> shift) + shift * math.log10(2)
