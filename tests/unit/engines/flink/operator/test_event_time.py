# SPDX-License-Identifier: Apache-2.0
"""The operator in event time: order, lateness, timers, timeouts and keys."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.errors import SkipError
from pyflinkcep.testing import OperatorTestHarness
from pyflinkcep.time import MAX_WATERMARK
from tests.shorthand import braces, parse


def feed(harness: OperatorTestHarness, line: str, key: Any = None) -> None:
    """Hand in ``a@5`` events; ``wm7`` is a watermark."""
    for word in line.split():
        if word.startswith("wm"):
            harness.processWatermark(int(word[2:]))
        else:
            event, _, time = word.partition("@")
            harness.processElement(event, int(time), key)


def results(rows: list[tuple[Any, int, Any]]) -> list[str]:
    """Return matches or timeouts as ``5:{a b}``."""
    return [f"{timestamp}:{braces(match)}" for _, timestamp, match in rows]


def test_nothing_is_matched_before_the_watermark() -> None:
    """Events wait until the watermark reaches them, and then are taken in order of time."""
    harness = OperatorTestHarness(parse("a >> b"))
    feed(harness, "b@5 a@3 wm4")
    before = list(harness.matches)
    feed(harness, "wm5")

    assert (before, results(harness.matches)) == ([], ["5:{a b}"])


def test_equal_times_keep_the_order_of_arrival() -> None:
    """Without a comparator, events of one time are matched as they came."""
    harness = OperatorTestHarness(parse("a >> b"))
    feed(harness, "b1@1 a@1 b2@1 wm1")

    assert results(harness.matches) == ["1:{a b2}"]


@pytest.mark.parametrize(
    ("output", "late", "dropped"), [(True, ["at4", "at5", "at6"], 0), (False, [], 3)]
)
def test_late_data(output: bool, late: list[str], dropped: int) -> None:
    """An event at or before the watermark is late: it goes to its output, or is counted."""
    harness = OperatorTestHarness(Pattern.begin("any"), lateDataOutput=output)
    feed(harness, "wm6 at4@4 at5@5 at6@6 at7@7 wm9")

    assert (
        [event for _, event in harness.lateData],
        harness.numLateRecordsDropped,
        results(harness.matches),
    ) == (late, dropped, ["7:{at7}"])


def test_late_records_are_counted_as_they_come() -> None:
    """The counter of dropped records follows the watermark."""
    harness = OperatorTestHarness(parse("a"))
    feed(harness, "wm2 x@1 x@3")
    first = harness.numLateRecordsDropped
    feed(harness, "wm4 x@3 x@5")

    assert (first, harness.numLateRecordsDropped) == (1, 2)


def test_an_earlier_watermark_changes_nothing() -> None:
    """The watermark never goes back."""
    harness = OperatorTestHarness(parse("a"))
    feed(harness, "wm5 wm3 a@4 wm6")

    assert (results(harness.matches), harness.numLateRecordsDropped) == ([], 1)


def test_time_passes_without_events() -> None:
    """A partial match times out when the watermark reaches the end of its window."""
    harness = OperatorTestHarness(parse("start -> end within[10]"), timeoutHandling=True)
    feed(harness, "start@3 wm5 wm12")
    before = list(harness.timeouts)
    feed(harness, "wm13")

    assert (before, results(harness.timeouts), harness.keysWithState) == ([], ["13:{start}"], 0)


def test_output_times() -> None:
    """A match has the time of its last event, a timeout that of the end of its window."""
    harness = OperatorTestHarness(parse("a >> b within[10]"), timeoutHandling=True)
    feed(harness, "a1@5 c@20 b1@3 wm2 a2@3 b2@4 wm22")

    assert (results(harness.matches), results(harness.timeouts)) == (["4:{a2 b2}"], ["15:{a1}"])


def test_single_stage_times() -> None:
    """Matches come in order of time with the times of their events."""
    harness = OperatorTestHarness(Pattern.begin("any"))
    feed(harness, "a@5 b@3 wm6")

    assert results(harness.matches) == ["3:{b}", "5:{a}"]


def test_a_pending_match_has_the_time_that_released_it() -> None:
    """A trailing ``notFollowedBy`` is emitted at the next event's time or at the watermark."""
    by_event, by_watermark, at_end = (
        OperatorTestHarness(parse("a !-> b within[10]")) for _ in range(3)
    )
    feed(by_event, "a@1 x@15 wm20")
    feed(by_watermark, "a@1 wm5 wm17")
    feed(at_end, "a@1")
    at_end.close()

    assert [results(h.matches) for h in (by_event, by_watermark, at_end)] == [
        ["15:{a}"],
        ["17:{a}"],
        [f"{MAX_WATERMARK}:{{a}}"],
    ]


def test_the_end_of_input_is_the_last_watermark() -> None:
    """Closing drains what was buffered and times out what is open."""
    harness = OperatorTestHarness(parse("a -> b within[10]"), timeoutHandling=True)
    feed(harness, "a1@1 b@2 a2@3")
    harness.close()

    assert (results(harness.matches), results(harness.timeouts), harness.keysWithState) == (
        ["2:{a1 b}"],
        ["13:{a2}"],
        0,
    )


