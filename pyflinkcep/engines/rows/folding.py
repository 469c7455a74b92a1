# SPDX-License-Identifier: Apache-2.0
"""Aggregates over the rows of a partial match, in Python: those that no slot can hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial, reduce
from operator import and_, or_, xor
from typing import Any

from pyflinkcep.errors import NotSupportedError, counted
from pyflinkcep.expressions.evaluator import part_function
from pyflinkcep.expressions.number_functions import Moments
from pyflinkcep.expressions.sql_values import compared, greater, is_same, lesser, truth
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.values import aggregated
from pyflinkcep.match_recognize.leaves import Fold

__all__ = ["fold_function", "gathered"]

Folded = Callable[[Sequence[Sequence[Any]]], Any]


def fold_function(fold: Fold) -> Folded:
    """
    Return the function of a fold: given its fields for each row, its value.

    The number of the match is the last value of a row, if the fold reads it.

    Raises
    ------
    NotSupportedError
        If only Spark computes the aggregate.
    """
    arguments = fold.arguments
    least, most, function = _FOLDS.get(fold.name, (0, -1, None))
    if function is None or fold.is_ordered or not least <= len(arguments) <= most:
        what = f"{fold.name.upper()} WITHIN GROUP" if fold.is_ordered else fold.name.upper()
        raise NotSupportedError(
            f"{what} with {counted(len(arguments), 'argument')} in DEFINE",
            f"the aggregates of DEFINE are {', '.join(sorted(_FOLDS)).upper()}; all others are for "
            "MEASURES",
        )
    inputs = [_input(fold, part) for part in arguments]
    conditions = [_input(fold, part) for part in fold.conditions]

    def folded(rows: Sequence[Sequence[Any]]) -> Any:
        taken = [
            [value(row) for value in inputs]
            for row in rows
            if all(truth(condition(row)) for condition in conditions)
        ]
        return function(_distinct(taken) if fold.is_distinct else taken)

    return folded


def gathered(rows: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Return what ARRAY_AGG does."""
    return [row[0] for row in rows] or None


def _input(fold: Fold, part: Syntax) -> Callable[[Any], Any]:
    """Return the function of an argument or condition, given the fields of a row."""
    if part.form is Form.STAR:
        return lambda _: 1
    is_field = part in fold.inputs
    is_filter = part in fold.conditions
    inner = part.operands[0] if is_filter and not is_field else part
    return part_function(fold.text, inner, fold.inputs)


def _distinct(rows: list[list[Any]]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for row in rows:
        if not any(all(map(is_same, row, other)) for other in found):
            found.append(row)
    return found


# --- the aggregates; each is given the arguments of all rows


def _values(rows: list[list[Any]]) -> list[Any]:
    """Return the first arguments that are not NULL."""
    return [row[0] for row in rows if row[0] is not None]


def _of_some(function: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    """Return an aggregate of the values that are not NULL; NULL if there are none."""

    def aggregate(rows: list[list[Any]]) -> Any:
        values = _values(rows)
        return function(values) if values else None

    return aggregate


def _mean(values: list[Any]) -> Any:
    if isinstance(values[0], Decimal):
        return aggregated("sum", values) / len(values)
    return aggregated("avg", values)


def _or_null(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Return an aggregate that is NULL out of range."""

    def aggregate(values: list[Any]) -> Any:
        try:
            return function(values)
        except ArithmeticError:
            return None

    return aggregate


def _moments(values: list[Any]) -> Moments:
    return Moments(list(map(float, values)))


def _by(sign: int) -> Callable[[list[list[Any]]], Any]:
    """Return MAX_BY or MIN_BY; of equal rows the last, as in Spark."""

    def aggregate(rows: list[list[Any]]) -> Any:
        best = None
        for row in rows:
            if row[1] is None:
                continue
            if best is None or sign * compared(row[1], best[1]) >= 0:
                best = row
        return None if best is None else best[0]

    return aggregate


def _joined(rows: list[list[Any]]) -> str | None:
    values = _values(rows)
    between = rows[0][1] if rows and len(rows[0]) > 1 and rows[0][1] is not None else ""
    return between.join(values) if values else None


def _median(values: list[Any]) -> float:
    numbers = sorted(map(float, values), key=lambda x: (x != x, x))  # NaN is the greatest
    low, high = numbers[(len(numbers) - 1) // 2], numbers[len(numbers) // 2]
    return low + 0.0 if low == high else low + 0.5 * (high - low)  # not -0.0, as in Spark


def _distinct_values(rows: list[list[Any]]) -> list[Any]:
    values = (v + 0.0 if isinstance(v, float) else v for v in _values(rows))  # not -0.0
    return [row[0] for row in _distinct([[value] for value in values])]


def _picked(at: int) -> Callable[[list[list[Any]]], Any]:
    return lambda rows: rows[at][0] if rows else None


def _bits(function: Callable[[int, int], int]) -> Callable[[Any], Any]:
    return _of_some(lambda values: reduce(function, values))


_EVERY = _of_some(lambda values: all(map(truth, values)))
_ANY = _of_some(lambda values: any(map(truth, values)))
_SUM = partial(aggregated, "sum")
_DEVIATION = _of_some(lambda values: _moments(values).deviation())
_VARIANCE = _of_some(lambda values: _moments(values).variance())

_FOLDS: dict[str, tuple[int, int, Callable[[list[list[Any]]], Any]]] = {
    "count": (0, 255, lambda rows: sum(None not in row for row in rows)),
    "sum": (1, 1, _of_some(_SUM)),
    "try_sum": (1, 1, _of_some(_or_null(_SUM))),
    "avg": (1, 1, _of_some(_mean)),
    "mean": (1, 1, _of_some(_mean)),
    "try_avg": (1, 1, _of_some(_or_null(_mean))),
    "min": (1, 1, _of_some(partial(reduce, lesser))),
    "max": (1, 1, _of_some(partial(reduce, greater))),
    "array_agg": (1, 1, gathered),
    "collect_list": (1, 1, _values),
    "collect_set": (1, 1, _distinct_values),
    "approx_count_distinct": (1, 2, lambda rows: len(_distinct_values(rows))),
    "count_if": (1, 1, lambda rows: sum(truth(row[0]) is True for row in rows)),
    "bool_and": (1, 1, _EVERY),
    "every": (1, 1, _EVERY),
    "bool_or": (1, 1, _ANY),
    "any": (1, 1, _ANY),
    "some": (1, 1, _ANY),
    "max_by": (2, 2, _by(1)),
    "min_by": (2, 2, _by(-1)),
    "any_value": (1, 1, _picked(0)),
    "first_value": (1, 1, _picked(0)),
    "last_value": (1, 1, _picked(-1)),
    "stddev": (1, 1, _DEVIATION),
    "std": (1, 1, _DEVIATION),
    "stddev_samp": (1, 1, _DEVIATION),
    "stddev_pop": (1, 1, _of_some(lambda values: _moments(values).deviation(0))),
    "variance": (1, 1, _VARIANCE),
    "var_samp": (1, 1, _VARIANCE),
    "var_pop": (1, 1, _of_some(lambda values: _moments(values).variance(0))),
    "median": (1, 1, _of_some(_median)),
    "listagg": (1, 2, _joined),
    "string_agg": (1, 2, _joined),
    "bit_and": (1, 1, _bits(and_)),
    "bit_or": (1, 1, _bits(or_)),
    "bit_xor": (1, 1, _bits(xor)),
}
"""By name, the least and greatest number of arguments, and the function."""
