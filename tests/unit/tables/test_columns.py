# SPDX-License-Identifier: Apache-2.0
"""``match`` on columns: the answers of a list of the same events, whatever their types."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pyflinkcep
from pyflinkcep import (
    CepError,
    Pattern,
    TimeUnitWarning,
    charts,
    local,
    match,
    matchEql,
    matchMany,
    matchRecognize,
    matchSase,
    testing,
    windowFunnel,
)
from pyflinkcep.errors import ConditionError, InputError, InvalidArgumentError, StateLimitError
from pyflinkcep.tables.column_match import ColumnMatch
from pyflinkcep.testing import compare, funnel, trace, whyNot
from tests.unit.tables.support import ARROW, EVENTS, FOUND, LOW_HIGH, answer

NAN = float("nan")
TABLE = pa.table(
    {
        "key": ["a", "b", None, "a", None, "b", "a", "b"],
        "at": [5, 3, 1, 4, 2, 8, 8, 7],
        "n": pa.array([1, 2, None, 3, 2, 1, None, 5], pa.int32()),
        "x": [1.5, NAN, None, -0.0, 2.0, 0.0, 7.25, NAN],
        "s": pa.array(["u", "v", None, "ü", "u", "", "w", "u"]).dictionary_encode(),
        "flag": [True, False, None, True, True, False, False, True],
        "ts": pa.array(
            [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC) + timedelta(hours=n)
             for n in range(8)],
            pa.timestamp("us", "Europe/Berlin"),
        ),
        "day": [date(2024, 2, 28) + timedelta(days=n) for n in range(8)],
        "money": [Decimal(n) / 4 for n in range(8)],
        "items": [[n] * (n % 3) for n in range(8)],
        "where": [{"lat": float(n), "name": f"p{n}"} for n in range(8)],
        "keys": [2**62, -(2**62), 0, 1, 2, 3, 4, 5],
        "big": pa.array([2**63 + n for n in (3, 1, 2, 5, 4, 0, 7, 6)], pa.uint64()),
        "gone": pa.nulls(8),
    }
)  # fmt: skip

CONDITIONS = [
    "n < 3", "n = 2 or n is null", "not (n > 1)", "n in (1, 5)", "coalesce(n, 7) > 4",
    "n + 1 > 2 * n - 1", "n / 2 >= 1", "n % 2 = 1", "x > 1", "x = 'NaN'", "x >= -0.0 and x < 2",
    "isnan(x)", "s = 'u'", "s > 'u'", "s like '_'", "s <> 'v' and s is not null", "upper(s) = 'U'",
    "startswith(s, 'u')", "flag", "not flag", "flag is null", "flag = (n < 3)", "KEY = 'a'",
    "ts > timestamp '1970-01-01 02:00:00 UTC'", "day >= date '2024-03-01'", "money > 0.5",
    "money = 1", "size(items) > 1", "where.lat > 3", "where.name = 'p3'", "keys + keys > 0",
    "keys * 2 < 0 or key = 'a'", "1 / (n - 1) > 0", "case when n = 1 then x > 1 else flag end",
    "least(n, 2) = 2", "true", "false", "null", "round(x, 1) = 1.5", "floor(x) = 7",
]  # fmt: skip


def _list(table: pa.Table) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = table.to_pylist()
    return listed


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_in_sql(text: str) -> None:
    """A condition holds for the same events, NULL and NaN included, and fails with one error."""
    pattern = Pattern.begin("a").where(text).followedBy("b").within(timedelta(milliseconds=3))
    how = {"timestamp": "at", "key": "key"}

    assert answer(pattern, TABLE, **how) == answer(pattern, _list(TABLE), **how)


METHODS = [name for name in dir(dict) if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_columns_may_be_named_as_the_methods_of_a_dict(name: str) -> None:
    """Such as `items`: in SQL and functions, in what traces say, in charts, whatever the events."""
    table = pa.table({name: [1, 5, 2, 7], "at": range(4)})
    pattern = Pattern.begin("low").where(f"`{name}` < 3").next("high").where(f"abs(`{name}`) > 4")
    by_function = Pattern.begin("low").where(lambda event: event[name] < 3)
    for events in (table, table.to_pylist()):
        found = match(pattern, events)
        assert [[one["low"][0][name], one["high"][0][name]] for one in found] == [[1, 5], [2, 7]]
        assert len(match(by_function, events)) == 2
        assert f"{name}=1" in str(trace(pattern, events))
        assert f"`{name}` < 3: true for 2 of 4 events" in str(whyNot(pattern, events))
        assert len(funnel(pattern, events).rows) == 2
        chart = charts.timeline_chart(list(found), key=name, time="at")
        assert chart is not None


CAPITALS = TABLE.rename_columns([name.capitalize() for name in TABLE.column_names])


@pytest.mark.parametrize("text", CONDITIONS)
def test_names_in_sql_are_those_of_columns_whatever_their_capitals(text: str) -> None:
    """A condition holds for the same rows if the columns are written in other capitals."""
    pattern = Pattern.begin("a").where(text)
    found = []
    for table, row in ((TABLE, "row"), (CAPITALS, "Row")):
        numbered = table.append_column(row, pa.array(range(8)))
        try:
            found.append([getattr(one["a"][0], row) for one in match(pattern, numbered)])
        except ConditionError as error:
            found.append(type(error.__cause__))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "text",
    [
        "n > last(a.n)", "x > avg(a.x)", "s = last(a.s)", "ts > last(a.ts)", "money > sum(a.money)",
        "upper(s) = last(upper(a.s))", "day - last(a.day) > interval '1' day", "flag = last(a.flag)",
        "n + 1 > last(a.n + 1)", "count(a.n) = 1", "where.lat > last(a.where.lat)",
        "(n > 1) = (last(a.n) > 1)", "(x is null) = last(a.flag)", "big > last(a.big)",
        "gone > last(a.n) or n = 1",
    ],
)  # fmt: skip
def test_conditions_over_stages(text: str) -> None:
    """SQL over stages reads columns of all types, and what is computed of them."""
    pattern = Pattern.begin("a").followedByAny("b").where(text)
    how = {"timestamp": "at", "key": "key"}

    assert answer(pattern, TABLE, **how) == answer(pattern, _list(TABLE), **how)


def test_programs_answer_conditions() -> None:
    """What programs have is computed on columns, and the rest event by event."""
    pattern = Pattern.begin("a").where("n < 3").next("b").where("size(items) > 1")
    analysed = ColumnMatch.analysed(pattern, TABLE, None, None)

    (word,) = analysed.in_order(1).placed.words
    assert (word > 0).tolist() == [True, True, False, False, True, True, False, False]


# --- columns


@pytest.mark.parametrize(
    "events",
    [pa.table([[1], [2]], names=["n", "n"]), pd.DataFrame([[1, 2]], columns=["n", "n"])],
    ids=["arrow", "pandas"],
)
def test_two_columns_of_one_name(events: Any) -> None:
    """They are refused, since a record has one of each."""
    with pytest.raises(InvalidArgumentError, match="two columns are named 'n'"):
        match(LOW_HIGH, events)


def test_missing_columns() -> None:
    """A column that there is not is named, with those that there are, before anything is matched."""
    for pattern in (Pattern.begin("a").where("m > 1"), Pattern.begin("a").where("m > last(a.n)")):
        with pytest.raises(ConditionError, match="no column 'm'") as caught:
            match(pattern, ARROW)
        assert "the columns are ['n', 'k']" in str(caught.value)
    for what in ("timestamp", "key"):
        with pytest.raises(InputError, match=f"{what}='m': the events have no column 'm'"):
            match(LOW_HIGH, ARROW, **{what: "m"})


def test_columns_that_records_have_as_methods() -> None:
    """A column may be called like a method of dict, or like nothing that Python could name."""
    names = ["items", "keys", "get", "_row", "__class__", "a b", "1"]
    table = pa.table({name: [place, 9] for place, name in enumerate(names)})
    pattern = Pattern.begin("a").where(lambda e: e.items < 3 and e["a b"] == 5 and e[0] == 0)

    assert match(pattern, table) == [{"a": table.to_pylist()[:1]}]


# --- times and keys

_OF_TIME = Pattern.begin("a").next("b").within(timedelta(milliseconds=2))


def test_no_times() -> None:
    """Where there are no events, the times of matches have the type of the events' times as well."""
    moments = pa.array([], pa.timestamp("us", "UTC"))
    found = match(_OF_TIME, pa.table({"n": [], "t": moments}), timestamp="t").toArrow()

    assert found.schema.field("matchTimestamp").type == moments.type


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_times_of_any_unit(unit: str, zone: str | None) -> None:
    """Timestamps before 1970 too are floored to milliseconds; equal ones keep their order."""
    times = [
        datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC) + timedelta(seconds=n) for n in (4, 0, 2)
    ]
    if unit in ("us", "ns"):
        times = [time + timedelta(microseconds=n) for n, time in enumerate(times, 999)]
    if zone is None:
        times = [time.replace(tzinfo=None) for time in times]
    table = pa.table({"at": pa.array(times, pa.timestamp(unit, zone)), "n": [0, 1, 2]})
    longer = Pattern.begin("a").next("b").within(timedelta(seconds=3))
    found = match(longer, table, timestamp="at")

    assert [[m["a"][0].n, m["b"][0].n] for m in found] == [[1, 2], [2, 0]]
    assert answer(longer, table, timestamp="at") == answer(longer, _list(table), timestamp="at")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([1, None]), "expected epoch milliseconds or a datetime, got None"),
        (pa.array([1.0, 2.0]), "expected epoch milliseconds or a datetime, got 1.0"),
        (pa.array([date(2024, 1, 1)] * 2), "expected epoch milliseconds or a datetime"),
        (pa.array([1, -(2**63)]), "expected epoch milliseconds of 64 bits"),
        (pa.array([1, 2**64 - 1], pa.uint64()), "expected epoch milliseconds of 64 bits"),
        (pa.array([None, datetime(2024, 1, 1)]), "expected epoch milliseconds or a datetime"),
        (pa.array([True, False]), "expected epoch milliseconds or a datetime, got True"),
    ],
)
def test_what_is_no_time(times: pa.Array, message: str) -> None:
    """A missing or impossible time is an error that shows the event, as in a list."""
    with pytest.raises(InputError, match=message) as caught:
        match(_OF_TIME, pa.table({"at": times, "n": [1, 2]}), timestamp="at")

    assert "'n': " in str(caught.value)


