# SPDX-License-Identifier: Apache-2.0
"""Match expressions as Python functions, generated from programs and free of user text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from operator import add
from typing import Any, NamedTuple

import attrs

from pyflinkcep.expressions.aggregates import AGGREGATES, added, appended
from pyflinkcep.expressions.decimals import EXACT, FORMULAS, Digits, fitted, overflow_of
from pyflinkcep.expressions.number_functions import (
    NUMBER_FUNCTIONS,
    ROUNDINGS,
    float_mod,
    float_pmod,
    int_div,
    int_mod,
    int_pmod,
    rounded,
    whole,
)
from pyflinkcep.expressions.program import ALL, Code, CompiledExpressions, Function, Op, Slot, Type
from pyflinkcep.expressions.rules import BY_ZERO, OVERFLOW, RULES, Nulls, floats_compared
from pyflinkcep.expressions.tokens import LEAST, MOST, like_regex, wrapped
from pyflinkcep.expressions.tree import WHOLE


def helpers(ansi: bool) -> dict[str, Any]:
    """Return the functions that generated code calls; with `ansi`, overflow is an error."""

    def overflow(number: int) -> int:
        if ansi:
            raise ArithmeticError(OVERFLOW)
        return wrapped(number)

    def by_zero() -> None:
        if ansi:
            raise ArithmeticError(BY_ZERO)

    def rounded_to(step: Callable[[float], int]) -> Callable[[float], int]:
        def integer(number: float) -> int:
            found = whole(number if math.isinf(number) or math.isnan(number) else step(number))
            if found is None and ansi:
                raise ArithmeticError(OVERFLOW)
            return (MOST if number > 0 else LEAST) if found is None else found

        return integer

    return {
        "overflow": overflow,
        "floor": rounded_to(math.floor),
        "ceil": rounded_to(math.ceil),
        "rounded": rounded,
        **{name: function.compute for name, function in NUMBER_FUNCTIONS.items()},
        "int_pmod": int_pmod,
        "float_pmod": float_pmod,
        "by_zero": by_zero,
        "int_mod": int_mod,
        "int_div": int_div,
        "fmod": float_mod,
        "decimal_sum": added,
        "appended": appended,
    }


def called_function(op: Op, operand: Any, ansi: bool) -> Callable[..., Any] | None:
    """Return the function of an instruction about decimals or lists, of what is not NULL."""
    if op is Op.AGGREGATE:
        return AGGREGATES[operand].of_list
    if op is Op.LISTED:
        return lambda number: (number,)
    if op is Op.ADD_PASSING and operand == Type.LIST:
        return add
    if op is Op.FIT:
        return _fit(operand, ansi)
    if op in _CONVERSIONS:
        return _CONVERSIONS[op](operand)
    if operand != Type.DECIMAL or op not in _OF_DECIMALS:
        return None
    function = _OF_DECIMALS[op]
    return _divided(function, ansi) if RULES[op].divides else function


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


def _divided(function: Callable[..., Any], ansi: bool) -> Callable[[Decimal, Decimal], Any]:
    def divide(a: Decimal, b: Decimal) -> Any:
        if b:
            return function(a, b)
        if ansi:
            raise ZeroDivisionError(BY_ZERO)
        return None

    return divide


def _units(scale: int) -> Callable[[float], int]:
    factor = 10.0**scale
    return lambda number: round(number * factor)


def _of_units(scale: int) -> Callable[[int], Decimal]:
    return (lambda number: EXACT.scaleb(Decimal(number), -scale)) if scale else Decimal


_CONVERSIONS: dict[Op, Callable[[Any], Callable[..., Any]]] = {
    Op.UNITS: _units,
    Op.INT_TO_DECIMAL: _of_units,
    Op.DECIMAL_TO_FLOAT: lambda _: float,
    Op.DECIMAL_TO_INT: lambda _: lambda value: wrapped(int(value)),
}
_OF_DECIMALS: dict[Op, Callable[..., Any]] = {
    Op.ADD: FORMULAS["+"], Op.ADD_PASSING: FORMULAS["+"], Op.SUB: FORMULAS["-"],
    Op.MUL: FORMULAS["*"], Op.DIV: FORMULAS["/"], Op.INT_DIV: FORMULAS["div"],
    Op.MOD: FORMULAS["%"], Op.PMOD: FORMULAS["pmod"],
    Op.NEG: Decimal.copy_negate, Op.ABS: Decimal.copy_abs,
}  # fmt: skip


_SIGNS = {
    Op.EQ: "==", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">=",
    Op.ADD: "+", Op.ADD_PASSING: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/", Op.CONCAT: "+",
}  # fmt: skip
_COMPARED = {
    **{op: op for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)}, Op.EQ_NULLSAFE: Op.EQ,
}  # fmt: skip


_CALLED: dict[tuple[Op, Type | None], str] = {
    (Op.INT_DIV, Type.INT): "int_div({a}, {b})",
    (Op.MOD, Type.INT): "int_mod({a}, {b})",
    (Op.MOD, Type.FLOAT): "fmod({a}, {b})",
    (Op.PMOD, Type.INT): "int_pmod({a}, {b})",
    (Op.PMOD, Type.FLOAT): "float_pmod({a}, {b})",
    (Op.STARTS_WITH, None): "{a}.startswith({b})",
    **{
        (Op[name.upper()], None): f"{name}({{a}}, {{b}})"
        for name, of in NUMBER_FUNCTIONS.items()
        if of.arity == 2
    },
}


def compared(op: Op, a: str, b: str, type_: Any) -> str:
    """Return a comparison of two values as Python; NaN is the greatest number."""
    return floats_compared(op, a, b) if type_ == Type.FLOAT else f"({a} {_SIGNS[op]} {b})"


def computed(op: Op, a: str, b: str, type_: Any) -> str:
    """Return an operation on two values that are not NULL as Python."""
    if op in (Op.LEAST, Op.GREATEST):
        better = compared(Op.LT if op is Op.LEAST else Op.GT, b, a, type_)
        return f"({b} if {better} else {a})"
    if op in _COMPARED:
        return compared(_COMPARED[op], a, b, type_)
    form = _CALLED.get((op, type_), f"({a} {_SIGNS.get(op)} {b})").format(a=a, b=b)
    return f"({form} if {b} else by_zero())" if RULES[op].divides else form


Slots = tuple[Any, ...]
Fields = Sequence[Any]


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
    """Generate the functions of a pattern's match expressions."""
    stages = dict.fromkeys(slot.stage for slot in expressions.slots)
    has_whole = WHOLE in stages
    stages.pop(WHOLE, None)
    return MatchFunctions(
        tuple(0 if slot.function is Function.COUNT else None for slot in expressions.slots),
        {stage: _update(expressions, stage) for stage in stages},
        _update(expressions, WHOLE) if has_whole else None,
        {text: _condition(expressions, code) for text, code in expressions.programs.items()},
    )


