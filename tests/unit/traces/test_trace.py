# SPDX-License-Identifier: Apache-2.0
"""What a trace tells of events and partial matches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, InvalidArgumentError, Pattern, StateLimitError
from pyflinkcep.testing import match, trace
from pyflinkcep.traces.model import End
from pyflinkcep.traces.result import Trace
from tests.shorthand import parse as pattern_of
from tests.unit.show.support import points, size, texts

PAST_LAST = AfterMatchSkipStrategy.skipPastLastEvent()
TO_NEXT = AfterMatchSkipStrategy.skipToNext()


def ends(found: Trace) -> list[tuple[End, int | None, tuple[str, ...]]]:
    """Return how each partial match ended."""
    return [(p.ending.kind, p.ending.event, p.ending.stages) for p in found.partials]


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("a >> b", "a1 c", [(End.CONTIGUITY, 1, ("b",))]),
        ("a -> b", "a1 b2", [(End.MATCH, 1, ())]),
        ("a -> b", "a1 c2", [(End.INPUT, None, ("b",))]),
        ("a -> b within[2]", "a1 c2 c3", [(End.WINDOW, None, ("b",))]),
        ("a !-> n -> b", "a1 n2 b3", [(End.NOT, 1, ("n",))]),
        ("a !>> n -> b", "a1 n2 b3", [(End.NOT, 1, ("n",))]),
        ("a >> b+:cons until[u] >> c", "a1 b2 u3", [(End.UNTIL, 2, ("b", "c"))]),
        ("a !-> n within[3]", "a1 b2", [(End.MATCH, None, ())]),
        ("a !-> n within[3]", "a1 n2", [(End.NOT, 1, ("n",))]),
    ],
)
def test_every_partial_match_has_its_end(
    pattern: str, events: str, expected: list[tuple[End, int | None, tuple[str, ...]]]
) -> None:
    """A trace says why a partial match ended, by which event, and what it waited for."""
    found = trace(pattern_of(pattern), events.split())

    assert ends(found) == expected
    assert found.matches == list(match(pattern_of(pattern), events.split()))


def test_a_gap_ends_a_partial_match() -> None:
    """The window between two events is told from that of the match."""
    found = trace(pattern_of("a -> b gap[2] within[9]"), ["a1", "x1", "x2", "x3"])

    assert [(p.ending.kind, p.ending.time, p.deadline) for p in found.partials] == [(End.GAP, 2, 2)]


def test_a_match_drops_what_the_skip_strategy_says() -> None:
    """Partial matches, and matches held back, name the match that made them superfluous."""
    found = trace(pattern_of("a+ -> b", PAST_LAST), ["a1", "a2", "b1"])

    assert [match.events for match in found.found if match.came_out] == [{"a": [0, 1], "b": [2]}]
    dropped = [match for match in found.found if not match.came_out]
    assert {match.discarded_by for match in dropped} == {0}
    kinds = {p.number: (p.ending.kind, p.ending.match) for p in found.partials}
    assert {kinds[match.partial] for match in dropped} == {(End.SKIP, 0)}
    assert sorted(kinds.values(), key=str).count((End.MATCH, 0)) == 1
    assert len(set(kinds.values())) == 2


def test_a_match_held_back_says_by_whom() -> None:
    """Under a skip strategy a match waits for a partial match that began earlier."""
    rows = [{"n": n} for n in (9, 1, 2)]
    pattern = Pattern.begin("a", TO_NEXT).where("n > 0").followedBy("b").where("n = first(a.n) + 1")
    waiting = trace(pattern, rows)
    (held,) = waiting.found
    ending = waiting.partials[held.partial].ending

    assert (ending.kind, ending.partial) == (End.HELD, 0)
    assert (held.events, held.held_back_by, held.came_out) == ({"a": [1], "b": [2]}, 0, False)
    (soon,) = trace(pattern.within(timedelta(milliseconds=5)), rows).found
    assert (soon.held_back_by, soon.completed, soon.came_out, soon.emitted) == (0, 2, True, None)


def test_the_limit_ends_the_oldest() -> None:
    """What ``dropOldest`` drops is told; without it the limit fails as in a job."""
    events = ["a1", "a2", "a3"]
    found = trace(
        pattern_of("a -> b"), events, maxPartialMatches=2, onTooManyPartialMatches="dropOldest"
    )

    assert [end for end, _, _ in ends(found)] == [End.LIMIT, End.INPUT, End.INPUT]
    with pytest.raises(StateLimitError):
        trace(pattern_of("a -> b"), events, maxPartialMatches=2)


def test_forks_name_where_they_come_from() -> None:
    """A partial match that goes on beside another has it as its parent."""
    found = trace(pattern_of("a ->> b -> c"), ["a1", "b1", "b2"])

    assert [(p.parent, p.events) for p in found.partials] == [
        (None, {"a": [0]}),
        (0, {"a": [0], "b": [1]}),
        (0, {"a": [0], "b": [2]}),
    ]
    assert [[(e.partial, e.what) for e in event.effects] for event in found.events] == [
        [(0, "began")],
        [(1, "forked"), (0, "passed by")],
        [(2, "forked"), (1, "passed by"), (0, "passed by")],
    ]


def test_late_events_are_told() -> None:
    """An event behind the watermark takes no part."""
    rows = [{"k": "a", "t": 5}, {"k": "b", "t": 9}, {"k": "b", "t": 1}]
    pattern = Pattern.begin("a").where("k = 'a'").followedBy("b").where("k = 'b'")
    late = trace(pattern, rows, timestamp="t", delayThreshold=timedelta(milliseconds=2))

    assert late.matches == list(
        match(pattern, rows, timestamp="t", delayThreshold=timedelta(milliseconds=2))
    )
    assert [event.late for event in late.events] == [False, False, True]
    assert "1 event came too late: 2" in late.text()


# --- the text

FAILS = (
    Pattern.begin("fail")
    .where("result = 'fail'")
    .times(2)
    .consecutive()
    .next("ok")
    .where("result = 'ok' AND price > avg(fail.price)")
    .within(timedelta(milliseconds=10))
)
ROWS = [
    {"user": user, "at": at, "result": result, "price": price}
    for user, at, result, price in [
        ("ann", 1, "fail", 4),
        ("ann", 2, "fail", 8),
        ("bob", 3, "fail", 1),
        ("ann", 4, "ok", 5),
        ("bob", 30, "ok", 5),
    ]
]


def test_the_text_says_how_far_each_beginning_got() -> None:
    """Each event that could begin a match says what came, and the values that failed there."""
    assert trace(FAILS, ROWS, timestamp="at", key="user").text() == (
        """\
