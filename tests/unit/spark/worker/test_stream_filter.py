# SPDX-License-Identifier: Apache-2.0
"""A stream that drops events before the shuffle gives what it gives with all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import KeyNeeds
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import CepError, InputError, PatternChangedError
from pyflinkcep.matching import stretches
from pyflinkcep.matching.columns import BITS, spark_atoms
from pyflinkcep.matching.sorting import BUDGET_BYTES
from pyflinkcep.matching.stretches import needed_stretches, rows_of_needed_keys
from pyflinkcep.spark.state.pages import read_table, write_table, write_tables
from pyflinkcep.spark.worker import pack as packing
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.pack import PackTask, count_late, read_times, write_times
from pyflinkcep.testing import OperatorTestHarness
from tests.conformance.cases import OPERATOR_FILES, Case, build_pattern, by_key, chunks
from tests.conformance.drivers import disagreements
from tests.kernel_harness import needs_kernel
from tests.property.strategies import Event, PatternSpec, patterns, timed_events
from tests.property.test_properties import relaxed_patterns
from tests.shorthand import ms
from tests.unit.spark.worker.buckets import Bucket, name_is
from tests.unit.spark.worker.test_batch_task import Recording, batches, layout
from tests.unit.spark.worker.test_bucket_conformance import (
    check_bucket,
    condition,
    rows_for_subtypes,
)

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
A_TO_B = Pattern.begin("a").where(name_is("a")).followedBy("b").where(name_is("b"))


def event(ts: int, name: str, key: str = "k") -> dict[str, Any]:
    """Return an event that is told by its time."""
    return {"key": key, "ts": ts, "id": ts, "name": name}


def names_are(names: frozenset[str]) -> str:
    """Return the condition, as a text, that an event has one of some names."""
    return json.dumps(["or", *(["name", name] for name in sorted(names))])


@st.composite
def micro_batches(draw: st.DrawFn) -> list[tuple[Rows, int]]:
    """Return micro-batches of two keys' events in any order, each with its watermark."""
    names = st.sampled_from("abcxyz")  # no stage takes x, y or z
    events = draw(st.lists(st.tuples(names, st.integers(1, 4), st.integers(0, 12)), max_size=24))
    found, watermark, at = [], 0, 0
    while at < len(events):
        size = draw(st.integers(1, 8))
        rows = [
            {"key": f"k{price % 2}", "ts": ts, "id": number, "name": name, "price": float(price)}
            for number, (name, price, ts) in enumerate(events[at : at + size], at)
        ]
        found.append((rows, watermark))
        watermark += draw(st.integers(0, 4))
        at += size
    return found


def seen(bucket: Bucket) -> tuple[Any, ...]:
    """Return what can be seen: where time is hidden, a trailing NOT's matches have no order."""
    matches = [(key, ts if bucket.shows_time else 0, m) for key, ts, m in bucket.matches]
    if any(table.is_pending for table in bucket.task.rules.nfa.tables.values()):
        matches.sort(key=repr)
    return by_key(matches), by_key(bucket.timeouts), bucket.late_count


def check(
    spec: PatternSpec, batches: list[tuple[Rows, int]], timeouts: bool, shows_time: bool
) -> None:
    """Compare with and without the filter, if it drops anything."""
    pattern = spec.build(names_are)
    filtered, whole = (
        Bucket(pattern, timeouts, filtered=on, shows_time=shows_time, key_groups=2)
        for on in (True, False)
    )
    for bucket in (filtered, whole):
        for rows, watermark in batches:
            bucket.batch(rows, watermark)
            bucket.batch([])
        bucket.close()
        assume(filtered.dropped_count > 0)  # else both are the same

    assert seen(filtered) == seen(whole)
    assert whole.dropped_count == 0


@given(relaxed_patterns(), micro_batches(), st.booleans(), st.booleans())
def test_the_filter_changes_nothing_of_relaxed_patterns(
    spec: PatternSpec, batches: Any, timeouts: bool, shows_time: bool
) -> None:
    """The same where half of the patterns let something be dropped."""
    check(spec, batches, timeouts, shows_time)


@given(patterns(), micro_batches(), st.booleans(), st.booleans())
def test_the_filter_changes_nothing(
    spec: PatternSpec, batches: Any, timeouts: bool, shows_time: bool
) -> None:
    """Matches, timeouts and the number of late events are the same, in order for each key."""
    check(spec, batches, timeouts, shows_time)