KEYS: list[Any] = [
    pa.array(["b", "a", None, "b", "a", None]),
    pa.array([0.0, NAN, None, -0.0, NAN, None]),
    pa.array([Decimal("1.50"), Decimal("2"), None] * 2),
    pa.array([[1, 2], [2], None] * 2),
    pa.array([True, False, None] * 2),
    pa.array(["x", "y", None] * 2).dictionary_encode(),
    pa.array([datetime(2024, 1, 1), datetime(1960, 1, 1), None] * 2),
]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: str(keys.type)[:12])
@pytest.mark.parametrize("how", ["column", "columns", "function"])
def test_keys_of_any_type(keys: pa.Array, how: str) -> None:
    """Null and NaN are keys, -0.0 is 0.0, and the key of the earliest event comes first."""
    table = pa.table({"k": keys, "at": [4, 3, 5, 7, 8, 6], "n": range(6)})
    key: Any = {"column": "k", "columns": ["k", "k"], "function": lambda e: e.k}[how]
    found = match(Pattern.begin("a").next("b"), table, timestamp="at", key=key)

    assert [(m["a"][0].n, m["b"][0].n) for m in found] == [(1, 4), (0, 3), (2, 5)]


@pytest.mark.parametrize("type_", ["float16", "float32", "float64"])
def test_forms_of_zero_and_nan_are_one_key(type_: str) -> None:
    """Floats that Spark groups together are one key, whatever their bits."""
    bits = np.array(
        [0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0000, 0x7FF8_0000_0000_0001], np.uint64
    )
    nans = bits.view(np.float64)
    keys = pa.array(np.r_[nans, 0.0, -0.0, 0.0].astype(type_))
    pattern = Pattern.begin("a").next("b").next("c")

    found = match(pattern, {"k": keys, "n": range(6)}, key="k")
    assert [[one[stage][0].n for stage in "abc"] for one in found] == [[0, 1, 2], [3, 4, 5]]


