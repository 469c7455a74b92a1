# SPDX-License-Identifier: Apache-2.0
"""Funnels of events in memory: counts of keys and partial matches by stage, and their times."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, InputError, InvalidArgumentError, Pattern
from pyflinkcep.testing import Funnel, funnel, match, trace
from pyflinkcep.traces.funnel import funnel_steps
from tests.shorthand import parse as pattern_of

SHOP = (
    Pattern.begin("view")
    .where("x = 'v'")
    .followedBy("cart")
    .where("x = 'c'")
    .followedBy("buy")
    .where("x = 'b'")
    .within(timedelta(milliseconds=100))
)
LOG = [
    ("ann", 0, "v"), ("bob", 1, "v"), ("ann", 5, "v"), ("ann", 10, "c"), ("bob", 50, "c"),
    ("ann", 40, "b"), ("cid", 60, "v"), ("bob", 200, "b"), ("dan", 70, "b"),
]  # fmt: skip
EVENTS = [{"user": user, "ts": ts, "x": x, "at": x + user[0]} for user, ts, x in LOG]


def columns(found: Funnel, *names: str) -> list[tuple[Any, ...]]:
    """Return some columns of a funnel."""
    return [tuple(row[name] for name in names) for row in found.rows]


def test_keys_partial_matches_and_times_of_each_stage() -> None:
    """Keys count once, partial matches as often as they come; times are since the event before."""
    found = funnel(SHOP, EVENTS, timestamp="ts", key="user", quantiles=(0, 0.5, 1))

    assert columns(found, "stage", "step", "keys", "partialMatches") == [
        ("view", 1, 3, 4), ("cart", 2, 2, 3), ("buy", 3, 1, 2)
    ]  # fmt: skip
    assert columns(found, "ofFirst", "ofPrevious", "dropOff") == [
        (1, 1, 0), (2 / 3, 2 / 3, 1), (1 / 3, 1 / 2, 1)
    ]  # fmt: skip
    assert columns(found, "p0Ms", "p50Ms", "p100Ms") == [
        (None, None, None), (5, 10, 49), (30, 30, 30)
    ]  # fmt: skip
    matches = match(SHOP, EVENTS, timestamp="ts", key="user")
    assert len(matches) == found.rows[-1]["partialMatches"]


def test_quantiles_are_sparks_to_the_last_digit() -> None:
    """A quantile between two times weighs both, as Spark does it."""
    steps = [27, 124, 229, 335, 700, 703, 710, 944, 986]
    log = [(n, t, x) for n, step in enumerate(steps) for t, x in ((0, "v"), (step, "c"))]
    events = [{"user": user, "ts": ts, "x": x} for user, ts, x in log]
    pattern = Pattern.begin("view").where("x = 'v'").followedBy("cart").where("x = 'c'")
    found = funnel(pattern, events, timestamp="ts", key="user", quantiles=(0.1, 0.9))

    assert columns(found, "p10Ms", "p90Ms")[1] == (104.60000000000001, 952.4)


def test_groups_are_those_of_the_first_event() -> None:
    """A partial match stays in the group that it began in; each group has all stages."""
    found = funnel(SHOP, EVENTS, timestamp="ts", key="user", by=["at"], quantiles=())

    assert columns(found, "at", "stage", "keys") == [
        (at, stage, keys)
        for at, reached in (("va", [1, 1, 1]), ("vb", [1, 1, 0]), ("vc", [1, 0, 0]))
        for stage, keys in zip(("view", "cart", "buy"), reached, strict=True)
    ]


def test_without_a_key_shares_are_of_partial_matches() -> None:
    """All events are one sequence, of which the number of keys says nothing."""
    found = funnel(SHOP, sorted(EVENTS, key=lambda e: e["ts"]), timestamp="ts")

    assert columns(found, "keys", "partialMatches", "ofFirst") == [
        (1, 4, 1), (1, 3, 3 / 4), (1, 3, 3 / 4)
    ]  # fmt: skip
    assert "key" not in found.text()


@pytest.mark.parametrize(
    ("pattern", "events", "reached"),
    [
        ("a -> b+ -> c", "a1 b1 b2 c1", {"a": 1, "b": 1, "c": 2}),
        ("a{3} -> b", "a1 a2", {"a": 2, "b": 0}),
        ("a >> b? >> c", "a1 c1 a2 b1 c2", {"a": 2, "b": 1, "c": 2}),
        ("a -> (b -> c){2} -> d", "a1 b1 c1 b2 c2 d1", {"a": 1, "b": 1, "c": 1, "d": 1}),
        ("a ->> b -> c", "a1 b1 b2 c1", {"a": 1, "b": 2, "c": 2}),
        ("a !-> n -> b", "a1 n1 b1 a2 b2", {"a": 2, "b": 1}),
        ("a -> b within[3]", "a1 x1 x2 x3 b1", {"a": 1, "b": 0}),
    ],
)
def test_a_stage_is_reached_with_its_first_event(
    pattern: str, events: str, reached: dict[str, int]
) -> None:
    """Loops and groups that go round again do not count again; stages that take nothing are out."""
    found = funnel(pattern_of(pattern), events.split())

    assert {row["stage"]: row["partialMatches"] for row in found.rows} == reached


def test_shares_pass_optional_stages_by() -> None:
    """A stage is compared with the last one before it that may not be missing."""
    events = [{"user": user, "x": x} for user, text in enumerate(["ac", "abc", "a"]) for x in text]
    pattern = Pattern.begin("a").where("x = 'a'").followedBy("b").where("x = 'b'").optional()
    found = funnel(pattern.followedBy("c").where("x = 'c'"), events, key="user")

    assert columns(found, "stage", "ofPrevious", "dropOff") == [
        ("a", 1, 0), ("b", 1 / 3, 2), ("c", 2 / 3, 1)
    ]  # fmt: skip


def test_groups_are_compared_with_what_is_before_them() -> None:
    """An optional group, alternatives, and patterns in any order: inside, and after them."""

    def previous(pattern: Pattern) -> dict[str, int]:
        return {step.stage: step.previous for step in funnel_steps(pattern)}

    assert previous(pattern_of("a -> (b -> c)? -> d")) == {"a": 0, "b": 1, "c": 2, "d": 1}
    b = Pattern.begin("b").where("x = 'b'").next("c").where("x = 'c'")
    d, a = Pattern.begin("d").where("x = 'd'"), Pattern.begin("a").where("x = 'a'")
    either, both = a.followedBy(Pattern.oneOf(b, d)), a.followedBy(Pattern.allOf(b, d))
    assert previous(either.followedBy("e")) == {"a": 0, "b": 1, "c": 2, "d": 1, "e": 1}
    assert previous(both.followedBy("e")) == {"a": 0, "b": 1, "c": 2, "d": 1, "e": 4}
    found = funnel(both, [{"u": 0, "x": x} for x in "adbc"], key="u")
    assert columns(found, "stage", "partialMatches", "ofPrevious") == [
        ("a", 1, 1), ("b", 2, 1), ("c", 2, 1), ("d", 1, 1)
    ]  # fmt: skip


def test_no_events_make_a_funnel_of_nothing() -> None:
    """Each stage has a row, and no share of nothing."""
    assert columns(funnel(SHOP, []), "keys", "ofFirst", "p50Ms") == [(0, None, None)] * 3
    assert funnel(SHOP, [], key="user", by="at").rows == []


def test_it_counts_what_a_trace_shows() -> None:
    """The partial matches that reach a stage are those of a trace, also under a skip strategy."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    events = ["a1", "a2", "b1", "a3", "c1", "b2", "a4", "c2", "b3"]
    pattern = pattern_of("a -> b -> c", skip)

    seen = trace(pattern, events)
    expected = {
        stage: sum(stage in partial.events for partial in seen.partials) for stage in seen.stages
    }
    found = funnel(pattern, events)
    assert {row["stage"]: row["partialMatches"] for row in found.rows} == expected


