# SPDX-License-Identifier: Apache-2.0
"""Parts of an expression as SQL with their types in Spark, and casts between them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import attrs
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import EXACT_DIGITS
from pyflinkcep.expressions.text import literal_sql
from pyflinkcep.spark.plan.analysis import common_kind

BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT = (
    LongType(),
    BooleanType(),
    DateType(),
    DoubleType(),
    FloatType(),
)
INT, NTZ, NULL, STRING, TIMESTAMP = (
    IntegerType(),
    TimestampNTZType(),
    NullType(),
    StringType(),
    TimestampType(),
)
MOST_DIGITS = 38
RANGE = 2**63

_WIDTHS: dict[type[DataType], tuple[int, int]] = {
    ByteType: (0, 3), ShortType: (1, 5), IntegerType: (2, 10), LongType: (3, 20),
}  # fmt: skip
"""By whole type, its rank and the digits of its decimals."""

_NO_LITERAL = object()
_SUFFIXES: dict[str, DataType] = {
    "Y": ByteType(), "S": ShortType(), "L": LongType(), "F": FloatType(),
}  # fmt: skip


@attrs.frozen
class Setting:
    """What values depend on."""

    engine: str  # The engine's name, for errors
    ansi: bool  # Whether overflow, division by zero and texts that are no numbers are errors
    is_utc: bool  # Whether the session's clock is UTC

    def refused(self, what: str, why: str, hint: str) -> NotSupportedError:
        """Return the error of something that the engine does not compute as Spark does."""
        return NotSupportedError(
            f"{self.engine} does not compute {what} as Spark does: {why}", hint
        )

    def needs_utc(self, what: str) -> None:
        """Refuse what depends on the session's clock, unless that is UTC."""
        if not self.is_utc:
            raise self.refused(
                what,
                "it leaves out the time zone of the session",
                "set spark.sql.session.timeZone to UTC, or use TIMESTAMP_NTZ columns",
            )


@attrs.frozen
class Value:
    """A part of an expression."""

    sql: str  # The part as SQL
    type: DataType  # Its type in Spark
    literal: Any = _NO_LITERAL  # Its value, if it is a literal

    @classmethod
    def of_literal(cls, value: Any) -> Value:
        """Return a number, text, truth value or NULL that was written."""
        type_: DataType = NULL
        if isinstance(value, bool):
            type_ = BOOLEAN
        elif isinstance(value, int):
            type_ = INT if -(2**31) <= value < 2**31 else BIGINT
        elif isinstance(value, float):
            type_ = DOUBLE
        elif isinstance(value, str):
            type_ = STRING
        elif isinstance(value, Decimal):
            _, digits, exponent = value.as_tuple()
            scale = max(-int(exponent), 0)
            type_ = DecimalType(max(len(digits), scale), scale)
        sql = literal_sql(value)
        return cls(f"cast({sql} AS int)" if value == -(2**31) else sql, type_, value)

    @classmethod
    def with_suffix(cls, value: int | float, suffix: str) -> Value | None:
        """Return a number that was written with the letter of its type; None for another one."""
        type_ = _SUFFIXES.get(suffix.upper())
        if type_ is None:
            return None
        return cls(f"cast({value!r} AS {type_.simpleString()})", type_, value)

    @property
    def is_literal(self) -> bool:
        """Whether it was written as a literal."""
        return self.literal is not _NO_LITERAL

    @property
    def exact_digits(self) -> str:
        """A decimal as SQL of which a cast makes the nearest double."""
        is_short = isinstance(self.type, DecimalType) and self.type.precision <= EXACT_DIGITS
        return self.sql if is_short else f"cast({self.sql} AS string)"

    def as_type(self, type_: DataType, setting: Setting) -> Value:
        """Return the value with another type, as Spark casts without being asked."""
        if self.type == type_ or isinstance(self.type, NullType):
            return self
        if isinstance(type_, DoubleType) and isinstance(self.literal, int | Decimal):
            return Value(f"{float(self.literal)!r}D", type_, float(self.literal))
        if is_float(type_) and isinstance(self.type, DecimalType):
            return Value(f"cast({self.exact_digits} AS {type_.simpleString()})", type_)
        if isinstance(self.type, TimestampType) and is_time(type_):
            setting.needs_utc(f"{self.sql} as {type_.simpleString()}")
        return Value(f"cast({self.sql} AS {type_.simpleString()})", type_)