_CASES = chunks(OPERATOR_FILES, 50)


def drops(case: Case) -> bool:
    """Whether a case's pattern lets any event be dropped: where it does not, nothing differs."""
    try:
        pattern = build_pattern(rows_for_subtypes(case), condition)
        return bool(
            Bucket(pattern, case["timeouts"], case["keyed"], filtered=True).task.plan.dropped
        )
    except CepError:
        return False


@pytest.mark.parametrize("cases", [part for _, part in _CASES], ids=[name for name, _ in _CASES])
def test_operator_cases(cases: tuple[Case, ...]) -> None:
    """Flink's recorded matches, timeouts and number of late events are a filtered stream's too."""

    def check_filtered(case: Case) -> str | None:
        return check_bucket(case, filtered=True)

    dropping = [case for case in cases if drops(case)]
    assert dropping
    assert disagreements(dropping, check_filtered) == {}


# --- packed rows


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(-(2**63), 2**63 - 1))
def test_times_survive_packing(times: list[int], watermark: int) -> None:
    """Any times come back as they were, and those at or before the watermark are counted."""
    data = write_times(np.asarray(times, np.int64))

    assert read_times(data).tolist() == times
    assert count_late(data, watermark) == sum(ts <= watermark for ts in times)


def test_near_times_are_small() -> None:
    """Times within a minute take two bytes each."""
    assert len(write_times(np.arange(1_700_000_000_000, 1_700_000_050_000, 1000))) == 16 + 50 * 2


def packed(
    bucket: Bucket, rows: Rows, size: int, tells_latest: bool = True
) -> list[dict[str, Any]]:
    """Return the packed rows of events that come in Arrow batches of a size."""
    task = bucket.task
    pack = PackTask(
        task.plan.layout, task.plan.schema, task.plan.key_groups, task.plan.dropped, tells_latest
    )
    batches = bucket.events(rows).to_batches(size)
    return [row for batch in pack.run(iter(batches)) for row in batch.to_pylist()]


def ids(data: bytes | None) -> list[int]:
    """Return the ids of packed events."""
    return [] if data is None else read_table(data).column("id").to_pylist()


def test_every_bucket_is_told_the_latest_time() -> None:
    """Buckets without events get a row too, but only where the watermark moves by it."""
    bucket = Bucket(A_TO_B, key_groups=64)
    rows = [event(10 * n, "abx"[n % 3]) for n in range(12)]
    told, untold = (packed(bucket, rows, 5, tells) for tells in (True, False))

    assert sorted(row["bucket"] for row in told) == sorted(bucket.task.plan.key_groups.bucket_ids())
    assert {row["latest"] for row in told} == {110}
    assert [row["data"] for row in told if row["data"]] == [row["data"] for row in untold]
    assert len(untold) < len(told)


def test_small_batches_are_packed_together() -> None:
    """Many Arrow batches become one row for a bucket, in the order of arrival."""
    rows = [event(10 * n, "abx"[n % 3]) for n in range(12)]
    (row,) = packed(Bucket(A_TO_B), rows, 2)

    assert ids(row["data"]) == [10 * n for n in range(12)]
    assert row["dropped"] is None


