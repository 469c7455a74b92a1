# SPDX-License-Identifier: Apache-2.0
"""What evaluations of a query would cost, estimated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import exp, factorial, prod

import attrs

from pyflinkcep.engines.facts import Facts
from pyflinkcep.engines.sample import Edges
from pyflinkcep.sase.model import CONTIGUOUS, Query, Strategy

__all__ = ["Costs", "estimated", "is_small", "is_tiny", "pairs_without_conditions"]


@attrs.frozen
class _Prices:
    """Nanoseconds, measured: of a query, a partition, an event, and what is done with it."""

    query: float
    partition: float
    event: float
    named: float
    met: float
    made: float
    match: float


_KERNEL = {
    "nfa": _Prices(1e5, 1800, 4, 40, 30, 90, 40),
    "backtracking": _Prices(1e5, 1800, 14, 15, 18, 10, 40),
    "eventLists": _Prices(2.5e5, 0, 1, 25, 1.2, 5, 4),
}
_PLAIN = {
    "nfa": _Prices(1e5, 9000, 900, 700, 900, 3000, 2500),
    "backtracking": _Prices(1e5, 9000, 1200, 700, 900, 2000, 1500),
    "eventLists": _Prices(3e5, 0, 3, 60, 12, 60, 900),
}


@attrs.frozen
class Costs:
    """
    Estimates for a query on a table.

    Attributes
    ----------
    milliseconds : dict of str to float
        By evaluation.
    partial : tuple of float
        By component, how many partial matches reach it.
    live : tuple of float
        By component, how many runs of the automaton are alive at a time.
    matches : float
        How many matches there are.
    order : tuple of str
        The order in which lists are joined.
    """

    milliseconds: dict[str, float]
    partial: tuple[float, ...]
    live: tuple[float, ...]
    matches: float
    order: tuple[str, ...]


def is_small(every: Sequence[Facts], runs: str, has_kernel: bool) -> bool:
    """Whether an evaluation by runs is done before lists are made, if one in six pairs joins."""
    prices = _KERNEL if has_kernel else _PLAIN
    by_runs, lists = prices[runs], prices["eventLists"]
    spare = (lists.query - by_runs.query) * len(every)
    for facts in every:
        spare -= facts.events * by_runs.event + sum(facts.counts.values()) * by_runs.named
        if spare > 0:
            spare -= pairs_without_conditions(facts) * (by_runs.met + by_runs.made) / 6
    return spare > 0


def is_tiny(size: int, components: int, runs: str, has_kernel: bool) -> bool:
    """Whether an evaluation by runs is at most twice as slow as lists, whatever the events are."""
    prices = _KERNEL if has_kernel else _PLAIN
    by_runs, lists = prices[runs], prices["eventLists"]
    most = (size / components) ** components / factorial(components)
    return most * (by_runs.met + by_runs.made) / 6 < 2 * (lists.query - by_runs.query)


def pairs_without_conditions(facts: Facts) -> float:
    """Return how many candidates a join of single events has if all conditions hold."""
    counts = sorted(facts.counts.values())
    total, rows = 0.0, counts[0]
    for number, count in enumerate(counts[1:], 1):
        rows *= 2 * count / facts.partitions * facts.share / (number + 1)
        total += rows
    return total


def estimated(
    query: Query,
    facts: Facts,
    edges: Sequence[Edges],
    candidates: Sequence[str],
    has_kernel: bool,
    is_all: bool,
) -> Costs:
    """
    Return what evaluations would cost.

    Parameters
    ----------
    query : Query
        The query.
    facts : Facts
        What is known of the table.
    edges : sequence of Edges
        What a sample says about its conditions.
    candidates : sequence of str
        The evaluations.
    has_kernel : bool
        Whether they run in the kernel.
    is_all : bool
        Whether all matches are requested.
    """
    model = _Model(query, facts, edges, is_all)
    prices = _KERNEL if has_kernel else _PLAIN
    costs = {name: model.cost(name, prices[name]) / 1e6 for name in candidates}
    partial, live = tuple(model.partial), tuple(model.live)
    return Costs(costs, partial, live, partial[-1], model.joins.order)


@attrs.frozen
class _Joins:
    """How many candidates and rows a join has, and in which order."""

    candidates: float
    rows: float
    order: tuple[str, ...]


class _Model:
    """
    Expected numbers, as if events of each type came evenly and conditions were independent.

    Parameters
    ----------
    query, facts, edges, is_all
        See :func:`estimated`.

    Attributes
    ----------
    partial, live : list of float
        See :class:`Costs`.
    """

    def __init__(self, query: Query, facts: Facts, edges: Sequence[Edges], is_all: bool) -> None:
        self._facts, self._edges, self._is_all = facts, edges, is_all
        self._query = query
        names = query.variables
        self._loops = [part.repeats for part in query.positive]
        self._own = [facts.counts[n] * e.alone for n, e in zip(names, edges, strict=True)]
        # An event follows another in a window anywhere; without one, half of them on average.
        half = 1.0 if query.has_window and facts.share < 0.5 else 0.5
        within = [own / facts.partitions * facts.share * half for own in self._own]
        self._strategies = [query.strategy_of(name) for name in names]
        contiguous = facts.events / facts.partitions
        self._within = [
            own / (contiguous * facts.partitions) if strategy in CONTIGUOUS else w
            for w, own, strategy in zip(within, self._own, self._strategies, strict=True)
        ]
        near = min(within)
        self._near = min(1.0, 1 - exp(-2 * near)) if query.has_window else 1.0
        self._met_by_search = 0.0
        self._met_by_runs = 0.0
        self._made = 0.0
        self.partial: list[float] = []
        self.live: list[float] = []
        for number in range(len(names)):
            self._add(number)

    def _add(self, number: int) -> None:
        """Add what a component costs search and runs."""
        edge, own, within = self._edges[number], self._own[number], self._within[number]
        if not number:
            ends = prod(1 - exp(-w) for w in self._within[1:])
            reached = own * max(ends, 1e-6)
            entered = own * self._near
        else:
            before = self.partial[-1]
            tries = self._tries(within, edge.joint, self._strategies[number])
            order = (
                max(1, number) if self._strategies[number] is Strategy.SKIP_TILL_ANY_MATCH else 1
            )
            self._met_by_search += before * tries / order
            reached = before * self._passed(within, edge.joint, self._strategies[number]) / order
            if self._strategies[number] is Strategy.SKIP_TILL_NEXT_MATCH:  # goes on with the first
                self.live[-1] /= max(1.0, within * min(1.0, edge.joint))
            met = own * self._near * self.live[-1] * edge.found
            self._met_by_runs += met
            kept = edge.joint / edge.found
            entered = min(met * min(1.0, kept), own * self._near * edge.alike)
        is_any = self._strategies[number] is Strategy.SKIP_TILL_ANY_MATCH
        if self._loops[number]:
            reached = self._looped(number, reached, within)
            if is_any:
                entered = min(max(entered, own * self._near), own * self._near * edge.alike)
        self.partial.append(reached)
        self._made += entered
        share = self._facts.share if self._strategies[number] not in CONTIGUOUS else 0.0
        alive = entered / self._facts.partitions * share / max(self._near, 1e-9)
        alive = min(max(alive, 1e-3), edge.distinct)
        if self._loops[number]:
            again = own * self._near * alive * edge.repeated
            self._met_by_runs += again
            if not is_any:
                self._made += again * min(1.0, edge.taken / edge.repeated)
        self.live.append(alive)

    def _looped(self, number: int, begun: float, within: float) -> float:
        """Return how many ways there are through a loop, and add what their search costs."""
        edge, strategy = self._edges[number], self._strategies[number]
        if strategy is not Strategy.SKIP_TILL_ANY_MATCH:
            longer = within * min(1.0, edge.taken)
            self._met_by_search += begun * within
            return begun * (1 + longer)
        ways = exp(min(60.0, within * min(1.0, edge.taken) * 0.6))
        self._met_by_search += begun * ways * max(1.0, within / 2)
        return begun * ways

    def _tries(self, within: float, joint: float, strategy: Strategy) -> float:
        """Return how many events a run is shown until it goes on."""
        if strategy in CONTIGUOUS:
            return min(1.0, within)
        if strategy is Strategy.SKIP_TILL_NEXT_MATCH or not self._is_all:
            return min(within, 1 / joint)
        return within

    def _passed(self, within: float, joint: float, strategy: Strategy) -> float:
        """Return in how many ways a run goes on."""
        if strategy is Strategy.SKIP_TILL_ANY_MATCH and self._is_all:
            return within * joint
        return 1 - exp(-within * joint)

    def cost(self, name: str, prices: _Prices) -> float:
        """Return the nanoseconds that an evaluation would take."""
        named = sum(self._own)
        facts = self._facts
        listed = prices.query + facts.partitions * prices.partition
        listed += facts.events * prices.event + self.partial[-1] * prices.match
        if name == "eventLists":
            joins = self.joins
            made = joins.candidates * prices.met + joins.rows * prices.made
            return listed + named * prices.named + made
        listed += named * self._near * prices.named
        if name == "backtracking":
            return listed + self._met_by_search * prices.met + sum(self.partial) * prices.made
        return listed + self._met_by_runs * prices.met + self._made * prices.made

    @cached_property
    def joins(self) -> _Joins:
        """A join that begins with the rarest element."""
        names, size = self._query.variables, len(self._own)
        left = right = min(range(size), key=self._own.__getitem__)
        rows = every = self._own[left]
        candidates, order = 0.0, [names[left]]
        for number in range(2, size + 1):
            is_left = left > 0 and (
                right + 1 == size or self._grows(left) <= self._grows(right + 1)
            )
            edge = self._edges[left if is_left else right + 1]
            left, right = (left - 1, right) if is_left else (left, right + 1)
            next_ = left if is_left else right
            order.append(names[next_])
            tried = rows * self._within[next_] * 2 / number
            candidates += tried
            rows = tried * edge.joint
            every += rows
        return _Joins(candidates, every, tuple(order))

    def _grows(self, number: int) -> float:
        """Return by how much an edge multiplies rows: that into a component, or out of it."""
        return self._within[number] * self._edges[number].joint
