# SPDX-License-Identifier: Apache-2.0
"""Spark's watermark as events see it whose time is what a clock shows."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import InputError
from pyflinkcep.spark.worker.bucket_task import WallClock
from pyflinkcep.spark.worker.pack import believed, spans_of
from pyflinkcep.spark.worker.waiting import HELD, PARTIAL, _facts
from pyflinkcep.testing import OperatorTestHarness
from pyflinkcep.time import MAX_WATERMARK
from tests.unit.spark.worker.buckets import Bucket, SpyStorage, a_to_b, event

QUARTER = 15 * 60 * 1000
STEP = 2 * QUARTER - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHANGES = {
    "America/New_York": ["2024-03-10T07:00Z", "2024-11-03T06:00Z"],
    "Europe/Berlin": ["2024-03-31T01:00Z", "2024-10-27T01:00Z"],
    "Australia/Lord_Howe": ["2024-10-05T15:30Z", "2024-04-06T15:00Z"],
    "Pacific/Apia": ["2011-12-30T10:00Z"],  # where a day was skipped
    "Asia/Tokyo": ["2024-03-10T07:00Z"],
    "UTC": ["2024-03-10T07:00Z"],
}


def milliseconds(time: datetime) -> int:
    """Return a moment in epoch milliseconds; a time without a zone as if in UTC."""
    return (time.replace(tzinfo=time.tzinfo or UTC) - EPOCH) // timedelta(milliseconds=1)


def shown(moment: int, zone: str) -> int:
    """Return what the clock shows at a moment."""
    local = (EPOCH + timedelta(milliseconds=moment)).astimezone(ZoneInfo(zone))
    return milliseconds(local.replace(tzinfo=None))


def read(time: int, zone: str) -> int:
    """Return the moment that Spark takes a time for: the first of two, or after those skipped."""
    local = (EPOCH + timedelta(milliseconds=time)).replace(tzinfo=ZoneInfo(zone), fold=0)
    return milliseconds(local.astimezone(UTC))


def around(change: str) -> range:
    """Return moments of three days, half an hour apart."""
    middle = milliseconds(datetime.fromisoformat(change))
    return range(middle - 70 * STEP, middle + 70 * STEP, STEP)


@pytest.mark.parametrize(
    ("zone", "change"), [(zone, change) for zone, all_ in CHANGES.items() for change in all_]
)
def test_no_event_after_the_watermark_is_late(zone: str, change: str) -> None:
    """Time never runs back, and it is the latest at which every later event is still to come."""
    clock, moments = WallClock(zone), around(change)
    before, furthest = clock.shows(moments[0] - 1), 0
    later = [(read(time, zone), time) for time in around(change)]
    later += [(moment, shown(moment, zone)) for moment in moments]

    for moment in moments[:-50]:
        now = clock.shows(moment)
        assert now >= before
        assert all(time > now for when, time in later if when > moment)
        assert clock.shows(clock.reaches(now)) >= now
        assert clock.shows(clock.reaches(now) - 1) < now
        before, furthest = now, max(furthest, shown(moment, zone) - now)

    assert furthest <= 24 * 4 * QUARTER
    assert clock.shows(moments[-1]) == shown(moments[-1], zone)


def test_zones_that_only_spark_names() -> None:
    """Offsets as Java writes them are understood; a zone unknown to Python is refused by name."""
    hours = {"Z": 0, "+05:30": 5.5, "-5": -5, "GMT+8": 8, "UTC-03:00": -3, "UT+01:00": 1}

    assert {zone: WallClock(zone).shows(0) / 3_600_000 for zone in hours} == hours
    with pytest.raises(InputError, match="session's time zone 'Mars/Olympus'"):
        WallClock("Mars/Olympus")


def test_times_that_no_clock_shows() -> None:
    """A watermark outside the years that Python has is the time itself."""
    clock = WallClock("Asia/Tokyo")

    assert clock.shows(MAX_WATERMARK) == clock.reaches(MAX_WATERMARK) == MAX_WATERMARK
    assert clock.reaches(1 << 62) == 1 << 62


# --- events too far ahead of the others: what that means, and that they move no watermark


FAR = 4_000_000_000_000


def plainly(times: list[int], last: int | None, gap: int) -> int | None:
    """Return what the rule says, one time after another."""
    ordered = sorted(times)
    if last is None:
        groups: list[list[int]] = []
        for time in ordered:
            if groups and time - groups[-1][-1] <= gap:
                groups[-1].append(time)
            else:
                groups.append([time])
        return max(groups, key=len)[-1] if groups else None
    for time in ordered:
        if time > last + gap:
            break
        last = max(last, time)
    return last


def test_the_rule_does_not_depend_on_partitions() -> None:
    """However the events are divided and ordered, the same times are believed."""
    choose = random.Random(5)
    for _ in range(300):
        times = [
            choose.choice([0, 40, 900, -(2**63), 2**63 - 1]) + choose.randrange(30) * 3
            for _ in range(12)
        ]
        times = [max(min(time, 2**63 - 1), -(2**63)) for time in times[: choose.randrange(13)]]
        last, gap = choose.choice([None, 5, 60]), choose.choice([1, 4, 50])
        cuts = sorted(choose.randrange(13) for _ in range(3))
        parts = [times[a:b] for a, b in zip([0, *cuts], [*cuts, 13], strict=True)]
        spans = [spans_of(np.array(part, np.int64), gap) for part in parts]

        assert believed(spans, last, gap) == plainly(times, last, gap)


@pytest.mark.parametrize("filtered", [False, True])
def test_one_event_in_the_far_future(filtered: bool) -> None:
    """It goes aside and moves nothing, in the first micro-batch and later, dropped or not."""
    storage = SpyStorage()
    far = [event("k", FAR, "b", 1), event("k", FAR + 1, "x", 2)]
    batches = [
        [event("k", 10, "a"), far[0], event("k", 12, "b")],
        [far[1], event("k", 20, "a"), event("k", 30, "c")],
        [event("k", 28, "b")],
        [event("k", 60, "c")],
    ]
    matches, ahead, late = [], 0, 0
    for batch in batches:  # each as after a restart
        bucket = Bucket(a_to_b(), storage=storage, delay_ms=5, max_ahead_ms=40, filtered=filtered)
        bucket.batch(batch, watermark=None if batch is batches[0] else FAR - 5)
        matches += [stages for _, _, stages in bucket.matches]
        ahead, late = ahead + bucket.ahead_count, late + bucket.late_count

    assert [[found[0][1], found[1][1]] for found in matches] == [[10, 12], [20, 28]]
    assert (ahead, late) == (2, 0)


def test_time_is_followed_through_a_long_micro_batch() -> None:
    """Events that come after a pause in one micro-batch are ahead of each other, not too far."""
    bucket = Bucket(a_to_b(), delay_ms=5, max_ahead_ms=40)
    bucket.batch([event("k", 0, "a")])
    bucket.batch([event("k", time, "c") for time in range(30, 300, 30)] + [event("q", 331, "c")])

    assert bucket.ahead == [("q", 331)]
    assert bucket.index().watermark == 265
    bucket.close()
    assert bucket.storage.is_empty or not bucket.index().pages


# --- what is told of the partial matches and matches that a stream holds


NEXT = (
    Pattern.begin("a", AfterMatchSkipStrategy.skipToNext())
    .where(lambda n: n > 0)
    .followedBy("b")
    .where(lambda n, ctx: n == next(iter(ctx.getEventsForPattern("a"))) + 1)
)


@pytest.mark.parametrize(
    ("pattern", "last"),
    [
        (NEXT, (HELD, "b", "partial matches that began earlier")),
        (NEXT.notFollowedBy("never").where(lambda n: n < 0), (PARTIAL, "b", "not never")),
    ],
)
def test_all_that_waits_says_for_what(pattern: Pattern, last: tuple[str, str, str]) -> None:
    """Partial matches wait for stages or the end of a NOT stage, matches for what began earlier."""
    pattern = pattern.within(timedelta(milliseconds=10))
    harness = OperatorTestHarness(pattern)
    for time, number in enumerate((9, 1, 2)):
        harness.processElement(number, time)
    harness.processWatermark(5)
    nfa = NFACompiler.compile(pattern)
    ((_, context),) = harness._operator.keys.items()
    states = context.state.nfa_state

    told = {
        _facts(nfa, what, state, 1)
        for what, kept in ((PARTIAL, states.partial_matches), (HELD, states.completed_matches))
        for state in kept
        if state.previous_node is not None
    }
    assert {facts[:3] for facts in told} == {(PARTIAL, "a", "b"), last}
    assert all(end == began + 10 for *_, began, end in told if end is not None)
