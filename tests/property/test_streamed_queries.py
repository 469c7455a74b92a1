# SPDX-License-Identifier: Apache-2.0
"""A query whose events come in portions gives, all portions together, what it gives on all events."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import CepError
from pyflinkcep.engines.choice import EVALUATIONS, OUTPUTS, chosen
from pyflinkcep.engines.queries import QueryPlan, compressed_matches, query_matches
from pyflinkcep.engines.streamed_queries import Kept, Portion, StreamedQuery
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.sase.attributes import queried_attributes
from pyflinkcep.sase.model import Form
from pyflinkcep.tables.event_list import EventObjects
from pyflinkcep.time import MAX_WATERMARK
from tests.property.composed_queries import ManyNegations, Writer
from tests.property.composed_queries import queries as composed_queries
from tests.property.test_sase_properties import events, has_their_attributes, texts

Rows = list[dict[str, Any]]


@cache
def queries() -> dict[str, list[SaseQuery]]:
    """The recorded queries by what decides about the state: their ends, their form, their loops."""
    found: dict[str, list[SaseQuery]] = defaultdict(list)
    for text in texts():
        try:
            query = parse(text)
        except CepError:
            continue  # a recorded error
        if has_their_attributes(query):
            first, last = query.components[0], query.components[-1]
            ends = [
                part.negated or (query.form is Form.LIST and part.repeats) for part in (first, last)
            ]
            loops = any(part.repeats for part in query.components)
            found[f"{query.form} {ends} {loops}"].append(query)
    return found


def any_query() -> st.SearchStrategy[SaseQuery]:
    """Return a recorded query, those of rare kinds as often as others."""
    return st.deferred(lambda: st.sampled_from(sorted(queries()))).flatmap(
        lambda kind: st.sampled_from(queries()[kind])
    )


def table_of(query: SaseQuery, rows: Rows, keys: Sequence[int]) -> EventTable:
    """The table of some events; what attributes hold does not depend on which they are."""
    kinds = EventObjects.of(events(1, 100), None, "kind", query).table.kinds
    return EventTable(
        [row["ts"] for row in rows],
        [row["kind"] for row in rows],
        {name: [row[name] for row in rows] for name in kinds},
        kinds,
        keys,
    )


def in_portions(
    query: SaseQuery, groups: list[Rows], cuts: list[int], ask: Callable[[Portion, Rows], Kept]
) -> None:
    """Show the events of some keys up to each watermark, and at last the final one."""
    kept: list[tuple[Rows, int]] = [([], 0) for _ in groups]
    before, deadlines = -1, [None] * len(groups)
    for watermark in [*cuts, MAX_WATERMARK]:
        keys, bounds, fresh, free, rows = [], [0], [], [], []
        for key, (own, (held, undecided)) in enumerate(zip(groups, kept, strict=True)):
            new = [row for row in own if before < row["ts"] <= watermark]
            due = deadlines[key] is not None and deadlines[key] <= watermark
            if new or (held and due) or (held and watermark == MAX_WATERMARK):
                keys.append(key)
                fresh.append(bounds[-1] + len(held))
                free.append(bounds[-1] + undecided)
                bounds.append(bounds[-1] + len(held) + len(new))
                rows += held + new
        numbers = [key for n, key in enumerate(keys) for _ in range(bounds[n + 1] - bounds[n])]
        table = table_of(query, rows, numbers)
        after = ask(Portion(table, bounds, fresh, free, watermark), rows)
        for n, key in enumerate(keys):
            kept[key] = rows[after.since[n] : bounds[n + 1]], after.free[n] - after.since[n]
            deadlines[key] = after.deadlines[n]
        before = watermark
    assert not any(held for held, _ in kept)


def grouped(query: SaseQuery, seed: int) -> list[Rows]:
    groups: dict[Any, Rows] = defaultdict(list)
    for row in events(seed, 14):
        tests = () if query.is_global else tuple(row[name] for name in query.equal)
        groups[tests].append(row)
    return list(groups.values())


def counting_events(query: SaseQuery, seed: int) -> SaseQuery:
    """Return some queries with a window that counts events instead."""
    if query.form is Form.LIST or seed % 3:
        return query
    return attrs.evolve(query, window=None, most_events=seed % 5 + 1)


def ids(match: dict[str, list[int]], rows: Rows) -> str:
    return json.dumps({name: [rows[at]["id"] for at in own] for name, own in match.items()})


watermarks = st.lists(st.integers(0, 16), max_size=9).map(sorted)


@settings(max_examples=settings.default.max_examples * 5)
@given(
    any_query(),
    st.sampled_from(EVALUATIONS),
    st.sampled_from(OUTPUTS),
    st.integers(0, 10**6),
    watermarks,
)
def test_portions_give_what_all_events_give(
    query: SaseQuery, evaluation: str, output: str, seed: int, cuts: list[int]
) -> None:
    """Under every evaluation and output, each match once, whatever the watermarks are."""
    query = counting_events(query, seed)
    try:
        how = chosen(query, evaluation, output).name
    except CepError:
        how = chosen(query, "auto", output).name
    groups = grouped(query, seed)
    streamed, found = StreamedQuery(QueryPlan(query, how, output)), Counter[str]()

    def ask(portion: Portion, rows: Rows) -> Kept:
        matches, kept = streamed.matches(portion)
        found.update(ids(match, rows) for match in matches)
        return kept

    in_portions(query, groups, cuts, ask)
    rows = [row for own in groups for row in own]
    table = table_of(query, rows, [key for key, own in enumerate(groups) for _ in own])
    assert found == Counter(ids(m, rows) for m in query_matches(query, table, how, output))


@settings(max_examples=settings.default.max_examples * 2)
@given(any_query(), st.integers(0, 10**6), watermarks)
def test_portions_count_what_all_events_count(query: SaseQuery, seed: int, cuts: list[int]) -> None:
    """Each event that completes matches has their number and totals, once."""
    query = counting_events(query, seed)
    groups = grouped(query, seed)
    last, function = query.positive[-1].variable, ("sum", "min", "max")[seed % 3]
    streamed, found = StreamedQuery(QueryPlan(query, chosen(query).name)), {}

    def ask(portion: Portion, rows: Rows) -> Kept:
        measures = [(last, [row["x"] for row in rows], function)]
        endings, kept = streamed.endings(portion, lambda c: c.totals_by_event(measures))
        for at, *counted in endings:
            assert rows[at]["id"] not in found
            found[rows[at]["id"]] = counted
        return kept

    in_portions(query, groups, cuts, ask)
    rows = [row for own in groups for row in own]
    table = table_of(query, rows, [key for key, own in enumerate(groups) for _ in own])
    measures = [(last, [row["x"] for row in rows], function)]
    whole = compressed_matches(query, table).totals_by_event(measures)
    assert found == {rows[at]["id"]: counted for at, *counted in whole}


def test_portions_of_composed_queries() -> None:
    """Alternatives, any order, optional and counted components: listed, and counted by event."""
    chance = random.Random(8)
    own = {"x", "y", "s", "k"}
    several = 0
    for number in range(26):
        queries = composed_queries(chance, ManyNegations if number % 2 else Writer)
        query = next(q for q in queries if own.issuperset(queried_attributes(q)))
        groups, cuts = (
            grouped(query, chance.randrange(10**6)),
            sorted(chance.choices(range(17), k=4)),
        )
        whole = [row for own in groups for row in own]
        table = table_of(query, whole, [key for key, own in enumerate(groups) for _ in own])
        for how in ("nfa", "backtracking"):
            streamed, listed, counted = (
                StreamedQuery(QueryPlan(query, how)),
                Counter[str](),
                Counter[int](),
            )

            def ask(portion: Portion, rows: Rows) -> Kept:
                matches, kept = streamed.matches(portion)
                listed.update(ids(match, rows) for match in matches)
                return kept

            def count(portion: Portion, rows: Rows) -> Kept:
                endings, kept = streamed.endings(portion, lambda c: c.totals_by_event([]))
                counted.update({rows[at]["id"]: number for at, number, _ in endings})
                return kept

            in_portions(query, groups, cuts, ask)
            in_portions(query, groups, cuts, count)
            expected = Counter(ids(m, whole) for m in query_matches(query, table, how, "all"))
            assert (query, listed) == (query, expected)
            totals = compressed_matches(query, table).totals_by_event([])
            assert counted == {whole[at]["id"]: number for at, number, _ in totals}
            several += sum(expected.values()) > 1
        for output in OUTPUTS[1:]:
            streamed, firsts = (
                StreamedQuery(QueryPlan(query, "backtracking", output)),
                Counter[str](),
            )

            def first(portion: Portion, rows: Rows) -> Kept:
                matches, kept = streamed.matches(portion)
                firsts.update(ids(match, rows) for match in matches)
                return kept

            in_portions(query, groups, cuts, first)
            found = query_matches(query, table, "backtracking", output)
            assert (query, firsts) == (query, Counter(ids(m, whole) for m in found))
    assert several > 8


def test_whole_keys_have_the_matches_of_their_events() -> None:
    """Windows that are over are counted as bounded events are, whatever the window of the query."""
    rows = events(5, 40)
    keys = [row % 2 for row in range(40)]
    for window in ("", "WITHIN 9", "WITHIN 6 EVENTS"):
        for pattern in ("SEQ(A a, B+ b[])", "SEQ(A a, (B b | C c))"):
            query = parse(f"PATTERN {pattern} {window}")
            table = table_of(query, sorted(rows, key=lambda row: row["ts"]), sorted(keys))
            found = StreamedQuery(QueryPlan(query, "nfa")).whole(table).totals(())
            assert found == compressed_matches(query, table).totals(())
            assert found[0] > 5
