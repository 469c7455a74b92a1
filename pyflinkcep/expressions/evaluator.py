# SPDX-License-Identifier: Apache-2.0
"""SQL on one event as a Python function, for tests and lists without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from pyflinkcep.errors import ConditionError, InputError, NotSupportedError, counted
from pyflinkcep.expressions.event_columns import column, element, given, member
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.literals import (
    UNITS_US,
    interval_us,
    like_pattern,
    like_regex,
    literal_value,
)
from pyflinkcep.expressions.sql_functions import (
    FUNCTIONS,
    cast_value,
    coalesced,
    extreme,
    is_castable,
    joined,
    moved_by,
    time_between,
)
from pyflinkcep.expressions.sql_values import (
    arithmetic,
    compared,
    divided,
    negated,
    truth,
    truth_and,
)
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.tokens import TokenKind, string_value, tokenized
from pyflinkcep.expressions.values import COMPARISONS

__all__ = ["event_condition", "event_function", "part_function"]

Function = Callable[[Any], Any]

_ARITHMETIC = ("+", "-", "*", "/", "%", "div", "||")


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
    return _Evaluator(text).function(parsed(text))


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
    return _Evaluator(text, values, is_part=True).function(part)


class _Evaluator:
    """Makes functions from the parts of one expression."""

    def __init__(
        self, text: str, values: Mapping[Syntax, int] | None = None, *, is_part: bool = False
    ) -> None:
        self._text = text
        self._values = values or {}
        self._where = "" if is_part else f"the condition {text!r}: "
        self._arithmetic = divided if is_part else arithmetic

    def _only_spark(self, node: Syntax, what: str = "") -> NotSupportedError:
        written = self._text[node.start : node.end]
        return NotSupportedError(
            f"{self._where}{what or repr(written)} can only be evaluated by Spark",
            "run the pattern on a DataFrame, or write the condition as a function of the event",
        )

    def function(self, node: Syntax) -> Function:
        """Return the function of a part."""
        if node in self._values:
            return given(self._values[node])
        match node.form:
            case Form.PAREN:
                return self.function(node.operands[0])
            case Form.LITERAL:
                value = literal_value(node.value)
                return lambda _: value
            case Form.COLUMN:
                return column(node.value)
            case Form.INTERVAL:
                length = interval_us(node.value)
                if length is None:
                    raise self._only_spark(node)
                interval = timedelta(microseconds=length)
                return lambda _: interval
            case Form.TYPED:
                return self._typed_literal(node)
            case Form.CASE:
                return self._case(node)
            case Form.OPERATION:
                return self._operation(node)
            case Form.CALL:
                return self._call(node)
        raise self._only_spark(node)

    def _typed_literal(self, node: Syntax) -> Function:
        written = self._text[node.start : node.end]
        type_ = written[: written.index(written[-1])].strip()
        written = written[written.index(written[-1]) :]
        if type_.lower() not in ("date", "timestamp", "timestamp_ntz"):
            raise self._only_spark(node)
        value = cast_value(string_value(written), type_)
        return lambda _: value

    # --- operators

    def _operation(self, node: Syntax) -> Function:
        operator = node.value
        if operator in ("like", "in", "between"):
            return {"like": self._like, "in": self._in, "between": self._between}[operator](node)
        functions = tuple(map(self.function, node.operands))
        first = functions[0]
        if len(functions) == 1:
            return self._unary(node, first)
        second = functions[1]
        if operator in ("and", "or"):
            decisive = operator == "or"
            return lambda e: truth_and(truth(first(e)), lambda: truth(second(e)), decisive)
        if operator == "<=>":
            return lambda e: _null_safe_equal(first(e), second(e))
        if operator in COMPARISONS:
            return _of_two(first, second, lambda a, b: COMPARISONS[operator](compared(a, b)))
        if operator in _ARITHMETIC:
            compute = self._arithmetic
            return _of_two(first, second, lambda a, b: compute(operator, a, b))
        raise self._only_spark(node)

    def _unary(self, node: Syntax, of: Function) -> Function:
        match node.value:
            case "not":
                return _of_one(of, lambda a: not truth(a))
            case "neg":
                return _of_one(of, negated)
            case "pos":
                return of
            case "is null":
                return lambda e: of(e) is None
            case "is true" | "is false":
                wanted = node.value == "is true"
                return lambda e: truth(of(e)) is wanted
        raise self._only_spark(node)

    def _like(self, node: Syntax) -> Function:
        value, pattern = node.operands
        literal = literal_value(pattern.value) if pattern.form is Form.LITERAL else None
        escape = string_value(node.detail) if node.detail else "\\"
        normal = like_pattern(literal, escape) if isinstance(literal, str) else None
        if normal is None:
            raise self._only_spark(node)
        fits = like_regex(normal).fullmatch
        return _of_one(self.function(value), lambda text: fits(text) is not None)

    def _in(self, node: Syntax) -> Function:
        value, *items = map(self.function, node.operands)

        def is_in(event: Any) -> bool | None:
            wanted = value(event)
            found: bool | None = None if wanted is None else False
            for item in items if wanted is not None else ():
                other = item(event)
                if other is None:
                    found = None
                elif compared(wanted, other) == 0:
                    return True
            return found

        return is_in

    def _between(self, node: Syntax) -> Function:
        value, low, high = map(self.function, node.operands)
        above = _of_two(value, low, lambda a, b: compared(a, b) >= 0)
        below = _of_two(value, high, lambda a, b: compared(a, b) <= 0)
        return lambda e: truth_and(above(e), lambda: below(e), False)

    def _case(self, node: Syntax) -> Function:
        has_subject, has_else = node.value
        functions = list(map(self.function, node.operands))
        subject = functions.pop(0) if has_subject else None
        otherwise: Function = functions.pop() if has_else else lambda _: None
        branches = list(zip(functions[::2], functions[1::2], strict=True))

        def chosen(event: Any) -> Any:
            against = None if subject is None else subject(event)
            for condition, value in branches:
                found = condition(event)
                if subject is None:
                    holds = truth(found) is True
                else:
                    holds = None not in (against, found) and compared(against, found) == 0
                if holds:
                    return value(event)
            return otherwise(event)

        return chosen

    # --- functions

    def _call(self, node: Syntax) -> Function:
        name, operands = node.value, node.operands
        if name in ("timestampdiff", "datediff", "date_diff") and len(operands) == 3:
            return self._of_times(node, time_between)
        if name in ("timestampadd", "dateadd", "date_add") and len(operands) == 3:
            return self._of_times(node, moved_by)
        functions = tuple(map(self.function, operands))
        if name == "cast":
            return self._cast(node, functions[0])
        if name in ("[]", "."):
            return self._inside(node, functions)
        special = _special(name, functions)
        if special is not None:
            return special
        least, most, function = FUNCTIONS.get(name, (0, -1, None))
        if function is None:
            raise self._only_spark(node, f"the function {name}()")
        if not least <= len(functions) <= most:
            raise self._only_spark(node, f"{name}() with {counted(len(functions), 'argument')}")
        return _of_all(functions, function)

    def _of_times(self, node: Syntax, function: Callable[..., Any]) -> Function:
        unit = str(node.operands[0].value).upper()
        if node.operands[0].form is not Form.WORD or unit not in UNITS_US:
            raise self._only_spark(node)
        others = tuple(map(self.function, node.operands[1:]))
        return _of_all(others, lambda a, b: function(unit, a, b))

    def _cast(self, node: Syntax, of: Function) -> Function:
        if not is_castable(node.detail):
            raise self._only_spark(node, f"a cast to {node.detail}")

        def cast(value: Any) -> Any:
            try:
                return cast_value(value, node.detail)
            except NotImplementedError as cause:
                raise self._only_spark(node, f"a cast to {node.detail}") from cause

        return _of_one(of, cast)

    def _inside(self, node: Syntax, functions: tuple[Function, ...]) -> Function:
        if node.value == ".":
            name = _last_name(self._text[node.start : node.end])
            return _of_one(functions[0], lambda struct: member(struct, name))
        return _of_two(functions[0], functions[1], element)


def _last_name(text: str) -> str:
    """Return the name at the end of a text."""
    return [token.text for token in tokenized(text) if token.kind is TokenKind.NAME][-1]


def _special(name: str, functions: tuple[Function, ...]) -> Function | None:
    """Return functions that handle NULL; None for all others."""
    count = len(functions)
    if name in ("coalesce", "ifnull", "nvl") and count:
        return lambda e: coalesced(tuple(f(e) for f in functions))
    if name == "array":
        return lambda e: [f(e) for f in functions]
    if name == "concat_ws" and count:
        return lambda e: joined(functions[0](e), tuple(f(e) for f in functions[1:]))
    if name == "nvl2" and count == 3:
        return lambda e: functions[2 if functions[0](e) is None else 1](e)
    if name in ("greatest", "least") and count:
        sign = 1 if name == "greatest" else -1
        return lambda e: extreme(tuple(f(e) for f in functions), sign)
    if name in ("if", "iff") and count == 3:
        return lambda e: functions[1 if truth(functions[0](e)) else 2](e)
    if name == "nullif" and count == 2:
        return lambda e: None if _equal(functions[0](e), functions[1](e)) else functions[0](e)
    if name in ("isnull", "isnotnull") and count == 1:
        return lambda e: (functions[0](e) is None) is (name == "isnull")
    if name == "equal_null" and count == 2:
        return lambda e: _null_safe_equal(functions[0](e), functions[1](e))
    return None


def _of_one(of: Function, function: Callable[[Any], Any]) -> Function:
    def value(event: Any) -> Any:
        a = of(event)
        return None if a is None else function(a)

    return value


def _of_two(first: Function, second: Function, function: Callable[[Any, Any], Any]) -> Function:
    def value(event: Any) -> Any:
        a, b = first(event), second(event)
        return None if a is None or b is None else function(a, b)

    return value


def _of_all(functions: tuple[Function, ...], function: Callable[..., Any]) -> Function:
    def value(event: Any) -> Any:
        values = [f(event) for f in functions]
        return None if any(v is None for v in values) else function(*values)

    return value


def _equal(a: Any, b: Any) -> bool:
    return a is not None and b is not None and compared(a, b) == 0


def _null_safe_equal(a: Any, b: Any) -> bool:
    return a is b if a is None or b is None else compared(a, b) == 0
