# SPDX-License-Identifier: Apache-2.0
"""The times and keys of a table's events, and the order in which they are matched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.errors import Field, InputError, KeyFields, did_you_mean
from pyflinkcep.matching import keys as identity
from pyflinkcep.matching.columns import Ints, integers, plain_numbers, values_of
from pyflinkcep.matching.order import order_by
from pyflinkcep.tables.records import Cells, RecordBlock, records
from pyflinkcep.tables.values import (
    exact_time,
    exact_times_of,
    grouping_key,
    key_getter,
    warn_of_unit,
)
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK

PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
"""How many of a unit of time a millisecond has."""

Rows = np.ndarray[Any, np.dtype[np.int32]]
"""Rows of a table, which has fewer than 2**31."""


@attrs.frozen(eq=False)
class Times:
    """The times of events."""

    raw: pa.ChunkedArray  # The times in their own unit, as whole numbers
    per_ms: int = 1  # How many of these units a millisecond has
    type: pa.DataType = attrs.field(factory=pa.int64)  # The type of the times of matches

    @classmethod
    def of(cls, table: pa.Table, field: Field | None) -> Times:
        """Return the times of a table's events."""
        size = table.num_rows
        if field is None:
            return cls(_chunked(np.arange(size)))
        if not isinstance(field, str):
            return cls(*_by_microseconds(exact_times_of(lazily(table), field)))
        column = column_of(table, field, "timestamp")
        type_ = column.type
        is_time = pa.types.is_timestamp(type_)

        def by_row() -> list[int]:
            return list(map(exact_time, column.to_pylist(), lazily(table)))

        if column.null_count or not (is_time or pa.types.is_integer(type_)):
            return cls(*_by_microseconds(by_row()))
        try:
            if is_time and type_.unit == "s":
                type_ = pa.timestamp("ms", type_.tz)
                column = column.cast(type_)
            raw = column.cast(pa.int64())
        except pa.ArrowInvalid:
            return cls(*_by_microseconds(by_row()))
        found = cls(raw, PER_MS[type_.unit], type_) if is_time else cls(raw)
        if size and not is_time:
            found._check(table, field)
        return found

    def _check(self, table: pa.Table, field: str) -> None:
        found = pc.min_max(self.raw).as_py()
        least, most = found["min"], found["max"]
        if least <= MIN_WATERMARK:
            row = pc.index(self.raw, least).as_py()
            exact_time(least, records(table, np.asarray([row]))[0])
        warn_of_unit(least, most, f"timestamp={field!r}")

    @property
    def are_sorted(self) -> bool:
        """Whether no event is earlier than the one before it."""
        last = None
        for chunk in self.raw.chunks:
            own = plain_numbers(chunk)
            if len(own):
                if (last is not None and own[0] < last) or (own[1:] < own[:-1]).any():
                    return False
                last = own[-1]
        return True

    def ms(self, rows: Ints | None = None) -> Ints:
        """Return times in epoch milliseconds."""
        raw = self.raw if rows is None else self.raw.take(integers(rows))
        return self.ms_of(plain_numbers(raw))

    def exact(self) -> Ints:
        """Return times by which events are ordered, at most to the microsecond."""
        return self.exact_of(plain_numbers(self.raw))

    def exact_at(self, rows: Ints) -> Ints:
        """Return the times of some rows by which these are ordered."""
        return self.exact_of(plain_numbers(self.raw.take(integers(rows))))

    def some(self, begin: int, size: int) -> Ints:
        """Return the times of some rows in their own unit."""
        return plain_numbers(self.raw.slice(begin, size))

    def ms_of(self, raw: Ints) -> Ints:
        """Return times of their own unit in milliseconds."""
        return raw if self.per_ms == 1 else np.floor_divide(raw, self.per_ms)

    def exact_of(self, raw: Ints) -> Ints:
        """Return times of their own unit as those by which events are ordered."""
        return np.floor_divide(raw, 1_000) if self.per_ms > 1_000 else raw

    def ms_of_exact(self, exact: Ints) -> Ints:
        """Return times by which events are ordered in milliseconds."""
        return exact if self.per_ms == 1 else np.floor_divide(exact, min(self.per_ms, 1_000))


def _chunked(times: Any) -> pa.ChunkedArray:
    return pa.chunked_array([integers(np.asarray(times, np.int64))])


