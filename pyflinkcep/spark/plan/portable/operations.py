# SPDX-License-Identifier: Apache-2.0
"""Operators with Spark's values: comparisons, arithmetic, choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
)

from pyflinkcep.expressions.number_functions import NUMBER_FUNCTIONS
from pyflinkcep.expressions.tree import COMPARISONS, Operation
from pyflinkcep.spark.plan.portable.casts import narrowed, text_of
from pyflinkcep.spark.plan.portable.times import days_between, distance, is_clock, moved
from pyflinkcep.spark.plan.portable.values import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    MOST_DIGITS,
    NULL,
    STRING,
    Setting,
    Value,
    chosen_type,
    common_type,
    decimal_of,
    failing_if,
    has_floats,
    is_float,
)

_LEAST_SCALE = 6
_MINUS = "(- {0})"
_SIGNED_DIGITS = 34
"""Of more digits, Spark rounds a decimal when it changes its sign."""
_BEYOND = f"{float(2**63)!r}D"
_NAN = "cast('NaN' AS double)"
_ROUNDED_TO_DOUBLE = "cast(x AS decimal(20, 4)) before rounding, or round in the result"


def computed(tree: Operation, operands: Sequence[Value], setting: Setting, by_zero: bool) -> Value:
    """Return an operation with Spark's value."""
    operator, what = tree.operator, tree.text or tree.operator
    if operator in COMPARISONS:
        sides = compared(operands, setting, what)
        return Value(f"({f' {operator} '.join(side.sql for side in sides)})", BOOLEAN)
    if operator in ("+", "-", "*") and any(map(is_clock, operands)):
        return moved(operator, operands, setting, what)
    if operator in ("/", "%", "div", "pmod") and (by_zero or not setting.ansi):
        operands = [operands[0], _not_zero(operands[1])]
    if operator in _RULES:
        return _RULES[operator](operands, setting, what)
    if operator == "timestampdiff":
        return distance(tree.detail, operands, setting, what)
    raise setting.refused(what, "it is not known to have the same values", _BEFORE)


def _not_zero(value: Value) -> Value:
    """Return a divisor, NULL for zero; to the engine's own nullif, -0.0 is another number."""
    if value.is_literal and value.literal:
        return value
    return Value(f"(CASE WHEN {value.sql} = 0 THEN NULL ELSE {value.sql} END)", value.type)


_BEFORE = "compute it as a column of the events, if this engine's own value will do"

# --- comparisons and choices


def compared(values: Sequence[Value], setting: Setting, what: str) -> list[Value]:
    """Return values that compare as in Spark: of one type, with one form of NaN."""
    type_ = common_type(values, setting, what)
    if is_float(type_):
        return [_one_nan(value.as_type(DOUBLE, setting)) for value in values]
    if has_floats(type_):
        raise setting.refused(what, "the parts may be NaN", "compare the parts")
    if isinstance(type_, DecimalType):
        return list(values)  # the engine compares whole numbers and decimals exactly
    return [value.as_type(type_, setting) for value in values]


def _one_nan(value: Value) -> Value:
    if value.is_literal or isinstance(value.type, NullType):
        return value
    return Value(f"nanvl({value.sql}, {_NAN})", DOUBLE)


