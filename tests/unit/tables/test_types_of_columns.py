# SPDX-License-Identifier: Apache-2.0
"""Columns of every type of pandas, polars and Arrow have the values that Spark gives them."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyflinkcep import Pattern, match, matchRecognize, matchSase
from pyflinkcep.charts import timeline_chart
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.testing import funnel, trace, whyNot

NAN = float("nan")
NULL = Pattern.begin("a").where("x is null")
ALL = Pattern.begin("a").where("id > 0")
_STAMPS = pd.to_datetime(["2024-01-01", None, "2024-01-02"])
_SPANS = pd.to_timedelta(["1s", None, "2s"])


def _pandas() -> dict[str, pd.Series[Any]]:
    plain: dict[str, Any] = {
        "int64": [1, 2, 3], "float64": [1, NAN, 3], "float32": [1, NAN, 3], "float16": [1, NAN, 3],
        "bool": [True, False, True], "uint64": [1, 2, 2**63 + 1], "Int64": [1, None, 3],
        "Int8": [1, None, 3], "UInt64": [1, None, 2**63 + 1], "Float64": [1, None, 3],
        "boolean": [True, None, False], "string": ["a", None, "c"], "category": ["a", None, "c"],
        "string[pyarrow]": ["a", None, "c"], "int64[pyarrow]": [1, None, 3],
        "double[pyarrow]": [1, None, 3], "datetime64[s]": [date(2024, 1, 1), None, None],
        "datetime64[us]": [date(2024, 1, 1), None, None], "Sparse[float]": [1.0, NAN, 3],
        "period[D]": ["2024-01-01", None, "2024-01-02"], "complex128": [1j, None, 2],
    }  # fmt: skip
    objects = {
        "texts": ["a", NAN, None], "whole": [1, None, 3], "numbers": [1, 2.5, NAN],
        "flags": [True, None, False], "several": [1, "a", NAN], "bytes": [b"a", None, b"c"],
        "decimals": [Decimal("1.5"), NAN, Decimal("2.25")], "lists": [[1, None], None, [3]],
        "arrays": [np.array([1.0, NAN]), None, np.array([])], "dicts": [{"a": 1}, None, {"b": "x"}],
        "dates": [date(2024, 1, 1), NAN, None], "times": [time(1), None, None],
        "moments": [datetime(2024, 1, 1), pd.NaT, None], "spans": [timedelta(1), None, pd.NaT],
        "both": [date(2024, 1, 1), datetime(2024, 1, 1, 5), None], "numpy": [np.int64(1), None, 3],
        "zones": [pd.Timestamp("2024-01-01", tz="UTC"), None, pd.NaT], "large": [2**70, None, 1],
        "all": [None, NAN, None], "uuid": [uuid.UUID(int=5), None, uuid.UUID(int=6)],
    }  # fmt: skip
    found = {name: pd.Series(values, dtype=name) for name, values in plain.items()}
    found |= {name: pd.Series(values, dtype=object) for name, values in objects.items()}
    found |= {
        "categories of numbers": pd.Series([1, None, 3]).astype("category"),
        "categories of times": pd.Series(_STAMPS).astype("category"),
        "datetime64[ns]": pd.Series(_STAMPS),
        "with a zone": pd.Series(_STAMPS.tz_localize("Europe/Paris")),
        "timedelta64": pd.Series(_SPANS),
        "interval": pd.Series(pd.interval_range(0, 3)),
        "ints in sparse": pd.Series(pd.arrays.SparseArray([0, 0, 1])),
        "lists of Arrow": pd.Series([[1], None, []], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        "dates of Arrow": pd.Series([None, None, None], dtype=pd.ArrowDtype(pa.date32())),
    }
    return found


def _polars() -> dict[str, pl.Series]:
    typed: dict[str, tuple[Any, list[Any]]] = {
        "objects": (pl.Object, [object(), 1, None]), "ints as objects": (pl.Object, [3, None, 1]),
        "categorical": (pl.Categorical, ["a", None, "b"]), "float": (pl.Float32, [1.5, NAN, None]),
        "enum": (pl.Enum(["b", "a"]), ["a", None, "b"]), "time": (pl.Time, [time(1), None, None]),
        "duration": (pl.Duration("ns"), [timedelta(1), None, timedelta(2)]),
        "datetime": (pl.Datetime("ms"), [datetime(2024, 1, 1), None, None]),
        "zone": (pl.Datetime("ns", "Europe/Paris"), [datetime(2024, 1, 1), None, None]),
        "date": (pl.Date, [date(2024, 1, 1), None, None]), "null": (pl.Null, [None] * 3),
        "decimal": (pl.Decimal(20, 2), [Decimal("1.5"), None, Decimal(2)]),
        "struct": (pl.Struct({"a": pl.Categorical}), [{"a": "u"}, None, {"a": None}]),
        "list": (pl.List(pl.String), [["a", None], None, []]),
        "array": (pl.Array(pl.Int8, 2), [[1, 2], None, [3, 4]]), "bytes": (pl.Binary, [b"a", None, b""]),
        "uint64": (pl.UInt64, [2**63 + 1, None, 1]), "int128": (pl.Int128, [2**70, None, 1]),
        "small int128": (pl.Int128, [3, None, 1]), "int8": (pl.Int8, [3, None, 1]),
        "boolean": (pl.Boolean, [True, None, False]), "text": (pl.String, ["b", None, "a"]),
    }  # fmt: skip
    return {name: pl.Series(values, dtype=kind) for name, (kind, values) in typed.items()}


def _frames() -> dict[str, tuple[Any, list[int]]]:
    """Return tables with a column of each type, and the rows in which it has no value."""
    frames: dict[str, tuple[Any, list[int]]] = {}
    for name, column in _pandas().items():
        frame = pd.DataFrame({"id": [1, 2, 3], "type": ["e"] * 3, "x": column.array})
        missing = np.flatnonzero(column.isna().to_numpy()) + 1
        frames[f"pandas {name}"] = frame, missing.tolist()
    for name, values in _polars().items():
        missing = [at for at, is_null in enumerate(values.is_null(), 1) if is_null]
        columns: dict[str, Any] = {"id": [1, 2, 3], "type": ["e"] * 3, "x": values}
        frames[f"polars {name}"] = pl.DataFrame(columns), missing
    return frames


FRAMES = _frames()


@pytest.mark.parametrize("name", FRAMES)
def test_missing_values_of_every_type(name: str) -> None:
    """What a library calls missing is NULL to SQL and None to functions, wherever it is looked at."""
    frame, missing = FRAMES[name]
    is_none = Pattern.begin("a").where(lambda event: event.x is None)
    first = ALL.followedByAny("b").where("x is null and last(a.id) = 1")

    assert [m["a"][0].id for m in match(NULL, frame)] == missing
    assert [m["a"][0].id for m in match(is_none, frame)] == missing
    assert [m["b"][0].id for m in match(first, frame)] == [row for row in missing if row > 1]
    assert [m["a"][0].id for m in match(is_none, {c: frame[c] for c in frame.columns})] == missing
    assert [m["a"][0]["id"] for m in trace(NULL, frame).matches] == missing
    assert f"{len(missing)} match" in str(whyNot(NULL, frame))
    reached = sum(row["partialMatches"] for row in funnel(NULL, frame).rows)
    assert reached == len(missing)
    found = matchSase("PATTERN SEQ(e a) WHERE skip_till_any_match", frame)
    assert [m["a"][0]["id"] for m in found if m["a"][0]["x"] is None] == missing
    chart = timeline_chart(match(NULL, frame), time="id")
    assert [value["time"] for value in chart.spec["data"]["values"]] == missing


_NO_TYPE = {"several", "both", "large", "period[D]", "complex128", "interval", "objects", "int128"}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("dialect", ["standard", "flink"])
def test_clauses_on_every_type(name: str, dialect: Any) -> None:
    """Clauses see the same; columns without a type of SQL are refused by their name and values."""
    frame, missing = FRAMES[name]
    clause = "ORDER BY id MEASURES A.id AS i, A.x AS v PATTERN (A) DEFINE A AS A.x IS NULL"
    if name.split(" ", 1)[1] in _NO_TYPE:
        with pytest.raises(InvalidArgumentError, match="the column 'x': expected values of one"):
            matchRecognize(frame, clause, dialect=dialect)
        return

    assert matchRecognize(frame, clause, dialect=dialect) == [{"i": i, "v": None} for i in missing]


@pytest.mark.parametrize("name", [name for name in FRAMES if name.startswith("pandas")])
def test_columns_of_pandas_as_arrow_has_them(name: str) -> None:
    """A column has the values that ``pyarrow.Table.from_pandas`` gives it, where it has a type."""
    frame, _ = FRAMES[name]
    if name.split(" ", 1)[1] in _NO_TYPE:
        return
    if "parse" in str(frame["x"].dtype):
        frame = frame.assign(x=frame["x"].sparse.to_dense())
    expected = pa.Table.from_pandas(frame, preserve_index=False)["x"].to_pylist()
    if "uuid" in name:
        expected = [None if value is None else str(value) for value in expected]

    assert [m["a"][0].x for m in match(ALL, frame)] == expected


# --- types of Arrow


def _stored(type_: pa.DataType, values: list[Any], storage: pa.DataType) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, pa.array(values, storage))


_TEXTS, _MAP = pa.list_view(pa.string_view()), pa.map_(pa.string(), pa.string_view())
_RUNS = pc.run_end_encode(pa.array([2, None, 1]))
ARROW: Mapping[str, tuple[Callable[[], pa.Array], list[Any]]] = {
    "dictionary of texts": (
        lambda: pa.array(["b", None, "a"]).dictionary_encode(),
        ["b", None, "a"],
    ),
    "dictionary of numbers": (lambda: pa.array([5, None, 3]).dictionary_encode(), [5, None, 3]),
    "null in a dictionary": (
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["b", None, "a"])),
        ["b", None, "a"],
    ),
    "uint64": (lambda: pa.array([2**63 + 1, None, 3], pa.uint64()), [2**63 + 1, None, 3]),
    "float16": (lambda: pa.array([1.5, None, 0.5], pa.float16()), [1.5, None, 0.5]),
    "view": (lambda: pa.array(["b", None, "a"], pa.string_view()), ["b", None, "a"]),
    "large": (lambda: pa.array([b"b", None, b"a"], pa.large_binary()), [b"b", None, b"a"]),
    "runs": (lambda: _RUNS, [2, None, 1]),
    "runs inside": (
        lambda: pa.StructArray.from_arrays([_RUNS], ["r"]),
        [{"r": 2}, {"r": None}, {"r": 1}],
    ),
    "views of lists": (
        lambda: pa.array([["b"], None, ["a", "c"]], _TEXTS),
        [["b"], None, ["a", "c"]],
    ),
    "fixed lists": (lambda: pa.array([[2], None, [1]], pa.list_(pa.int8(), 1)), [[2], None, [1]]),
    "uuid": (
        lambda: pa.array([bytes([2] * 16), None, bytes([1] * 16)], pa.uuid()),
        [str(uuid.UUID(bytes=bytes([2] * 16))), None, str(uuid.UUID(bytes=bytes([1] * 16)))],
    ),
    "json": (lambda: _stored(pa.json_(), ["{}", None, "[]"], pa.string()), ["{}", None, "[]"]),
    "bool8": (lambda: _stored(pa.bool8(), [1, None, 0], pa.int8()), [True, None, False]),
    "unknown extension": (
        lambda: _stored(pa.opaque(pa.int64(), "t", "v"), [2, None, 1], pa.int64()),
        [2, None, 1],
    ),
    "date64": (
        lambda: pa.array([172_800_000, None, 86_400_000], pa.date64()),
        [date(1970, 1, 3), None, date(1970, 1, 2)],
    ),
    "decimal32": (
        lambda: pa.array([Decimal(2), None, Decimal(1)], pa.decimal32(5, 1)),
        [2, None, 1],
    ),
    "time": (lambda: pa.array([5, None, 3], pa.time32("s")), [time(0, 0, 5), None, time(0, 0, 3)]),
}


@pytest.mark.parametrize("name", ARROW)
def test_types_of_arrow(name: str) -> None:
    """Whatever its layout, a column has its values, an order, keys, and a place in results."""
    make, values = ARROW[name]
    table = pa.table({"id": [1, 2, 3], "type": ["e"] * 3, "x": make()})
    pairs = Pattern.begin("a").next("b")
    orders = {"x": [2, 3, 1], "x DESC": [1, 3, 2], "x DESC NULLS FIRST": [2, 1, 3]}
    if isinstance(values[1], dict):  # no value is missing
        orders["x DESC NULLS FIRST"] = [1, 3, 2]

    assert [m["a"][0].x for m in match(ALL, table)] == values
    assert match(ALL, table).toArrow().num_rows == 3
    assert match(ALL, table).toPandas()["a"][0][0]["x"] == values[0]
    for order, expected in orders.items():
        clause = f"ORDER BY {order} ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS A.id > 0"
        found = matchRecognize(table, clause, dialect="standard")
        assert [row["id"] for row in found] == expected
        assert [row["x"] for row in found] == [values[row["id"] - 1] for row in found]
    if not isinstance(values[1], dict):
        found = match(pairs, pa.concat_tables([table, table]), key="x")
        assert [(m["a"][0].id, m["b"][0].id) for m in found] == [(1, 1), (2, 2), (3, 3)]


def test_maps_are_dicts() -> None:
    """A map is a dict, as in Spark's Rows, at every depth; it is no key, and has no order."""
    inside = pa.struct([("m", pa.list_(_MAP))])
    values = [{"m": [{"a": "u"}, None]}, None, {"m": None}]
    pairs = [{"m": [[("a", "u")], None]}, None, {"m": None}]
    maps = [{"k": "v"}, {}, None]
    columns = {"m": pa.array([[("k", "v")], [], None], _MAP), "x": pa.array(pairs, inside)}
    table = pa.table({"id": [1, 2, 3], **columns})
    found = match(ALL, table)
    clause = "ORDER BY id MEASURES A.m AS m, A.x AS x PATTERN (A) DEFINE A AS A.id > 0"

    assert [(m["a"][0].m, m["a"][0].x) for m in found] == list(zip(maps, values, strict=True))
    assert [a[0]["x"] for a in found.toPandas()["a"]] == values
    by_function = match(Pattern.begin("a").where(lambda e: bool(e.m) and e.m["k"] == "v"), table)
    assert [m["a"][0].id for m in by_function] == [1]
    for dialect in ("standard", "flink"):
        rows = matchRecognize(table, clause, dialect=dialect)
        assert [(row["m"], row["x"]) for row in rows] == list(zip(maps, values, strict=True))
        assert list(rows.toPandas()["m"]) == maps
    with pytest.raises(InputError, match="expected a key that can be compared, got map"):
        match(ALL, table.slice(0, 0), key="m")
    with pytest.raises(InputError, match=r"ORDER BY m: values of type map.* have no order"):
        matchRecognize(table, "ORDER BY m PATTERN (A) DEFINE A AS A.id > 0", dialect="standard")


