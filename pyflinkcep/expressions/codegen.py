# SPDX-License-Identifier: Apache-2.0
"""
Programs as Python functions of one row: each is one expression, written and free of user text.

Mirror: ``kernel/src/base/machine.c`` and ``values.c``. :mod:`pyflinkcep.expressions.arrays` runs
the same programs on columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any, NamedTuple

import attrs

from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.numbers import (
    EXACT,
    FORMULAS,
    LEAST,
    MOST,
    NUMBER_FUNCTIONS,
    ROUNDINGS,
    Digits,
    fitted,
    float_mod,
    float_pmod,
    int_div,
    int_mod,
    int_pmod,
    overflow_of,
    rounded,
    whole,
    wrapped,
)
from pyflinkcep.expressions.program import (
    BY_ZERO,
    OVERFLOW,
    RULES,
    TRUTHS,
    Code,
    CompiledExpressions,
    Function,
    Instruction,
    Nulls,
    Op,
    Type,
    floats_compared,
    like_regex,
    update_code,
)
from pyflinkcep.expressions.tree import WHOLE

# --- operations on values that are not NULL

Scalar = Callable[..., Any]

_BETTER = {Op.LEAST: Op.LT, Op.GREATEST: Op.GT}
_DECIMALS: dict[Op, Scalar] = {
    **{op: FORMULAS[rule.sql] for op, rule in RULES.items() if rule.sql in FORMULAS},
    Op.ADD_PASSING: FORMULAS["+"], Op.NEG: Decimal.copy_negate, Op.ABS: Decimal.copy_abs,
}  # fmt: skip
_FUNCTIONS: dict[tuple[Op, Any], Any] = {
    (Op.INT_DIV, Type.INT): int_div, (Op.MOD, Type.INT): int_mod, (Op.PMOD, Type.INT): int_pmod,
    (Op.MOD, Type.FLOAT): float_mod, (Op.PMOD, Type.FLOAT): float_pmod,
    (Op.DECIMAL_TO_INT, None): lambda value: wrapped(int(value)),
    **{(op, Type.DECIMAL): function for op, function in _DECIMALS.items()},
    **{(Op[name.upper()], None): function.compute for name, function in NUMBER_FUNCTIONS.items()},
}  # fmt: skip
_CALLED = (
    Op.AGGREGATE, Op.LISTED, Op.FIT, Op.UNITS, Op.INT_TO_DECIMAL, Op.DECIMAL_TO_FLOAT,
    Op.DECIMAL_TO_INT,
)  # fmt: skip


def called_function(op: Op, operand: Any, ansi: bool) -> Scalar | None:
    """Return the function of an instruction about decimals or lists, which the kernel calls."""
    is_of_decimals = operand == Type.DECIMAL and op in _DECIMALS
    is_of_lists = operand == Type.LIST and op is Op.ADD_PASSING
    return scalar(op, operand, ansi) if op in _CALLED or is_of_decimals or is_of_lists else None


def scalar(op: Op, operand: Any, ansi: bool) -> Scalar:
    """Return the function of an instruction on values that are not NULL."""
    names = _Names(ansi)
    function: Scalar = eval(f"lambda a, b=None: {names.form(op, operand, 'a', 'b')}", names.names)
    return function


class _Names:
    """What the text of functions names: no text of users becomes part of it."""

    def __init__(self, ansi: bool) -> None:
        self._ansi = ansi
        self.names: dict[str, Any] = {"overflow": _overflow(ansi), "by_zero": _by_zero(ansi)}

    def constant(self, value: Any) -> str:
        """Return a name for a value."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def form(self, op: Op, operand: Any, a: str, b: str) -> str:
        """Return an operation on values that are not NULL."""
        rule, form = RULES[op], self._form(op, operand, a, b)
        if rule.has_range and operand == Type.INT:
            form = f"(r if {LEAST} <= (r := {form}) <= {MOST} else overflow(r))"
        if rule.divides:
            form = f"({form} if {b} else by_zero())"
        return f"(None if {a} <= 0 else {form})" if rule.of_positive else form

    def _form(self, op: Op, operand: Any, a: str, b: str) -> str:
        if op in _BETTER:
            return f"({b} if {self._form(_BETTER[op], operand, b, a)} else {a})"
        if operand == Type.FLOAT and RULES[op].is_truth:
            return floats_compared(Op.EQ if op is Op.EQ_NULLSAFE else op, a, b)
        function = _FUNCTIONS.get((op, operand)) or self._made(op, operand)
        if function is not None:
            return f"{self.constant(function)}({a if RULES[op].operands == 1 else f'{a}, {b}'})"
        return f"({(RULES[op].form or RULES[op].row).format(a=a, b=b)})"

    def _made(self, op: Op, operand: Any) -> Scalar | None:
        """Return the function that an operand says; None if it says none."""
        if op is Op.AGGREGATE:
            return AGGREGATES[operand].of_list
        if op is Op.FIT:
            return _fit(operand, self._ansi)
        if op in (Op.FLOOR, Op.CEIL):
            return _to_whole(math.floor if op is Op.FLOOR else math.ceil, self._ansi)
        if op is Op.LIKE:
            fits = like_regex(operand).fullmatch
            return lambda text: fits(text) is not None
        if op is Op.UNITS:
            factor = 10.0**operand
            return lambda number: round(number * factor)
        if op is Op.INT_TO_DECIMAL:
            return lambda number: EXACT.scaleb(Decimal(number), -operand)
        if op.name.lower() in ROUNDINGS:
            return partial(rounded, digits=operand, rounding=ROUNDINGS[op.name.lower()])
        return None


