# SPDX-License-Identifier: Apache-2.0
"""Rules that change on a stream driven by hand: each version sees the events of its life."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from pyspark import cloudpickle as pickle
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from pyflinkcep import Eql, NotSupportedError, Pattern, Time, matchMany, parse
from pyflinkcep.errors import StateFormatError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH
from pyflinkcep.matching.layout import Layout
from pyflinkcep.rules import Rule, RuleLog, SigmaCorrelation
from pyflinkcep.rules.live_rules import RuleBasis, routes_of
from pyflinkcep.rules.page_events import HOLDING
from pyflinkcep.rules.rule_lives import RuleLives, StoredLives
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.plan.rules.job import matches_of
from pyflinkcep.spark.state.bucket_state import BucketState
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import read_table, seal, unseal, write_table
from pyflinkcep.spark.worker import noted_log
from pyflinkcep.spark.worker.bucket import Arrivals, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan
from pyflinkcep.spark.worker.bucket_worker import divided
from pyflinkcep.spark.worker.live_rules_task import LiveMatching, LivePackTask
from pyflinkcep.spark.worker.noted_log import NotedLog
from pyflinkcep.spark.worker.pack import PackTask
from pyflinkcep.tables.typed_columns import widest
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.unit.spark.worker.buckets import SpyStorage
from tests.unit.spark.worker.changing_rules import (
    SUM_OF_TEXTS,
    ChangingRules,
    Event,
    events,
    made_rule,
)

SCHEMA = pa.schema(
    {"id": pa.int64(), "t": pa.int64(), "name": pa.string(), "k": pa.string(), "x": pa.int64()}
)


@attrs.define(eq=False)
class LiveBucket:
    """All places of a stream in one bucket; every micro-batch begins with the state as bytes."""

    log: RuleLog
    routes: tuple[tuple[str, ...], ...] = (("k",),)
    delay_ms: int | None = 10
    schema: pa.Schema = SCHEMA  # Of events
    storage: SpyStorage = attrs.field(factory=SpyStorage)
    found: list[Event] = attrs.field(factory=list)  # The rows of matches so far
    told: list[Event] = attrs.field(factory=list)  # What became of changes
    read: int = 0  # How many publications were read
    notes: Path | None = None  # Where it notes what is applied, if the log is read where it packs
    sent: list[int] = attrs.field(factory=list)  # How many events each micro-batch sent
    late_count: int = 0
    groups: KeyGroups = attrs.field(factory=lambda: KeyGroups(8))
    plan: BucketPlan = attrs.field(init=False)
    pack: PackTask = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        basis = RuleBasis(write_table(widest(self.schema)), "t", "name", "UTC", self.routes)
        own, names = from_arrow_schema(self.schema), self.schema.names
        layout = Layout("rules", own, tuple(names), (), (), (HASH,), "t", None, ())
        sent = [StructField(HASH, LongType()), StructField(HOLDING, ArrayType(LongType(), False))]
        schema = arrow_schema(StructType([*own.fields, *sent]))
        log = None if self.notes is None else NotedLog(self.log, str(self.notes))
        matching = LiveMatching(basis=basis, columns=names, schema=matches_of(own, "t"), log=log)
        self.plan = BucketPlan(
            matching=matching,
            layout=layout,
            schema=pa.schema([field.with_nullable(True) for field in schema]),
            key_groups=self.groups,
            processing_time=False,
            fingerprint={},
            on_pattern_change="fail",
            delay_ms=self.delay_ms,
            allows_null_keys=True,
        )
        pack = PackTask(
            layout,
            self.plan.schema,
            self.groups,
            tells_latest=self.delay_ms is not None,
            allows_null_keys=True,
        )
        self.pack = LivePackTask.of(pack, basis=basis, kept=names, log=log)

    def batch(self, rows: Sequence[Event], only: Sequence[int] | None = None) -> None:
        """Take in a micro-batch, with all publications that are new or with some of them."""
        packed = self.packed(rows)
        tables = [read_table(row["data"]) for row in packed if row["data"] is not None]
        self.sent.append(sum(own.num_rows for own in tables))
        dropped = [row["dropped"] for row in packed if row["dropped"] is not None]
        latest = max((row["latest"] for row in packed), default=MIN_WATERMARK)
        texts = self.publications(only)
        self.run(Arrivals(tables, latest, dropped, publications=texts), MIN_WATERMARK, self.storage)

    def packed(self, rows: Sequence[Event]) -> list[dict[str, Any]]:
        """Return events as buckets get them."""
        table = pa.Table.from_pylist(list(rows), self.schema)
        return [row for batch in self.pack.run(iter(table.to_batches(7)))
                for row in batch.to_pylist()]  # fmt: skip

    def publications(self, only: Sequence[int] | None = None) -> dict[int, str]:
        """Return the publications that are new, or some of them."""
        numbers = range(self.read + 1, self.log.number + 1) if only is None else only
        self.read = max([self.read, *numbers])
        return {number: (self.log.path / f"{number:010d}.json").read_text() for number in numbers}

    def close(self) -> None:
        """Return the final watermark, as a flush does."""
        self.run(Arrivals(), MAX_WATERMARK, self.storage)

    def run(
        self, arrivals: Arrivals, now: int, storage: SpyStorage, groups: Sequence[int] = ()
    ) -> int | None:
        """Process what a bucket gets; return its timer."""
        task = pickle.loads(pickle.dumps(self.plan)).task(RuntimeContext("test", 0))
        work = BucketWork(task, storage, groups)
        for output in work.run(arrivals, now):
            if output.found.rows is not None:
                self.found += output.found.rows.to_pylist()
            self.late_count += output.late_count
            if output.told is not None:
                self.told += output.told.to_pylist()
        timer = work.timer(now)
        work.close(timer, now)
        task.close()
        return timer

    def what_was_told(self) -> list[tuple[int, str | None, int | None, str | None]]:
        """Return what became of changes: of one with a problem only its publication and rule."""
        names = ("publication", "rule", "version", "change")
        assert all((one["change"] is None) == bool(one["problem"]) for one in self.told)
        return [tuple(one[name] for name in names) for one in self.told]

    def ids(self, name: str = "") -> Counter[str]:
        """Return the ids of matches, of all rules or of one."""
        return Counter(one["matchId"] for one in self.found if name in ("", one["rule"]))


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for notes of what is applied, of the only run that there is."""
    monkeypatch.setattr(noted_log, "run_of_query", lambda: "the run")
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("seed", range(8))
def test_each_version_sees_the_events_of_its_micro_batches(
    tmp_path: Path, notes: Path, seed: int
) -> None:
    """
    Whatever changes between micro-batches, matches are those of each life on its own events.

    So it is whether conditions are asked where events are packed or where they arrive. Of two
    versions, the time from which on the new one is valid may decide.
    """
    choose, log = random.Random(seed), RuleLog(tmp_path / "log")
    bucket = LiveBucket(log, notes=notes if seed % 2 else None)
    rules = ChangingRules(log, choose)
    for number in range(9):
        begin = 1000 + 75 * number
        rules.change(begin, begin + 200)
        rules.apply(log.number)
        batch = events(choose, 25 * number, 25)
        rules.take(batch)
        bucket.batch(batch)
    bucket.close()
    assert bucket.ids() == rules.expected()
    assert sorted(map(str, bucket.what_was_told())) == sorted(map(str, rules.told))
    stored = bucket.storage.read_rules()
    assert stored is not None
    data = unseal(stored)
    read = RuleLives.of(data)  # which a process that has written it does not do
    assert (tuple(read.lives.values()), read.to_bytes()) == (StoredLives.of(data).lives, data)