# --- writing


class _Value(NamedTuple):
    """A value on the machine's stack: its name in the function, and what is known about it."""

    name: str
    nullable: bool
    is_truth: bool = False

    @property
    def truth(self) -> str:
        """The value as a boolean, or None."""
        if self.is_truth:
            return self.name
        guard = f"None if {self.name} is None else " if self.nullable else ""
        return f"({guard}{self.name} != 0)"


class _Source:
    """The lines of a function."""

    def __init__(self, parameters: str, helpers: dict[str, Any]) -> None:
        self._lines = [f"def function({parameters}):"]
        self._indent = 1
        self._count = 0
        self._names = dict(helpers)

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def begin(self, text: str) -> None:
        self.line(text)
        self._indent += 1

    def end(self) -> None:
        self._indent -= 1

    def new(self, expression: str) -> str:
        """Return a new name for the value of an expression."""
        self._count += 1
        name = f"v{self._count}"
        self.line(f"{name} = {expression}")
        return name

    def constant(self, value: Any) -> str:
        """Return a name for a constant, so that its text never becomes part of the source."""
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def in_range(self, name: str, nullable: bool) -> None:
        """Check an integer for overflow."""
        guard = f"{name} is not None and " if nullable else ""
        self.line(f"if {guard}not {LEAST} <= {name} <= {MOST}: {name} = overflow({name})")

    def function(self) -> Any:
        exec("\n".join(self._lines), self._names)
        return self._names["function"]


# --- slots


def _update(expressions: CompiledExpressions, stage: str) -> Any:
    """Generate the function that updates the slots of a stage with an event."""
    source = _Source("slots, fields", helpers(expressions.ansi))
    names = [f"s{number}" for number in range(len(expressions.slots))]
    source.line(f"{', '.join(names)}, = slots")
    after = list(names)
    for number, slot in enumerate(expressions.slots):
        if slot.stage in (stage, WHOLE):
            after[number] = _slot(source, expressions, slot, names[number])
    source.line(f"return {', '.join(after)},")
    return source.function()


