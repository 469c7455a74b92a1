# SPDX-License-Identifier: Apache-2.0
"""Operators with Spark's values: comparisons, arithmetic, choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.numbers import (
    MOST_DIGITS,
    NUMBER_FUNCTIONS,
    Digits,
    needed,
    of_operation,
    rounded_digits,
    whole_digits,
)
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    BOOLEAN,
    DAYS,
    DOUBLE,
    INTERVAL,
    STRING,
    VOID,
    SqlType,
    decimal_of,
)
from pyflinkcep.expressions.tree import COMPARISONS, Literal, Operation
from pyflinkcep.spark.plan.portable.casts import days_between, distance, is_clock, moved, text_of
from pyflinkcep.spark.plan.portable.values import (
    BEFORE,
    Setting,
    Value,
    chosen_type,
    common_type,
    failing_if,
    has_floats,
    listed,
    narrowed,
)

_SIGNED_DIGITS = 34
"""Of more digits, Spark rounds a decimal when it changes its sign."""
_BEYOND = f"{float(2**63)!r}D"
_NAN = "cast('NaN' AS double)"
_ROUNDED_TO_DOUBLE = "cast(x AS decimal(20, 4)) before rounding, or round in the result"


@attrs.frozen
class _Part:
    """An operation and its operands."""

    operator: str
    what: str  # Its text, for errors
    operands: Sequence[Value]
    setting: Setting

    def refused(self, why: str, hint: str) -> NotSupportedError:
        """Return the error of what the engine does not compute as Spark does."""
        return self.setting.refused(self.what, why, hint)

    def chosen(self, values: Sequence[Value]) -> tuple[list[str], SqlType]:
        """Return the SQL of values in the type that a choice between them has, and the type."""
        type_ = chosen_type(values, self.setting, self.what)
        return [value.as_type(type_, self.setting).sql for value in values], type_

    def number_type(self) -> SqlType:
        """Return the type that the operands have in common; refuse what is no number."""
        type_ = common_type(self.operands, self.setting, self.what)
        if type_ == VOID:
            return DOUBLE
        if not type_.is_number or STRING in (value.type for value in self.operands):
            raise self.refused("it computes with values that are no numbers", "cast them")
        return type_

    def digits(self, type_: SqlType) -> list[Digits]:
        """Return the digits of the sides of an operation, those of NULL as the other's."""
        return [(Value("", type_) if v.type == VOID else v).digits for v in self.operands]

    def infix(self, type_: SqlType, wanted: SqlType | None = None) -> Value:
        """Return the operator between its operands, cast to a type if one is wanted."""
        sides = self.operands
        if wanted is not None:
            sides = [value.as_type(wanted, self.setting) for value in sides]
        return Value(f"({listed(sides, f' {self.operator} ')})", type_)

    def decimal(self, sql: str, digits: Digits) -> Value:
        """Return a decimal of some digits; refuse too many."""
        if digits.precision > MOST_DIGITS:
            raise self.refused(
                f"the result has up to {digits.precision} digits",
                f"cast to decimals of fewer digits, so that it has at most {MOST_DIGITS}",
            )
        type_ = f"decimal({digits.precision}, {digits.scale})"
        return Value(f"cast({sql} AS {type_})", decimal_of(digits))


def computed(tree: Operation, operands: Sequence[Value], setting: Setting, by_zero: bool) -> Value:
    """Return an operation with Spark's value."""
    operator, what = tree.operator, tree.text or tree.operator
    if operator in ("+", "-", "*") and any(map(is_clock, operands)):
        return moved(operator, operands, setting, what)
    if operator in ("/", "%", "div", "pmod") and (by_zero or not setting.ansi):
        operands = [operands[0], _not_zero(operands[1])]
    if operator in _RULES:
        return _RULES[operator](_Part(operator, what, operands, setting))
    if operator == "timestampdiff":
        return distance(tree.detail, operands, setting, what)
    raise setting.unknown(what)


def _not_zero(value: Value) -> Value:
    """Return a divisor, NULL for zero; to the engine's own nullif, -0.0 is another number."""
    if value.value:
        return value
    return Value(f"(CASE WHEN {value.sql} = 0 THEN NULL ELSE {value.sql} END)", value.type)


# --- comparisons and choices


def _comparable(part: _Part) -> list[Value]:
    """Return values that compare as in Spark: of one type, with one form of NaN."""
    type_ = common_type(part.operands, part.setting, part.what)
    if type_.is_float:
        return _of_one_nan(part)
    if has_floats(type_):
        raise part.refused("the parts may be NaN", "compare the parts")
    if type_.is_decimal:
        return list(part.operands)  # the engine compares whole numbers and decimals exactly
    return [value.as_type(type_, part.setting) for value in part.operands]


