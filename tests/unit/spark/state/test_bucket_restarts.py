# SPDX-License-Identifier: Apache-2.0
"""What becomes of a bucket's state when a query goes on with another pattern."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.errors import InvalidArgumentError, PatternChangedError
from pyflinkcep.spark.state.bucket_state import BucketIndex
from pyflinkcep.spark.state.key_groups import KeyGroups
from tests.unit.spark.worker.buckets import Bucket, SpyStorage, a_to_b, event, name_is, named

pytestmark = pytest.mark.usefixtures("each_path")


def filled(pattern: Pattern, **more: Any) -> SpyStorage:
    """Return the state that a pattern leaves: a partial match at 10 and queued events."""
    bucket = Bucket(pattern, **more)
    bucket.batch([event("k", 10, "a")], 5)
    bucket.batch([event("k", 20, "a"), event("k", 30, "b")], 10)
    assert bucket.pages()
    assert bucket.index().segments
    return bucket.storage


CHANGES = {
    "another stage": (a_to_b().followedBy("c").where(name_is("c")), "pattern: 'a → b' is now"),
    "another window": (a_to_b(window_ms=30), "window: '20 ms' is now '30 ms'"),
    "another condition": (
        Pattern.begin("a").where(name_is("a")).followedBy("b").where(name_is("c")).within(timedelta(milliseconds=20)),
        r"condition \d \(stage b\): '.*\"b\".*' is now '.*\"c\".*'",
    ),
    "another skip strategy": (
        Pattern.begin("a", AfterMatchSkipStrategy.skipPastLastEvent()).where(name_is("a")).followedBy("b").where(name_is("b")).within(timedelta(milliseconds=20)),
        "skip strategy: .*is now .*",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "said"), CHANGES.values(), ids=CHANGES)
def test_a_changed_pattern_is_refused(changed: Pattern, said: str) -> None:
    """State of another pattern is refused with an error that says what changed."""
    storage = filled(a_to_b())
    bucket = Bucket(changed, storage=storage)

    with pytest.raises(PatternChangedError, match=said):
        bucket.batch([event("k", 40, "b")], 30)


def test_a_changed_function_is_taken() -> None:
    """The code of a condition may change while partial matches wait, as in Flink."""
    storage = filled(a_to_b(named))
    bucket = Bucket(
        Pattern.begin("a").where(lambda e: False).followedBy("b").where(lambda e: e.ts == 30)
        .within(timedelta(milliseconds=30 - 10)),
        storage=storage, watermark=10,
    )  # fmt: skip
    bucket.batch([], 100)
    bucket.close()

    assert (bucket.matches, bucket.timeouts) == ([], [("k", 30, [["a", 10]])])


def test_restart_drops_partial_matches_and_keeps_the_queue() -> None:
    """With onPatternChange="restart" events that still wait are matched, the rest is forgotten."""
    storage = filled(a_to_b(named))
    bucket = Bucket(
        a_to_b(named, window_ms=30), storage=storage, on_change="restart", timer=20, watermark=10
    )
    bucket.batch([], 100)

    assert bucket.matches == [("k", 30, [["a", 20], ["b", 30]])]
    assert bucket.timeouts == []
    assert storage.is_empty


def test_restart_happens_once() -> None:
    """After a restart the state is the new pattern's, and is kept from batch to batch."""
    storage = filled(a_to_b(named))
    bucket = Bucket(
        a_to_b(named, window_ms=30), storage=storage, on_change="restart", timer=20, watermark=10
    )
    bucket.batch([], 25)
    bucket.batch([], 100)

    assert bucket.matches == [("k", 30, [["a", 20], ["b", 30]])]


@pytest.mark.parametrize("on_change", ["fail", "restart"])
def test_other_key_groups_are_refused(on_change: str) -> None:
    """The number of key groups is part of the checkpoint, whatever onPatternChange says."""
    bucket = Bucket(a_to_b(), storage=filled(a_to_b()), key_groups=4, on_change=on_change)

    with pytest.raises(PatternChangedError, match="key groups: '8' is now '4'") as refused:
        bucket.batch([event("k", 40, "b")], 30)

    hint = "use keyGroups=8 as when the checkpoint was created, or start a new one"
    assert refused.value.hint == hint


def test_a_bucket_for_each_key_group() -> None:
    """Where asked for, each key group has a bucket, and so a task, of its own."""
    groups = KeyGroups(128, 128)
    ids = groups.bucket_ids()

    assert [groups.of_bucket(id_) for id_ in ids] == [[group] for group in range(128)]
    assert (KeyGroups(128).bucket_count, str(KeyGroups(128))) == (16, "128")
    assert str(groups) == "128 for 128 tasks"
    for wrong in (100, 256, 0, True):
        with pytest.raises(InvalidArgumentError, match=f"parallelTasks={wrong}: expected a power"):
            KeyGroups(128, wrong)


def test_other_parallel_tasks_are_refused() -> None:
    """The hint says with what the checkpoint was created."""
    current = {"key groups": "128"}
    data = BucketIndex({"key groups": "128 for 128 tasks"}, watermark=1).to_bytes()
    with pytest.raises(PatternChangedError) as refused:
        BucketIndex.load(data, current, "restart")

    assert "use keyGroups=128, parallelTasks=128 as" in str(refused.value.hint)


@pytest.mark.parametrize("on_change", ["fail", "restart"])
def test_another_key_is_refused(on_change: str) -> None:
    """Queued events are divided by the key, so that it cannot change, with or without restart."""
    bucket = Bucket(a_to_b(), storage=filled(a_to_b()), keyed=False, on_change=on_change)

    with pytest.raises(PatternChangedError, match="key: ") as refused:
        bucket.batch([event("k", 40, "b")], 30)

    assert str(refused.value.hint).startswith(
        "use the same key as when the checkpoint was created, or start a new one"
    )


def test_restart_asks_queued_events_the_new_conditions() -> None:
    """Answers that Spark gave to the old SQL conditions are never taken for the new ones'."""
    storage = filled(a_to_b())
    swapped = Pattern.begin("x").where(name_is("b")).followedBy("y").where(name_is("a"))
    bucket = Bucket(swapped, storage=storage, on_change="restart", timer=20, watermark=10)
    bucket.batch([event("k", 40, "a")])
    bucket.batch([], 100)

    assert bucket.matches == [("k", 40, [["x", 30], ["y", 40]])]


def test_restart_refuses_sql_that_queued_events_were_not_asked() -> None:
    """An SQL condition that is new cannot be asked of queued events: refused, nothing is lost."""
    storage = filled(a_to_b())
    changed = Pattern.begin("a").where(name_is("a")).followedBy("c").where(name_is("c"))
    bucket = Bucket(changed, storage=storage, on_change="restart", timer=20, watermark=10)

    with pytest.raises(PatternChangedError, match="2 buffered events were never evaluated"):
        bucket.batch([], 100)
    assert storage.segments_kept == 1


def test_restart_drops_partial_matches_of_sql() -> None:
    """A pattern that changes from SQL to functions takes the queue, whatever Spark answered."""
    storage = filled(a_to_b())
    bucket = Bucket(a_to_b(named), storage=storage, on_change="restart", timer=20, watermark=10)
    bucket.batch([], 100)

    assert bucket.matches == [("k", 30, [["a", 20], ["b", 30]])]
