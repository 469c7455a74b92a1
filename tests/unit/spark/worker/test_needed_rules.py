# SPDX-License-Identifier: Apache-2.0
"""Which versions of rules events are asked for before the shuffle: those that may still see some."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from pyflinkcep import Pattern
from pyflinkcep.rules import RuleLog
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import read_table
from pyflinkcep.spark.worker import noted_log
from pyflinkcep.spark.worker.bucket import Arrivals
from pyflinkcep.spark.worker.noted_log import NotedLog
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.unit.spark.worker.buckets import SpyStorage
from tests.unit.spark.worker.changing_rules import Event, events, made_rule
from tests.unit.spark.worker.test_live_buckets import LiveBucket, chain

NAMES = ("sequence", "single", "next", "chain", "counted", "query")


@attrs.define(eq=False)
class LiveBuckets(LiveBucket):
    """The same in several buckets, which Spark calls as in a stream that follows its watermark."""

    groups: KeyGroups = attrs.field(factory=lambda: KeyGroups(32))  # Four buckets
    storages: dict[int, SpyStorage] = attrs.field(factory=dict)
    timers: dict[int, int | None] = attrs.field(factory=dict)
    now: int = MIN_WATERMARK  # Spark's watermark
    latest: int = MIN_WATERMARK

    def batch(self, rows: Sequence[Event], only: Sequence[int] | None = None) -> None:
        """Take in a micro-batch: buckets without events, publications and timers do nothing."""
        if self.latest > MIN_WATERMARK:
            self.now = self.latest - 10
        self.latest = max([self.latest, *(row["t"] for row in rows)])
        self.process(rows, self.publications(only))

    def process(self, rows: Sequence[Event], texts: dict[int, str]) -> None:
        """Do the work of a micro-batch."""
        tables: dict[int, list[pa.Table]] = {}
        latest = MIN_WATERMARK
        for row in self.packed(rows):
            latest = max(latest, row["latest"])
            own = tables.setdefault(row["bucket"], [])
            own += [] if row["data"] is None else [read_table(row["data"])]
        self.sent.append(sum(one.num_rows for own in tables.values() for one in own))
        if self.delay_ms is None:
            latest = MIN_WATERMARK
        for bucket in self.groups.bucket_ids():
            timer = self.timers.get(bucket)
            if bucket in tables or texts:
                self.call(bucket, Arrivals(tables.get(bucket, []), latest, publications=texts))
            elif timer is not None and timer <= self.now:
                self.call(bucket, Arrivals())

    def call(self, bucket: int, arrivals: Arrivals) -> None:
        """Process what a bucket gets."""
        storage = self.storages.setdefault(bucket, SpyStorage())
        groups = self.groups.of_bucket(bucket)
        self.timers[bucket] = self.run(arrivals, self.now, storage, groups)

    def close(self) -> None:
        """Return the final watermark, as a flush does."""
        self.now = MAX_WATERMARK
        for bucket in self.storages:
            self.call(bucket, Arrivals())

    def state(self) -> Any:
        """Return all that a checkpoint has, and what came out."""
        return copy.deepcopy((self.storages, self.timers, self.found, self.told))

    def restore(self, state: Any) -> None:
        """Go back to an earlier state."""
        self.storages, self.timers, self.found, self.told = copy.deepcopy(state)


def change(choose: random.Random, log: RuleLog, versions: dict[str, int], now: int) -> None:
    """Change rules at random: mostly they are replaced."""
    for name in NAMES:
        kind = choose.choice(["publish", "publish", "from", "pause", "resume", "remove", "", ""])
        known = {one.rule.name: one.isPaused for one in log.rules()}
        if kind in ("publish", "from"):
            versions[name] = versions.get(name, 0) + 1
            begin = datetime.fromtimestamp((now + choose.randrange(150)) / 1000, UTC)
            rule = made_rule(choose, name, versions[name])("")
            log.publish([rule], validFrom=begin if kind == "from" else None)
        elif kind == "resume" and known.get(name):
            log.resume(name)
        elif kind == "pause" and known.get(name) is False:
            log.pause(name)
        elif kind == "remove" and name in known:
            log.remove(name)


@pytest.mark.parametrize("delay_ms", [10, None])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_asked_changes_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, delay_ms: int | None
) -> None:
    """
    Versions that may see no more events are not asked for, and matches are as without notes.

    So it is when a micro-batch is computed again, in a run that was killed in it or by a sink that
    reads it twice, and when publications come one by one, late or not in order.
    """
    choose, log, versions = random.Random(seed), RuleLog(tmp_path / "log"), dict[str, int]()
    run = ["first"]
    monkeypatch.setattr(noted_log, "run_of_query", lambda: run[0])
    plain = LiveBuckets(log, delay_ms=delay_ms)
    noted = LiveBuckets(log, delay_ms=delay_ms, notes=tmp_path / "notes")
    seen, forgotten = set[int](), 0
    for number in range(14):
        if choose.random() < 0.7:
            change(choose, log, versions, 1000 + 60 * number)
        given = events(choose, 20 * number, 20)
        if choose.random() < 0.3:  # as of few keys, so that some buckets have none
            given = [one for one in given if one["k"] == "p"]
        new = sorted({*range(1, log.number + 1)} - seen)
        own = choose.choice([new, new, new[: len(new) // 2], new[1:]])
        seen.update(own)
        before = noted.state()
        needed = noted.pack.log.needed(4)  # type: ignore[attr-defined]
        if needed is not None:
            forgotten = max(forgotten, sum(versions.values()) - len(needed))
        plain.batch(given, own)
        noted.batch(given, own)
        for _ in range(choose.choice([0, 0, 1, 2])):
            after = noted.state()
            if choose.random() < 0.5:
                run[0] = f"run {number} {choose.random()}"
            noted.restore(before)
            noted.process(given, noted.publications(own))
            assert noted.state()[2:] == after[2:]
        if choose.random() < 0.2:
            run[0] = f"run {number}"
    for one in (plain, noted):
        one.batch([], sorted({*range(1, log.number + 1)} - seen))
        one.close()
    assert noted.ids() == plain.ids()
    assert len(noted.ids()) > 20
    assert forgotten > 1


@pytest.mark.parametrize("when", ["drop", "finish"])
def test_versions_that_see_no_more_events(tmp_path: Path, monkeypatch: Any, when: Any) -> None:
    """However many versions there were, those are asked for that are in force or may finish."""
    monkeypatch.setattr(noted_log, "run_of_query", lambda: "the run")
    log, given = RuleLog(tmp_path / "log"), events(random.Random(3), 0, 400)
    bucket = LiveBucket(log, notes=tmp_path / "notes")
    known: NotedLog = bucket.pack.log  # type: ignore[attr-defined]
    asked = []
    for version in range(1, 41):
        log.publish([chain(version % 8 + 1, version, when)])
        bucket.batch(given[10 * version - 10 : 10 * version])
        asked.append(len(known.needed(1) or ()))
    # Ten events take 30 ms, a match at most 40 after the latest event that waits.
    assert asked == [1] * 40 if when == "drop" else max(asked) <= 4
    log.pause("chain")
    bucket.batch([], None)
    for number in range(4):
        bucket.batch(events(random.Random(number), 400 + 10 * number, 10))
    assert known.needed(1) == ()
    log.resume("chain")
    (document,) = known.needed(1) or ()
    assert '"version": 40' in document
    log.remove("chain")
    log.publish([chain(3, 50)])
    assert len(known.needed(1) or ()) == 2


def test_a_bucket_that_has_had_no_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one bucket has forgotten is asked for while another may hold it, as after a start."""
    run = ["first"]
    monkeypatch.setattr(noted_log, "run_of_query", lambda: run[0])
    log = RuleLog(tmp_path / "log")
    bucket = LiveBuckets(log, delay_ms=None, notes=tmp_path / "notes")

    def event(number: int, time: int, key: str, x: int) -> Event:
        return {"id": number, "t": time, "name": "A", "k": key, "x": x}

    def is_beside(key: str) -> bool:
        buckets = {one["bucket"] for k in ("p", key) for one in bucket.packed([event(0, 0, k, 0)])}
        return len(buckets) == 2

    other = next(filter(is_beside, "qrstuv"))
    log.publish([chain(3, 1, "finish")])
    bucket.batch([event(1, 1000, "p", 1), event(2, 5000, other, 1)])
    begin = Pattern.begin("a").where("x > 100")
    log.publish([attrs.evolve(chain(3, 2), definition=begin)])
    bucket.batch([event(3, 1001, "p", 200)])
    run[0] = "second"
    bucket.batch([event(4, 4995, "p", 300)])
    bucket.batch([event(5, 4996, "p", 300)])
    bucket.batch([event(6, 5010, other, 7)])
    bucket.close()
    assert sorted((one["version"], one["matchTimestamp"]) for one in bucket.found) == [
        (1, 5010), (2, 4995), (2, 4996),
    ]  # fmt: skip
    assert bucket.sent == [2, 1, 1, 1, 1]