def chain(most: int, version: int, when: Any = "drop", key: str = "k") -> Rule:
    """Return a rule of two events."""
    pattern = Pattern.begin("a").where(f"x < {most}").followedByAny("b").where(f"x >= {most}")
    pattern = pattern.within(Time.milliseconds(40))
    return Rule("chain", pattern, (key,), version, whenReplaced=when)


@pytest.mark.parametrize("is_noted", [False, True])
@pytest.mark.parametrize("when", ["drop", "finish"])
def test_versions_by_event_time(tmp_path: Path, notes: Path, when: Any, is_noted: bool) -> None:
    """With validFrom the old version has the events before it, and the new one those from it on."""
    log, given = RuleLog(tmp_path / "log"), events(random.Random(2), 0, 120)
    bucket = LiveBucket(log, notes=notes if is_noted else None)
    moment = 1000 + 3 * 70 + 1  # in the fourth batch, and some of that are before it
    log.publish([chain(3, 1, when)])
    for begin in range(0, 120, 20):
        if begin == 40:
            at = datetime.fromtimestamp(moment / 1000, UTC)
            log.publish([chain(6, 2)], validFrom=at)
        bucket.batch(given[begin : begin + 20])
    bucket.close()
    old = [one for one in given if one["t"] < moment]
    new = [one for one in given if one["t"] >= moment]
    first = matchMany([chain(3, 1)], given if when == "finish" else old, timestamp="t")
    wanted = Counter(one.matchId for one in first if one.events["a"][0]["t"] < moment)
    wanted += Counter(one.matchId for one in matchMany([chain(6, 2)], new, timestamp="t"))
    assert bucket.ids() == wanted