def test_functions_of_records() -> None:
    """Times, keys and conditions may be functions; a condition sees earlier events as records."""
    pattern = Pattern.begin("a").where(lambda e: e.n == 1).followedBy("b").where(_more)
    found = match(pattern, ARROW, timestamp=lambda e: 10 - e.n, key=lambda e: e["k"])

    assert found == []
    assert match(pattern, ARROW) == [{"a": [EVENTS[0]], "b": [EVENTS[1]]}]


def _more(event: Any, ctx: Any) -> bool:
    (first,) = ctx.getEventsForPattern("a")
    return bool(dict(event) == {"n": event.n, "k": event["k"]} and event.n > first.n)


def test_limits() -> None:
    """A bound on partial matches is kept, the key is told as the user has it."""
    table = pa.table({"k": ["x", "y", "y", "y"], "n": [1, 1, 1, 1]})
    pattern = Pattern.begin("a").where("n = 1").followedByAny("b").where("n = 2")
    with pytest.raises(
        StateLimitError, match="2 partial matches, maxPartialMatches is 1"
    ) as caught:
        match(pattern, table, key="k", maxPartialMatches=1)
    dropped = match(
        pattern, table, key="k", maxPartialMatches=1, onTooManyPartialMatches="dropOldest"
    )

    assert "'y'" in str(caught.value)
    assert dropped.numPartialMatchesDropped == 2


