# SPDX-License-Identifier: Apache-2.0
"""Events too far ahead of the others: what that means, and that they move no watermark."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pyflinkcep.spark.worker.pack import believed, spans_of
from tests.unit.spark.worker.buckets import Bucket, SpyStorage, a_to_b, event

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