def _by_microseconds(exact: list[int]) -> tuple[pa.ChunkedArray, int]:
    """Return times in milliseconds, or in microseconds if these matter, and which."""
    if not any(time % 1000 for time in exact) or not -(2**63) <= min(exact) <= max(exact) < 2**63:
        return _chunked([time // 1000 for time in exact]), 1
    return _chunked(exact), 1000


def column_of(table: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    """Return a column that `what` names."""
    names = table.column_names
    if name not in names:
        hint = did_you_mean(name, names, f"the columns are {names}")
        raise InputError(f"{what}={name!r}: the events have no column {name!r}", hint)
    return table.column(name)


def lazily(table: pa.Table) -> list[Any]:
    """Return all rows as lazy records."""
    block = RecordBlock(Cells(table), np.arange(table.num_rows))
    return [block.record(row) for row in range(table.num_rows)]


# --- keys


def check_comparable(type_: pa.DataType, what: str, instead: str) -> None:
    """Refuse a key whose values have fields, by which nothing is grouped here."""
    if _has_fields(type_):
        raise InputError(
            f"{what}: expected a key that can be compared, got {type_}", f"name {instead}"
        )


def _has_fields(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_) or pa.types.is_map(type_):
        return True
    return any(_has_fields(type_.field(place).type) for place in range(type_.num_fields))


@attrs.frozen(eq=False, slots=False)
class Keys:
    """The keys of events."""

    # What tells keys apart: the column of the key, or numbers; None for one key.
    source: pa.ChunkedArray | None
    value_of: Callable[[int], Any]  # Returns the key of an event by its row, as Spark groups by it
    columns: Mapping[str, pa.ChunkedArray]  # The columns of the key by name
    is_computed: bool = False  # Whether these are values of a function, and no columns of the table

    @cached_property
    def codes(self) -> Ints | None:
        """The number of each event's key, in the order of their first events; None for one key."""
        return None if self.source is None else _codes(self.source)

    @classmethod
    def of(cls, table: pa.Table, key: KeyFields | None) -> Keys:
        """Return the keys of a table's events."""
        if key is None:
            return cls(None, lambda _: None, {})
        if isinstance(key, list | tuple) and key and all(isinstance(name, str) for name in key):
            names = list(key)
        elif isinstance(key, str):
            names = [key]
        else:
            return cls._of_function(table, key)
        columns = {name: column_of(table, name, "key") for name in names}
        for name, column in columns.items():
            check_comparable(column.type, f"key={name!r}", "a field of it as a column of its own")

        def value_of(row: int) -> Any:
            values = [
                grouping_key(values_of(column.slice(row, 1))[0]) for column in columns.values()
            ]
            return values[0] if isinstance(key, str) else tuple(values)

        source, *others = columns.values()
        for column in others:
            source = pa.chunked_array([integers(identity.paired(_codes(source), _codes(column)))])
        return cls(source, value_of, columns)

    @classmethod
    def _of_function(cls, table: pa.Table, key: Any) -> Keys:
        get = key_getter(key)
        values = [grouping_key(get(event)) for event in lazily(table)]
        column = computed_column(values, type_of_values(values))
        numbers = pa.chunked_array([integers(_numbered(values))])
        return cls(numbers, values.__getitem__, {"key": column}, is_computed=True)


def type_of_values(values: Sequence[Any]) -> pa.DataType | None:
    """Return the type of the column of some keys that a function returned; None if they differ."""
    try:
        return pa.array(values).type
    except (pa.ArrowException, OverflowError, TypeError):
        return None


def computed_column(values: Sequence[Any], type_: pa.DataType | None) -> pa.ChunkedArray:
    """Return keys that a function returned as a column: without a type, as they are written."""
    array = pa.array(list(map(repr, values)), pa.string()) if type_ is None else None
    return pa.chunked_array([pa.array(values, type_) if array is None else array])


def _codes(column: pa.ChunkedArray) -> Ints:
    """Return a number for each value; Arrow cannot number values of all types."""
    try:
        return identity.codes(column)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return _numbered([grouping_key(value) for value in values_of(column)])


def _numbered(values: list[Any]) -> Ints:
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.fromiter((numbers[value] for value in values), np.int64, len(values))


# --- the order


def ordered(times: Times, codes: Ints | None) -> tuple[Rows | None, Ints | None]:
    """Return the order of events: by key, time and place, the key of the earliest event first."""
    is_sorted = times.are_sorted
    if codes is None:
        by_time = None if is_sorted else order_by([times.exact()])
        return (None if by_time is None else by_time.astype(np.int32)), None
    if is_sorted:
        order = order_by([codes])
    else:
        ms = times.ms()
        count = int(codes.max(initial=-1)) + 1
        earliest = np.full(count, MAX_WATERMARK)
        np.minimum.at(earliest, codes, ms)
        places = np.empty(count, np.int64)
        places[np.argsort(earliest, kind="stable")] = np.arange(count)
        codes = places[codes]
        order = order_by([ms if times.per_ms == 1 else times.exact(), codes])
    firsts = np.r_[0, np.cumsum(np.bincount(codes))[:-1]] if len(codes) else np.zeros(0, np.int64)
    return order.astype(np.int32), firsts