def test_rules_keep_their_routes(tmp_path: Path, notes: Path) -> None:
    """A query that starts again with more routes goes on with what a rule has begun."""
    log, given = RuleLog(tmp_path / "log"), events(random.Random(6), 0, 80)
    wide = attrs.evolve(chain(4, 1), key=("name", "k"))
    log.publish([wide])
    bucket = LiveBucket(log)
    bucket.batch(given[:40])
    again = LiveBucket(
        log, (("name",), ("k",)), storage=bucket.storage, found=bucket.found, read=1, notes=notes
    )
    log.publish([attrs.evolve(wide, name="later")])
    again.batch(given[40:50])
    again.batch(given[50:])
    again.close()
    later = matchMany([attrs.evolve(wide, name="later")], given[40:], timestamp="t")
    whole = matchMany([wide], given, timestamp="t")
    assert again.ids() == Counter(one.matchId for own in (whole, later) for one in own)
    assert again.ids("later")

    without = LiveBucket(log, (("name",),), storage=bucket.storage, read=2)
    with pytest.raises(NotSupportedError, match="would be sent by k, those of the stream"):
        without.batch(given[:1])


def test_events_that_no_version_wants_stay_behind(tmp_path: Path, notes: Path) -> None:
    """
    Events are packed that some version wants, by its routes, once it is known what is applied.

    A version that is paused, removed or replaced may be in force where the micro-batch arrives.
    """
    log, given = RuleLog(tmp_path / "log"), events(random.Random(8), 0, 100)
    bucket = LiveBucket(log, (("k",), ("name",)), notes=notes)
    before = LiveBucket(log, bucket.routes)
    two, four = (f"id between {low} and {low + 3}" for low in (23, 70))
    rule = Rule("few", Pattern.begin("a").where(two), ("k",))
    changes: list[Callable[[], Any]] = [
        lambda: log.publish([rule]),
        lambda: None,
        lambda: log.publish([attrs.evolve(rule, definition=Pattern.begin("a").where(four),
                                          version=2)]),
        lambda: log.remove("few"),
        lambda: log.publish([Rule("next", Pattern.begin("a").next("b"), ("name",))]),
    ]  # fmt: skip
    for number, change in enumerate(changes):
        change()
        for one in (bucket, before):
            one.batch(given[20 * number : 20 * number + 20])
    assert before.sent == [40] * 5
    assert (bucket.sent[0], bucket.sent[2], bucket.sent[4]) == (40, 0, 20)
    assert sum(bucket.sent[1::2]) == 8
    assert bucket.ids() == before.ids()
    assert len(bucket.ids("few")) == 4


@pytest.mark.parametrize("what", ["deleted", "the last deleted", "another log", "without notes"])
def test_a_log_that_is_not_as_it_was_keeps_no_event_back(
    tmp_path: Path, notes: Path, what: str
) -> None:
    """Rules that are in force go on, whatever becomes of the folder that they were read from."""
    log, given = RuleLog(tmp_path / "log"), events(random.Random(9), 0, 60)
    bucket = LiveBucket(log, notes=notes)
    log.publish([attrs.evolve(chain(4, 1), name="first")])
    log.publish([chain(4, 1)])
    for begin in (0, 20):
        bucket.batch(given[begin : begin + 20], None if begin == 0 else ())
    last, *_ = sorted(log.path.glob("*.json"), reverse=True)
    if what == "the last deleted":
        last.unlink()
    elif what == "without notes":
        shutil.rmtree(notes)
    else:
        for file in log.path.glob("*.json"):
            file.unlink()
    if what == "another log":
        for number in (1, 2, 3):
            log.publish([Rule(f"other {number}", Pattern.begin("a").where("x > 8"), ("k",))])
    bucket.batch(given[40:], ())
    bucket.close()
    wanted = matchMany([chain(4, 1)], given, timestamp="t")
    assert bucket.sent == [20, 20, 20]
    assert bucket.ids("chain") == Counter(one.matchId for one in wanted)


