# SPDX-License-Identifier: Apache-2.0
"""Parts of an expression as SQL with their types in Spark, and casts between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.numbers import MOST_DIGITS, Digits
from pyflinkcep.expressions.program import EXACT_DIGITS
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    DAYS,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    VOID,
    SqlType,
    decimal_of,
    digits_beside,
    literal_type,
    wider,
)
from pyflinkcep.expressions.tree import Literal, literal_sql

RANGE = 2**63
BEFORE = "compute it as a column of the events, if this engine's own value will do"


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

    def unknown(self, what: str) -> NotSupportedError:
        """Return the error of something that nobody has compared with Spark."""
        return self.refused(what, "it is not known to have the same values", BEFORE)

    def needs_utc(self, what: str, *types: SqlType) -> None:
        """Refuse what depends on the session's clock, unless that is UTC, or no type has it."""
        if not self.is_utc and (not types or TIMESTAMP in types):
            raise self.refused(
                what,
                "it leaves out the time zone of the session",
                "set spark.sql.session.timeZone to UTC, or use TIMESTAMP_NTZ columns",
            )


@attrs.frozen
class Value:
    """A part of an expression."""

    sql: str  # The part as SQL
    type: SqlType  # Its type in Spark
    literal: Literal | None = None  # What was written, if it is a literal

    @classmethod
    def of(cls, literal: Literal) -> Value:
        """Return what was written."""
        value, type_ = literal.value, literal_type(literal) or TIMESTAMP
        type_ = INTERVAL if type_ == DAYS else type_
        sql = literal_sql(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_least = value == -(2**31) and type_ == INT
        if is_number and (is_least or literal.text[-1:].upper() in tuple("YSLF")):
            sql = f"cast({sql.removesuffix('D')} AS {type_.sql})"
        return cls(sql, type_, literal)

    @property
    def value(self) -> Any:
        """The value of a literal; None of anything else."""
        return None if self.literal is None else self.literal.value

    @property
    def digits(self) -> Digits:
        """The digits that a number has beside a decimal."""
        return digits_beside(self.literal, self.type) or Digits(1, 0)

    @property
    def exact_digits(self) -> str:
        """A decimal as SQL of which a cast makes the nearest double."""
        is_short = self.type.is_decimal and self.type.digits <= EXACT_DIGITS
        return self.sql if is_short else f"cast({self.sql} AS string)"

    def as_type(self, type_: SqlType, setting: Setting) -> Value:
        """Return the value with another type, as Spark casts without being asked."""
        if self.type in (type_, VOID):
            return self
        if type_ == DOUBLE and isinstance(self.value, int | Decimal):
            return Value.of(Literal(float(self.value)))
        sql = self.sql
        if type_.is_float and self.type.is_decimal:
            sql = self.exact_digits
        if type_.is_time:
            setting.needs_utc(f"{self.sql} as {type_.sql}", self.type)
        return Value(f"cast({sql} AS {type_.sql})", type_)


def has_floats(type_: SqlType) -> bool:
    """Whether a type has parts that may be NaN."""
    return type_.is_float or any(has_floats(part) for part in type_.inner if part is not None)


@attrs.frozen
class Part:
    """An operation or function and its operands."""

    operator: str
    what: str  # Its text, for errors
    operands: Sequence[Value]
    setting: Setting
    detail: str = ""  # See ``Operation`` and ``Call``

    def refused(self, why: str, hint: str) -> NotSupportedError:
        """Return the error of what the engine does not compute as Spark does."""
        return self.setting.refused(self.what, why, hint)

    def unknown(self) -> NotSupportedError:
        """Return the error of something that nobody has compared with Spark."""
        return self.setting.unknown(self.what)

    def needs_utc(self, *types: SqlType) -> None:
        """Refuse what depends on the session's clock; see :class:`Setting`."""
        self.setting.needs_utc(self.what, *types)

    def cast(self, value: Value, type_: SqlType) -> str:
        """Return a value with another type as SQL, as Spark casts without being asked."""
        return value.as_type(type_, self.setting).sql

    def common_type(self, values: Sequence[Value]) -> SqlType:
        """Return the type to which Spark casts values beside each other."""
        known = [value for value in values if value.type != VOID]
        types = list(dict.fromkeys(value.type for value in known))
        if len(types) < 2:
            return types[0] if types else VOID
        mixed = self.refused("it has values of different types", "cast them to one type")
        if STRING in types:
            other = self.common_type([value for value in known if value.type != STRING])
            if other.is_time:
                return other
            if not (self.setting.ansi and other.is_number):
                raise mixed
            return BIGINT if other.is_whole else DOUBLE
        if all(type_.is_number for type_ in types):
            if FLOAT in types and DOUBLE not in types and not self.setting.ansi:
                raise mixed
            if any(type_.is_decimal for type_ in types) and not any(t.is_float for t in types):
                return self._common_decimal([value.digits for value in known])
        elif not all(type_.is_time for type_ in types):
            raise mixed
        found = wider(types)
        assert found is not None
        return found

    def _common_decimal(self, digits: Sequence[Digits]) -> SqlType:
        scale, whole = max(own.scale for own in digits), max(own.whole for own in digits)
        if whole + scale > MOST_DIGITS:
            raise self.refused(
                f"more than {MOST_DIGITS} digits are needed", "cast to decimals of fewer digits"
            )
        return decimal_of(Digits(whole + scale, scale))

    def chosen(self, values: Sequence[Value]) -> tuple[list[str], SqlType]:
        """
        Return the SQL of values in the type that a choice between them has, and the type.

        There, literals have all digits of their types.
        """
        types = [value.type for value in values]
        if not self.setting.ansi and STRING in types and any(type_.is_time for type_ in types):
            raise self.refused("it has values of different types", "cast them to one type")
        type_ = self.common_type([Value(value.sql, value.type) for value in values])
        return [self.cast(value, type_) for value in values], type_

    def number_type(self) -> SqlType:
        """Return the type that the operands have in common; refuse what is no number."""
        type_ = self.common_type(self.operands)
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


def listed(values: Iterable[Value], between: str = ", ") -> str:
    """Return the SQL of values, one after the other."""
    return between.join(value.sql for value in values)


def failing_if(bad: str, sql: str, problem: str) -> str:
    """Return SQL that is an error where a condition holds."""
    return f"if({bad}, raise_error('{problem}'), {sql})"


def narrowed(sql: str, written: str, function: str = "cast") -> str:
    """Return a cast that fails if the number does not fit, even beside a comparison."""
    return f"coalesce({function}({sql} AS {written}), NULL)"  # which is not simplified away
