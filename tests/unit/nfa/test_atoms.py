# SPDX-License-Identifier: Apache-2.0
"""Which conditions have bits, and which are answered otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from pyflinkcep import Pattern
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.local_match import local_match_values
from pyflinkcep.nfa import Expressions, NFACompiler
from pyflinkcep.nfa.atoms import known_bits
from pyflinkcep.operator import CepOperator
from pyflinkcep.spark.matching.results import Results
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


def test_sql_beyond_one_number_of_bits_is_read_from_fields() -> None:
    """The first 62 answers come as bits, the others as fields of the event, to the same effect."""
    nfa = NFACompiler.compile(chain(lambda number: f"n = {number}"))
    answered = [atom for atom in nfa.atoms if atom.bit]
    others: Any = [(atom.stage, atom.condition) for atom in nfa.atoms if not atom.bit]
    events = [{"n": number} for number in [0, *range(STAGES), 5]]
    values, fields = local_match_values(others, events)
    read = Expressions(generated(values), lambda handle: fields(events[handle]))
    rules = CepOperator(nfa, expressions=read)
    results, state = Results(nfa.stages, False), rules.new_key()
    texts = {atom.condition.text: atom.bit for atom in answered}  # type: ignore[attr-defined]
    bits = [texts.get(f"n = {event['n']}", 0) for event in events]
    known = known_bits(nfa.atoms)

    handles = list(range(len(events)))
    rules.process_events(None, state, handles, handles, results, known, bits)
    rules.advance_time(None, state, MAX_WATERMARK, results)

    assert (len(answered), known, len(others)) == (62, (1 << 62) - 1, STAGES - 62)
    ((_, _, match),) = results.take().results()
    taken = [events[handle]["n"] for handles in match.values() for handle in handles]
    assert taken == list(range(STAGES))


@pytest.mark.parametrize("place", [0, STAGES - 1])
def test_no_place_changes_how_a_condition_is_called(place: int) -> None:
    """Messages and explain() have the text as it was written."""
    nfa = NFACompiler.compile(chain(lambda number: f"n = {number}"))
    found = {repr(atom.condition) for atom in nfa.atoms}

    assert f"n = {place}" in found
