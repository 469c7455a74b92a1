# SPDX-License-Identifier: Apache-2.0
"""
The choice of an evaluation where the events are.

The answer is the same whatever is chosen, so this asks for no more than what takes far too long. Of
few events runs are done before lists are made, and lists are joined if few events are near each
other. Otherwise random walks through the lists tell how many pairs each evaluation would test: two
events in a join of lists, an event and a run in an automaton, which finds those by value for which
a condition asks, or in a search, which ends at the first match. Lists are joined unless runs, for
which a pair takes `_RUN` times as long, have less to do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from pyflinkcep.engines.choice import AUTO, EVENT_LISTS, Evaluation, chosen
from pyflinkcep.engines.composed_queries import plain_queries
from pyflinkcep.engines.lists.frame import ElementList, Frame, TypeCodes
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.tree import Column, Operation, Tree
from pyflinkcep.sase.model import Query, variable_of

_RUN = 25
"""What testing an event on a run takes beside a pair of a join."""

_FEW_EVENTS = 256
_FEW_PAIRS, _FEW_PARTNERS = 3e6, 40
"""So many pairs are joined, or so many for each event, before runs are looked at."""

_WALKS = 256
_SAMPLE = 16


def resolved(query: Query, table: EventTable, evaluation: str, output: str = "all") -> str:
    """Return an evaluation, chosen by the events of a table if it is "auto"."""
    return evaluation if evaluation != AUTO else chosen_by_data(query, table, output).name


def chosen_by_data(query: Query, table: EventTable, output: str = "all") -> Evaluation:
    """Return how a query is evaluated on a table."""
    usual, size = chosen(query, AUTO, output), len(table.times)
    if not usual.candidates or not size:
        return usual
    runs = usual.candidates[1]
    if size <= _FEW_EVENTS:
        return Evaluation(runs, "there are few events")
    near = _near(query, table)
    if all(_are_few(word, table, near) for word in plain_queries(query)):
        return Evaluation(EVENT_LISTS, "there are few candidates")
    if query.window is None:  # runs that no condition can tell apart are one
        return Evaluation(runs, "there are many candidates")
    every = _lists(query, table)
    if _of_join(every) > sum(_of_runs(lists, output) for lists in every):
        return Evaluation(runs, "it tests the fewest pairs")
    return Evaluation(EVENT_LISTS, "it tests the fewest pairs")


def _near(query: Query, table: EventTable) -> float:
    """Return the share of events that follow one of its key within the window, by sample."""
    times, size, found, window = np.asarray(table.times), len(table.times), 0, query.window
    keys = None if table.keys is None else np.asarray(table.keys)
    for at in np.linspace(0, size - 1, _SAMPLE).astype(int).tolist():
        end = size if keys is None else bisect_right(keys, keys[at], at)
        if window is not None:
            end = bisect_right(times, int(times[at]) + window, at, end)
        found += end - at
    return found / _SAMPLE / size


def _are_few(query: Query, table: EventTable, near: float) -> bool:
    """Whether a join tests few pairs, even if all conditions hold."""
    codes = TypeCodes.of(table.types, [part.type for part in query.positive])
    sample = codes.sampled()
    counts = sorted(sample[part.type] for part in query.positive)
    rows, total = float(counts[0]), 0.0
    for place, count in enumerate(counts[1:], 2):
        rows *= 2 * near * count / place
        total += rows
    return total <= max(_FEW_PAIRS, _FEW_PARTNERS * sum(counts))


def _of_runs(lists: EventLists, output: str) -> float:
    """Return how many pairs runs would test, weighed."""
    steps = list(walked(lists, lists.query.variables))
    if output == "all":
        return _RUN * sum(step.tested * step.found for step in steps)
    tested, starts = 0.0, 1.0
    for step in steps:  # each start goes on with the first event that fits
        within = step.tested / max(step.rows, 1.0)
        tested += starts * min(within, 1 / step.joint)
        starts *= min(1.0, within * step.joint)
    return _RUN * tested * len(lists.lists[lists.query.variables[0]])


@attrs.frozen
class Step:
    """What happens to the rows of a join, or to runs, when they take one element more."""

    rows: float  # How many there are before
    tested: float  # How many events they are tried on, all together
    joint: float  # The share of these pairs for which the conditions hold
    found: float  # The share for which an equality holds; 1 if there is none


def walked(lists: EventLists, order: Sequence[str]) -> Iterator[Step]:
    """Yield the steps of a join of single elements in some order, by random walks through it."""
    chance, own = np.random.default_rng(0), lists.lists[order[0]].positions
    rows = float(len(own))
    size = min(_WALKS, len(own))
    frame = Frame(size, {order[0]: own[np.linspace(0, len(own) - 1, size).astype(int)]})
    for number, name in enumerate(order[1:], 1):
        low, high = lists.candidates(name, frame)
        tested = rows * float((high - low).sum()) / max(frame.size, 1)
        frame, low, high = frame.rows(high > low), low[high > low], high[high > low]
        at = low + (chance.random(frame.size) * (high - low)).astype(int)
        frame = frame.with_single(name, lists.lists[name].positions[at])
        joint = found = 1.0
        for clause in lists.clauses.decidable(name, order[: number + 1]):
            held = np.count_nonzero(lists.conditions.holding(clause, frame))
            share = (held + 0.5) / (frame.size + 0.5)
            joint *= share
            found = min(found, share) if _is_equality(clause) else found
        yield Step(rows, tested, joint, found)
        rows = tested * joint


def _is_equality(clause: Tree) -> bool:
    if not isinstance(clause, Operation) or clause.operator != "=":
        return False
    return all(isinstance(part, Column) for part in clause.operands)


@attrs.frozen
class Estimate:
    """What is known of a query's events; of a composed query, over all its plain ones."""

    events: int  # The number of events
    counts: dict[str, int]  # By variable, the number of events of its type
    # By variable, the share of these that pass the conditions on them alone.
    alone: dict[str, float]
    # By variable, the share of pairs of runs and such events that pass the other conditions.
    joint: dict[str, float]
    partial: dict[str, float]  # By variable, how many partial matches reach it
    order: tuple[str, ...]  # The order in which lists are joined; the longest
    pairs: dict[str, float]  # By evaluation, the pairs that it would test, weighed


