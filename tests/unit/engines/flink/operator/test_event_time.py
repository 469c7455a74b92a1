# SPDX-License-Identifier: Apache-2.0
"""The operator: order, lateness, timers, timeouts, keys and bounds, in event and processing time."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, EventComparator, Pattern
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator, comparator_key
from pyflinkcep.errors import InvalidArgumentError, SkipError, StateLimitError
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
        ["6:{start1 middle1 end1}", "6:{start1 middle2 end1}", "6:{start2 middle2 end1}"],
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


# --- the operator in processing time: the clock is the time of every event


def clocked(pattern: Pattern, line: str, **options: Any) -> OperatorTestHarness:
    """Run ``a@5``, an event when the clock shows 5; ``@9`` moves the clock alone."""
    harness = OperatorTestHarness(pattern, processingTime=True, **options)
    feed_clock(harness, line)
    return harness


def feed_clock(harness: OperatorTestHarness, line: str, key: Any = None) -> None:
    """Move the clock and hand in events; their own time is nonsense on purpose."""
    for word in line.split():
        event, _, clock = word.partition("@")
        harness.setProcessingTime(int(clock))
        if event:
            harness.processElement(event, -77, key)


def test_events_are_matched_at_once() -> None:
    """Without a comparator nothing waits, and the clock is the time of the match."""
    harness = clocked(Pattern.begin("any"), "a@1 b@2")

    assert results(harness.matches) == ["1:{a}", "2:{b}"]


def test_timeouts() -> None:
    """A match has the time of its last event, a timeout that of the end of its window."""
    harness = clocked(parse("any[*] >> c within[10]"), "a@3 c@5 b@20", timeoutHandling=True)

    assert (results(harness.matches), results(harness.timeouts)) == (["5:{a c}"], ["15:{c}"])


def test_a_timer_fires_after_the_window() -> None:
    """Without an event the timeout comes one millisecond after the end of the window."""
    harness = clocked(parse("a -> b within[10]"), "a@3 @13", timeoutHandling=True)
    at_the_end = results(harness.timeouts)
    feed_clock(harness, "@14")

    assert (at_the_end, results(harness.timeouts), harness.keysWithState) == ([], ["13:{a}"], 0)


def test_no_timer_at_the_end_of_input() -> None:
    """Closing does not move the clock."""
    harness = clocked(parse("a -> b within[10]"), "a@3", timeoutHandling=True)
    harness.close()

    assert harness.timeouts == []


def test_a_comparator_makes_events_wait() -> None:
    """Events of one instant are ordered once the clock has moved on."""
    harness = clocked(parse("a ->> b"), "b2@3 a@3 b1@3", comparator=lambda event: event)
    waiting = results(harness.matches)
    feed_clock(harness, "@4")

    assert (waiting, results(harness.matches)) == ([], ["3:{a b1}", "3:{a b2}"])


def test_state_is_restored_between_events() -> None:
    """A snapshot between any two events changes nothing, and matched keys are forgotten."""
    harness = OperatorTestHarness(parse("c -> a -> b within[10]"), processingTime=True)
    for word in ["c@1", "d@2", "a@3", "b@4"]:
        feed_clock(harness, word, key=1)
        harness = harness.snapshotAndRestore()

    assert (results(harness.matches), harness.keysWithState) == (["4:{c a b}"], 0)


def test_expiry_frees_the_buffer() -> None:
    """When the window is over nothing of the key is left."""
    harness = clocked(parse("a ->> b ->> c within[10]"), "a1@1 b1@2 a2@3 b2@4 c@5")
    matched = len(harness.matches)
    feed_clock(harness, "@14")

    assert (matched, harness.keysWithState) == (3, 0)


# --- the order of events of equal time


def by_length(event: str) -> int:
    """Sort by length."""
    return len(event)


def compare_lengths(left: str, right: str) -> int:
    """Compare by length, as a comparator of Java does."""
    return len(left) - len(right)


class Comparator:
    """An object as Flink users would port it."""

    def compare(self, left: str, right: str) -> int:
        """Compare by length."""
        return len(left) - len(right)


@pytest.mark.parametrize("comparator", [by_length, compare_lengths, Comparator(), len])
def test_kinds_of_comparators(comparator: Any) -> None:
    """A sort key, a function of two and an object with ``compare`` all give the same order."""
    assert sorted(["aaa", "a", "bb", "c"], key=comparator_key(comparator)) == [
        "a",
        "c",
        "bb",
        "aaa",
    ]


def test_a_builtin_that_tells_nothing_is_a_sort_key() -> None:
    """A callable without a signature is taken for a key."""
    assert sorted([10, 9], key=comparator_key(str)) == [10, 9]


def test_no_comparator() -> None:
    """Without one there is no sort key."""
    assert comparator_key(None) is None


def test_what_is_no_comparator() -> None:
    """Anything else is refused with a hint."""
    with pytest.raises(InvalidArgumentError, match="expected a comparator, got 5") as caught:
        comparator_key(5)  # type: ignore[arg-type]

    assert caught.value.hint


def test_events_of_equal_time_are_sorted() -> None:
    """The comparator orders events of one time; times come first."""
    harness = OperatorTestHarness(parse("start ->> middle ->> end"), comparator=lambda event: event)
    for event, time in [("start1", 1), ("middle2", 5), ("start2", 2), ("middle1", 5), ("end", 7)]:
        harness.processElement(event, time)
    harness.close()

    assert [braces(match) for _, _, match in harness.matches] == [
        "{start1 middle1 end}",
        "{start1 middle2 end}",
        "{start2 middle1 end}",
        "{start2 middle2 end}",
    ]


def test_equal_events_keep_the_order_of_arrival() -> None:
    """The sort is stable."""
    harness = OperatorTestHarness(Pattern.begin("any"), comparator=by_length)
    for event in ("bb", "b", "a", "aa"):
        harness.processElement(event, 1)
    harness.close()

    assert [match["any"] for _, _, match in harness.matches] == [["b"], ["a"], ["bb"], ["aa"]]


def test_the_order_survives_a_restore() -> None:
    """A restored operator sorts its queue as before."""
    harness = OperatorTestHarness(Pattern.begin("any"), comparator=by_length)
    harness.processElement("bb", 1)
    harness = harness.snapshotAndRestore()
    harness.processElement("a", 1)
    harness.close()

    assert [match["any"] for _, _, match in harness.matches] == [["a"], ["bb"]]


def test_an_event_comparator_orders_events() -> None:
    """Flink's interface, as a class with compare, serves as a comparator."""

    class Longest(EventComparator):
        def compare(self, first: str, second: str) -> int:
            return len(second) - len(first)

    assert sorted(["a", "ccc", "bb"], key=comparator_key(Longest())) == ["ccc", "bb", "a"]


