# SPDX-License-Identifier: Apache-2.0
"""What a sample of events says about the conditions of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from math import inf
from operator import itemgetter

import attrs
import numpy as np

from pyflinkcep.engines.facts import SAMPLE, Facts, distinct_values, values_at
from pyflinkcep.engines.sequences.compiler import Fields, SaseAutomaton, Slots, compiled_once
from pyflinkcep.engines.sequences.equalities import Equality, equality_of
from pyflinkcep.engines.sequences.liveness import LOOPING, WAITING, Liveness
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.program import Function
from pyflinkcep.sase.model import Query

__all__ = ["Edges", "Sample"]

_TURNS = 64
"""After so many draws the random numbers begin anew."""


@attrs.frozen
class Edges:
    """
    The edges of a component, by sample.

    Attributes
    ----------
    alone : float
        The share of the events of its type that may begin it by themselves.
    joint : float
        The share of pairs of runs and such events for which the conditions on both hold.
    found : float
        The share of runs that an event meets to begin it; less than 1 if they are found by value.
    taken : float
        As `joint`, of a loop's next event.
    repeated : float
        As `found`, of a loop's next event.
    alike : float
        How many runs that have taken the same event can be told apart later.
    distinct : float
        How many runs at all can be told apart at the component.
    """

    alone: float = 1.0
    joint: float = 1.0
    found: float = 1.0
    taken: float = 1.0
    repeated: float = 1.0
    alike: float = 1.0
    distinct: float = 1.0


@attrs.frozen(eq=False, slots=False)
class Sample:
    """
    Some events of each variable; all its events are equally likely.

    Attributes
    ----------
    automaton : SaseAutomaton
        The query, compiled.
    table : EventTable
        The events.
    facts : Facts
        Where those of each variable are.
    """

    automaton: SaseAutomaton
    table: EventTable
    facts: Facts
    _every: dict[str, list[Fields]] = attrs.field(factory=dict)
    _turn: list[int] = attrs.field(factory=lambda: [0])

    @classmethod
    def of(cls, query: Query, table: EventTable, facts: Facts) -> Sample:
        """Return a sample, which is drawn as it is asked."""
        return cls(compiled_once(query, table.kinds), table, facts)

    @cached_property
    def alone(self) -> dict[str, float]:
        """By variable, the share of its events that pass the conditions on them alone."""
        return {variable: self._passing(n)[1] for n, variable in enumerate(self._variables)}

    @cached_property
    def edges(self) -> list[Edges]:
        """The edges of each component."""
        automaton = self.automaton
        runs: list[Slots] = [automaton.functions.initial] * SAMPLE
        live = Liveness.of(automaton).slots
        found: list[Edges] = []
        for number, variable in enumerate(self._variables):
            begin = automaton.begin[number]
            own, alone = self._passing(number)
            every = self._events(variable)
            own = own or every
            if not own:
                return [*found, Edges(alone=0.0), *([Edges()] * (automaton.size - number - 1))]
            joint, equal = self._share(begin.joint, equality_of(begin.codes[1]), own, runs)
            taken, repeated = 1.0, 1.0
            runs = self._after(number, own, runs)
            if automaton.loops[number]:
                take = automaton.take[number]
                likely = [f for f in every if take.alone is None or take.alone(f, ())] or every
                alone_too = len(likely) / len(every)
                taken, repeated = self._share(take.joint, equality_of(take.codes[1]), likely, runs)
                taken *= alone_too
                runs = self._after(number, own, runs) if taken > 0.25 else runs
            mode = LOOPING | WAITING if automaton.loops[number] else WAITING
            alike = self._alike(number, live[4 * number + mode], runs)
            distinct = _told_apart(live[4 * number + mode], runs)
            found.append(Edges(alone, joint, equal, taken, repeated, alike, distinct))
        return found

    @property
    def _variables(self) -> list[str]:
        return self.automaton.query.variables

    def _passing(self, number: int) -> tuple[list[Fields], float]:
        """Return the events that pass conditions on them alone, if there are any; their share."""
        asked = self.automaton.begin[number].alone
        if asked is None:
            return [], 1.0
        every = self._events(self._variables[number])
        initial = self.automaton.functions.initial
        own = [fields for fields in every if asked(fields, initial)]
        return own, (len(own) + 0.5) / (len(every) + 0.5)

    def _events(self, variable: str) -> list[Fields]:
        """Return the fields of some events of a variable."""
        if variable not in self._every:
            at = self.facts.places.some(variable)
            columns = [values_at(self.table.columns[field], at) for field in self.automaton.fields]
            self._every[variable] = list(zip(*columns, strict=True)) or [()] * len(at)
        return self._every[variable]

    def _drawn(self, own: Sequence[Fields]) -> list[Fields]:
        """Return as many events as there are runs, at random."""
        self._turn[0] += 1
        size = len(own)
        return [own[number % size] for number in _numbers(self._turn[0] % _TURNS)]

    def _share(
        self,
        joint: Callable[[Fields, Slots], bool] | None,
        equality: Equality | None,
        own: Sequence[Fields],
        runs: Sequence[Slots],
    ) -> tuple[float, float]:
        """Return for which share of pairs a condition holds, and its equality alone."""
        if joint is None:
            return 1.0, 1.0
        if equality is None:
            held = sum(map(joint, self._drawn(own), runs))
            return (held + 0.5) / (len(runs) + 1), 1.0
        field, slot, size = equality.field, equality.slot, self.facts.events
        values = [fields[field] for fields in own if fields[field] is not None]
        known = [slots[slot] for slots in runs if slots[slot] is not None]
        distinct = max(distinct_values(values, size), distinct_values(known, size))
        return 1 / distinct, 1 / distinct

    def _after(self, number: int, own: Sequence[Fields], runs: Sequence[Slots]) -> list[Slots]:
        """Return the slots of runs that have taken an event for a component."""
        update = self.automaton.updates[number]
        return list(runs) if update is None else list(map(update, runs, self._drawn(own)))

    def _alike(self, number: int, live: Sequence[int], runs: Sequence[Slots]) -> float:
        """Return how many runs with one last event the slots of other events tell apart."""
        automaton = self.automaton
        name = self._variables[number]
        single = not automaton.loops[number]
        others = []
        for slot in live:
            own = automaton.expressions.slots[slot]
            follows = own.stage == name and (single or own.function is Function.LAST)
            if not follows or own.offset > 1:
                others.append(slot)
        return _told_apart(others, runs)


@lru_cache(maxsize=_TURNS)
def _numbers(turn: int) -> list[int]:
    """Return numbers at random, the same each time."""
    numbers: list[int] = np.random.default_rng(turn).integers(0, 1 << 30, SAMPLE).tolist()
    return numbers


def _told_apart(live: Sequence[int], runs: Sequence[Slots]) -> float:
    if not live:
        return 1.0
    return distinct_values(list(map(itemgetter(*live), runs)), inf)
