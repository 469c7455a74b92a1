# SPDX-License-Identifier: Apache-2.0
"""
Random SQL over columns of 29 types, and Spark's answers, in ANSI mode and a zone with summer time.

``python -m tests.column_types 400 7`` asks Spark about 400 expressions of the seed 7 and writes
:data:`ANSWERS`; with a third argument it only compares, and prints what is different.
"""

from __future__ import annotations

import json
import logging
import random
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.tables.clauses import cause_of
from pyflinkcep.tables.row_sql import OnlyByRow, RowSql

ANSWERS = Path(__file__).parent / "unit" / "tables" / "spark_answers.json"
ZONE = "America/New_York"
_INSTANTS = [
    datetime(2024, 3, 10, 6, 59, 59), datetime(2024, 3, 10, 7, 30), datetime(2024, 11, 3, 5, 30),
    datetime(2024, 11, 3, 6, 30), datetime(2023, 12, 31, 23, 59, 59, 500000),
    datetime(1960, 5, 5, 5, 5, 5),
]  # fmt: skip
_CLOCKS = [datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30), datetime(1960, 5, 5, 5, 5)]
_NAN, _INF = float("nan"), float("inf")
_PAIR = pa.struct([("a", pa.int32())])
_THREE = pa.struct([("a", pa.int32()), ("b", pa.string()), ("z", pa.timestamp("us", ZONE))])

_COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "y": (pa.int8(), [0, 1, 2, -3, 7], [127, -128]),
    "h": (pa.int16(), [0, 1, 2, -3, 100], [32767, -32768]),
    "i": (pa.int32(), [0, 1, 2, -3, 12345], [2**31 - 1, -(2**31)]),
    "n": (pa.int64(), [0, 1, 2, -3, 123456789], [2**63 - 1, -(2**63)]),
    "f": (pa.float32(), [0.0, 1.5, -2.25, 0.1], [_NAN, _INF, -0.0, 3e38]),
    "x": (pa.float64(), [0.0, 1.5, -2.25, 0.1, 1e10], [_NAN, -_INF, -0.0, 1e300]),
    "p": (pa.decimal128(10, 2), [D("0.00"), D("1.50"), D("-2.25"), D("12345678.99")], []),
    "q": (pa.decimal128(38, 10), [D(0), D("1.5"), D("-2.25")], [D("12345678901234567890.0123")]),
    "s": (pa.string(), ["", "a", "abC", " b ", "12", "ab"], ["x", "ß", "2024-01-31", "true"]),
    "t": (pa.string(), ["b", "bC", "a", "%", "ab"], []),
    "w": (pa.string(), ["2024-03-10", "2024-03-10 02:30:00", "2024-01-31T10:00:00+05:45"], []),
    "b": (pa.bool_(), [True, False], []),
    "d": (pa.date32(), [date(2024, 3, 10), date(2024, 2, 29), date(1969, 7, 20)], []),
    "z": (pa.timestamp("us", ZONE), _INSTANTS, []),
    "v": (pa.timestamp("us"), _CLOCKS, []),
    "l": (pa.duration("us"), [timedelta(0), timedelta(days=1), timedelta(hours=-5)], []),
    "bin": (pa.binary(), [b"", b"a", b"\x00\xff"], []),
    "ai": (pa.list_(pa.int32()), [[], [1], [1, None], [2, 3, 1], [None]], []),
    "an": (pa.list_(pa.int64()), [[], [1], [1, None], [2, 3]], []),
    "ss": (pa.list_(pa.string()), [[], ["a"], ["b", None, "a"], ["ab", "a"]], []),
    "ax": (pa.list_(pa.float64()), [[], [1.5], [0.0, None]], [[_NAN, 1.0]]),
    "az": (pa.list_(pa.timestamp("us", ZONE)), [[], _INSTANTS[:1], [None, _INSTANTS[1]]], []),
    "aa": (pa.list_(pa.list_(pa.int32())), [[], [[1], []], [[1, None], [2]], [None, [3]]], []),
    "m": (pa.map_(pa.string(), pa.int32()), [[], [("a", 1)], [("a", None), ("b", 2)]], []),
    "mi": (pa.map_(pa.int32(), pa.string()), [[], [(1, "a")], [(2, None), (1, "b")]], []),
    "st": (_THREE, [{"a": 1, "b": "x", "z": _INSTANTS[1]}, {"a": None, "b": "y", "z": None}], []),
    "at": (pa.list_(_PAIR), [[], [{"a": 1}, {"a": None}], [None, {"a": 3}]], []),
    "k": (pa.int32(), [1, 2, 3], []),
    "u": (pa.int64(), [1, 2, 5], []),
}
_NUMBERS, _WHOLE = [*"yhinfxpqku"], [*"yhinku"]
_TEXTS, _TIMES = [*"stw"], [*"dzv"]
_ARRAYS, _MAPS = ["ai", "an", "ss", "ax", "az", "aa", "at"], ["m", "mi"]
_LITERALS = [
    "1", "2", "0", "-1", "3L", "1Y", "2S", "0.5", "1.25", "2.0D", "0.5F", "'a'", "'1'", "true",
    "null", "'2024-03-10'", "'2024-03-10 02:30:00'", "date '2024-03-10'",
    "timestamp '2024-03-10 02:30:00'", "timestamp '2024-03-10 02:30:00+05:45'",
    "timestamp_ntz '2024-03-10 02:30:00'", "timestamp '2024-11-03 01:30:00'",
    "timestamp '2024-03-10 02:30:00 Europe/Berlin'", "timestamp_ltz '2024-11-03 06:30:00Z'",
    "interval 1 day", "interval '90' minute", "interval 25 hours",
]  # fmt: skip
_OF_ONE = (
    "abs floor ceil round bround sqrt sign - ~ length upper lower initcap trim ltrim rtrim btrim "
    "reverse year quarter month day dayofweek weekday dayofyear weekofyear hour minute second "
    "last_day unix_seconds unix_millis unix_micros unix_date unix_timestamp to_date to_timestamp "
    "date int bigint double string boolean timestamp size cardinality array_size array_max "
    "array_min array_distinct array_compact sort_array map_keys map_values flatten isnull "
    "isnotnull isnan bit_count octet_length ascii rint tinyint smallint float not"
)
_OF_TWO = (
    "mod pmod nanvl nullif nvl coalesce greatest least array_contains array_position "
    "arrays_overlap array_remove element_at try_element_at get map_contains_key contains "
    "startswith endswith instr locate left right repeat concat concat_ws date_add date_sub "
    "datediff add_months try_add try_subtract try_multiply try_divide equal_null array round"
)
_SIGNS = "+ - * / % div = <> < <= > >= <=> and or & | ^ << >> >>> || like rlike ilike"
_TYPES = (
    "tinyint smallint int bigint float double decimal(10,2) string boolean date timestamp "
    "timestamp_ntz"
)


