# SPDX-License-Identifier: Apache-2.0
"""``matchRecognize`` on tables in memory against the recorded answers, in both dialects."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep.match_recognize.statement import VIEW, Statement
from pyflinkcep.tables.recognize import matchRecognize
from tests.conformance.cases import Case
from tests.conformance.sql_cases import flink_cases, problems, standard_cases

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN = re.compile(r"SELECT\s+(.*?)\s+FROM __cep_view_(?:\s+AS)?(?:\s+\w+)?", re.S | re.I)
_NAME = re.compile(r"(?:\w+\.)?`?\w+`?")
_TYPES = {
    "INT": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "FLOAT": pa.float32(),
    "STRING": pa.string(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(), "SMALLINT": pa.int16(),
    "TINYINT": pa.int8(), "TIMESTAMP(3)": pa.timestamp("us", "UTC"),
    "TIMESTAMP_LTZ(3)": pa.timestamp("us", "UTC"), "TIMESTAMP": pa.timestamp("us", "UTC"),
}  # fmt: skip


def _type(flink: str) -> pa.DataType:
    name = flink.replace(" NOT NULL", "").replace(" *ROWTIME*", "").upper()
    if name.startswith("DECIMAL"):
        precision, scale = re.findall(r"\d+", name)
        return pa.decimal128(int(precision), int(scale))
    if name.startswith(("VARCHAR", "CHAR")):
        return pa.string()
    return _TYPES[name]


def _value(type_: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(type_):
        return _EPOCH + timedelta(milliseconds=value)
    if pa.types.is_date(type_):
        return date(1970, 1, 1) + timedelta(days=value)
    if pa.types.is_decimal(type_):
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-type_.scale))
    return float(value) if pa.types.is_floating(type_) else value


def _in_time(case: Case) -> list[list[Any]]:
    """Return the rows whose time no watermark had passed when they came."""
    rows, passed = [], -math.inf
    columns = [name for name, _ in case["columns"]]
    for item in case["items"]:
        if isinstance(item, dict):
            passed = max(passed, item["wm"])
        elif math.isinf(passed) or item[columns.index(case["rowtime"])] > passed:
            rows.append(item)
    return rows


def _table(case: Case) -> pa.Table:
    rows = _in_time(case)
    columns = {}
    for place, (name, flink) in enumerate(case["columns"]):
        type_ = _type(flink)
        columns[name] = pa.array([_value(type_, row[place]) for row in rows], type_)
    return pa.table(columns)


def plain(case: Case) -> tuple[str, list[str]] | None:
    """Return the clause of a case and its select list; None if Spark has to run the statement."""
    try:
        statement = Statement(case["sql"])
        use = statement.next_use()
    except Exception:
        return None
    if use is None or use.query.strip() != "SELECT * FROM events":
        return None
    start, end = use.span
    text = case["sql"][start:end]
    statement.replaced(use, VIEW)
    found = _PLAIN.fullmatch(statement.text.strip().rstrip(";"))
    if found is None or "MATCH_RECOGNIZE" in statement.text.upper():
        return None
    names = [name.strip() for name in found[1].split(",")]
    if names != ["*"] and not all(_NAME.fullmatch(name) for name in names):
        return None
    return text[text.index("(") + 1 : -1], [n.rpartition(".")[2].strip("`") for n in names]


def answer(case: Case) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return columns and rows."""
    clause, select = plain(case) or ("", [])
    dialect: Any = case.get("dialect", "flink")
    table = matchRecognize(_table(case), clause, dialect).toArrow()
    columns = table.column_names
    if select != ["*"]:
        by_name = {name.lower(): name for name in columns}
        table = table.select([by_name[name.lower()] for name in select])
        columns = select
    lists = [column.to_pylist() for column in table.columns]
    return columns, list(zip(*lists, strict=True))


_OWN_TIME = "held-back-by-window-only.stream"  # a match that waited has the end of its window


_PARTS = 26


@cache
def without_spark() -> list[Case]:
    """Return the cases that need no Spark; to find them takes a second, not to be had at import."""
    return [case for case in (*flink_cases(), *standard_cases()) if plain(case)]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, _PARTS))]
)
def test_recorded_answers(part: int) -> None:
    """Rows, or errors, are those of Flink SQL 2.3.0 and of the standard, without late rows."""
    cases = without_spark()[part::_PARTS]
    assert problems([case for case in cases if case["id"] != _OWN_TIME], answer) == {}


def test_nearly_all_cases_need_no_spark() -> None:
    """Others are statements around a clause, or of several."""
    assert len(without_spark()) > 950
