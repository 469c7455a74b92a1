# SPDX-License-Identifier: Apache-2.0
"""The order of events of equal key and time by columns, with Spark's order of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.flink.operator import Comparator, comparator_key
from pyflinkcep.errors import InputError
from pyflinkcep.kernel.module import CompiledModule, compiled_module
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


_FEW = 1 << 11  # numbers, which numpy orders before C has counted their digits
_MOST = (1 << 31) - 1  # numbers, whose places C writes in 32 bits


def order_by(keys: Sequence[Ints]) -> Ints:
    """Return the stable order by several columns, the last one first, as of ``numpy.lexsort``."""
    own = list(keys)
    while len(own) > 1 and _are_sorted(own[0]):  # a stable order by the others keeps that one
        del own[0]
    module = compiled_module() if _FEW < len(own[0]) <= _MOST else None
    if module is None:
        found: Ints = np.lexsort(own)
        return found
    order = _order_of(own[0], module)
    for key in own[1:]:
        order = order[_order_of(key[order], module)]
    return order.astype(np.int64)


def _order_of(numbers: Ints, module: CompiledModule) -> Ints:
    """Return the stable order of many numbers."""
    return np.frombuffer(module.order_of(numbers.astype(np.int64, copy=False)), np.int32)


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


_MOST_PIECES = 1 << 8
_ROUNDS = 3


def pieces_in_order(numbers: Ints) -> list[tuple[int, int]] | None:
    """
    Return the pieces of numbers that are in order once they are put so; None if there are many.

    Each is its first place and that behind it. Equal numbers stay as they are: the order is stable.
    """
    # A partition has the events of several sources, such as files, by turns, each in order of time.
    falls = np.flatnonzero(numbers[1:] < numbers[:-1]) + 1
    bounds = np.r_[0, falls, len(numbers)]
    for _ in range(_ROUNDS):
        if not len(numbers) or len(bounds) > _MOST_PIECES:
            return None
        firsts, lasts = numbers[bounds[:-1]], numbers[bounds[1:] - 1]
        order = np.argsort(firsts, kind="stable")
        before, after = order[:-1], order[1:]
        fits = lasts[before] < firsts[after]
        fits |= (lasts[before] == firsts[after]) & (before < after)
        if fits.all():
            return list(zip(bounds[order].tolist(), bounds[order + 1].tolist(), strict=True))
        cut = [bounds]
        for begin, end in pairwise(bounds.tolist()):  # where others begin and end
            own = numbers[begin:end]
            cut += [begin + np.searchsorted(own, firsts)]
            cut += [begin + np.searchsorted(own, lasts, "right")]
        bounds = np.unique(np.concatenate(cut))
    return None


def _are_sorted(numbers: Ints) -> bool:
    return not (numbers[1:] < numbers[:-1]).any()
