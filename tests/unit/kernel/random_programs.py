# SPDX-License-Identifier: Apache-2.0
"""Random programs with every instruction, over fields and slots of every type."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pyflinkcep.expressions.numbers import NUMBER_FUNCTIONS
from pyflinkcep.expressions.program import (
    ALL,
    Code,
    CompiledExpressions,
    Field,
    Function,
    Kind,
    Op,
    Slot,
    Type,
)
from tests.unit.expressions.test_match_expressions import FLOATS, INTS

INT, FLOAT, TEXT = Type.INT, Type.FLOAT, Type.TEXT
NAME = "count(a) > 0"
"""The SQL that stands for the program."""

FIELDS = (Field("n", Kind.BIGINT), Field("x", Kind.DOUBLE), Field("s", Kind.STRING))
_TEXTS = ["", "a", "ab", "a%", "ä", "\U0001f600", "\ud7ff", "zz", "A\nb", "\\"]
ROWS = st.tuples(INTS, FLOATS, st.sampled_from([None, *_TEXTS])).map(list)


def _slots() -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for stage in ("a", "c", "match"):
        counts = len(slots)
        slots.append(Slot(Function.COUNT, stage, ALL, INT))
        for number, field in enumerate(FIELDS):
            type_ = field.kind.type
            slots.append(Slot(Function.COUNT, stage, number, INT))
            slots.append(Slot(Function.FIRST, stage, number, type_, counts))
            slots.append(Slot(Function.FIRST, stage, number, type_, counts, 2))
            slots.append(Slot(Function.LAST, stage, number, type_))
            for offset in (1, 2):
                slots.append(Slot(Function.LAST, stage, number, type_, len(slots) - 1, offset))
            slots.append(Slot(Function.MIN, stage, number, type_))
            slots.append(Slot(Function.MAX, stage, number, type_))
            if type_ is not TEXT:
                own = len(slots) - 8  # the COUNT of the same field
                slots.append(Slot(Function.MEAN, stage, number, FLOAT, own))
                slots.append(Slot(Function.MOMENT, stage, number, FLOAT, len(slots) - 1))
        slots.append(Slot(Function.SUM, stage, 0, FLOAT))
        slots.append(Slot(Function.SUM, stage, 1, FLOAT))
    return tuple(slots)


SLOTS = _slots()
SUM_OF_INTS = (*SLOTS, Slot(Function.SUM, "a", 0, INT))
_BINARY = {
    INT: [
        Op.ADD,
        Op.SUB,
        Op.MUL,
        Op.INT_DIV,
        Op.MOD,
        Op.PMOD,
        Op.ADD_PASSING,
        Op.LEAST,
        Op.GREATEST,
    ],
    FLOAT: [
        Op.ADD,
        Op.SUB,
        Op.MUL,
        Op.DIV,
        Op.MOD,
        Op.PMOD,
        *(Op[name.upper()] for name, of in NUMBER_FUNCTIONS.items() if of.arity == 2),
        Op.ADD_PASSING,
        Op.LEAST,
        Op.GREATEST,
    ],
    TEXT: [Op.CONCAT, Op.LEAST, Op.GREATEST],
}
_COMPARISONS = [Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE, Op.EQ_NULLSAFE]
_CONSTANTS: dict[Type, tuple[Op, Any]] = {
    INT: (Op.INT, INTS.filter(lambda n: n is not None)),
    FLOAT: (Op.FLOAT, FLOATS.filter(lambda x: x is not None)),
    TEXT: (Op.TEXT, st.sampled_from(_TEXTS)),
}


@st.composite
def _leaf(draw: Any, type_: Type) -> Code:
    match draw(st.sampled_from(["field", "slot", "slot", "constant", "null"])):
        case "field":
            return ((Op.FIELD, [INT, FLOAT, TEXT].index(type_)),)
        case "slot":
            fitting = [number for number, slot in enumerate(SLOTS) if slot.type is type_]
            return ((Op.SLOT, draw(st.sampled_from(fitting))),)
        case "constant":
            op, constants = _CONSTANTS[type_]
            return ((op, draw(constants)),)
    return ((Op.NULL, None),)


@st.composite
def truths(draw: Any, depth: int) -> Code:
    """Return the code of a boolean."""
    of = draw(st.sampled_from([INT, FLOAT, TEXT]))
    one, two = draw(code(of, depth - 1)), draw(code(of, depth - 1))
    match draw(st.sampled_from(["compare"] * 3 + ["null", "like", "starts", "not", "and", "or"])):
        case "null":
            return (*one, (Op.IS_NULL, None))
        case "like":
            patterns = ["a%", "%b", "_", "a_", "\\%", "a\\%", "%", "", "%\n%"]
            return (*draw(code(TEXT, depth - 1)), (Op.LIKE, draw(st.sampled_from(patterns))))
        case "starts":
            texts = draw(code(TEXT, depth - 1)), draw(code(TEXT, depth - 1))
            return (*texts[0], *texts[1], (Op.STARTS_WITH, None))
        case "compare":
            return (*one, *two, (draw(st.sampled_from(_COMPARISONS)), of))
    left, right = draw(code(INT, depth - 1)), draw(code(INT, depth - 1))
    match draw(st.sampled_from(["not", "and", "or", "and jump", "or jump"])):
        case "not":
            return (*left, (Op.NOT, None))
        case "and":
            return (*left, *right, (Op.AND, None))
        case "or":
            return (*left, *right, (Op.OR, None))
        case "and jump":
            return (*left, (Op.JUMP_IF_FALSE, len(right) + 1), *right, (Op.AND, None))
    return (*left, (Op.JUMP_IF_TRUE, len(right) + 1), *right, (Op.OR, None))


@st.composite
def code(draw: Any, type_: Type, depth: int) -> Code:
    """Return the code of a value."""
    forms = ["leaf", "binary", "binary", "coalesce", "choice", "unary"]
    form = draw(st.sampled_from(forms)) if depth > 0 else "leaf"
    if form == "leaf":
        return draw(_leaf(type_))  # type: ignore[no-any-return]
    left, right = draw(code(type_, depth - 1)), draw(code(type_, depth - 1))
    if form == "binary":
        op = draw(st.sampled_from(_BINARY[type_]))
        return (
            *left,
            *right,
            (op, None if op is Op.CONCAT or op.name.lower() in NUMBER_FUNCTIONS else type_),
        )
    if form == "coalesce":
        return (*left, (Op.JUMP_IF_NOT_NULL, len(right)), *right)
    if form == "choice":
        over = ((Op.JUMP_UNLESS, len(left) + 1), *left, (Op.JUMP, len(right)), *right)
        return (*draw(truths(depth - 1)), *over)
    if type_ is INT and draw(st.booleans()):
        return draw(truths(depth - 1))  # type: ignore[no-any-return]
    if type_ is INT and draw(st.booleans()):
        return (*draw(code(FLOAT, depth - 1)), (draw(st.sampled_from([Op.FLOOR, Op.CEIL])), None))
    if type_ is FLOAT and draw(st.booleans()):
        functions = [Op[name.upper()] for name, of in NUMBER_FUNCTIONS.items() if of.arity == 1]
        forms = [
            (Op.ROUND, 0),
            (Op.ROUND, 2),
            (Op.ROUND, -1),
            (Op.TRUNCATE, 0),
            (Op.TRUNCATE, 2),
            (Op.TRUNCATE, -1),
            *((op, None) for op in functions),
        ]
        return (*left, draw(st.sampled_from(forms)))
    if type_ is FLOAT and draw(st.booleans()):
        return (*draw(code(INT, depth - 1)), (Op.INT_TO_FLOAT, None))
    return left if type_ is TEXT else (*left, (draw(st.sampled_from([Op.NEG, Op.ABS])), type_))


@st.composite
def random_expressions(draw: Any) -> CompiledExpressions:
    """Return a random program with its fields and slots."""
    slots = draw(st.sampled_from([SLOTS, SLOTS, SUM_OF_INTS]))
    return CompiledExpressions(FIELDS, slots, {NAME: draw(truths(4))}, draw(st.booleans()))
