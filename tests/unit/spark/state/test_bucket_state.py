# SPDX-License-Identifier: Apache-2.0
"""What a bucket keeps, what it reads and writes of it, and which state it refuses."""

from __future__ import annotations

import random
import struct
import zlib
from datetime import timedelta
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep import AfterMatchSkipStrategy, Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import (
    CepRuntimeError,
    InvalidArgumentError,
    PatternChangedError,
    StateFormatError,
)
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.numbers import Digits
from pyflinkcep.expressions.program import CompiledExpressions, Field, Kind
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.matching.matcher import fields_of
from pyflinkcep.sase import parse
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.spark.state import bucket_state
from pyflinkcep.spark.state.bucket_state import BucketIndex
from pyflinkcep.spark.state.fingerprint import CLOCK, changes, requeued
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import Page, seal, sealed_length, unseal
from pyflinkcep.spark.state.storage import SparkStorage
from pyflinkcep.spark.worker.bucket import NEVER
from pyflinkcep.testing import OperatorTestHarness
from tests.conformance.cases import by_key, make_event, match_ids
from tests.unit.spark.worker.buckets import Bucket, SpyStorage, a_to_b, event, name_is, named

pytestmark = pytest.mark.usefixtures("each_path")


def random_events(seed: int, keys: int, size: int) -> list[dict[str, Any]]:
    """Return events of many keys, up to 5 ms out of order."""
    choose = random.Random(seed)
    return [
        event(
            f"k{choose.randrange(keys)}",
            10 + at // 8 - choose.randrange(6),
            choose.choice("abc"),
            at,
        )
        for at in range(size)
    ]


def batches_of(rows: list[dict[str, Any]], size: int) -> list[tuple[list[dict[str, Any]], int]]:
    """Return micro-batches, each with the watermark that the rows before it make."""
    found, watermark = [], 0
    for at in range(0, len(rows), size):
        part = rows[at : at + size]
        found.append((part, watermark))
        watermark = max(watermark, max(row["ts"] for row in part) - 5)
    return found


def harness_answer(
    pattern: Pattern, batches: list[tuple[list[dict[str, Any]], int]]
) -> tuple[Any, Any, Any]:
    """Return matches, timeouts and late events by key, of the same events and watermarks."""
    harness = OperatorTestHarness(pattern, timeoutHandling=True, lateDataOutput=True)
    for rows, watermark in batches:
        harness.processWatermark(watermark)
        for row in rows:
            harness.processElement(make_event(row), row["ts"], row["key"])
    harness.close()
    return (
        by_key((key, ts, match_ids(m)) for key, ts, m in harness.matches),
        by_key((key, ts, match_ids(m)) for key, ts, m in harness.timeouts),
        by_key((key, late.id) for key, late in harness.lateData),
    )


def answer(bucket: Bucket) -> tuple[Any, Any, Any]:
    """Return what a bucket gave, by key."""
    return by_key(bucket.matches), by_key(bucket.timeouts), by_key(bucket.late)


# --- pages


@pytest.mark.parametrize(("size", "batch_size"), [(1000, 25), (2000, 400)])
@pytest.mark.parametrize("key_groups", [1, 4])
def test_pages_that_split_change_no_answer(
    monkeypatch: pytest.MonkeyPatch, key_groups: int, size: int, batch_size: int
) -> None:
    """However often pages are divided while keys are at work, results are the operator's."""
    monkeypatch.setattr(bucket_state, "_LARGE_PAGE", 2000)
    monkeypatch.setattr(bucket_state, "_LARGE_COMMON", 2000)
    batches = batches_of(random_events(1, keys=80, size=size), batch_size)
    bucket = Bucket(a_to_b(), key_groups=key_groups)
    deepest = 0
    for rows, watermark in batches:
        bucket.batch(rows, watermark)
        deepest = max(deepest, *bucket.index().depths.values(), 0)
    bucket.close()

    assert answer(bucket) == harness_answer(a_to_b(named), batches)
    assert deepest >= 2


def test_a_key_is_in_one_page_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """After any number of splits each waiting key is in the page that its hash leads to."""
    monkeypatch.setattr(bucket_state, "_LARGE_PAGE", 1000)
    monkeypatch.setattr(bucket_state, "_LARGE_COMMON", 1000)
    bucket = Bucket(a_to_b(window_ms=None), key_groups=2)
    for round in range(6):
        bucket.batch([event(f"k{k}", 10 + round, "a", round) for k in range(60)], 9 + round)
    keys = [key for page in bucket.pages().values() for key in page.keys["key"].to_pylist()]

    assert sorted(keys) == sorted(f"k{k}" for k in range(60))
    assert len(bucket.pages()) > 4