fail{2} ⇒ ok: 5 events, 0 matches, 2 keys

event 0 at 1 key 'ann': user='ann', at=1, result='fail', price=4
  got to 'fail', stage 1 of 2: fail 0 1
  ended by event 3: 'ok' had to follow directly
    ok: price > avg(fail.price) was false for event 3: price = 5, avg(fail.price) = 6.0

event 1 at 2 key 'ann': user='ann', at=2, result='fail', price=8
  got to 'fail', stage 1 of 2, with 1 of 2 events: fail 1
  ended by event 3: 'fail' had to follow directly
    fail: result = 'fail' was false for event 3: result = 'ok'

event 2 at 3 key 'bob': user='bob', at=3, result='fail', price=1
  got to 'fail', stage 1 of 2, with 1 of 2 events: fail 2
  ended: its window was over at 13, while it waited for 'fail'

2 events could not begin a match
  fail: result = 'fail' was false 2 times, last for event 4: result = 'ok'"""
    )


def test_the_full_text_tells_all() -> None:
    """On request each event has its conditions and what it did, and windows their place in time."""
    lines = trace(FAILS, ROWS, timestamp="at", key="user").text(full=True).split("\n")

    assert "  #0 took it for 'fail'" in lines
    assert "  fail: result = 'fail' is true: result = 'fail'" in lines
    over = lines.index("  #2 ended: its window was over at 13, while it waited for 'fail'")
    assert over < lines.index("event 4 at 30 key 'bob': user='bob', at=30, result='ok', price=5")


def test_times_are_shown_as_clocks_show_them() -> None:
    """Moments and datetimes are readable in the text and in the picture; counts stay numbers."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = [{"at": noon, "x": "a"}, {"at": noon + timedelta(milliseconds=2500), "x": "c"}]
    pattern = Pattern.begin("a").where("x = 'a'").followedBy("b").where("x = 'b'")
    found = trace(pattern.within(timedelta(seconds=10)), rows, timestamp="at")

    text = found.text()
    assert "event 0 at 2026-01-01 12:00:00 UTC: at=2026-01-01 12:00:00+00:00, x='a'" in text
    assert "its window was over at 2026-01-01 12:00:10 UTC" in text
    assert "12:00:02.500" in texts(found.diagram().svg)


