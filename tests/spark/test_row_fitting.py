# SPDX-License-Identifier: Apache-2.0
"""Rows of users' functions are taken as they are, or refused; never bent."""

from __future__ import annotations

import array
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyflinkcep.errors import FunctionError
from pyflinkcep.spark.arrow.rows import RowWriter

NOON = datetime(2024, 1, 1, 12)
POINT = StructType([StructField("x", IntegerType()), StructField("y", StringType(), False)])
INTS = ArrayType(IntegerType(), False)
WORDS = ArrayType(StringType())
NUMBERS = MapType(StringType(), LongType())

TAKEN: list[tuple[DataType, Any, Any]] = [
    (StringType(), "a", "a"),
    (BooleanType(), True, True),
    (BooleanType(), np.bool_(False), False),
    (IntegerType(), -(2**31), -(2**31)),
    (LongType(), np.int32(7), 7),
    (DoubleType(), 1, 1.0),
    (FloatType(), np.float64(0.5), 0.5),
    (DecimalType(5, 2), Decimal("1.5"), Decimal("1.50")),
    (BinaryType(), bytearray(b"\x00"), b"\x00"),
    (DateType(), date(2024, 1, 1), date(2024, 1, 1)),
    (TimestampType(), NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
    (TimestampNTZType(), NOON, NOON),
    (DayTimeIntervalType(), timedelta(microseconds=-1), timedelta(microseconds=-1)),
    (INTS, [1, 2], [1, 2]),
    (INTS, array.array("i", [1]), [1]),
    (WORDS, ["a", None], ["a", None]),
    (NUMBERS, {"a": 1, "b": None}, [("a", 1), ("b", None)]),
    (POINT, (1, "a"), {"x": 1, "y": "a"}),
    (POINT, {"y": "a"}, {"x": None, "y": "a"}),
    (POINT, Row(x=1, y="a"), {"x": 1, "y": "a"}),
    (IntegerType(), None, None),
]

REFUSED: list[tuple[DataType, Any]] = [
    (StringType(), 5),
    (StringType(), b"a"),
    (StringType(), {"a": 1}),
    (StringType(), True),
    (BooleanType(), 1),
    (BooleanType(), "true"),
    (IntegerType(), 1.5),
    (IntegerType(), 2.0),
    (IntegerType(), True),
    (IntegerType(), "1"),
    (IntegerType(), Decimal(1)),
    (IntegerType(), 2**31),
    (ShortType(), -40000),
    (LongType(), 2**63),
    (DoubleType(), "1"),
    (DoubleType(), True),
    (DecimalType(5, 2), 1.5),
    (DecimalType(5, 2), Decimal("12345")),
    (BinaryType(), "a"),
    (DateType(), NOON),
    (DateType(), 1),
    (TimestampType(), date(2024, 1, 1)),
    (TimestampType(), "2024-01-01"),
    (TimestampNTZType(), NOON.replace(tzinfo=UTC)),
    (DayTimeIntervalType(), 1),
    (INTS, [1, None]),
    (INTS, [1.5]),
    (INTS, b"ab"),
    (WORDS, "ab"),
    (WORDS, [1]),
    (NUMBERS, {"a": 1.5}),
    (NUMBERS, {1: 1}),
    (NUMBERS, [("a", 1)]),
    (POINT, (1,)),
    (POINT, (1, None)),
    (POINT, {"x": 1}),
    (POINT, (1.5, "a")),
]


def writer(type_: DataType, nullable: bool = True) -> RowWriter:
    """Return a writer for two columns, the second of this type."""
    return RowWriter(
        StructType([StructField("n", IntegerType()), StructField("value", type_, nullable)]), "f"
    )


@pytest.mark.parametrize(("type_", "given", "expected"), TAKEN)
def test_values_that_fit(type_: DataType, given: Any, expected: Any) -> None:
    """A value of the type, or one that loses nothing on the way, arrives."""
    to = writer(type_)
    table = to.table([to.row((1, given))])

    assert table.to_pylist() == [{"n": 1, "value": expected}]


@pytest.mark.parametrize(("type_", "given"), REFUSED)
def test_values_that_do_not_fit(type_: DataType, given: Any) -> None:
    """Anything else is an error that names function, column, type and value; no rounding."""
    to = writer(type_)
    with pytest.raises(FunctionError) as caught:
        to.table([to.row((1, given))])

    assert "f returned (1, " in caught.value.message
    assert f"column 'value' is {type_.simpleString()}, got " in caught.value.message


def test_null_where_none_may_be() -> None:
    """None in a NOT NULL column is refused."""
    with pytest.raises(FunctionError, match="column 'value' is int NOT NULL, got None"):
        writer(IntegerType(), nullable=False).row((1, None))


@pytest.mark.parametrize(
    "given", [(1, "a"), [1, "a"], Row(n=1, value="a"), Row(value="a", n=1), {"value": "a", "n": 1}]
)
def test_kinds_of_rows(given: Any) -> None:
    """Tuples and lists go by position, Rows and dicts by name."""
    assert writer(StringType()).row(given) == (1, "a")


def test_objects_are_rows() -> None:
    """An object of a dataclass or attrs class goes by name, with one column too."""

    @dataclass
    class Found:
        value: str
        n: int

    one = RowWriter(StructType([StructField("n", IntegerType())]), "f")

    assert writer(StringType()).row(Found("a", 1)) == (1, "a")
    assert writer(StringType()).row(attrs.make_class("A", ["n", "value"])(1, "a")) == (1, "a")
    assert one.row(attrs.make_class("A", ["n"])(1)) == (1,)
    with pytest.raises(FunctionError, match=r"with \['value'\], the schema is n int"):
        one.row(Found("a", 1))


@pytest.mark.parametrize("given", [[(1, "a"), (2, "b")], ({"n": 1} for _ in "ab"), [{"n": 1}]])
def test_several_rows_for_one(given: Any) -> None:
    """Several rows, where one is expected, are refused with the way to return them."""
    with pytest.raises(FunctionError, match="use flatSelect"):
        writer(StringType()).row(given)


@pytest.mark.parametrize("given", [5, "ab", (1,), (1, "a", 2), [1], None, {"n": 1, "vale": "a"}])
def test_rows_of_another_shape(given: Any) -> None:
    """Too few values, too many, or names the schema lacks: an error that shows the schema."""
    with pytest.raises(FunctionError, match="n int, value string"):
        writer(StringType()).row(given)


def test_a_plain_value_is_a_row_of_one_column() -> None:
    """With one column the value itself will do, lists and None included."""
    words = RowWriter(StructType([StructField("words", WORDS)]), "f")

    assert [words.row(given) for given in (["a"], (["a"],), {"words": ["a"]}, None)] == [
        (["a"],), (["a"],), (["a"],), (None,),
    ]  # fmt: skip


def test_long_values_are_shortened_in_errors() -> None:
    """An error does not drag a whole match along."""
    with pytest.raises(FunctionError) as caught:
        writer(IntegerType()).row((1, "x" * 100_000))

    assert len(str(caught.value)) < 1000