@pytest.mark.parametrize(("few_groups", "pages"), [(16, range(50, 200)), (1, range(1, 2))])
def test_a_bucket_of_many_groups_has_larger_pages(
    monkeypatch: pytest.MonkeyPatch, few_groups: int, pages: range
) -> None:
    """How large the common page may be depends on the groups that it would be divided into."""
    monkeypatch.setattr(bucket_state, "_LARGE_COMMON", 20_000)
    monkeypatch.setattr(bucket_state, "_SMALL_COMMON", 100)
    monkeypatch.setattr(bucket_state, "_FEW_GROUPS", few_groups)
    bucket = Bucket(a_to_b(window_ms=None), key_groups=64)
    bucket.batch([event(f"k{k}", 10, "a", k) for k in range(200)], 5)
    bucket.batch([], 15)

    assert len(bucket.pages()) in pages


def test_few_keys_read_and_write_few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that touches one key reads and writes one page of many."""
    monkeypatch.setattr(bucket_state, "_LARGE_COMMON", 1000)
    bucket = Bucket(a_to_b(window_ms=None), key_groups=64)
    bucket.batch([event(f"k{k}", 10, "a", k) for k in range(500)], 5)
    bucket.batch([event("k0", 20, "c")], 15)
    all_pages, storage = len(bucket.pages()), bucket.storage
    storage.pages_read.clear()
    storage.pages_written.clear()
    bucket.batch([event("k7", 30, "b")], 25)
    bucket.batch([], 35)

    assert all_pages > 60
    assert (len(storage.pages_read), len(storage.pages_written)) == (2, 2)  # k0's, then k7's
    assert [key for key, _, _ in bucket.matches] == ["k7"]


def test_events_that_change_nothing_write_no_page() -> None:
    """An event that no partial match takes leaves its key's page alone."""
    bucket = Bucket(a_to_b(window_ms=None))
    bucket.batch([event("k", 10, "a")], 5)
    bucket.batch([], 15)
    bucket.storage.pages_written.clear()
    bucket.batch([event("other", 20, "c")], 15)
    bucket.batch([], 25)

    assert bucket.storage.pages_written == []


def test_state_does_not_grow_with_the_events_of_a_batch() -> None:
    """What a batch reads and writes is partial matches and events within the delay, no others."""

    def per_batch(events: int) -> tuple[int, int]:
        bucket = Bucket(a_to_b(window_ms=50), delay_ms=100)
        sizes = []
        for start in range(0, 5 * events, events):
            storage = bucket.storage
            storage.read = storage.written = 0
            bucket.batch(
                [event(f"k{at % 7}", 10 + at, "abc"[at % 3]) for at in range(start, start + events)]
            )
            sizes.append((storage.read, storage.written))
        return sizes[-1]

    once, four_times, sixteen_times = per_batch(100), per_batch(400), per_batch(1600)

    assert min(once) > 1000
    for more in (four_times, sixteen_times):
        assert all(0.8 < now / before < 1.25 for now, before in zip(more, once, strict=True))


# --- cleaning


@pytest.mark.parametrize("pattern", [a_to_b(), a_to_b().oneOrMore()], ids=["a b", "a b+"])
def test_nothing_is_kept_after_the_last_window(pattern: Pattern) -> None:
    """When the last window has ended, no index, page, queue or timer is left."""
    bucket = Bucket(pattern)
    for rows, watermark in batches_of(random_events(2, keys=30, size=300), 50):
        bucket.batch(rows, watermark)
    before = bucket.storage.is_empty
    bucket.batch([], 10_000)

    assert (before, bucket.storage.is_empty, bucket.timer) == (False, True, None)


def test_a_timer_is_set_for_the_earliest_deadline() -> None:
    """A bucket asks to be woken for its earliest queued event, then for its earliest window."""
    bucket = Bucket(a_to_b())
    bucket.batch([event("j", 30, "a"), event("k", 12, "a")], 5)
    for_events = bucket.timer
    bucket.batch([], 12)
    for_window_or_event = bucket.timer
    bucket.batch([], 31)

    assert (for_events, for_window_or_event, bucket.timer) == (12, 30, 32)


