# SPDX-License-Identifier: Apache-2.0
"""Events in every form have the same matches, and what looks at matches sees the same events."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from pyflinkcep import Pattern, match
from pyflinkcep.errors import ConditionError, InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.tables import Record
from pyflinkcep.tables.rows import table_of_dicts
from pyflinkcep.testing import funnel, trace, whyNot
from tests.unit.tables.support import ARROW, EVENTS, FOUND, LOW_HIGH, answer

NAN = float("nan")


def _categorical() -> pd.DataFrame:
    frame = pd.DataFrame(EVENTS, index=[7, 7, 3, 1, 7])
    return frame.astype({"k": "category", "n": "Int8"})


@pytest.mark.parametrize(
    "events",
    [
        ARROW,
        ARROW.to_batches()[0],
        ARROW.to_batches(2),
        pa.RecordBatchReader.from_batches(ARROW.schema, ARROW.to_batches(2)),
        pa.concat_tables([ARROW.slice(0, 1), ARROW.slice(1, 0), ARROW.slice(1)]),
        ARROW.set_column(1, "k", ARROW["k"].dictionary_encode()),
        ARROW.set_column(1, "k", ARROW["k"].cast(pa.string_view())),
        ARROW.set_column(0, "n", pc.run_end_encode(ARROW["n"])),
        {"n": ARROW["n"], "k": ARROW["k"].cast(pa.string_view())},
        pd.DataFrame(EVENTS),
        _categorical(),
        pl.DataFrame(EVENTS),
        pl.DataFrame(EVENTS).with_columns(pl.col("k").cast(pl.Enum(["k1", "k0"]))),
        pl.DataFrame(EVENTS).with_columns(pl.col("k").cast(pl.Categorical)),
        {"n": [1, 9, 2, 8, 5], "k": ["k1", "k1", "k0", "k0", "k1"]},
        {"n": np.array([1, 9, 2, 8, 5], np.uint8), "k": pa.array([e["k"] for e in EVENTS])},
        {"n": pd.Series([1, 9, 2, 8, 5], index=[1] * 5), "k": pl.Series([e["k"] for e in EVENTS])},
    ],
    ids=lambda events: type(events).__name__,
)
def test_forms_of_events(events: Any) -> None:
    """A table of any library, with any index, in any chunks and codes, has the same matches."""
    assert match(LOW_HIGH, events, key="k") == FOUND


@pytest.mark.parametrize("look", [trace, whyNot, funnel], ids=lambda look: look.__name__)
def test_what_looks_at_matches_sees_the_same_events(look: Any, tmp_path: Path) -> None:
    """Tables, files and batches have the rows that ``match`` finds in them, with their values."""
    pq.write_table(ARROW, tmp_path / "events.parquet")
    forms = [
        str(tmp_path),
        tmp_path / "events.parquet",
        dataset(tmp_path),
        ARROW.to_reader(2),
        ARROW.to_batches(2),
        {"n": np.array([1, 9, 2, 8, 5], np.int8), "k": ARROW["k"]},
        _categorical(),
    ]

    expected = str(look(LOW_HIGH, EVENTS, key="k"))
    assert [str(look(LOW_HIGH, events, key="k")) for events in forms] == [expected] * len(forms)


@pytest.mark.parametrize(
    "events",
    [EVENTS, pa.Table.from_pylist(EVENTS), pd.DataFrame(EVENTS), pl.DataFrame(EVENTS)],
    ids=lambda events: type(events).__name__,
)
def test_texts_are_compared_over_stages(events: Any) -> None:
    """Whatever type of text a library has, a text of an earlier event is compared with it."""
    same = Pattern.begin("a").where("n > 0").next("b").where("k = last(a.k)")

    assert [(m["a"][0].n, m["b"][0].n) for m in match(same, events)] == [(1, 9), (2, 8)]


@pytest.mark.parametrize("column", [pd.Series, lambda values: pl.Series("n", values)])
def test_a_column_alone_is_a_list_of_its_values(column: Any) -> None:
    """A column of any library that is not in a table has events without fields."""
    low = Pattern.begin("low").where(lambda n: n < 3).next("high").where(lambda n: n > 7)

    assert match(low, column([1, 9, 2])) == [{"low": [1], "high": [9]}]
    with pytest.raises(ConditionError, match="the event 1 has no column 'n'"):
        match(LOW_HIGH, column([1, 9]))


def test_views_inside_of_columns() -> None:
    """Texts and bytes in Arrow's newest layout are taken out of lists and structs, too."""
    inside = pa.struct([("texts", pa.list_(pa.string_view())), ("data", pa.binary_view())])
    values = [{"texts": ["u", None], "data": b"v"}, None]
    table = pa.table({"n": [1, 9], "inside": pa.array(values, inside)})
    (found,) = match(LOW_HIGH, table)

    assert [found[stage][0].inside for stage in ("low", "high")] == values