def test_order_of_arrays_and_structs() -> None:
    """Arrays and structs are ordered part by part, NULL before all values and NaN after them."""
    lists = [[1, None], [1, 0], None, [1], [], [NAN], [2.5]]
    structs = [{"a": 2, "b": None}, {"a": 1, "b": "y"}, {"a": None, "b": "x"}, None] + [None] * 3
    table = pa.table({"id": range(7), "xs": pa.array(lists, pa.list_(pa.float64())), "s": structs})
    clause = "ORDER BY {} ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS A.id >= 0"

    for order, expected in (
        ("xs", [2, 4, 3, 0, 1, 6, 5]),
        ("xs DESC", [5, 6, 1, 0, 3, 4, 2]),
        ("s, id", [3, 4, 5, 6, 2, 1, 0]),
    ):
        found = matchRecognize(table, clause.format(order), dialect="standard")
        assert [row["id"] for row in found] == expected


def test_times_inside_of_events_of_pandas() -> None:
    """``toPandas()`` shows times inside of events as times, to the nanosecond, not as numbers."""
    moment = pd.Timestamp("2024-01-01 00:00:00.000000001")
    for events in (
        pd.DataFrame({"id": [1], "at": [moment]}),
        {"id": [1], "at": pd.Series([moment])},
    ):
        frame = match(ALL, events, timestamp="at").toPandas()
        assert frame["a"][0] == [{"id": 1, "at": moment}]
    rows = pa.table(
        {"id": [1], "s": pa.array([{"at": 1}], pa.struct([("at", pa.timestamp("ns"))]))}
    )
    clause = "ORDER BY id MEASURES A.s AS s PATTERN (A) DEFINE A AS A.id > 0"
    found = matchRecognize(rows, clause).toPandas()
    assert list(found["s"]) == [{"at": pd.Timestamp(1)}]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ({"n": 5}, "the column 'n': expected a list of values, got 5"),
        ({"n": {"a": 1}}, "the column 'n': expected a list of values, got {'a': 1}"),
        (pl.LazyFrame({"n": [1]}), "expected events, got <LazyFrame"),
    ],
)
def test_what_is_no_column(events: Any, message: str) -> None:
    """A single event in place of columns, and frames that are not computed, are refused."""
    with pytest.raises(InvalidArgumentError, match=message):
        match(ALL, events)


