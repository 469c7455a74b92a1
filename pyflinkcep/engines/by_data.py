# SPDX-License-Identifier: Apache-2.0
"""The choice of an evaluation where the events are, by estimated costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import inf

import attrs

from pyflinkcep.engines.choice import (
    AUTO,
    AUTOMATON,
    BACKTRACKING,
    EVENT_LISTS,
    Evaluation,
    alternatives,
    chosen,
)
from pyflinkcep.engines.costs import Costs, estimated, is_small, is_tiny, pairs_without_conditions
from pyflinkcep.engines.facts import Facts
from pyflinkcep.engines.sample import Edges, Sample
from pyflinkcep.engines.table import EventTable
from pyflinkcep.kernel.module import compiled_module
from pyflinkcep.sase.alternatives import alternatives as words_of
from pyflinkcep.sase.model import Query

__all__ = ["Estimate", "chosen_by_data", "estimate", "resolved"]

_FEW = 512
"""Events of the query's types that are too few to be worth a sample."""

_CHEAP = 40
"""So many candidates for each event are joined sooner than a sample is asked."""

_FEW_CANDIDATES = 3e6
"""And so many in all."""

_QUICK = 15.0
"""So many milliseconds of runs are not worth a sample."""

_SURELY = 1.3
"""How many times more another evaluation must cost than what the form suggests."""


@attrs.frozen
class Estimate:
    """
    What is known about the events of a query, and what its evaluations would cost.

    A composed query is the sum of the plain ones that it stands for.

    Attributes
    ----------
    events : int
        The number of events.
    counts : dict of str to float
        By variable, the number of events of its type.
    alone : dict of str to float
        By variable, the share of these that pass the conditions on them alone.
    joint : dict of str to float
        By variable, the share of pairs of runs and such events that pass the other conditions.
    partial : dict of str to float
        By variable, how many partial matches reach it.
    order : tuple of str
        The order in which lists would be joined; of a composed query, the longest of its words. It
        begins with the rarest.
    matches : float
        How many matches there are.
    milliseconds : dict of str to float
        By evaluation, what it would cost.
    """

    events: int
    counts: dict[str, float]
    alone: dict[str, float]
    joint: dict[str, float]
    partial: dict[str, float]
    order: tuple[str, ...]
    matches: float
    milliseconds: dict[str, float]

    @property
    def least(self) -> str:
        """The evaluation that costs least."""
        return min(self.milliseconds, key=self.milliseconds.__getitem__)


def resolved(query: Query, table: EventTable, evaluation: str, output: str = "all") -> str:
    """Return an evaluation, chosen by the events of a table if it is "auto"."""
    if evaluation != AUTO:
        return evaluation
    return chosen_by_data(query, table, output).name


def chosen_by_data(query: Query, table: EventTable, output: str = "all") -> Evaluation:
    """
    Return how a query is evaluated on a table.

    The answer is the same whatever is chosen. Only evaluations that the form of the query allows
    are compared. What the form suggests is taken if it is quick whatever the conditions are, and
    sampled are first the conditions on single events, then the others if these do not suffice.
    """
    usual, words = _by_form(query, output)
    candidates, size = usual.candidates, len(table.times)
    if not candidates or not size or (size < _FEW and EVENT_LISTS not in candidates):
        return usual
    has_kernel = _is_native(query)
    runs = AUTOMATON if AUTOMATON in candidates else BACKTRACKING
    if size < _FEW and is_tiny(size, len(query.components), runs, has_kernel):
        return Evaluation(runs, "there are few events")
    plain = [_Plain(word, table) for word in words]
    if EVENT_LISTS in candidates:
        every = [own.facts for own in plain]
        if is_small(every, runs, has_kernel):
            return Evaluation(runs, "there are few events")
        if all(map(_is_joined_quickly, every)):
            return Evaluation(EVENT_LISTS, "there are few candidates")
        if usual.name == EVENT_LISTS and all(map(_is_joined_quickly, [o.passing for o in plain])):
            return usual
    elif _runs_quickly([(own.query, own.counted) for own in plain], usual.name, output):
        return usual
    milliseconds = _summed([own.costs(candidates, output) for own in plain])
    least = min(milliseconds, key=milliseconds.__getitem__)
    if milliseconds[least] * _SURELY > milliseconds[usual.name]:
        return usual
    return Evaluation(least, "estimated to cost least")