def test_a_bucket_with_state_always_has_a_timer() -> None:
    """Without a window it is one that never expires, so that all buckets with state are listed."""
    bucket = Bucket(a_to_b(window_ms=None))
    bucket.batch([event("k", 12, "a"), event("k", 14, "b")], 5)
    bucket.batch([], 12)
    bucket.batch([event("j", 13, "a")])
    for_event = bucket.timer
    bucket.batch([], 14)
    while_a_waits = bucket.timer
    bucket.batch([event("j", 15, "b")])
    bucket.batch([], 15)

    assert (for_event, while_a_waits) == (13, NEVER)
    assert bucket.timer is None
    assert bucket.storage.is_empty


# --- refused state


def test_an_unknown_format_version_is_refused() -> None:
    """State of another format version is refused, and the error names both versions."""
    bucket = Bucket(a_to_b())
    bucket.batch([event("k", 10, "a")], 5)
    index = bucket.storage.read_index()
    assert index is not None
    container = unseal(index)
    newer_seal = index[:4] + struct.pack("<H", 98) + index[6:]
    newer_state = seal(container[:4] + struct.pack("<H", 99) + container[6:])

    bucket.storage.write_index(newer_seal)
    with pytest.raises(
        StateFormatError, match="sealed in format 98, this release reads formats 1 and 2"
    ):
        bucket.batch([event("k", 20, "b")], 5)
    bucket.storage.write_index(newer_state)
    with pytest.raises(StateFormatError, match="state format 99, this release reads format 1"):
        bucket.batch([event("k", 20, "b")], 5)
    bucket.storage.write_index(container)
    with pytest.raises(StateFormatError, match=r"state without a checksum.*\n\nHint: start a new"):
        bucket.batch([event("k", 20, "b")], 5)


def test_large_values_are_compressed_and_those_of_earlier_builds_read() -> None:
    """Large values take a third of their length; whole, as by earlier builds, they are read."""
    rows = [event(f"k{number}", 10, "a", number) for number in range(500)]
    later = [event(f"k{number}", 20, "b", number) for number in range(500)]
    bucket, earlier = Bucket(a_to_b()), Bucket(a_to_b())
    for each in (bucket, earlier):
        each.batch(rows, 5)
        each.batch([], 15)
    sealed = [value for value in earlier.storage.values.values() if sealed_length(value) >= 1024]
    for key, value in list(earlier.storage.values.items()):
        container = unseal(value)
        head = struct.pack("<4sHHI", value[:4], 1, 0, zlib.crc32(container))
        earlier.storage.values[key] = head + container

    assert sealed
    assert all(len(value) < sealed_length(value) / 3 for value in sealed)
    for each in (bucket, earlier):
        each.batch(later)
        each.close()
    assert len(bucket.matches) == 500
    assert earlier.matches == bucket.matches


# --- order


def test_equal_times_keep_the_order_of_arrival() -> None:
    """Events of equal time are matched in the order in which they came, over several batches."""
    bucket = Bucket(Pattern.begin("a").where(name_is("a")).next("b").where(name_is("b")))
    bucket.batch([event("k", 10, "b", 1), event("k", 10, "a", 2)], 5)
    bucket.batch([event("k", 9, "a", 3), event("k", 10, "b", 4), event("k", 10, "a", 5)])
    bucket.close()

    assert bucket.matches == [("k", 10, [["a", 3], ["b", 1]]), ("k", 10, [["a", 2], ["b", 4]])]


def test_a_comparator_orders_equal_times_only() -> None:
    """Events of equal time are put in the comparator's order, whenever they came."""
    bucket = Bucket(
        Pattern.begin("a").where(name_is("a")).next("b").where(name_is("b")),
        comparator=lambda e: -e.id,
    )
    bucket.batch([event("k", 10, "b", 1), event("k", 11, "b", 3)], 5)
    bucket.batch([event("k", 10, "a", 2), event("j", 10, "b", 9), event("k", 10, "a", 0)])
    bucket.close()

    assert bucket.matches == [("k", 10, [["a", 2], ["b", 1]]), ("k", 11, [["a", 0], ["b", 3]])]


