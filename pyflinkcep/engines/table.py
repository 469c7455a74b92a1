# SPDX-License-Identifier: Apache-2.0
"""The events that a query runs on, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs
import numpy as np

from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.sase.model import Query


@attrs.frozen(eq=False)
class Coded(Sequence[Any]):
    """Texts as indexes into the distinct ones, as in an Arrow dictionary."""

    codes: Any  # For each event the index of its text
    names: Sequence[Any]  # The distinct texts

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Coded(self.codes[at], self.names)
        return self.names[self.codes[at]]

    def tolist(self) -> list[Any]:
        """Return the texts."""
        return [self.names[code] for code in self.codes.tolist()]


@attrs.frozen(eq=False)
class Numbers(Sequence[int]):
    """Whole numbers in an array, read as Python ints."""

    array: Any  # The numbers

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        return Numbers(self.array[at]) if isinstance(at, slice) else int(self.array[at])

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """Return the numbers."""
        numbers: list[int] = self.array.tolist()
        return numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy else array


@attrs.frozen(eq=False)
class EventTable:
    """Events in their final order."""

    times: Sequence[int]  # Their times, in ascending order; :class:`Numbers` is the fastest
    types: Sequence[Any]  # Their types; :class:`Coded` is the fastest
    # The values by attribute, None for NULL; the attributes are those of
    # :func:`~pyflinkcep.sase.attributes.queried_attributes`.
    columns: Mapping[str, Sequence[Any]]
    # The types of the attributes; those without one are NULL in every event.
    kinds: Mapping[str, Kind]
    # The number of each event's key, events of one key side by side; the key then has the
    # attributes of ``[attr]``. None if all events have one key.
    keys: Sequence[int] | None = None
    starts: Sequence[bool] | None = None  # Which events may be a match's first; None for all
    # Which events may be the last that a match takes; None for all.
    ends: Sequence[bool] | None = None

    def between(self, begin: int, end: int) -> EventTable:
        """Return some of the events."""
        own = slice(begin, end)
        return EventTable(
            self.times[own],
            self.types[own],
            {name: values[own] for name, values in self.columns.items()},
            self.kinds,
            None if self.keys is None else self.keys[own],
            None if self.starts is None else self.starts[own],
            None if self.ends is None else self.ends[own],
        )

    def field(self, name: str, kind: Kind) -> Sequence[Any]:
        """Return an attribute as programs read it: a decimal as that, or as a double."""
        values, own = self.columns[name], self.kinds[name]
        if own.type is kind.type or not own.is_decimal:
            return values
        change = (lambda value: Decimal(repr(value))) if own.type is Type.FLOAT else float
        return [None if value is None else change(value) for value in listed(values)]

    def partitions(self, query: Query) -> Iterator[tuple[Sequence[int], bool]]:
        """Yield the partitions of a query."""
        if self.keys is not None:
            yield from self._by_key(query, self.keys)
            return
        if query.is_global or not query.equal:
            yield range(len(self.times)), False
            return
        groups: dict[tuple[Any, ...], list[int]] = {}
        columns = [listed(self.columns[name]) for name in query.equal]
        # NaN, which equals itself in Spark, is one object.
        tested = [[_NAN if v != v else v for v in own] for own in columns]
        for at, values in enumerate(zip(*tested, strict=True)):
            groups.setdefault(values, []).append(at)
        for values, positions in groups.items():
            yield positions, any(value is None for value in values)

    def _by_key(self, query: Query, keys: Sequence[int]) -> Iterator[tuple[Sequence[int], bool]]:
        names = () if query.is_global else query.equal
        numbers = np.asarray(keys)
        changes = numbers[1:] != numbers[:-1]
        begins = np.flatnonzero(np.r_[True, changes][: len(numbers)])
        tested = [_taken(self.columns[name], begins) for name in names]
        ends = [*begins[1:].tolist(), len(numbers)]
        for number, (begin, end) in enumerate(zip(begins.tolist(), ends, strict=False)):
            yield range(begin, end), any(column[number] is None for column in tested)


def listed(values: Any) -> Sequence[Any]:
    """Return a column as a list: arrays as Python values, None if masked."""
    own: Sequence[Any] = values.tolist() if hasattr(values, "tolist") else values
    return own


def _taken(values: Any, places: Any) -> Sequence[Any]:
    """Return the values of some places as a list."""
    if isinstance(values, np.ndarray):
        return listed(values[places])
    return [values[at] for at in places.tolist()]


_NAN = float("nan")
