# SPDX-License-Identifier: Apache-2.0
"""Damaged state is refused, or is the state of another key: by kernel and plain path alike."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import CepOperator, KeyState
from pyflinkcep.engines.flink.stored_state import StateReader, StateWriter
from pyflinkcep.errors import CepError, StateFormatError
from pyflinkcep.functions import RuntimeContext
from tests.kernel_harness import KernelRun, needs_kernel
from tests.shorthand import parse
from tests.unit.engines.flink.test_same_as_plain import Collect

pytestmark = needs_kernel

EXAMPLES = int(os.environ.get("DAMAGED_STATES", "1000"))
_EDGES = [0, 1, -1, -2, -3, 2, 1 << 31, 1 << 62, (1 << 62) - 1, (1 << 63) - 1, -(1 << 63)]
_PATTERNS = [
    "a -> b+ -> c",
    "a ->> b+:any ->> c within[20]",
    "a+ -> b? -> c within[6]",
    "(a -> b)+ -> c gap[4]",
    "a{2,4}:any >> b{2} ->> c",
]


class Damage:
    """Random states of a pattern, damaged at random."""

    def __init__(self, text: str, seed: int) -> None:
        self.nfa = NFACompiler.compile(parse(text), True)
        self.nfa.open(RuntimeContext())
        self.random = random.Random(f"{text} {seed}")
        self.rules = CepOperator(self.nfa)
        self.run = KernelRun(self.nfa)
        self.states = [self._state(size) for size in (0, 1, 3, 5, 8)]

    def _state(self, size: int) -> tuple[list[int], list[Any]]:
        state, output = self.rules.new_key(), Collect()
        events = [f"{self.random.choice('aabbbcx')}{i}" for i in range(size)]
        self.rules.process_events(None, state, range(size), events, output)
        writer = StateWriter(self.nfa)
        writer.write(state)
        return [int(number) for number in writer.numbers], writer.events

    def damaged(self) -> tuple[list[int], list[Any]]:
        """Return the numbers of a state with some changed or cut off, and its events."""
        chosen = self.random.choice(self.states)
        numbers = list(chosen[0])
        for _ in range(self.random.choice([1, 1, 1, 2, 5])):
            at, kind = self.random.randrange(len(numbers)), self.random.randrange(6)
            if kind == 0:
                numbers[at] = self.random.choice(_EDGES)
            elif kind == 1:
                numbers[at] ^= 1 << self.random.randrange(63)
            elif kind == 2:
                numbers[at] += self.random.choice([-2, -1, 1, 2])
            elif kind == 3:
                numbers[at] = self.random.choice(numbers)
            elif kind == 4 and self.random.random() < 0.3:
                numbers = numbers[:at] or [0]
            elif kind == 5 and self.random.random() < 0.3:
                numbers.insert(at, self.random.choice(numbers))
        return [max(-(1 << 63), min(number, (1 << 63) - 1)) for number in numbers], chosen[1]

    def plain(self, numbers: list[int], events: list[Any]) -> KeyState | None:
        """Return the state as the plain path reads it, None if it refuses."""
        tables = list(self.nfa.tables)
        try:
            reader = StateReader(self.nfa, numbers, events, tables, self.nfa.stages)
            state = reader.read()
            reader.end()
        except StateFormatError:
            return None
        return state

    def kernel(self, numbers: list[int], events: list[Any]) -> Any:
        """Return the key as the kernel reads it, None if it refuses."""
        self.run.events[:] = events
        try:
            return self.run.kernel.read(np.asarray(numbers, np.int64), 0, len(events))
        except StateFormatError:
            return None

    def go_on_plain(self, state: KeyState) -> Any:
        """Return the results of more events, and the state then; or the error's text."""
        output = Collect()
        try:
            self.rules.process_events(None, state, [9, 10, 11], ["b91", "a92", "c93"], output)
            self.rules.advance_time(None, state, 40, output)
        except CepError as error:
            return str(error)
        writer = StateWriter(self.nfa)
        writer.write(state)
        found = _in_any_order(output.found)
        return found, [int(number) for number in writer.numbers], writer.events

    def go_on_kernel(self, key: Any) -> Any:
        """Do the same with the kernel."""
        try:
            self.run.process(key, [9, 10, 11], ["b91", "a92", "c93"])
            self.run.kernel.advance(key, 40)
        except CepError as error:
            self.run.kernel.take_found()  # before handles mean other events
            return str(error)
        return _in_any_order(self.run.results()), *self.run.written(key)


def _in_any_order(found: list[Any]) -> list[Any]:
    """Return results sorted: those of one event go by their starts, and damage may give another."""
    return sorted(found, key=repr)


@pytest.mark.parametrize("text", _PATTERNS)
def test_random_damage(text: str) -> None:
    """Both paths refuse the same numbers, and go on alike with the others."""
    damage, refused, each = Damage(text, EXAMPLES), 0, EXAMPLES // len(_PATTERNS)

    for _ in range(each):
        numbers, events = damage.damaged()
        state, key = damage.plain(numbers, events), damage.kernel(numbers, events)
        assert (state is None) == (key is None), numbers
        if state is None:
            refused += 1
        else:
            assert damage.go_on_kernel(key) == damage.go_on_plain(state), numbers

    assert each // 4 < refused < each


@pytest.mark.parametrize("text", _PATTERNS)
def test_state_as_it_was_written(text: str) -> None:
    """Without damage both read all states."""
    damage = Damage(text, 0)
    for numbers, events in damage.states:
        state, key = damage.plain(numbers, events), damage.kernel(numbers, events)
        assert state is not None
        assert damage.go_on_kernel(key) == damage.go_on_plain(state)
