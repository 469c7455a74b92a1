# SPDX-License-Identifier: Apache-2.0
"""A stream's buckets with more conditions than one number has bits: queue, filter, restart."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.spark.state.fingerprint import requeued, still_droppable
from tests.unit.spark.worker.buckets import Bucket, event, name_is, named

pytestmark = pytest.mark.usefixtures("each_path")

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
    assert bucket.task.layout.bit_columns == (
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
    stored = old.task.fingerprint

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
