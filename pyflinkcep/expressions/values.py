# SPDX-License-Identifier: Apache-2.0
"""
Trees as Python functions, without a schema: types are those of the values.

They evaluate conditions on events in memory, HAVING and RETURN of matches there, and conditions of
DEFINE that no program can say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

from pyflinkcep.errors import NotSupportedError, counted
from pyflinkcep.expressions.casts import cast_type, cast_value
from pyflinkcep.expressions.event_columns import element, member
from pyflinkcep.expressions.literals import UNITS_US, like_regex
from pyflinkcep.expressions.null_functions import BRANCHES, NULLS, Function, decided, spread
from pyflinkcep.expressions.number_functions import Moments
from pyflinkcep.expressions.program import Kind, Op
from pyflinkcep.expressions.rules import LEAST_VALUES, OPERATORS, RULES, Nulls
from pyflinkcep.expressions.sql_functions import (
    FUNCTIONS,
    joined,
    moved_by,
    time_between,
)
from pyflinkcep.expressions.sql_values import (
    alike,
    arithmetic,
    compared,
    divided,
    greater,
    lesser,
    negated,
    truth,
)
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import Call, Interval, Leaf, Literal, Moment, Operation, Tree
from pyflinkcep.expressions.value_kinds import KindOf, alternatives, common_kind

__all__ = ["Function", "TimeText", "aggregated", "function_of"]

_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "<=>": lambda order: order == 0,
}
"""What an order says, negative if the left value comes first."""

_ARITHMETIC = ("+", "-", "*", "/", "%", "div", "||")


def function_of(
    tree: Tree,
    leaf: Callable[[Leaf], Function],
    *,
    zero_is_null: bool = False,
    divides_decimals: bool = False,
    where: str = "",
    kinds: KindOf = lambda _: None,
) -> Function:
    """
    Return a function that computes the value of a tree, None for NULL.

    Parameters
    ----------
    tree : Tree
        The tree.
    leaf : callable
        Returns the function of a value of events.
    zero_is_null : bool
        Whether division by zero is NULL, as in queries, rather than an error.
    divides_decimals : bool
        Whether decimals are divided, to 38 digits; Spark rounds to a scale that depends on their
        types.
    where : str
        What errors begin with.
    kinds : callable
        Returns the kinds of columns, as far as they are known: beside a double, a whole number of a
        choice becomes a double.

    Raises
    ------
    NotSupportedError
        If only Spark can evaluate a part of it; the message says which.

    Notes
    -----
    The function raises ArithmeticError on overflow, and on division by zero unless that is NULL,
    and InputError if types are incompatible.

    Examples
    --------
    >>> function_of(Operation("+", (Literal(1), Literal(2))), lambda leaf: lambda _: None)(None)
    3
    """
    compute = divided if divides_decimals else arithmetic
    return _Maker(leaf, zero_is_null, compute, where, kinds).of(tree)


class _Maker:
    """Makes the functions of the parts of a tree."""

    def __init__(
        self,
        leaf: Callable[[Leaf], Function],
        zero_is_null: bool,
        compute: Callable[[str, Any, Any], Any],
        where: str,
        kinds: KindOf,
    ) -> None:
        self._leaf = leaf
        self._zero_is_null = zero_is_null
        self._compute = compute
        self._where = where
        self._kinds = kinds

    def of(self, tree: Tree) -> Function:
        """Return the function of a part."""
        if isinstance(tree, Literal):
            value = _python_value(tree.value)
            return lambda _: value
        if isinstance(tree, Leaf):
            return self._leaf(tree)
        functions = tuple(map(self.of, tree.operands))
        if isinstance(tree, Call):
            function = self._call(tree, functions)
        else:
            function = self._operation(tree, functions)
        kind = common_kind(alternatives(tree), self._kinds)
        return spread((function,), _WIDER[kind]) if kind in _WIDER else function

    def _only_spark(self, tree: Tree, what: str = "") -> NotSupportedError:
        return NotSupportedError(
            f"{self._where}{what or repr(shown(tree))} can only be evaluated by Spark",
            "run the pattern on a DataFrame, or write the condition as a function of the event",
            part=shown(tree),
        )

    # --- operators

    def _operation(self, tree: Operation, functions: tuple[Function, ...]) -> Function:
        operator = tree.operator
        if operator in BRANCHES:
            return BRANCHES[operator](functions)
        if operator == "like":
            pattern = tree.operands[1]
            assert isinstance(pattern, Literal)
            fits = like_regex(str(pattern.value)).fullmatch
            return spread(functions[:1], lambda text: fits(text) is not None)
        if operator not in OPERATORS:
            return spread(functions, _of_times(operator, tree.detail))
        op = OPERATORS[operator]
        rule = RULES[op]
        if rule.nulls is Nulls.DECIDES:
            return decided(functions, op is Op.OR)
        if rule.nulls is Nulls.ASKED:
            return lambda events: functions[0](events) is None
        compute = self._operator(operator)
        if rule.divides and self._zero_is_null:
            compute = _or_null(compute)
        return NULLS[rule.nulls](functions, compute)

    def _operator(self, operator: str) -> Callable[..., Any]:
        """Return the function of an operator on values that are not NULL."""
        if operator in _COMPARISONS:
            holds = _COMPARISONS[operator]
            return lambda a, b: holds(compared(a, b))
        if operator in _ARITHMETIC:
            compute = self._compute
            return lambda a, b: compute(operator, a, b)
        return _STRICT.get(operator) or FUNCTIONS[operator][2]

    # --- functions of one event

    def _call(self, tree: Call, functions: tuple[Function, ...]) -> Function:
        name, detail, count = tree.function, tree.detail, len(functions)
        if not name:
            raise self._only_spark(tree)
        if name == "cast":
            return self._cast(tree, functions[0])
        if name == ".":
            return spread(functions, lambda struct: member(struct, detail))
        if detail in UNITS_US and count == 2:
            return spread(functions, lambda number, time: moved_by(detail, number, time))
        if (name, count) in _CALLS:
            return _CALLS[name, count](functions)
        if name in _CALLS_OF_ANY and count >= _CALLS_OF_ANY[name][0]:
            return _CALLS_OF_ANY[name][1](functions)
        least, most, function = FUNCTIONS.get(name, (0, -1, None))
        if function is None:
            raise self._only_spark(tree, f"the function {name}()")
        if not least <= count <= most:
            raise self._only_spark(tree, f"{name}() with {counted(count, 'argument')}")
        return spread(functions, function)

    def _cast(self, tree: Call, of: Function) -> Function:
        refused, type_ = self._only_spark(tree, f"a cast to {tree.detail}"), cast_type(tree.detail)
        if type_ is None:
            raise refused

        def cast(value: Any) -> Any:
            try:
                return cast_value(value, type_)
            except NotImplementedError as cause:
                raise refused from cause

        return spread((of,), cast)


def _as_double(value: Any) -> Any:
    return float(value) if isinstance(value, int | Decimal) else value


def _as_decimal(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


_WIDER: dict[Kind | None, Callable[[Any], Any]] = {
    Kind.DOUBLE: _as_double,
    Kind.DECIMAL: _as_decimal,
}
"""What makes numbers of the wider kinds, by kind."""


class TimeText(str):
    """A literal date or timestamp as text, which fits every kind of time it is compared with."""

    moment: Moment

    def __new__(cls, moment: Moment) -> TimeText:
        """Return the text of a literal."""
        made = super().__new__(cls, moment.text)
        made.moment = moment
        return made

    @property
    def time(self) -> date:
        """The time alone: a date, or a time in UTC."""
        since = timedelta(microseconds=self.moment.local)
        time = datetime(1970, 1, 1, tzinfo=UTC) + since
        return time.date() if self.moment.is_date else time


def _python_value(value: Any) -> Any:
    if isinstance(value, Interval):
        return timedelta(microseconds=value.microseconds)
    return TimeText(value) if isinstance(value, Moment) else value


def _or_null(divide: Callable[..., Any]) -> Callable[..., Any]:
    """Return a division that is NULL by zero."""
    return lambda a, b: None if b == 0 else divide(a, b)


def _of_times(operator: str, unit: str) -> Callable[..., Any]:
    """Return the function of an operator that is about times."""
    if operator == "datediff":
        return FUNCTIONS[operator][2]
    return lambda start, end: time_between(unit, start, end)


_STRICT: dict[str, Callable[..., Any]] = {
    "not": lambda a: not truth(a),
    "neg": negated,
    "greatest": lambda a, b: greater(*alike(a, b)),
    "least": lambda a, b: lesser(*alike(a, b)),
}


# --- functions of one event


def _of_array(functions: tuple[Function, ...]) -> Function:
    return lambda e: [of(e) for of in functions]


def _with_separator(functions: tuple[Function, ...]) -> Function:
    separator, *others = functions
    return lambda e: joined(separator(e), tuple(of(e) for of in others))


_CALLS_OF_ANY: dict[str, tuple[int, Callable[[tuple[Function, ...]], Function]]] = {
    "array": (0, _of_array),
    "concat_ws": (1, _with_separator),
}
"""Functions of any number of arguments that NULL does not make NULL, and the least number."""

_CALLS: dict[tuple[str, int], Callable[[tuple[Function, ...]], Function]] = {
    ("[]", 2): lambda functions: spread(functions, element),
    ("isnan", 1): lambda functions: lambda e: (x := functions[0](e)) is not None and x != x,
    ("nvl2", 3): lambda functions: lambda e: functions[2 if functions[0](e) is None else 1](e),
}
"""Functions by name and number of arguments."""


def aggregated(function: str, values: Sequence[Any]) -> Any:
    """Return an aggregate of the values of events; NULL of too few."""
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    known = [value for value in values if value is not None]
    if len(known) < LEAST_VALUES[function]:
        return None
    if function == "count":
        return len(known)
    if function == "stddev":
        return Moments([float(value) for value in known]).deviation()
    if function in ("min", "max"):
        return reduce(greater if function == "max" else lesser, known)
    total = known[0] + 0.0 if isinstance(known[0], float) else known[0]  # not -0.0, as in Spark
    if function == "avg":
        total = arithmetic("/", total, 1)  # whole numbers are added as doubles
    for value in known[1:]:
        total = arithmetic("+", total, value)
    return total if function == "sum" else arithmetic("/", total, len(known))
