# SPDX-License-Identifier: Apache-2.0
"""Questions about expressions that become SQL."""

from __future__ import annotations

import math
import re

import attrs

from pyflinkcep.migrate.java.types import UNKNOWN, is_floating
from pyflinkcep.migrate.meaning.constants import Inside, constant, f_string
from pyflinkcep.migrate.meaning.tree import (
    Aggregate,
    Binary,
    Call,
    Cast,
    Choice,
    Const,
    Expression,
    is_captured,
    parts,
)

__all__ = [
    "average_of", "bounded_by", "chain", "inner_of", "is_empty_average", "mark",
    "may_be_nan", "needs_text", "sampled", "stage_event", "stage_free", "text_literal", "unmarked",
]  # fmt: skip


_MARK = re.compile("\x02(\\w+):([^\x03]*)\x03")
_SAMPLES = {"String": "'x'", "boolean": "true", "double": "7.5D", "float": "7.5D"}


def mark(type_: str, python: str) -> str:
    """Return a mark in SQL for a value of a Java type that an expression of Python returns."""
    return f"\x02{type_}:{python}\x03"


def sampled(sql: str) -> str:
    """Return SQL with some value in the place of each mark."""
    return _MARK.sub(lambda found: _SAMPLES.get(found[1], "7"), sql)


def unmarked(sql: str) -> str:
    """
    Return SQL with marks as Python, with expressions in the places of the marks.

    Examples
    --------
    >>> print(unmarked("n > " + mark("double", "limit") + " AND s = " + mark("String", "name")))
    f"n > {limit}D AND s = {sql_text(name)}"
    """
    pieces: list[str | Inside] = []
    end = 0
    for found in _MARK.finditer(sql):
        kind, python = found.groups()
        pieces.append(sql[end : found.start()])
        pieces.append(Inside(f"sql_text({python})" if kind == "String" else python))
        pieces.append("D" if kind in ("double", "float") else "")
        end = found.end()
    pieces.append(sql[end:])
    plain = [f"str({p.python})" if isinstance(p, Inside) else constant(p) for p in pieces if p]
    return f_string(pieces) or " + ".join(plain)


def needs_text(sql: str) -> bool:
    """Whether SQL has a mark for a text."""
    return any(found[1] == "String" for found in _MARK.finditer(sql))


def text_literal(value: str) -> str:
    """Return a string as SQL writes it."""
    escapes = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
    return "'" + "".join(escapes.get(char, char) for char in value) + "'"


def stage_event(of: Expression) -> tuple[str, str, int] | None:
    """Return ``first`` or ``last``, stage and offset of an event that a stage has taken."""
    match of:
        case Aggregate(function="first" | "last" as function, argument=None):
            return function, of.stage, of.offset
        case Call("List.getFirst", (Call("events", (Const(value=str(stage)),)),)):
            return "first", stage, 0
        case Call("List.getLast", (Call("events", (Const(value=str(stage)),)),)):
            return "last", stage, 0
        case Call("List.get", (Call("events", (Const(value=str(stage)),)), Const(value=int(n)))):
            return ("first", stage, n) if n >= 0 else None
        case Call(
            "List.get",
            (
                Call("events", (Const(value=str(stage)),)) as whole,
                Binary("-", Call("List.size", (same,)), Const(value=int(n))),
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
    while isinstance(of, Cast) or (isinstance(of, Call) and of.name == "not null"):
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
    if isinstance(of, Aggregate) and isinstance(of.argument, Choice):
        test = of.argument.condition
        if of.function in ("max", "min") and isinstance(test, Call) and test.name == "isNaN":
            return False
    return is_floating(inner_of(of).type) or inner_of(of).type == UNKNOWN


def stage_free(of: Expression) -> bool:
    """Whether a value is about the event alone."""
    return not any(
        isinstance(part, Aggregate) or (isinstance(part, Call) and part.name == "events")
        for part in parts(of)
    )


def average_of(of: Binary) -> Aggregate | None:
    """Return a sum of doubles divided by the number of the same events as an average."""
    if of.operator != "/":
        return None
    total, number = of.left, inner_of(of.right)
    if isinstance(number, Call) and number.name == "List.size":
        match number.operands[0]:
            case Call("events", (Const(value=str(stage)),)):
                number = Aggregate("count", stage, None, number.type)
    match total, number:
        case Aggregate("sum", stage), Aggregate("count", other) if stage == other:
            if total.type.name == "double":
                return attrs.evolve(total, function="avg")
    return None


def is_empty_average(of: Expression) -> bool:
    """Whether a value is an average, which SQL has as NULL if there are no events."""
    return isinstance(of, Binary) and average_of(of) is not None
