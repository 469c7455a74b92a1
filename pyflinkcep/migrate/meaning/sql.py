# SPDX-License-Identifier: Apache-2.0
"""Writes conditions as SQL, if that means the same."""

from __future__ import annotations

import math

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.types import (
    BOOLEAN,
    UNKNOWN,
    is_floating,
    is_whole,
    quoted,
    unboxed,
)
from pyflinkcep.migrate.meaning.nulls import non_null_if
from pyflinkcep.migrate.meaning.sql_parts import (
    bounded_by,
    chain,
    inner_of,
    is_empty_average,
    may_be_nan,
    stage_free,
    text_literal,
)
from pyflinkcep.migrate.meaning.sql_values import SqlValues
from pyflinkcep.migrate.meaning.tree import (
    Aggregate,
    Binary,
    Call,
    Cast,
    Choice,
    Const,
    Expression,
    Get,
    Is,
    Unary,
    is_captured,
)

__all__ = ["Sql"]

ATOM, TIMES, PLUS, COMPARED, NOT, AND, OR = range(7, 0, -1)
_NAN = "CAST('NaN' AS double)"
_OPPOSITE = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_SQL = {"==": "=", "!=": "<>"}


def _are_decimals(a: Expression, b: Expression) -> bool:
    return a.type.name == b.type.name == "BigDecimal"