def _logic(word: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    def joined(operands: Sequence[Value], setting: Setting, what: str) -> Value:
        _check_truths(operands, setting, what)
        return Value(f"({f' {word} '.join(value.sql for value in operands)})", BOOLEAN)

    return joined


def _negated(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    _check_truths(operands, setting, what)
    return Value(f"(NOT {operands[0].sql})", BOOLEAN)


def _check_truths(operands: Sequence[Value], setting: Setting, what: str) -> None:
    if not all(isinstance(value.type, BooleanType | NullType) for value in operands):
        raise setting.refused(what, "it is about values that are not true or false", "compare them")


def _after(word: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    return lambda operands, _setting, _what: Value(f"({operands[0].sql} {word})", BOOLEAN)


def _among(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    chosen_type(operands, setting, what)
    value, *others = compared(operands, setting, what)
    if is_float(value.type):  # among columns, the engine tells -0.0 and 0.0 apart
        tests = (f"{value.sql} = {other.sql}" for other in others)
        return Value(f"({' OR '.join(tests)})", BOOLEAN)
    return Value(f"({value.sql} IN ({', '.join(other.sql for other in others)}))", BOOLEAN)


def _first_known(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    type_ = chosen_type(operands, setting, what)
    values = [value.as_type(type_, setting).sql for value in operands]
    return Value(f"coalesce({', '.join(values)})", type_)


def _extreme(function: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    def chosen(operands: Sequence[Value], setting: Setting, what: str) -> Value:
        type_ = chosen_type(operands, setting, what)
        known = [value for value in operands if not isinstance(value.type, NullType)]
        if len({isinstance(value.type, StringType) for value in known}) > 1:
            raise setting.refused(what, "it compares texts with other values", "cast them")
        values = [value.as_type(type_, setting) for value in operands]
        if is_float(type_):
            values = [_one_nan(value.as_type(DOUBLE, setting)) for value in operands]
        found = Value(f"{function}({', '.join(value.sql for value in values)})", DOUBLE)
        return found if is_float(type_) else Value(found.sql, type_)

    return chosen


def _case(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    has_else = len(operands) % 2
    pairs = list(operands[: len(operands) - has_else])
    values = [*pairs[1::2], *operands[len(pairs) :]]
    type_ = chosen_type(values, setting, what)
    typed = [value.as_type(type_, setting).sql for value in values]
    branches = [
        f"WHEN {condition.sql} THEN {value}"
        for condition, value in zip(pairs[::2], typed, strict=False)
    ]
    otherwise = [f"ELSE {typed[-1]}"] if has_else else []
    return Value(" ".join(["(CASE", *branches, *otherwise, "END)"]), type_)


# --- arithmetic


def _sum(sign: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    def result(operands: Sequence[Value], setting: Setting, what: str) -> Value:
        type_ = _number_type(operands, setting, what)
        if isinstance(type_, IntegralType):
            return _whole(sign, operands, type_, setting)
        if is_float(type_):
            return _infix(sign, [value.as_type(type_, setting) for value in operands], type_)
        (p, s), (q, t) = _digits_of(operands, type_)
        scale = max(s, t)
        digits = (p + q + 1, s + t) if sign == "*" else (max(p - s, q - t) + scale + 1, scale)
        return _decimal(_infix(sign, operands, type_).sql, *digits, setting, what)

    return result


def _infix(sign: str, operands: Sequence[Value], type_: DataType) -> Value:
    return Value(f"({f' {sign} '.join(value.sql for value in operands)})", type_)


def _whole(sign: str, operands: Sequence[Value], type_: IntegralType, setting: Setting) -> Value:
    """Return a whole number, computed in more digits and cast, which fails out of the range."""
    if not setting.ansi:
        return _infix(sign, [value.as_type(type_, setting) for value in operands], type_)
    wide = "bigint"
    if isinstance(type_, LongType):
        wide = "decimal(19, 0)"
    sides = [f"cast({value.sql} AS {wide})" for value in operands]
    return Value(narrowed(f" {sign} ".join(sides), type_.simpleString()), type_)


def _decimal(sql: str, precision: int, scale: int, setting: Setting, what: str) -> Value:
    if precision > MOST_DIGITS:
        raise setting.refused(
            what,
            f"the result has up to {precision} digits",
            f"cast to decimals of fewer digits, so that it has at most {MOST_DIGITS}",
        )
    return Value(f"cast({sql} AS decimal({precision}, {scale}))", DecimalType(precision, scale))


def _number_type(operands: Sequence[Value], setting: Setting, what: str) -> DataType:
    type_ = common_type(operands, setting, what)
    if isinstance(type_, NullType):
        return DOUBLE
    if not isinstance(type_, NumericType) or any(isinstance(v.type, StringType) for v in operands):
        raise setting.refused(what, "it computes with values that are no numbers", "cast them")
    return type_


def _digits_of(operands: Sequence[Value], type_: DataType) -> list[tuple[int, int]]:
    """Return the digits of the sides of an operation on decimals, those of NULL as the other's."""
    return [decimal_of(Value("", type_) if v.type == NULL else v) for v in operands]


def _quotient(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    type_ = _number_type(operands, setting, what)
    if not isinstance(type_, DecimalType):
        return _infix("/", [value.as_type(DOUBLE, setting) for value in operands], DOUBLE)
    (p, s), (q, t) = _digits_of(operands, type_)
    scale = max(_LEAST_SCALE, s + q + 1)
    precision = p - s + t + scale
    if precision > MOST_DIGITS:  # digits after the point give way to those before it
        precision, scale = MOST_DIGITS, max(MOST_DIGITS - precision + scale, _LEAST_SCALE)
    if scale < s:
        raise setting.refused(
            what, f"of {s} digits after the point it keeps {scale}", "cast to fewer digits before"
        )
    dividend = f"cast({operands[0].sql} AS decimal({MOST_DIGITS}, {scale}))"
    divisor = f"cast({operands[1].sql} AS decimal({q}, {t}))"
    return _decimal(f"{dividend} / {divisor}", precision, scale, setting, what)


def _remainder(sign: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    def result(operands: Sequence[Value], setting: Setting, what: str) -> Value:
        type_ = _number_type(operands, setting, what)
        if isinstance(type_, DecimalType):
            (p, s), (q, t) = _digits_of(operands, type_)
            scale = max(s, t)
            sides = list(operands)
        else:
            sides = [value.as_type(type_, setting) for value in operands]
        a, b = (side.sql for side in sides)
        if sign == "pmod" and is_float(type_) and setting.ansi:
            b = failing_if(f"{b} = 0", b, "pmod: remainder by zero")
        sql = f"pmod({a}, {b})" if sign == "pmod" else f"({a} {sign} {b})"
        if not isinstance(type_, DecimalType):
            return Value(sql, type_)
        return _decimal(sql, max(min(p - s, q - t) + scale, 1), scale, setting, what)

    return result


def _whole_quotient(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    if not all(isinstance(value.type, IntegralType) for value in operands):
        raise setting.refused(what, "it divides numbers that are not whole", "write floor(a / b)")
    return _infix("div", [value.as_type(BIGINT, setting) for value in operands], BIGINT)


def _signed(form: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    def result(operands: Sequence[Value], setting: Setting, what: str) -> Value:
        (value,) = operands
        if form == _MINUS and isinstance(value.literal, int) and value.sql[-1:] != ")":
            return Value.of_literal(-value.literal)
        if not isinstance(value.type, NumericType | DayTimeIntervalType):
            raise setting.refused(what, "it is of no number", "cast it")
        if isinstance(value.type, DecimalType) and value.type.precision > _SIGNED_DIGITS:
            raise setting.refused(
                what,
                f"Spark rounds it to {_SIGNED_DIGITS} digits",
                f"cast to a decimal of at most {_SIGNED_DIGITS} digits",
            )
        sql = form.format(value.sql)
        if isinstance(value.type, DecimalType):  # which is not what the engine says it is
            sql = f"cast({sql} AS {value.type.simpleString()})"
        return Value(sql, value.type)

    return result


def _to_whole(function: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    def result(operands: Sequence[Value], setting: Setting, what: str) -> Value:
        (value,) = operands
        type_ = value.type
        if isinstance(type_, DecimalType):
            digits = type_.precision - type_.scale + bool(type_.scale)
            return _decimal(f"{function}({value.sql})", digits, 0, setting, what)
        if isinstance(_number_type(operands, setting, what), IntegralType):
            return value.as_type(BIGINT, setting)
        value = value.as_type(DOUBLE, setting)
        sql = f"{function}({value.sql})"
        if setting.ansi:  # beyond the range it is its end, and of NaN 0
            ends = f"{value.sql} > {_BEYOND} OR {value.sql} < -{_BEYOND}"
            bad = f"NOT isnan({value.sql}) AND ({ends})"
            sql = failing_if(bad, sql, "overflow: the result does not fit bigint")
        return Value(sql, BIGINT)

    return result


def _rounded(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    value, digits = operands[0], operands[1].literal if len(operands) > 1 else 0
    if isinstance(value.type, DecimalType) and digits >= 0:
        whole, scale = value.type.precision - value.type.scale, min(value.type.scale, digits)
        return _decimal(
            f"round({value.sql}, {digits})", min(whole + 1 + scale, 38), scale, setting, what
        )
    if isinstance(value.type, DoubleType) and digits == 0:
        return Value(f"(round({value.sql}) + 0D)", DOUBLE)  # no -0.0
    if isinstance(value.type, IntegralType) and digits >= 0:
        return value
    raise setting.refused(what, "it rounds the number's binary value", _ROUNDED_TO_DOUBLE)


def _cut(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    """Return a number without what follows some digits, as a difference of its remainder."""
    value, digits = operands[0], operands[1].literal if len(operands) > 1 else 0
    if isinstance(value.type, DecimalType) and digits >= 0:
        whole, scale = value.type.precision - value.type.scale, min(value.type.scale, digits)
        sql = f"({value.sql} - {value.sql} % cast('1e-{scale}' AS decimal(38, {scale})))"
        return _decimal(sql, min(whole + 1 + scale, 38), scale, setting, what)
    if isinstance(value.type, DoubleType) and digits == 0:
        sql = f"IF(abs({value.sql}) < {2.0**53!r}D, {value.sql} - {value.sql} % 1D, {value.sql})"
        return Value(f"({sql} + 0D)", DOUBLE)
    return _rounded(operands, setting, what)


def _of_double(form: str) -> Callable[[Sequence[Value], Setting, str], Value]:
    def result(operands: Sequence[Value], setting: Setting, what: str) -> Value:
        _number_type(operands, setting, what)
        return Value(form.format(*(v.as_type(DOUBLE, setting).sql for v in operands)), DOUBLE)

    return result


# --- texts


def _joined(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    if any(isinstance(value.type, ArrayType | MapType | StructType) for value in operands):
        raise setting.refused(what, "it joins values that are no texts", _BEFORE)
    return Value(f"({' || '.join(text_of(v, setting, what).sql for v in operands)})", STRING)


def _like(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    value, pattern = operands
    return Value(f"({text_of(value, setting, what).sql} LIKE {pattern.sql})", BOOLEAN)


def _begins(operands: Sequence[Value], setting: Setting, what: str) -> Value:
    texts = [text_of(value, setting, what).sql for value in operands]
    return Value(f"startswith({', '.join(texts)})", BOOLEAN)


_RULES: dict[str, Callable[[Sequence[Value], Setting, str], Value]] = {
    "and": _logic("AND"), "or": _logic("OR"), "not": _negated,
    "is null": _after("IS NULL"), "is not null": _after("IS NOT NULL"), "in": _among,
    "coalesce": _first_known, "greatest": _extreme("greatest"), "least": _extreme("least"),
    "case": _case, "+": _sum("+"), "-": _sum("-"), "*": _sum("*"), "/": _quotient,
    "%": _remainder("%"), "pmod": _remainder("pmod"), "div": _whole_quotient,
    "neg": _signed(_MINUS), "abs": _signed("abs({0})"), "floor": _to_whole("floor"),
    "ceil": _to_whole("ceil"), "round": _rounded, "truncate": _cut,
    **{name: _of_double(f"{name}({{0}})") for name in NUMBER_FUNCTIONS},
    "power": _of_double(
        "(CASE WHEN isnan({1}) OR (abs({0}) = 1D AND abs({1}) = double('Infinity')) "
        "THEN double('NaN') "
        "WHEN {0} = 0D AND {1} < 0D THEN double(if(cast({0} AS string) LIKE '-%' "
        "AND abs({1} % 2D) = 1D, '-Infinity', 'Infinity')) ELSE power({0}, {1}) END)"
    ),
    "||": _joined, "like": _like, "startswith": _begins, "datediff": days_between,
}  # fmt: skip
