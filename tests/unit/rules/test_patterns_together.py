# SPDX-License-Identifier: Apache-2.0
"""Patterns on a stream that differ in names and conditions alone run at once, as each by itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep import Pattern, Time, matchMany
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.rules import Rule, alike_patterns
from pyflinkcep.rules.running_patterns import RunningPatterns
from pyflinkcep.spark.worker.rules_task import RulesMatching
from tests.unit.spark.worker.rule_buckets import RuleBucket

SCHEMA = pa.schema(
    [("t", pa.int64()), ("name", pa.string()), ("k", pa.string()), ("j", pa.string()),
     ("x", pa.int64())]
)  # fmt: skip
Make = Callable[[list[str], list[str]], Pattern]

FORMS: dict[str, Make] = {
    "followed": lambda s, c: Pattern.begin(s[0]).where(c[0]).followedBy(s[1]).where(c[1]),
    "any": lambda s, c: Pattern.begin(s[0]).where(c[0]).followedByAny(s[1]).where(c[1]),
    "next": lambda s, c: Pattern.begin(s[0]).where(c[0]).next(s[1]).where(c[1]),
    "loop": lambda s, c: (
        Pattern.begin(s[0], AfterMatchSkipStrategy.skipPastLastEvent())
        .where(c[0]).oneOrMore().greedy().followedBy(s[1]).where(c[1])
    ),
    "not": lambda s, c: (
        Pattern.begin(s[0]).where(c[0]).notFollowedBy(s[1]).where(c[1]).followedBy(s[2]).where(c[2])
    ),
    "absent": lambda s, c: Pattern.begin(s[0]).where(c[0]).notFollowedBy(s[1]).where(c[1]),
}  # fmt: skip


def rules_of(choose: random.Random) -> list[Rule]:
    """Return rules of a few forms, with names in any order."""
    rules = []
    for number in range(24):
        stages = choose.sample("abcdefz", 3)
        conditions = [
            choose.choice([f"x > {choose.randrange(7)}", f"name = '{choose.choice('ABC')}'",
                           f"x < {choose.randrange(2, 8)} AND name <> 'C'"])
            for _ in stages
        ]  # fmt: skip
        pattern = FORMS[choose.choice([*FORMS])](stages, conditions)
        pattern = pattern.within(Time.milliseconds(choose.choice([20, 50])))
        keys = choose.choice([("k",), ("k",), ("j",), ("k", "j")])
        rules.append(Rule(f"r{number}", pattern, keys))
    return rules


def events(choose: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Yield events, no two at one time."""
    for n in range(count):
        yield {"t": 1000 + 3 * n, "name": choose.choice("ABC"), "k": choose.choice("pqr"),
               "j": choose.choice("uv"), "x": choose.randrange(9)}  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_together_and_by_themselves(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Matches are those of bounded runs, and states go on, whichever way a micro-batch is run."""
    choose = random.Random(seed)
    rules, given = rules_of(choose), list(events(choose, 160))
    bucket = RuleBucket(rules, SCHEMA, delay_ms=5)
    together = RunningPatterns._leaders
    alone = property(lambda self: np.arange(len(self._codes)))
    for at in range(0, 160, 8):
        way = choose.choice([together, alone])
        monkeypatch.setattr(RunningPatterns, "_leaders", way)
        bucket.batch(given[at : at + 8])
    bucket.close()
    wanted = Counter(
        (one.rule, one.matchId, frozenset(one.events))
        for one in matchMany(rules, given, timestamp="t", type="name")
    )
    found = [(one["rule"], one["matchId"], frozenset(dict(one["events"]))) for one in bucket.found]
    assert Counter(found) == wanted
    assert len({rule for rule, *_ in found}) > 12


def test_which_run_together() -> None:
    """Patterns of one form do, unless a match of one may be an error."""
    throwing = AfterMatchSkipStrategy.skipToFirst("a").throwExceptionOnMiss()
    rules = [
        Rule("one", FORMS["followed"](["a", "b"], ["x > 1", "x > 2"]), ("k",)),
        Rule("two", FORMS["followed"](["z", "c"], ["x < 1", "name = 'A'"]), ("j",)),
        Rule("within", FORMS["followed"](["a", "b"], ["x > 1", "x > 2"]).within(
            Time.milliseconds(9)), ("k",)),
        Rule("throws", Pattern.begin("a", throwing).where("x > 1").followedBy("b").where("x > 2"),
             ("k",)),
        Rule("over stages", FORMS["followed"](["a", "b"], ["x > 1", "x > last(a.x)"]), ("k",)),
    ]  # fmt: skip
    matching = RuleBucket(rules, SCHEMA).plan.matching
    assert isinstance(matching, RulesMatching)
    forms = [matching.rules.patterns[number].form for number in range(len(rules))]
    assert forms[0] == forms[1] != forms[2]
    assert forms[3] is forms[4] is None


@pytest.mark.parametrize("has_kernel", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 70_000])
def test_lists_of_conditions(
    monkeypatch: pytest.MonkeyPatch, count: int, *, has_kernel: bool
) -> None:
    """Each event has the numbers of what holds for it in order, or codes, however many there are."""
    rng = random.Random(count)
    monkeypatch.setattr(alike_patterns, "_AT_ONCE", 10)
    if not has_kernel:
        monkeypatch.setattr(alike_patterns, "compiled_module", lambda: None)
    sizes = [rng.randrange(20) if number % 999 < 7 else 0 for number in range(count)]
    held = [np.asarray(sorted(rng.sample(range(20), size)), np.int32) for size in sizes]
    own = [[n for n in range(count) if sizes[n] and row in held[n]] for row in range(20)]

    assert alike_patterns.listed(held, 20, None).to_pylist() == own
    codes = np.arange(count, dtype=np.int64) << 40
    coded = alike_patterns.listed(held, 20, codes).to_pylist()
    assert coded == [[number << 40 for number in numbers] for numbers in own]