def test_routes_of_queries_that_start_again() -> None:
    """A query has the routes that it would have had after each publication, and no other."""
    basis = RuleBasis(write_table(widest(SCHEMA)), "t", "name", "UTC", ())
    single, keyed = Rule("single", Eql("any where x > 3")), chain(3, 1)
    assert routes_of([[single]], basis) == (("each event by itself",),)
    assert routes_of([[single], [keyed]], basis) == (("each event by itself",), ("k",))
    assert routes_of([[single, keyed]], basis) == routes_of([[keyed], [single]], basis) == (("k",),)


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_late_event_counts_once(tmp_path: Path, notes: Path, is_noted: bool) -> None:
    """An event that is late counts once, whether rules of two routes want it, of one, or none."""
    log, given = RuleLog(tmp_path / "log"), events(random.Random(8), 0, 40)
    both = Pattern.begin("a").where("x < 7 and id < 1000").next("b").where("x < 3 and id < 1000")
    log.publish([Rule("by k", both, ("k",)), Rule("by name", both, ("name",))])
    bucket = LiveBucket(log, (("k",), ("name",)), notes=notes if is_noted else None)
    late = [{**given[0], "id": 500 + x, "x": x} for x in range(9)]
    for batch in (given[:10], given[10:], late, [{**late[0], "id": 5000}]):
        bucket.batch(batch)
    assert bucket.late_count == 10


def test_no_event_stops_a_rule(tmp_path: Path) -> None:
    """What SQL over stages cannot compute is NULL, as a micro-batch would fail again and again."""
    log, start = RuleLog(tmp_path), Pattern.begin("a").where("x < 3").followedBy("b")
    never = ["cast(last(a.name) AS int) > 1", "cast(name AS int) > last(a.x)", "last(a.x) % 0 = 1"]
    rules = [Rule(f"never {n}", start.where(sql), ("k",)) for n, sql in enumerate(never)]
    log.publish([*rules, Rule("quotient", start.where("x / last(a.x) > 1"), ("k",)), chain(3, 1)])
    bucket = LiveBucket(log)
    rows = [{"id": n, "t": 1000 + n, "name": "A", "k": "p", "x": x} for n, x in enumerate((0, 5))]
    bucket.batch([*rows, {**rows[0], "t": 1100, "x": 2}, {**rows[0], "t": 1101, "x": 5}])
    bucket.close()
    assert Counter(one["rule"] for one in bucket.found) == {"chain": 2, "quotient": 1}
    assert {one["problem"] for one in bucket.told} == {None}


def test_publications_beside_events() -> None:
    """Rows of publications are told from those of events, whatever bytes a file has."""
    rows = [(-1, 1, b"one"), (-1, 2, b"\xff"), (0, 0, b"events")]
    assert divided([*rows[:2], (-1, 2, b"two"), rows[2]]) == ({1: "one", 2: "two"}, rows[2:])
    assert divided(rows) == ({1: "one", 2: "\ufffd"}, rows[2:])


