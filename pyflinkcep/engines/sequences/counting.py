# SPDX-License-Identifier: Apache-2.0
"""Counts the matches of SEQ queries in the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.payloads import NO_WEIGHTS, Weighing
from pyflinkcep.engines.lists.columns import column_of
from pyflinkcep.engines.sequences.bridge import SequenceEvents, is_native, query_spec
from pyflinkcep.engines.sequences.compiler import EdgeConditions, SaseAutomaton
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.program import Code, Function, Op, Slot, Type
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.kernel.module import CompiledModule, compiled_module
from pyflinkcep.sase.model import Strategy

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = ["KernelCounter", "PartitionCounts", "Rise", "rise_of"]

_OPPOSITE = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}

_COUNTING = "matches are counted"


@attrs.frozen(eq=False)
class KernelCounter:
    """
    A SEQ query on a table of events, ready to count.

    Attributes
    ----------
    events : SequenceEvents
        The events.
    """

    events: SequenceEvents
    _counter: _kernel.Counter

    @classmethod
    def of(
        cls, automaton: SaseAutomaton, table: EventTable, rises: bool = True
    ) -> KernelCounter | None:
        """
        Return the counter of a query; None if only the plain path can run it.

        Parameters
        ----------
        automaton : SaseAutomaton
            The query.
        table : EventTable
            The events.
        rises : bool
            Whether runs of a rising loop are counted by its order, which excludes weights.
        """
        module = compiled_module()
        if module is None or not _can_count(automaton):
            return None
        try:
            with naming_memory_errors(_COUNTING):
                events = SequenceEvents.of(automaton, table)
                counter = _made(module, automaton, events, table if rises else None)
        except OverflowError:  # a number of more than 64 bits
            return None
        return cls(events, counter)

    def count(self, positions: Sequence[int]) -> int:
        """Return the number of matches in a partition, given by the positions of its events."""
        with naming_memory_errors(_COUNTING):
            number: int = self._counter.count(*self.events.stream(positions), False, *NO_WEIGHTS)
        return number

    def over(self, positions: Sequence[int]) -> PartitionCounts:
        """Return the counter of a partition's matches by event."""
        return PartitionCounts(self, positions)

    def by_event(self, positions: Sequence[int], weighing: Weighing = NO_WEIGHTS) -> Any:
        """Return which events complete matches, how many, and their weights."""
        with naming_memory_errors(_COUNTING):
            found = self._counter.count(*self.events.stream(positions), True, *weighing)
        places, *numbers = found
        return np.frombuffer(places, np.int64).tolist(), *numbers


@attrs.frozen(eq=False)
class PartitionCounts:
    """
    The matches of a partition, counted and weighed.

    Attributes
    ----------
    counter : KernelCounter
        The query.
    positions : sequence of int
        The positions of the partition's events.
    """

    counter: KernelCounter
    positions: Sequence[int]

    def counts(self) -> Iterator[tuple[int, int]]:
        """Yield the position of each event that completes matches, and their number."""
        places, counts, _ = self.counter.by_event(self.positions)
        for place, count in zip(places, counts, strict=True):
            yield self.positions[place], count

    def sums(self, component: int, weights: Any) -> Iterator[tuple[int, int, int]]:
        """
        Yield the position of each event that completes matches, their number and weight.

        Parameters
        ----------
        component : int
            The component whose events are weighed.
        weights : array of uint64, below 2**63
            The weight of each event of the table.
        """
        return self._weighed((weights, component, False))

    def greatest(self, component: int, ranks: Any) -> Iterator[tuple[int, int, int]]:
        """Yield the same with the greatest rank of the component's events."""
        return self._weighed((ranks, component, True))

    def _weighed(self, weighing: Weighing) -> Iterator[tuple[int, int, int]]:
        found = zip(*self.counter.by_event(self.positions, weighing), strict=True)
        for place, count, weight in found:
            yield self.positions[place], count, weight


def _can_count(automaton: SaseAutomaton) -> bool:
    """Whether runs may be counted by start: no negated component at an end reads others."""
    between = range(1, automaton.size)
    return is_native(automaton) and all(
        part.gap in between or not part.judges for part in automaton.negatives
    )


def _made(
    module: CompiledModule,
    automaton: SaseAutomaton,
    events: SequenceEvents,
    rising: EventTable | None,
) -> _kernel.Counter:
    counter = module.Counter(*query_spec(automaton))
    counter.set_events(len(events), events.fields)
    for component in range(0 if rising is None else automaton.size):
        rise = rise_of(automaton, component)
        if rise is not None and rising is not None:
            counter.set_rising(component, rise.or_equal, _ranks(automaton, rising, rise))
    return counter


@attrs.frozen
class Rise:
    """
    The order that each event of a loop must keep with the one before.

    Attributes
    ----------
    field : int
        The compared field.
    falls : bool
        Whether it must be less instead.
    or_equal : bool
        Whether it may be equal.
    """

    field: int
    falls: bool
    or_equal: bool


def rise_of(automaton: SaseAutomaton, component: int) -> Rise | None:
    """Return the order of a loop if nothing else distinguishes its runs, otherwise None."""
    last = automaton.size - 1
    around = automaton.strategies[component : component + 2]
    if any(strategy is not Strategy.SKIP_TILL_ANY_MATCH for strategy in around):
        return None
    if automaton.leave[component].joint is not None:
        return None
    if any(part.judges or part.gap == component + 1 <= last for part in automaton.negatives):
        return None
    rise = _inequality(automaton.take[component].codes[1])
    if rise is None:
        return None
    slot, found = rise
    own = automaton.expressions.slots[slot]
    names = automaton.query.variables
    if own != Slot(Function.LAST, names[component], found.field, own.type):
        return None
    later = [conditions for edge in _edges(automaton) for conditions in edge[component + 1 :]]
    read = frozenset().union(*(conditions.reads for conditions in later), automaton.partition.reads)
    taken = {n for n in read if automaton.expressions.slots[n].stage in names[: component + 1]}
    return None if taken else found


def _edges(automaton: SaseAutomaton) -> tuple[Sequence[EdgeConditions], ...]:
    return automaton.begin, automaton.take, automaton.leave


def _inequality(code: Code) -> tuple[int, Rise] | None:
    """Return the slot and the order if a program compares a slot to a field."""
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
    """Return the ranks of the events by a field; negative for NULL."""
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