def test_gap_windows_have_no_timer() -> None:
    """With gap windows alone a timeout needs a further event of the same key."""
    silent, spoken = (
        OperatorTestHarness(parse("a -> b gap[5]"), timeoutHandling=True) for _ in range(2)
    )
    for harness in (silent, spoken):
        feed(harness, "a@1 wm1 wm50", key=1)
        feed(harness, "x@51 wm60", key=2)
    feed(spoken, "x@61 wm70", key=1)
    silent.close()

    assert (results(silent.timeouts), results(spoken.timeouts)) == ([], ["6:{a}"])


@pytest.mark.parametrize(("start", "timeouts"), [(0, []), (-3, []), (1, ["11:{a}"])])
def test_a_start_at_or_before_zero_has_no_timer(start: int, timeouts: list[str]) -> None:
    """Flink sets no timer for a first event at a time of 0 or less, so it never times out alone."""
    harness = OperatorTestHarness(parse("a -> b within[10]"), timeoutHandling=True)
    feed(harness, f"a@{start} wm5 wm60")

    assert results(harness.timeouts) == timeouts


def test_keys_do_not_know_each_other() -> None:
    """A match is made of the events of one key."""
    harness = OperatorTestHarness(parse("a -> b"))
    feed(harness, "a1@1", key=1)
    feed(harness, "b2@2", key=2)
    feed(harness, "b1@3 wm9", key=1)

    assert harness.matches == [(1, 3, {"a": ["a1"], "b": ["b1"]})]


def test_keys_are_drained_one_after_another() -> None:
    """Within one watermark all results of a key come together, the key with the earliest first."""
    harness = OperatorTestHarness(Pattern.begin("any"))
    feed(harness, "x@2 x@5", key="late")
    feed(harness, "y@1 y@9", key="early")
    feed(harness, "wm10")

    assert [(key, timestamp) for key, timestamp, _ in harness.matches] == [
        ("early", 1),
        ("early", 9),
        ("late", 2),
        ("late", 5),
    ]


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("x@1", 1),
        ("x@1 wm1", 0),
        ("a@1 wm1", 1),
        ("a@1 b@2 wm2", 0),
        ("a@1 wm2 wm11", 0),
        ("wm1 a@1", 0),
    ],
    ids=["queued", "nothing begun", "begun", "matched", "expired", "late"],
)
def test_only_pending_keys_hold_state(line: str, keys: int) -> None:
    """A key has state while events wait or a partial match is open, and none after that."""
    harness = OperatorTestHarness(parse("a -> b within[10]"))
    feed(harness, line)

    assert harness.keysWithState == keys


def test_clean_up() -> None:
    """Flink's long clean-up case: disorder, two keys, restores, late data; nothing stays behind."""
    pattern = parse("start ->> middle ->> end within[10]")
    harness = OperatorTestHarness(pattern, timeoutHandling=False)
    feed(harness, "start1@1", key=42)
    feed(harness, "start1@2", key=43)
    feed(harness, "wm2")
    feed(harness, "middle2@5 middle1@3 start2@4 end1@6", key=42)
    harness = harness.snapshotAndRestore()
    queued = harness.keysWithState
    feed(harness, "wm5")
    harness = harness.snapshotAndRestore()
    feed(harness, "wm11")
    first = results(harness.matches)
    keys_then = {key for key, *_ in harness.matches}
    feed(harness, "wm12 middle3@12", key=42)
    feed(harness, "end2@13 wm13", key=42)
    second = results(harness.matches)[len(first) :]
    feed(harness, "wm21", key=42)

    assert (queued, first, keys_then, second, harness.keysWithState) == (
        2,
        [
            "6:{start1 middle1 end1}",
            "6:{start1 middle2 end1}",
            "6:{start2 middle2 end1}",
        ],
        {42},
        ["13:{start2 middle2 end2}"],
        0,
    )


def test_the_same_event_twice_is_two_events() -> None:
    """Equal events at one time are told apart."""
    harness = OperatorTestHarness(parse("start[c] -> m[a]+? -> n[b]? -> end[a] within[10]"))
    feed(harness, "b@6 a1@3 a2@3 c@1 a3@7 d@5 a1@3 wm8")
    first = results(harness.matches)
    feed(harness, "wm17")

    assert (first, harness.keysWithState) == (
        [
            "3:{c a1}",
            "3:{c a1 a2}",
            "3:{c a1 a2 a1}",
            "7:{c a1 a2 a1 b a3}",
            "7:{c b a3}",
            "7:{c a1 b a3}",
            "7:{c a1 a2 b a3}",
            "7:{c a1 a2 a1 a3}",
        ],
        0,
    )


def test_timeouts_need_to_be_asked_for() -> None:
    """Without timeout handling nothing is collected, and memory is freed all the same."""
    harness = OperatorTestHarness(parse("a -> b within[10]"))
    feed(harness, "a@1 wm30")

    assert (harness.timeouts, harness.keysWithState) == ([], 0)


def test_a_failure_while_time_passes_names_the_key() -> None:
    """A throwing skip strategy may fail when a pending match is released; the error says where."""
    skip = AfterMatchSkipStrategy.skipToFirst("a").throwExceptionOnMiss()
    harness = OperatorTestHarness(parse("a !-> b within[5]", skip))
    feed(harness, "a@1 wm2", key="k7")
    with pytest.raises(SkipError) as caught:
        feed(harness, "wm9")

    assert (caught.value.key, caught.value.stage) == ("'k7'", "a")
