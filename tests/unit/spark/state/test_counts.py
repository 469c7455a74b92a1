# SPDX-License-Identifier: Apache-2.0
"""What a bucket tells of its state and its work, on both paths."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.stored_state import pack, unpack
from pyflinkcep.errors import StateFormatError
from pyflinkcep.spark.state import bucket_state
from pyflinkcep.spark.state.fingerprint import requeued, still_droppable
from pyflinkcep.spark.state.pages import PageCounts, seal, unseal
from pyflinkcep.spark.worker.bucket import BucketWork
from tests.unit.spark.worker.buckets import Bucket, SpyStorage, a_to_b, event, name_is, named

pytestmark = pytest.mark.usefixtures("each_path")


def told(bucket: Bucket, *names: str) -> list[Any]:
    """Return some counters of the last run."""
    return [bucket.told[-1][name] for name in names]


def test_matches_partial_matches_and_queue() -> None:
    """Each run tells what it found, what is left by stage, what waits and since when."""
    bucket = Bucket(a_to_b(), delay_ms=5)

    bucket.batch([event("u", 10, "a"), event("v", 12, "a"), event("v", 20, "b")])
    assert told(bucket, "numMatches", "numEventsQueued", "a", "b") == [0, 1, 2, 0]
    assert told(bucket, "oldestQueuedEvent", "oldestPartialMatch", "watermark") == [20, 10, 15]
    assert told(bucket, "numKeys", "numEventsHeld", "largestKey") == [2, 2, 1]
    bucket.batch([event("u", 14, "a", 1), event("w", 25, "x")])  # the first is late
    assert told(bucket, "numMatches", "numEventsQueued", "a", "endedByWindow") == [1, 1, 1, 0]
    assert told(bucket, "oldestQueuedEvent", "oldestPartialMatch") == [25, 10]
    bucket.batch([event("w", 60, "x")])
    assert told(bucket, "numMatches", "numKeys", "endedByWindow") == [0, 0, 1]
    assert bucket.told[-1]["oldestPartialMatch"] is None


def same_price(b: Any, ctx: Any) -> bool:
    """Whether a b has the price of the a."""
    return b.name == "b" and b.price == ctx.getEventsForPattern("a")[0].price


def test_matches_held_back_and_superfluous() -> None:
    """A match that a skip strategy holds back is counted until it comes out or is superfluous."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    pattern = Pattern.begin("a", skip).where(name_is("a")).followedBy("b").where(same_price)
    bucket = Bucket(pattern.within(timedelta(milliseconds=100)), delay_ms=0)
    rows = [event("u", 10 + at, name) for at, name in enumerate("aabb")]
    for row, price in zip(rows, (1.0, 2.0, 2.0, 1.0), strict=True):
        row["price"] = price

    bucket.batch(rows[:3])
    names = ("numMatches", "numMatchesHeldBack", "endedBySkipStrategy", "a")
    assert told(bucket, *names, "oldestPartialMatch") == [0, 1, 0, 1, 10]
    bucket.batch(rows[3:])
    assert told(bucket, *names[:3], "numKeys") == [1, 0, 1, 0]


BY_EVENT = ("endedByContiguity", "endedByUntil", "endedByNotStage")


def test_an_event_ends_partial_matches_for_its_reason() -> None:
    """What may not be passed by, what ``until`` stops and what NOT forbids are told apart."""
    a = Pattern.begin("a").where(name_is("a"))
    loop = a.next("b").where(name_is("b")).oneOrMore().until(name_is("c"))
    group = Pattern.begin(a.next("b").where(name_is("b"))).oneOrMore()
    closed = group.until(name_is("c")).followedBy("d").where(name_is("d"))
    forbidden = a.notFollowedBy("n").where(name_is("n")).followedBy("b").where(name_is("b"))
    cases = [
        (a.next("b").where(name_is("b")), "ax", [1, 0, 0]),
        (loop.next("d").where(name_is("d")), "abc", [0, 1, 0]),
        (closed, "ac", [0, 1, 0]),
        (forbidden, "an", [0, 0, 1]),
        (a.notNext("n").where(name_is("n")).next("b").where(name_is("b")), "an", [0, 0, 1]),
        (a.notNext("n").where(name_is("n")).next("b").where(name_is("b")), "ax", [1, 0, 0]),
    ]
    for pattern, names, ended in cases:
        bucket = Bucket(pattern, delay_ms=0)

        bucket.batch([event("u", 10 + at, name) for at, name in enumerate(names)])

        assert told(bucket, *BY_EVENT, "endedByWindow", "numBuckets") == [*ended, 0, 1], pattern


def test_counts_are_those_of_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """However pages are divided, their counts are those of what they hold."""
    for limit in ("_LARGE_PAGE", "_LARGE_COMMON", "_LARGE_RECENT"):
        monkeypatch.setattr(bucket_state, limit, 1500)
    monkeypatch.setattr(bucket_state, "_SMALL_COMMON", 100)
    bucket = Bucket(a_to_b(window_ms=40), key_groups=4, delay_ms=7)
    choose = random.Random(3)
    for start in range(0, 200, 20):
        names = [(f"k{choose.randrange(60)}", choose.choice("aab")) for _ in range(20)]
        bucket.batch([event(key, start + at, name) for at, (key, name) in enumerate(names)])
        index, pages = bucket.index(), bucket.pages()
        work = BucketWork(bucket.task, bucket.storage)
        count = bucket.task.matcher.count
        assert index.counts == {
            id: list(PageCounts.of_page(page, count(page))) for id, page in pages.items()
        }
        sizes = {number: work.state.read_segment(number).num_rows for number in index.segments}
        assert index.queued == sizes
    assert len(pages) > 2
    assert PageCounts.sum(index.counts.values()) == work.state.held