class _Stream:
    """A table of a library that only speaks Arrow's protocol."""

    def __init__(self, ids: list[Any]) -> None:
        self.ids = ids

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return pa.table({"id": self.ids}).__arrow_c_stream__(requested)


def test_tables_of_any_library() -> None:
    """What speaks Arrow's protocol of streams is a table."""
    assert match(ALL, _Stream([1, None])) == [{"a": [{"id": 1}]}]
    assert len(trace(ALL, _Stream([1, None])).matches) == 1
    clause = "ORDER BY id MEASURES A.id AS i PATTERN (A) DEFINE A AS A.id > 0"
    assert matchRecognize(_Stream([1]), clause) == [{"i": 1}]


def test_python_values_in_clauses() -> None:
    """Columns and dicts of Python may hold lists, dicts, times, and whole numbers beside doubles."""
    values: dict[str, list[Any]] = {
        "n": [1, 2.5, None], "xs": [[1, None], None, [2.5]], "s": [{"a": 1}, None, {"b": "x"}],
        "t": [time(1), None, time(2)],
    }  # fmt: skip
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    clause = "ORDER BY id MEASURES A.n AS n, A.xs AS xs, A.s AS s, A.t AS t"
    clause += " PATTERN (A) DEFINE A AS A.n > 0 OR A.xs IS NOT NULL"
    ids = {"id": [1, 2, 3]}
    dicts = [{"id": number, **row} for number, row in enumerate(rows)]
    structs = [{"a": 1, "b": None}, None, {"a": None, "b": "x"}]
    expected = [{**row, "s": own} for row, own in zip(rows, structs, strict=True)]

    for events in (dicts, {**ids, **values}, pd.DataFrame({**ids, **values})):
        for dialect in ("standard", "flink"):
            assert matchRecognize(events, clause, dialect=dialect) == expected


