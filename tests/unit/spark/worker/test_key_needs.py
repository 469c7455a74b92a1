# SPDX-License-Identifier: Apache-2.0
"""Keys without the events that every match has are passed over, and lose nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.relevance import KeyNeeds
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.matching.columns import BITS, spark_atoms
from pyflinkcep.matching.sorting import BUDGET_BYTES
from pyflinkcep.matching.stretches import Events, Stretches
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.testing import OperatorTestHarness
from tests.property.strategies import Event, PatternSpec, patterns, timed_events
from tests.unit.spark.worker.test_batch_task import Recording, batches, layout

A, B, C = (Pattern.begin(name).where(f"name = '{name}'") for name in "abc")


def taking(name: str) -> str:
    """Return the condition of a stage."""
    return f"name = '{name}'"


def needs_of(pattern: Pattern) -> set[str] | None:
    """Return the stages that every match has."""
    nfa = NFACompiler.compile(pattern, False)
    needs = KeyNeeds.of(nfa, known_bits(nfa.atoms))
    if needs is None:
        return None
    return {stage for number, stage in enumerate(nfa.stages) if needs.every >> number & 1}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (A.followedBy("b").where(taking("b")), {"a", "b"}),
        (A.followedBy("b").where(taking("b")).optional().next("c").where(taking("c")), {"a", "c"}),
        (A.followedBy("b").where(taking("b")).oneOrMore().next("c").where(taking("c")), set("abc")),
        (A.next("b").where(taking("b")).times(2, 3).optional(), {"a"}),
        (A.optional().next("b").where(taking("b")), {"b"}),
        (A.notNext("n").where(taking("b")).followedBy("c").where(taking("c")), {"a", "c"}),
        (A.notFollowedBy("n").where(taking("b")).within(timedelta(milliseconds=9)), {"a"}),
        (A.followedBy(B.next("c").where(taking("c")).optional()), {"a", "b"}),
        (A.followedBy(B.next("c").where(taking("c"))).optional(), {"a"}),
        (A.next(B.next("c").where(taking("c"))).oneOrMore(), set("abc")),
        (A.where(lambda event: True).next("b").where(taking("b")), None),
        (A.next("b").where("price > sum(a.price)"), None),
    ],
)
def test_stages_that_every_match_has(pattern: Pattern, expected: set[str] | None) -> None:
    """Whatever is optional, or is about an absent event, is none; functions must be called."""
    assert needs_of(pattern) == expected


def test_keys_are_passed_over() -> None:
    """Of three keys one has both stages; the last one may have the second in the next chunk."""
    nfa = NFACompiler.compile(A.followedBy("b").where(taking("b")), False)
    by_name = {str(atom.condition).split("'")[1]: atom.bit for atom in spark_atoms(nfa)}
    bits = np.array([by_name.get(name, 0) for name in "aaxabbax"])
    events = Events(np.arange(8), None, 0, bits)
    firsts = np.array([0, 3, 5, 6])
    rules, known = CepOperator(nfa), known_bits(nfa.atoms)
    all_ = Stretches.split(events, firsts, rules, lambda number: None)
    few = Stretches.split(events, firsts, rules, lambda number: None, KeyNeeds.of(nfa, known))

    assert all_.needed.tolist() == [True, True, False, True]
    assert few.needed.tolist() == [False, True, False, True]


def answered(given_: Iterator[pa.RecordBatch], pattern: Pattern) -> Iterator[pa.RecordBatch]:
    """Add the answers to the conditions ``name IN (...)``."""
    atoms = spark_atoms(NFACompiler.compile(pattern, False))
    names = {atom.bit: set(str(atom.condition).split("'")[1::2]) for atom in atoms}
    for batch in given_:
        bits = [
            sum(bit for bit, own in names.items() if name in own)
            for name in batch.column("name").to_pylist()
        ]
        yield batch.append_column(BITS, pa.array(bits, pa.int64()))


def of_names(names: frozenset[str]) -> str:
    """Return a condition in SQL."""
    listed = ", ".join(f"'{name}'" for name in sorted(names))
    return f"name IN ({listed})"


keyed_events = st.lists(timed_events(), min_size=1, max_size=6)
budgets = st.sampled_from([1, 100, 300, BUDGET_BYTES])


@pytest.mark.usefixtures("each_path")
@given(patterns(), keyed_events, st.integers(1, 5), budgets, st.randoms())
def test_matches_are_those_of_the_operator(
    spec: PatternSpec,
    keys: list[list[tuple[Event, int]]],
    size: int,
    sort_bytes: int,
    random: Random,
) -> None:
    """Whatever the pattern, however events come and chunks cut keys."""
    pattern = spec.build(of_names)
    assume(needs_of(pattern))
    rows = [
        (key, ts, event.name, event.number, event.price)
        for key, timed in enumerate(keys)
        for event, ts in timed
    ]
    recording = Recording()
    recording.wants_timeouts = False
    where = attrs.evolve(layout(), bit_columns=(BITS,))
    task = BatchTask(pattern, where, None, recording, sort_bytes=sort_bytes)
    arrival = random.sample(range(len(rows)), len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyflinkcep.matching.sorting._BLOCKS", 2)  # few events a chunk
        list(task.run(answered(batches(rows, size, arrival), pattern)))
    expected: list[Any] = []
    for key, timed in enumerate(keys):  # as in batch, one key after another
        harness = OperatorTestHarness(spec.build(), False)
        for event, ts in timed:
            harness.processElement(event, ts, key)
        harness.close()
        for _, ts, match in harness.matches:
            taken = {stage: [event.number for event in own] for stage, own in match.items()}
            expected.append((key, ts, taken))

    assert recording.matches == expected