def _overflow(ansi: bool) -> Callable[[int], int]:
    def overflow(number: int) -> int:
        if ansi:
            raise OverflowError(OVERFLOW)
        return wrapped(number)

    return overflow


def _by_zero(ansi: bool) -> Callable[[], None]:
    def by_zero() -> None:
        if ansi:
            raise ZeroDivisionError(BY_ZERO)

    return by_zero


def _to_whole(step: Callable[[float], int], ansi: bool) -> Scalar:
    def number(value: float) -> int:
        found = whole(step(value) if math.isfinite(value) else value)
        if found is None and ansi:
            raise OverflowError(OVERFLOW)
        return (MOST if value > 0 else LEAST) if found is None else found

    return number


def _fit(operand: str, ansi: bool) -> Callable[[Decimal], Decimal | None]:
    precision, scale, *more = operand.split(",")
    digits = Digits(int(precision), int(scale))
    rounding, places = more[0] if more else ROUND_HALF_UP, int(more[1]) if len(more) > 1 else 0

    def fit(value: Decimal) -> Decimal | None:
        found = fitted(value, digits, rounding, places)
        if found is None and ansi:
            raise OverflowError(overflow_of(digits))
        return found

    return fit


# --- programs without jumps

_OF_TRUTHS = (Op.NOT, Op.AND, Op.OR)
_TO_TRUTH: list[Instruction] = [(Op.INT, 0), (Op.NE, Type.INT)]


class _Part(NamedTuple):
    """Instructions that push a value, a number or a truth value."""

    code: list[Instruction]
    is_truth: bool = False

    @property
    def truth(self) -> list[Instruction]:
        return self.code if self.is_truth else [*self.code, *_TO_TRUTH]

    @property
    def number(self) -> list[Instruction]:
        return [*self.code, (Op.TRUTH_TO_INT, None)] if self.is_truth else self.code


def unbranched(code: Code, *, is_condition: bool = False) -> Code:
    """Return a program without jumps, in which truth values and numbers are kept apart."""
    stack: list[_Part] = []
    chosen: list[tuple[int, Op]] = []
    for at, (op, operand) in enumerate(code):
        _end(stack, chosen, at)
        if op is Op.JUMP_IF_NOT_NULL:
            chosen.append((at + 1 + int(operand or 0), Op.OR_ELSE))
        elif op is Op.JUMP:
            chosen.append((at + 1 + int(operand or 0), Op.CHOOSE))
        elif op not in (Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.JUMP_UNLESS):
            _compute(stack, op, operand)
    _end(stack, chosen, len(code))
    (found,) = stack
    return tuple(found.truth if is_condition else found.code)


def _compute(stack: list[_Part], op: Op, operand: int | float | str | None) -> None:
    """Replace the operands on the stack by a computation."""
    count = RULES[op].operands if op in RULES else 0
    operands = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    code: list[Instruction] = []
    for part in operands:
        if op is Op.IS_NULL:
            code += part.code
        else:
            code += part.truth if op in _OF_TRUTHS else part.number
    stack.append(_Part([*code, (op, operand)], op in TRUTHS))


def _end(stack: list[_Part], chosen: list[tuple[int, Op]], at: int) -> None:
    """Choose between the branches that end here."""
    while chosen and chosen[-1][0] == at:
        _, op = chosen.pop()
        other, value = stack.pop().number, stack.pop().number
        condition = stack.pop().truth if op is Op.CHOOSE else []
        stack.append(_Part([*condition, *value, *other, (op, None)]))


# --- functions of a row

Fields = Sequence[Any]
Slots = tuple[Any, ...]

_DEEPEST = 15
"""How many operations are inside each other before one is a function of its own."""


class _Text(NamedTuple):
    """A value as Python."""

    text: str
    is_known: bool = False  # Whether it is never NULL
    depth: int = 0  # How many operations in it are inside each other


