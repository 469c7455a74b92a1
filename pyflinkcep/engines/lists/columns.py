# SPDX-License-Identifier: Apache-2.0
"""Conditions of a query on arrays with null masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.local_match import machine_value
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.sase.tree import (
    Arithmetic,
    Comparison,
    Expression,
    Function,
    Literal,
    Logical,
    Negation,
    NullTest,
    Reference,
)

__all__ = ["Columns", "Values", "column_of", "computed", "holding", "literals"]

Array = np.ndarray[Any, Any]

_TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE, Kind.INTERVAL)


def _less(a: Any, b: Any) -> Any:
    """Return where a is less than b, NaN being greater than all other numbers."""
    if np.result_type(a, b).kind != "f":
        return np.less(a, b)
    return np.less(a, b) | (np.isnan(b) & ~np.isnan(a))


def _equal(a: Any, b: Any) -> Any:
    if np.result_type(a, b).kind != "f":
        return np.equal(a, b)
    return np.equal(a, b) | (np.isnan(a) & np.isnan(b))


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": _equal,
    "<>": lambda a, b: ~_equal(a, b),
    "<": _less,
    "<=": lambda a, b: ~_less(b, a),
    ">": lambda a, b: _less(b, a),
    ">=": lambda a, b: ~_less(a, b),
}
_COMPUTED: dict[str, Callable[[Any, Any], Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply,
}  # fmt: skip


@attrs.frozen(eq=False)
class Values:
    """
    A value for each row.

    Attributes
    ----------
    data : array or number
        The values; arbitrary for NULL.
    nulls : array of bool or bool
        The null mask.
    """

    data: Any
    nulls: Any = False


@attrs.frozen(eq=False)
class Columns:
    """
    The attributes of events as arrays.

    Texts are replaced by their rank among all texts of the table and the query, so that they
    compare as numbers.

    Attributes
    ----------
    kinds : mapping of str to Kind
        The types of the attributes; those without one are NULL in every event.
    """

    kinds: Mapping[str, Kind]
    _columns: Mapping[str, Values]
    _ranks: Mapping[str, int]

    @classmethod
    def of(cls, table: EventTable, texts: Iterable[str]) -> Columns:
        """Return the columns of a table; `texts` are the literals of the query."""
        text_columns = [name for name, kind in table.kinds.items() if kind.type == Type.TEXT]
        every = {
            *texts,
            *(v for name in text_columns for v in table.columns[name] if v is not None),
        }
        ranks = {text: rank for rank, text in enumerate(sorted(every))}
        columns = {}
        for name, kind in table.kinds.items():
            values = table.columns[name]
            if kind.type == Type.TEXT:
                values = [None if value is None else ranks[value] for value in values]
            columns[name] = _column(values, kind)
        return cls(table.kinds, columns, ranks)

    @property
    def is_native(self) -> bool:
        """Whether all numbers fit 64 bits."""
        return all(column.data.dtype != object for column in self._columns.values())

    def taken(self, name: str, positions: Array) -> Values:
        """Return an attribute of the events at some positions."""
        column = self._columns.get(name)
        if column is None:
            return Values(np.zeros(len(positions), np.int64), True)
        nulls = column.nulls if column.nulls is False else np.take(column.nulls, positions)
        return Values(np.take(column.data, positions), nulls)

    def literal(self, value: int | float | str | None) -> Values:
        """Return a literal."""
        if value is None:
            return Values(0, True)
        return Values(self._ranks[value] if isinstance(value, str) else value)


def column_of(values: Sequence[Any], kind: Kind) -> Values:
    """
    Return a column as numbers: times are microseconds.

    Raises
    ------
    OverflowError
        If a whole number does not fit 64 bits.
    """
    dtype = np.float64 if kind.type == Type.FLOAT else np.int64
    if isinstance(values, np.ma.MaskedArray):
        return Values(np.asarray(values.data, dtype), np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray):
        return Values(np.asarray(values, dtype))
    if kind in _TIMES:
        values = [machine_value(value, kind) for value in values]
    if None not in values:
        return Values(np.asarray(values, dtype))
    nulls = np.fromiter((value is None for value in values), bool, len(values))
    filled = [0 if value is None else value for value in values]
    return Values(np.asarray(filled, dtype), nulls)


def _column(values: Sequence[Any], kind: Kind) -> Values:
    """Return a column as numbers; those beyond 64 bits as objects, which numpy compares."""
    try:
        return column_of(values, kind)
    except OverflowError:
        nulls = np.fromiter((value is None for value in values), bool, len(values))
        return Values(np.asarray([value or 0 for value in values], object), nulls)


def literals(trees: Iterable[Expression]) -> Iterator[str]:
    """Yield the texts in conditions."""
    for tree in trees:
        if isinstance(tree, Literal):
            if isinstance(tree.value, str):
                yield tree.value
        elif isinstance(tree, Logical | Arithmetic):
            yield from literals(tree.operands)
        elif isinstance(tree, Comparison):
            yield from literals((tree.left, tree.right))
        elif isinstance(tree, NullTest):
            yield from literals((tree.value,))
        elif isinstance(tree, Negation):
            yield from literals((tree.operand,))


def holding(
    clause: Expression,
    size: int,
    value_of: Callable[[Reference | Function], Values],
    columns: Columns,
) -> Array:
    """
    Return for each row whether a clause is true.

    Parameters
    ----------
    clause : Expression
        The clause, without NOT.
    size : int
        The number of rows.
    value_of : callable
        Returns the value of a reference or an aggregate in each row.
    columns : Columns
        The literals as numbers.
    """
    found = computed(clause, value_of, columns)
    true = np.logical_and(found.data, np.logical_not(found.nulls))
    return np.broadcast_to(true, size)


def computed(
    tree: Expression, value_of: Callable[[Reference | Function], Values], columns: Columns
) -> Values:
    """Return a value or a condition without NOT in each row; see :func:`holding`."""
    if isinstance(tree, Literal):
        return columns.literal(tree.value)
    if isinstance(tree, Reference | Function):
        return value_of(tree)

    def value(part: Expression) -> Values:
        return computed(part, value_of, columns)

    if isinstance(tree, NullTest):
        nulls = np.asarray(value(tree.value).nulls)
        return Values(np.logical_not(nulls) if tree.negated else nulls)
    if isinstance(tree, Comparison):
        left, right = value(tree.left), value(tree.right)
        data = _COMPARED[tree.operator](left.data, right.data)
        return Values(data, np.logical_or(left.nulls, right.nulls))
    assert isinstance(tree, Logical | Arithmetic)
    parts = list(map(value, tree.operands))
    if isinstance(tree, Logical):
        return _joined(tree.operator, parts)
    return _computed(tree.operator, parts)


def _joined(word: str, parts: Sequence[Values]) -> Values:
    """Return parts joined by AND or OR, with SQL's rules for NULL."""
    decides = word == "or"
    decided: Any = False
    unknown: Any = False
    for part in parts:
        known = np.logical_not(part.nulls)
        truth = np.asarray(part.data, bool)
        decided = np.logical_or(decided, np.logical_and(known, truth == decides))
        unknown = np.logical_or(unknown, part.nulls)
    nulls = np.logical_and(unknown, np.logical_not(decided))
    return Values(decided if decides else np.logical_not(decided), nulls)


def _computed(operator: str, parts: Sequence[Values]) -> Values:
    with np.errstate(all="ignore"):  # infinities, NaN and numbers that wrap around are values
        return _arithmetic(operator, parts)


def _arithmetic(operator: str, parts: Sequence[Values]) -> Values:
    if len(parts) == 1:
        return Values(np.negative(parts[0].data), parts[0].nulls)
    left, right = parts
    nulls = np.logical_or(left.nulls, right.nulls)
    if operator in _COMPUTED:
        return Values(_COMPUTED[operator](left.data, right.data), nulls)
    zero = np.equal(right.data, 0)
    divisor = np.where(zero, 1, right.data)
    compute = np.true_divide if operator == "/" else np.fmod
    return Values(compute(left.data, divisor), np.logical_or(nulls, zero))
