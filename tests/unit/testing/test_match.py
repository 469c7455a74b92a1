# SPDX-License-Identifier: Apache-2.0
"""Patterns on plain lists."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from pyflinkcep import Pattern
from pyflinkcep.errors import (
    ConditionError,
    InputError,
    InvalidArgumentError,
    NotSupportedError,
    StateLimitError,
)
from pyflinkcep.testing import NFATestHarness, OperatorTestHarness, assertMatches, match, matchSase
from tests.shorthand import braces, ms, parse

LOW_HIGH = Pattern.begin("low").where(lambda e: e["n"] < 3).next("high").where(lambda e: e["n"] > 7)


def test_without_times_the_list_is_in_order() -> None:
    """Events are a millisecond apart in the order of the list, whatever iterable it is."""
    pattern = parse("a -> b within[2]")

    assert [braces(m) for m in match(pattern, iter(["a1", "b1", "a2", "x", "b2"]))] == ["{a1 b1}"]


def test_no_events() -> None:
    """An empty input has no matches."""
    assert match(parse("a"), []) == []


@pytest.mark.parametrize("timestamp", ["t", lambda e: e["t"]])
def test_events_are_put_in_order_of_time(timestamp: Any) -> None:
    """With a field or function for the time, the order of the list does not matter."""
    late, early = {"n": 9, "t": 5}, {"n": 1, "t": 3}

    assert match(LOW_HIGH, [late, early], timestamp=timestamp) == [{"low": [early], "high": [late]}]


def test_fields_of_objects() -> None:
    """A field's name is looked up in dicts and on objects alike."""
    events = [SimpleNamespace(name="b", at=2), SimpleNamespace(name="a", at=1)]
    pattern = Pattern.begin("x").where(lambda e: e.name == "a").next("y")

    assert [m["y"][0].name for m in match(pattern, events, timestamp="at")] == ["b"]


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 1)], 1),
        ([datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 2)], 0),
        (
            [
                datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1))),
                datetime(2023, 12, 31, 23, 0, 1),
            ],
            1,
        ),
    ],
    ids=["inside", "outside", "zones"],
)
def test_datetimes(times: list[datetime], found: int) -> None:
    """A datetime without a zone is in UTC."""
    pattern = (
        Pattern.begin("a").where(lambda e: e[0] == 0).next("b").where(lambda e: e[0] == 1)
    ).within(ms(2000))
    events = list(enumerate(times))

    assert len(match(pattern, events, timestamp=lambda e: e[1])) == found


@pytest.mark.parametrize("time", ["2024-01-01", None, 1.5])
def test_other_times_are_refused(time: Any) -> None:
    """A time that is neither int nor datetime is an error that shows the event."""
    with pytest.raises(InputError, match="the time of event") as caught:
        match(parse("a"), [{"t": time}], timestamp="t")

    assert caught.value.hint


def test_keys() -> None:
    """With a key each key is matched for itself, and results come key by key."""
    events = [{"n": 1, "k": "x"}, {"n": 2, "k": "y"}, {"n": 8, "k": "y"}, {"n": 9, "k": "x"}]

    assert match(LOW_HIGH, events, key="k") == [
        {"low": [events[0]], "high": [events[3]]},
        {"low": [events[1]], "high": [events[2]]},
    ]


def test_the_end_of_the_list_is_the_end_of_time() -> None:
    """A trailing ``notFollowedBy`` is decided at the end."""
    assert match(parse("a !-> b within[5]"), ["a"]) == [{"a": ["a"]}]


def test_timeouts_are_beside_the_matches() -> None:
    """Partial matches whose window ended come with the end of their window."""
    found = match(parse("a -> b within[3]"), ["a1", "x", "x", "x", "a2", "b"])

    assert (found, found.timeouts) == ([{"a": ["a2"], "b": ["b"]}], [({"a": ["a1"]}, 3)])


@pytest.mark.parametrize(
    ("delay", "count", "late"),
    [(ms(0), 0, ["b@1"]), (ms(3), 0, ["b@1"]), (ms(4), 1, []), (None, 1, [])],
)
def test_late_events(delay: timedelta | None, count: int, late: list[str]) -> None:
    """With a delay events arrive in the order given; what the watermark has passed is late."""
    pattern = parse("a[a@] -> b[b@]")
    given = ["a@0", "x@5", "b@1"]
    result = match(pattern, given, timestamp=lambda e: int(e.split("@")[1]), delayThreshold=delay)

    assert (len(result), result.late) == (count, late)


def test_what_is_not_a_pattern() -> None:
    """Anything but a pattern is refused by name."""
    with pytest.raises(InvalidArgumentError, match="match: expected a Pattern, got None"):
        match(None, [])  # type: ignore[call-overload]


