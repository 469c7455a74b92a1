# SPDX-License-Identifier: Apache-2.0
"""Charts of funnels and matches: specifications, pictures, and names that stay text."""

from __future__ import annotations

import json
import math
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyflinkcep import InvalidArgumentError, NotSupportedError, Pattern
from pyflinkcep.charts import Chart, durations_chart, funnel_chart, timeline_chart
from pyflinkcep.testing import funnel, match, trace, whyNot
from tests.unit.show.support import points, size, texts

SCRIPT = "</script><script>alert(1)</script>"
STEP = {"stage": "a", "step": 1, "keys": 3, "partialMatches": 4}
START = datetime(2026, 5, 1, 12, tzinfo=UTC)
PATTERN = (
    Pattern.begin(SCRIPT).where("x = 1").followedBy("b").where("x = 2").within(timedelta(minutes=9))
)
EVENTS = [
    {"u": f"{SCRIPT}{n % 4}", "at": START + timedelta(seconds=7 * n * n % 900), "x": n % 3}
    for n in range(60)
]


class Frame:
    """What a DataFrame is for a chart."""

    def __init__(self, rows: list[Any], most: int | None = None) -> None:
        self.rows = rows
        self.most = most

    def limit(self, most: int) -> Frame:
        """Return the first rows."""
        return Frame(self.rows[:most], most)

    def collect(self) -> list[Any]:
        """Return the rows."""
        return self.rows


def charts() -> dict[str, Chart]:
    """Return one of each kind, with and without data."""
    rows = funnel(PATTERN, EVENTS, "at", "u", by="u").rows
    matches = match(PATTERN, EVENTS, "at", "u")
    keyed = Frame([{"u": SCRIPT, **one} for one in matches])
    return {
        "funnel": funnel_chart(rows, SCRIPT),
        "grouped": funnel_chart(Frame(rows), by="u"),
        "no funnel": funnel_chart([]),
        "durations": durations_chart(keyed, "at", title=SCRIPT),
        "no durations": durations_chart([], "at"),
        "timeline": timeline_chart(keyed, lambda event: event.at, "u", SCRIPT),
        "no timeline": timeline_chart([], "at"),
    }


@pytest.mark.parametrize("name", list(charts()))
def test_pictures_hold_what_is_drawn_and_names_stay_text(name: str) -> None:
    """All lies inside the picture, in colours for light and dark; no name becomes an element."""
    chart = charts()[name]
    svg = chart.svg
    width, height = size(svg)

    assert [p for p in points(svg) if not (0 <= p[0] <= width and 0 <= p[1] <= height)] == []
    assert "<script" not in svg
    assert "prefers-color-scheme:dark" in svg
    assert chart._repr_html_() == svg
    assert chart._repr_mimebundle_()["application/vnd.vegalite.v5+json"] == chart.spec
    assert json.loads(json.dumps(chart.spec)) == chart.spec
    if not name.startswith("no "):
        assert any("script>" in text for text in texts(svg))


@pytest.mark.parametrize("name", list(charts()))
def test_altair_takes_the_specifications(name: str) -> None:
    """They are valid, and no page that Altair makes has a script of ours."""
    pytest.importorskip("altair")
    own = charts()[name].altair()

    assert own.to_dict()["data"] is not None
    assert "</script><script>alert" not in own.to_html()


