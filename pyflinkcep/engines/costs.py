# SPDX-License-Identifier: Apache-2.0
"""What evaluations of a query would cost, estimated."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, prod

import attrs

from pyflinkcep.engines.facts import Edges, Facts
from pyflinkcep.sase.model import Query, Strategy

__all__ = ["Costs", "estimated", "pairs_without_conditions"]

_CONTIGUOUS = (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)


@attrs.frozen
class _Prices:
    """Nanoseconds, measured: of a query, an event, one named by it, and what is done with it."""

    query: float
    event: float
    named: float
    met: float
    made: float
    match: float


_KERNEL = {
    "nfa": _Prices(5e5, 4, 40, 30, 90, 40),
    "backtracking": _Prices(5e5, 14, 15, 18, 10, 40),
    "eventLists": _Prices(9e5, 1, 25, 1.2, 5, 4),
}
_PLAIN = {
    "nfa": _Prices(5e5, 900, 700, 900, 3000, 2500),
    "backtracking": _Prices(5e5, 1200, 700, 900, 2000, 1500),
    "eventLists": _Prices(9e5, 3, 60, 12, 60, 900),
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
    """

    milliseconds: dict[str, float]
    partial: tuple[float, ...]
    live: tuple[float, ...]
    matches: float

    @property
    def least(self) -> str:
        """The evaluation that costs least."""
        return min(self.milliseconds, key=self.milliseconds.__getitem__)


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
    return Costs(costs, tuple(model.partial), tuple(model.live), model.partial[-1])


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
        half = 1.0 if query.window is not None and facts.share < 0.5 else 0.5
        within = [own / facts.partitions * facts.share * half for own in self._own]
        self._strategies = [query.strategy_of(name) for name in names]
        contiguous = facts.events / facts.partitions
        self._within = [
            own / (contiguous * facts.partitions) if strategy in _CONTIGUOUS else w
            for w, own, strategy in zip(within, self._own, self._strategies, strict=True)
        ]
        near = min(within)
        self._near = min(1.0, 1 - exp(-2 * near)) if query.window is not None else 1.0
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
            met = own * self._near * self.live[-1] * edge.found
            self._met_by_runs += met
            kept = edge.joint / edge.found
            entered = min(met * min(1.0, kept), own * self._near * edge.alike)
        if self._loops[number]:
            reached = self._looped(number, reached, within)
            entered = min(max(entered, own * self._near), own * self._near * edge.alike)
        self.partial.append(reached)
        self._made += entered
        share = self._facts.share if self._strategies[number] not in _CONTIGUOUS else 0.0
        alive = entered / self._facts.partitions * share / max(self._near, 1e-9)
        alive = min(max(alive, 1e-3), edge.distinct)
        if self._loops[number]:
            self._met_by_runs += own * self._near * alive * edge.repeated
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
        if strategy in _CONTIGUOUS:
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
        listed = prices.query + self._facts.events * prices.event + self.partial[-1] * prices.match
        if name == "eventLists":
            candidates, rows = self._joined()
            return listed + named * prices.named + candidates * prices.met + rows * prices.made
        listed += named * self._near * prices.named
        if name == "backtracking":
            return listed + self._met_by_search * prices.met + sum(self.partial) * prices.made
        return listed + self._met_by_runs * prices.met + self._made * prices.made

    def _joined(self) -> tuple[float, float]:
        """Return the candidates and the rows of a join that begins with the rarest element."""
        size = len(self._own)
        left = right = min(range(size), key=self._own.__getitem__)
        rows = self._own[left]
        candidates, every = 0.0, rows
        for _ in range(size - 1):
            is_left = left > 0 and (
                right + 1 == size or self._grows(left) <= self._grows(right + 1)
            )
            edge = self._edges[left if is_left else right + 1]
            left, right = (left - 1, right) if is_left else (left, right + 1)
            number = right - left
            tried = rows * self._within[left if is_left else right] * 2 / (number + 1)
            candidates += tried
            rows = tried * edge.joint
            every += rows
        return candidates, min(every, inf)

    def _grows(self, number: int) -> float:
        """Return by how much an edge multiplies rows: that into a component, or out of it."""
        return self._within[number] * self._edges[number].joint
