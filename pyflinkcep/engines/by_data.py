# SPDX-License-Identifier: Apache-2.0
"""The choice of an evaluation where the events are, by estimated costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import attrs

from pyflinkcep.engines.choice import (
    AUTO,
    AUTOMATON,
    EVENT_LISTS,
    Evaluation,
    alternatives,
    chosen,
)
from pyflinkcep.engines.costs import Costs, estimated, pairs_without_conditions
from pyflinkcep.engines.facts import Edges, Facts, edges_by_sample
from pyflinkcep.engines.table import EventTable
from pyflinkcep.kernel.module import compiled_module
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

_SURELY = 1.6
"""How many times more another evaluation must cost than what the form suggests."""


@attrs.frozen
class Estimate:
    """
    What is known about the events of a query, and what its evaluations would cost.

    Attributes
    ----------
    facts : Facts
        Counts.
    edges : sequence of Edges
        What a sample says about conditions.
    costs : Costs
        What follows.
    """

    facts: Facts
    edges: Sequence[Edges]
    costs: Costs


def resolved(query: Query, table: EventTable, evaluation: str, output: str = "all") -> str:
    """Return an evaluation, chosen by the events of a table if it is "auto"."""
    if evaluation != AUTO:
        return evaluation
    return chosen_by_data(query, table, output).name


def chosen_by_data(query: Query, table: EventTable, output: str = "all") -> Evaluation:
    """
    Return how a query is evaluated on a table.

    The answer is the same whatever is chosen. Only evaluations that the form of the query allows
    are compared, and that which it suggests is taken if there are few events.
    """
    usual = chosen(query, AUTO, output)
    candidates = usual.candidates
    if not candidates or len(table.times) < _FEW:
        return usual
    facts = Facts.of(query, table)
    if _is_quick(query, table, facts, usual.name, output):
        return usual
    costs = _estimated(query, table, facts, candidates, output).costs
    if costs.milliseconds[costs.least] * _SURELY > costs.milliseconds[usual.name]:
        return usual
    return Evaluation(costs.least, "estimated to cost least")


def estimate(query: Query, table: EventTable, output: str = "all") -> Estimate | None:
    """Return the estimates for a table; None without events, or if there is nothing to choose."""
    candidates = alternatives(query, output)
    if not candidates or not len(table.times):
        return None
    return _estimated(query, table, Facts.of(query, table), candidates, output)


def _is_quick(query: Query, table: EventTable, facts: Facts, evaluation: str, output: str) -> bool:
    """Whether an evaluation is quick even if all conditions hold and no runs are merged."""
    named = sum(facts.counts.values())
    if named < _FEW:
        return True
    if evaluation == EVENT_LISTS:
        return pairs_without_conditions(facts) < max(_CHEAP * named, _FEW_CANDIDATES)
    if evaluation != AUTOMATON:
        return False
    edges = [Edges(alike=inf, distinct=inf)] * len(query.positive)
    has_kernel = compiled_module() is not None
    counted = facts.counted(query, table)
    costs = estimated(query, counted, edges, (evaluation,), has_kernel, output == "all")
    return costs.milliseconds[evaluation] < _QUICK


def _estimated(
    query: Query, table: EventTable, facts: Facts, candidates: Sequence[str], output: str
) -> Estimate:
    facts = facts.counted(query, table)
    edges = edges_by_sample(query, table, facts)
    has_kernel = compiled_module() is not None
    costs = estimated(query, facts, edges, candidates, has_kernel, output == "all")
    return Estimate(facts, edges, costs)
