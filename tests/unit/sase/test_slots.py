# SPDX-License-Identifier: Apache-2.0
"""Which slots keep runs apart: those that a condition still ahead reads."""

from __future__ import annotations

import pytest

from pyflinkcep.engines.sequences.compiler import LOOPING, WAITING, compile_query, live_slots
from pyflinkcep.expressions.program import Kind
from pyflinkcep.sase import parse
from pyflinkcep.sase.analysis import AnalysedQuery

_QUERIES = [
    ("SEQ(A a, B b, C c)", "", {"a": (), "b": (), "c": ()}),
    ("SEQ(A a, B b, C c)", "b.x > a.x", {"a": ("first(a.x)",), "b": (), "c": ()}),
    ("SEQ(A a, B b, C c)", "c.x > a.x", {"a": ("first(a.x)",), "b": ("first(a.x)",), "c": ()}),
    ("SEQ(A a, B+ b[], C c)", "b[i].x > b[i-1].x", {"a": (), "b": ("last(b.x)",), "c": ()}),
    ("SEQ(A+ a[], B b)", "a[i].x > avg(a[..i-1].x)", {"a": ("avg(a.x)",), "b": ()}),
    ("SEQ(A a, B+ b[])", "count(b[]) > 2", {"a": (), "b": ("count(b.*)",)}),
    ("SEQ(A a, ~(B n), C c)", "n.x > a.x", {"a": ("first(a.x)",), "c": ()}),
]


@pytest.mark.parametrize(("pattern", "where", "expected"), _QUERIES)
def test_what_is_still_read(pattern: str, where: str, expected: dict[str, tuple[str, ...]]) -> None:
    """A variable's slots are read by later edges, or by the loop itself."""
    query = parse(f"PATTERN {pattern}" + (f" WHERE {where}" if where else ""))
    assert {v: tuple(map(_plain, own)) for v, own in AnalysedQuery(query).slots.items()} == {
        v: tuple(map(_plain, own)) for v, own in expected.items()
    }


@pytest.mark.parametrize(("pattern", "where"), [(p, w) for p, w, _ in _QUERIES])
def test_the_automaton_keeps_the_same_apart(pattern: str, where: str) -> None:
    """A state has live slots exactly if explain() names some for its variable."""
    query = parse(f"PATTERN {pattern}" + (f" WHERE {where}" if where else ""))
    automaton = compile_query(query, {"x": Kind.BIGINT})
    live = live_slots(automaton)
    own = [slot.stage for slot in automaton.expressions.slots]
    names = [part.variable for part in query.positive]
    for number, (name, texts) in enumerate(AnalysedQuery(query).slots.items()):
        if name == names[-1] and not automaton.loops[number]:
            continue  # a match: nothing is ahead
        mode = LOOPING if automaton.loops[number] else WAITING
        taken = [n for n in live[4 * number + mode] if own[n] in names[: number + 1]]
        assert bool(taken) == bool(texts), name


def _plain(text: str) -> str:
    return text.replace("first(", "last(")  # of a single event both are its value


def test_the_lines_of_explain() -> None:
    """A line for each variable but a match's last; the window tells runs apart too."""
    loop = "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x"

    def lines(text: str) -> list[str]:
        query = parse(text)
        return list(AnalysedQuery(query).slots_explained())

    assert lines(loop) == [
        "after a: nothing, they are one run",
        "after b: last(b.x)",
    ]
    assert lines(loop + " WITHIN 5") == [
        "after a: the time of its first event",
        "after b: last(b.x), the time of its first event",
    ]