def test_python_conditions_show_the_event() -> None:
    """What a function compared is not known: the event stands for it."""
    pattern = Pattern.begin("low").where(lambda n: n < 3)

    assert "was false for event 0: 7" in trace(pattern, [7]).text()


# --- the picture


def test_the_picture_has_a_lane_for_each_partial_match() -> None:
    """Events are on an axis, each partial match on its lane with its end; all inside the picture."""
    found = trace(FAILS, ROWS, timestamp="at", key="user")
    svg = found.diagram().svg
    width, height = size(svg)

    shown = texts(svg)
    assert [f"event {number}" in shown for number in range(5)] == [True] * 5
    assert [name in shown for name in ("#0 'ann'", "#1 'ann'", "#2 'bob'")] == [True] * 3
    assert "window over, waited for fail" in shown
    assert [p for p in points(svg) if not (0 <= p[0] <= width and 0 <= p[1] <= height)] == []


def test_pictures_of_traces_are_text_safe_and_bounded() -> None:
    """Events, columns, keys and names stay text; many events and partial matches are cut, and that is said."""
    script = "<script>alert(1)</script>"
    pattern = Pattern.begin(script).where(lambda e: True).followedByAny("b")
    found = trace(pattern, [script] * 70)

    rows = [{script: script, "k": script}, {script: 1, "k": "x"}]
    columns = trace(Pattern.begin("a").where(f"k = '{script}'"), rows, key="k")
    assert "<script" not in found._repr_html_() + columns._repr_html_()
    assert "the first 60 of 70 events" in found.diagram().svg
    assert len(found.diagram().svg) < 300_000


def test_wide_pictures_scroll() -> None:
    """What is wider than a page keeps its size, in a box that scrolls; what fits is fitted."""
    pattern = Pattern.begin("a").where("n = 1").next("b")
    start = datetime(2026, 5, 1, 20, tzinfo=UTC)
    events = [{"n": n % 2, "t": start + timedelta(hours=n)} for n in range(60)]
    wide, narrow = (trace(pattern, own, "t").diagram() for own in (events, events[:4]))

    svg, width = wide.svg, size(wide.svg)[0]
    assert width > 3000
    assert "max-width:none" in svg
    assert "max-width:100%" in narrow.svg
    assert wide._repr_html_().startswith('<div style="overflow-x:auto"><svg')
    assert texts(svg).count("#29") == 2  # beside its beginning, too
    assert [day for day in texts(svg) if day.startswith("2026")] == [
        "2026-05-01", "2026-05-02", "2026-05-03", "2026-05-04"
    ]  # fmt: skip
    assert [p for p in points(svg) if not 0 <= p[0] <= width] == []


@pytest.mark.parametrize("events", [[], ["x1"]])
def test_nothing_to_trace(events: list[Any]) -> None:
    """Without events, or beginnings, there is still a text and a picture."""
    found = trace(pattern_of("a -> b"), events)

    assert found.text().startswith(f"a → b: {len(events)} event")
    assert found.diagram().svg.startswith("<svg")


def test_other_things_are_refused() -> None:
    """A trace is that of a pattern."""
    with pytest.raises(InvalidArgumentError, match="trace: expected a Pattern"):
        trace("a", [])  # type: ignore[arg-type]