class _Writer(_Names):
    """Writes programs as Python."""

    def __init__(self, expressions: CompiledExpressions) -> None:
        super().__init__(expressions.ansi)
        self._slots = expressions.slots
        self._count = 0

    def function(self, parameters: str, text: str) -> Any:
        """Return a function of what was written."""
        return eval(f"lambda {parameters}: {text}", self.names)

    def value(self, code: Code, *, is_condition: bool = False) -> str:
        """Return the value of a program."""
        stack: list[_Text] = []
        for op, operand in unbranched(code, is_condition=is_condition):
            count = 3 if op is Op.CHOOSE else RULES[op].operands if op in RULES else 0
            parts = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            text, is_known = self._written(op, operand, parts)
            depth = 1 + max((part.depth for part in parts), default=-1)
            if depth > _DEEPEST:
                text = f"{self.constant(self.function('fields, slots', text))}(fields, slots)"
                depth = 1
            stack.append(_Text(text, is_known, depth))
        (found,) = stack
        return found.text

    def _written(self, op: Op, operand: Any, parts: Sequence[_Text]) -> tuple[str, bool]:
        """Return an operation, and whether it is never NULL."""
        if op is Op.FIELD:
            return f"fields[{operand}]", False
        if op is Op.SLOT:
            return f"slots[{operand}]", self._slots[operand].function is Function.COUNT
        if not parts:
            value = Decimal(operand) if op is Op.DECIMAL else operand
            return self.constant(value), value is not None
        texts = [part.text for part in parts]
        if op is Op.CHOOSE:
            return f"({texts[1]} if {texts[0]} else {texts[2]})", False
        if op is Op.IS_NULL:
            return f"({texts[0]} is None)", True
        if op is Op.OR_ELSE:
            a = self._new()
            return f"({texts[1]} if ({a} := {texts[0]}) is None else {a})", False
        if RULES[op].nulls is Nulls.DECIDES:
            return self._decided(op is Op.OR, texts), False
        return self._computed(op, operand, parts)

    def _decided(self, decisive: bool, texts: Sequence[str]) -> str:
        """Return AND or OR; what is after an operand that decides is not computed."""
        names, sign = [self._new() for _ in texts], "" if decisive else "not "
        asked = [
            f"{decisive} if ({name} := {text}) is not None and {sign}{name} else "
            for name, text in zip(names, texts, strict=True)
        ]
        is_null = " or ".join(f"{name} is None" for name in names)
        return f"({''.join(asked)}None if {is_null} else {not decisive})"

    def _computed(self, op: Op, operand: Any, parts: Sequence[_Text]) -> tuple[str, bool]:
        rule = RULES[op]
        is_read_twice = rule.divides or rule.of_positive or op in _BETTER or rule.is_truth
        names, nulls = [], []
        for part in parts:
            is_plain = part.is_known and not (is_read_twice and part.depth)
            names.append(part.text if is_plain else self._new())
            if not is_plain:
                nulls.append(f"(({names[-1]} := {part.text}) is None)")
        form = self.form(op, operand, names[0], names[-1])
        may_be_null = rule.divides or rule.of_positive or op in (Op.FIT, Op.AGGREGATE)
        if not nulls:
            return form, not may_be_null
        result = _OF_NULLS[rule.nulls].format(a=names[0], b=names[-1])
        # Both are computed, even if one is NULL.
        either = " or " if rule.nulls is Nulls.SPREADS and not parts[-1].depth else " | "
        return f"({result} if {either.join(nulls)} else {form})", rule.nulls is Nulls.EQUALS

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"


_OF_NULLS = {
    Nulls.SPREADS: "None",
    Nulls.YIELDS: "({b} if {a} is None else {a})",
    Nulls.EQUALS: "{a} is {b}",
}
"""What is the result if an operand is NULL."""


# --- the functions of a pattern


@attrs.frozen(eq=False)
class MatchFunctions:
    """A pattern's match expressions, ready to run."""

    initial: Slots  # The slots of a partial match that has taken nothing
    # By stage, computes the new slots from the slots and the fields of a taken event; stages that
    # no expression names are absent.
    updates: dict[str, Callable[[Slots, Fields], Slots]]
    # The same for the absent stages; None if nothing changes.
    other: Callable[[Slots, Fields], Slots] | None
    # By text, tells from the fields of the current event and the slots whether the expression
    # holds. Like updates, raises ArithmeticError on overflow and division by zero if they are
    # errors.
    conditions: dict[str, Callable[[Fields, Slots], bool]]


def generated(expressions: CompiledExpressions) -> MatchFunctions:
    """Return the functions of a pattern's match expressions."""
    stages = dict.fromkeys(slot.stage for slot in expressions.slots)
    has_whole = WHOLE in stages
    stages.pop(WHOLE, None)

    def update(stage: str) -> Callable[[Slots, Fields], Slots]:
        writer = _Writer(expressions)
        after = "".join(
            writer.value(update_code(expressions.slots, expressions.fields, number)) + ", "
            if slot.stage in (stage, WHOLE)
            else f"slots[{number}], "
            for number, slot in enumerate(expressions.slots)
        )
        found: Callable[[Slots, Fields], Slots] = writer.function("slots, fields", f"({after})")
        return found

    def condition(code: Code) -> Callable[[Fields, Slots], bool]:
        writer = _Writer(expressions)
        holds = writer.value(code, is_condition=True)
        found: Callable[[Fields, Slots], bool] = writer.function("fields, slots", f"bool({holds})")
        return found

    return MatchFunctions(
        tuple(0 if slot.function is Function.COUNT else None for slot in expressions.slots),
        {stage: update(stage) for stage in stages},
        update(WHOLE) if has_whole else None,
        {text: condition(code) for text, code in expressions.programs.items()},
    )
