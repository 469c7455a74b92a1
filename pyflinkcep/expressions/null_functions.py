# SPDX-License-Identifier: Apache-2.0
"""What NULL does to functions of values: one form for each of Nulls, and branches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from pyflinkcep.expressions.rules import Nulls
from pyflinkcep.expressions.sql_values import is_equal, is_same, truth, truth_and

__all__ = ["BRANCHES", "NULLS", "Function", "decided", "spread"]

Function = Callable[[Any], Any]
"""The value of a part, given what its leaves are read from."""


def spread(functions: tuple[Function, ...], compute: Callable[..., Any]) -> Function:
    """Return a function that is NULL if an operand is; those after it are not computed."""
    if len(functions) == 1:
        return _of_one(functions[0], compute)
    if len(functions) == 2:
        return _of_two(*functions, compute)

    def value(events: Any) -> Any:
        values = []
        for of in functions:
            found = of(events)
            if found is None:
                return None
            values.append(found)
        return compute(*values)

    return value


def _of_one(of: Function, compute: Callable[..., Any]) -> Function:
    def value(events: Any) -> Any:
        a = of(events)
        return None if a is None else compute(a)

    return value


def _of_two(first: Function, second: Function, compute: Callable[..., Any]) -> Function:
    def value(events: Any) -> Any:
        a = first(events)
        if a is None:
            return None
        b = second(events)
        return None if b is None else compute(a, b)

    return value


def _yielding(functions: tuple[Function, ...], compute: Callable[..., Any]) -> Function:
    """Return a function of the operands that are not NULL, two at a time."""

    def value(events: Any) -> Any:
        known = [v for v in (of(events) for of in functions) if v is not None]
        return reduce(compute, known) if known else None

    return value


def _equal(functions: tuple[Function, ...], _: Callable[..., Any]) -> Function:
    first, second = functions
    return lambda events: is_same(first(events), second(events))


NULLS: dict[Nulls, Callable[[tuple[Function, ...], Callable[..., Any]], Function]] = {
    Nulls.SPREADS: spread,
    Nulls.YIELDS: _yielding,
    Nulls.EQUALS: _equal,
}
"""By what NULL does, the function of operands and of what to compute of values that are known."""


def decided(functions: tuple[Function, ...], decisive: bool) -> Function:
    """Return AND or OR; what is after an operand that decides is not computed."""
    first, *others = functions

    def value(events: Any) -> bool | None:
        found = truth(first(events))
        for other in others:
            found = truth_and(found, partial(_truth_of, other, events), decisive)
        return found

    return value


def _truth_of(function: Function, events: Any) -> bool | None:
    return truth(function(events))


# --- branches


def _coalesced(functions: tuple[Function, ...]) -> Function:
    return lambda events: next((v for v in (of(events) for of in functions) if v is not None), None)


def _among(functions: tuple[Function, ...]) -> Function:
    """Return IN: equal to one of the others, which an OR of equations would say."""
    value, *items = functions
    if not items:
        return spread((value,), lambda _: False)
    return decided(tuple(spread((value, item), is_equal) for item in items), True)


def _chosen(functions: tuple[Function, ...]) -> Function:
    """Return CASE."""
    branches = list(zip(functions[::2], functions[1::2], strict=False))
    otherwise: Function = functions[-1] if len(functions) % 2 else lambda _: None

    def value(events: Any) -> Any:
        for condition, then in branches:
            if truth(condition(events)):
                return then(events)
        return otherwise(events)

    return value


def _is_not_null(functions: tuple[Function, ...]) -> Function:
    (of,) = functions
    return lambda events: of(events) is not None


BRANCHES: dict[str, Callable[[tuple[Function, ...]], Function]] = {
    "coalesce": _coalesced, "in": _among, "case": _chosen, "is not null": _is_not_null,
}  # fmt: skip
"""The operators that are jumps, or several operations, in a program."""
