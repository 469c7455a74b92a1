# SPDX-License-Identifier: Apache-2.0
"""What measures take of matches: picked and accumulated values."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType, StructType

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.leaf_columns import LeafColumn
from pyflinkcep.matching.results import Found
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker.consumers import MAIN, MatchTimes, ValueConsumer
from pyflinkcep.time import MAX_WATERMARK

_WIDE = Decimal("1234567890123456789012345678901234567.5")
_TABLE = pa.table(
    {
        "k": ["x", "x", "x", "x", "y"],
        "n": pa.array([4, None, 2, 7, 1], pa.int64()),
        "f": [1.5, math.nan, None, 0.5, None],
        "s": ["b", "a", None, "c", None],
        "d": pa.array([_WIDE, None, _WIDE, None, None], pa.decimal128(38, 1)),
    }
)
_TYPES = {
    "bigint": LongType(),
    "double": DoubleType(),
    "string": StringType(),
    "decimal": DecimalType(38, 1),
}
_EVENT = StructType()
for _name, _type in zip("knfsd", ("string", "bigint", "double", "string", "decimal"), strict=True):
    _EVENT.add(_name, _TYPES[_type])
_FOUND = Found(
    ["A", "B"],
    np.asarray([1, 1], np.uint8),
    np.asarray([5, MAX_WATERMARK]),
    np.asarray([4, 5]),
    np.asarray([0, 0, 0, 1, 0], np.int32),
    np.asarray([0, 1, 2, 3, 4]),
)
"""Two matches: A has the first three events and B the fourth; A has the fifth and B none."""


def _column(leaf: LeafColumn, type_: str, ansi: bool = False) -> list[Any]:
    schema = StructType().add("k", StringType()).add("v", _TYPES[type_])
    store = EventStore(RowReader(_EVENT), _TABLE.schema)
    store.add(_TABLE)
    table = ValueConsumer(schema, ["k"], [leaf], MatchTimes(None), ansi).consume(_FOUND, store)[
        MAIN
    ]
    assert table.column("k").to_pylist() == ["x", "y"]
    return table.column("v").to_pylist()


@pytest.mark.parametrize(
    ("leaf", "type_", "values"),
    [
        (("first", "A", "n"), "bigint", [4, 1]),
        (("first", "A", "n", 2), "bigint", [2, None]),
        (("last", "A", "s", 1), "string", ["a", None]),
        (("last", None, "n"), "bigint", [7, 1]),
        (("last", "B", "s"), "string", ["c", None]),
        (("count", "A", None), "bigint", [3, 1]),
        (("count", "B", None), "bigint", [1, 0]),
        (("count", None, "s"), "bigint", [3, 0]),
        (("sum", "A", "n"), "bigint", [6, 1]),
        (("sum", "B", "n"), "bigint", [7, None]),
        (("sum", "B", "f"), "double", [0.5, None]),
        (("total", "A", "n"), "double", [6.0, 1.0]),
        (("total", "B", "f"), "double", [0.5, None]),
        (("sum", "A", "d"), "decimal", [Decimal(2469135780246913578024691357802469135), None]),
        (("min", None, "n"), "bigint", [2, 1]),
        (("max", None, "n"), "bigint", [7, 1]),
        (("min", None, "f"), "double", [0.5, None]),
        (("max", None, "s"), "string", ["c", None]),
        (("min", "A", "s"), "string", ["a", None]),
        (("rowtime", None, None), "bigint", [5, None]),
    ],
)
def test_values_of_matches(leaf: tuple[Any, ...], type_: str, values: list[Any]) -> None:
    """Values are those of SQL: NULL passed over by aggregates, NULL where there is no event."""
    assert _column(LeafColumn(*leaf), type_) == values


def test_the_greatest_number_is_nan() -> None:
    """NaN is greater than every number, as in Spark."""
    greatest = _column(LeafColumn("max", "A", "f"), "double")

    assert math.isnan(greatest[0])
    assert greatest[1] is None


def test_a_sum_that_overflows_is_an_error_in_ansi_mode_only() -> None:
    """A sum out of range wraps around, or is an error that says what to do."""
    most = (1 << 63) - 1
    table = _TABLE.set_column(1, "n", pa.array([most, 1, None, 7, 1], pa.int64()))
    store = EventStore(RowReader(_EVENT), table.schema)
    store.add(table)
    schema = StructType().add("v", LongType())
    leaves = [LeafColumn("sum", "A", "n")]

    wrapped = ValueConsumer(schema, [], leaves, MatchTimes(None), False).consume(_FOUND, store)[
        MAIN
    ]
    assert wrapped.column(0).to_pylist() == [-most - 1, 1]
    with pytest.raises(CepRuntimeError, match="SUM of n overflows bigint"):
        ValueConsumer(schema, [], leaves, MatchTimes(None), True).consume(_FOUND, store)


_TIMES = pa.table({"at": [1, 2, 3, 4, 5]})


def test_floats_are_added_one_after_another() -> None:
    """In the order of the events, as DEFINE adds them: 2**53 + 1 + … stays 2**53."""
    numbers = [2.0**53, *[1.0] * 20, 0.5]
    found = attrs.evolve(
        _FOUND, ends=np.asarray([21, 22]), stage_of=np.zeros(22, np.int32), handles=np.arange(22)
    )
    store = EventStore(
        RowReader(StructType().add("f", DoubleType())), pa.schema({"f": pa.float64()})
    )
    store.add(pa.table({"f": numbers}))
    schema = StructType().add("v", DoubleType())
    consumer = ValueConsumer(schema, [], [LeafColumn("sum", "A", "f")], MatchTimes(None), False)
    assert consumer.consume(found, store)[MAIN].column("v").to_pylist() == [2.0**53, 0.5]