@pytest.mark.parametrize("what", ["timestamp", "key"])
@pytest.mark.parametrize("event", [3, {"n": 1}])
def test_events_without_the_field_are_refused(event: Any, what: str) -> None:
    """A field for times or keys that an event lacks is named, with the event."""
    with pytest.raises(InputError, match=f"{what}='at': the event .* has no 'at'"):
        match(Pattern.begin("a"), [event], **{what: "at"})


def test_a_wrong_field_has_near_names() -> None:
    """As on Spark, what a dict lacks is an error that names the nearest field, either way to ask."""
    events = [{"price": 1, "id": 2}]
    for wrong in (lambda e: e.prise > 1, lambda e: e["prise"] > 1):
        with pytest.raises(ConditionError, match="no column 'prise'; did you mean 'price'"):
            match(Pattern.begin("a").where(wrong), events)


def test_a_bound_on_partial_matches() -> None:
    """As on Spark, a key with more partial matches is an error, or loses the oldest, counted."""
    pattern, names = parse("a ->> b"), ["a1", "a2", "a3", "b"]

    assert len(match(pattern, names, maxPartialMatches=3)) == 3
    with pytest.raises(StateLimitError, match="3 partial matches, maxPartialMatches is 2"):
        match(pattern, names, maxPartialMatches=2)
    found = match(pattern, names, maxPartialMatches=2, onTooManyPartialMatches="dropOldest")
    assert [m["a"] for m in found] == [["a2"], ["a3"]]
    assert found.numPartialMatchesDropped == 1
    with pytest.raises(NotSupportedError, match="which keeps no partial matches"):
        match(pattern, names, evaluation="eventLists", maxPartialMatches=2)
    with pytest.raises(InvalidArgumentError, match="without maxPartialMatches"):
        match(pattern, names, onTooManyPartialMatches="dropOldest")


def test_a_bound_on_the_partial_matches_of_a_query() -> None:
    """A SEQ query with more is an error; where there are none to bound, the bound is refused."""
    query = "PATTERN SEQ(A+ a[], B b) WHERE b.x > avg(a[].x) WITHIN 9"
    events = [{"type": kind, "x": 2**n} for n, kind in enumerate("AAAAB")]

    assert matchSase(query, events, maxPartialMatches=100) == matchSase(query, events)
    with pytest.raises(StateLimitError, match="maxPartialMatches is 2"):
        matchSase(query, events, maxPartialMatches=2)
    for pattern in (
        "SEQ(A+ a[], B b) WHERE b.x > avg(a[].x) WITHIN 9 EVENTS",
        "SEQ(A+ a[], (B b | C c)) WHERE b.x > avg(a[].x)",
    ):
        limited = f"PATTERN {pattern}"
        assert matchSase(limited, events, maxPartialMatches=100) == matchSase(limited, events)
        with pytest.raises(StateLimitError, match="maxPartialMatches is 1"):
            matchSase(limited, events, maxPartialMatches=1)
    with pytest.raises(
        NotSupportedError, match="compressed matches do not support maxPartialMatches"
    ):
        matchSase(query, events, compressed=True, maxPartialMatches=2)  # type: ignore[call-overload]
    with pytest.raises(NotSupportedError, match="which keeps no partial matches"):
        matchSase("PATTERN A;B WITHIN 9", events, maxPartialMatches=2)


@pytest.mark.parametrize(
    ("condition", "n"),
    [("10 / n > 1", 0), ("n + 1 > 1", 2**63 - 1), ("cast(n as tinyint) > 1", 200)],
)
def test_an_error_of_an_event_that_no_partial_match_reaches(condition: str, n: int) -> None:
    """Lists evaluate conditions of one event on all events, as Spark does; partial matches do not."""
    events = [{"k": "b", "n": n}, {"k": "a", "n": 1}, {"k": "b", "n": 2}]
    pattern = Pattern.begin("a").where("k = 'a'").followedByAny("b").where(condition)
    pattern = pattern.within(timedelta(seconds=10))
    assert len(match(pattern, events, evaluation="nfa")) == 1
    with pytest.raises((ArithmeticError, ConditionError)):
        match(pattern, events, evaluation="eventLists")


# --- the harnesses themselves


def test_the_start_state_is_a_partial_match() -> None:
    """A fresh automaton has one partial match, its start state, and an empty buffer."""
    harness = NFATestHarness(parse("a -> b"))

    assert (harness.partialMatches, harness.bufferNodes, harness.bufferedEvents) == (1, 0, 0)


def test_stages_are_in_pattern_order_and_empty_ones_absent() -> None:
    """A match lists its stages in the order of the pattern and leaves out what stayed empty."""
    harness = NFATestHarness(parse("z -> a? -> b+ -> c"))
    found = [list(m) for t, e in enumerate("zbc") for m in harness.process(e, t)]

    assert found == [["z", "b", "c"]]