def test_the_queue_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rules are replaced at once, what waits is read once for all of them."""
    log, given = RuleLog(tmp_path), events(random.Random(7), 0, 40)
    log.publish([attrs.evolve(chain(4, 1), name=f"r{number}") for number in range(20)])
    bucket = LiveBucket(log)
    bucket.batch(given[:20])
    log.publish([attrs.evolve(chain(5, 2), name=f"r{number}") for number in range(20)])
    read: list[int] = []
    plain = BucketState.read_segment

    def counted(state: BucketState, number: int, *more: Any) -> pa.Table:
        read.append(number)
        return plain(state, number, *more)

    monkeypatch.setattr(BucketState, "read_segment", counted)
    bucket.batch(given[20:])
    assert len(read) <= 4


def test_publications_out_of_order_wait(tmp_path: Path) -> None:
    """A publication that is seen before an earlier one is applied after it, and each once."""
    log, given = RuleLog(tmp_path), events(random.Random(3), 0, 60)
    for version in (1, 2, 3):
        log.publish([chain(2 + version, version)])
    bucket = LiveBucket(log)
    bucket.batch(given[:20], only=[1, 3])
    assert [one["version"] for one in bucket.told] == [1, None]
    waits = "it waits for publication 2, which has not come"
    assert (bucket.told[-1]["publication"], bucket.told.pop()["problem"]) == (3, waits)
    bucket.batch(given[20:], only=[2, 3])
    assert [one["version"] for one in bucket.told] == [1, 2, 3]
    bucket.close()
    parts = ((1, given[:20]), (3, given[20:]))
    found = [matchMany([chain(2 + n, n)], part, timestamp="t") for n, part in parts]
    assert bucket.ids() == Counter(one.matchId for own in found for one in own)


def test_bad_rules_leave_the_others_alone(tmp_path: Path) -> None:
    """What a stream cannot run is told with its rule; the version before it stays in force."""
    log, given = RuleLog(tmp_path), events(random.Random(4), 0, 60)
    log.publish([chain(3, 1)])
    bucket = LiveBucket(log)
    bucket.batch(given[:20])
    one = Pattern.begin("a").where("x < 3")
    log.publish([
        attrs.evolve(chain(3, 2), definition=Pattern.begin("a").where("y < 3")),
        Rule("by another", one, ("name",)),
        Rule("may fail", Pattern.begin("a").where("10 / x > 2"), ("k",)),
        Rule("without a key", one),
        Rule("sum of texts", SigmaCorrelation(SUM_OF_TEXTS, {"high": "x > 3"})),
        Rule("may fail, too", SigmaCorrelation({**SUM_OF_TEXTS, "condition": {"gte": 3, "field": "x"}},
                                               {"high": "10 / x > 3"})),
        Rule("of one event", parse("PATTERN SEQ(A a, B b) WHERE abs(a.x) + b.x > 3"), ("k",)),
        Rule("good", one, ("k", "name")),
    ])  # fmt: skip
    (tmp_path / f"{3:010d}.json").write_text("{")
    bucket.batch(given[20:])
    bucket.close()
    problems = {told["rule"]: told["problem"] for told in bucket.told if told["problem"]}
    assert len(problems) == 8
    for name, part in {
        "chain": "'y'", "by another": "would be sent by name", "may fail": "can fail",
        "without a key": "would be sent by no column", None: "cannot be read",
        "sum of texts": "expected numbers, got string", "may fail, too": "can fail",
        "of one event": "computes what only single events have",
    }.items():  # fmt: skip
        assert part in problems[name]
    found = matchMany([chain(3, 1)], given, timestamp="t")
    assert bucket.ids("chain") == Counter(match.matchId for match in found)
    assert len(bucket.ids("good"))


def test_a_rule_by_another_key(tmp_path: Path) -> None:
    """A version may have another key; each has the matches by its own on its own events."""
    log, given = RuleLog(tmp_path), events(random.Random(8), 0, 120)
    bucket = LiveBucket(log, (("k",), ("name",)))
    log.publish([chain(4, 1)])
    bucket.batch(given[:60])
    log.publish([chain(4, 2, key="name")])
    bucket.batch(given[60:])
    bucket.close()
    parts = ((chain(4, 1), given[:60]), (chain(4, 2, key="name"), given[60:]))
    found = [matchMany([rule], part, timestamp="t") for rule, part in parts]
    assert bucket.ids() == Counter(one.matchId for own in found for one in own)
    assert all(map(len, found))


def test_a_rule_that_comes_again(tmp_path: Path) -> None:
    """A rule that was removed may be added again as it was; nothing of before goes on."""
    log, given = RuleLog(tmp_path), events(random.Random(9), 0, 120)
    bucket = LiveBucket(log)
    for begin in range(0, 120, 30):
        if begin == 30:
            log.remove("chain")
        else:
            log.publish([chain(4, 1)])
        bucket.batch(given[begin : begin + 30])
    bucket.close()
    found = [matchMany([chain(4, 1)], part, timestamp="t") for part in (given[:30], given[60:])]
    assert bucket.ids() == Counter(one.matchId for own in found for one in own)
    assert all(map(len, found))


def test_many_publications_at_once(tmp_path: Path) -> None:
    """Of hundreds of publications of one micro-batch the last one is in force."""
    log, given = RuleLog(tmp_path), events(random.Random(10), 0, 60)
    others = [attrs.evolve(chain(4, 1), name=f"r{number}") for number in range(30)]
    log.publish(others)
    for version in range(1, 61):
        log.publish([chain(2 + version % 5, version)])
        log.pause("chain")
        log.resume("chain")
    bucket = LiveBucket(log)
    bucket.batch(given)
    bucket.close()
    found = matchMany([chain(2, 60)], given, timestamp="t")
    assert bucket.ids("chain") == Counter(one.matchId for one in found)
    assert bucket.ids("r29")
    assert len(bucket.told) == 210


def test_publications_that_come_again(tmp_path: Path) -> None:
    """What comes again, as from a folder that was moved, is known; what is another is told."""
    log, given = RuleLog(tmp_path / "log"), events(random.Random(11), 0, 60)
    log.publish([chain(3, 1)])
    bucket = LiveBucket(log)
    bucket.batch(given[:20])
    bucket.batch(given[20:40], only=[1])
    assert [one["problem"] for one in bucket.told] == [None]
    other = RuleLog(tmp_path / "other")
    other.publish([chain(5, 1)])
    again = LiveBucket(other, storage=bucket.storage, found=bucket.found)
    again.batch(given[40:])
    again.close()
    (told,) = again.told
    assert (told["publication"], told["rule"]) == (1, "chain")
    assert told["problem"].startswith("it is another publication")
    found = matchMany([chain(3, 1)], given, timestamp="t")
    assert again.ids() == Counter(one.matchId for one in found)


def test_a_rule_that_is_resumed_without_its_key(tmp_path: Path) -> None:
    """A rule that the query can no longer run is told when it is resumed, and stops nothing."""
    log, given = RuleLog(tmp_path), events(random.Random(12), 0, 40)
    log.publish([chain(3, 1), attrs.evolve(chain(3, 1, key="name"), name="by name")])
    log.pause("by name")
    bucket = LiveBucket(log, (("k",), ("name",)))
    bucket.batch(given[:20])
    again = LiveBucket(log, storage=bucket.storage, found=bucket.found, read=2)
    log.resume("by name")
    again.batch(given[20:])
    again.close()
    assert [(one["rule"], bool(one["problem"])) for one in again.told] == [("by name", True)]
    found = matchMany([chain(3, 1)], given, timestamp="t")
    assert again.ids() == Counter(one.matchId for one in found)


@pytest.mark.parametrize("is_of_format_2", [False, True])
def test_a_shorter_delay(tmp_path: Path, is_of_format_2: bool) -> None:
    """Events that wait since a longer delay are seen by their rules, whenever these are replaced."""
    log, given = RuleLog(tmp_path), events(random.Random(14), 0, 120)
    log.publish([chain(4, 1)])
    before = LiveBucket(log, delay_ms=50)
    before.batch(given[:1])
    longer = LiveBucket(log, delay_ms=1000, storage=before.storage, read=1)
    longer.batch(given[1:60])
    if is_of_format_2:
        _rewritten(longer, lambda facts: facts.update(format=2) or facts.pop("delay"))
    bucket = LiveBucket(log, storage=longer.storage, read=1)
    log.publish([chain(5, 2)])
    for one in given[60:]:
        bucket.batch([one])
    bucket.close()
    parts = (([chain(4, 1)], given[:60]), ([chain(5, 2)], given[60:]))
    found = [matchMany(rules, part, timestamp="t") for rules, part in parts]
    assert bucket.ids() == Counter(one.matchId for own in found for one in own)


def test_a_correlation_that_nothing_refers_to(tmp_path: Path) -> None:
    """Rules that only such a correlation names change nothing, also with many groups stored."""
    log, given = RuleLog(tmp_path), events(random.Random(15), 0, 120)
    count = {"type": "event_count", "group-by": ["id"], "timespan": "9s", "condition": {"gte": 2}}
    rules = {"own": "x > 1", "other": "x < 8", "unused": {**count, "rules": ["other"]}}
    rule = Rule("counted", SigmaCorrelation({**count, "rules": ["own"]}, rules))
    log.publish([rule])
    bucket = LiveBucket(log, ((),))
    for begin in range(0, 120, 10):
        bucket.batch([{**one, "id": one["id"] % 50} for one in given[begin : begin + 10]])
    bucket.close()
    found = matchMany([rule], [{**one, "id": one["id"] % 50} for one in given], timestamp="t")
    assert bucket.ids() == Counter(one.matchId for one in found)
    assert len(found)


CODES = """
import random
from tests.unit.spark.worker.test_live_buckets import SCHEMA, all_kinds
from pyflinkcep.rules.live_rules import RuleBasis, compiled
from pyflinkcep.rules.rule_table import rule_to_document
from pyflinkcep.spark.state.pages import write_table
from pyflinkcep.tables.typed_columns import widest
import json
basis = RuleBasis(write_table(widest(SCHEMA)), "t", "name", "UTC", (("k",),))
for rule in all_kinds():
    made = compiled(basis, json.dumps(rule_to_document(rule)))
    print(rule.name, made.code, made.whole_code)