def _slot(source: _Source, expressions: CompiledExpressions, slot: Slot, old: str) -> str:
    """Write the new value of a slot; return its name."""
    if slot.field == ALL:
        return source.new(f"{old} + 1")
    if slot.function is Function.LAST and slot.offset:
        return f"s{slot.source}"
    new = source.new(f"fields[{slot.field}]")
    if expressions.fields[slot.field].kind.type == Type.INT and slot.type == Type.FLOAT:
        new = source.new(f"None if {new} is None else float({new})")
    if slot.function is Function.COUNT:
        return source.new(f"{old} if {new} is None else {old} + 1")
    if slot.function is Function.FIRST:
        return source.new(f"{new} if s{slot.source} == {slot.offset} else {old}")
    if slot.function is Function.LAST:
        return new
    if slot.function is Function.LIST:
        return source.new(f"{old} if {new} is None else appended({old}, {new})")
    if slot.function is Function.SUM:
        added = f"decimal_sum({old}, {new})" if slot.type is Type.DECIMAL else f"{old} + {new}"
        joined = f"{new} if {old} is None else {added}"
        total = source.new(f"{old} if {new} is None else {joined}")
        if slot.type == Type.INT:
            source.in_range(total, nullable=True)
        return total
    if slot.function is Function.MEAN:
        step = f"{old} + ({new} - {old}) / (s{slot.source} + 1)"
        mean = f"{new} if {old} is None else {step}"
        return source.new(f"{old} if {new} is None else {mean}")
    if slot.function is Function.MOMENT:
        return _moment(source, expressions, slot, (old, new))
    op = Op.LT if slot.function is Function.MIN else Op.GT
    better = compared(op, new, old, slot.type)
    return source.new(f"{old} if {new} is None or ({old} is not None and not {better}) else {new}")


def _moment(
    source: _Source, expressions: CompiledExpressions, slot: Slot, values: tuple[str, str]
) -> str:
    """Write the new value of a MOMENT, whose mean and count are as before the event."""
    old, new = values
    count = f"s{expressions.slots[slot.source].source}"
    far = source.new(f"None if {new} is None or {old} is None else {new} - s{slot.source}")
    step = f"{old} + {far} * ({far} - {far} / ({count} + 1))"
    first = f"{old} if {new} is None else {new} * ({new} - {new})"
    return source.new(f"{first} if {far} is None else {step}")


# --- programs


def _condition(expressions: CompiledExpressions, code: Code) -> Any:
    """Generate the function of a program."""
    source = _Source("fields, slots", helpers(expressions.ansi))
    writer = _Program(source, expressions)
    for op, operand in code:
        writer.instruction(op, operand)
    source.line(f"return bool({writer.result()})")
    return source.function()


_UNARY = {
    Op.INT_TO_FLOAT: "float({})", Op.NEG: "-{}", Op.ABS: "abs({})", Op.NOT: "not {}",
    Op.FLOOR: "floor({})", Op.CEIL: "ceil({})",
    **{Op[name.upper()]: f"{name}({{}})" for name, of in NUMBER_FUNCTIONS.items() if of.arity == 1},
}  # fmt: skip