def test_timeouts_have_the_end_of_their_window() -> None:
    """``advanceTime`` gives partial matches with the time at which their window ended."""
    harness = NFATestHarness(parse("a -> b within[10]"), timeoutHandling=True)
    harness.process("a", 3)

    assert [harness.advanceTime(12), harness.advanceTime(99)] == [
        ([], []),
        ([], [({"a": ["a"]}, 13)]),
    ]


def test_a_copy_is_independent() -> None:
    """What happens to a restored harness does not happen to the one it was made of."""
    first = OperatorTestHarness(parse("a -> b"), lateDataOutput=True)
    first.processElement("a", 1)
    first.processWatermark(1)
    first.processElement("late", 1)
    copy = first.snapshotAndRestore()
    copy.processElement("b", 2)
    copy.processElement("later", 1)
    copy.close()

    assert (first.matches, first.lateData, copy.matches, copy.lateData) == (
        [],
        [(None, "late")],
        [(None, 2, {"a": ["a"], "b": ["b"]})],
        [(None, "late"), (None, "later")],
    )


def test_a_copy_continues_timeouts_and_counts() -> None:
    """Results, the watermark and the count of dropped events are carried over."""
    first = OperatorTestHarness(parse("a -> b within[5]"), timeoutHandling=True)
    first.processWatermark(3)
    first.processElement("late", 1)
    first.processElement("a", 4)
    copy = first.snapshotAndRestore().snapshotAndRestore()
    copy.processElement("late", 2)
    copy.close()

    assert (copy.numLateRecordsDropped, copy.timeouts) == (2, [(None, 9, {"a": ["a"]})])


# --- what ``assertMatches`` takes for the same, and how it shows a difference


FOUND = [{"a": [{"id": 1}], "b": [{"id": 2}, {"id": 3}]}, {"a": [{"id": 4}], "b": [{"id": 5}]}]


@pytest.mark.parametrize(
    ("expected", "settings"),
    [
        (FOUND, {}),
        ([{"a": [1], "b": [2, 3]}, {"a": [4], "b": [5]}], {"by": "id"}),
        ([{"a": [1.0], "b": (2, 3)}, {"a": [4], "b": [5]}], {"by": lambda e: e["id"]}),
        (FOUND[::-1], {"ignoreOrder": True}),
    ],
)
def test_equal(expected: Any, settings: Any) -> None:
    """Matches are compared by equality, whole or by a value of each event."""
    assertMatches(FOUND, expected, **settings)


@pytest.mark.parametrize(
    ("expected", "settings", "message"),
    [
        (
            [{"a": [1], "b": [2]}, {"a": [4], "b": [5]}],
            {},
            "1 of 2 expected matches missing, 1 unexpected:\n"
            "- a: 1 | b: 2\n+ a: 1 | b: 2, 3\n  a: 4 | b: 5",
        ),
        ([], {}, "0 of 0 expected matches missing, 2 unexpected:\n+ a: 1 | b: 2, 3\n+ a: 4 | b: 5"),
        (
            [{"a": [4], "b": [5]}, {"a": [1], "b": [2, 3]}, {"a": [4], "b": [5]}],
            {"ignoreOrder": True},
            "1 of 3 expected matches missing, 0 unexpected:\n"
            "  a: 1 | b: 2, 3\n- a: 4 | b: 5\n  a: 4 | b: 5",
        ),
    ],
)
def test_different(expected: Any, settings: Any, message: str) -> None:
    """The message has a line for each match: missing, surplus or in both."""
    with pytest.raises(AssertionError) as caught:
        assertMatches(FOUND, expected, by="id", **settings)

    assert sorted(str(caught.value).split("\n")) == sorted(message.split("\n"))


def test_order_counts() -> None:
    """Matches have an order, which is compared unless told otherwise."""
    with pytest.raises(AssertionError, match="expected matches"):
        assertMatches(FOUND, FOUND[::-1])


MISUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "None": (FOUND, None, None, "expected: expected a list of matches, got None"),
    "one match": (FOUND, {"a": [1]}, None, "expected: expected a list of matches, got {"),
    "a text": ("ab", [], None, "actual: expected a list of matches, got 'ab'"),
    "of a harness": ([(None, 1, {})], [], None, "actual: expected a dict of stage to events, got"),
    "one event": (FOUND, [{"a": 1}], None, "expected: expected a list of events of 'a', got 1"),
    "a text of events": (FOUND, [{"a": "x"}], None, "expected a list of events of 'a', got 'x'"),
    "a position": (FOUND, [], 5, "by: expected the name of a field or a function"),
    "no such field": (FOUND, [], "idd", "by='idd': the event"),
}


@pytest.mark.parametrize("case", MISUSED)
def test_misuse(case: str) -> None:
    """What is not a list of matches, or names no field, is refused with a hint."""
    actual, expected, by, message = MISUSED[case]
    with pytest.raises((InvalidArgumentError, InputError), match=re.escape(message)) as caught:
        assertMatches(actual, expected, by)

    assert caught.value.hint
