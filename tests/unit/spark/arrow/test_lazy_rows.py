# SPDX-License-Identifier: Apache-2.0
"""Rows whose fields are made when they are asked for are like any other Row."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pyflinkcep.spark.arrow import rows
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import RowReader

_SCHEMA = StructType(
    [
        StructField("name", StringType()),
        StructField("count", IntegerType()),
        StructField("ts", TimestampType()),
        StructField("tags", ArrayType(StringType())),
        StructField("a b", IntegerType()),
        StructField("empty", StringType()),
        StructField("price", DoubleType()),
        StructField("ratio", FloatType()),
        StructField("volume", LongType()),
        StructField("is_last", BooleanType()),
        StructField("amount", DecimalType(10, 2)),
    ]
)
_TABLE = pa.table(
    [
        ["x", "y"],
        [1, 2],
        [0, 5_000_000],
        [["p"], []],
        [7, None],
        [None, None],
        [0.1, None],
        [0.5, 0.1],
        [1 << 40, -1],
        [None, True],
        [Decimal("1.50"), Decimal("-2.00")],
    ],
    schema=arrow_schema(_SCHEMA),
)


def both() -> tuple[Row, Row]:
    """Make the second row, lazily and at once."""
    reader = RowReader(_SCHEMA)
    return reader.lazy_rows(_TABLE)[1], reader.rows(_TABLE)[1]


def test_a_row_has_the_columns_of_its_schema() -> None:
    """What a table has besides, such as what Spark computed, never reaches the conversion."""
    wider = _TABLE.append_column("__cep_value0", pa.array([1, 2]))
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        convert = rows.local_rows
        patch.setattr(rows, "local_rows", lambda t, s: seen.append(t.num_columns) or convert(t, s))
        assert RowReader(_SCHEMA).rows(wider) == RowReader(_SCHEMA).rows(_TABLE)
    assert seen == [len(_SCHEMA)] * 2


@pytest.mark.parametrize(
    "use",
    [
        lambda r: r.name,
        lambda r: r.ts,
        lambda r: r.tags,
        lambda r: r.empty,
        lambda r: (r.price, type(r.ratio), r.ratio, type(r.volume), r.volume, r.is_last, r.amount),
        lambda r: r["a b"],
        lambda r: r["name"],
        lambda r: r[0],
        lambda r: r[-1],
        lambda r: r[1:3],
        lambda r: len(r),
        lambda r: list(r),
        lambda r: tuple(r),
        lambda r: r.asDict(),
        lambda r: repr(r),
        lambda r: "y" in r,
        lambda r: "name" in r,
        lambda r: r.count("y"),
        lambda r: r.index(2),
        lambda r: r == r,
        lambda r: r != r,
        lambda r: r + (1,),  # noqa: RUF005 - the operator is what is tried
        lambda r: r.__fields__,
        lambda r: isinstance(r, Row),
        lambda r: bool(r),
        lambda r: hash(r[:3]),
        lambda r: [*r],
        lambda r: getattr(r, "other", "none"),
        lambda r: pickle.loads(pickle.dumps(r)),
    ],
)
def test_used_like_a_row(use: Callable[[Any], Any]) -> None:
    """Every way to use a Row gives what it gives on a Row made at once."""
    lazy, plain = both()

    assert use(lazy) == use(plain)


def test_equal_to_what_it_stands_for() -> None:
    """A lazy Row equals the ordinary Row of its values, from both sides."""
    lazy, plain = both()

    assert lazy == plain
    assert plain == tuple(lazy)


@pytest.mark.parametrize("use", [lambda r: r["other"], lambda r: r.other, lambda r: r[99]])
def test_what_is_not_there(use: Callable[[Any], Any]) -> None:
    """What a Row does not have raises the same as on an ordinary Row."""
    lazy, plain = both()
    with pytest.raises(Exception) as expected:  # noqa: PT011 - the type is what is compared
        use(plain)
    with pytest.raises(type(expected.value)):
        use(lazy)


def test_only_what_is_asked_for_is_converted() -> None:
    """A field that is costly to convert and that nobody asks for stays as Arrow has it."""
    lazy, _ = both()
    block = tuple.__getitem__(lazy, -2)

    assert lazy.ts.second == 5
    loaded = [values is not None for values in block.columns]
    assert loaded == [name == "ts" for name in _SCHEMA.fieldNames()]


def test_a_collection_of_garbage_in_between_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever Python collects garbage while a class of Rows is made, the class is whole."""

    class Collecting:
        def __init__(self, class_: type) -> None:
            self.items = vars(class_)

        def __getitem__(self, name: str) -> Any:
            gc.collect()
            return self.items[name]

    monkeypatch.setattr(rows, "vars", Collecting, raising=False)
    (row, _) = RowReader(_SCHEMA).lazy_rows(_TABLE)

    assert (row.name, row.price) == ("x", 0.1)


def test_columns_of_any_name() -> None:
    """No member of a Row's class hides a column, whatever its name; only a Row's own methods do."""
    names = ["_value", "_all", "_plain", "_places", "_fields", "_item", "self", "columns"]
    schema = StructType([StructField(name, IntegerType()) for name in names])
    table = pa.table([[number] for number in range(len(names))], schema=arrow_schema(schema))
    reader = RowReader(schema)

    for row in (reader.lazy_rows(table)[0], reader.rows(table)[0]):
        assert [getattr(row, name) for name in names] == list(range(len(names)))
        assert row.asDict() == dict(zip(names, range(len(names)), strict=True))


@pytest.mark.parametrize("use", [lambda r: r.prise, lambda r: r["prise"]])
def test_a_wrong_column_names_the_nearest(use: Callable[[Any], Any]) -> None:
    """The error for a column that is not there names those that are spelled almost alike."""
    for row in both():
        with pytest.raises(PySparkException, match="no column 'prise'; did you mean 'price'"):
            use(row)