def test_text_and_picture() -> None:
    """Groups, keys, shares and times are told; names, columns and values stay text."""
    name = "<script>alert(1)</script>"
    pattern = Pattern.begin(name).where("x = 'v'").followedBy("b").where("x = 'b'")
    found = funnel(pattern, EVENTS, timestamp="ts", key="user", by="at", quantiles=0.5)

    assert "at='va'" in found.text()
    assert "1 key, 2 partial matches" in found.text()
    assert "100% of the one before, p50 37.5 ms" in found.text()
    hostile = funnel(pattern, [{**row, name: name} for row in EVENTS], "ts", "user", by=name)
    assert "<script" not in found._repr_html_() + hostile._repr_html_()
    assert "at: va" in found.diagram().svg


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"by": 3}, InvalidArgumentError, "expected by to be names of columns, got 3"),
        ({"by": ["at", "at"]}, InvalidArgumentError, "by names 'at', and there is another"),
        ({"by": "keys"}, InvalidArgumentError, "by names 'keys', and there is another"),
        ({"quantiles": [0.5, 2]}, InvalidArgumentError, "expected quantiles from 0 to 1, got 2"),
        ({"quantiles": "median"}, InvalidArgumentError, "got 'median'"),
        ({"by": "country"}, InputError, "has no 'country'"),
    ],
)
def test_what_is_not_understood_is_refused(
    keywords: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Names and quantiles of the wrong kind are named, with what to write."""
    with pytest.raises(error, match=words):
        funnel(SHOP, EVENTS, timestamp="ts", key="user", **keywords)