@attrs.define(eq=False)
class Sql(SqlValues):
    """Writes conditions of one function."""

    def condition(self, of: Expression, level: int = 0, exact: bool = False) -> str:
        """
        Return a condition.

        Parameters
        ----------
        of : Expression
            The condition.
        level : int
            How tightly what is around binds.
        exact : bool
            Whether NULL may not stand for false.
        """
        written, own = self._condition(of, exact)
        return f"({written})" if own < level else written

    def _condition(self, of: Expression, exact: bool) -> tuple[str, int]:
        if is_captured(of):
            return self._captured(of), ATOM
        match of:
            case Const(value=bool(value)):
                return str(value).lower(), ATOM
            case Get() | Call(name="not null"):
                return self._flag(of, exact)
            case Unary(operator="!", operand=operand):
                return self._negation(operand)
            case Binary(operator="&&" | "||"):
                return self._logical(of, exact)
            case Binary():
                return self._comparison(of, exact)
            case Choice():
                return self._choice(of, lambda s, x: s.condition(x, exact=exact)), ATOM
            case Is():
                return self._is(of, exact)
            case Call():
                return self._test(of, exact)
        raise self.no(f"{type(of).__name__.lower()} as a condition")

    def _flag(self, of: Expression, exact: bool) -> tuple[str, int]:
        inner = of.operands[0] if isinstance(of, Call) else of
        if unboxed(inner.type) not in (BOOLEAN, UNKNOWN):
            raise self.no(f"{inner.type} as a condition")
        self._may_be_null(inner)
        return self.value(inner), ATOM

    def _negation(self, of: Expression) -> tuple[str, int]:
        if isinstance(of, Call) and of.name == "is null":
            if isinstance(of.operands[0], Aggregate):
                return f"count({quoted(of.operands[0].stage)}) > 0", COMPARED
            return f"{self.value(of.operands[0], PLUS)} IS NOT NULL", COMPARED
        if isinstance(of, Binary) and of.operator in ("==", "!="):
            other = "!=" if of.operator == "==" else "=="
            return self._comparison(attrs.evolve(of, operator=other), True)
        return f"NOT {self.condition(of, NOT, True)}", NOT

    def _logical(self, of: Binary, exact: bool) -> tuple[str, int]:
        is_and = of.operator == "&&"
        word, level = ("AND", AND) if is_and else ("OR", OR)
        parts = chain(of, of.operator)
        bounded = [found for found in map(bounded_by, parts) if found is not None] if is_and else []
        writer = attrs.evolve(self, bounded=self.bounded | frozenset(bounded))
        written = []
        for part in parts:
            text = writer.condition(part, level, exact)
            if text not in written:
                written.append(text)
            facts = non_null_if(part, is_and)
            writer = attrs.evolve(writer, known=writer.known | facts)
        return f" {word} ".join(written), level if len(written) > 1 else COMPARED

    def _comparison(self, of: Binary, exact: bool) -> tuple[str, int]:
        op, left, right = of.operator, of.left, of.right
        if op not in _OPPOSITE:
            raise self.no(f"{op} in a condition")
        for one, other, turned in ((left, right, op), (right, left, _OPPOSITE[op])):
            compared = self._compared_to_zero(one, other, turned)
            if compared is not None:
                return compared
        if BOOLEAN in (unboxed(left.type), unboxed(right.type)):
            return self._booleans(op, left, right)
        for side in (left, right):
            self._may_be_null(side.operand if isinstance(side, Cast) else side)
        floating = is_floating(left.type) or is_floating(right.type)
        if not floating and not self._comparable(left, right):
            raise self.no(f"{left.type} {op} {right.type}")
        self._is_definite(exact or op == "!=", left, right)
        written = f"{self._side(left, right)} {_SQL.get(op, op)} {self._side(right, left)}"
        if not floating:
            return written, COMPARED
        return self._without_nan(op, left, right, written)

    def _comparable(self, left: Expression, right: Expression) -> bool:
        types = [unboxed(side.type).name for side in (left, right)]
        if types == ["char", "char"]:
            return True
        known = [is_whole(side.type) for side in (left, right)]
        if UNKNOWN.name in types and any(known):
            self.note("a type is not in the sources: taken as a number that is not NaN")
            return True
        return all(known)

    def _is_definite(self, exact: bool, *sides: Expression) -> None:
        """Refuse what SQL has as NULL where Java has a value, if that matters."""
        for side in sides:
            if exact and any(is_empty_average(part) for part in (side, inner_of(side))):
                raise self.no("the average of no events")

    def _side(self, of: Expression, other: Expression) -> str:
        if isinstance(of, Const) and isinstance(of.value, float):
            plain = "e" not in repr(of.value) and is_floating(other.type)
            if plain and math.isfinite(of.value) and isinstance(other, Get):
                return repr(of.value)
        if isinstance(of, Const) and isinstance(of.value, str) and len(of.value) == 1:
            return text_literal(of.value)
        return self.value(of, PLUS)

    def _without_nan(
        self, op: str, left: Expression, right: Expression, written: str
    ) -> tuple[str, int]:
        """Return a comparison of floats; NaN is less and greater than nothing in Java."""
        sides = [side for side in (left, right) if may_be_nan(side)]
        if op in ("<", "<="):
            sides = [right] if may_be_nan(right) else []
        elif op in (">", ">="):
            sides = [left] if may_be_nan(left) else []
        elif len(sides) < 2:
            sides = []
        if not sides or (op != "!=" and inner_of(sides[0]) in self.bounded):
            return written, COMPARED
        text = self.value(sides[0], PLUS)
        if op == "!=":
            return f"{written} OR isnan({self.value(sides[0])})", OR
        if stage_free(sides[0]):
            return f"{written} AND NOT isnan({self.value(sides[0])})", AND
        return f"{written} AND {text} <> {_NAN}", AND

    def _compared_to_zero(
        self, call: Expression, zero: Expression, op: str
    ) -> tuple[str, int] | None:
        """Return ``compare(a, b) < 0`` as ``a < b``; None for others."""
        if not isinstance(call, Call) or call.name != "compare" or not isinstance(zero, Const):
            return None
        if zero.value != 0:
            raise self.no("the result of compare() as a number")
        a, b = call.operands
        if is_floating(a.type) or is_floating(b.type):
            fixed = any(isinstance(x, Const) and x.value not in (0, 0.0) for x in (a, b))
            if not fixed:
                raise self.no("compare() of doubles, for which -0.0 is less than 0.0")
        elif not _are_decimals(a, b) and not (is_whole(a.type) and is_whole(b.type)):
            raise self.no(f"compare() of {a.type}")
        for side in (a, b):
            self._may_be_null(inner_of(side))
        return f"{self._side(a, b)} {_SQL.get(op, op)} {self._side(b, a)}", COMPARED

    def _booleans(self, op: str, left: Expression, right: Expression) -> tuple[str, int]:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Const):
                if one.value is (op == "=="):
                    return self._condition(other, False)
                return self._negation(other)
        texts = [self.condition(side, PLUS, True) for side in (left, right)]
        return f"{texts[0]} {_SQL[op]} {texts[1]}", COMPARED

    def _is(self, of: Is, exact: bool) -> tuple[str, int]:
        if isinstance(of.operand, Cast):
            raise self.no("instanceof of a cast")
        column = self.value(Get(of.operand, of.column, JavaType("String")))
        names = ", ".join(map(text_literal, of.names))
        if len(of.names) == 1:
            return f"{column} {'<=>' if exact else '='} {names}", COMPARED
        written = f"{column} IN ({names})"
        return (f"coalesce({written}, false)", ATOM) if exact else (written, COMPARED)

    # --- tests of the library

    def _test(self, of: Call, exact: bool) -> tuple[str, int]:
        operands = of.operands
        match of.name:
            case "is null" if isinstance(operands[0], Aggregate):
                return f"count({quoted(operands[0].stage)}) = 0", COMPARED
            case "is null":
                return f"{self.value(operands[0], PLUS)} IS NULL", COMPARED
            case "equals" | "Objects.equals":
                return self._equals(of.name, operands[0], operands[1], exact)
            case "contains" | "startsWith" | "endsWith":
                for operand in operands:
                    self._may_be_null(operand)
                if of.name != "startsWith" and not all(map(stage_free, operands)):
                    raise self.no(f"{of.name}() of an earlier event")
                name = of.name.lower()
                return f"{name}({self.value(operands[0])}, {self.value(operands[1])})", ATOM
            case "isEmpty":
                self._may_be_null(operands[0])
                return f"{self.value(operands[0], PLUS)} = ''", COMPARED
            case "StringUtils.isEmpty":
                text = self.value(operands[0])
                return f"coalesce({text}, '') = ''", COMPARED
            case "isNaN" if stage_free(operands[0]):
                self._may_be_null(operands[0])
                return f"isnan({self.value(operands[0])})", ATOM
            case "List.contains":
                return self._in(operands[0], operands[1], exact)
            case "has any":
                return f"count({self._stage_of(operands[0])}) > 0", COMPARED
            case "List.isEmpty":
                return f"count({self._stage_of(operands[0])}) = 0", COMPARED
            case "any":
                return self._any(operands[0], exact)
        raise self.no(f"{of.name}() in SQL")

    def _any(self, test: Expression, exact: bool) -> tuple[str, int]:
        """Return whether a condition holds for any event; there may be none."""
        if isinstance(test, Aggregate):
            return f"{self.value(test)} > 0", COMPARED
        written = self.condition(test)
        return (f"coalesce({written}, false)", ATOM) if exact else (f"({written})", ATOM)

    def _in(self, whole: Expression, value: Expression, exact: bool) -> tuple[str, int]:
        if not isinstance(whole, Call) or whole.name != "List.of" or exact or not whole.operands:
            raise self.no("contains() of a list")
        same = {unboxed(item.type) for item in (*whole.operands, value)}
        if len(same) > 1 or is_floating(value.type):
            raise self.no("contains() of a list of other types")
        items = ", ".join(self.value(item) for item in whole.operands)
        return f"{self.value(value, PLUS)} IN ({items})", COMPARED

    def _equals(self, name: str, a: Expression, b: Expression, exact: bool) -> tuple[str, int]:
        x, y = unboxed(a.type), unboxed(b.type)
        null = JavaType("null")
        if null in (x, y):
            return f"{self.value(b if x == null else a, PLUS)} IS NULL", COMPARED
        if is_floating(x) or is_floating(y) or x.dims or y.dims:
            raise self.no(f"equals() of {a.type}")
        if UNKNOWN not in (x, y) and x != y:
            raise self.no(f"equals() of {a.type} and {b.type}, which is always false")
        if x == UNKNOWN and y == UNKNOWN:
            self.note("types are not in the sources: values are compared as SQL does")
        if name == "equals":
            self._may_be_null(a)
        fixed = any(isinstance(side, Const) or is_captured(side) for side in (a, b))
        if name == "equals" and (isinstance(b, Const) or is_captured(b)):
            exact = False  # for null Java fails: neither this nor its negation holds
        definite = fixed or not exact
        both = name == "Objects.equals" and not fixed
        sign = "<=>" if both or (exact and not (definite and self._is_known(a, b))) else "="
        return f"{self.value(a, PLUS)} {sign} {self.value(b, PLUS)}", COMPARED

    def _is_known(self, *values: Expression) -> bool:
        return all(
            isinstance(value, Const) or is_captured(value) or value in self.known
            for value in values
        )
