# SPDX-License-Identifier: Apache-2.0
"""The order of events of equal key and time by columns, with Spark's order of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.flink.operator import Comparator, comparator_key
from pyflinkcep.errors import InputError
from pyflinkcep.matching.columns import Ints, has_part


@attrs.frozen
class OrderColumns:
    """Columns that order events of equal key and time."""

    # For each its name, whether it is descending, and whether nulls come first.
    columns: tuple[tuple[str, bool, bool], ...]

    @classmethod
    def of(cls, columns: Iterable[tuple[str, bool, bool | None]]) -> OrderColumns:
        """Fill in where nulls go: first ascending, last descending, as in Spark."""
        return cls(
            tuple(
                (name, descending, not descending if nulls is None else nulls)
                for name, descending, nulls in columns
            )
        )

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _, _ in self.columns]

    def __str__(self) -> str:
        """Return it as SQL."""
        return ", ".join(
            f"{name} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
            for name, descending, nulls_first in self.columns
        )

    def ranked(self, groups: Ints, table: pa.Table) -> Ints:
        """Return the order of events."""
        keys = {"group": pa.array(groups)}
        sorting = [("group", "ascending")]
        for number, (name, descending, nulls_first) in enumerate(self.columns):
            column = table.column(name)
            if pa.types.is_nested(column.type):
                column = _ranks_of_nested(name, column)
            if column.null_count:
                keys[f"null {number}"] = column.is_null()
                sorting.append((f"null {number}", "descending" if nulls_first else "ascending"))
            if pa.types.is_floating(column.type) and descending:  # NaN is the greatest number
                keys[f"nan {number}"] = pc.fill_null(pc.is_nan(column), False)
                sorting.append((f"nan {number}", "descending"))
            keys[f"value {number}"] = column
            sorting.append((f"value {number}", "descending" if descending else "ascending"))
        keys["place"] = pa.array(np.arange(len(groups)))
        sorting.append(("place", "ascending"))
        try:
            order: Ints = pc.sort_indices(pa.table(keys), sort_keys=sorting).to_numpy()
        except (pa.ArrowTypeError, pa.ArrowNotImplementedError) as cause:
            types = {name: str(table.column(name).type) for name in self.names}
            raise InputError(f"ORDER BY {self}: {cause}", f"the types are {types}") from cause
        return order.astype(np.int64)


def _ranks_of_nested(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return numbers in the order of arrays and structs: part by part, NULL first."""
    values = column.to_pylist()
    if has_part(column.type, lambda part: pa.types.is_map(part) or pa.types.is_union(part)):
        raise InputError(
            f"ORDER BY {name}: values of type {column.type} have no order",
            "order by a number, a text, a time, or an array or struct of them",
        )
    keys = [None if value is None else _parts(value) for value in values]
    places = {key: at for at, key in enumerate(sorted({k for k in keys if k is not None}))}
    return pa.array([None if key is None else places[key] for key in keys], pa.int64())


def _parts(value: Any) -> Any:
    """Return a value inside of another as it compares: NULL before all, NaN above all numbers."""
    if value is None:
        return (0,)
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return 1, tuple(map(_parts, parts))
    return (2,) if value != value else (1, value)


TieOrder = Comparator | OrderColumns  # The user's order of events of equal time
Order = Callable[[Any], Any] | OrderColumns  # A sort key of Rows, or columns to sort by


def as_order(comparator: TieOrder | None) -> Order | None:
    """Return what events of equal time are sorted by; None if they keep their order."""
    return comparator if isinstance(comparator, OrderColumns) else comparator_key(comparator)


_AT_ONCE = 1 << 16
_SHORT = (1 << 16) - 1


def order_by(keys: Sequence[Ints]) -> Ints:
    """Return the stable order by several columns, as of ``numpy.lexsort``."""
    own = list(keys)
    while len(own) > 1 and _are_sorted(own[0]):  # a stable order by the others keeps that one
        del own[0]
    first, *others = own if len(own) == 1 else _packed(own)
    order = _order_by_number(first)
    for key in others:
        ranked = key[order]
        if not _are_sorted(ranked):
            order = order[_order_by_number(ranked)]
    return order


def order_with_ties(keys: Sequence[Ints], ties: Ints) -> Ints:
    """Return the order by several columns; rows alike in these are in the order of another."""
    # As of `order_by`, for few such rows: the other column is looked at, but not sorted.
    order = order_by(keys)
    ranked = ties[order]
    rows = np.flatnonzero(ranked[1:] < ranked[:-1])
    before, after = order[rows], order[rows + 1]
    alike = np.ones(len(rows), bool)
    for key in keys:
        alike &= key[before] == key[after]
    return order_by([ties, *keys]) if alike.any() else order


def _are_sorted(numbers: Ints) -> bool:
    return not (numbers[1:] < numbers[:-1]).any()


def _packed(keys: Sequence[Ints]) -> list[Ints]:
    """Return columns with the same order, as few as fit beside a row's place."""
    if not len(keys[0]):
        return [keys[0]]
    free = used = 63 - _bits(keys[0])
    found: list[Ints] = []
    for key in keys:
        least = int(key.min())
        bits = (int(key.max()) - least).bit_length()
        if not bits and found:  # one value orders nothing
            continue
        if bits > free:  # by itself, as it is; it belongs to the caller
            found.append(key)
            used = free
        elif not found or used + bits > free:
            found.append(key.astype(np.int64) - least)
            used = bits
        else:
            found[-1] |= (key.astype(np.int64) - least) << used
            used += bits
    return found


def _order_by_number(numbers: Ints) -> Ints:
    """Return the stable order of numbers of any size."""
    if _are_sorted(numbers):
        return np.arange(len(numbers))
    bits, least = _bits(numbers), int(numbers.min())
    width = int(numbers.max()) - least
    if width <= _SHORT:
        short = (numbers - least if least else numbers).astype(np.uint16)
        order: Ints = np.argsort(short, kind="stable")  # by digits, in numpy
        return order
    numbers = numbers.astype(np.int64, copy=False)
    if width.bit_length() + bits < 64:
        return _positions((numbers - least) << bits, bits)
    order = _positions(numbers >> bits << bits, bits)  # without the lowest bits
    if not _are_sorted(numbers[order]):  # some differ only in these, which is rare for hashes
        order = np.argsort(numbers, kind="stable")
    return order


def _bits(numbers: Ints) -> int:
    """Return the number of bits that a position takes."""
    return len(numbers).bit_length()


def _positions(numbers: Ints, bits: int) -> Ints:
    """Return the positions of new numbers with `bits` free low bits, in their place, in order."""
    for begin in range(0, len(numbers), _AT_ONCE):
        part = numbers[begin : begin + _AT_ONCE]
        part |= np.arange(begin, begin + len(part))
    numbers.sort()
    numbers &= (1 << bits) - 1
    return numbers
