# SPDX-License-Identifier: Apache-2.0
"""The choice of how a query or a pattern is evaluated: by its form, or where the events are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from pyflinkcep.engines.composed_queries import plain_queries
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.latest.chain import LatestChain
from pyflinkcep.engines.latest.chain import refused as not_latest
from pyflinkcep.engines.lists.chain import NotListedError, PatternChain, check_chain, refused
from pyflinkcep.engines.lists.frame import ElementList, Frame, TypeCodes
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import NotSupportedError, check_choice
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.expressions.tree import Column, Operation, Tree, parts
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.model import CONTIGUOUS, Form, Query, Strategy, variable_of

AUTOMATON, BACKTRACKING, EVENT_LISTS = "nfa", "backtracking", "eventLists"
LATEST = "latest"  # Which has answers of its own, and so is never chosen
AUTO = "auto"
EVALUATIONS = (AUTO, AUTOMATON, BACKTRACKING, EVENT_LISTS)
OUTPUTS = ("all", "onePerStart", "nonOverlapping")
_OF_PATTERNS = ("auto", AUTOMATON, EVENT_LISTS, LATEST)


@attrs.frozen
class Evaluation:
    """An evaluation that was chosen by the form of a query or pattern."""

    name: str  # Its name
    reason: str  # Why it was chosen
    # The evaluations among which the events decide, with `name` among them; empty if the form has
    # decided.
    candidates: tuple[str, ...] = ()

    @property
    def for_tables(self) -> str:
        """What to tell whoever has the events: the name, or "auto" if they decide."""
        return AUTO if self.candidates else self.name


def chosen(
    query: Query, evaluation: str = "auto", output: str = "all", is_limited: bool = False
) -> Evaluation:
    """Return how a query is evaluated."""
    how = _evaluation(query, evaluation, output)
    if evaluation == AUTO:
        how = attrs.evolve(how, candidates=alternatives(query, output, is_limited))
    if not is_limited or how.name == AUTOMATON:
        return how
    if evaluation == "auto" and query.form is Form.SEQ and output == "all":
        return Evaluation(AUTOMATON, "maxPartialMatches bounds its runs")
    raise NotSupportedError(
        f"maxPartialMatches is not available with {how.name} ({how.reason}), which keeps no "
        "partial matches",
        'leave it out; only "nfa", which lists all matches of a SEQ, has a bound',
    )


def _evaluation(query: Query, evaluation: str, output: str) -> Evaluation:
    check_choice("evaluation", evaluation, EVALUATIONS)
    check_choice("output", output, OUTPUTS)
    if evaluation == "auto":
        return _automatic(query, output)
    if query.form is Form.LIST and evaluation != EVENT_LISTS:
        raise NotSupportedError(
            f'evaluation="{evaluation}" does not support a pattern of elements with ;',
            'use "eventLists", the only one that answers it',
        )
    unlisted = _unlisted(query)
    if evaluation == EVENT_LISTS and unlisted:
        raise NotSupportedError(
            f'evaluation="eventLists" does not support {unlisted}',
            'use "nfa" or "backtracking", which answer every SEQ',
        )
    if evaluation == AUTOMATON and output != "all":
        return Evaluation(BACKTRACKING, f"nfa was asked for, and searches for output {output} too")
    return Evaluation(evaluation, "asked for")


def chosen_for_compressed(query: Query, evaluation: str = "auto") -> Evaluation:
    """Return how all matches of a query are counted without listing them."""
    own = AUTOMATON if query.form is Form.SEQ else EVENT_LISTS
    if chosen(query, evaluation).name != own and evaluation != "auto":
        raise NotSupportedError(
            f'evaluation="{evaluation}" lists matches, and cannot compress them',
            f'leave evaluation out, or use "{own}"',
        )
    return Evaluation(own, "compressed")


def alternatives(query: Query, output: str = "all", is_limited: bool = False) -> tuple[str, ...]:
    """Return lists and runs if the events may decide between them; nothing if the form does."""
    if query.form is Form.LIST or is_limited or _unlisted(query):
        return ()
    return EVENT_LISTS, AUTOMATON if output == "all" else BACKTRACKING


def hides_choice(query: Query, evaluation: str, output: str) -> bool:
    """Whether matches in a list are sorted, so that their order does not tell what was chosen."""
    if evaluation != AUTO or query.form is Form.LIST or is_contiguous(query):
        return False
    return output == "all" or not _unlisted(query)


def is_contiguous(query: Query) -> bool:
    """Whether each run goes on with the very next event of single components, or ends."""
    return all(query.strategy_of(name) in CONTIGUOUS for name in query.variables) and not any(
        part.repeats for part in query.positive
    )


def _unlisted(query: Query) -> str:
    """Return what lists do not support of a query; empty if they answer it."""
    if query.most_events is not None:
        return "WITHIN … EVENTS, whose window is not of time"
    every = (part for condition in query.conditions for part in parts(condition))
    if any(isinstance(part, Operation) and part.operator == "||" for part in every):
        return "|| of several events"  # a text that no event has
    strategies = {strategy for _, strategy in query.strategies}
    if query.form is Form.SEQ and (
        not strategies <= {Strategy.SKIP_TILL_ANY_MATCH}
        or any(part.repeats for part in query.positive)
    ):
        return "loops, nor strategies other than skip_till_any_match"
    return ""


def _automatic(query: Query, output: str) -> Evaluation:
    unlisted = _unlisted(query)
    if query.form is Form.LIST and unlisted:
        raise NotSupportedError(
            f"a pattern of elements with ; does not support {unlisted}",
            "write PATTERN SEQ(…), or compare attributes of single events",
        )
    if query.form is Form.LIST:
        return Evaluation(EVENT_LISTS, "elements with ;")
    if output != "all":
        return Evaluation(BACKTRACKING, f"output {output}: one run at a time is enough")
    if query.window is not None and not unlisted:
        return Evaluation(EVENT_LISTS, "single events under skip_till_any_match in a window")
    if is_contiguous(query):
        return Evaluation(BACKTRACKING, "contiguous events: runs are short, and never many")
    return Evaluation(AUTOMATON, "loops, contiguity or no window")


# --- patterns


def check_pattern_evaluation(evaluation: str) -> None:
    """Refuse an unknown evaluation."""
    check_choice("evaluation", evaluation, _OF_PATTERNS)


def chosen_for_pattern(
    pattern: Pattern,
    nfa: NFA,
    expressions: CompiledExpressions | None,
    evaluation: str,
    obstacle: str = "",
    order_is_seen: bool = False,
) -> Evaluation:
    """Return how a pattern is evaluated."""
    check_pattern_evaluation(evaluation)
    if evaluation == AUTOMATON:
        return Evaluation(AUTOMATON, "asked for")
    if evaluation == LATEST:
        LatestChain.of(pattern, nfa)
        if obstacle:
            raise not_latest(obstacle)
        return Evaluation(LATEST, "asked for")
    try:
        check_chain(pattern.stages(), nfa)
        if obstacle:
            raise refused(obstacle)
        chain = PatternChain.of(pattern, nfa, expressions)
    except NotListedError as cause:
        if evaluation == EVENT_LISTS:
            raise
        return Evaluation(AUTOMATON, cause.reason)
    if evaluation == EVENT_LISTS:
        return Evaluation(EVENT_LISTS, "asked for")
    if order_is_seen:
        return Evaluation(AUTOMATON, "the order of matches can be seen")
    if chain.query.window is None or len(chain.stages) == 1:
        return Evaluation(AUTOMATON, "it has one stage or no window")
    candidates = alternatives(chain.query)
    return Evaluation(EVENT_LISTS, "single stages joined by followedByAny, in a window", candidates)


# --- where the events are
#
# The answer is the same whatever is chosen, so this asks for no more than what takes far too long.
# Of few events runs are done before lists are made, and lists are joined if few events are near
# each other. Otherwise random walks through the lists tell how many pairs each evaluation would
# test: two events in a join of lists, an event and a run in an automaton, which finds those by
# value for which a condition asks, or in a search, which ends at the first match. Lists are joined
# unless runs, for which a pair takes `_RUN` times as long, have less to do.


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
