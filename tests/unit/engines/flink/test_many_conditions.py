# SPDX-License-Identifier: Apache-2.0
"""Any number of conditions, whose answers take several words of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator
from tests.kernel_harness import MANY, KernelRun, needs_kernel
from tests.unit.engines.flink.test_same_as_plain import Collect

pytestmark = needs_kernel

STAGES = 200


def chain(condition: Any) -> NFA:
    """Compile stages of which each takes one event, by a condition of its own."""
    pattern: Any = Pattern.begin("s0").where(condition(0))
    for number in range(1, STAGES):
        pattern = pattern.followedBy(f"s{number}").where(condition(number))
    return NFACompiler.compile(pattern)


def test_functions() -> None:
    """Conditions in Python beyond the first word are asked once an event, and remembered."""
    nfa = chain(lambda number: lambda event: event == number)
    run, output = KernelRun(nfa), Collect()
    events = [number for number in range(STAGES) for _ in range(2)]
    rules = CepOperator(nfa)
    rules.process_events(None, rules.new_key(), range(len(events)), events, output)

    run.process(run.kernel.new_key(), range(len(events)), events)

    assert run.results() == output.found != []


@pytest.mark.parametrize("words", [1, 2, 4])
def test_answers_that_come_with_the_events(words: int) -> None:
    """A row of bits for each event brings answers; words that are missing hold nothing."""
    nfa = chain(lambda number: lambda event: event == number)
    by_stage = {atom.stage: atom.bit for atom in nfa.atoms}
    bits = [by_stage[f"s{number}"] for number in range(STAGES)]
    known = sum(bits)
    kernel = make_kernel(nfa, known)
    assert kernel is not None
    kernel.set_events(lambda handle: handle, 0, 0, ())
    rows = [[bit >> (63 * word) & ((1 << 63) - 1) for word in range(words)] for bit in bits]
    answers = np.asarray(rows, np.int64)
    times, bounds = np.arange(STAGES), np.asarray([0, STAGES])

    kernel.run(None, times, None, 0, answers, bounds, np.asarray([True]), 0, 0, MANY)

    ends = np.frombuffer(kernel.take_found()[2], np.int64)
    assert ends.tolist() == ([STAGES] if words == 4 else [])


def test_too_many_words_are_refused() -> None:
    """Bits that no condition has do not fit."""
    kernel = make_kernel(NFACompiler.compile(Pattern.begin("a").where("n = 1")), 1)
    assert kernel is not None
    with pytest.raises(ValueError, match="differ in length"):
        kernel.run(
            None, np.arange(2), None, 0, np.zeros((2, 2), np.int64), np.asarray([0, 2]),
            np.asarray([True]), 0, 0, MANY,
        )  # fmt: skip
