# SPDX-License-Identifier: Apache-2.0
"""
The choice of an evaluation where the events are.

The answer is the same whatever is chosen, so this asks for no more than what takes far too long.
The pairs that each evaluation would test are counted: two events in a join of lists, an event and a
run in an automaton and a search. How many there are at most follows from the number of events of
each type, by sample, and the window; the conditions on single events make them fewer, and those on
pairs are asked of some drawn at random. A pair weighs what its evaluation takes for one beside a
join, by `_WEIGHTS`, and what the form of the query suggests is taken unless another evaluation
weighs clearly less. Where even all pairs are few, nothing is asked at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from math import exp, factorial, inf, prod
from operator import itemgetter
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.choice import (
    AUTO,
    AUTOMATON,
    BACKTRACKING,
    EVENT_LISTS,
    Evaluation,
    alternatives,
    chosen,
)
from pyflinkcep.engines.composed_queries import plain_queries
from pyflinkcep.engines.lists.ranges import Ints, TypeCodes
from pyflinkcep.engines.sequences.compiler import (
    LOOPING,
    WAITING,
    Fields,
    SaseAutomaton,
    Slots,
    compile_query,
    equality_of,
    live_slots,
)
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import CONTIGUOUS, Query, Strategy

_WEIGHTS = {EVENT_LISTS: 1, BACKTRACKING: 20, AUTOMATON: 25}
"""What testing a pair takes beside a pair of a join."""

_SURELY = 1.3
"""How many times more what the form suggests must weigh to be left."""

_FEW_PAIRS = 7500
"""So many are tested by runs before lists are made."""

_FEW_CANDIDATES = 3e6
"""So many are joined sooner than conditions on pairs are asked; and so many for each event:"""

_FEW_PARTNERS = 40

_SAMPLE = 64
"""So many events and pairs of events are asked."""

_SOUGHT = 1 << 11
"""Where events for the sample are sought."""

_TOO_FEW = 16
"""If fewer of a type are found there, all of its events are listed."""


def resolved(query: Query, table: EventTable, evaluation: str, output: str = "all") -> str:
    """Return an evaluation, chosen by the events of a table if it is "auto"."""
    return evaluation if evaluation != AUTO else chosen_by_data(query, table, output).name


def chosen_by_data(query: Query, table: EventTable, output: str = "all") -> Evaluation:
    """Return how a query is evaluated on a table."""
    usual, words = _by_form(query, output)
    candidates, size = usual.candidates, len(table.times)
    if not candidates or not size:
        return usual
    runs = AUTOMATON if AUTOMATON in candidates else BACKTRACKING
    few = Evaluation(runs, "there are few events") if EVENT_LISTS in candidates else usual
    components = len(query.components)
    if (size / components) ** components / factorial(components) < 2 * _FEW_PAIRS:
        return few
    counts = [PairCounts(word, table, output == "all") for word in words]
    most = sum(own.most for own in counts)
    if size + most < _FEW_PAIRS * len(words):
        return few
    quick = EVENT_LISTS if EVENT_LISTS in candidates else usual.name
    if all(own.most * _WEIGHTS[quick] < own.few for own in counts):
        return Evaluation(quick, "there are few candidates")
    if usual.name == quick and all(o.most_passing * _WEIGHTS[quick] < o.few for o in counts):
        return usual
    weights = _weighed(counts, candidates)
    least = min(weights, key=weights.__getitem__)
    if weights[least] * _SURELY > weights[usual.name]:
        return usual
    return Evaluation(least, "it tests the fewest pairs")


@lru_cache(maxsize=64)
def _by_form(query: Query, output: str) -> tuple[Evaluation, tuple[Query, ...]]:
    """Return what the form suggests, and the plain queries that the query stands for."""
    usual = chosen(query, AUTO, output)
    return usual, plain_queries(query) if usual.candidates else ()


def _weighed(counts: Sequence[PairCounts], candidates: Sequence[str]) -> dict[str, float]:
    return {n: _WEIGHTS[n] * sum(own.pairs[n] for own in counts) for n in candidates}


@attrs.frozen
class Estimate:
    """What is known of a query's events; of a composed query, over all its plain ones."""

    events: int  # The number of events
    counts: dict[str, float]  # By variable, the number of events of its type
    # By variable, the share of these that pass the conditions on them alone.
    alone: dict[str, float]
    # By variable, the share of pairs of runs and such events that pass the other conditions.
    joint: dict[str, float]
    partial: dict[str, float]  # By variable, how many partial matches reach it
    # The order in which lists would be joined, which begins with the rarest; the longest.
    order: tuple[str, ...]
    pairs: dict[str, float]  # By evaluation, the pairs that it would test, weighed

    @property
    def least(self) -> str:
        """The evaluation whose pairs weigh least."""
        return min(self.pairs, key=self.pairs.__getitem__)


