# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet, of which only the columns that a pattern or clause needs are read at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pyflinkcep import Pattern, match, matchRecognize
from pyflinkcep.conditions import SimpleCondition
from pyflinkcep.errors import ConditionError, InputError
from pyflinkcep.tables import stored

TABLE = pa.table(
    {
        "user": ["ann", "bob", "ann", "bob", "ann", "ann"],
        "at": [1, 2, 3, 4, 5, 6],
        "Price": [5, 9, 12, 3, 1, 30],
        "unit price": [1.0, 2.0, None, 4.0, 5.0, 6.0],
        "where": [{"city": "x", "zip": n} for n in range(6)],
        "note": list("abcdef"),
    }
)
RISE = (
    Pattern.begin("low").where("price < 10").followedBy("high").where("price > 2 * last(low.price)")
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    # Tables are read of it, since the kernel does not decompress it.
    pq.write_table(TABLE, tmp_path / "events.parquet", compression="gzip")
    return str(tmp_path / "events.parquet")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each table that is read from files."""
    found: list[list[str]] = []
    columns_of: Callable[..., Any] = stored.columns_of

    def seen(*args: Any) -> Any:
        table = columns_of(*args)
        found.append(table.column_names)
        return table

    monkeypatch.setattr(stored, "columns_of", seen)
    return found


def test_only_what_conditions_time_and_key_need_is_read(path: str, read: list[list[str]]) -> None:
    """Names in SQL are those of columns whatever their capitals."""
    found = match(RISE, path, timestamp="at", key="user")
    assert len(found) == 2
    assert read == [["user", "at", "Price"]]


def test_what_is_looked_at_is_whole(path: str, read: list[list[str]]) -> None:
    """Matches, timeouts and tables of them have all columns, which are read once."""
    found, usual = match(RISE, path, "at", "user"), match(RISE, TABLE, "at", "user")
    assert found == usual
    assert found.timeouts == usual.timeouts
    assert found.toArrow().equals(usual.toArrow())
    assert read == [["user", "at", "Price"], TABLE.column_names]  # and read once


@pytest.mark.parametrize(
    "condition", ["`unit price` > 3", "where.zip > 2", "note IN ('a', 'c')", "true", "AT > 2"]
)
def test_answers_are_those_of_the_whole_table(path: str, condition: str) -> None:
    """Names in backquotes, fields of structs and capitals are found too."""
    pattern = Pattern.begin("a").where(condition).next("b").where(f"NOT ({condition})")
    assert match(pattern, path, key="user") == match(pattern, TABLE, key="user")


def test_functions_see_all_columns(path: str) -> None:
    """A condition in Python may read any of them."""
    pattern = Pattern.begin("a").where(lambda event: event.note == "c")
    assert [one["a"][0].user for one in match(pattern, path)] == ["ann"]
    either = (
        Pattern.begin("a").where("price > 20").where(SimpleCondition.of(lambda e: e.note > "a"))
    )
    assert len(match(either, path)) == 1


def test_a_folder_keeps_its_partitions(tmp_path: Path, read: list[list[str]]) -> None:
    """A column that is a folder's name is read as any other."""
    ds.write_dataset(
        TABLE.drop_columns("where"), tmp_path, format="parquet",
        partitioning=["user"], partitioning_flavor="hive",
    )  # fmt: skip
    assert len(match(RISE, tmp_path, timestamp="at", key="user")) == 2
    assert read == [["at", "Price", "user"]]


def test_errors_are_those_of_the_whole_table(path: str) -> None:
    """Their hints name all columns."""
    for wrong in ("prise > 3", "price > 'x'", "nott = 'a'"):
        pattern = Pattern.begin("a").where(wrong)
        answers = []
        for events in (path, TABLE):
            with pytest.raises(Exception) as raised:  # noqa: PT011 - of whatever kind
                match(pattern, events)
            answers.append((type(raised.value), str(raised.value)))
        assert answers[0] == answers[1]
    with pytest.raises(ConditionError, match="by zero"):
        match(Pattern.begin("a").where("1 / (price - 5) > 0"), path)


@pytest.mark.parametrize("end", ["csv", "jsonl", "parquet"])
def test_what_is_read_whole_is_read_once(tmp_path: Path, read: list[list[str]], end: str) -> None:
    """Files that do not store columns apart, and those of which all columns are needed."""
    table = TABLE.select(["user", "at", "Price"])
    path = tmp_path / f"events.{end}"
    if end == "csv":
        csv.write_csv(TABLE.drop_columns("where"), path)
    elif end == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in TABLE.to_pylist()))
    else:
        pq.write_table(table, path)
    clause = (
        "PARTITION BY user ORDER BY at MEASURES A.price AS p PATTERN (A) DEFINE A AS A.price > 3"
    )
    found = match(RISE, path, timestamp="at", key="user")
    assert [one["low"][0].Price for one in found] == [5, 1]
    assert len(read) == 1
    assert len(matchRecognize(path, clause, "standard")) == 4
    assert len(read) == 2


def test_files_that_change_meanwhile_are_refused(path: str) -> None:
    """Rows of other files are not shown as if they had matched."""
    found = match(RISE, path, key="user")
    assert len(found) == 2
    pq.write_table(TABLE.slice(1), path)
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match="have changed since they were matched"):
        found[0]


def test_a_clause_reads_what_it_names(path: str, read: list[list[str]]) -> None:
    """With ALL ROWS PER MATCH, which shows all columns, it reads all."""
    clause = (
        "PARTITION BY user ORDER BY at MEASURES A.price AS p, B.note AS n {rows} "
        "PATTERN (A B) DEFINE A AS A.price < 10"
    )
    for dialect in ("flink", "standard"):
        text = clause.format(rows="ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW")
        if dialect == "flink":
            text = text.replace("ORDER BY at", "ORDER BY ts")
        table = TABLE.append_column("ts", TABLE["at"].cast(pa.timestamp("ms")))
        pq.write_table(table, path)
        assert matchRecognize(path, text, dialect) == matchRecognize(table, text, dialect)
        needed = {"user", "ts" if dialect == "flink" else "at", "Price", "note"}
        assert needed <= set(read[-1]) < set(table.column_names)
    text = clause.format(rows="ALL ROWS PER MATCH")
    found = matchRecognize(path, text, "standard")
    assert (
        found.toArrow().column_names
        == matchRecognize(table, text, "standard").toArrow().column_names
    )


def test_a_window_and_times_as_times(tmp_path: Path) -> None:
    """Times are read in their own type."""
    table = TABLE.set_column(1, "at", TABLE["at"].cast(pa.timestamp("ms")))
    pq.write_table(table, tmp_path / "t.parquet")
    soon = RISE.within(timedelta(milliseconds=2))
    assert match(soon, tmp_path / "t.parquet", "at", "user") == match(soon, table, "at", "user")