def test_much_is_packed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing does not wait for the end of a partition: parts are numbered as they come."""
    monkeypatch.setattr(packing, "_PACKED_BYTES", 200)
    rows = packed(Bucket(A_TO_B), [event(n, "ab"[n % 2]) for n in range(100)], 2)

    assert [row["position"] for row in rows] == list(range(len(rows)))
    assert len(rows) > 5
    assert [n for row in rows for n in ids(row["data"])] == list(range(100))


def test_tables_in_one_buffer_are_as_those_alone() -> None:
    """Each is what it would be by itself; one without rows is nothing."""
    table = pa.table({"n": [1, 2, 3], "s": ["a", None, "ccc"]})
    parts = [table.slice(0, 2), table.slice(0, 0), table.slice(2)]

    assert write_tables(parts).to_pylist() == [write_table(parts[0]), None, write_table(parts[2])]


def test_packing_again_gives_the_same_bytes() -> None:
    """
    What goes through a shuffle is a function of the events alone.

    If an executor is lost, Spark makes its part of the shuffle anew, and fails the query if that is
    not what tasks that have ended have read.
    """
    bucket, random = Bucket(A_TO_B, filtered=True), np.random.default_rng(4)
    rows: Rows = [event(int(n), "abx"[n % 3], f"k{n % 5}") for n in random.integers(0, 10**6, 300)]
    for row in rows[::7]:
        row["id"] = None
    assert packed(bucket, rows, 7) == packed(bucket, rows, 7)
    assert packed(bucket, rows, 300) == packed(bucket, [dict(row) for row in rows], 300)


def test_dropped_events_leave_their_times() -> None:
    """Of events that no stage can use only the times are shipped, even when there are no others."""
    bucket = Bucket(A_TO_B, filtered=True)
    (mixed,) = packed(bucket, [event(5, "x"), event(6, "a"), event(9, "x", "j")], 2)
    (alone,) = packed(bucket, [event(5, "x")], 2)

    assert (ids(mixed["data"]), read_times(mixed["dropped"]).tolist()) == ([6], [5, 9])
    assert (alone["data"], read_times(alone["dropped"]).tolist()) == (None, [5])
    assert packed(bucket, [], 2) == []


def test_dropped_events_are_checked() -> None:
    """A null key or time is refused whether or not a stage could use the event."""
    bucket = Bucket(A_TO_B, filtered=True)
    task = bucket.task
    pack = PackTask(task.plan.layout, task.plan.schema, task.plan.key_groups, task.plan.dropped)
    (batch,) = bucket.events([event(5, "x")]).to_batches()
    for name, said in (("ts", "null event time"), ("key", "null key")):
        at = batch.schema.get_field_index(name)
        broken = batch.set_column(at, batch.schema.field(at), pa.nulls(1, batch.column(at).type))
        with pytest.raises(InputError, match=said):
            list(pack.run(iter([broken])))


def test_events_without_key_or_time_pass_by() -> None:
    """They are counted and passed on; the others are packed as if they were not there."""
    bucket = Bucket(A_TO_B, filtered=True)
    task = bucket.task
    pack = PackTask(
        task.plan.layout,
        task.plan.schema,
        task.plan.key_groups,
        task.plan.dropped,
        drops_nulls=True,
    )
    (batch,) = bucket.events([event(5, "a"), event(7, "b"), event(9, "b")]).to_batches()
    broken = []
    for name, null in (("ts", 1), ("key", 2)):
        at = batch.schema.get_field_index(name)
        values = batch.column(at).to_pylist()
        values[null] = None
        field = batch.schema.field(at)
        broken.append(batch.set_column(at, field, pa.array(values, field.type)))
    broken.append(broken[1].slice(2))
    rows = [row for made in pack.run(iter(broken)) for row in made.to_pylist()]
    kept = [read_table(row["nulls"]) for row in rows if row["nulls"] is not None]

    assert sum(row["nullRecords"] for row in rows) == 3
    assert sorted(n for row in rows if row["data"] for n in ids(row["data"])) == [5, 5, 7, 9]
    assert [table.column_names == task.plan.layout.schema.names for table in kept] == [True] * len(
        kept
    )
    assert [len(table) for table in kept] == [3]


# --- another pattern on the queue of a filtered stream


def waiting(pattern: Pattern = A_TO_B, filtered: bool = True) -> Bucket:
    """Return a bucket where an a and a b wait, and a c came between them."""
    bucket = Bucket(pattern, filtered=filtered)
    bucket.batch([event(10, "a"), event(11, "c"), event(12, "b")], 5)
    return bucket


def changed(before: Bucket, pattern: Pattern, filtered: bool = True) -> Bucket:
    """Return the bucket as another pattern finds it."""
    return Bucket(
        pattern,
        storage=before.storage,
        on_change="restart",
        timer=before.timer,
        watermark=before.watermark,
        filtered=filtered,
    )


STRICT = Pattern.begin("a").where(name_is("a")).next("b").where(name_is("b"))


@pytest.mark.parametrize(
    "pattern", [STRICT, Pattern.begin("a").where(lambda e: e.name == "c")], ids=["strict", "python"]
)
def test_a_pattern_that_needs_what_was_dropped_is_refused(pattern: Pattern) -> None:
    """A restart that would match without events that the new pattern could use is refused."""
    before = waiting()
    bucket = changed(before, pattern)

    with pytest.raises(PatternChangedError, match="the new pattern needs were dropped"):
        bucket.batch([], 100)
    assert before.storage.segments_kept == 1


def test_a_pattern_that_needs_no_more_goes_on() -> None:
    """A restart that can do without the same events matches those that wait, time and again."""
    first = changed(waiting(), A_TO_B.within(ms(5)))
    first.batch([event(13, "a"), event(14, "c"), event(15, "b")], 12)
    second = changed(first, A_TO_B.within(ms(9)))
    second.batch([], 100)

    assert first.matches == [("k", 12, [["a", 10], ["b", 12]])]
    assert second.matches == [("k", 15, [["a", 13], ["b", 15]])]
    with pytest.raises(PatternChangedError, match="the new pattern needs were dropped"):
        changed(changed_once(), STRICT).batch([], 100)


def changed_once() -> Bucket:
    """Return a bucket whose queue an older pattern filtered, and which has been restarted since."""
    bucket = changed(waiting(), A_TO_B.within(ms(5)))
    bucket.batch([], 6)
    return bucket


def test_a_filtered_queue_can_be_left_behind() -> None:
    """The way that the refusal names: the old pattern unfiltered until its queue has passed."""
    old = waiting()
    old = Bucket(A_TO_B, storage=old.storage, timer=old.timer, watermark=old.watermark)
    old.batch([event(20, "a"), event(21, "c"), event(22, "b")], 12)
    bucket = changed(old, STRICT)
    bucket.batch([event(30, "a"), event(31, "b")], 25)
    bucket.batch([], 100)

    assert old.matches == [("k", 12, [["a", 10], ["b", 12]])]
    assert bucket.matches == [("k", 31, [["a", 30], ["b", 31]])]


# --- keys without the events that every match has are passed over, and lose nothing


A, B, C = (Pattern.begin(name).where(f"name = '{name}'") for name in "abc")


def taking(name: str) -> str:
    """Return the condition of a stage."""
    return f"name = '{name}'"


def needs_of(pattern: Pattern) -> set[str] | None:
    """Return the stages that every match has."""
    nfa = NFACompiler.compile(pattern, False)
    needs = KeyNeeds.of(nfa, known_bits(nfa.atoms))
    if needs is None:
        return None
    return {stage for number, stage in enumerate(nfa.stages) if needs.every >> number & 1}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (A.followedBy("b").where(taking("b")), {"a", "b"}),
        (A.followedBy("b").where(taking("b")).optional().next("c").where(taking("c")), {"a", "c"}),
        (A.followedBy("b").where(taking("b")).oneOrMore().next("c").where(taking("c")), set("abc")),
        (A.next("b").where(taking("b")).times(2, 3).optional(), {"a"}),
        (A.optional().next("b").where(taking("b")), {"b"}),
        (A.notNext("n").where(taking("b")).followedBy("c").where(taking("c")), {"a", "c"}),
        (A.notFollowedBy("n").where(taking("b")).within(timedelta(milliseconds=9)), {"a"}),
        (A.followedBy(B.next("c").where(taking("c")).optional()), {"a", "b"}),
        (A.followedBy(B.next("c").where(taking("c"))).optional(), {"a"}),
        (A.next(B.next("c").where(taking("c"))).oneOrMore(), set("abc")),
        (A.where(lambda event: True).next("b").where(taking("b")), None),
        (A.next("b").where("price > sum(a.price)"), None),
    ],
)
def test_stages_that_every_match_has(pattern: Pattern, expected: set[str] | None) -> None:
    """Whatever is optional, or is about an absent event, is none; functions must be called."""
    assert needs_of(pattern) == expected


def test_keys_are_passed_over() -> None:
    """Of three keys one has both stages; the last one may have the second in the next chunk."""
    nfa = NFACompiler.compile(A.followedBy("b").where(taking("b")), False)
    by_name = {str(atom.condition).split("'")[1]: atom.bit for atom in spark_atoms(nfa)}
    bits = np.array([by_name.get(name, 0) for name in "aaxabbax"])
    firsts = np.array([0, 3, 5, 6])
    rules, known = CepOperator(nfa), known_bits(nfa.atoms)
    all_ = needed_stretches(rules, bits, firsts, None)
    few = needed_stretches(rules, bits, firsts, KeyNeeds.of(nfa, known))

    assert all_.tolist() == [True, True, False, True]
    assert few.tolist() == [False, True, False, True]


@needs_kernel
@pytest.mark.parametrize("least", [-(1 << 40), 0, 7_000])
def test_events_of_keys_without_a_match_are_not_sorted(least: int) -> None:
    """Of many keys with few events each, hardly more rows are left than those with both stages."""
    nfa = NFACompiler.compile(A.followedBy("b").where(taking("b")), False)
    needs, where = (
        KeyNeeds.of(nfa, known_bits(nfa.atoms)),
        attrs.evolve(layout(), bit_columns=("b",)),
    )
    random = np.random.default_rng(7)
    keys = least + 3 * random.integers(0, 20_000, 40_000)
    bits = np.where(random.random(40_000) < 0.1, random.integers(1, 4, 40_000), 0)
    both = [set(keys[bits & atom.bit != 0]) for atom in nfa.atoms]
    expected = np.flatnonzero(np.isin(keys, list(set.intersection(*both))))

    rows = rows_of_needed_keys(pa.table({"key": keys, "b": bits}), where, CepOperator(nfa), needs)
    assert rows is not None
    assert set(expected) <= set(rows)
    assert len(rows) < len(keys) / 3
    few = pa.table({"key": keys % 50, "b": bits})
    assert rows_of_needed_keys(few, where, CepOperator(nfa), needs) is None


@pytest.mark.parametrize("head", [1, 4, 256])
def test_the_first_events_of_long_stretches_tell(
    head: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each key begins a match early the others are not looked at; the answers are the same."""
    monkeypatch.setattr(stretches, "_HEAD", head)
    nfa = NFACompiler.compile(A.followedBy("b").where(taking("b")), False)
    by_name = {str(atom.condition).split("'")[1]: atom.bit for atom in spark_atoms(nfa)}
    random = np.random.default_rng(head)
    for _ in range(20):
        size = int(random.integers(200, 2_000))
        firsts = np.unique(np.r_[0, random.integers(0, size, random.integers(0, 20))])
        share = float(random.choice([0, 0.01, 0.2, 1]))
        bits = np.where(random.random(size) < share, by_name["a"], by_name["b"])
        begins = bits == by_name["a"]
        expected = [bool(own.any()) for own in np.split(begins, firsts[1:])]
        assert needed_stretches(CepOperator(nfa), bits, firsts, None).tolist() == expected