def estimate(query: Query, table: EventTable, output: str = "all") -> Estimate | None:
    """Return the estimates for a table; None without events, or if there is nothing to choose."""
    candidates = alternatives(query, output)
    if not candidates or not len(table.times):
        return None
    every = [PairCounts(word, table, output == "all") for word in plain_queries(query)]
    counts: dict[str, float] = {}
    alone: dict[str, float] = {}
    joint: dict[str, float] = {}
    partial: dict[str, float] = {}
    for own in every:
        counts |= own.counted
        alone |= own.alone
        for edge, (name, number) in zip(own.edges, own.search[1].items(), strict=True):
            joint[name] = min(joint.get(name, 1.0), edge.joint)
            partial[name] = partial.get(name, 0.0) + number

    def in_order(own: dict[str, float]) -> dict[str, float]:
        return {name: own[name] for name in query.variables if name in own}

    return Estimate(
        events=len(table.times),
        counts=in_order(counts),
        alone=in_order(alone),
        joint=in_order(joint),
        partial=in_order(partial),
        order=max((own.join[1] for own in every), key=len),
        pairs=_weighed(every, candidates),
    )


@attrs.frozen
class _Edge:
    """What is known of the pairs of runs and the events that go on with them, by sample."""

    joint: float = 1.0  # The share for which the conditions on both hold
    found: float = 1.0  # The share that the automaton tests; less than 1 if it finds runs by value
    distinct: float = inf  # How many runs can be told apart after the event