def test_a_comparator_is_asked_about_ties_only() -> None:
    """A comparator that cannot take every event is not asked about events of different times."""
    bucket = Bucket(a_to_b(), comparator=lambda e: {"a": 1, "b": 2}[e.name])
    bucket.batch([event("k", 10, "b", 1), event("k", 10, "a", 2), event("k", 11, "?")], 5)
    bucket.close()

    assert bucket.matches == [("k", 10, [["a", 2], ["b", 1]])]


def test_a_comparator_that_fails_is_named() -> None:
    """What a comparator raises becomes an error with the key and the time of the events."""
    bucket = Bucket(a_to_b(), comparator=lambda e: e.nothing)
    bucket.batch([event("k", 10, "b", 1), event("k", 10, "a", 2)], 5)

    with pytest.raises(
        CepRuntimeError, match=r"the comparator failed.*key \{'key': 'k'\}, event time 10 ms"
    ):
        bucket.close()


def test_keys_of_one_hash_stay_apart() -> None:
    """Two keys with the same hash share a page and nothing else."""
    bucket = Bucket(a_to_b(), hash_of=lambda key: 7)
    bucket.batch([event("j", 10, "a"), event("k", 11, "a"), event("i", 12, "b")], 5)
    bucket.batch([event("k", 13, "b"), event("j", 14, "c")], 12)
    bucket.close()

    assert bucket.matches == [("k", 13, [["a", 11], ["b", 13]])]
    assert bucket.timeouts == [("j", 30, [["a", 10]])]


# --- processing time


def test_in_processing_time_events_of_a_batch_share_the_clock() -> None:
    """Events get the batch's clock, in the order of arrival; windows end when it has passed."""
    bucket = Bucket(a_to_b(), processing_time=True)
    bucket.batch([event("k", 99, "a", 1), event("k", 3, "b", 2), event("k", 1, "a", 3)], 1000)
    timer = bucket.timer
    bucket.batch([], 1020)
    waits = list(bucket.timeouts)
    bucket.batch([], 1021)

    assert bucket.matches == [("k", 1000, [["a", 1], ["b", 2]])]
    assert (timer, waits, bucket.timeouts) == (1021, [], [("k", 1020, [["a", 3]])])
    assert bucket.storage.is_empty


# --- pages whose keys all have the same number of numbers


_SCHEMA = pa.schema([("key", pa.string())])


def _page(lengths: list[int], numbers: list[int]) -> Page:
    empty = Page.empty(_SCHEMA, _SCHEMA)
    return attrs.evolve(empty, lengths=np.asarray(lengths), numbers=np.asarray(numbers, np.int64))


def test_fields_are_what_comes_after_the_version() -> None:
    """Each key's numbers are a row without the version; a page without keys has no rows."""
    assert fields_of(_page([3, 3], [1, 4, 5, 1, 6, 7]), "a query", 1, 2).tolist() == [
        [4, 5],
        [6, 7],
    ]
    assert fields_of(_page([], []), "a query", 1, 2).tolist() == []


@pytest.mark.parametrize(
    ("lengths", "numbers", "what"),
    [
        ([2, 2], [1, 4, 2, 4], "state of a query in format 2, this release reads format 1"),
        ([1, 2], [1, 1, 4], "a key of a query does not have 2 numbers"),
    ],
)
def test_other_versions_and_damage_are_refused(
    lengths: list[int], numbers: list[int], what: str
) -> None:
    """A key of another version, or with too few numbers, is refused with what it belongs to."""
    with pytest.raises(StateFormatError, match=what):
        fields_of(_page(lengths, numbers), "a query", 1, 1)


# --- state as bytes in Spark's state variables


@attrs.define
class Value:
    """A state variable of Spark that counts what it is asked."""

    data: tuple[bytes] | None = None
    asked: list[str] = attrs.field(factory=list)

    def exists(self) -> bool:
        """Whether there is a value."""
        self.asked.append("exists")
        return self.data is not None

    def get(self) -> tuple[bytes] | None:
        """Return the value; Spark logs a warning if there is none."""
        assert self.data is not None, "Value state index doesn't contain a value."
        self.asked.append("get")
        return self.data

    def update(self, data: tuple[bytes]) -> None:
        """Replace the value."""
        self.data = data


class Handle:
    """The part of Spark's handle that declares state variables."""

    def __init__(self) -> None:
        self.index = Value()

    def getValueState(self, name: str, schema: Any) -> Value:
        """Declare a value."""
        return self.index

    def getMapState(self, name: str, key: Any, value: Any) -> None:
        """Declare a map."""


