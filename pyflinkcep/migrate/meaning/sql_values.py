# SPDX-License-Identifier: Apache-2.0
"""Writes values as SQL, if that means the same."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import attrs

from pyflinkcep.migrate.java.types import (
    BOOLEAN,
    STRING,
    UNKNOWN,
    is_boxed,
    is_floating,
    is_numeric,
    is_whole,
    quoted,
    unboxed,
)
from pyflinkcep.migrate.meaning.loops import ELEMENT
from pyflinkcep.migrate.meaning.nulls import non_null_if
from pyflinkcep.migrate.meaning.ranges import fits, range_of
from pyflinkcep.migrate.meaning.sql_parts import (
    average_of,
    inner_of,
    mark,
    stage_event,
    stage_free,
    text_literal,
)
from pyflinkcep.migrate.meaning.tree import (
    Aggregate,
    Binary,
    Call,
    Cast,
    Choice,
    Const,
    Expression,
    Get,
    Make,
    Unary,
    Untranslatable,
    Var,
    is_captured,
)
from pyflinkcep.migrate.translated import null_note

__all__ = ["SqlValues"]

ATOM, TIMES, PLUS, COMPARED, NOT, AND, OR = range(7, 0, -1)


_TEXTS = ("String", "CharSequence", "UUID", "?", "Object")
_MARKED = ("int", "long", "short", "byte", "double", "float", "boolean", "String")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")


@attrs.define(eq=False)
class SqlValues:
    """
    Writes the values of one function.

    Attributes
    ----------
    note : callable
        Called with each difference in meaning.
    known : frozenset of Expression
        What is not null here.
    bounded : frozenset of Expression
        What is not NaN, because of another condition beside.
    stage : str
        The stage of the variable ``element``; empty outside of aggregates.
    python : callable, optional
        Writes what is known when the pattern is built as Python.
    """

    note: Callable[[str], None]
    known: frozenset[Expression] = frozenset()
    bounded: frozenset[Expression] = frozenset()
    stage: str = ""
    python: Callable[[Expression], str] | None = None

    def no(self, what: str) -> Untranslatable:
        """Make the error for what SQL does not say in the same way."""
        return Untranslatable(what)

    def condition(self, of: Expression, level: int = 0, exact: bool = False) -> str:
        """Return a condition; see :class:`~pyflinkcep.migrate.meaning.sql.Sql`."""
        raise NotImplementedError

    def value(self, of: Expression, level: int = 0) -> str:
        """Return a value."""
        written, own = self._value(of)
        return f"({written})" if own < level else written

    def _captured(self, of: Expression) -> str:
        """Return a mark with the Python of a value that is known when the pattern is built."""
        kind = unboxed(of.type).name
        if self.python is None or kind not in _MARKED:
            raise self.no("a value that is known at run time alone")
        return mark(kind, self.python(of))

    def _value(self, of: Expression) -> tuple[str, int]:
        if is_captured(of):
            return self._captured(of), ATOM
        match of:
            case Const():
                return self._const(of), ATOM
            case Get():
                return self._column(of), ATOM
            case Binary(operator="+" | "-" | "*" | "/" | "%"):
                return self._arithmetic(of)
            case Unary(operator="-", type=type_) if is_floating(type_) and type_.name == "double":
                return f"-{self.value(of.operand, ATOM)}", TIMES
            case Cast():
                return self._cast(of)
            case Choice():
                return self._choice(of, lambda s, x: s.value(x)), ATOM
            case Aggregate():
                return self._aggregate(of), ATOM
            case Make(fields=fields) if of.class_name.startswith("Tuple"):
                parts = [f"'{name}', {self.value(value)}" for name, value in fields]
                return f"named_struct({', '.join(parts)})", ATOM
            case Call():
                return self._call(of)
        if unboxed(of.type) == BOOLEAN:
            return self.condition(of, exact=True), 0
        raise self.no(f"{type(of).__name__.lower()} in SQL")

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
            raise self.no("a field of what is no event of a stage")
        function, stage, offset = found
        taken = Call("events", (Const(stage, STRING),), UNKNOWN)
        known = {attrs.evolve(one, type=UNKNOWN) for one in self.known if isinstance(one, Call)}
        if owner not in self.known and taken not in known:
            self.note(
                f"where no event was taken for {stage!r}, the Java job fails; "
                "here the value is null, and the comparison does not hold"
            )
        more = f", {offset}" if offset else ""
        return f"{function}({quoted(stage)}.{path}{more})"

    def _arithmetic(self, of: Binary) -> tuple[str, int]:
        op, type_ = of.operator, of.type.name
        if type_ == "double":
            return self._of_doubles(of)
        if type_ not in ("int", "long"):
            raise self.no(f"arithmetic of {of.type}")
        divisor = of.right.value if isinstance(of.right, Const) else None
        for side in (of.left, of.right):
            self._may_be_null(inner_of(side))
        if op in ("/", "%"):
            if not isinstance(divisor, int) or divisor in (0, -1):
                raise self.no("division by what may be zero")
            sign = "DIV" if op == "/" else "%"
            return f"{self.value(of.left, TIMES)} {sign} {self.value(of.right, ATOM)}", TIMES
        if not fits(range_of(of, wrap=False), "long") and type_ == "long":
            self.note("a result beyond 64 bits is an error here; in Java it wraps around")
        elif not fits(range_of(of, wrap=False), type_):
            raise self.no("arithmetic of int, which wraps around at 32 bits")
        level = TIMES if op == "*" else PLUS
        left, right = (
            self._wide(side, lvl) for side, lvl in ((of.left, level), (of.right, level + 1))
        )
        return f"{left} {op} {right}", level

    def _wide(self, of: Expression, level: int) -> str:
        """Return an operand of whole numbers as one of 64 bits."""
        inner = inner_of(of)
        if isinstance(inner, Get) and unboxed(inner.type).name != "long" and stage_free(inner):
            return f"CAST({self.value(inner)} AS bigint)"
        return self.value(of, level)

    def _of_doubles(self, of: Binary) -> tuple[str, int]:
        op = of.operator
        average = average_of(of)
        if average is not None:
            return self.value(average), ATOM
        if op in ("/", "%") and not (
            isinstance(of.right, Const) and of.right.value not in (0, 0.0)
        ):
            raise self.no("division by what may be zero")
        for side in (of.left, of.right):
            self._may_be_null(inner_of(side))
            if unboxed(inner_of(side).type).name == "float" and isinstance(inner_of(side), Binary):
                raise self.no("arithmetic of float")
        level = PLUS if op in ("+", "-") else TIMES
        both_whole = all(isinstance(side, Cast) for side in (of.left, of.right))
        if both_whole:
            left = f"CAST({self.value(inner_of(of.left))} AS double)"
        else:
            left = self.value(of.left, level)
        return f"{left} {op} {self.value(of.right, level + 1)}", level

    def _cast(self, of: Cast) -> tuple[str, int]:
        have, want = unboxed(of.operand.type).name, of.type.name
        wider = ("byte", "short", "int", "long")
        if have in wider and want in wider and wider.index(have) <= wider.index(want):
            return self._value(of.operand)
        if want == "double" and (have in wider or have == "float"):
            return self._value(of.operand)
        raise self.no(f"a cast of {have} to {want}")

    def _call(self, of: Call) -> tuple[str, int]:
        match of.name, of.operands:
            case "not null", (inner,):
                self._may_be_null(inner)
                return self._value(inner)
            case (("toLowerCase" | "toUpperCase"), (inner,)):
                self._may_be_null(inner)
                return f"{of.name[2:7].lower()}({self.value(inner)})", ATOM
            case "Math.abs", (inner,) if of.type.name == "double":
                self._may_be_null(inner_of(inner))
                return f"abs({self.value(inner)})", ATOM
            case (("Math.max" | "Math.min"), (a, b)) if is_whole(of.type):
                for side in (a, b):
                    self._may_be_null(inner_of(side))
                name = "greatest" if of.name == "Math.max" else "least"
                return f"{name}({self.value(a)}, {self.value(b)})", ATOM
            case "BigDecimal.of", (Const(value=str(digits)),) if _DECIMAL.fullmatch(digits):
                return f"{digits}BD", ATOM
            case (
                ("time.hour" | "time.minute" | "time.second" | "time.year"),
                (Get() as inner,),
            ) if stage_free(inner) and inner.type.name == "LocalDateTime":
                self._may_be_null(inner)
                return f"{of.name[5:]}({self.value(inner)})", ATOM
            case "name of", (inner,):
                self._may_be_null(inner)
                return self._value(inner)
            case "enum of", (inner, *_) if isinstance(inner, Get):
                self._may_be_null(inner)
                self.note(
                    f"where {inner.name} names no constant of {of.type.name}, the Java job fails; "
                    "here it is a value like others"
                )
                return self._value(inner)
            case "toString", (inner,) if inner.type.name in _TEXTS:
                self._may_be_null(inner)
                return self._value(inner)
            case "concat", _:
                return f"concat({', '.join(map(self._text, self._pieces(of)))})", ATOM
            case "text", (inner,):
                return self._text(inner), ATOM
            case (("greatest" | "least"), (a, b)):
                return f"{of.name}({self.value(a)}, {self.value(b)})", ATOM
            case "Map.get", (Get() as whole, Const(value=str(key))) if stage_free(whole):
                return f"{self.value(whole, ATOM)}[{text_literal(key)}]", ATOM
            case "List.size", (Call(name="events") as events,):
                return f"count({self._stage_of(events)})", ATOM
        raise self.no(f"{of.name}() in SQL")

    def _pieces(self, of: Expression) -> list[Expression]:
        if isinstance(of, Call) and of.name == "concat":
            return [piece for operand in of.operands for piece in self._pieces(operand)]
        return [of]

    def _text(self, of: Expression) -> str:
        """Return a value as the text that Java appends."""
        if isinstance(of, Const):
            return text_literal(str(of.value)) if is_whole(of.type) else self.value(of)
        if is_whole(of.type) and not is_boxed(of.type):
            return f"CAST({self.value(of)} AS string)"
        if is_whole(of.type):
            return f"coalesce(CAST({self.value(of)} AS string), 'null')"
        if of.type.name not in (*_TEXTS, "char"):
            raise self.no(f"{of.type} as text")
        return f"coalesce({self.value(of)}, 'null')"

    def _aggregate(self, of: Aggregate) -> str:
        stage = quoted(of.stage)
        if self.stage:
            raise self.no("an aggregate in an aggregate")
        if of.function == "count":
            return f"count({stage})"
        if of.argument is None:
            raise self.no("an event as a value")
        inner = attrs.evolve(self, stage=of.stage).value(of.argument)
        if isinstance(of.argument, Cast) and unboxed(of.argument.operand.type).name == "long":
            inner = f"CAST({inner} AS double)"
        written = f"{of.function}({inner})"
        if of.function == "sum":
            zero = "0D" if is_floating(of.type) else "0"
            written = f"coalesce({written}, {zero})"
            if of.type.name == "int" and not fits(range_of(of.argument, wrap=True), "byte"):
                return f"(pmod({written} + 2147483648, 4294967296) - 2147483648)"
            if of.type.name == "long" and not fits(range_of(of.argument, wrap=True), "int"):
                self.note("a sum beyond 64 bits is an error here; in Java it wraps around")
        return written

    # --- null

    def _choice(self, of: Choice, write: Callable[[SqlValues, Expression], str]) -> str:
        condition = self.condition(of.condition)
        yes = attrs.evolve(self, known=self.known | non_null_if(of.condition, True))
        no = attrs.evolve(self, known=self.known | non_null_if(of.condition, False))
        otherwise = "ELSE"
        match of.condition:
            case Call("equals", (Get() as left, Const() as right)) if left not in self.known:
                no.known |= {left}  # for null Java fails: neither of both values
                otherwise = f"WHEN {self.value(left, PLUS)} <> {self.value(right, PLUS)} THEN"
        return f"CASE WHEN {condition} THEN {write(yes, of.yes)} {otherwise} {write(no, of.no)} END"

    def _may_be_null(self, of: Expression) -> None:
        """Note that Java fails where a value is null, if it can be."""
        primitive = is_numeric(of.type) or unboxed(of.type) == BOOLEAN
        if (
            isinstance(of, Const)
            or is_captured(of)
            or of in self.known
            or (primitive and not is_boxed(of.type))
        ):
            return
        if isinstance(of, Get) and self._is_known_event(of):
            self.note(null_note(of.name))

    @staticmethod
    def _is_known_event(of: Get) -> bool:
        return of.type != UNKNOWN

    def _stage_of(self, of: Expression) -> str:
        match of:
            case Call("events", (Const(value=str(stage)),)):
                return quoted(stage)
        raise self.no("a list")