@attrs.frozen(eq=False, slots=False)
class PairCounts:
    """
    How many pairs the evaluations of a plain query would test; each is found out when it is asked.

    They are expected numbers, as if events of each type came evenly and conditions were
    independent of each other.
    """

    query: Query
    table: EventTable
    is_all: bool = True  # Whether all matches are requested, not the first of each start

    @cached_property
    def partitions(self) -> float:
        """The number of partitions; those by ``[attr]`` by sample."""
        query, table = self.query, self.table
        if table.keys is not None:
            return float(table.keys[-1] - table.keys[0] + 1)  # they go up one by one
        if query.is_global or not query.equal:
            return 1.0
        at = np.linspace(0, len(table.times) - 1, min(_SOUGHT, len(table.times))).astype(int)
        columns = [values_at(table.columns[name], at) for name in query.equal]
        return distinct_values(list(zip(*columns, strict=True)), len(table.times))

    @cached_property
    def share(self) -> float:
        """The share of a partition that a window covers."""
        query, size = self.query, len(self.table.times)
        if query.window is not None:
            return min(1.0, (query.window + 1) / (self._span() + 1))
        return min(1.0, (query.most_events or inf) * self.partitions / size)

    def _span(self) -> float:
        """Return how long a partition is; as floats, since differences may not fit integers."""
        table = self.table
        if table.keys is None:
            return float(table.times[-1]) - float(table.times[0])
        times, keys = np.asarray(table.times, np.int64), np.asarray(table.keys)
        some = keys[:: len(keys) // _SAMPLE + 1]
        firsts, ends = np.searchsorted(keys, some), np.searchsorted(keys, some, "right")
        return float(np.mean(times[ends - 1].astype(float) - times[firsts].astype(float)))

    # --- how many events there are

    @cached_property
    def _types(self) -> dict[str, str]:
        return {part.variable: part.type for part in self.query.positive}

    @cached_property
    def _codes(self) -> TypeCodes:
        return TypeCodes.of(self.table.types, self._types.values())

    @cached_property
    def _drawn(self) -> dict[str, Ints]:
        """The positions of the events of each type among some at random."""
        codes, size = self._codes, len(self._codes.codes)
        at = _at_random(_SOUGHT, size) if size > _SOUGHT else np.arange(size)
        types = attrs.evolve(codes, codes=codes.codes[at]).numbers
        return {name: at[types == number] for number, name in enumerate(codes.names)}

    @cached_property
    def _listed(self) -> dict[str, Ints]:
        """The positions of all events of the types of which few are drawn."""
        if len(self._codes.codes) <= _SOUGHT:
            return {}
        rare = (name for name, some in self._drawn.items() if len(some) < _TOO_FEW)
        return {name: self._codes.positions_of(name) for name in rare}

    @cached_property
    def counts(self) -> dict[str, float]:
        """By variable, about how many events there are."""
        size = len(self._codes.codes)
        scale = max(1.0, size / _SOUGHT)
        return {v: max(len(self._drawn[type_]), 0.5) * scale for v, type_ in self._types.items()}

    @cached_property
    def counted(self) -> dict[str, float]:
        """The same exactly."""
        counts = self._codes.counts()
        return {v: max(float(counts[type_]), 0.5) for v, type_ in self._types.items()}

    # --- where all pairs are few

    @property
    def few(self) -> float:
        """So many pairs are joined sooner than more is asked."""
        return max(_FEW_PARTNERS * sum(self.counts.values()), _FEW_CANDIDATES)

    @property
    def most(self) -> float:
        """How many pairs a join tests if all conditions hold."""
        return self._most(self.counts.values())

    @property
    def most_passing(self) -> float:
        """The same of the events that pass the conditions on them alone."""
        return self._most(self.counts[name] * share for name, share in self.alone.items())

    def _most(self, every: Iterable[float]) -> float:
        rows, *others = sorted(every)
        total = 0.0
        for number, count in enumerate(others, 2):
            rows *= 2 * count / self.partitions * self.share / number
            total += rows
        return total

    # --- which share of them passes conditions

    @cached_property
    def _automaton(self) -> SaseAutomaton:
        return compile_query(self.query, self.table.kinds)

    @cached_property
    def _sample(self) -> list[list[Fields]]:
        """By component, the fields of some events of its type."""
        found: list[list[Fields]] = []
        every = self._automaton.columns(self.table)
        for type_ in self._types.values():
            at = self._listed.get(type_, self._drawn[type_])
            at = at[np.linspace(0, len(at) - 1, min(_SAMPLE, len(at))).astype(int)]
            columns = [values_at(own, at) for own in every]
            found.append(list(zip(*columns, strict=True)) or [()] * len(at))
        return found

    @cached_property
    def _fitting(self) -> list[list[Fields]]:
        """The same, of events that pass the conditions on them alone."""
        initial = self._automaton.functions.initial
        asked = (edge.alone for edge in self._automaton.begin)
        return [
            every if alone is None else [fields for fields in every if alone(fields, initial)]
            for alone, every in zip(asked, self._sample, strict=True)
        ]

    @cached_property
    def alone(self) -> dict[str, float]:
        """By variable, the share of its events that pass the conditions on them alone."""
        both = zip(self.query.variables, self._fitting, self._sample, strict=True)
        return {name: (len(own) + 0.5) / (len(every) + 0.5) for name, own, every in both}

    @cached_property
    def edges(self) -> list[_Edge]:
        """What is known of the pairs of each component."""
        automaton = self._automaton
        runs: list[Slots] = [automaton.functions.initial] * _SAMPLE
        live = live_slots(automaton)
        found = []
        for number, begin in enumerate(automaton.begin):
            own = self._fitting[number] or self._sample[number]
            if not own:
                found.append(_Edge())
                continue
            drawn = [own[place % len(own)] for place in _shuffled(number)]
            joint, equality, looked_up = 1.0, equality_of(begin.codes[1]), False
            if equality is not None:
                columns = (
                    [fields[equality.field] for fields in own],
                    [slots[equality.slot] for slots in runs],
                )
                joint, looked_up = 1 / max(map(self._distinct, columns)), True
            elif begin.joint is not None:
                joint = (sum(map(begin.joint, drawn, runs)) + 0.5) / (_SAMPLE + 1)
            update = automaton.updates[number]
            runs = runs if update is None else list(map(update, runs, drawn))
            mode = LOOPING | WAITING if automaton.loops[number] else WAITING
            slots = live[4 * number + mode]
            kept = list(map(itemgetter(*slots), runs)) if slots else []
            distinct = distinct_values(kept, inf)
            found.append(_Edge(joint, joint if looked_up else 1.0, distinct))
        return found

    def _distinct(self, values: Iterable[Any]) -> float:
        known = [value for value in values if value is not None]
        return distinct_values(known, len(self.table.times))

    # --- how many pairs each evaluation tests

    @cached_property
    def pairs(self) -> dict[str, float]:
        """By evaluation, how many pairs it would test."""
        return {
            EVENT_LISTS: self.join[0],
            BACKTRACKING: self.search[0],
            AUTOMATON: self._met_by_runs(),
        }

    @cached_property
    def _passing(self) -> list[float]:
        """By component, how many events pass the conditions on them alone."""
        return [self.counted[name] * share for name, share in self.alone.items()]

    @cached_property
    def _strategies(self) -> list[Strategy]:
        return [self.query.strategy_of(name) for name in self.query.variables]

    @cached_property
    def _within(self) -> list[float]:
        """By component, how many of these a run may go on with."""
        # An event follows another in a window anywhere; without one, half of them on average.
        half = 1.0 if self.query.has_window and self.share < 0.5 else 0.5
        share, size = half * self.share / self.partitions, len(self.table.times)
        return [
            own / size if strategy in CONTIGUOUS else own * share
            for own, strategy in zip(self._passing, self._strategies, strict=True)
        ]

    @property
    def _near(self) -> float:
        """The share of events that are within a window of one of the rarest type."""
        return 1 - exp(-2 * min(self._within)) if self.query.has_window else 1.0

    @cached_property
    def join(self) -> tuple[float, tuple[str, ...]]:
        """The pairs that a join tests, and its order, which begins with the rarest element."""
        names, size = self.query.variables, len(self._passing)
        grows = [w * edge.joint for w, edge in zip(self._within, self.edges, strict=True)]
        left = right = min(range(size), key=self._passing.__getitem__)
        rows, tested, order = self._passing[left], 0.0, [names[left]]
        for number in range(2, size + 1):
            if left > 0 and (right + 1 == size or grows[left] <= grows[right + 1]):
                edge, left = self.edges[left], left - 1
                next_ = left
            else:
                right += 1
                edge, next_ = self.edges[right], right
            order.append(names[next_])
            rows *= self._within[next_] * 2 / number
            tested += rows
            rows *= edge.joint
        return tested, tuple(order)

    @cached_property
    def search(self) -> tuple[float, dict[str, float]]:
        """The pairs that a search tests, and the partial matches that reach each variable."""
        ends = prod(1 - exp(-within) for within in self._within[1:])
        reached, tested = self._passing[0] * max(ends, 1e-6), 0.0
        partial = {}
        for number, part in enumerate(self.query.positive):
            within, joint = self._within[number], self.edges[number].joint
            is_any = self._strategies[number] is Strategy.SKIP_TILL_ANY_MATCH
            in_order = max(1, number) if is_any else 1
            if number and is_any and self.is_all:
                tested += reached * within / in_order
                reached *= within * joint / in_order
            elif number:  # goes on with the first event that fits
                tested += reached * min(within, 1 / joint) / in_order
                reached *= (1 - exp(-within * joint)) / in_order
            if part.repeats:
                ways = exp(min(60.0, within * 0.6)) if is_any else 1.0
                tested += reached * ways * max(1.0, within / 2)
                reached *= ways if is_any else 1 + within
            partial[part.variable] = reached
        return tested, partial

    def _met_by_runs(self) -> float:
        """Return how many pairs an automaton tests."""
        met = live = 0.0
        for number, (own, edge) in enumerate(zip(self._passing, self.edges, strict=True)):
            entered = near = own * self._near
            strategy = self._strategies[number]
            if number:
                if strategy is Strategy.SKIP_TILL_NEXT_MATCH:  # a run goes on with the first
                    live /= max(1.0, self._within[number] * edge.joint)
                met += near * live * edge.found
                entered = near * live * edge.joint
            share = 0.0 if strategy in CONTIGUOUS else self.share
            alive = entered / self.partitions * share / max(self._near, 1e-9)
            live = min(max(alive, 1e-3), edge.distinct)
            if self.query.positive[number].repeats:
                met += near * live
        return met


def distinct_values(values: Sequence[Any], size: float) -> float:
    """Return how many distinct values there are among `size`, given some at random."""
    number, distinct = len(values), len(set(values))
    if not number:
        return 1.0
    if number >= size:
        return float(distinct)
    twice = number - distinct  # pairs that are equal, about number ** 2 / (2 * all)
    least = float(distinct)
    return min(size, max(least, number * number / 2 / (twice + 0.5))) if twice < distinct else least


def values_at(column: Any, at: Ints) -> list[Any]:
    """Return the values of a column at some places."""
    if isinstance(column, np.ndarray):
        values: list[Any] = column[at].tolist()
        return values
    return [column[place] for place in at.tolist()]


def _at_random(number: int, size: int) -> Ints:
    """Return numbers below a size, the same each time."""
    chosen: Ints = (_uniform(number) * size).astype(np.int64)
    return chosen


@lru_cache(maxsize=8)
def _uniform(number: int) -> Any:
    return np.random.default_rng(0).random(number)


@lru_cache(maxsize=64)
def _shuffled(turn: int) -> list[int]:
    """Return the numbers of a sample in an order that is the same each time."""
    numbers: list[int] = np.random.default_rng(turn).permutation(_SAMPLE).tolist()
    return numbers
