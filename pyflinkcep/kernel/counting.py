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
from pyflinkcep.expressions.program import Code, Function, Op, Slot, Type
from pyflinkcep.kernel.bridge import compiled_module, instruction, slot_spec
from pyflinkcep.nfa.liveness import Liveness
from pyflinkcep.nfa.sase_compiler import Asked, SaseAutomaton
from pyflinkcep.sase.model import Strategy
from pyflinkcep.sase.table import Coded, EventTable

__all__ = ["KernelCounter", "Rise", "rise_of"]

_STRATEGIES = (
    Strategy.STRICT_CONTIGUITY,
    Strategy.PARTITION_CONTIGUITY,
    Strategy.SKIP_TILL_NEXT_MATCH,
    Strategy.SKIP_TILL_ANY_MATCH,
)
"""In the order of ``counter.h``."""

_OPPOSITE = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}

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
    def of(
        cls, automaton: SaseAutomaton, table: EventTable, rises: bool = True
    ) -> KernelCounter | None:
        """
        Return the counter of a query; None if the plain path must do.

        Parameters
        ----------
        automaton : SaseAutomaton
            The query.
        table : EventTable
            The events.
        rises : bool
            Whether runs of a rising loop are counted by its order; :meth:`sums` cannot do that.
        """
        module = compiled_module()
        negatives = automaton.negatives
        if module is None or max(automaton.size, len(negatives)) > _MOST_BITS:
            return None
        if any(part.asked.joint is not None for part in negatives):
            return None
        try:
            with _naming_memory_errors():
                counter = _made(module, automaton, table, rises)
        except OverflowError:  # a number of more than 64 bits
            return None
        numbers = {type_: number for number, type_ in enumerate(_types(automaton))}
        starts = None if table.starts is None else np.array(table.starts, np.uint8)
        times = np.ascontiguousarray(table.times, np.int64)
        return cls(times, _numbered(table.types, numbers), starts, _masks(automaton), counter)

    def count(self, positions: Sequence[int]) -> int:
        """Return the number of matches in a partition, given by the positions of its events."""
        with _naming_memory_errors():
            number: int = self._counter.count(*self._stream(positions), None, False, -1)
        return number

    def counts(self, positions: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the position of each event that completes matches, and how many end there."""
        with _naming_memory_errors():
            places, counts, _ = self._counter.count(*self._stream(positions), None, True, -1)
        for place, number in zip(np.frombuffer(places, np.int64).tolist(), counts, strict=True):
            yield positions[place], number

    def sums(
        self, positions: Sequence[int], component: int, weights: Any
    ) -> Iterator[tuple[int, int, int]]:
        """
        Yield for each event that completes matches its position, how many, and what they weigh.

        Parameters
        ----------
        positions : sequence of int
            The positions of the partition's events.
        component : int
            The component whose events are weighed.
        weights : array of uint64, below 2**63
            What each event of the table weighs.
        """
        with _naming_memory_errors():
            found = self._counter.count(*self._stream(positions), weights, True, component)
        places = np.frombuffer(found[0], np.int64).tolist()
        for place, number, weight in zip(places, *found[1:], strict=True):
            yield positions[place], number, weight

    def _stream(self, positions: Sequence[int]) -> tuple[Any, ...]:
        if isinstance(positions, range) and positions == range(len(self.times)):
            return self.times, None, self.codes, self.starts, *self.masks
        own = np.asarray(positions, np.int64)
        starts = None if self.starts is None else self.starts[own]
        return self.times[own], own, self.codes[own], starts, *self.masks


def _made(module: Any, automaton: SaseAutomaton, table: EventTable, rises: bool) -> Any:
    negatives = automaton.negatives
    counter = module.Counter(
        tuple(_components(automaton)),
        tuple((part.gap, _code(part.asked.codes[0])) for part in negatives),
        _codes(automaton.partition),
        tuple(_slots(automaton)),
        _NO_WINDOW if automaton.query.window is None else automaton.query.window,
    )
    counter.set_events(len(table.times), tuple(_fields(automaton, table)))
    for component in range(automaton.size if rises else 0):
        rise = rise_of(automaton, component)
        if rise is not None:
            counter.set_rising(component, rise.or_equal, _ranks(automaton, table, rise))
    return counter


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
    return (slot_spec(slot, stages) for slot in automaton.expressions.slots)


@attrs.frozen
class Rise:
    """
    What each further event of a loop must be more than the one before.

    Attributes
    ----------
    field : int
        The field that is compared.
    falls : bool
        Whether it must be less instead.
    or_equal : bool
        Whether it may be equal.
    """

    field: int
    falls: bool
    or_equal: bool


def rise_of(automaton: SaseAutomaton, component: int) -> Rise | None:
    """Return what a loop rises by if nothing else tells its runs apart, else None."""
    last = automaton.size - 1
    around = automaton.strategies[component : component + 2]
    if any(strategy is not Strategy.SKIP_TILL_ANY_MATCH for strategy in around):
        return None
    if automaton.leave[component].joint is not None:
        return None
    if any(part.gap == component + 1 <= last for part in automaton.negatives):
        return None
    rise = _inequality(automaton.take[component].codes[1])
    if rise is None:
        return None
    slot, found = rise
    own = automaton.expressions.slots[slot]
    names = [part.variable for part in automaton.query.positive]
    if own != Slot(Function.LAST, names[component], found.field, own.type):
        return None
    later = [asked for edge in _edges(automaton) for asked in edge[component + 1 :]]
    read = frozenset().union(*(asked.reads for asked in later), automaton.partition.reads)
    taken = {n for n in read if automaton.expressions.slots[n].stage in names[: component + 1]}
    return None if taken else found


def _edges(automaton: SaseAutomaton) -> tuple[Sequence[Asked], ...]:
    return automaton.begin, automaton.take, automaton.leave


def _inequality(code: Code) -> tuple[int, Rise] | None:
    """Return the slot and what a program asks if it compares that to a field."""
    if len(code) != 3 or code[2][0] not in _OPPOSITE:
        return None
    (first, a), (second, b), (op, _) = code
    if (first, second) == (Op.SLOT, Op.FIELD):
        a, b, op = b, a, _OPPOSITE[op]
    elif (first, second) != (Op.FIELD, Op.SLOT):
        return None
    assert isinstance(a, int)
    assert isinstance(b, int)
    return b, Rise(a, op in (Op.LT, Op.LE), op in (Op.LE, Op.GE))


# --- the events


def _ranks(automaton: SaseAutomaton, table: EventTable, rise: Rise) -> Any:
    """Return the events' places in the order of a field; negative where it is NULL."""
    name = automaton.fields[rise.field]
    kind, values = table.kinds[name], table.columns[name]
    if kind.type == Type.TEXT:
        order = {text: n for n, text in enumerate(sorted({v for v in values if v is not None}))}
        ranks = np.array([order.get(value, -1) for value in values], np.int32)
        nulls: Any = ranks < 0
    else:
        column = column_of(values, kind)
        ranks = np.unique(column.data, return_inverse=True)[1].astype(np.int32)
        nulls = np.broadcast_to(column.nulls, len(ranks))
    if rise.falls:
        ranks = ranks.max(initial=0) - ranks
    return np.where(nulls, np.int32(-1), ranks).astype(np.int32)


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