def answered(given_: Iterator[pa.RecordBatch], pattern: Pattern) -> Iterator[pa.RecordBatch]:
    """Add the answers to the conditions ``name IN (...)``."""
    atoms = spark_atoms(NFACompiler.compile(pattern, False))
    names = {atom.bit: set(str(atom.condition).split("'")[1::2]) for atom in atoms}
    for batch in given_:
        bits = [
            sum(bit for bit, own in names.items() if name in own)
            for name in batch.column("name").to_pylist()
        ]
        yield batch.append_column(BITS, pa.array(bits, pa.int64()))


def of_names(names: frozenset[str]) -> str:
    """Return a condition in SQL."""
    listed = ", ".join(f"'{name}'" for name in sorted(names))
    return f"name IN ({listed})"


keyed_events = st.lists(timed_events(), min_size=1, max_size=6)
budgets = st.sampled_from([1, 100, 300, BUDGET_BYTES])


@pytest.mark.usefixtures("each_path")
@given(patterns(), keyed_events, st.integers(1, 5), budgets, st.booleans(), st.randoms())
def test_matches_are_those_of_the_operator(
    spec: PatternSpec,
    keys: list[list[tuple[Event, int]]],
    size: int,
    sort_bytes: int,
    looks: bool,
    random: Random,
) -> None:
    """Whatever the pattern, however events come, chunks cut keys, and keys are left out before."""
    pattern = spec.build(of_names)
    assume(needs_of(pattern))
    rows = [
        (key, ts, event.name, event.number, event.price)
        for key, timed in enumerate(keys)
        for event, ts in timed
    ]
    recording = Recording()
    recording.wants_timeouts = False
    where = attrs.evolve(layout(), bit_columns=(BITS,))
    task = BatchTask(pattern, where, None, recording, sort_bytes=sort_bytes)
    arrival = random.sample(range(len(rows)), len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyflinkcep.matching.sorting._BLOCKS", 2)  # few events a chunk
        if looks:
            patch.setattr(stretches, "_SAMPLE", 1)
        list(task.run(answered(batches(rows, size, arrival), pattern)))
    expected: list[Any] = []
    for key, timed in enumerate(keys):  # as in batch, one key after another
        harness = OperatorTestHarness(spec.build(), False)
        for event, ts in timed:
            harness.processElement(event, ts, key)
        harness.close()
        for _, ts, match in harness.matches:
            taken = {stage: [event.number for event in own] for stage, own in match.items()}
            expected.append((key, ts, taken))

    assert recording.matches == expected
