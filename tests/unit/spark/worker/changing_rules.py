# SPDX-License-Identifier: Apache-2.0
"""Rules of all kinds that change in a log at random, and what each version has to find."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import attrs

from pyflinkcep import Eql, Pattern, Time, matchMany, parse
from pyflinkcep.rules import Rule, RuleLog, SigmaCorrelation

Event = dict[str, Any]
Made = Callable[[str], Rule]
KINDS = ("sequence", "single", "next", "chain", "counted", "query")

Change = Literal["publish", "publish from", "publish bad", "pause", "resume", "remove", ""]
CHANGES: tuple[Change, ...] = (
    "publish", "publish", "publish from", "publish bad", "pause", "resume", "remove", "", "", "",
)  # fmt: skip
SUM_OF_TEXTS = {"type": "value_sum", "rules": ["high"], "group-by": ["k"], "timespan": "1s",
                "condition": {"field": "name", "gte": 3}}  # fmt: skip


def events(choose: random.Random, first: int, count: int, spread: int = 8) -> list[Event]:
    """Return events, less than `spread` ms out of order; no two at one time."""
    made = [
        {"id": n, "t": 1000 + 3 * n, "name": choose.choice("AABBCD"),
         "k": choose.choice("pqr"), "x": choose.randrange(9)}
        for n in range(first, first + count)
    ]  # fmt: skip
    return sorted(made, key=lambda row: row["t"] + choose.randrange(spread))


def made_rule(choose: random.Random, name: str, version: int) -> Made:
    """Return what makes a random rule of a kind that its name says, given more for its begin."""
    low, high = choose.randrange(2, 7), choose.randrange(2, 7)
    when, kind = choose.choice(["drop", "finish"]), choose.choice("AB")

    def made(more: str = "") -> Rule:
        if name == "sequence":
            rest = f"[any where x < {high}] [any where x > 3]"
            query = f"sequence by k with maxspan=60ms [{kind} where x > {low}{more}] {rest}"
            return Rule(name, Eql(query), version=version, whenReplaced=when)
        if name == "counted":
            count = {"type": "event_count", "rules": ["high"], "group-by": ["k"], "timespan": "1s"}
            count["condition"] = {"gte": low}
            return Rule(name, SigmaCorrelation(count, {"high": f"x > {high}{more}"}), (), version)
        if name == "query":
            query = f"PATTERN SEQ(A a, B+ b[]) WHERE a.x > {low} AND b[i].x > b[i-1].x"
            return Rule(name, parse(f"{query} WITHIN 40 milliseconds"), ("k",), version)
        if name == "single":
            query = f"D where x > {low}{more}"
            return Rule(name, Eql(query), version=version, whenReplaced=when)
        begin = Pattern.begin("a").where(f"x < {low}{more}")
        if name == "next":
            pattern = begin.next("b").where(f"x > {high}")
        else:
            chain = begin.followedByAny("b").where("x > 1 + last(a.x)")
            pattern = chain.followedBy("c").where("x = 4")
        pattern = pattern.within(Time.milliseconds(50))
        return Rule(name, pattern, ("k",), version, whenReplaced=when)

    return made


def bad_rule(choose: random.Random, name: str, version: int) -> Rule:
    """Return a rule that a log takes, and no stream of such events."""
    return choose.choice(
        [
            Rule(name, Pattern.begin("a").where("y < 3"), ("k",), version),
            Rule(name, Pattern.begin("a").where("10 / x > 2"), ("k",), version),
            Rule(name, SigmaCorrelation(SUM_OF_TEXTS, {"high": "x > 3"}), (), version),
            Rule(name, parse("PATTERN SEQ(A a, B b) WHERE abs(a.x) + b.x > 3"), ("k",), version),
        ]
    )


@attrs.define(eq=False)
class Life:
    """A version of a rule while it is in force, with the events of its micro-batches."""

    make: Made
    begin: int = 0  # The time of the first events that it sees
    end: int = 1 << 40  # And of the first that it sees no longer, of those to come
    begins: list[Event] = attrs.field(factory=list)  # What may begin its matches
    sees: list[Event] = attrs.field(factory=list)

    def take(self, batch: Sequence[Event]) -> None:
        """Take in a micro-batch."""
        own = [event for event in batch if event["t"] >= self.begin]
        begins = [event for event in own if event["t"] < self.end]
        self.begins += begins
        self.sees += own if self.make("").whenReplaced == "finish" else begins

    def expected(self, timestamp: str) -> Counter[str]:
        """Return the ids of its matches: on the events that it sees, of those that may begin one."""
        if not self.sees:
            return Counter()
        ids = ", ".join(str(one["id"]) for one in self.begins) or "-1"
        rules = [self.make(f" and id in ({ids})")]
        found = matchMany(rules, self.sees, timestamp=timestamp, type="name")
        return Counter(one.matchId for one in found)


@attrs.frozen
class _Said:
    """What a publication says."""

    change: Change
    name: str
    version: int
    make: Made | None = None
    begin: int = 0


@attrs.define(eq=False)
class ChangingRules:
    """Rules that change in a log at random, and the lives of their versions on a stream."""

    log: RuleLog
    choose: random.Random
    lives: dict[str, list[Life]] = attrs.field(factory=lambda: {name: [] for name in KINDS})
    # Of each change its publication, rule, version and kind; for one that does not apply only the
    # first two.
    told: list[tuple[int, str | None, int | None, str | None]] = attrs.field(factory=list)
    applied: int = 0  # The number of the last publication that the stream has
    _said: list[_Said | None] = attrs.field(factory=list)  # None cannot be read
    _versions: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(KINDS, 0))
    _of_log: dict[str, str] = attrs.field(factory=dict)  # What became of rules in the log
    _of_stream: dict[str, str] = attrs.field(factory=dict)  # And on the stream, of good ones

    # --- the log

    def change(self, first: int, last: int) -> None:
        """Publish changes of some rules, some for events from a time between two on."""
        for name in KINDS:
            change = self.choose.choice(CHANGES)
            if change.startswith("publish") or not self._versions[name]:
                self._publish(name, change, self.choose.randrange(first, last))
            elif change == "resume" and self._of_log[name] == "pause":
                self._note(self.log.resume(name), _Said(change, name, self._versions[name]))
            elif change in ("pause", "remove") and self._of_log[name] == "publish":
                publish = self.log.pause if change == "pause" else self.log.remove
                self._note(publish(name), _Said(change, name, self._versions[name]))
        if not self.choose.randrange(8):
            number = self.log.number + 1
            (self.log.path / f"{number:010d}.json").write_text("{")
            self._note(number, None)

    def _publish(self, name: str, change: Change, begin: int) -> None:
        self._versions[name] += 1
        version, make = self._versions[name], None
        if change == "publish bad":
            number = self.log.publish([bad_rule(self.choose, name, version)])
        else:
            make = made_rule(self.choose, name, version)
            moment = datetime.fromtimestamp(begin / 1000, UTC)
            number = self.log.publish([make("")], moment if change == "publish from" else None)
        begin = begin if change == "publish from" else 0
        self._note(number, _Said("publish", name, version, make, begin))

    def _note(self, number: int, said: _Said | None) -> None:
        self._said.append(said)
        assert number == len(self._said)
        if said is not None:
            self._of_log[said.name] = "publish" if said.change == "resume" else said.change

    # --- the stream

    def apply(self, number: int) -> None:
        """Apply the publications up to one: a bad one changes nothing."""
        for at in range(self.applied + 1, number + 1):
            said = self._said[at - 1]
            if said is None:
                self.told.append((at, None, None, None))
            elif self._is_good(said):
                self.told.append((at, said.name, said.version, said.change))
                self._apply(said)
            else:
                self.told.append((at, said.name, None, None))
        self.applied = max(self.applied, number)

    def _is_good(self, said: _Said) -> bool:
        if said.change == "publish":
            return said.make is not None
        return self._of_stream.get(said.name, "remove") != "remove"

    def _apply(self, said: _Said) -> None:
        own, before = self.lives[said.name], self._of_stream.get(said.name)
        make, begin = said.make, said.begin
        if said.change == "resume":
            if before != "pause":
                return
            make, begin = own[-1].make, own[-1].begin
        for life in own:
            life.end = min(life.end, begin)
        self._of_stream[said.name] = "publish" if make is not None else said.change
        if make is not None:
            own.append(Life(make, begin))

    def take(self, batch: Sequence[Event]) -> None:
        """Take in a micro-batch, of events that are not late."""
        for life in self._every():
            life.take(batch)

    def expected(self, timestamp: str = "t") -> Counter[str]:
        """Return the ids of all matches."""
        found: Counter[str] = Counter()
        for life in self._every():
            found += life.expected(timestamp)
        return found

    def _every(self) -> Iterator[Life]:
        return itertools.chain.from_iterable(self.lives.values())
