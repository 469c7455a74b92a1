# SPDX-License-Identifier: Apache-2.0
"""Rules that hold for every query: evaluations agree, merging changes nothing, texts never hang."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from functools import cache
from typing import Any
from unittest import mock

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import CepError
from pyflinkcep.engines.choice import EVENT_LISTS, chosen
from pyflinkcep.engines.queries import query_matches
from pyflinkcep.engines.sequences.evaluation import Sequences
from pyflinkcep.engines.sequences.runs import Runs
from pyflinkcep.sase import SaseQuery, parse
from pyflinkcep.sase.attributes import queried_attributes
from pyflinkcep.sase.model import Form
from pyflinkcep.tables.event_list import EventObjects
from pyflinkcep.testing import matchSase
from tests.conformance.test_sase import DATA
from tests.property.optiseq_verify import start_cep

MUTATED = 1500
PIECES = ["SEQ(", ")", "~", "+", "[]", "[i]", "[i-1]", "avg(", "..", "WITHIN", "WHERE", "and", "or",
          "not", "(", "{", "}", ";", "^", "|", "?", "{2,3}", "AND(", "`", "case", "'", "%", "1", "a", ".", ",", "null", "\n", "é", "$"]  # fmt: skip


@cache
def texts() -> tuple[str, ...]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line)["query"] for line in lines)


@st.composite
def queries(draw: Any, form: Form) -> SaseQuery:
    """A recorded query; their events all have the attributes x, y, s, k."""
    own = [t for t in texts() if ("PATTERN SEQ" in t) == (form is Form.SEQ)]
    while True:
        try:
            return parse(draw(st.sampled_from(own)))
        except CepError:
            pass  # a recorded error


@cache
def chains() -> tuple[SaseQuery, ...]:
    """The recorded SEQ queries in a window that every evaluation answers, without [attr]."""
    own = []
    for text in texts():
        try:
            query = parse(text)
            chosen(query, EVENT_LISTS)
        except CepError:
            continue
        plain = (
            query.form is Form.SEQ and not query.equal and not query.columns and not query.having
        )
        if plain and query.window and has_their_attributes(query):
            own.append(query)
    return tuple(own)


def events(seed: int, size: int) -> list[dict[str, Any]]:
    chance, time, rows = random.Random(seed), 0, []
    for number in range(size):
        time += chance.choice([0, 1, 1, 2])
        rows.append(
            {
                "id": number, "ts": time, "kind": chance.choice("ABCD"), "k": chance.randrange(2),
                "x": chance.randrange(10), "y": chance.choice([None, 0, 1, 2]),
                "s": chance.choice("pqr"),
            }
        )  # fmt: skip
    return rows


def has_their_attributes(query: SaseQuery) -> bool:
    known = {"x", "y", "s", "k"}
    types = {part.type for part in query.components}
    return types <= set("ABCD") and known.issuperset(queried_attributes(query))


def found(matches: Any) -> Counter[str]:
    return Counter(json.dumps(match, sort_keys=True) for match in matches)


def mutated(chance: random.Random) -> str:
    text = chance.choice(texts())
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text) + 1)
        kind = chance.randrange(3)
        if kind == 0:
            text = text[:at] + chance.choice(PIECES) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + chance.randrange(1, 8) :]
        else:
            other = chance.choice(texts())
            text = text[:at] + other[chance.randrange(len(other)) :]
    return text


def query_or_error(text: str) -> SaseQuery | CepError:
    try:
        return parse(text)
    except CepError as error:
        return error


def test_a_mutated_text_is_a_query_or_an_error() -> None:
    """Every text ends in a query whose repr parses again, or in an error that says where."""
    chance = random.Random(7)
    for _ in range(MUTATED):
        found = query_or_error(mutated(chance))
        if isinstance(found, CepError):
            assert isinstance(found, ValueError)
            assert found.message.startswith("line ")
            assert found.hint
        else:
            assert parse(repr(found)) == found


@settings(max_examples=settings.default.max_examples * 2)
@given(queries(Form.LIST), st.integers(0, 10**6))
def test_the_join_finds_what_the_papers_algorithms_find(query: SaseQuery, seed: int) -> None:
    """eventLists and Algorithms 1 and 2 agree."""
    if has_their_attributes(query):
        table = EventObjects.of(events(seed, 18), "ts", "kind", query).table
        joined = query_matches(query, table, EVENT_LISTS, "all")
        assert found(joined) == found(start_cep(query, table))


@settings(max_examples=settings.default.max_examples * 2)
@given(queries(Form.SEQ), st.integers(0, 10**6))
def test_merging_and_searching_change_no_match(query: SaseQuery, seed: int) -> None:
    """Merged runs, runs apart, depth-first search and compressed matches have the same matches."""
    if not has_their_attributes(query):
        return
    table = EventObjects.of(events(seed, 11), "ts", "kind", query).table
    sequences = Sequences(query, table)
    merged = found(sequences.matches())
    apart = mock.patch.object(Runs, "key", side_effect=lambda *_: object())
    with mock.patch.object(Sequences, "_kernel", None), apart:
        assert merged == found(Sequences(query, table).matches())
    assert merged == found(sequences.searched("all"))
    assert sequences.totals([])[0] == sum(merged.values())
    for output in ("onePerStart", "nonOverlapping"):
        assert found(sequences.searched(output)) <= merged


@settings(max_examples=settings.default.max_examples * 2)
@given(st.deferred(lambda: st.sampled_from(chains())), st.integers(0, 10**6))
def test_keys_of_one_table_never_mix(query: SaseQuery, seed: int) -> None:
    """The keys of a table have the matches that each has alone, in whatever times they lie."""
    alone, keys, rows = Counter[str](), [], []
    for number in range(3):
        own = [
            {**row, "id": (number, row["id"]), "ts": row["ts"] + number % 2}
            for row in events(seed + number, 12)
        ]
        alone += found(ids(matchSase(query, own, "ts", "kind", "backtracking")))
        rows += own
        keys += [number] * len(own)
    table = EventObjects.of(rows, None, "kind", query).table
    together = attrs.evolve(table, times=[row["ts"] for row in rows], keys=keys)
    for evaluation in (EVENT_LISTS, "backtracking"):
        positions = query_matches(query, together, evaluation, "all")
        matches = ({v: [rows[at] for at in own] for v, own in m.items()} for m in positions)
        assert found(ids(matches)) == alone


def ids(matches: Any) -> Any:
    return ({v: [e["id"] for e in own] for v, own in match.items()} for match in matches)


@pytest.mark.parametrize("size", [40, 1000])
def test_matches_beyond_any_list_are_counted(size: int) -> None:
    """2ⁿ - 1 matches are counted exactly, and a thousand of them unpacked."""
    rows = [{"type": t} for t in "A" + "B" * size + "C"]
    query = "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_any_match"
    compressed = matchSase(query, rows, compressed=True)
    assert compressed.count() == 2**size - 1
    unpacked = compressed.unpack(1000)
    assert len({tuple(map(id, match["b"])) for match in unpacked}) == 1000