def estimate(query: Query, table: EventTable, output: str = "all") -> Estimate | None:
    """Return the estimates for a table; None without events, or if there is nothing to choose."""
    usual = chosen(query, AUTO, output)
    if not usual.candidates or not len(table.times):
        return None
    codes = TypeCodes.of(table.types, [part.type for part in query.positive])
    number = codes.counts()
    counts = {part.variable: number[part.type] for part in query.positive}
    alone, joint, partial = (dict.fromkeys(counts, own) for own in (1.0, 1.0, 0.0))
    every = _lists(query, table)
    for lists in every:
        for part in lists.query.positive:
            positions, name = codes.positions_of(part.type), variable_of(part.variable)
            own = ElementList.of(
                part, positions, lists.ranks, lists.clauses, lists.conditions.columns
            )
            alone[name] = (len(own) + 0.5) / (len(positions) + 0.5)
        first, *others = lists.query.variables
        partial[variable_of(first)] += len(lists.lists[first])
        for name, step in zip(
            map(variable_of, others), walked(lists, (first, *others)), strict=True
        ):
            joint[name] = min(step.joint, joint[name])
            partial[name] += step.tested * step.joint
    return Estimate(
        events=len(table.times),
        counts=counts,
        alone=alone,
        joint=joint,
        partial=partial,
        order=max((lists.order for lists in every), key=len),
        pairs={
            EVENT_LISTS: _of_join(every),
            usual.candidates[1]: sum(_of_runs(lists, output) for lists in every),
        },
    )


def _lists(query: Query, table: EventTable) -> list[EventLists]:
    """Return the lists of the plain queries that a query stands for."""
    return [EventLists.of(word, table) for word in plain_queries(query)]


def _of_join(every: Sequence[EventLists]) -> float:
    """Return how many pairs joins would test."""
    return sum(step.tested for lists in every for step in walked(lists, lists.order))