# --- columns without a value, and the order of events of one millisecond, in every form of events


def _answer(pattern: Pattern, events: Any) -> Any:
    try:
        found = match(pattern, events)
    except Exception as error:
        return type(error).__name__, str(error)
    return repr([*found]), repr(found.timeouts)


_UNKNOWN = [
    "flag and n > last(a.n)", "flag or n > last(a.n)", "s || last(a.s) = 'x'", "not last(a.flag)",
    "coalesce(flag, n > last(a.n))", "case when flag then true else n > last(a.n) end",
    "s like 'a%' or n > last(a.n)", "datediff(ts, last(a.ts)) is null", "stddev(a.x) is null",
    "x - last(a.x) > 1 or n > first(a.n)", "count(a.flag) = 0 and n > last(a.n)",
    "last(a.n) in (x, 0)", "upper(s) = last(a.s) or n > last(a.n)", "last(a.n) + x is null",
]  # fmt: skip


@pytest.mark.parametrize("text", _UNKNOWN)
def test_columns_that_are_always_null(text: str) -> None:
    """A column without a value has no type that a condition over stages could be wrong about."""
    columns: dict[str, Any] = {"n": [0, 1, 2]}
    columns |= {name: [None] * 3 for name in ("flag", "s", "ts", "x")}
    pattern = Pattern.begin("a").next("b").where(text)
    rows = pa.table(columns).to_pylist()
    found = [
        _answer(pattern, events)
        for events in (rows, columns, pa.table(columns), pd.DataFrame(rows), pl.DataFrame(rows))
    ]

    assert len(set(found)) == 1
    assert "Error" not in found[0][0]
    for name, value in (("flag", True), ("s", "u")):  # first unknown, then not
        table = pa.table({**columns, name: [None, None, value]})
        assert _answer(pattern, table) == _answer(pattern, table.to_pylist())