def test_a_missing_index_is_not_read() -> None:
    """Spark is asked whether there is an index, unless the group is known to have state."""
    handle = Handle()
    storage = SparkStorage(handle)  # type: ignore[arg-type]

    assert storage.read_index() is None
    storage.write_index(b"index")
    assert storage.read_index() == b"index"
    storage.has_state = True
    assert storage.read_index() == b"index"
    assert handle.index.asked == ["exists", "exists", "get", "get"]


# --- queued events bring along what Spark computed for match expressions, by its SQL


QUEUED = pa.table({"id": [1, 2], "__cep_value0": [0.5, None], "__cep_value1": [7, 8]})
FINGERPRINT = {"value 0": "price", "value 1": "volume", "window": "5 ms"}
NFA = NFACompiler.compile(Pattern.begin("a"))


def expressions(*texts: str) -> CompiledExpressions:
    """Return match expressions that need these fields."""
    return CompiledExpressions(tuple(Field(text, Kind.BIGINT) for text in texts), (), {}, True)


def test_fields_are_found_by_their_sql() -> None:
    """The number of a field may change with the pattern; what is not needed is dropped."""
    schema = pa.schema([("id", pa.int64()), ("__cep_value0", pa.int64())])
    table = requeued(QUEUED, schema, FINGERPRINT, NFA, expressions("volume"))

    assert table.to_pydict() == {"id": [1, 2], "__cep_value0": [7, 8]}
    without = pa.schema([("id", pa.int64())])
    assert requeued(QUEUED, without, FINGERPRINT, NFA).column_names == ["id"]


def test_fields_that_were_not_computed_are_refused() -> None:
    """Nothing can be made up for events that Spark was not asked about."""
    schema = pa.schema([("id", pa.int64()), ("__cep_value0", pa.int64())])

    with pytest.raises(
        PatternChangedError, match=r"2 buffered events were never evaluated against 'qty', which a"
    ):
        requeued(QUEUED, schema, FINGERPRINT, NFA, expressions("qty"))


@pytest.mark.parametrize(
    ("condition", "digits", "said"),
    [
        ("b.p > a.p", (20, 0), ["value 0: '`p`' is now '`p` as decimal(20,0)'"]),
        ("b.p > a.p", (10, 2), []),
        ("b.n > a.n", (20, 0), []),
        ("b.q > sum(a[].p)", (10, 2), ["value 1: '`p`' is now '`p` as decimal(10,2) exact'"]),
    ],
)
def test_a_query_whose_decimals_were_stored_as_doubles_is_refused_by_name(
    condition: str, digits: tuple[int, int], said: list[str]
) -> None:
    """Its checkpoint by an earlier build is another one; those of other queries are the same."""
    loop = "A+ a[]" if "[]" in condition else "A a"
    text = f"PATTERN SEQ({loop}, B b) WHERE skip_till_next_match AND {condition} WITHIN 1 s"
    atoms = NFACompiler.compile(AnalysedQuery(parse(text)).pattern).atoms
    named = [(a.stage, a.condition) for a in atoms if isinstance(a.condition, MatchExpression)]

    def facts(kind: Kind) -> dict[str, str]:
        kinds = {"`p`": kind, "`n`": Kind.BIGINT, "`q`": Kind.DOUBLE}
        fields = compiled(named, kinds, ansi=True).fields
        return {f"value {number}": field.stored for number, field in enumerate(fields)}

    before, now = facts(Kind.DOUBLE), facts(Kind.decimal(Digits(*digits)))
    assert before
    assert changes(before, now) == said


# --- what becomes of a bucket's state when a query goes on with another pattern


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


def test_times_that_were_sent_by_another_clock_are_refused() -> None:
    """A checkpoint that does not say by which clock goes on if the session's was that of UTC."""
    current = {"rules": "1", CLOCK: "UTC"}
    data = BucketIndex({"rules": "1"}, watermark=1).to_bytes()
    with pytest.raises(PatternChangedError, match="'Europe/Berlin' is now 'UTC'") as refused:
        BucketIndex.load(data, current, "fail", {CLOCK: "Europe/Berlin"})

    assert "start a new checkpoint" in str(refused.value.hint)
    assert BucketIndex.load(data, current, "fail", {CLOCK: "UTC"}).fingerprint == current


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