_AS_COLUMNS = [{}, {"n": None}, {"n": -1, "x": NAN, "s": None}, {"d": Decimal("1.50")}]
_ROW_BY_ROW = [
    {"n": 2**70}, {"n": True}, {"n": 2.0}, {"s": b"v"}, {"d": 1}, {"more": 1}, {"s": ["u"]},
    {"n": np.int64(2)}, {"at": datetime(2024, 1, 1, tzinfo=UTC)}, {"s": "\ud800"}, Record(n=2),
]  # fmt: skip


@pytest.mark.parametrize("change", [*_AS_COLUMNS, *_ROW_BY_ROW], ids=repr)
def test_dicts_as_columns(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many dicts are matched in columns if these hold all they do; what is found are their values."""
    one = {"n": 1, "s": "u", "x": NAN, "d": Decimal("2.5"), "at": datetime(2024, 1, 1)}
    events = [one, {**one, "n": 9}, change if type(change) is Record else one | change, one]
    patterns = [
        Pattern.begin("a").where("n < 3").followedBy("b").where(second).within(timedelta(hours=1))
        for second in ("n > 7", "n > last(a.n)", lambda event: event.n == 9)
    ]
    how = {"key": "s"} if "s" not in change else {}
    expected = [answer(pattern, events, **how) for pattern in patterns]
    monkeypatch.setattr("pyflinkcep.tables.rows._MANY", 0)

    assert [answer(pattern, events, **how) for pattern in patterns] == expected
    assert (table_of_dicts(events) is None) == (change not in _AS_COLUMNS)
    if change in _AS_COLUMNS:
        (found,) = match(patterns[0], events)
        assert found["a"][0] == {**one}
        assert found["a"][0].x is one["x"]


def test_missing_values_of_pandas() -> None:
    """NaN, which pandas writes for a missing value, is NULL, as on Spark; that of NumPy is a number."""
    frame = pd.DataFrame({"s": ["u", NAN, "v"], "x": [1.0, NAN, 2.0]})
    pattern = Pattern.begin("a").where("s is null and x is null").next("b").where("s = 'v'")
    (found,) = match(pattern, frame)

    assert found["a"][0] == {"s": None, "x": None}
    assert match(Pattern.begin("a").where("x > 1"), frame) == [{"a": [{"s": "v", "x": 2.0}]}]
    (found,) = match(Pattern.begin("a").where("x > 2"), {"x": frame["x"].to_numpy()})
    assert found["a"][0].x != found["a"][0].x


@pytest.mark.parametrize("kind", [object, "category"])
@pytest.mark.parametrize("form", [pd.DataFrame, dict])
def test_missing_values_beside_any_values(kind: Any, form: Any) -> None:
    """They are NULL as well if another column has values of several types, read row by row."""
    frame = pd.DataFrame({"s": ["u", NAN, "v"], "x": [1.0, NAN, 2.0], "other": [1, "a", NAN]})
    events = form(frame.astype({"s": kind}))
    (found,) = match(Pattern.begin("a").where("s is null").next("b").where("s = 'v'"), events)

    assert found == {
        "a": [{"s": None, "x": None, "other": "a"}],
        "b": [{"s": "v", "x": 2.0, "other": None}],
    }
    assert "1 match" in str(trace(Pattern.begin("a").where("s is null"), events))


def test_files(tmp_path: Path) -> None:
    """A path is a file or a folder of Parquet; where there is nothing is an error."""
    for number in range(2):
        pq.write_table(ARROW.slice(number * 2, 2), tmp_path / f"{number}.parquet")

    assert match(LOW_HIGH, str(tmp_path), key="k") == FOUND
    assert match(LOW_HIGH, tmp_path / "0.parquet") == FOUND[:1]
    with pytest.raises(InvalidArgumentError, match="where there is nothing"):
        match(LOW_HIGH, "no.parquet")
    (tmp_path / "2.parquet").write_text("no Parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        match(LOW_HIGH, tmp_path / "2.parquet")


def test_no_rows() -> None:
    """An empty table has no matches, and columns of matches with the right types."""
    grows = LOW_HIGH.next("more").where("n > last(high.n)")
    found = match(grows, ARROW.slice(0, 0), key="k")

    assert (list(found), found.timeouts, found.toArrow().num_rows) == ([], [], 0)
    assert found.toArrow().column_names == ["k", "matchTimestamp", "low", "high", "more"]
    assert match(grows, [], "at", "k", timedelta(0)) == match(grows, iter(())) == []


def _written(folder: Path, **columns: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{len(list(folder.iterdir()))}.parquet")


def test_folders_of_partitions(tmp_path: Path) -> None:
    """What folders are named after are columns, last and in the types that Spark infers."""
    name = "day={}/k={}/at={}/text={}"
    _written(tmp_path / name.format("2024-01-01", 1, "2024-01-01 10%3A00%3A00", "a%20b"), n=[1, 2])
    last = "__HIVE_DEFAULT_PARTITION__"
    _written(tmp_path / name.format(last, 20_000_000_000, last, "1"), n=[9], k=[5])
    (tmp_path / "_SUCCESS").touch()
    found = match(Pattern.begin("a"), tmp_path)
    first = {"day": date(2024, 1, 1), "k": 1, "at": datetime(2024, 1, 1, 10), "text": "a b"}

    assert [m["a"][0] for m in found] == [
        {"n": 1, **first}, {"n": 2, **first},
        {"n": 9, "day": None, "k": 20_000_000_000, "at": None, "text": "1"},
    ]  # fmt: skip
    assert list(found[0]["a"][0]) == ["n", "day", "k", "at", "text"]
    assert match(LOW_HIGH, tmp_path / "day=2024-01-01", key="text") == []
    (file,) = (tmp_path / "day=2024-01-01").rglob("*.parquet")
    assert match(Pattern.begin("a"), file) == [{"a": [{"n": 1}]}, {"a": [{"n": 2}]}]


def test_files_of_several_schemas(tmp_path: Path) -> None:
    """A folder has the columns of all of its files, in types that hold the values of all."""
    _written(tmp_path, n=pa.array([1], pa.int32()))
    _written(tmp_path, n=pa.array([2**40]), more=["x"])

    assert [m["a"][0] for m in match(Pattern.begin("a"), tmp_path)] == [
        {"n": 1, "more": None}, {"n": 2**40, "more": "x"}
    ]  # fmt: skip
    _written(tmp_path, n=["text"])
    with pytest.raises(InputError, match="incompatible types: int64 vs string"):
        match(LOW_HIGH, tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="has no file of Parquet"):
        match(LOW_HIGH, tmp_path / "none")


_ROWS = [
    {"id": 1, "at": datetime(2024, 1, 1, 10), "who": "NA", "x": 1.5, "note": 'a, "b"\nc'},
    {"id": 2, "at": datetime(2024, 1, 1, 10, 1), "who": None, "x": None, "note": ""},
    {"id": 3, "at": datetime(2024, 1, 1, 10, 2), "who": "bob", "x": 2.0, "note": "x"},
]
_CSV = """id,at,who,x,note
1,2024-01-01 10:00:00,NA,1.5,"a, ""b""
c"
2,2024-01-01T10:01:00,,,""
3,2024-01-01 10:02:00,bob,2,x
"""
_JSON = "".join(
    json.dumps({k: v for k, v in row.items() if v is not None}, default=str) + "\n" for row in _ROWS
)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", _CSV), ("A.CSV", _CSV), ("a.tsv", _CSV.replace("a, ", "a; ").replace(",", "\t").replace("a; ", "a, "))]
    + [(f"a.{end}", _JSON) for end in ("json", "jsonl", "ndjson")],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", ".gz"])
def test_files_of_text(name: str, text: str, end: str, tmp_path: Path) -> None:
    """CSV and JSON lines have typed columns, alone, compressed, and in folders of partitions."""
    folder = tmp_path / "day=2024-01-01"
    folder.mkdir()
    data = text.encode()
    (folder / f"{name}{end}").write_bytes(gzip.compress(data) if end else data)
    day = {"day": date(2024, 1, 1)}

    alone = match(Pattern.begin("a"), folder / f"{name}{end}", timestamp="at")
    assert [m["a"][0] for m in alone] == _ROWS
    assert [m["a"][0] for m in match(Pattern.begin("a"), tmp_path)] == [row | day for row in _ROWS]


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("padding", [0, 1 << 20])
@pytest.mark.parametrize("more", ["", '\n{"n": 9, "at": 2}'])
def test_a_line_of_json_alone(end: str, padding: int, more: str, tmp_path: Path) -> None:
    """A file of one line, or whose first line is longer than what is read at once, has its values."""
    line = json.dumps({"n": 1, "at": 1, "text": "x" * padding})
    file, packed = tmp_path / "events.jsonl", tmp_path / "packed.jsonl.gz"
    file.write_text(line + more + end)
    packed.write_bytes(gzip.compress(file.read_bytes()))
    low = Pattern.begin("low").where("n > 0")

    for path in (file, packed):
        found = match(low, str(path), timestamp="at")
        assert [one["low"][0].n for one in found] == ([1, 9] if more else [1])


def test_a_folder_of_several_formats_is_refused(tmp_path: Path) -> None:
    """A file of another format is not read as if it were of the first."""
    _written(tmp_path, n=[1])
    (tmp_path / "a.csv").write_text("n\n1\n")

    with pytest.raises(InputError, match="has files of CSV and Parquet, such as"):
        match(LOW_HIGH, tmp_path)
    (tmp_path / "0.parquet").unlink(missing_ok=True)
    (tmp_path / "b.csv").write_text("n\nx\n")
    with pytest.raises(InputError, match=r"cannot be read as CSV: .*int64 vs string"):
        match(LOW_HIGH, tmp_path)


@pytest.mark.parametrize(
    ("kind", "log"),
    [
        ("Delta", "_delta_log/0.json"),
        ("Hudi", ".hoodie/hoodie.properties"),
        ("Iceberg", "metadata/v1.metadata.json"),
    ],
)
def test_tables_with_a_log(kind: str, log: str, tmp_path: Path) -> None:
    """Files of a table whose log says which rows there are, are refused: all, one, or beside others."""
    table = tmp_path / "warehouse" / "table"
    _written(table / "day=1", n=[1])
    assert len(match(Pattern.begin("a"), table)) == 1
    (table / log).parent.mkdir()
    (table / log).touch()

    for path in (table, table / "day=1", table / "day=1" / "0.parquet", table.parent):
        for look in (match, trace):
            with pytest.raises(NotSupportedError, match=rf"got the {kind} table '.*/table'"):
                look(LOW_HIGH, path)
