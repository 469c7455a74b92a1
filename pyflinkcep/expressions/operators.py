# SPDX-License-Identifier: Apache-2.0
"""The operators, CASE and functions allowed around aggregates."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from pyflinkcep.errors import counted
from pyflinkcep.expressions.literals import UNITS_US, interval_us, like_pattern, literal_value
from pyflinkcep.expressions.names import Names
from pyflinkcep.expressions.syntax import Form, Guard, Syntax, divides, may_fail
from pyflinkcep.expressions.template import joined
from pyflinkcep.expressions.tokens import string_value
from pyflinkcep.expressions.tree import (
    ALIASES,
    FUNCTIONS,
    Aggregate,
    Column,
    Interval,
    Literal,
    Operation,
    Tree,
)

__all__ = ["Operators"]

_ALLOWED = (
    "around aggregates there may be + - * / % div ||, comparisons, AND, OR, NOT, IS, IN, LIKE, "
    "BETWEEN, CASE, abs, coalesce, greatest, least, if, nullif, timestampdiff, intervals, "
    f"{', '.join(FUNCTIONS)}, literals, and anything about the event alone; compute other "
    "functions inside the aggregate, as in last(upper(up.name)), or write a Python function of "
    "(event, ctx)"
)
_SEE = "see Spark's documentation of the function"
_BINARY = (
    "+", "-", "*", "/", "%", "div", "||", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or",
)  # fmt: skip
_UNARY = ("neg", "not", "is null")
_SAME = {
    "abs": "abs", "coalesce": "coalesce", "ifnull": "coalesce", "nvl": "coalesce",
    "greatest": "greatest", "least": "least", "concat": "||", "mod": "%", "isnull": "is null",
    "equal_null": "<=>", "datediff": "datediff", "date_diff": "datediff",
}  # fmt: skip
_ARGUMENTS = {
    "abs": 1, "ifnull": 2, "nvl": 2, "mod": 2, "isnull": 1, "equal_null": 2, "datediff": 2,
    "date_diff": 2,
}  # fmt: skip
_INSIDE = frozenset({
    "cast", "[]", ".", ":", "lower", "lcase", "upper", "ucase", "trim", "ltrim", "rtrim", "btrim",
    "length", "char_length", "substring", "substr", "left", "right", "replace", "round", "bround",
    "floor", "ceil", "ceiling", "sqrt", "exp", "ln", "log10", "log2", "sign", "signum", "year",
    "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekday", "weekofyear",
    "hour", "minute", "second", "extract", "date_part", "date", "to_date", "to_timestamp",
    "timestamp", "date_trunc", "trunc", "unix_timestamp", "unix_seconds", "unix_millis",
    "unix_micros", "unix_date", "date_add", "date_sub", "dateadd", "timestampadd", "add_months",
    "element_at", "get_json_object", "int", "bigint", "double", "string", "md5",
})  # fmt: skip
"""Functions that return NULL for NULL, so that f(last(a.x)) is last(f(a.x))."""

_LITERALS = (Form.LITERAL, Form.TYPED, Form.WORD, Form.INTERVAL)
_OF_ONE_EVENT = ("first", "last", "min", "max")
"""Aggregates whose value is that of one of the events."""


class Operators:
    """
    Converts an expression to parts.

    Parameters
    ----------
    names : Names
        Its names.
    guards : mapping of Syntax to tuple of Guard, optional
        Under which conditions parts are computed; see :func:`guards_of`.
    """

    def __init__(
        self, names: Names, guards: Mapping[Syntax, tuple[Guard, ...]] | None = None
    ) -> None:
        self._names = names
        self._guards = guards or {}

    def part(self, tree: Syntax) -> Tree:
        """Return a part's meaning; raise InvalidArgumentError if unsupported."""
        node = tree.bare()
        leaf = self._leaf(node)
        if leaf is not None:
            return leaf
        if node.form is Form.CASE:
            return self._case(node)
        if node.form is Form.CALL:
            return self._call(node)
        if node.form is Form.OPERATION:
            return self._operation(node)
        return self._other(node)

    def _leaf(self, node: Syntax) -> Tree | None:
        """Return what is not taken apart; None for everything else."""
        names = self._names
        if names.is_about_event(node):
            constant = self._constant(node)
            if constant is not None:
                return constant
            if self.waits(node):
                return None
            return Column(self._event_sql(node), span=(node.start, node.end))
        return names.aggregate(node) if next(names.aggregates(node), None) is node else None

    def waits(self, node: Syntax) -> bool:
        """Whether a part about the event divides only if something about the match allows it."""
        is_known = self._names.is_about_event
        parts = (part for guard in self._guards.get(node, ()) for part in guard.parts)
        return divides(node) and not all(map(is_known, parts))

    def _event_sql(self, node: Syntax) -> str:
        """Return a part about the event, for all events; NULL for those that do not ask for it."""
        names = self._names
        sql = names.event_sql(node)
        for guard in reversed(self._guards.get(node, ())) if may_fail(node) else ():
            if all(map(names.is_about_event, guard.parts)):
                sql = guard.around(names.event_sql, sql)
        return sql

    def _other(
        self, node: Syntax, what: str = " around an aggregate", hint: str = _ALLOWED
    ) -> Tree:
        """Return a part that is not an operation; here, refuse it."""
        raise self._names.refused(f"{self._written(node)!r}{what}", hint)

    def _written(self, node: Syntax) -> str:
        return self._names.written(node)

    def _made(self, operator: str, node: Syntax, *operands: Tree) -> Operation:
        return Operation(operator, operands, self._written(node), (node.start, node.end))

    def _constant(self, node: Syntax) -> Literal | None:
        """Return a literal as a constant; None for anything else."""
        text = self._written(node)
        if node.form is Form.LITERAL:
            return Literal(literal_value(node.value), text)
        if node.form is Form.INTERVAL:
            length = interval_us(node.value)
            return None if length is None else Literal(Interval(length), text)
        return None

    # --- operators

    def _operation(self, node: Syntax) -> Tree:
        operator, operands = node.value, node.operands
        if operator in ("+", "-"):
            shifted = self._shifted(node)
            if shifted is not None:
                return shifted
        if operator in _BINARY or operator in _UNARY or operator == "in":
            return self._made(operator, node, *map(self.part, operands))
        if operator == "pos":
            return self.part(operands[0])
        if operator == "between":
            value, low, high = map(self.part, operands)
            above = self._made(">=", node, value, low)
            return self._made("and", node, above, self._made("<=", node, value, high))
        if operator in ("is true", "is false"):
            truth = Literal(operator == "is true", operator[3:])
            return self._made("<=>", node, self.part(operands[0]), truth)
        if operator == "like":
            return self._like(node)
        return self._other(node)

    def _like(self, node: Syntax) -> Tree:
        value, pattern = node.operands
        if pattern.form is not Form.LITERAL or pattern.value[0] not in "'\"rR":
            return self._other(
                node,
                ": expected a literal as the pattern",
                "write the pattern as a string, such as 'a%'",
            )
        escape = string_value(node.detail) if node.detail else "\\"
        normal = like_pattern(string_value(pattern.value), escape)
        if normal is None:
            return self._other(
                node,
                ": expected only % and _ to be escaped",
                f"write {escape}%, {escape}_ or {escape}{escape}",
            )
        constant = Literal(normal, self._written(pattern))
        return self._made("like", node, self.part(value), constant)

    def _shifted(self, node: Syntax) -> Tree | None:
        """Return an aggregate of times and a literal interval, computed inside the aggregate."""
        left, right = (side.bare() for side in node.operands)
        if left.form is Form.INTERVAL and node.value == "+":
            left, right = right, left
        if right.form is not Form.INTERVAL or left.form is Form.INTERVAL:
            return None
        if not self._names.shifts_inside and interval_us(right.value) is not None:
            return None
        shift = f"{node.value} {self._written(right)}"
        return self._inside(self.part(left), "(", f") {shift}", _OF_ONE_EVENT)

    # --- CASE and functions

    def _case(self, node: Syntax) -> Operation:
        has_subject, has_else = node.value
        operands = list(node.operands)
        subject = self.part(operands.pop(0)) if has_subject else None
        parts: list[Tree] = []
        last = len(operands) - (1 if has_else else 0)
        for place, operand in enumerate(operands):
            part = self.part(operand)
            if subject is not None and place < last and place % 2 == 0:
                part = self._made("=", operand, subject, part)
            parts.append(part)
        return self._made("case", node, *parts)

    def _call(self, node: Syntax) -> Tree:
        name, operands = node.value, node.operands
        if name in ("timestampdiff", "datediff", "date_diff") and len(operands) == 3:
            return self._difference(node)
        operator = _SAME.get(name)
        if operator is not None:
            wanted = _ARGUMENTS.get(name)
            if not operands or (wanted is not None and len(operands) != wanted):
                return self._other(
                    node,
                    f" has {counted(len(operands), 'argument')}, "
                    f"expected {wanted or 'one at least'}",
                    _SEE,
                )
            return self._joined(operator, node)
        if name == "isnotnull" and len(operands) == 1:
            return self._made("not", node, self._made("is null", node, self.part(operands[0])))
        if name in ("if", "iff") and len(operands) == 3:
            return self._made("case", node, *map(self.part, operands))
        if name == "nullif" and len(operands) == 2:
            value, other = map(self.part, operands)
            same = self._made("=", node, value, other)
            return self._made("case", node, same, Literal(None, "null"), value)
        function = ALIASES.get(name, name)
        return self._function(function, node) if function in FUNCTIONS else self._inside_call(node)

    def _function(self, name: str, node: Syntax) -> Tree:
        """Return a function of values of several events; of one event, Spark computes it."""
        least, most = FUNCTIONS[name]
        if not least <= len(node.operands) <= most:
            return self._other(node, f" has {counted(len(node.operands), 'argument')}", _SEE)
        inside = self._inside_one(node)
        if inside is not None:
            return inside
        parts = [self.part(node.operands[0])]
        for operand in node.operands[1:]:
            digits = self._written(operand).replace(" ", "")
            if name == "round" and not digits.removeprefix("-").isdecimal():
                return self._other(node)
            parts.append(Literal(int(digits), digits) if name == "round" else self.part(operand))
        return self._made(name, node, *parts)

    def _joined(self, operator: str, node: Syntax) -> Tree:
        parts = list(map(self.part, node.operands))
        if operator != "||":
            return self._made(operator, node, *parts)
        joined: Tree = parts[0]
        for part in parts[1:]:
            joined = self._made("||", node, joined, part)
        return joined

    def _difference(self, node: Syntax) -> Tree:
        unit = str(node.operands[0].value).upper()
        if node.operands[0].form is not Form.WORD or unit not in UNITS_US:
            return self._other(
                node,
                f": expected one of {', '.join(UNITS_US)} as the unit",
                "use days: months and years have no fixed length",
            )
        between = self._made("timestampdiff", node, *map(self.part, node.operands[1:]))
        return attrs.evolve(between, detail=unit)

    def _inside_call(self, node: Syntax) -> Tree:
        """Return a function of one first() or last() and literals, computed inside it."""
        return self._inside_one(node) or self._other(node)

    def _inside_one(self, node: Syntax) -> Tree | None:
        """Return the same; None if it is not one."""
        inner = [o for o in node.operands if not self._names.is_about_event(o)]
        others = [o for o in node.operands if self._names.is_about_event(o)]
        literals = all(o.form in _LITERALS for o in others)
        if node.value not in _INSIDE or len(inner) != 1 or not literals:
            return None
        (operand,) = inner
        before = self._names.between(node.start, operand.start)
        after = self._names.between(operand.end, node.end)
        ends = _OF_ONE_EVENT[:2]
        return self._inside(self.part(operand), f"{before}(", f"){after}", ends)

    def _inside(
        self, part: Tree, before: str, after: str, functions: tuple[str, ...]
    ) -> Aggregate | None:
        """Return an aggregate of a function of its argument; None for other parts."""
        if not isinstance(part, Aggregate) or part.function not in functions:
            return None
        inner = self._names.inner(part)
        if inner is None:
            return None
        return attrs.evolve(part, argument=joined((before, inner, after)))