def test_without_altair_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture and the specification need no package."""
    monkeypatch.setitem(sys.modules, "altair", None)
    chart = funnel_chart([])

    with pytest.raises(NotSupportedError, match=r"pyflinkcep\[charts\]"):
        chart.altair()
    assert chart.svg


def test_a_funnel_shows_partial_matches_where_keys_say_nothing() -> None:
    """Without a key there is at most one."""
    rows = [
        {"stage": "a", "step": 1, "keys": 1, "partialMatches": 9, "ofFirst": 1.0, "p50Ms": None},
        {"stage": "b", "step": 2, "keys": 1, "partialMatches": 3, "ofFirst": 1 / 3, "p50Ms": 90e3},
    ]
    values = funnel_chart(rows).spec["data"]["values"]

    labels = [value["label"] for value in values]
    assert labels == ["9 · 100 % of the first", "3 · 33 % of the first · median 90 s"]


def test_shares_are_of_what_is_drawn() -> None:
    """With one key in each group shares of keys would contradict bars of partial matches."""
    rows = [
        {"by": by, "stage": stage, "step": step, "keys": 1, "partialMatches": count, "ofFirst": 1.0}
        for by in range(25)
        for step, (stage, count) in enumerate({"a": 4, "b": 2}.items(), 1)
    ]
    chart = funnel_chart(rows, by="by")

    labels = [value["label"] for value in chart.spec["data"]["values"]]
    assert set(labels) == {"4 · 100 % of the first", "2 · 50 % of the first"}
    assert "the first 20 of 25 groups" in texts(chart.svg)


def test_a_funnel_from_a_table_has_gaps() -> None:
    """The first step has no time before it, which pandas writes as NaN."""
    rows = pd.DataFrame([STEP, {**STEP, "step": 2, "p50Ms": 90.0}]).to_dict("records")
    labels = [bar["label"] for bar in funnel_chart(rows).spec["data"]["values"]]

    assert labels == ["3 · 100 % of the first", "3 · 100 % of the first · median 90 ms"]


def test_durations_are_counted_once() -> None:
    """Each match is in one bar, the longest in the last."""
    matches = [{"a": [{"t": 0}], "b": [{"t": ms}]} for ms in (0, 1, 5, 9, 10)]
    bars = durations_chart(matches, "t", bins=5).spec["data"]["values"]

    assert [bar["count"] for bar in bars] == [2, 0, 1, 0, 2]
    (alone,) = durations_chart(matches[:1], "t").spec["data"]["values"]
    assert alone["count"] == 1


def test_only_the_first_matches_are_collected() -> None:
    """A chart says so if there are more."""
    frame = Frame([{"a": [{"t": n}]} for n in range(9)])

    assert timeline_chart(frame, "t", most=3).title == "matches, the first 3"
    assert len(timeline_chart(frame, "t", most=3).spec["data"]["values"]) == 3
    assert "the first ones" in durations_chart(frame, "t", most=9).title


def test_files(tmp_path: Path) -> None:
    """A chart is saved as picture or as specification."""
    chart = funnel_chart([], "none")
    chart.save(tmp_path / "chart.json")
    chart.save(tmp_path / "chart.svg")

    assert json.loads((tmp_path / "chart.json").read_text())["title"]["text"] == "none"
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: funnel_chart([{"stage": "a"}]), "got one without 'step'"),
        (lambda: funnel_chart([], by=3), "expected by to be names"),
        (lambda: funnel_chart(3), "expected rows or a DataFrame"),
        (lambda: funnel_chart([3]), "expected rows as dicts"),
        (lambda: timeline_chart([{"a": [{"t": 1}]}], "ts"), "has no time 'ts'"),
        (lambda: timeline_chart([{"a": [{"t": "1"}]}], "t"), "expected times in epoch"),
        (lambda: timeline_chart([{"a": [{"t": pd.NaT}]}], "t"), "expected times in epoch .*NaT"),
        (lambda: durations_chart([{"a": [{"t": np.array([1, 2])}]}], "t"), "expected times in ep"),
        (lambda: timeline_chart(EVENTS, "at"), "expected matches, each with a list of events"),
        (lambda: durations_chart(pd.DataFrame(EVENTS), "at"), "expected matches, each with a list"),
        (lambda: timeline_chart(FOUND, "at", key="usr"), "have 'usr'\n\nHint: did you mean 'user'"),
        (lambda: timeline_chart(FOUND, "at", key=["user", 3]), "expected key to be the name"),
        (lambda: timeline_chart(FOUND, "at", key=[]), "expected key to be the name"),
        (lambda: timeline_chart([], "t", most=0), "at least 1, got 0"),
        (lambda: durations_chart([], 3), "expected time to be a field"),
        (lambda: durations_chart([], "t", title=3), "expected title to be text"),
        (
            lambda: durations_chart([], "t", bins=10**9),
            "bins to be a whole number, from 1 to 1,000",
        ),
        (lambda: timeline_chart(FOUND, lambda e: e.zzz), "the function for time raised .*zzz"),
        (lambda: timeline_chart(FOUND, "at", key=lambda e: 1 / 0), "for key raised ZeroDivision"),
        (
            lambda: funnel_chart([{**STEP, "step": "one"}]),
            "expected step to be a number, got 'one'",
        ),
        (lambda: funnel_chart([{**STEP, "keys": None}]), "expected keys to be a number, got None"),
        (lambda: funnel_chart([{**STEP, "keys": math.nan}]), "expected keys to be a number"),
        (lambda: funnel_chart([{**STEP, "p50Ms": "x"}]), "expected p50Ms to be a number, got 'x'"),
    ],
)
def test_what_is_no_row_is_refused(call: Any, words: str) -> None:
    """Rows of something else are named, with what to pass."""
    with pytest.raises(InvalidArgumentError, match=words):
        call()


FOUND = match(PATTERN, [{"user": event["u"][-1], **event} for event in EVENTS], "at", "user")


@pytest.mark.parametrize("key", ["user", ["user"], ["user", "x"]])
def test_keys_name_matches(key: Any) -> None:
    """A key is a column of a match or a field of its first event, one or several."""
    labels = {value["match"].rsplit(" ", 1)[0] for value in _values(FOUND, key)}
    names = {match["<script>"][0]["user"] for match in _by_start(FOUND)}

    assert labels == (names if key != ["user", "x"] else {f"{name}, 1" for name in names})


def _values(matches: Any, key: Any) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = timeline_chart(matches, "at", key).spec["data"]["values"]
    return values


def _by_start(matches: Any) -> list[dict[str, Any]]:
    return [{"<script>": next(iter(one.values()))} for one in matches]


def test_results_know_their_times_and_keys() -> None:
    """What match, trace and whyNot return is drawn without being told the time and the key."""
    events = [{**event, "u": event["u"][-1]} for event in EVENTS]
    found, traced = match(PATTERN, events, "at", "u"), trace(PATTERN, events, "at", "u")
    expected = sorted(map(str, _values(list(found), "u")))

    for own in (found, traced, whyNot(PATTERN, events, "at", "u")):
        values = timeline_chart(own).spec["data"]["values"]
        lanes = {re.sub(r" \(.*", "", value["match"]) for value in values}
        assert lanes == {event["u"] for event in events} & lanes
        assert len(values) == len(expected)
        assert durations_chart(own).spec == durations_chart(list(found), "at").spec
        assert sorted(map(str, _values(own, "u"))) == expected
    function = match(PATTERN, events, lambda event: event.at, lambda event: event.u)
    assert sorted(map(str, timeline_chart(function).spec["data"]["values"])) == expected
    assert timeline_chart(trace(PATTERN, [])).title == "matches"
    for unknown in (match(PATTERN, []), list(found)):
        with pytest.raises(InvalidArgumentError, match=r"give match\(\) its timestamp='ts'"):
            timeline_chart(unknown)


def test_what_began_is_a_funnel() -> None:
    """A trace, and whyNot, count how far beginnings got; matches alone do not tell."""
    events = [
        {"u": f"k{n}", "x": x} for n, xs in enumerate(("12", "10", "1")) for x in map(int, xs)
    ]
    for own in (trace(PATTERN, events, key="u"), whyNot(PATTERN, events, key="u")):
        values = funnel_chart(own).spec["data"]["values"]
        assert [value["value"] for value in values] == [3, 1]

    with pytest.raises(InvalidArgumentError, match="expected rows of a funnel"):
        funnel_chart(match(PATTERN, events, key="u"))


def test_tables_of_matches(tmp_path: Path) -> None:
    """Matches and funnels in tables of any library are drawn as they are as rows."""
    table = pa.Table.from_pylist([{**event, "u": event["u"][-1]} for event in EVENTS])
    found = match(PATTERN, table, "at", "u")
    parquet = tmp_path / "found.parquet"
    pq.write_table(found.toArrow(), parquet)
    expected = _values(found, "u")
    counted = funnel(PATTERN, EVENTS, "at", "u")

    for frame in (found.toArrow(), found.toPandas(), found.toPolars(), pd.read_parquet(parquet)):
        assert _values(frame, "u") == expected
        assert (
            durations_chart(frame, "at", most=2).spec == durations_chart(found, "at", most=2).spec
        )
    for rows in (counted, counted.rows, pd.DataFrame(counted.rows), pl.DataFrame(counted.rows)):
        assert [bar["label"] for bar in funnel_chart(rows).spec["data"]["values"]] == [
            bar["label"] for bar in funnel_chart(counted.rows).spec["data"]["values"]
        ]