def table_of(seed: int, has_edges: bool) -> pa.Table:
    """Return six rows; the ends of ranges, NaN and odd texts are for `has_edges`."""
    chance = random.Random(seed)
    columns = {}
    for name, (type_, plain, edges) in _COLUMNS.items():
        values = [*plain, *edges] if has_edges else plain
        rows = [chance.choice(values) if chance.random() < 0.8 else None for _ in range(6)]
        columns[name] = pa.array([row or 1 for row in rows] if name in "ku" else rows, type_)
    return pa.table(columns)


class _Maker:
    """Makes expressions; many have no meaning in Spark."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def one(self, depth: int = 2) -> str:
        """Return an expression."""
        pick = self._chance.choice
        if depth <= 0 or self._chance.random() < 0.1:
            return self._leaf(())
        return pick((self._signs, self._signs, self._calls, self._calls, self._others))(depth)

    def _leaf(self, near: Sequence[str]) -> str:
        if near and self._chance.random() < 0.7:
            return self._chance.choice(near)
        is_column = self._chance.random() < 0.55
        return self._chance.choice([*_COLUMNS] if is_column else _LITERALS)

    def _part(self, depth: int, near: Sequence[str]) -> str:
        return self.one(depth - 1) if self._chance.random() < 0.3 else self._leaf(near)

    def _signs(self, depth: int) -> str:
        sign = self._chance.choice(_SIGNS.split())
        near: Sequence[str] = self._chance.choice(
            [_NUMBERS, _NUMBERS, _WHOLE, [*_TIMES, "l", *_TEXTS], _TEXTS, _ARRAYS]
        )
        if sign in ("and", "or"):
            near = ["b"]
        elif sign in ("&", "|", "^", "<<", ">>", ">>>"):
            near = _WHOLE
        left = self._part(depth, near)
        if sign in ("like", "rlike", "ilike"):
            texts = ["'a%'", "'_b_'"] if sign != "rlike" else ["'^a'", "'b$'", "'[a-c]+'", "'.b.'"]
            return f"({left} {sign} {self._chance.choice(texts)})"
        return f"({left} {sign} {self._part(depth, near)})"

    def _calls(self, depth: int) -> str:
        near: Sequence[str] = self._chance.choice([_NUMBERS, _TEXTS, _TIMES, _ARRAYS, _MAPS])
        part = self._part(depth, near)
        if self._chance.random() < 0.5:
            return f"{self._chance.choice(_OF_ONE.split())}({part})"
        others = self._chance.choice([near, near, _WHOLE, ["k"]])
        return f"{self._chance.choice(_OF_TWO.split())}({part}, {self._part(depth, others)})"

    def _others(self, depth: int) -> str:
        def part(near: Sequence[str]) -> str:
            return self._part(depth, near)

        near = self._chance.choice([_NUMBERS, _TIMES, _TEXTS])
        unit = self._chance.choice(("year", "month", "week", "day", "hour", "minute"))
        forms: list[Callable[[], str]] = [
            lambda: f"cast({part(near)} as {self._chance.choice(_TYPES.split())})",
            lambda: f"try_cast({part(near)} as {self._chance.choice(_TYPES.split())})",
            lambda: f"{self._chance.choice([*_ARRAYS, *_MAPS])}[{part(['k', 'i', 't'])}]",
            lambda: f"({part(near)} in ({part(near)}, {part(near)}))",
            lambda: f"case when {part(['b'])} then {part(near)} else {part(near)} end",
            lambda: f"if({part(['b'])}, {part(near)}, {part(near)})",
            lambda: self._chance.choice(["st.a", "st.b", "st.z", "at.a", "m.a", "at[0].a"]),
            lambda: f"extract({self._chance.choice(['doy', 'hour', 'dow'])} from {part(_TIMES)})",
            lambda: f"dateadd({unit}, {part(_WHOLE)}, {part(_TIMES)})",
            lambda: f"timestampdiff({unit}, {part(_TIMES)}, {part(_TIMES)})",
            lambda: f"date_trunc('{unit}', {part(_TIMES)})",
            lambda: f"trunc({part(_TIMES)}, '{unit}')",
            lambda: f"substring({part(_TEXTS)}, {part(['k'])}, 2)",
            lambda: f"lpad({part(_TEXTS)}, k, {part(_TEXTS)})",
            lambda: f"replace({part(_TEXTS)}, {part(_TEXTS)}, 'z')",
        ]
        return self._chance.choice(forms)()


def answer_of(column: Any) -> list[str]:
    """Return a column as its type and values, for comparison."""
    type_ = re.sub(r"tz=\S+?(?=\])", "tz", str(column.type)).replace("large_", "")
    type_ = re.sub(r" not null|element|item|key_value|entries", "", type_)
    return [type_, repr([_shown(value) for value in column.to_pylist()])]


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(part) for part in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    return value


def answer_in_memory(table: pa.Table, text: str) -> list[str] | str | None:
    """Return what memory answers: a column, the message of an error, or None for a refusal."""
    try:
        return answer_of(RowSql(table, zone=ZONE).column(text))
    except OnlyByRow as raised:
        cause = cause_of(raised)
        assert isinstance(cause, CepError | ArithmeticError)
        return None if isinstance(cause, NotSupportedError) else str(cause)


def _asked(frame: Any, texts: list[str]) -> list[list[str] | str]:
    """Return Spark's answers; one that fails is asked alone."""
    try:
        found = frame.selectExpr(*(f"{text} as r{n}" for n, text in enumerate(texts))).toArrow()
        return [answer_of(column) for column in found.columns]
    except Exception:
        if len(texts) == 1:
            return ["fails"]
        middle = len(texts) // 2
        return _asked(frame, texts[:middle]) + _asked(frame, texts[middle:])


