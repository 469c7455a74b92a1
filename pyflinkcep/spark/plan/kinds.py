# SPDX-License-Identifier: Apache-2.0
"""The kinds of Spark's types in conditions over several events."""

from __future__ import annotations

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.expressions.program import EXACT_DIGITS, Kind

__all__ = ["common_kind", "is_long_decimal"]

_KINDS: dict[type[DataType], Kind] = {
    IntegralType: Kind.BIGINT,
    FractionalType: Kind.DOUBLE,
    BooleanType: Kind.BOOLEAN,
    StringType: Kind.STRING,
    TimestampType: Kind.TIMESTAMP,
    TimestampNTZType: Kind.TIMESTAMP_NTZ,
    DateType: Kind.DATE,
}


def common_kind(type_: DataType) -> Kind | None:
    """
    Return the kind of a type in match expressions and queries alike; None if it has none.

    Texts are compared byte by byte, so one with another collation has none.
    """
    if isinstance(type_, StringType) and type_.collation != "UTF8_BINARY":
        return None
    return next((kind for known, kind in _KINDS.items() if isinstance(type_, known)), None)


def is_long_decimal(type_: DataType) -> bool:
    """Whether a type is a decimal of which different values have one nearest double."""
    return isinstance(type_, DecimalType) and type_.precision > EXACT_DIGITS
