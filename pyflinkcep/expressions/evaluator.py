# SPDX-License-Identifier: Apache-2.0
"""SQL on one event as a Python function, for tests and lists without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyflinkcep.errors import ConditionError, InputError
from pyflinkcep.expressions.event_columns import column, given
from pyflinkcep.expressions.event_reader import EventReader
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.sql_values import truth
from pyflinkcep.expressions.syntax import Syntax
from pyflinkcep.expressions.tree import Column, Leaf
from pyflinkcep.expressions.values import Function, function_of

__all__ = ["event_condition", "event_function", "part_function"]


def event_condition(text: str) -> Callable[[Any], bool]:
    """
    Return a function that tells whether an event satisfies a SQL condition; NULL counts as false.

    Parameters
    ----------
    text : str
        The condition, over the event's columns.

    Raises
    ------
    SqlSyntaxError
        If the text is not SQL.
    NotSupportedError
        If only Spark can evaluate it; the message says which part.

    Examples
    --------
    >>> holds = event_condition("kind = 'a' AND price BETWEEN 1 AND 2.5")
    >>> holds({"kind": "a", "price": 2}), holds({"kind": "a", "price": None})
    (True, False)
    """
    function = event_function(text)

    def holds(event: Any) -> bool:
        try:
            return truth(function(event)) is True
        except InputError as cause:
            raise ConditionError(f"the condition {text!r}: {cause.message}", cause.hint) from cause

    return holds


def event_function(text: str) -> Function:
    """
    Return a function that computes a SQL expression for an event.

    The rules are those of Spark's default (ANSI) mode. Events are mappings, or objects with
    attributes; integers are bigint; times are datetime, date and timedelta.

    Parameters
    ----------
    text : str
        The expression, over the event's columns.

    Raises
    ------
    SqlSyntaxError
        If the text is not SQL.
    NotSupportedError
        If only Spark can evaluate it; the message says which part.

    Notes
    -----
    The function raises InputError for a column that an event does not have and for incompatible
    types, and ArithmeticError for overflow and division by zero.

    Examples
    --------
    >>> event_function("coalesce(a, b) * 2")({"a": None, "b": 4})
    8
    """
    tree = EventReader(text).part(parsed(text))
    return function_of(tree, _column, where=f"the condition {text!r}: ")


def part_function(text: str, part: Syntax, values: Mapping[Syntax, int] | None = None) -> Function:
    """
    Return a function that computes a part of an expression; see :func:`event_function`.

    Decimals are divided to 38 digits, where Spark rounds to a scale that depends on their types.

    Parameters
    ----------
    text : str
        The expression.
    part : Syntax
        The part.
    values : mapping of Syntax to int, optional
        The parts inside whose values are given: the function takes a sequence of values instead of
        an event, and these are their places in it.
    """
    tree = EventReader(text, values).part(part)
    return function_of(tree, _column, divides_decimals=True)


def _column(leaf: Leaf) -> Function:
    assert isinstance(leaf, Column)
    return column(str(leaf.attribute)) if leaf.index is None else given(int(leaf.index))