"""


def all_kinds() -> list[Rule]:
    """Return rules of all kinds, with what is a set in their models."""
    choose = random.Random(16)
    names = ("sequence", "single", "next", "chain", "counted", "query")
    listed = {name: f"x > {number}" for number, name in enumerate("abcdef")}
    near = {"type": "temporal", "rules": [*listed], "group-by": ["k"], "timespan": "1s"}
    ways = ["a and b and c and not d and not e and not f", "a or b", "a and (b or c or d)"]
    return [
        *(made_rule(choose, name, 1)() for name in names),
        *(
            Rule(f"near {way}", SigmaCorrelation({**near, "condition": way}, listed))
            for way in ways
        ),
        Rule("all", SigmaCorrelation(near, listed)),
        Rule("in", Eql('sequence by k [any where name in ("A", "B", "C")] [A where x in (1, 2)]')),
        Rule("in, of SQL", Pattern.begin("a").where("name IN ('A', 'B', 'C') OR x = 2"), ("k",)),
    ]


def test_codes_are_the_same_in_each_process(capsys: pytest.CaptureFixture[str]) -> None:
    """What the states of rules are known by does not depend on how Python orders a set."""
    told = [
        subprocess.run(
            [sys.executable, "-c", CODES],
            cwd=Path(__file__).parents[4],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    exec(CODES, {})  # this process orders sets in a third way
    told.append(capsys.readouterr().out)
    assert len(told[0].splitlines()) == len(all_kinds())
    assert len(set(told)) == 1


def _rewritten(bucket: LiveBucket, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what is stored of rules in force."""
    data = bucket.storage.read_rules()
    assert data is not None
    facts = json.loads(zlib.decompress(unseal(data)))
    change(facts)
    bucket.storage.write_rules(seal(zlib.compress(json.dumps(facts).encode())))


