# SPDX-License-Identifier: Apache-2.0
"""
Events of many types, and the values that Spark gives SQL over them, recorded.

``python -m tests.sail.spark_values FILE``, with Java, asks Spark for the expressions of a text
file, one per line, and adds its answers to ``spark_values.json.gz``.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

FILE = Path(__file__).with_suffix(".json.gz")
ERROR = "error"
"""What stands for an error in place of a value."""

ROWS = 8
_DAY = 86_400_000_000
_INF, _NAN = math.inf, math.nan


def _decimals(values: str, precision: int, scale: int) -> pa.Array:
    known = [None if value == "-" else Decimal(value) for value in values.split()]
    return pa.array(known, pa.decimal128(precision, scale))


_STRUCT = pa.struct(
    {"q": pa.int32(), "r": pa.string(), "v": pa.float64(), "t": pa.timestamp("us", "UTC"),
     "o": pa.struct({"p": pa.int64()})}
)  # fmt: skip


def _struct(q: Any, r: Any, v: Any, t: Any, o: Any) -> dict[str, Any]:
    return {"q": q, "r": r, "v": v, "t": t, "o": o}


EVENTS = pa.table({
    "id": pa.array(range(ROWS)),
    "b": [True, False, None, True, False, True, True, None],
    "i8": pa.array([1, -128, 127, None, 0, 3, -7, 100], pa.int8()),
    "i16": pa.array([1, -(2**15), 2**15 - 1, None, 0, 3, -7, 100], pa.int16()),
    "i32": pa.array([1, -(2**31), 2**31 - 1, None, 0, 3, -7, 100], pa.int32()),
    "n": [1, -(2**63), 2**63 - 1, None, 0, 3, -7, 10**15],
    "m": [2, -1, 3, 5, 0, None, -7, -3],
    "f": pa.array([1.5, _NAN, _INF, None, -0.0, 3e38, -7.25, 0.1], pa.float32()),
    "x": [1.5, _NAN, _INF, None, -0.0, 1e19, -7.25, 0.1],
    "y": [0.0, 2.5, -_INF, 1.0, -0.0, -1e300, None, 2.675],
    "d5": _decimals("1.50 -999.99 999.99 - 0.00 0.01 -7.25 2.68", 5, 2),
    "d20": _decimals(f"1 {-(10**19)} {10**20 - 1} - 0 3 -7 {10**15}", 20, 0),
    "d38": _decimals(f"1.5 -1e27 {10**28 - 1}.9999999999 - 0 1e-10 -7.25 1e15", 38, 10),
    "s": ["abC", "", None, " x ", "Éa\U0001f600", "12", "2024-02-30", "null"],
    "w": ["1", " 2.5 ", "2024-01-31", "true", None, "-0", "1e3", "x"],
    "bin": [b"ab", b"", None, b"\xff", b"a", b"b", b"c", b"d"],
    "day": [date(2024, 1, 31), date(1969, 12, 31), date(1, 1, 1), None, date(9999, 12, 31),
            date(2024, 2, 29), date(1900, 3, 1), date(1970, 1, 1)],
    "t": pa.array(
        [1706700000123456, -1, _DAY - 62135596800000000, None, 253402300799999999 - _DAY, 0,
         -1500000, 1709251199999999], pa.timestamp("us", "UTC")),
    "u": pa.array(
        [-1500001, 1706700000123456, 0, 5, None, -_DAY, -_DAY - 1, -2208988800000001],
        pa.timestamp("us", "UTC")),
    "z": pa.array(
        [1706700000123456, -1, -62135596800000000, None, 253402300799999999, 0, -1500000,
         1709251199999999], pa.timestamp("us")),
    "iv": pa.array([1, -1, 2**62, None, 0, _DAY, -1500000, 3600000000], pa.duration("us")),
    "xs": [[1, 2], [], None, [None], [3, None], [-(2**63)], [7], [0, 0, 0]],
    "xd": [[1.0], [_NAN], None, [None, 2.5], [-0.0], [_INF], [], [0.1]],
    "xt": [["a"], [""], None, [None], ["b", "a"], ["x"], ["12", None], []],
    "mp": pa.array(
        [[("k", 5)], [], None, [("k", None)], [("j", 1)], [("k", -1), ("j", 2)], [("", 0)],
         [("k", 2**62)]], pa.map_(pa.string(), pa.int64())),
    "st": pa.array(
        [_struct(1, "a", 0.5, 5, {"p": 1}), None, _struct(None, None, None, None, None),
         _struct(2, "", -0.0, -1, {"p": None}), None, _struct(7, "z", _NAN, 0, {"p": 9}), None,
         None], _STRUCT),
    "xst": [[{"q": 1}], [None, {"q": 2}], None, [], [{"q": None}], [None], [{"q": 3}, None],
            [{"q": 4}]],
    "lg": [10**6, 10**9, 10**12, 10**14, -(10**12), 2**62, -(2**62), None],
})  # fmt: skip


def frame(session: SparkSession, *rows: int) -> DataFrame:
    """Return some of the events, by default all of them."""
    events = session.createDataFrame(EVENTS.take(list(rows or range(ROWS))))
    return events.withColumn("z", events["z"].cast("timestamp_ntz"))


def values(dataframe: DataFrame, sql: str) -> list[Any]:
    """Return what SQL computes from each event, in a form that JSON has."""
    return [shown(v) for v in dataframe.selectExpr(f"{sql} AS v").toArrow().column(0).to_pylist()]


def shown(value: Any) -> Any:
    """Return a value in a form that JSON has; -0.0 is 0.0, the last digit of doubles left out."""
    if isinstance(value, float):
        return f"{value + 0.0:.14g}"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)} us"
    if isinstance(value, dict):
        return [shown(part) for part in value.values()]
    if isinstance(value, list | tuple):
        return [shown(part) for part in value]
    return value.hex() if isinstance(value, bytes) else value


def recorded() -> dict[str, tuple[str, list[Any]]]:
    """Return by expression its type in Spark, and its value for each event or :data:`ERROR`."""
    return json.loads(gzip.decompress(FILE.read_bytes())) if FILE.exists() else {}


def _asked(session: SparkSession, sql: str) -> tuple[str, list[Any]]:
    type_ = frame(session).selectExpr(f"{sql} AS v").schema[0].dataType.simpleString()
    found = []
    for row in range(ROWS):
        try:
            found += values(frame(session, row), sql)
        except Exception:
            found.append(ERROR)
    return type_, found


def _record(path: str) -> None:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.ui.enabled": "false"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    asked = Path(path).read_text().splitlines()
    answers = {**recorded(), **{sql: _asked(session, sql) for sql in asked if sql}}
    text = json.dumps(dict(sorted(answers.items())), ensure_ascii=False, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
    session.stop()


if __name__ == "__main__":
    _record(sys.argv[1])
