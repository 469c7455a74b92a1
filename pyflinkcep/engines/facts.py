# SPDX-License-Identifier: Apache-2.0
"""What the data says about a query: counts, windows, and shares by sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.type_codes import TypeCodes
from pyflinkcep.engines.sequences.compiler import Fields, SaseAutomaton, Slots, compiled_once
from pyflinkcep.engines.sequences.equalities import Equality, equality_of
from pyflinkcep.engines.sequences.liveness import LOOPING, WAITING, Liveness
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.program import Function
from pyflinkcep.sase.model import Query

__all__ = ["Edges", "Facts", "edges_by_sample"]

_SAMPLE = 64
"""So many events, and pairs of events, are asked."""

_SOUGHT = 1 << 11
"""Where events for the sample are sought."""


@attrs.frozen
class Facts:
    """
    What is known of a table without evaluating a condition.

    Attributes
    ----------
    events : int
        The number of events.
    partitions : float
        The number of partitions.
    share : float
        Which share of a partition a window covers.
    counts : dict of str to float
        By positive variable, the number of events of its type.
    """

    events: int
    partitions: float
    share: float
    counts: dict[str, float]

    @classmethod
    def of(cls, query: Query, table: EventTable) -> Facts:
        """Return the facts of a table with at least one event."""
        size = len(table.times)
        times = np.asarray(table.times, np.int64)
        if table.keys is None:
            partitions = _distinct_tests(query, table)
            span = float(times[-1]) - float(times[0])  # as integers it may not fit
        else:
            keys = np.asarray(table.keys)  # which go up one by one
            some = keys[:: size // _SAMPLE + 1]
            firsts, ends = np.searchsorted(keys, some), np.searchsorted(keys, some, "right")
            partitions = float(keys[-1] - keys[0] + 1)
            span = float(np.mean(times[ends - 1].astype(float) - times[firsts].astype(float)))
        share = 1.0 if query.window is None else min(1.0, (query.window + 1) / (span + 1))
        types = {part.variable: part.type for part in query.positive}
        codes = TypeCodes.of(table.types, types.values())
        sample = codes.sampled()
        seen = len(codes.codes[:: codes.step])
        counts = {v: max(sample[type_], 0.5) * size / seen for v, type_ in types.items()}
        return cls(size, partitions, share, counts)

    def counted(self, query: Query, table: EventTable) -> Facts:
        """Return the same with exact counts of rare types."""
        types = {part.variable: part.type for part in query.positive}
        codes = TypeCodes.of(table.types, types.values())
        few = 32 * codes.step
        rare = {type_ for v, type_ in types.items() if codes.step > 1 and self.counts[v] < few}
        exact = {type_: float(len(codes.positions_of(type_))) for type_ in rare}
        counts = {v: exact.get(type_, self.counts[v]) for v, type_ in types.items()}
        return attrs.evolve(self, counts=counts)


def _distinct_tests(query: Query, table: EventTable) -> float:
    """Return the number of partitions by ``[attr]``, estimated."""
    if query.is_global or not query.equal:
        return 1.0
    at = np.linspace(0, len(table.times) - 1, min(_SOUGHT, len(table.times))).astype(int)
    values = list(zip(*(_values(table.columns[name], at) for name in query.equal), strict=True))
    return _distinct(values, len(table.times))


def _distinct(values: Sequence[Any], size: float) -> float:
    """Return how many distinct values there are among `size`, given some at random."""
    number, distinct = len(values), len(set(values))
    if not number:
        return 1.0
    if number >= size:
        return float(distinct)
    twice = number - distinct  # pairs that are equal, about number ** 2 / (2 * all)
    least = float(distinct)
    return min(size, max(least, number * number / 2 / (twice + 0.5))) if twice < distinct else least


def _values(column: Any, at: Any) -> list[Any]:
    if isinstance(column, np.ndarray):
        values: list[Any] = column[at].tolist()
        return values
    return [column[place] for place in at.tolist()]


# --- by sample


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


def edges_by_sample(query: Query, table: EventTable, facts: Facts) -> list[Edges]:
    """Return the edges of each component; all events of a type are equally likely."""
    return _Sampled(compiled_once(query, table.kinds), table, facts).edges()


@attrs.frozen(eq=False, slots=False)
class _Sampled:
    automaton: SaseAutomaton
    table: EventTable
    facts: Facts
    _random: np.random.Generator = attrs.field(factory=lambda: np.random.default_rng(0))

    @cached_property
    def _codes(self) -> TypeCodes:
        return TypeCodes.of(self.table.types, self.automaton.types)

    @cached_property
    def _sought(self) -> tuple[Any, Any]:
        """Some events at random, and their types as indexes of the types' names, or -1."""
        codes, size = self._codes, self.facts.events
        at = self._random.integers(0, size, _SOUGHT) if size > _SOUGHT else np.arange(size)
        own = codes.codes[at]
        return at, np.where(own >= 0, codes.lists[own], -1)

    @cached_property
    def _types(self) -> dict[str, list[Fields]]:
        return {name: self._fields(name) for name in dict.fromkeys(self.automaton.types)}

    def _fields(self, name: str) -> list[Fields]:
        """Return the fields of events of a type, the first of them a sample at random."""
        at, types = self._sought
        own = at[types == self._codes.names.index(name)]
        if len(own) < 16 and len(at) < self.facts.events:
            own = self._codes.positions_of(name)
            own = own[self._random.integers(0, max(1, len(own)), min(_SAMPLE, len(own)))]
        own = own[:_SAMPLE]
        columns = [_values(self.table.columns[field], own) for field in self.automaton.fields]
        return list(zip(*columns, strict=True)) if columns else [()] * len(own)

    def edges(self) -> list[Edges]:
        """Return the edges of each component."""
        automaton = self.automaton
        runs: list[Slots] = [automaton.functions.initial] * _SAMPLE
        live = Liveness.of(automaton).slots
        found: list[Edges] = []
        for number, type_ in enumerate(automaton.types):
            every = self._types[type_]
            begin = automaton.begin[number]
            asked = begin.alone
            own = [f for f in every if asked is None or asked(f, automaton.functions.initial)]
            alone = (len(own) + 0.5) / (len(every) + 0.5) if asked is not None else 1.0
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
            distinct = self._told_apart(live[4 * number + mode], runs)
            found.append(Edges(alone, joint, equal, taken, repeated, alike, distinct))
        return found

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
        chosen = self._random.integers(0, len(own), len(runs)).tolist()
        pairs = [(own[at], slots) for at, slots in zip(chosen, runs, strict=True)]
        if equality is None:
            held = sum(1 for fields, slots in pairs if joint(fields, slots))
            return (held + 0.5) / (len(pairs) + 1), 1.0
        field, slot = equality.field, equality.slot
        values = [fields[field] for fields in own if fields[field] is not None]
        known = [slots[slot] for slots in runs if slots[slot] is not None]
        distinct = max(_distinct(values, self.facts.events), _distinct(known, self.facts.events))
        return 1 / distinct, 1 / distinct

    def _after(self, number: int, own: Sequence[Fields], runs: Sequence[Slots]) -> list[Slots]:
        """Return the slots of runs that have taken an event for a component."""
        update = self.automaton.updates[number]
        if update is None:
            return list(runs)
        chosen = self._random.integers(0, len(own), len(runs)).tolist()
        return [update(slots, own[at]) for at, slots in zip(chosen, runs, strict=True)]

    def _alike(self, number: int, live: Sequence[int], runs: Sequence[Slots]) -> float:
        """Return how many runs with one last event the slots of other events tell apart."""
        automaton = self.automaton
        name = automaton.query.variables[number]
        single = not automaton.loops[number]
        others = []
        for slot in live:
            own = automaton.expressions.slots[slot]
            follows = own.stage == name and (single or own.function is Function.LAST)
            if not follows or own.offset > 1:
                others.append(slot)
        return self._told_apart(others, runs)

    def _told_apart(self, live: Sequence[int], runs: Sequence[Slots]) -> float:
        if not live:
            return 1.0
        values = [tuple([slots[n] for n in live]) for slots in runs]
        return _distinct(values, float("inf"))