def changed(storage: SpyStorage, change: Any, counts: bytes | None) -> None:
    """Change the header of a stored index, and the counts of its pages."""
    data = storage.read_index()
    assert data is not None
    header, sections = unpack(unseal(data))
    change(header)
    held = dict(zip(header["held"], sections, strict=True)) | {"counts": counts}
    kept = {name: section for name, section in held.items() if section is not None}
    header["held"] = list(kept)
    storage.write_index(seal(pack(header, list(kept.values()))))


def test_state_without_counts_is_read() -> None:
    """A checkpoint of a release without counts goes on; what is written next is counted."""
    bucket = Bucket(a_to_b(), delay_ms=0)
    bucket.batch([event("u", 10, "a")])
    changed(bucket.storage, lambda header: header.pop("queued"), counts=None)

    assert bucket.index().counts == {}
    bucket.batch([event("u", 11, "a")])
    assert told(bucket, "numKeys", "a") == [1, 2]


@pytest.mark.parametrize("counts", [b"", b"1234", bytes(8 * 4), bytes(8 * 6 + 1)])
def test_damaged_counts_are_refused(counts: bytes) -> None:
    """Counts that nobody wrote are damage like any other."""
    bucket = Bucket(a_to_b(), delay_ms=0)
    bucket.batch([event("u", 10, "a")])
    changed(bucket.storage, lambda header: None, counts=counts)

    with pytest.raises(StateFormatError, match="damaged"):
        bucket.index()


# --- a stream's buckets with more conditions than one number has bits: queue, filter, restart


STAGES = 130


def chain(condition: Any, stages: int = STAGES) -> Pattern:
    """Return a pattern of stages that follow each other, each with a condition of its own."""
    pattern: Any = Pattern.begin("s0").where(condition("n0"))
    for number in range(1, stages):
        pattern = pattern.followedBy(f"s{number}").where(condition(f"n{number}"))
    result: Pattern = pattern
    return result


def fed(bucket: Bucket) -> Bucket:
    """Feed an event for each stage, in micro-batches, with others between; half of them wait."""
    for begin in range(0, STAGES, 30):
        numbers = range(begin, min(begin + 30, STAGES))
        rows = [event("k", 20 + 2 * n, f"n{n}") for n in numbers]
        bucket.batch([*rows, event("k", 21 + 2 * begin, "x")], 2 * begin)
    bucket.close()
    return bucket


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("condition", [name_is, named])
def test_each_event_is_answered_for(condition: Any, filtered: bool) -> None:
    """Answers in three words of bits, or none, give the one match; the filter drops the others."""
    bucket = fed(Bucket(chain(condition), filtered=filtered))

    taken = [[f"s{n}", 20 + 2 * n] for n in range(STAGES)]
    assert bucket.matches == [("k", 18 + 2 * STAGES, taken)]
    assert bucket.task.plan.layout.bit_columns == (
        ("__cep_bits", "__cep_bits1", "__cep_bits2") if condition is name_is else ()
    )
    assert bucket.dropped_count == (5 if filtered and condition is name_is else 0)


@pytest.mark.parametrize(("before", "after"), [(STAGES, 70), (70, 3), (STAGES, STAGES - 1)])
def test_queued_events_keep_their_answers(before: int, after: int) -> None:
    """A restart with fewer stages finds each answer in another word, or another bit of it."""
    old = Bucket(chain(name_is, before))
    old.batch([event("k", 10 + n, f"n{n}") for n in range(before)], 0)

    new = chain(name_is, after)
    bucket = Bucket(new, storage=old.storage, on_change="restart", timer=old.timer)
    bucket.close()

    assert bucket.matches == [("k", 9 + after, [[f"s{n}", 10 + n] for n in range(after)])]


def test_events_that_did_not_come_are_counted_anew() -> None:
    """Kinds of dropped events are integers of any size, which stored state keeps."""

    def behind(functions: int) -> Pattern:
        pattern: Any = Pattern.begin("a").where(name_is("a"))
        for number in range(functions):
            pattern = pattern.followedBy(f"f{number}").where(named(f"f{number}"))
        result: Pattern = pattern
        return result

    def bit(pattern: Pattern) -> int:
        (bit,) = (a.bit for a in NFACompiler.compile(pattern).atoms if a.stage == "a")
        return bit

    old, new = Bucket(behind(100)), NFACompiler.compile(behind(70))
    both = frozenset({0, bit(behind(70))})
    stored = old.task.plan.fingerprint

    assert bit(behind(100)) != bit(behind(70)) > 1 << 63
    assert still_droppable([0, bit(behind(100))], stored, new, both) == sorted(both)

    schema = pa.schema(
        [("id", pa.int64()), ("__cep_bits", pa.int64()), ("__cep_bits1", pa.int64())]
    )
    bits = {"__cep_bits": [0, 0], "__cep_bits1": [bit(behind(100)) >> 63, 0]}
    queued = requeued(pa.table({"id": [1, 2], **bits}), schema, stored, new)
    assert queued.column("__cep_bits1").to_pylist() == [bit(behind(70)) >> 63, 0]


def test_the_index_keeps_kinds_of_any_size() -> None:
    """Stored state has kinds of dropped events beyond 64 bits as they are; none is negative."""
    bucket = Bucket(Pattern.begin("a").where(name_is("a")), filtered=True)
    bucket.batch([event("k", 10, "a"), event("k", 11, "x")], 5)
    index = bucket.index()
    ((segment, _),) = index.dropped.items()
    index.dropped[segment] = [0, 1 << 200]
    data = index.to_bytes()

    assert type(index).load(data, index.fingerprint, "fail").dropped == {segment: [0, 1 << 200]}
