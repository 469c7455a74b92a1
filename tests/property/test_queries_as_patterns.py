# SPDX-License-Identifier: Apache-2.0
"""``query.asPattern()`` has the matches of the query, on random streams."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import CepError, NotSupportedError, Pattern
from pyflinkcep.engines.flink.nfa import EventEvaluation, NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.evaluation import Expressions
from pyflinkcep.engines.flink.sharedbuffer import SharedBuffer
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.evaluator import event_function, local_expressions
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.sase.analysis import AnalysedQuery
from pyflinkcep.sase.model import Form
from pyflinkcep.testing import matchSase
from tests.property.composed_queries import SinglesOnly, taken
from tests.property.composed_queries import events as composed_events
from tests.property.composed_queries import queries as composed_queries
from tests.property.composed_reference import matches
from tests.property.test_sase_properties import events, has_their_attributes, texts

END = 1 << 60


@cache
def patterns() -> list[SaseQuery]:
    """The recorded queries that are patterns."""
    found = []
    for text in texts():
        try:
            query = parse(text)
        except CepError:
            continue  # a recorded error
        if query.form is Form.SEQ and query.having is None and query.columns is None:
            is_pattern = AnalysedQuery(query).why_no_pattern is None
            found += [query] if has_their_attributes(query) and is_pattern else []
    return found


def matched(pattern: Pattern, rows: list[dict[str, Any]]) -> list[dict[str, list[Any]]]:
    """The matches of a pattern with SQL conditions on the events of one key."""
    nfa = NFACompiler.compile(pattern, False)
    asked = [(a.stage, a.condition) for a in nfa.atoms if isinstance(a.condition, MatchExpression)]
    values, fields = local_expressions(asked, rows, False)
    known = [(a.bit, event_function(a.condition.text)) for a in nfa.atoms if a.bit]
    evaluation = EventEvaluation(
        known=known_bits(nfa.atoms), expressions=Expressions(generated(values), fields)
    )
    state, accessor, found = nfa.create_initial_state(), SharedBuffer().get_accessor(), []
    for row in rows:
        found += [match for match, _ in nfa.advance_time(accessor, state, row["ts"])[0]]
        evaluation.begin(row, row["ts"], sum(bit for bit, holds in known if holds(row) is True))
        found += nfa.process(accessor, state, row["ts"], evaluation, row)
    return found + [match for match, _ in nfa.advance_time(accessor, state, END)[0]]


def ids(matches: Any) -> Counter[str]:
    return Counter(
        json.dumps({name: [e["id"] for e in own] for name, own in m.items()}, sort_keys=True)
        for m in matches
    )


@settings(max_examples=settings.default.max_examples * 2)
@given(st.deferred(lambda: st.sampled_from(patterns())), st.integers(0, 10**6))
def test_the_pattern_has_the_matches_of_the_query(query: SaseQuery, seed: int) -> None:
    """Key by key, the pattern's matches are those of the query, each as often."""
    rows = events(seed, 12)
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        tests = () if query.is_global else tuple(row[name] for name in query.equal)
        groups[tests].append(row)
    pattern = query.asPattern("kind")
    found = [m for group in groups.values() for m in matched(pattern, group)]
    assert ids(found) == ids(matchSase(query, rows, "ts", "kind", "nfa"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN A;B", "equal"),
        ("PATTERN SEQ(A+ a[], ~B n, C c)", "after a loop"),
        ("PATTERN SEQ(~B n, A a) WITHIN 5", "before the first"),
        ("PATTERN SEQ(A a, ~B n, C c) WHERE n.x > c.x", "later component"),
        ("PATTERN SEQ(A+ a[], A b) WHERE skip_till_next_match", "may be taken by 'a'"),
        ("PATTERN SEQ(A+ a[], B b) WHERE count(a[]) > 2", "left"),
    ],
)
def test_what_is_no_pattern_says_why(text: str, why: str) -> None:
    """If no pattern has the matches, asPattern refuses and names the reason."""
    with pytest.raises(NotSupportedError, match=why):
        parse(text).asPattern()


def test_there_are_enough_patterns() -> None:
    """Many of the recorded queries are patterns, so that the property means something."""
    assert len(patterns()) > 100


def test_composed_queries_as_patterns() -> None:
    """Groups of patterns have the matches of the reference, each as often."""
    chance = random.Random(4)
    compared = answered = 0
    for query in composed_queries(chance, SinglesOnly):
        if query.most_events is not None or not query.is_composed:
            continue
        if AnalysedQuery(query).why_no_pattern is not None:
            continue
        rows = composed_events(chance, chance.randrange(4, 10))
        groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for at, row in enumerate(rows):
            # Each key has values to know the types by.
            row.update(x=row["x"] or 0, p=row["p"] or {"y": 0}, flag=row["flag"] is True)
            tests = tuple(row[name] for name in query.equal)
            groups[at if None in tests else tests].append(row)
        pattern = query.asPattern()
        found = taken([m for group in groups.values() for m in matched(pattern, group)])
        assert found == Counter(matches(query, rows)), (query, rows)
        answered += bool(found)
        compared += 1
        if compared == 40:
            break
    assert answered > 8
