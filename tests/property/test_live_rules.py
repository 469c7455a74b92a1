# SPDX-License-Identifier: Apache-2.0
"""Rules of all kinds that change on a stream find what each version has on the events of its life."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep import matchMany
from pyflinkcep.errors import CepError
from pyflinkcep.rules import Rule, RuleLog
from pyflinkcep.rules.live_rules import RuleBasis, compiled, routes_of
from pyflinkcep.rules.rule_table import rule_to_document
from pyflinkcep.spark.state.pages import write_table
from pyflinkcep.spark.worker import noted_log
from pyflinkcep.tables.typed_columns import widest
from pyflinkcep.time import MIN_WATERMARK
from tests.property.test_rule_sets import ROWS, events_of, named
from tests.property.test_rule_streams import DELAY, RULES_ON_STREAMS, SCHEMA, shown_ids, with_ids
from tests.unit.spark.worker.test_live_buckets import LiveBucket

FOR_EVER = 1 << 40


def _routes(rules: list[Rule]) -> tuple[tuple[str, ...], ...]:
    """Return the routes of a query that begins with a log of rules."""
    return routes_of([rules], RuleBasis(write_table(widest(SCHEMA)), "t", "name", "UTC", ()))


def _running(rules: list[Rule], routes: tuple[tuple[str, ...], ...]) -> Iterator[Rule]:
    """Yield the rules that are data and that a stream can change."""
    basis = RuleBasis(write_table(widest(SCHEMA)), "t", "name", "UTC", routes)
    for rule in rules:
        with suppress(CepError):
            compiled(basis, json.dumps(rule_to_document(rule)))
            yield rule


@attrs.define(eq=False)
class Life:
    """A version of a rule while it is in force."""

    rule: Rule
    begin: int  # The time of the first events that it sees
    end: int = FOR_EVER  # And of the first that it sees no longer, of those to come
    sees: list[dict[str, Any]] = attrs.field(factory=list)


@attrs.define(eq=False)
class Changes:
    """Changes of one rule in a log, at random."""

    log: RuleLog
    versions: list[Rule]  # Of one name, those that are to come
    choose: random.Random
    lives: list[Life] = attrs.field(factory=list)
    state: str = "none"

    def change(self, now: int) -> None:
        """Publish, pause, resume or remove, or leave it as it is."""
        name = self.versions[-1].name if self.versions else self.lives[-1].rule.name
        change, begin = self.choose.choice(["publish", "from", "pause", "resume", "remove", ""]), 0
        if change in ("publish", "from"):
            if not self.versions:
                return
            rule = self.versions.pop(0)
            if change == "from":
                begin = now + self.choose.randrange(-DELAY, 12)
                self.log.publish([rule], validFrom=datetime.fromtimestamp(begin / 1000, UTC))
            else:
                self.log.publish([rule])
        elif change == "resume" and self.state == "pause":
            self.log.resume(name)
            rule, begin = self.lives[-1].rule, self.lives[-1].begin
        elif change in ("pause", "remove") and self.state == "publish":
            (self.log.pause if change == "pause" else self.log.remove)(name)
            self.state, rule = change, None
        else:
            return
        for life in self.lives:
            life.end = min(life.end, begin)
        if rule is not None:
            self.state = "publish"
            self.lives.append(Life(rule, begin))

    def take(self, batch: list[dict[str, Any]]) -> None:
        """Take in a micro-batch."""
        for life in self.lives:
            life.sees += (event for event in batch if life.begin <= event["t"] < life.end)


@given(
    st.lists(st.lists(RULES_ON_STREAMS, min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(ROWS, min_size=1, max_size=3), st.integers(0, 10**6),
)  # fmt: skip
def test_each_version_has_the_matches_of_its_events(
    drawn: list[list[Any]], rows: list[list[Any]], seed: int
) -> None:
    """Whatever changes between micro-batches, with validFrom and late events, lives do not mix."""
    choose = random.Random(seed)
    given_ = with_ids(events_of([row for own in rows for row in own]))
    arriving = sorted(given_, key=lambda one: one["t"] + choose.choice([0, 1, DELAY, 3 * DELAY]))
    every = [
        attrs.evolve(rule, name=f"r{number}", version=version)
        for number, own in enumerate(drawn)
        for version, rule in enumerate(named(own), 1)
    ]
    routes = _routes(every)
    running = list(_running(every, routes))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(noted_log, "run_of_query", lambda: "the run")
        log, notes = RuleLog(Path(folder) / "log"), Path(folder) / "notes"
        notes.mkdir()
        of_rules = [
            Changes(log, versions, choose)
            for number in range(len(drawn))
            if (versions := [rule for rule in running if rule.name == f"r{number}"])
        ]
        is_noted = seed % 2 > 0  # whether conditions are asked where events are packed
        bucket = LiveBucket(log, routes, DELAY, SCHEMA, notes=notes if is_noted else None)
        reached = MIN_WATERMARK
        while arriving:
            size = choose.randrange(1, len(arriving) + 1)
            batch, arriving = arriving[:size], arriving[size:]
            for _ in range(choose.randrange(3)):
                for one in of_rules:
                    one.change(batch[0]["t"])
            in_time = [event for event in batch if event["t"] > reached]
            for one in of_rules:
                one.take(in_time)
            reached = max(reached, *(event["t"] - DELAY for event in batch))
            bucket.batch(batch)
        bucket.close()
    wanted: Counter[str] = Counter()
    for life in (life for one in of_rules for life in one.lives):
        table = pa.Table.from_pylist(sorted(life.sees, key=lambda event: event["t"]), SCHEMA)
        whole = matchMany([life.rule], table, timestamp="t", type="name")
        wanted += shown_ids(whole.toArrow().to_pylist())
    found = shown_ids(bucket.found)
    assert found == wanted, f"more: {[*(found - wanted)]}, less: {[*(wanted - found)]}"
    assert not [one for one in bucket.told if one["problem"]]
