# SPDX-License-Identifier: Apache-2.0
"""Count the matches of SEQ queries in the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import attrs
import numpy as np

from pyflinkcep.errors import OutOfMemoryError
from pyflinkcep.eventlists.columns import column_of
from pyflinkcep.expressions.program import Code, Type
from pyflinkcep.kernel.bridge import compiled_module, instruction, slot_spec
from pyflinkcep.nfa.liveness import Liveness
from pyflinkcep.nfa.sase_compiler import Asked, SaseAutomaton
from pyflinkcep.sase.model import Strategy
from pyflinkcep.sase.table import Coded, EventTable

__all__ = ["KernelCounter"]

_STRATEGIES = (
    Strategy.STRICT_CONTIGUITY,
    Strategy.PARTITION_CONTIGUITY,
    Strategy.SKIP_TILL_NEXT_MATCH,
    Strategy.SKIP_TILL_ANY_MATCH,
)
"""In the order of ``counter.h``."""

_NO_WINDOW = -1
_MOST_BITS = 62


@attrs.frozen(eq=False)
class KernelCounter:
    """
    A SEQ query on a table of events, ready to count.

    Attributes
    ----------
    times, codes : array
        The events' times, and their types as numbers into `masks`.
    starts : array or None
        Which events may begin a match; None for all.
    masks : tuple of array
        By type a bit for each component that may begin with it, that may take it, and for each
        negated one.
    """

    times: Any
    codes: Any
    starts: Any
    masks: tuple[Any, Any, Any]
    _counter: Any

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> KernelCounter | None:
        """Return the counter of a query; None if the plain path must do."""
        module = compiled_module()
        negatives = automaton.negatives
        if module is None or max(automaton.size, len(negatives)) > _MOST_BITS:
            return None
        if any(part.asked.joint is not None for part in negatives):
            return None
        with _naming_memory_errors():
            counter = module.Counter(
                tuple(_components(automaton)),
                tuple((part.gap, _code(part.asked.codes[0])) for part in negatives),
                _codes(automaton.partition),
                tuple(_slots(automaton)),
                _NO_WINDOW if automaton.query.window is None else automaton.query.window,
            )
            counter.set_events(len(table.times), tuple(_fields(automaton, table)))
        numbers = {type_: number for number, type_ in enumerate(_types(automaton))}
        starts = None if table.starts is None else np.array(table.starts, np.uint8)
        times = np.ascontiguousarray(table.times, np.int64)
        return cls(times, _numbered(table.types, numbers), starts, _masks(automaton), counter)

    def count(self, positions: Sequence[int]) -> int:
        """Return the number of matches in a partition, given by the positions of its events."""
        with _naming_memory_errors():
            number: int = self._counter.count(*self._stream(positions), False)
        return number

    def counts(self, positions: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the position of each event that completes matches, and how many end there."""
        with _naming_memory_errors():
            places, counts = self._counter.count(*self._stream(positions), True)
        for place, number in zip(np.frombuffer(places, np.int64).tolist(), counts, strict=True):
            yield positions[place], number

    def _stream(self, positions: Sequence[int]) -> tuple[Any, ...]:
        if isinstance(positions, range) and positions == range(len(self.times)):
            return self.times, None, self.codes, self.starts, *self.masks
        own = np.asarray(positions, np.int64)
        starts = None if self.starts is None else self.starts[own]
        return self.times[own], own, self.codes[own], starts, *self.masks


@contextmanager
def _naming_memory_errors() -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError("out of memory while matches are counted") from error


# --- the automaton


def _components(automaton: SaseAutomaton) -> Iterator[tuple[Any, ...]]:
    live = Liveness.of(automaton).slots
    for number in range(automaton.size):
        edges = (automaton.begin, automaton.take)
        asked = [code for edge in edges for code in _codes(edge[number])]
        yield (
            automaton.loops[number],
            _STRATEGIES.index(automaton.strategies[number]),
            live[4 * number : 4 * number + 4],
            (*asked, _codes(automaton.leave[number])[1]),
        )


def _codes(asked: Asked) -> tuple[Any, Any]:
    alone, joint = asked.codes
    return _code(alone), _code(joint)


def _code(code: Code) -> tuple[Any, ...]:
    return tuple(instruction(op, operand) for op, operand in code)


def _slots(automaton: SaseAutomaton) -> Iterator[tuple[Any, ...]]:
    stages = {part.variable: number for number, part in enumerate(automaton.query.positive)}
    return (slot_spec(slot, stages) for slot in automaton.values.slots)


# --- the events


def _fields(automaton: SaseAutomaton, table: EventTable) -> Iterator[tuple[Any, Any, bool]]:
    for name in automaton.fields:
        kind, values = table.kinds[name], table.columns[name]
        if kind.type == Type.TEXT:
            yield list(values), None, False
            continue
        column = column_of(values, kind)
        valid = None if column.nulls is False else ~np.asarray(column.nulls, bool)
        yield np.ascontiguousarray(column.data), valid, kind.type == Type.FLOAT


def _types(automaton: SaseAutomaton) -> list[str]:
    """Return the types that the query names, each once."""
    return list(dict.fromkeys([*automaton.types, *(part.type for part in automaton.negatives)]))


def _numbered(types: Sequence[Any], numbers: dict[str, int]) -> Any:
    """Return the events' types as numbers; -1 for what the query does not name."""
    if isinstance(types, Coded):
        own = np.array([numbers.get(name, -1) for name in types.names], np.int32)
        return own[np.asarray(types.codes)]
    return np.fromiter(map(numbers.get, types, repeat(-1)), np.int32, len(types))


def _masks(automaton: SaseAutomaton) -> tuple[Any, Any, Any]:
    begins, takes, absents = [], [], []
    for type_ in _types(automaton):
        own = [n for n, component in enumerate(automaton.types) if component == type_]
        begins.append(sum(1 << n for n in own))
        takes.append(sum(1 << n for n in own if automaton.loops[n]))
        negated = (n for n, part in enumerate(automaton.negatives) if part.type == type_)
        absents.append(sum(1 << n for n in negated))
    return np.array(begins, np.int64), np.array(takes, np.int64), np.array(absents, np.int64)