# --- a bound on a key's partial matches


def bounded_harness(most: int | None, policy: str = "fail") -> OperatorTestHarness:
    """Make a bounded_harness of a pattern whose partial matches never end by themselves."""
    return OperatorTestHarness(
        parse("a -> b"), maxPartialMatches=most, onTooManyPartialMatches=policy
    )


def feed_one_key(into: OperatorTestHarness, names: str) -> None:
    """Return one key events a millisecond apart, and a watermark after them."""
    for time, name in enumerate(names.split()):
        into.processElement(name, time, key="k")
    into.processWatermark(99)


def test_at_the_bound_nothing_happens() -> None:
    """As many partial matches as allowed are kept, and match."""
    bounded = bounded_harness(3)
    feed_one_key(bounded, "a1 a2 a3 b")

    assert (len(bounded.matches), bounded.numPartialMatchesDropped) == (3, 0)


def test_one_more_fails_the_job() -> None:
    """With the policy to fail, the error names the bound, the key and the time."""
    with pytest.raises(StateLimitError, match="maxPartialMatches is 3") as caught:
        feed_one_key(bounded_harness(3), "a1 a2 a3 a4 b")

    assert (caught.value.key, caught.value.timestamp_ms) == ("'k'", 3)


def test_the_oldest_are_dropped_and_counted() -> None:
    """With the policy to drop, those that began first give no match, and nothing leaks."""
    bounded = bounded_harness(2, "dropOldest")
    feed_one_key(bounded, "a1 a2 a3 a4 b")

    starts = [match["a"][0] for _, _, match in bounded.matches]
    assert (starts, bounded.numPartialMatchesDropped) == (["a3", "a4"], 2)
    assert bounded.keysWithState == 0


def test_the_error_names_what_counts_without_listing() -> None:
    """compressed() is proposed, but not for a pattern whose matches it cannot count."""
    hints = []
    for skip in (None, AfterMatchSkipStrategy.skipToNext()):
        with pytest.raises(StateLimitError) as caught:
            feed_one_key(OperatorTestHarness(parse("a -> b", skip), maxPartialMatches=1), "a1 a2")
        hints.append(str(caught.value.hint))

    assert [".compressed()" in hint for hint in hints] == [True, False]


@pytest.mark.parametrize(("most", "policy"), [(0, "fail"), (-1, "fail"), (2, "ignore")])
def test_bounds_that_make_no_sense(most: int, policy: str) -> None:
    """A bound is a number from 1, a policy one of two."""
    with pytest.raises(InvalidArgumentError) as caught:
        bounded_harness(most, policy)

    assert caught.value.hint


# --- the time of a match that had to wait: ``matchTimestamp`` and MATCH_ROWTIME()


PAST_LAST = AfterMatchSkipStrategy.skipPastLastEvent()
TO_NEXT = AfterMatchSkipStrategy.skipToNext()
PATTERNS = [
    "pairs",
    "a -> b within[7]",
    "a -> b -> c within[7]",
    "a -> b+ -> c within[9]",
    "a >> b+ >> c within[6]",
    "a -> b !-> c within[5]",
    "a+ !-> c within[5]",
    "a -> b? -> x within[6]",
    "a -> b gap[3] -> c within[8]",
]


