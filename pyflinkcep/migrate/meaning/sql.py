# SPDX-License-Identifier: Apache-2.0
"""Writes conditions as SQL, if that means the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import attrs

from pyflinkcep.migrate.java.constants import BITS
from pyflinkcep.migrate.java.declarations import BOOLEAN, STRING, UNKNOWN, JavaType
from pyflinkcep.migrate.java.project import quoted
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.translated import null_note
from pyflinkcep.migrate.meaning.tree import (
    ELEMENT,
    Aggregate,
    Binary,
    Call,
    Cast,
    Choice,
    Const,
    Expression,
    Get,
    Is,
    Make,
    Unary,
    Untranslatable,
    Var,
    is_captured,
    non_null_if,
    stage_free,
    text_pieces,
)


def text_literal(value: str) -> str:
    """Return a string as SQL writes it."""
    escapes = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
    return "'" + "".join(escapes.get(char, char) for char in value) + "'"


def stage_event(of: Expression) -> tuple[str, str, int] | None:
    """Return ``first`` or ``last``, stage and offset of an event that a stage has taken."""
    match of:
        case Aggregate(function="first" | "last" as function, argument=None):
            return function, of.stage, of.offset
        case Call(ops.FIRST, (Call(ops.EVENTS, (Const(value=str(stage)),)),)):
            return "first", stage, 0
        case Call(ops.LAST, (Call(ops.EVENTS, (Const(value=str(stage)),)),)):
            return "last", stage, 0
        case Call(ops.GET, (Call(ops.EVENTS, (Const(value=str(stage)),)), Const(value=int(n)))):
            return ("first", stage, n) if n >= 0 else None
        case Call(
            ops.GET,
            (
                Call(ops.EVENTS, (Const(value=str(stage)),)) as whole,
                Binary("-", Call(ops.SIZE, (same,)), Const(value=int(n))),
            ),
        ) if same == whole and n > 0:
            return "last", stage, n - 1
    return None


def chain(of: Expression, operator: str) -> list[Expression]:
    """Return the operands of an operator and of the same ones inside."""
    if isinstance(of, Binary) and of.operator == operator:
        return [*chain(of.left, operator), *chain(of.right, operator)]
    return [of]


def inner_of(of: Expression) -> Expression:
    """Return a value without conversions around it."""
    while isinstance(of, Cast) or (isinstance(of, Call) and of.operation is ops.NOT_NULL):
        of = of.operand if isinstance(of, Cast) else of.operands[0]
    return of


def bounded_by(of: Expression) -> Expression | None:
    """Return the value that a condition holds below a number, so that it is not NaN."""
    match of:
        case Binary("<" | "<=" | "==", value, Const(value=float() | int())):
            return inner_of(value)
        case Binary(">" | ">=" | "==", Const(value=float() | int()), value):
            return inner_of(value)
    return None


def may_be_nan(of: Expression) -> bool:
    """Whether a value may be NaN."""
    if isinstance(of, Const):
        return isinstance(of.value, float) and math.isnan(of.value)
    if is_captured(of):
        return False
    return inner_of(of).type.is_floating or inner_of(of).type == UNKNOWN


Range = tuple[int, int]


def _of_type(name: str) -> Range:
    half = 1 << BITS.get(name, 64) - 1
    return -half, half - 1


def fits(found: Range, type_: str) -> bool:
    """Whether numbers of a range are of a type."""
    least, most = _of_type(type_)
    return least <= found[0] and found[1] <= most


def range_of(of: Expression, *, wrap: bool) -> Range:
    """Return the least and the greatest value."""
    if isinstance(of, Const) and isinstance(of.value, int):
        return of.value, of.value
    own = _of_type(of.type.unboxed.name)
    if isinstance(of, Cast):
        inner = range_of(of.operand, wrap=True)
        return inner if own[0] <= inner[0] and inner[1] <= own[1] else own
    if isinstance(of, Choice):
        yes, no = (range_of(side, wrap=True) for side in (of.yes, of.no))
        return min(yes[0], no[0]), max(yes[1], no[1])
    if not isinstance(of, Binary):
        return own
    (a, b), (c, d) = (range_of(side, wrap=True) for side in (of.left, of.right))
    match of.operator:
        case "+":
            found = (a + c, b + d)
        case "-":
            found = (a - d, b - c)
        case "*":
            products = [x * y for x in (a, b) for y in (c, d)]
            found = (min(products), max(products))
        case "%" if c == d and c:
            most = abs(c) - 1
            found = (-most if a < 0 else 0, most if b > 0 else 0)
        case _:
            return own
    return own if wrap and not (own[0] <= found[0] and found[1] <= own[1]) else found


ATOM, TIMES, PLUS, COMPARED, NOT, AND, OR = range(7, 0, -1)
_LEVELS = {"OR": OR, "AND": AND, "+": PLUS, "-": PLUS, "*": TIMES, "/": TIMES, "%": TIMES,
           "DIV": TIMES}  # fmt: skip
"""How tightly operators bind, other than comparisons."""


class Operation(str):
    """SQL with an operator outermost, which is in parentheses where another binds more tightly."""

    __slots__ = ("level",)
    level: int


def operation(level: int, text: str) -> Operation:
    """Return SQL with an operator that binds as tightly as a level."""
    found = Operation(text)
    found.level = level
    return found


def operand(text: str, level: int = PLUS) -> str:
    """Return SQL as an operand of an operator that binds as tightly as a level."""
    return f"({text})" if isinstance(text, Operation) and text.level < level else text


def infix(left: str, sign: str, right: str) -> Operation:
    """Return two operands with an operator between them."""
    level = _LEVELS.get(sign, COMPARED)
    first = PLUS if level == COMPARED else level
    return operation(level, f"{operand(left, first)} {sign} {operand(right, level + 1)}")


_NAN = "CAST('NaN' AS double)"
_OPPOSITE = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_SQL = {"==": "=", "!=": "<>"}
_TEXTS = ("String", "CharSequence", "UUID", "?", "Object")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")


@attrs.define(eq=False)
class Sql:
    """Writes the values and conditions of one function."""

    note: Callable[[str], None]  # Called with each difference in meaning
    known: frozenset[Expression] = frozenset()  # What is not null here
    # What is not NaN, because of another condition beside.
    bounded: frozenset[Expression] = frozenset()
    stage: str = ""  # The stage of the variable ``element``; empty outside of aggregates

    def value(self, of: Expression) -> str:
        """Return a value."""
        if is_captured(of):
            raise Untranslatable("a value that is known at run time alone")
        match of:
            case Const():
                return self._const(of)
            case Get():
                return self._column(of)
            case Binary(operator="+" | "-" | "*" | "/" | "%"):
                return self._arithmetic(of)
            case Unary(operator="-", type=type_) if type_.is_floating and type_.name == "double":
                return operation(TIMES, f"-{operand(self.value(of.operand), ATOM)}")
            case Cast():
                return self._cast(of)
            case Choice():
                return self._choice(of, lambda s, x: s.value(x))
            case Aggregate():
                return self._aggregate(of)
            case Make(fields=fields) if of.class_name.startswith("Tuple"):
                parts = [f"'{name}', {self.value(value)}" for name, value in fields]
                return f"named_struct({', '.join(parts)})"
            case Call():
                return self._call(of)
        if of.type.unboxed == BOOLEAN:
            return self.condition(of, exact=True)
        raise Untranslatable(f"{type(of).__name__.lower()} in SQL")

    def _const(self, of: Const) -> str:
        value = of.value
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return text_literal(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                return f"CAST('{'NaN' if math.isnan(value) else value}' AS double)"
            return f"{value!r}D"
        return "NULL" if value is None else str(value)

    def _column(self, of: Get) -> str:
        names = [of.name]
        owner = of.owner
        while isinstance(owner, Get):
            names.insert(0, owner.name)
            owner = owner.owner
        path = ".".join(map(quoted, names))
        if isinstance(owner, Var) and owner.name == "event" and not self.stage:
            return path
        if isinstance(owner, Var) and owner.name == ELEMENT and self.stage:
            return f"{quoted(self.stage)}.{path}"
        found = stage_event(owner)
        if found is None or self.stage:
            raise Untranslatable("a field of what is no event of a stage")
        function, stage, offset = found
        taken = Call(ops.EVENTS, (Const(stage, STRING),), UNKNOWN)
        known = {attrs.evolve(one, type=UNKNOWN) for one in self.known if isinstance(one, Call)}
        if owner not in self.known and taken not in known:
            self.note(
                f"where no event was taken for {stage!r}, the Java job fails; "
                "here the value is null, and the comparison does not hold"
            )
        more = f", {offset}" if offset else ""
        return f"{function}({quoted(stage)}.{path}{more})"

    def _arithmetic(self, of: Binary) -> str:
        op, type_ = of.operator, of.type.name
        if type_ == "double":
            return self._of_doubles(of)
        if type_ not in ("int", "long"):
            raise Untranslatable(f"arithmetic of {of.type}")
        divisor = of.right.value if isinstance(of.right, Const) else None
        for side in (of.left, of.right):
            self._may_be_null(inner_of(side))
        if op in ("/", "%"):
            if not isinstance(divisor, int) or divisor in (0, -1):
                raise Untranslatable("division by what may be zero")
            sign = "DIV" if op == "/" else "%"
            return infix(self.value(of.left), sign, self.value(of.right))
        if not fits(range_of(of, wrap=False), "long") and type_ == "long":
            self.note("a result beyond 64 bits is an error here; in Java it wraps around")
        elif not fits(range_of(of, wrap=False), type_):
            raise Untranslatable("arithmetic of int, which wraps around at 32 bits")
        return infix(self._wide(of.left), op, self._wide(of.right))

    def _wide(self, of: Expression) -> str:
        """Return an operand of whole numbers as one of 64 bits."""
        inner = inner_of(of)
        if isinstance(inner, Get) and inner.type.unboxed.name != "long" and stage_free(inner):
            return f"CAST({self.value(inner)} AS bigint)"
        return self.value(of)

    def _of_doubles(self, of: Binary) -> str:
        op = of.operator
        if op in ("/", "%") and not (
            isinstance(of.right, Const) and of.right.value not in (0, 0.0)
        ):
            raise Untranslatable("division by what may be zero")
        for side in (of.left, of.right):
            self._may_be_null(inner_of(side))
            if inner_of(side).type.unboxed.name == "float" and isinstance(inner_of(side), Binary):
                raise Untranslatable("arithmetic of float")
        left = self.value(of.left)
        if isinstance(of.left, Cast) and isinstance(of.right, Cast):
            left = f"CAST({self.value(inner_of(of.left))} AS double)"
        return infix(left, op, self.value(of.right))

    def _cast(self, of: Cast) -> str:
        have, want = of.operand.type.unboxed.name, of.type.name
        wider = ("byte", "short", "int", "long")
        if have in wider and want in wider and wider.index(have) <= wider.index(want):
            return self.value(of.operand)
        if want == "double" and (have in wider or have == "float"):
            return self.value(of.operand)
        raise Untranslatable(f"a cast of {have} to {want}")

    def _call(self, of: Call) -> str:
        match of.operation, of.operands:
            case ((ops.NOT_NULL | ops.NAME_OF), (inner,)):
                self._may_be_null(inner)
                return self.value(inner)
            case ops.DECIMAL, (Const(value=str(digits)),) if _DECIMAL.fullmatch(digits):
                return f"{digits}BD"
            case ops.TO_STRING, (inner,) if inner.type.name in _TEXTS:
                self._may_be_null(inner)
                return self.value(inner)
            case ops.CONCAT, _:
                return f"concat({', '.join(map(self._text, text_pieces((of,))))})"
            case ops.TEXT, (inner,):
                return self._text(inner)
            case ops.MAP_GET, (Get() as whole, Const(value=str(key))) if stage_free(whole):
                return f"{operand(self.value(whole), ATOM)}[{text_literal(key)}]"
            case ops.SIZE, (Call(ops.EVENTS) as events,):
                return f"count({self._stage_of(events)})"
        same = of.type.is_whole if of.operation in (ops.MAX, ops.MIN) else True
        same = same and (of.operation is not ops.ABS or of.type.name == "double")
        if of.operation.sql and of.type.unboxed != BOOLEAN and same:
            return self._template(of.operation.sql, of.operands)
        raise Untranslatable(f"{of.operation.name}() in SQL")

    def _template(self, template: str, operands: tuple[Expression, ...]) -> str:
        """Return a template of an operation with operands, none of which is null in Java."""
        for operand in operands:
            self._may_be_null(inner_of(operand))
        return template.format(*map(self.value, operands))

    def _text(self, of: Expression) -> str:
        """Return a value as the text that Java appends."""
        if isinstance(of, Const):
            return text_literal(str(of.value)) if of.type.is_whole else self.value(of)
        if of.type.is_whole and not of.type.is_boxed:
            return f"CAST({self.value(of)} AS string)"
        if of.type.is_whole:
            return f"coalesce(CAST({self.value(of)} AS string), 'null')"
        if of.type.name not in (*_TEXTS, "char"):
            raise Untranslatable(f"{of.type} as text")
        return f"coalesce({self.value(of)}, 'null')"

    def _aggregate(self, of: Aggregate) -> str:
        stage = quoted(of.stage)
        if self.stage:
            raise Untranslatable("an aggregate in an aggregate")
        if of.function == "count":
            return f"count({stage})"
        if of.argument is None:
            raise Untranslatable("an event as a value")
        inner = attrs.evolve(self, stage=of.stage).value(of.argument)
        if isinstance(of.argument, Cast) and of.argument.operand.type.unboxed.name == "long":
            inner = f"CAST({inner} AS double)"
        written = f"{of.function}({inner})"
        if of.function == "sum":
            zero = "0D" if of.type.is_floating else "0"
            written = f"coalesce({written}, {zero})"
            if of.type.name == "int" and not fits(range_of(of.argument, wrap=True), "byte"):
                return f"(pmod({written} + 2147483648, 4294967296) - 2147483648)"
            if of.type.name == "long" and not fits(range_of(of.argument, wrap=True), "int"):
                self.note("a sum beyond 64 bits is an error here; in Java it wraps around")
        return written

    # --- null

    def _choice(self, of: Choice, write: Callable[[Sql, Expression], str]) -> str:
        condition = self.condition(of.condition)
        yes = attrs.evolve(self, known=self.known | non_null_if(of.condition, True))
        no = attrs.evolve(self, known=self.known | non_null_if(of.condition, False))
        otherwise = "ELSE"
        match of.condition:
            case Call(ops.EQUALS, (Get() as left, Const() as right)) if left not in self.known:
                no.known |= {left}  # for null Java fails: neither of both values
                differs = infix(self.value(left), "<>", self.value(right))
                otherwise = f"WHEN {differs} THEN"
        return f"CASE WHEN {condition} THEN {write(yes, of.yes)} {otherwise} {write(no, of.no)} END"

    def _may_be_null(self, of: Expression) -> None:
        """Note that Java fails where a value is null, if it can be."""
        primitive = of.type.is_numeric or of.type.unboxed == BOOLEAN
        if is_captured(of) or of in self.known or (primitive and not of.type.is_boxed):
            return
        if isinstance(of, Get) and of.type != UNKNOWN:
            self.note(null_note(of.name))

    def _stage_of(self, of: Expression) -> str:
        match of:
            case Call(ops.EVENTS, (Const(value=str(stage)),)):
                return quoted(stage)
        raise Untranslatable("a list")

    # --- conditions

    def condition(self, of: Expression, exact: bool = False) -> str:
        """Return a condition; one that is exact is never null where Java has a value."""
        if is_captured(of):
            raise Untranslatable("a value that is known at run time alone")
        match of:
            case Const(value=bool(value)):
                return str(value).lower()
            case Get() | Call(ops.NOT_NULL):
                return self._flag(of)
            case Unary(operator="!", operand=operand):
                return self._negation(operand)
            case Binary(operator="&&" | "||"):
                return self._logical(of, exact)
            case Binary():
                return self._comparison(of)
            case Choice():
                return self._choice(of, lambda s, x: s.condition(x, exact=exact))
            case Is():
                return self._is(of, exact)
            case Call():
                return self._test(of, exact)
        raise Untranslatable(f"{type(of).__name__.lower()} as a condition")

    def _flag(self, of: Expression) -> str:
        inner = of.operands[0] if isinstance(of, Call) else of
        if inner.type.unboxed not in (BOOLEAN, UNKNOWN):
            raise Untranslatable(f"{inner.type} as a condition")
        self._may_be_null(inner)
        return self.value(inner)

    def _negation(self, of: Expression) -> str:
        if isinstance(of, Call) and of.operation is ops.IS_NULL:
            if isinstance(of.operands[0], Aggregate):
                return infix(f"count({quoted(of.operands[0].stage)})", ">", "0")
            return operation(COMPARED, f"{operand(self.value(of.operands[0]))} IS NOT NULL")
        if isinstance(of, Binary) and of.operator in ("==", "!="):
            other = "!=" if of.operator == "==" else "=="
            return self._comparison(attrs.evolve(of, operator=other))
        return operation(NOT, f"NOT {operand(self.condition(of, True), NOT)}")

    def _logical(self, of: Binary, exact: bool) -> str:
        is_and = of.operator == "&&"
        word, level = ("AND", AND) if is_and else ("OR", OR)
        parts = chain(of, of.operator)
        bounded = [found for found in map(bounded_by, parts) if found is not None] if is_and else []
        writer = attrs.evolve(self, bounded=self.bounded | frozenset(bounded))
        written = []
        for part in parts:
            text = operand(writer.condition(part, exact), level)
            if text not in written:
                written.append(text)
            facts = non_null_if(part, is_and)
            writer = attrs.evolve(writer, known=writer.known | facts)
        return operation(level, f" {word} ".join(written)) if len(written) > 1 else written[0]

    def _comparison(self, of: Binary) -> str:
        op, left, right = of.operator, of.left, of.right
        if op not in _OPPOSITE:
            raise Untranslatable(f"{op} in a condition")
        for one, other, turned in ((left, right, op), (right, left, _OPPOSITE[op])):
            compared = self._compared_to_zero(one, other, turned)
            if compared is not None:
                return compared
        if BOOLEAN in (left.type.unboxed, right.type.unboxed):
            return self._booleans(op, left, right)
        for side in (left, right):
            self._may_be_null(side.operand if isinstance(side, Cast) else side)
        floating = left.type.is_floating or right.type.is_floating
        if not floating and not self._comparable(left, right):
            raise Untranslatable(f"{left.type} {op} {right.type}")
        written = infix(self._side(left, right), _SQL.get(op, op), self._side(right, left))
        return written if not floating else self._without_nan(op, left, right, written)

    def _comparable(self, left: Expression, right: Expression) -> bool:
        types = [side.type.unboxed.name for side in (left, right)]
        if types == ["char", "char"]:
            return True
        known = [side.type.is_whole for side in (left, right)]
        if UNKNOWN.name in types and any(known):
            self.note("a type is not in the sources: taken as a number that is not NaN")
            return True
        return all(known)

    def _side(self, of: Expression, other: Expression) -> str:
        if isinstance(of, Const) and isinstance(of.value, float):
            plain = "e" not in repr(of.value) and other.type.is_floating
            if plain and math.isfinite(of.value) and isinstance(other, Get):
                return repr(of.value)
        if isinstance(of, Const) and isinstance(of.value, str) and len(of.value) == 1:
            return text_literal(of.value)
        return self.value(of)

    def _without_nan(self, op: str, left: Expression, right: Expression, written: str) -> str:
        """Return a comparison of floats; NaN is less and greater than nothing in Java."""
        sides = [side for side in (left, right) if may_be_nan(side)]
        if op in ("<", "<="):
            sides = [right] if may_be_nan(right) else []
        elif op in (">", ">="):
            sides = [left] if may_be_nan(left) else []
        elif len(sides) < 2:
            sides = []
        if not sides or (op != "!=" and inner_of(sides[0]) in self.bounded):
            return written
        text = self.value(sides[0])
        if op == "!=":
            return infix(written, "OR", f"isnan({text})")
        if stage_free(sides[0]):
            return infix(written, "AND", operation(NOT, f"NOT isnan({text})"))
        return infix(written, "AND", infix(text, "<>", _NAN))

    def _compared_to_zero(self, call: Expression, zero: Expression, op: str) -> str | None:
        """Return ``compare(a, b) < 0`` as ``a < b``; None for others."""
        match call, zero:
            case Call(ops.COMPARE, (a, b)), Const(value=number):
                if number != 0:
                    raise Untranslatable("the result of compare() as a number")
            case _:
                return None
        if a.type.is_floating or b.type.is_floating:
            fixed = any(isinstance(x, Const) and x.value not in (0, 0.0) for x in (a, b))
            if not fixed:
                raise Untranslatable("compare() of doubles, for which -0.0 is less than 0.0")
        elif not (a.type.name == b.type.name == "BigDecimal") and not (
            a.type.is_whole and b.type.is_whole
        ):
            raise Untranslatable(f"compare() of {a.type}")
        for side in (a, b):
            self._may_be_null(inner_of(side))
        return infix(self._side(a, b), _SQL.get(op, op), self._side(b, a))

    def _booleans(self, op: str, left: Expression, right: Expression) -> str:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Const):
                if one.value is (op == "=="):
                    return self.condition(other)
                return self._negation(other)
        return infix(self.condition(left, True), _SQL[op], self.condition(right, True))

    def _is(self, of: Is, exact: bool) -> str:
        if isinstance(of.operand, Cast):
            raise Untranslatable("instanceof of a cast")
        column = self.value(Get(of.operand, of.column, JavaType("String")))
        names = ", ".join(map(text_literal, of.names))
        if len(of.names) == 1:
            return infix(column, "<=>" if exact else "=", names)
        written = infix(column, "IN", f"({names})")
        return f"coalesce({written}, false)" if exact else written

    # --- tests of the library

    def _test(self, of: Call, exact: bool) -> str:
        operands = of.operands
        match of.operation:
            case ops.IS_NULL if isinstance(operands[0], Aggregate):
                return infix(f"count({quoted(operands[0].stage)})", "=", "0")
            case ops.IS_NULL:
                return operation(COMPARED, f"{operand(self.value(operands[0]))} IS NULL")
            case ops.EQUALS | ops.SAME:
                return self._equals(of, exact)
            case ops.STARTS_WITH:
                return self._template(of.operation.sql, operands)
            case ops.EMPTY_OR_NULL:
                return infix(f"coalesce({self.value(operands[0])}, '')", "=", "''")
            case ops.IS_EMPTY:
                self._may_be_null(operands[0])
                return infix(self.value(operands[0]), "=", "''")
            case ops.HAS:
                return self._in(operands[0], operands[1], exact)
            case ops.HAS_ANY:
                return infix(f"count({self._stage_of(operands[0])})", ">", "0")
            case ops.NO_ELEMENTS:
                return infix(f"count({self._stage_of(operands[0])})", "=", "0")
        if of.operation.sql and of.type.unboxed == BOOLEAN and all(map(stage_free, operands)):
            return self._template(of.operation.sql, operands)
        raise Untranslatable(f"{of.operation.name}() in SQL")

    def _in(self, whole: Expression, value: Expression, exact: bool) -> str:
        listed = whole.operands if isinstance(whole, Call) and whole.operation is ops.LIST else ()
        if exact or not listed:
            raise Untranslatable("contains() of a list")
        same = {item.type.unboxed for item in (*listed, value)}
        if len(same) > 1 or value.type.is_floating:
            raise Untranslatable("contains() of a list of other types")
        items = ", ".join(self.value(item) for item in listed)
        return infix(self.value(value), "IN", f"({items})")

    def _equals(self, of: Call, exact: bool) -> str:
        (a, b), strict = of.operands, of.operation is ops.EQUALS
        x, y = a.type.unboxed, b.type.unboxed
        null = JavaType("null")
        if null in (x, y):
            return operation(COMPARED, f"{operand(self.value(b if x == null else a))} IS NULL")
        if x.is_floating or y.is_floating or x.dims or y.dims or JavaType("BigDecimal") in (x, y):
            raise Untranslatable(f"equals() of {a.type}")
        if UNKNOWN not in (x, y) and x != y:
            raise Untranslatable(f"equals() of {a.type} and {b.type}, which is always false")
        if x == UNKNOWN and y == UNKNOWN:
            self.note("types are not in the sources: values are compared as SQL does")
        if strict:
            self._may_be_null(a)
        fixed = any(isinstance(side, Const) or is_captured(side) for side in (a, b))
        if strict and (isinstance(b, Const) or is_captured(b)):
            exact = False  # for null Java fails: neither this nor its negation holds
        definite = fixed or not exact
        both = not strict and not fixed
        known = all(isinstance(x, Const) or is_captured(x) or x in self.known for x in (a, b))
        sign = "<=>" if both or (exact and not (definite and known)) else "="
        return infix(self.value(a), sign, self.value(b))
