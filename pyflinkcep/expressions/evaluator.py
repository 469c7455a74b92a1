# SPDX-License-Identifier: Apache-2.0
"""SQL on one event as a Python function, for tests and lists without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import attrs

from pyflinkcep.errors import ConditionError, InputError
from pyflinkcep.expressions.event_columns import column, given
from pyflinkcep.expressions.event_reader import EventReader
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.sql_types import (
    ARRAY,
    INTERVAL,
    MAP,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
)
from pyflinkcep.expressions.sql_values import truth
from pyflinkcep.expressions.syntax import Syntax
from pyflinkcep.expressions.tree import Column, Leaf
from pyflinkcep.expressions.values import Function, Typed, typed_function

__all__ = [
    "UNTYPED",
    "RowTypes",
    "event_condition",
    "event_function",
    "event_value",
    "part_function",
    "part_value",
]


@attrs.frozen(eq=False)
class RowTypes:
    """
    The types of columns.

    Attributes
    ----------
    types : mapping of str to SqlType
        By the name of the column, or, of values that are given, by their places.
    zone : tzinfo or None
        Where clocks without a zone are, and what the clock of timestamps shows; None for that of
        each value.
    """

    types: Mapping[str, SqlType | None] = attrs.field(factory=dict)
    zone: tzinfo | None = None

    def of(self, leaf: Leaf) -> SqlType | None:
        """Return the type of a column; names are compared as in Spark."""
        assert isinstance(leaf, Column)
        name = str(leaf.attribute) if leaf.index is None else leaf.index
        if name not in self.types:
            same = [other for other in self.types if other.casefold() == name.casefold()]
            name = same[0] if len(same) == 1 else name
        return self.types.get(name)

    def leaf(self, leaf: Leaf) -> Function:
        """Return the function of a column."""
        assert isinstance(leaf, Column)
        own = column(str(leaf.attribute)) if leaf.index is None else given(int(leaf.index))
        change = _reading(self.of(leaf), self.zone)
        return own if change is None else lambda event: change(own(event))


UNTYPED = RowTypes()
"""The types of columns of which nothing is known."""


def _reading(type_: SqlType | None, zone: tzinfo | None) -> Function | None:
    """Return what makes values of a type those that functions know; None if they are."""
    if type_ is None:
        return None
    if type_ == TIMESTAMP:
        return lambda time: None if time is None else _plain(time).astimezone(zone or UTC)
    if type_ == TIMESTAMP_NTZ:
        return _plain
    if type_ == INTERVAL:
        return lambda length: None if length is None else length // _MICROSECOND * _MICROSECOND
    inner = [_reading(part, zone) for part in type_.inner]
    if type_.name == MAP:
        key, value = inner
        return lambda pairs: pairs if pairs is None else {
            key(k) if key else k: value(v) if value else v
            for k, v in (pairs.items() if isinstance(pairs, Mapping) else pairs)
        }  # fmt: skip
    if type_.name == ARRAY and inner[0] is not None:
        element = inner[0]
        return lambda values: values and [element(value) for value in values]
    if type_.name == STRUCT and any(inner):
        changes = dict(zip(type_.fields, inner, strict=True))
        return lambda fields: fields and {
            name: change(fields[name]) if change else fields[name]
            for name, change in changes.items()
        }  # fmt: skip
    return None


_MICROSECOND = timedelta(microseconds=1)


def _plain(time: Any) -> Any:
    """Return a time of Python, without parts of microseconds."""
    if time is None or type(time) is datetime:
        return time
    return time.replace(nanosecond=0).to_pydatetime() if hasattr(time, "nanosecond") else time


def event_condition(text: str, types: RowTypes = UNTYPED) -> Callable[[Any], bool]:
    """
    Return a function that tells whether an event satisfies a SQL condition; NULL counts as false.

    Parameters
    ----------
    text : str
        The condition, over the event's columns.
    types : RowTypes, optional
        The types of these, as far as they are known.

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
    function = event_function(text, types)

    def holds(event: Any) -> bool:
        try:
            return truth(function(event)) is True
        except InputError as cause:
            raise ConditionError(f"the condition {text!r}: {cause.message}", cause.hint) from cause

    return holds


def event_function(text: str, types: RowTypes = UNTYPED) -> Function:
    """
    Return a function that computes a SQL expression for an event.

    The rules are those of Spark's default (ANSI) mode. Events are mappings, or objects with
    attributes; times are datetime, date and timedelta; integers of unknown types are bigint.

    Parameters
    ----------
    text : str
        The expression, over the event's columns.
    types : RowTypes, optional
        The types of these, as far as they are known.

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
    return event_value(text, types).function


def event_value(text: str, types: RowTypes = UNTYPED) -> Typed:
    """Return a function that computes a SQL expression for an event, and the type of its values."""
    tree = EventReader(text).part(parsed(text))
    return typed_function(
        tree, types.leaf, types=types.of, zone=types.zone, where=f"the condition {text!r}: "
    )


def part_function(text: str, part: Syntax, values: Mapping[Syntax, int] | None = None) -> Function:
    """Return a function that computes a part of an expression; see :func:`part_value`."""
    return part_value(text, part, values).function


def part_value(
    text: str,
    part: Syntax,
    values: Mapping[Syntax, int] | None = None,
    types: RowTypes = UNTYPED,
) -> Typed:
    """
    Return a function that computes a part of an expression, and the type of its values.

    Decimals of unknown types are divided to 38 digits.

    Parameters
    ----------
    text : str
        The expression.
    part : Syntax
        The part.
    values : mapping of Syntax to int, optional
        The parts inside whose values are given: the function takes a sequence of values instead of
        an event, and these are their places in it.
    types : RowTypes, optional
        The types of these values by their places, as far as they are known.
    """
    tree = EventReader(text, values).part(part)
    return typed_function(tree, types.leaf, types=types.of, zone=types.zone, divides_decimals=True)