# --- what is found


@pytest.mark.slow
def test_a_sequence_of_matches() -> None:
    """Matches of a table are used like a list of them."""
    table = pa.table({"n": [1, 9] * 1500})
    found = match(LOW_HIGH, table)
    listed = list(found)

    assert len(found) == 1500
    assert found == listed
    assert listed == found
    assert (found[0], found[-1], found[1400]) == (listed[0], listed[-1], listed[1400])
    assert (found[1:3], found[::700], found[:-1499]) == (listed[1:3], listed[::700], listed[:1])
    assert (found[:1] + found)[:2] == [listed[0]] * 2
    assert listed[0] in found
    assert (repr(match(LOW_HIGH, ARROW, key="k")), bool(match(LOW_HIGH, ARROW[:0]))) == (
        repr(FOUND), False,
    )  # fmt: skip
    with pytest.raises(IndexError):
        found[1500]


def test_columns_of_matches() -> None:
    """The columns are those of ``toDF()``: key, time, and a list of events for each stage."""
    found = match(LOW_HIGH.within(timedelta(milliseconds=50)), TABLE, timestamp="ts", key="key")
    table = match(LOW_HIGH, ARROW, key="k").toArrow()

    assert found.toArrow().schema.field("matchTimestamp").type == TABLE.schema.field("ts").type
    assert table.to_pylist() == [
        {"k": "k1", "matchTimestamp": 1, **FOUND[0]},
        {"k": "k0", "matchTimestamp": 3, **FOUND[1]},
    ]
    assert match(LOW_HIGH, ARROW, key="k").toPandas()["k"].tolist() == ["k1", "k0"]
    assert match(LOW_HIGH, ARROW, key="k").toPolars()["high"].to_list() == [
        one["high"] for one in FOUND
    ]


def test_columns_of_matches_have_names_of_their_own() -> None:
    """A key that is named as a stage is found, but not shown in columns, where it would be twice."""
    table = ARROW.rename_columns({"k": "low"})

    assert len(match(LOW_HIGH, table, key="low")) == len(FOUND)
    with pytest.raises(InputError, match=r"two columns named \['low'\]"):
        match(LOW_HIGH, table, key="low").toArrow()


_WITHOUT_PANDAS = """
import sys
import pyarrow as pa
from pyflinkcep import Pattern, match
from pyflinkcep.testing import funnel, trace, whyNot
events = pa.ipc.open_file(sys.argv[1]).read_all()
pattern = Pattern.begin("a").where("n < 3 and k = 'k1'").next("b").where(lambda e: e.n > 7)
found = match(pattern.where("n > last(a.n)"), events, key="k")
print(len(found), found.toArrow().num_rows, *{"pandas", "polars", "pyspark"} & set(sys.modules))
"""


