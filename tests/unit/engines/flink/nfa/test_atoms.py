# SPDX-License-Identifier: Apache-2.0
"""Which conditions have bits, and which are answered otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.matching.results import Results
from pyflinkcep.time import MAX_WATERMARK

STAGES = 200


def chain(condition: Any) -> Pattern:
    """Return a pattern of stages that follow each other, each with a condition of its own."""
    pattern: Any = Pattern.begin("s0").where(condition(0))
    for number in range(1, STAGES):
        pattern = pattern.next(f"s{number}").where(condition(number))
    result: Pattern = pattern
    return result


def test_conditions_in_python_have_any_number_of_bits() -> None:
    """Python's integers have no bound; what an event fulfils is remembered for all of them."""
    nfa = NFACompiler.compile(chain(lambda number: lambda event: event == number))

    assert [atom.bit for atom in nfa.atoms] == [1 << place for place in range(STAGES)]
    assert known_bits(nfa.atoms) == 0


def test_sql_has_any_number_of_bits() -> None:
    """So have the answers that come with the events."""
    nfa = NFACompiler.compile(chain(lambda number: f"n = {number}"))
    by_text = {atom.condition.text: atom.bit for atom in nfa.atoms}  # type: ignore[attr-defined]
    rules = CepOperator(nfa)
    results, state = Results(nfa.stages, False), rules.new_key()
    numbers = [0, *range(STAGES), 5]
    bits = [by_text[f"n = {number}"] for number in numbers]
    known = known_bits(nfa.atoms)

    handles = list(range(len(numbers)))
    rules.process_events(None, state, handles, handles, results, known, bits)
    rules.advance_time(None, state, MAX_WATERMARK, results)

    assert known == (1 << STAGES) - 1
    ((_, _, match),) = results.take().results()
    assert [numbers[h] for taken in match.values() for h in taken] == list(range(STAGES))


@pytest.mark.parametrize("place", [0, STAGES - 1])
def test_no_place_changes_how_a_condition_is_called(place: int) -> None:
    """Messages and explain() have the text as it was written."""
    nfa = NFACompiler.compile(chain(lambda number: f"n = {number}"))
    found = {repr(atom.condition) for atom in nfa.atoms}

    assert f"n = {place}" in found