def _of_one_nan(part: _Part) -> list[Value]:
    doubles = (value.as_type(DOUBLE, part.setting) for value in part.operands)
    return [
        v if v.literal or v.type == VOID else Value(f"nanvl({v.sql}, {_NAN})", DOUBLE)
        for v in doubles
    ]


def _compared(part: _Part) -> Value:
    return Value(f"({listed(_comparable(part), f' {part.operator} ')})", BOOLEAN)


def _logic(form: str, part: _Part) -> Value:
    if not all(value.type in (BOOLEAN, VOID) for value in part.operands):
        raise part.refused("it is about values that are not true or false", "compare them")
    return Value(form.format(listed(part.operands, f" {part.operator.upper()} ")), BOOLEAN)


def _asked(part: _Part) -> Value:
    return Value(f"({part.operands[0].sql} {part.operator.upper()})", BOOLEAN)


def _among(part: _Part) -> Value:
    part.chosen(part.operands)
    value, *others = _comparable(part)
    if value.type.is_float:  # among columns, the engine tells -0.0 and 0.0 apart
        tests = (f"{value.sql} = {other.sql}" for other in others)
        return Value(f"({' OR '.join(tests)})", BOOLEAN)
    return Value(f"({value.sql} IN ({listed(others)}))", BOOLEAN)


def _first_known(part: _Part) -> Value:
    values, type_ = part.chosen(part.operands)
    return Value(f"coalesce({', '.join(values)})", type_)


def _extreme(part: _Part) -> Value:
    values, type_ = part.chosen(part.operands)
    if STRING in (types := {v.type for v in part.operands} - {VOID}) and len(types) > 1:
        raise part.refused("it compares texts with other values", "cast them")
    if type_.is_float:
        values, type_ = [value.sql for value in _of_one_nan(part)], DOUBLE
    return Value(f"{part.operator}({', '.join(values)})", type_)


def _case(part: _Part) -> Value:
    pairs = len(part.operands) // 2
    values = [*part.operands[1 : 2 * pairs : 2], *part.operands[2 * pairs :]]
    typed, type_ = part.chosen(values)
    conditions = [value.sql for value in part.operands[: 2 * pairs : 2]]
    branches = [f"WHEN {c} THEN {v}" for c, v in zip(conditions, typed, strict=False)]
    otherwise = [f"ELSE {typed[-1]}"] if len(values) > pairs else []
    return Value(" ".join(["(CASE", *branches, *otherwise, "END)"]), type_)


# --- arithmetic


def _calculated(part: _Part) -> Value:
    type_ = part.number_type()
    if type_.is_float or (type_.is_whole and not part.setting.ansi):
        return part.infix(type_, type_)
    if type_.is_decimal:
        digits = needed(part.operator, *part.digits(type_))
        return part.decimal(part.infix(type_).sql, digits)
    # Computed in more digits and cast, which fails out of the range.
    wide = "decimal(19, 0)" if type_ == BIGINT else "bigint"
    sides = [f"cast({value.sql} AS {wide})" for value in part.operands]
    return Value(narrowed(f" {part.operator} ".join(sides), type_.sql), type_)


def _quotient(part: _Part) -> Value:
    type_ = part.number_type()
    if not type_.is_decimal:
        return part.infix(DOUBLE, DOUBLE)
    a, b = part.digits(type_)
    digits = of_operation("/", a, b)
    if digits.scale < a.scale:
        raise part.refused(
            f"of {a.scale} digits after the point it keeps {digits.scale}",
            "cast to fewer digits before",
        )
    dividend = f"cast({part.operands[0].sql} AS decimal({MOST_DIGITS}, {digits.scale}))"
    divisor = f"cast({part.operands[1].sql} AS decimal({b.precision}, {b.scale}))"
    return part.decimal(f"{dividend} / {divisor}", digits)


def _remainder(part: _Part) -> Value:
    type_ = part.number_type()
    sides = list(part.operands)
    if not type_.is_decimal:
        sides = [value.as_type(type_, part.setting) for value in sides]
    a, b = (side.sql for side in sides)
    if part.operator == "pmod" and type_.is_float and part.setting.ansi:
        b = failing_if(f"{b} = 0", b, "pmod: remainder by zero")
    sql = f"pmod({a}, {b})" if part.operator == "pmod" else f"({a} % {b})"
    if not type_.is_decimal:
        return Value(sql, type_)
    return part.decimal(sql, needed("%", *part.digits(type_)))


def _whole_quotient(part: _Part) -> Value:
    if not all(value.type.is_whole for value in part.operands):
        raise part.refused("it divides numbers that are not whole", "write floor(a / b)")
    return part.infix(BIGINT, BIGINT)