class _Program:
    """Writes a program as statements; a jump becomes an ``if``."""

    def __init__(self, source: _Source, expressions: CompiledExpressions) -> None:
        self._source = source
        self._expressions = expressions
        self._stack: list[_Value] = []
        self._blocks: list[tuple[int, _Value]] = []
        self._at = 0

    def instruction(self, op: Op, operand: Any) -> None:
        """Write one instruction."""
        self._end_blocks()
        self._at += 1
        if op in (Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.JUMP_IF_NOT_NULL):
            self._jump(op, operand)
        elif op is Op.JUMP_UNLESS:
            self._begin_choice(operand)
        elif op is Op.JUMP:
            self._begin_else(operand)
        else:
            self._stack.append(self._value(op, operand))

    def result(self) -> str:
        """Return the name of the remaining value."""
        self._end_blocks()
        return self._stack.pop().name

    def _value(self, op: Op, operand: Any) -> _Value:
        new = self._source.new
        if op is Op.FIELD:
            return _Value(new(f"fields[{operand}]"), True)
        if op is Op.SLOT:
            counts = self._expressions.slots[operand].function is Function.COUNT
            return _Value(new(f"slots[{operand}]"), not counts)
        if op in (Op.INT, Op.FLOAT, Op.TEXT):
            return _Value(self._source.constant(operand), False)
        if op is Op.DECIMAL:
            return _Value(self._source.constant(Decimal(operand)), False)
        if op is Op.NULL:
            return _Value(new("None"), True)
        b = self._stack.pop()
        if RULES[op].operands == 1:
            return self._unary(op, b, operand)
        return self._binary(op, self._stack.pop(), b, operand)

    def _unary(self, op: Op, a: _Value, operand: Any) -> _Value:
        if RULES[op].nulls is Nulls.ASKED:
            return _Value(self._source.new(f"{a.name} is None"), False, True)
        form = _UNARY.get(op, "")
        function = called_function(op, operand, self._expressions.ansi)
        if function is not None:
            form = f"{self._source.constant(function)}({{}})"
        if op is Op.LIKE:
            form = f"{self._source.constant(like_regex(operand).fullmatch)}({{}}) is not None"
        if op.name.lower() in ROUNDINGS:
            form = f"rounded({{}}, {int(operand)}, {ROUNDINGS[op.name.lower()]!r})"
        guard = f"None if {a.name} is None else " if a.nullable else ""
        if RULES[op].of_positive:
            guard += f"None if {a.name} <= 0 else "
        name = self._source.new(guard + form.format(a.name))
        if RULES[op].has_range and operand == Type.INT:
            self._source.in_range(name, a.nullable)
        is_nullable = a.nullable or op in (Op.FIT, Op.AGGREGATE) or RULES[op].of_positive
        return _Value(name, is_nullable, RULES[op].is_truth)

    def _binary(self, op: Op, left: _Value, right: _Value, type_: Any) -> _Value:
        rule = RULES[op]
        if rule.nulls is Nulls.DECIDES:
            return self._decided(op, left, right)
        new, a, b = self._source.new, left.name, right.name
        value = computed(op, a, b, type_)
        function = called_function(op, type_, self._expressions.ansi)
        if function is not None:
            value = f"{self._source.constant(function)}({a}, {b})"
        nullable = left.nullable or right.nullable
        if rule.nulls is Nulls.YIELDS:
            value = f"{a} if {b} is None else {value}" if right.nullable else value
            value = f"{b} if {a} is None else ({value})" if left.nullable else value
            nullable = left.nullable and right.nullable
        elif nullable:
            null = " or ".join(f"{v.name} is None" for v in (left, right) if v.nullable)
            if rule.nulls is Nulls.EQUALS:
                value, nullable = f"{a} is None and {b} is None if {null} else {value}", False
            else:
                value = f"None if {null} else {value}"
        name = new(value)
        if rule.has_range and type_ == Type.INT:
            self._source.in_range(name, nullable or rule.divides)
        return _Value(name, nullable or rule.divides, rule.is_truth)

    def _decided(self, op: Op, left: _Value, right: _Value) -> _Value:
        """Write AND or OR."""
        a, b = left.name, right.name
        if op is Op.AND:
            unknown = f"False if {a} is not None or ({b} is not None and not {b}) else None"
            value = f"{right.truth} if {a} else ({unknown})"
        else:
            unknown = f"{right.truth} if {a} is not None else (True if {b} else None)"
            value = f"True if {a} else ({unknown})"
        return _Value(self._source.new(value), left.nullable or right.nullable, True)

    # --- jumps

    def _jump(self, op: Op, count: int) -> None:
        """Begin an ``if`` around the instructions that may be skipped."""
        top = self._stack[-1]
        kept = _Value(self._source.new(top.name), top.nullable)
        if op is Op.JUMP_IF_NOT_NULL:
            self._stack.pop()
            kept = _Value(kept.name, False)
        goes_on = {
            Op.JUMP_IF_FALSE: f"if {kept.name} or {kept.name} is None:",
            Op.JUMP_IF_TRUE: f"if not {kept.name}:",
            Op.JUMP_IF_NOT_NULL: f"if {kept.name} is None:",
        }
        self._source.begin(goes_on[op])
        self._blocks.append((self._at + count, kept))

    def _begin_choice(self, count: int) -> None:
        """Begin an ``if`` around the instructions up to the JUMP over the others."""
        condition = self._stack.pop()
        result = _Value(self._source.new("None"), False)
        self._source.begin(f"if {condition.name}:")
        self._blocks.append((self._at + count, result))

    def _begin_else(self, count: int) -> None:
        """End the ``if`` with its value, and begin the ``else``."""
        _, result = self._blocks.pop()
        value = self._stack.pop()
        self._source.line(f"{result.name} = {value.name}")
        self._source.end()
        self._source.begin("else:")
        self._blocks.append((self._at + count, _Value(result.name, value.nullable)))

    def _end_blocks(self) -> None:
        """End every ``if`` whose instructions are written; both branches leave their value."""
        while self._blocks and self._blocks[-1][0] == self._at:
            _, kept = self._blocks.pop()
            value = self._stack.pop()
            self._source.line(f"{kept.name} = {value.name}")
            self._source.end()
            self._stack.append(_Value(kept.name, kept.nullable or value.nullable))