def is_float(type_: DataType) -> bool:
    """Whether numbers of a type may be NaN."""
    return isinstance(type_, FloatType | DoubleType)


def is_time(type_: DataType) -> bool:
    """Whether a type has dates or times."""
    return isinstance(type_, DateType | TimestampType | TimestampNTZType)


def has_floats(type_: DataType) -> bool:
    """Whether a type has parts that may be NaN."""
    if isinstance(type_, ArrayType):
        return has_floats(type_.elementType)
    if isinstance(type_, MapType):
        return has_floats(type_.keyType) or has_floats(type_.valueType)
    if isinstance(type_, StructType):
        return any(has_floats(field.dataType) for field in type_)
    return is_float(type_)


def decimal_of(value: Value) -> tuple[int, int]:
    """Return the digits of a decimal or whole number, all and those after the point."""
    if isinstance(value.type, DecimalType):
        return value.type.precision, value.type.scale
    if isinstance(value.literal, int):
        return len(str(abs(value.literal))), 0
    return _WIDTHS[type(value.type)][1], 0


def common_type(values: Sequence[Value], setting: Setting, what: str) -> DataType:
    """Return the type to which Spark casts values beside each other."""
    known = [value for value in values if not isinstance(value.type, NullType)]
    types = [value.type for value in known]
    if not types:
        return NULL
    if all(type_ == types[0] for type_ in types):
        return types[0]
    if all(isinstance(type_, IntegralType) for type_ in types):
        return max(types, key=lambda type_: _WIDTHS[type(type_)])
    if all(isinstance(type_, NumericType) for type_ in types):
        return _common_number(known, setting, what)
    texts = [type_ for type_ in types if isinstance(type_, StringType)]
    others = [value for value in known if not isinstance(value.type, StringType)]
    if texts and others:
        return _beside_texts(common_type(others, setting, what), setting, what)
    if all(map(is_time, types)):
        zoned = any(isinstance(type_, TimestampType) for type_ in types)
        return TIMESTAMP if zoned else NTZ
    kinds = {common_kind(type_) for type_ in types}
    if len(kinds) == 1 and None not in kinds:
        return types[0]
    raise _mixed(what, setting)


def chosen_type(values: Sequence[Value], setting: Setting, what: str) -> DataType:
    """Return the type of a choice, where literals have all digits of their types."""
    texts = [isinstance(value.type, StringType) for value in values]
    if not setting.ansi and any(texts) and any(is_time(value.type) for value in values):
        raise _mixed(what, setting)
    return common_type([Value(value.sql, value.type) for value in values], setting, what)


def failing_if(bad: str, sql: str, problem: str) -> str:
    """Return SQL that is an error where a condition holds."""
    return f"if({bad}, raise_error('{problem}'), {sql})"


def _mixed(what: str, setting: Setting) -> NotSupportedError:
    return setting.refused(what, "it has values of different types", "cast them to one type")


def _common_number(values: Sequence[Value], setting: Setting, what: str) -> DataType:
    if any(is_float(value.type) for value in values):
        if not setting.ansi and not any(isinstance(v.type, DoubleType) for v in values):
            raise _mixed(what, setting)
        return DOUBLE
    digits = [decimal_of(value) for value in values]
    scale = max(scale for _, scale in digits)
    whole = max(precision - scale for precision, scale in digits)
    if whole + scale > MOST_DIGITS:
        raise setting.refused(
            what, f"more than {MOST_DIGITS} digits are needed", "cast to decimals of fewer digits"
        )
    return DecimalType(whole + scale, scale)


def _beside_texts(type_: DataType, setting: Setting, what: str) -> DataType:
    """Return the type of texts beside another type."""
    if is_time(type_):
        return type_
    if setting.ansi and isinstance(type_, NumericType):
        return BIGINT if isinstance(type_, IntegralType) else DOUBLE
    raise _mixed(what, setting)