def test_rules_in_force_of_other_releases(tmp_path: Path) -> None:
    """Those of the first release are read; of one that stores or runs them otherwise, refused."""
    log, given = RuleLog(tmp_path), events(random.Random(13), 0, 60)
    log.publish([chain(4, 1)])
    bucket = LiveBucket(log)
    bucket.batch(given[:20])

    def as_first(facts: dict[str, Any]) -> None:
        facts["format"] = 1
        for life in facts["lives"]:
            del life["code"]

    _rewritten(bucket, as_first)
    bucket.batch(given[20:40])
    _rewritten(bucket, lambda facts: facts.update(format=4))
    with pytest.raises(StateFormatError, match="format 4, this release reads formats 1 to 3"):
        bucket.batch(given[40:])
    _rewritten(bucket, lambda facts: facts.update(format=3) or facts["lives"][0].update(code=7))
    with pytest.raises(StateFormatError, match="rule 'chain': its state is of another release"):
        bucket.batch(given[40:])


def test_ended_rules_leave_nothing(tmp_path: Path) -> None:
    """When the last events of a removed rule are processed, neither it nor its state is stored."""
    log, bucket = RuleLog(tmp_path), LiveBucket(RuleLog(tmp_path))
    log.publish([chain(9, 1, "finish")])
    given = events(random.Random(5), 0, 300)
    bucket.batch(given[:30])
    log.remove("chain")
    for begin in range(30, 300, 30):
        bucket.batch(given[begin : begin + 30])
    data = bucket.storage.read_rules()
    assert data is not None
    assert not StoredLives.of(unseal(data)).lives