def _frame(spark: Any, table: pa.Table) -> Any:
    """Return a DataFrame; a clock travels as text, for without a zone it would have the session's."""
    names = table.column_names
    texts = pa.array([None if v is None else str(v) for v in table["v"].to_pylist()])
    plain = spark.createDataFrame(table.set_column(names.index("v"), "v", texts))
    own = ["cast(v as timestamp_ntz) v" if name == "v" else name for name in names]
    return plain.selectExpr(*own).coalesce(1).cache()


def _meant(frame: Any, text: str) -> bool:
    try:
        type_ = frame.selectExpr(f"{text} as r").schema[0].dataType.simpleString()
    except Exception:
        return False
    return "interval year" not in type_


def asked_of_spark(count: int, seed: int) -> dict[str, Any]:
    """Return expressions with Spark's answers on both tables."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.sql.session.timeZone": ZONE, "spark.ui.enabled": "false",
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.log.level": "OFF",
    }  # fmt: skip
    logging.disable(logging.CRITICAL)
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    frames = [_frame(spark, table_of(seed, has_edges)) for has_edges in (False, True)]
    maker, texts = _Maker(seed), dict[str, None]()
    while len(texts) < count:
        text = maker.one()
        is_long = "repeat(" in text and not re.search(r"repeat\([^(]*, k\)", text)
        if not is_long and _meant(frames[0], text):
            texts[text] = None
    found: list[list[Any]] = []
    for frame in frames:
        own: list[Any] = []
        for begin in range(0, count, 16):
            own += _asked(frame, [*texts][begin : begin + 16])
        found.append(own)
    return {
        "seed": seed,
        "answers": {text: pair for text, *pair in zip(texts, *found, strict=True)},
    }


def differences(asked: dict[str, Any]) -> list[str]:
    """Return what memory answers otherwise than Spark."""
    tables = [table_of(asked["seed"], has_edges) for has_edges in (False, True)]
    found = []
    for text, answers in asked["answers"].items():
        for table, expected in zip(tables, answers, strict=True):
            given = answer_in_memory(table, text)
            is_same = isinstance(given, str) if expected == "fails" else given == expected
            if given is not None and not is_same:
                found.append(f"{text}: {given}, Spark has {expected}")
    return found


if __name__ == "__main__":
    asked = asked_of_spark(int(sys.argv[1]), int(sys.argv[2]))
    if len(sys.argv) > 3:
        print(*differences(asked), sep="\n")
    else:
        ANSWERS.write_text(json.dumps(asked, ensure_ascii=False, indent=0) + "\n")
