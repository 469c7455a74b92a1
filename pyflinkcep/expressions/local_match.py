# SPDX-License-Identifier: Apache-2.0
"""SQL over stages on events that are Python objects: for tests and lists, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.expressions.program import EXACT_DIGITS, CompiledExpressions, Kind
from pyflinkcep.expressions.tree import MatchExpression

__all__ = ["kind_of_values", "local_expressions", "machine_value"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local_expressions(
    expressions: Iterable[tuple[str, MatchExpression]], events: Iterable[Any], ansi: bool = True
) -> tuple[CompiledExpressions, Callable[[Any], Sequence[Any]]]:
    """
    Compile match expressions for events that are Python objects.

    Parameters
    ----------
    expressions : iterable of (str, MatchExpression)
        The expressions, each with its location for errors.
    events : iterable
        The events, from which the types of the expressions' parts are inferred.
    ansi : bool
        Whether overflow and division by zero are errors.

    Returns
    -------
    tuple of (CompiledExpressions, callable)
        The programs, and a function that returns the fields of an event.

    Raises
    ------
    NotSupportedError
        If only Spark can evaluate a part about one event.
    InputError
        If types are incompatible, or a part has values of several types.
    """
    named = list(expressions)
    samples = list(events)
    parts = dict.fromkeys(sql for _, expression in named for sql in expression.event_parts())
    found = {sql: kind_of_values(sql, _values(sql, samples)) for sql in parts}
    kinds = {sql: kind for sql, kind in found.items() if kind is not None}
    compiled_ = compiled(named, kinds, ansi)
    fields = [(event_function(field.sql), field.kind) for field in compiled_.fields]

    def of_event(event: Any) -> tuple[Any, ...]:
        return tuple(machine_value(function(event), kind) for function, kind in fields)

    return compiled_, of_event


def _values(sql: str, samples: Iterable[Any]) -> list[Any]:
    """Return the values of a part about one event; what has none fails when it is asked for."""
    function, values = event_function(sql), []
    failure: ArithmeticError | None = None
    for sample in samples:
        try:
            values.append(function(sample))
        except ArithmeticError as cause:
            failure = cause
    if failure is not None and all(value is None for value in values):
        hint = "test for it in the condition, with CASE or nullif"
        raise InputError(f"{sql!r} has no value for any event: {failure}", hint) from failure
    return values


_KINDS: dict[type, Kind] = {
    bool: Kind.BOOLEAN,
    int: Kind.BIGINT,
    float: Kind.DOUBLE,
    str: Kind.STRING,
    date: Kind.DATE,
    timedelta: Kind.INTERVAL,
    Decimal: Kind.DECIMAL,
}


def kind_of_values(sql: str, values: Iterable[Any]) -> Kind | None:
    """Return the kind of a part about one event; None if it is always NULL."""
    found = dict.fromkeys(_kind_of(sql, value) for value in values if value is not None)
    if set(found) == {Kind.BIGINT, Kind.DOUBLE}:
        return Kind.DOUBLE
    if set(found) == {Kind.DECIMAL, Kind.WIDE_DECIMAL}:
        return Kind.WIDE_DECIMAL
    if len(found) > 1:
        names = " and ".join(kind.value for kind in found)
        raise InputError(f"{sql!r}: expected values of one type, got {names}", "cast it")
    return next(iter(found), None)


def _kind_of(sql: str, value: Any) -> Kind:
    if isinstance(value, datetime):
        return Kind.TIMESTAMP_NTZ if value.tzinfo is None else Kind.TIMESTAMP
    if isinstance(value, Decimal) and len(value.as_tuple().digits) > EXACT_DIGITS:
        return Kind.WIDE_DECIMAL
    for type_ in type(value).__mro__:
        if type_ in _KINDS:
            return _KINDS[type_]
    raise InputError(
        f"{sql!r}: expected a number, boolean, string or time, got {type(value).__name__}",
        "use a value of such a type",
    )


def machine_value(value: Any, kind: Kind) -> Any:
    """Return a value in the form that programs use."""
    if value is None:
        return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return value.toordinal() - _EPOCH.toordinal()
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if kind in (Kind.DOUBLE, Kind.DECIMAL, Kind.WIDE_DECIMAL):
        return float(value)
    return int(value) if kind is Kind.BOOLEAN else value