@pytest.mark.parametrize("kernel", ["0", "1"])
def test_only_arrow_is_loaded(tmp_path: Path, kernel: str) -> None:
    """A table needs no other library: neither Spark nor the one that Arrow converts lists with."""
    path = str(tmp_path / "events.arrow")
    with pa.ipc.new_file(path, ARROW.schema) as file:
        file.write_table(ARROW)
    command = [sys.executable, "-c", _WITHOUT_PANDAS, path]
    known = {**os.environ, "PYFLINKCEP_KERNEL": kernel}
    outcome = subprocess.run(command, capture_output=True, text=True, check=True, env=known)

    assert outcome.stdout.split() == ["1", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 2, 50, 400])
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_portions_make_no_difference(
    keys: int, is_shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys go on in the next portion, or end where one ends; the answers are those of a list."""
    rng, size = np.random.default_rng(keys), 800
    times, numbers = np.sort(rng.integers(0, 300, size)), rng.integers(0, 10, size)
    table = pa.table({"at": times, "k": rng.integers(0, keys, size), "n": numbers})
    table = table.take(rng.permutation(size)) if is_shuffled else table
    pattern = Pattern.begin("a").where("n < 3").followedBy("b").where("n > last(a.n) + 5")
    pattern = pattern.within(timedelta(milliseconds=40))
    expected = match(pattern, iter(_list(table)), "at", "k")
    for portion in (1, 7, 64, 1000):
        monkeypatch.setattr("pyflinkcep.tables.column_match._PORTION", portion)
        found = match(pattern, table, "at", "k")
        assert (list(found), found.timeouts) == (list(expected), expected.timeouts)


# --- wrong arguments of what a user calls are refused by name, before anything is computed


ROWS = [{"n": n, "ts": 1000 * n, "type": "e"} for n in (1, 2)]
PATTERN = Pattern.begin("a").where("n > 0")
QUERY = "PATTERN SEQ(e a) WHERE skip_till_any_match"
CLAUSE = "ORDER BY ts MEASURES A.n AS n PATTERN (A) DEFINE A AS A.n > 0"
WRONG: list[Any] = [
    3, 2.5, True, b"x", [], (), {"ts": 1}, {"ts"}, ["ts", 3], pd.NaT, np.nan, timedelta(-1),
    object(), lambda: 1, lambda a, b: 1, np.array(["ts"]),
]  # fmt: skip
CALLS: dict[str, tuple[Callable[..., Any], str]] = {
    "match": (lambda events, **how: match(PATTERN, events, **how), "timestamp key delayThreshold"),
    "trace": (lambda events, **how: trace(PATTERN, events, **how), "timestamp key delayThreshold"),
    "whyNot": (lambda events, **how: whyNot(PATTERN, events, **how), "timestamp key"),
    "funnel": (
        lambda events, **how: funnel(PATTERN, events, **how),
        "timestamp key delayThreshold",
    ),
    "compare": (
        lambda events, **how: compare(PATTERN, events, **how),
        "timestamp key delayThreshold",
    ),
    "matchSase": (lambda events, **how: matchSase(QUERY, events, **how), "timestamp type"),
    "matchRecognize": (lambda events, **how: matchRecognize(events, CLAUSE, **how), "dialect"),
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_the_wrong_type(name: str, wrong: Any) -> None:
    """Whatever is given in place of a name, function or duration is refused, on rows and tables."""
    call, arguments = CALLS[name]
    for argument in arguments.split():
        for events in (ROWS, pa.Table.from_pylist(ROWS)):
            with pytest.raises(CepError) as caught:
                call(events, **{argument: wrong})
            assert caught.value.hint


def _functions() -> list[Any]:
    modules: list[ModuleType] = [pyflinkcep, testing, charts, local]
    found = {id(own): own for m in modules for own in (getattr(m, name) for name in m.__all__)}
    short = ("elements", "seq", "parse", "cepError", "matchId")  # of one argument, or any number
    return [own for own in found.values() if inspect.isfunction(own) and own.__name__ not in short]


@pytest.mark.parametrize("function", _functions(), ids=lambda function: function.__name__)
def test_unknown_arguments(function: Any) -> None:
    """A misspelt argument is refused with the one that was meant."""
    last = list(inspect.signature(function).parameters)[-1]
    with pytest.raises(InvalidArgumentError, match=f"{function.__name__}: unknown argument") as hit:
        function(**{f"{last}{last[-1]}": None})
    assert hit.value.hint == f"did you mean {last!r}?"


@pytest.mark.parametrize(
    "wrong", [{"cores": "2"}, {"cores": True}, {"cores": 0}, {"settings": 3}, {"engine": 3}]
)
def test_settings_of_sessions(wrong: Any) -> None:
    """A session is not started with a setting of the wrong type."""
    with pytest.raises(InvalidArgumentError):
        local.session(**wrong)


def test_modes_of_funnels() -> None:
    """The modes of a funnel are one, or a list, tuple or set of them."""
    steps = {"view": "x = 1", "buy": "x = 2"}
    second = timedelta(seconds=1)

    assert str(windowFunnel(second, steps, {"strict_once"})) == str(
        windowFunnel(second, steps, ["strict_once"])
    )
    for wrong in ({"strict_onse"}, [["strict_once"]], 3, {"strict_once": 1}):
        with pytest.raises(InvalidArgumentError, match="windowFunnel: unknown mode"):
            windowFunnel(second, steps, wrong)


@pytest.mark.parametrize("dialect", ["flink", "standard"])
def test_seconds_as_milliseconds(dialect: Any) -> None:
    """Whole numbers that look like epoch seconds are warned of where a clause measures time."""
    rows = {"ts": [1_700_000_000, 1_700_000_060], "n": [1, 2]}
    clause = (
        "ORDER BY ts MEASURES A.n AS n PATTERN (A) WITHIN INTERVAL '5' MINUTE DEFINE A AS A.n > 0"
    )

    with pytest.warns(TimeUnitWarning, match="look like epoch seconds") as caught:
        assert len(matchRecognize(rows, clause, dialect=dialect)) == 2
    assert caught[0].filename == __file__


_EVENTS = pd.DataFrame({"id": [1, 2], "n": [0, 1], "type": ["a", "b"]})
_CALLS: dict[str, Callable[..., Any]] = {
    "match": lambda **given: match(Pattern.begin("a").where("n = 0"), _EVENTS, **given),
    "matchSase": lambda **given: matchSase("PATTERN SEQ(a x, b y) WITHIN 9", _EVENTS, **given),
    "matchRecognize": lambda **given: matchRecognize(
        _EVENTS, "ORDER BY id MEASURES A.n AS n PATTERN (A) DEFINE A AS A.n = 0", **given
    ),
}


@pytest.mark.parametrize("call", _CALLS)
@pytest.mark.parametrize("wrong", [pd.Series([1, 2]), np.array([1, 2]), _EVENTS, {"x"}, object()])
def test_values_that_cannot_be_compared(call: str, wrong: Any) -> None:
    """A Series, an array or any other object as a setting is refused by the setting's name."""
    for name, parameter in inspect.signature(getattr(pyflinkcep, call)).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            with pytest.raises(CepError, match=name):
                _CALLS[call](**{name: wrong})


@pytest.mark.parametrize("form", [_EVENTS, _EVENTS.to_dict("records")], ids=["table", "list"])
@pytest.mark.parametrize("wrong", [int, lambda event: event["zz"], lambda event: 1 / 0])
def test_functions_of_events_that_raise(form: Any, wrong: Any) -> None:
    """A function of the key, time or type that raises says which event, and what to write."""
    pattern = Pattern.begin("a").where("n = 0")
    for name, call in {
        "key": lambda: match(pattern, form, key=wrong),
        "timestamp": lambda: match(pattern, form, timestamp=wrong),
        "type": lambda: matchSase("PATTERN SEQ(a x, b y) WITHIN 9", form, type=wrong),
    }.items():
        with pytest.raises(
            CepError, match=rf"{name}: .* raised .*'id': 1.*\n\nHint: write {name}="
        ):
            call()


@pytest.mark.parametrize("kind", ["timestamp", "date"])
def test_times_that_python_lacks(kind: str) -> None:
    """Times beyond the year 9999 are refused where Python would have to hold them."""
    far = pa.array([253_402_300_800_000, 253_402_300_800_001]).cast(pa.timestamp("ms", "UTC"))
    days = pa.array([2**30, 2**30], pa.int32()).view(pa.date32())
    events = pa.table({"at": far, "name": ["a", "b"], "x": far if kind == "timestamp" else days})
    low = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'")
    asked: list[Callable[[], Any]] = [
        lambda: list(match(low, events, timestamp="at")),
        lambda: matchMany({"low": low}, events, timestamp="at", type="name").toArrow(),
        lambda: matchEql("sequence [a where true] [b where true]", events, "at", "name"),
        lambda: matchEql("a where at > 5", events, "at", "name"),
        lambda: list(trace(low, events, timestamp="at")),
    ]
    for ask in asked:
        with pytest.raises(CepError, match="which Python has no date for"):
            ask()
    assert match(low, events, timestamp="at").toArrow().num_rows == 1