class Times:
    """Receives matches, with their times."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Any]] = []

    def match(self, key: Any, timestamp: int, match: Any) -> None:
        """Receive a match."""
        self.found.append((timestamp, match))

    def timeout(self, *result: Any) -> None:
        """Forget a timeout."""


def times_of(
    nfa: NFA, events: list[tuple[int, str]], watermarks: list[int], *, by_windows: bool
) -> list[tuple[int, Any]]:
    """Return the matches of events, sorted, with the watermark moved to these times and then the end."""
    output = Times()
    operator = KeyedCepOperator(CepOperator(nfa, by_windows=by_windows), output)
    left = list(events)
    for watermark in [*watermarks, MAX_WATERMARK]:
        while left and left[0][0] <= watermark:
            time, name = left.pop(0)
            operator.process_element("k", name, time)
        operator.advance_watermark(watermark)
    return sorted(output.found, key=repr)


@pytest.mark.parametrize("skip", [None, PAST_LAST, TO_NEXT])
@pytest.mark.parametrize("text", PATTERNS)
def test_wherever_watermarks_stand(text: str, skip: AfterMatchSkipStrategy | None) -> None:
    """It is what Flink gives if the watermark moves with every millisecond."""
    random_ = random.Random(text)
    pattern = of_one_number(skip) if text == "pairs" else parse(text, skip)
    nfa = NFACompiler.compile(pattern)
    for _ in range(40):
        time, events = 1, []
        for _ in range(random_.randint(3, 14)):
            time += random_.choice([0, 1, 1, 2, 4])
            events.append((time, random_.choice("aabbcx") + random_.choice("123")))
        every = range(1, time + 20)
        few = sorted(random_.sample(every, 4))

        expected = times_of(nfa, events, list(every), by_windows=False)

        assert times_of(nfa, events, [], by_windows=True) == expected
        assert times_of(nfa, events, few, by_windows=True) == expected


def of_one_number(skip: AfterMatchSkipStrategy | None) -> Pattern:
    """Return an event a, followed by an event b of the same number, within 10."""

    def is_partner(event: str, context: Any) -> bool:
        (first,) = context.getEventsForPattern("a")
        return event[0] == "b" and event[1] == first[1]

    pattern = Pattern.begin("a", skip).where(lambda event: event[0] == "a").followedBy("b")
    return pattern.where(is_partner).within(timedelta(milliseconds=10))


@pytest.mark.parametrize(
    ("skip", "line", "expected"),
    [
        (PAST_LAST, "a1@1 a2@2 b2@3", [11]),
        (PAST_LAST, "a1@1 a2@2 b2@3 x0@30", [11]),
        (TO_NEXT, "a1@1 a2@2 b2@3 b1@7", [7, 7]),
        (PAST_LAST, "a1@1 a2@2 a3@3 b3@4 b2@5 x0@13", [11]),
        (None, "a1@1 a2@2 b2@3", [3]),
    ],
)
def test_what_released_a_match(
    skip: AfterMatchSkipStrategy | None, line: str, expected: list[int]
) -> None:
    """It is the event's time, or the end of the last window of those that held it back."""
    nfa = NFACompiler.compile(of_one_number(skip))
    named = (word.split("@") for word in line.split())
    events = [(int(time), name) for name, time in named]

    for watermarks in ([], [4, 20], list(range(40))):
        found = times_of(nfa, events, watermarks, by_windows=True)
        assert [time for time, _ in found] == expected


# --- the timers that wake a key when a window ends


class Nowhere:
    """Receives results and forgets them."""

    def match(self, *result: Any) -> None:
        """Forget a match."""

    def timeout(self, *result: Any) -> None:
        """Forget a timeout."""


def timers(pattern: str, *calls: str) -> set[int]:
    """Process events such as ``a@5``, a call at a time; give the timers then set."""
    operator = CepOperator(NFACompiler.compile(parse(pattern)))
    state = operator.new_key()
    for call in calls:
        named = [event.split("@") for event in call.split()]
        times = [int(time) for _, time in named]
        operator.process_events("k", state, times, [name for name, _ in named], Nowhere())
    return state.timers


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (("a@5",), {15}),
        (("a@5 a@9 b@10",), {15, 19}),
        (("a@5", "a@9 b@10", "x@11"), {15, 19}),
        (("a@0 x@1",), set()),
        (("a@0 a@3 x@4",), {13, 14}),
    ],
)
def test_one_timer_for_each_window(calls: tuple[str, ...], expected: set[int]) -> None:
    """Partial matches have a timer each, but those that began at or before the epoch."""
    assert timers("a ->> b -> c within[10]", *calls) == expected


@pytest.mark.parametrize("calls", [("x@1 a@2 x@3 x@4",), ("x@1 a@2", "x@3 x@4")])
def test_with_gaps_every_event_sets_a_timer(calls: tuple[str, ...]) -> None:
    """From the first start on, every event's timer may be the one that finds a gap over."""
    assert timers("a -> b gap[5] -> c within[10]", *calls) == {12, 13, 14}
