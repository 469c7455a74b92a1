# SPDX-License-Identifier: Apache-2.0
"""SEQ queries and their events, in the kernel's form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.columns import column_of
from pyflinkcep.engines.sequences.compiler import Absent, EdgeConditions, SaseAutomaton
from pyflinkcep.engines.sequences.equalities import equality_of
from pyflinkcep.engines.sequences.liveness import Liveness
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.program import Code, Type
from pyflinkcep.kernel.programs import instruction, slot_spec
from pyflinkcep.sase.model import Strategy

__all__ = ["SequenceEvents", "Stream", "is_native", "query_spec"]

Stream = tuple[Any, Any, Any, Any, Any, Any, Any]
"""Times, handles, codes and starts of a partition's events, and the three masks."""

_STRATEGIES = (
    Strategy.STRICT_CONTIGUITY,
    Strategy.PARTITION_CONTIGUITY,
    Strategy.SKIP_TILL_NEXT_MATCH,
    Strategy.SKIP_TILL_ANY_MATCH,
)
"""In the order of ``automaton.h``."""

_NO_WINDOW = -1
_MOST_BITS = 62


def is_native(automaton: SaseAutomaton) -> bool:
    """Whether the kernel runs a query: negated sequences only between components, few of both."""
    between = range(1, automaton.size)
    events = sum(len(part.events) for part in automaton.negatives)
    return max(automaton.size, events) <= _MOST_BITS and not any(
        part.is_sequence and part.gap not in between for part in automaton.negatives
    )


def query_spec(automaton: SaseAutomaton) -> tuple[Any, ...]:
    """Return a query as the arguments of the kernel's ``automaton_read``."""
    return (
        tuple(_components(automaton)),
        tuple(_negatives(automaton)),
        _codes(automaton.partition),
        tuple(_slots(automaton)),
        _NO_WINDOW if automaton.query.window is None else automaton.query.window,
    )


@attrs.frozen(eq=False)
class SequenceEvents:
    """
    A table of events for a query.

    Attributes
    ----------
    times, codes : array
        The events' times, and their types as indexes into `masks`.
    starts : array or None
        Which events may begin a match; None for all.
    masks : tuple of array
        By type, a bit for each component that may begin with it, for each that may take it, and for
        each event of negated ones.
    fields : tuple
        The columns that conditions read.
    """

    times: Any
    codes: Any
    starts: Any
    masks: tuple[Any, Any, Any]
    fields: tuple[tuple[Any, Any, bool], ...]

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> SequenceEvents:
        """
        Return a table's events.

        Raises
        ------
        OverflowError
            If a number has more than 64 bits.
        """
        numbers = {type_: number for number, type_ in enumerate(_types(automaton))}
        starts = None if table.starts is None else np.array(table.starts, np.uint8)
        times = np.ascontiguousarray(table.times, np.int64)
        codes = _numbered(table.types, numbers)
        return cls(times, codes, starts, _masks(automaton), tuple(_fields(automaton, table)))

    def __len__(self) -> int:
        return len(self.times)

    def stream(self, positions: Sequence[int]) -> Stream:
        """Return a partition, given by the positions of its events, for ``automaton_open``."""
        if isinstance(positions, range) and positions == range(len(self.times)):
            return self.times, None, self.codes, self.starts, *self.masks
        own = _as_array(positions)
        starts = None if self.starts is None else self.starts[own]
        return self.times[own], own, self.codes[own], starts, *self.masks

    def streams(self, partitions: Iterable[Sequence[int]], ends: Any) -> tuple[Any, ...]:
        """
        Return concatenated partitions, in the form that the kernel opens.

        Parameters
        ----------
        partitions : iterable of sequence of int
            The positions of each partition's events.
        ends : array of uint8 or None
            Which events of the table may end a match; None for all.

        Returns
        -------
        tuple
            Where each begins and the last one ends; `ends` for these events; and :meth:`stream`.
        """
        own = list(partitions)
        bounds = np.cumsum([0, *map(len, own)], dtype=np.int64)
        positions = own[0] if len(own) == 1 else _joined(own)
        may_end = None if ends is None else ends[_as_array(positions)]
        return bounds, may_end, *self.stream(positions)


def _as_array(positions: Sequence[int]) -> Any:
    """Return positions as an array."""
    if isinstance(positions, range):
        return np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
    return np.asarray(positions, np.int64)


def _joined(parts: Sequence[Sequence[int]]) -> Any:
    """Return concatenated positions, as an array."""
    return np.concatenate([_as_array(own) for own in parts]) if parts else np.empty(0, np.int64)


# --- the query


def _components(automaton: SaseAutomaton) -> Iterator[tuple[Any, ...]]:
    live = Liveness.of(automaton).slots
    for number in range(automaton.size):
        edges = (automaton.begin, automaton.take)
        conditions = [code for edge in edges for code in _codes(edge[number])]
        yield (
            automaton.loops[number],
            _STRATEGIES.index(automaton.strategies[number]),
            live[4 * number : 4 * number + 4],
            (*conditions, _codes(automaton.leave[number])[1]),
            *(_equality(edge[number]) for edge in edges),
        )


def _equality(conditions: EdgeConditions) -> tuple[int, int]:
    found = equality_of(conditions.codes[1])
    return (-1, -1) if found is None else (found.field, found.slot)


def _codes(conditions: EdgeConditions) -> tuple[Any, Any]:
    alone, joint = conditions.codes
    return _code(alone), _code(joint)


def _code(code: Code) -> tuple[Any, ...]:
    return tuple(instruction(op, operand) for op, operand in code)


def _negatives(automaton: SaseAutomaton) -> Iterator[tuple[Any, ...]]:
    stages = _stages(automaton)
    for part, components in zip(automaton.negatives, automaton.query.negations, strict=True):
        events = zip(part.events, components, strict=True)
        yield (
            part.gap,
            part.needs,
            tuple(
                (stages[own.variable] if event.update else -1, *_codes(event.conditions))
                for event, own in events
            ),
        )


def _stages(automaton: SaseAutomaton) -> dict[str, int]:
    """Return the number of each component, those that take events first."""
    query = automaton.query
    absent = (part.variable for parts in query.negations for part in parts)
    return {name: number for number, name in enumerate((*query.variables, *absent))}


def _slots(automaton: SaseAutomaton) -> Iterator[tuple[Any, ...]]:
    stages = _stages(automaton)
    return (slot_spec(slot, stages) for slot in automaton.expressions.slots)


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


def _absent(automaton: SaseAutomaton) -> Iterator[Absent]:
    """Yield the events of negated components."""
    return (event for part in automaton.negatives for event in part.events)


def _types(automaton: SaseAutomaton) -> list[str]:
    """Return the types that the query names, each once."""
    return list(dict.fromkeys([*automaton.types, *(event.type for event in _absent(automaton))]))


def _numbered(types: Sequence[Any], numbers: dict[str, int]) -> Any:
    """Return the events' types as codes; -1 for types that the query does not name."""
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
        negated = (n for n, event in enumerate(_absent(automaton)) if event.type == type_)
        absents.append(sum(1 << n for n in negated))
    return np.array(begins, np.int64), np.array(takes, np.int64), np.array(absents, np.int64)
