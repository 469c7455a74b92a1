# SPDX-License-Identifier: Apache-2.0
"""Rules whose events are sent to tasks have the matches that they have on a table."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle as pickle

from pyflinkcep import AfterMatchSkipStrategy, CepError, Pattern, matchMany
from pyflinkcep.conditions import IterativeCondition, RichCompositeIterativeCondition
from pyflinkcep.expressions.parser import sql_condition
from pyflinkcep.pattern.aftermatch import SkipToElementStrategy
from pyflinkcep.rules import Rule, alike_patterns
from pyflinkcep.rules.routes import RoutedRules
from pyflinkcep.rules.wanting_rule import shared_events
from pyflinkcep.tables.typed_columns import widest
from tests.property.strategies import PatternSpec, patterns
from tests.property.test_rule_sets import (
    KEYS,
    ROWS,
    RULES_OF_ALL_KINDS,
    SCHEMA,
    TEXTS,
    events_of,
    named,
)


def _alike(spec: PatternSpec, seed: int) -> Pattern:
    """Return a pattern with conditions and a window, of which its seed tells which."""
    rng = random.Random(seed)

    def other(condition: IterativeCondition) -> IterativeCondition:
        if isinstance(condition, RichCompositeIterativeCondition):
            return type(condition)(*map(other, condition.nestedConditions))
        return sql_condition(rng.choice(TEXTS))

    pattern = spec.build().with_conditions(other)
    if spec.window is not None and spec.window[1] != "FIRST_AND_LAST":
        return pattern
    windows = [None, *(timedelta(milliseconds=length) for length in (2, 5, 9))]
    return pattern.within(window) if (window := rng.choice(windows)) else pattern


def _sent(rules: list[Rule], table: pa.Table) -> list[dict[str, Any]]:
    """Return matches of the tasks to which events are sent."""
    probe = shared_events(rules, widest(table.schema), "t", "name", "UTC")
    routed = RoutedRules.of(rules, probe, "UTC")
    sent = pickle.loads(pickle.dumps(routed.sending())).sent(table)
    order = np.argsort(sent.targets, kind="stable")
    targets, rows = sent.targets[order], pa.array(sent.rows[order])
    holding = sent.holding(order)
    arrived = pickle.loads(pickle.dumps(routed.arrived()))
    bounds = np.r_[0, np.flatnonzero(np.diff(targets >> 32)) + 1, len(targets)].tolist()
    found: list[dict[str, Any]] = []
    for begin, end in pairwise(bounds if len(targets) else ()):
        own = rows.slice(begin, end - begin)
        matches = arrived.found(table.take(own), targets[begin:end], holding[begin:end])
        found += matches.toArrow().to_pylist()
    return found


def _check(rules: list[Rule], rows: list[Any], at_once: int, is_plain: bool = False) -> None:
    table = pa.Table.from_pylist(events_of(rows), SCHEMA)

    def on_table() -> list[str]:
        found = matchMany(rules, table, timestamp="t", type="name").toArrow().to_pylist()
        return [f"{one}" for one in found]  # in which NaN is NaN

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(alike_patterns, "_AT_ONCE", at_once)
        patched.setenv("PYFLINKCEP_KERNEL", "0")
        expected = on_table()  # one by one
        patched.setenv("PYFLINKCEP_KERNEL", "0" if is_plain else "1")
        assert on_table() == expected
        assert sorted(f"{one}" for one in _sent(rules, table)) == sorted(expected)


AT_ONCE = st.sampled_from([1, 5, 1 << 20])


@given(st.lists(RULES_OF_ALL_KINDS, max_size=8), ROWS, AT_ONCE)
@settings(max_examples=settings.default.max_examples * 3)
def test_rules_of_all_kinds(drawn: list[Any], rows: list[Any], at_once: int) -> None:
    """Rules find the same where their events are sent, whatever is looked at in one call."""
    _check(named(drawn), rows, at_once)


@given(
    patterns(), st.lists(st.tuples(st.integers(0, 99), st.sampled_from(KEYS)), max_size=8),
    ROWS, AT_ONCE, st.booleans(),
)  # fmt: skip
@settings(max_examples=settings.default.max_examples * 3)
def test_patterns_of_one_form(
    spec: PatternSpec, drawn: list[Any], rows: list[Any], at_once: int, is_plain: bool
) -> None:
    """Patterns that differ in conditions and windows alone find together what each finds, also in Python."""
    rules = named([(_alike(spec, seed), key) for seed, key in drawn])
    _check(rules, rows, at_once, is_plain)


def test_an_error_names_the_rule_that_it_comes_from() -> None:
    """What fails for one of patterns that are matched together has a note with its name."""
    skip = AfterMatchSkipStrategy.skipToFirst("s1")
    assert isinstance(skip, SkipToElementStrategy)
    begun = Pattern.begin("s0", skip.throwExceptionOnMiss())

    def rule(name: str, price: int) -> Rule:
        first = begun.where(f"price = {price}").followedBy("s1").where("price = 3").optional()
        return Rule(name, first.followedBy("s2").where("price = 4"), ("k",))

    table = pa.Table.from_pylist(
        events_of([("a", price, 1, 1, "x", 0) for price in (2, 4)]), SCHEMA
    )
    with pytest.raises(CepError) as raised:
        _sent([rule("good", 1), rule("bad", 2), rule("fine", 7)], table)

    assert raised.value.__notes__ == ["in rule 'bad'"]