def _signed(form: str, part: _Part) -> Value:
    (value,) = part.operands
    if part.operator == "neg" and isinstance(value.value, int) and value.sql[-1:] != ")":
        return Value.of(Literal(-value.value))
    own = value.type
    if not own.is_number and own not in (DAYS, INTERVAL):
        raise part.refused("it is of no number", "cast it")
    sql = form.format(value.sql)
    if own.is_decimal:  # which is not what the engine says it is
        sql = f"cast({sql} AS {own.sql})"
        if own.digits > _SIGNED_DIGITS:
            raise part.refused(
                f"Spark rounds it to {_SIGNED_DIGITS} digits",
                f"cast to a decimal of at most {_SIGNED_DIGITS} digits",
            )
    return Value(sql, own)


def _to_whole(part: _Part) -> Value:
    (value,) = part.operands
    if value.type.is_decimal:
        return part.decimal(f"{part.operator}({value.sql})", whole_digits(value.digits))
    if part.number_type().is_whole:
        return value.as_type(BIGINT, part.setting)
    number = value.as_type(DOUBLE, part.setting).sql
    sql = f"{part.operator}({number})"
    if part.setting.ansi:  # beyond the range it is its end, and of NaN 0
        bad = f"NOT isnan({number}) AND ({number} > {_BEYOND} OR {number} < -{_BEYOND})"
        sql = failing_if(bad, sql, "overflow: the result does not fit bigint")
    return Value(sql, BIGINT)


def _rounded(part: _Part) -> Value:
    """Return a number of some digits; a cut one as a difference of its remainder."""
    value, is_cut = part.operands[0], part.operator == "truncate"
    digits, sql = part.operands[1].value if len(part.operands) > 1 else 0, value.sql
    if not isinstance(digits, int):
        raise part.setting.unknown(part.what)
    if value.type.is_decimal and digits >= 0:
        found = rounded_digits(value.digits, digits)
        form = f"round({sql}, {digits})"
        if is_cut:
            form = f"({sql} - {sql} % cast('1e-{found.scale}' AS decimal(38, {found.scale})))"
        return part.decimal(form, found)
    if value.type == DOUBLE and digits == 0:
        cut = f"IF(abs({sql}) < {2.0**53!r}D, {sql} - {sql} % 1D, {sql})"
        return Value(f"({cut if is_cut else f'round({sql})'} + 0D)", DOUBLE)  # no -0.0
    if value.type.is_whole and digits >= 0:
        return value
    raise part.refused("it rounds the number's binary value", _ROUNDED_TO_DOUBLE)


def _of_doubles(form: str, part: _Part) -> Value:
    part.number_type()
    doubles = (value.as_type(DOUBLE, part.setting).sql for value in part.operands)
    return Value(form.format(*doubles), DOUBLE)


# --- texts


def _joined(part: _Part) -> Value:
    if any(value.type.inner for value in part.operands):
        raise part.refused("it joins values that are no texts", BEFORE)
    return Value(f"({listed(_texts(part), ' || ')})", STRING)


def _texts(part: _Part) -> list[Value]:
    return [text_of(value, part.setting, part.what) for value in part.operands]


def _like(part: _Part) -> Value:
    value, pattern = part.operands
    return Value(f"({text_of(value, part.setting, part.what).sql} LIKE {pattern.sql})", BOOLEAN)


_POWER = (
    "(CASE WHEN isnan({1}) OR (abs({0}) = 1D AND abs({1}) = double('Infinity')) "
    "THEN double('NaN') "
    "WHEN {0} = 0D AND {1} < 0D THEN double(if(cast({0} AS string) LIKE '-%' "
    "AND abs({1} % 2D) = 1D, '-Infinity', 'Infinity')) ELSE power({0}, {1}) END)"
)
_RULES: dict[str, Callable[[_Part], Value]] = {
    **dict.fromkeys(COMPARISONS, _compared),
    **dict.fromkeys(("and", "or"), partial(_logic, "({})")), "not": partial(_logic, "(NOT {})"),
    "is null": _asked, "is not null": _asked, "in": _among, "coalesce": _first_known,
    "greatest": _extreme, "least": _extreme, "case": _case,
    **dict.fromkeys(("+", "-", "*"), _calculated), "/": _quotient,
    "%": _remainder, "pmod": _remainder, "div": _whole_quotient,
    "neg": partial(_signed, "(- {0})"), "abs": partial(_signed, "abs({0})"),
    "floor": _to_whole, "ceil": _to_whole, "round": _rounded, "truncate": _rounded,
    **{name: partial(_of_doubles, f"{name}({{0}})") for name in NUMBER_FUNCTIONS},
    "power": partial(_of_doubles, _POWER), "||": _joined, "like": _like,
    "startswith": lambda part: Value(f"startswith({listed(_texts(part))})", BOOLEAN),
    "datediff": lambda part: days_between(part.operands, part.setting, part.what),
}  # fmt: skip