def test_order_to_the_microsecond() -> None:
    """Events of one millisecond are in the order of their microseconds, as in all jobs of Spark."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    us = [(0, 3), (0, 1), (5, 999), (0, 2), (5, 1)]
    times = [start + timedelta(milliseconds=ms, microseconds=own) for ms, own in us]
    rows = [{"at": at, "n": n, "k": n % 2, "type": "e"} for n, at in enumerate(times)]
    table = pa.Table.from_pylist(rows)
    in_ns = table.set_column(0, "at", table["at"].cast(pa.timestamp("ns", "UTC")))
    pattern = Pattern.begin("a").next("b")
    query = "PATTERN SEQ(e a, e b) WHERE strict_contiguity"

    for events in (rows, table, in_ns, pd.DataFrame(rows), pl.DataFrame(rows)):
        for timestamp in ("at", lambda event: event["at"]):
            found = match(pattern, events, timestamp=timestamp)
            by_key = match(pattern, events, timestamp=timestamp, key="k")

            assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in found] == [
                (1, 3), (3, 0), (0, 4), (4, 2)
            ]  # fmt: skip
            assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in by_key] == [(0, 4), (4, 2), (1, 3)]
        later = Pattern.begin("a").where("n = 3").followedByAny("b")
        lists = match(later, events, timestamp="at", evaluation="eventLists")
        assert sorted(m["b"][0]["n"] for m in lists) == [0, 2, 4]
        found = matchSase(query, events, timestamp="at")
        assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in found] == [(1, 3), (3, 0), (0, 4), (4, 2)]
        grows = Pattern.begin("a").next("b").where("n > last(a.n)")
        reached = {row["stage"]: row["partialMatches"] for row in funnel(grows, events, "at").rows}
        assert reached == {"a": 5, "b": 2}
        traced = trace(pattern, events, timestamp="at").matches
        assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in traced] == [
            (1, 3), (3, 0), (0, 4), (4, 2)
        ]  # fmt: skip
    arriving = {"timestamp": "at", "delayThreshold": timedelta(seconds=1)}
    for found in (match(pattern, rows, **arriving), trace(pattern, rows, **arriving).matches):
        assert [(m["a"][0]["n"], m["b"][0]["n"]) for m in found] == [(1, 3), (3, 0), (0, 4), (4, 2)]


def test_long_decimals_are_compared_exactly() -> None:
    """Decimals of more than 15 digits too, in every form of events; no warning is needed."""
    pattern = Pattern.begin("a").next("b").where("d > last(a.d)")
    for whole in ("1234567890123456789", "12345"):
        values = [Decimal(f"{whole}.{n}") for n in range(2)]
        columns = {"n": [0, 1], "d": values}
        for events in (pa.table(columns).to_pylist(), columns, pa.table(columns)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert len(match(pattern, events)) == 1


def test_decimals_of_an_event_have_the_digits_of_those_of_stages() -> None:
    """Equal numbers are equal after the same calculation, on lists and on tables."""
    rows = [{"p": Decimal(text)} for text in ("4.0000000001", "14.0000000000", "4.0000000001")]
    for made in ("p / 3", "p * p / 7", "p % 3 - 1", "round(p / 3, 1)", "p div 2"):
        pattern = Pattern.begin("a").followedByAny("b")
        pattern = pattern.where(f"{made} = {made.replace('p', 'last(a.p)')}")
        for events in (rows, pa.Table.from_pylist(rows)):
            assert len(match(pattern, events)) == 1