@lru_cache(maxsize=64)
def _by_form(query: Query, output: str) -> tuple[Evaluation, tuple[Query, ...]]:
    """Return what the form suggests, and the plain queries."""
    usual = chosen(query, AUTO, output)
    return usual, words_of(query) if usual.candidates else ()


def estimate(query: Query, table: EventTable, output: str = "all") -> Estimate | None:
    """Return the estimates for a table; None without events, or if there is nothing to choose."""
    candidates = alternatives(query, output)
    if not candidates or not len(table.times):
        return None
    plain = [_Plain(word, table) for word in words_of(query)]
    every = [own.costs(candidates, output) for own in plain]
    counts: dict[str, float] = {}
    alone: dict[str, float] = {}
    joint: dict[str, float] = {}
    partial: dict[str, float] = {}
    for own, costs in zip(plain, every, strict=True):
        for number, variable in enumerate(own.query.variables):
            edges = own.sample.edges[number]
            counts[variable] = own.counted.counts[variable]
            alone[variable] = edges.alone
            joint[variable] = min(joint.get(variable, 1.0), edges.joint)
            partial[variable] = partial.get(variable, 0.0) + costs.partial[number]
    in_order = [variable for variable in query.variables if variable in counts]
    return Estimate(
        events=len(table.times),
        counts={variable: counts[variable] for variable in in_order},
        alone={variable: alone[variable] for variable in in_order},
        joint={variable: joint[variable] for variable in in_order},
        partial={variable: partial[variable] for variable in in_order},
        order=max((costs.order for costs in every), key=len),
        matches=sum(costs.matches for costs in every),
        milliseconds=_summed(every),
    )


@attrs.frozen(eq=False, slots=False)
class _Plain:
    """What is known of a plain query on a table; each is found out when it is asked."""

    query: Query
    table: EventTable

    @cached_property
    def facts(self) -> Facts:
        """Counts by sample."""
        return Facts.of(self.query, self.table)

    @cached_property
    def counted(self) -> Facts:
        """The same with exact counts of what is rare."""
        return self.facts.counted()

    @cached_property
    def sample(self) -> Sample:
        """Some events."""
        return Sample.of(self.query, self.table, self.counted)

    @cached_property
    def passing(self) -> Facts:
        """The facts without the events that conditions on single events exclude."""
        return self.counted.passing(self.sample.alone)

    def costs(self, candidates: Sequence[str], output: str) -> Costs:
        """Return what evaluations would cost."""
        native, edges = _is_native(self.query), self.sample.edges
        return estimated(self.query, self.counted, edges, candidates, native, output == "all")


def _is_native(query: Query) -> bool:
    """Whether the kernel has all evaluations of a query: not of negated sequences at an end."""
    has_sequences = any(len(parts) > 1 for parts in query.negations)
    is_plain = has_sequences and (query.looks_back or query.looks_ahead)
    return compiled_module() is not None and not is_plain


def _is_joined_quickly(facts: Facts) -> bool:
    """Whether a join has few candidates even if all conditions hold."""
    named = sum(facts.counts.values())
    return pairs_without_conditions(facts) < max(_CHEAP * named, _FEW_CANDIDATES)


def _runs_quickly(known: Sequence[tuple[Query, Facts]], evaluation: str, output: str) -> bool:
    """Whether an automaton is quick even if all conditions hold and no runs are merged."""
    if all(sum(facts.counts.values()) < _FEW for _, facts in known):
        return True
    least = 0.0
    for query, facts in known:
        edges = [Edges(alike=inf, distinct=inf)] * len(query.positive)
        native = _is_native(query)
        costs = estimated(query, facts, edges, (evaluation,), native, output == "all")
        least += costs.milliseconds[evaluation]
    return least < _QUICK


def _summed(every: Sequence[Costs]) -> dict[str, float]:
    """Return what evaluations of all plain queries together would cost."""
    return {
        name: sum(costs.milliseconds[name] for costs in every) for name in every[0].milliseconds
    }
