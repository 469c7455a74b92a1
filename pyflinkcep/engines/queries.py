# SPDX-License-Identifier: Apache-2.0
"""A query on a table of events, by the requested evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import attrs
import numpy as np

from pyflinkcep.engines.choice import AUTO, BACKTRACKING, EVENT_LISTS, resolved
from pyflinkcep.engines.composed_queries import (
    ComposedSequences,
    chosen_firsts,
    in_order,
    partition_numbers,
    plain_queries,
)
from pyflinkcep.engines.compressed.counting import (
    NOTHING,
    Compressed,
    Ended,
    MatchArrays,
    MeasuredValues,
    Node,
    RequestedTotal,
    Roots,
    Total,
    Whole,
    combined,
)
from pyflinkcep.engines.lists.chain import ChainEvents, PatternChain
from pyflinkcep.engines.lists.frame import Frame, Ints, TypeCodes, expanded
from pyflinkcep.engines.lists.matching import EventLists, joined_frames, selected
from pyflinkcep.engines.sequences.evaluation import MatchPositions, Sequences
from pyflinkcep.engines.sequences.runs import RunLimit
from pyflinkcep.engines.table import EventTable, Numbers
from pyflinkcep.sase.model import Form, Query


def as_sequence(query: Query) -> Query | None:
    """Return a ``;`` query as SEQ; None if it has a closure, or two elements of one type."""
    types = [part.type for part in query.components]
    is_plain = len(set(types)) == len(types) and not any(p.repeats for p in query.positive)
    if not is_plain or len(query.positive) == 1:
        return None
    return attrs.evolve(query, form=Form.SEQ)


def latest_element_first(
    query: Query, table: EventTable
) -> Callable[[Sequence[int]], Sequence[int]]:
    """Return a function that orders the events of a partition, given by their positions."""
    codes = TypeCodes.of(table.types, [part.type for part in query.components])
    by_event = np.append(-np.arange(len(codes.names)), 1)[codes.numbers]
    times = np.asarray(table.times, np.int64)

    def ordered(positions: Sequence[int]) -> Sequence[int]:
        at = np.asarray(positions, np.int64)
        found: list[int] = at[np.lexsort((by_event[at], times[at]))].tolist()
        return found

    return ordered


LAST_NUMBER = 0
"""The number of the last event of each partition."""


def timed(query: Query) -> Query:
    """Return a query whose window counts events as one for events with their numbers as times."""
    if query.most_events is None:
        return query
    most = query.most_events
    return attrs.evolve(query, window=most - 1, most_events=None, most_taken=most)


def limit_of(query: Query, limit: RunLimit | None) -> RunLimit | None:
    """Return a bound on the runs of a query whose events may have numbers as times."""
    if limit is None or query.most_events is None:
        return limit
    return attrs.evolve(limit, has_times=False)


def numbered(query: Query, table: EventTable) -> EventTable:
    """
    Return the events of a query.

    If its window counts events, they have their numbers in its partition as times, up to
    LAST_NUMBER.
    """
    if query.most_events is None:
        return table
    numbers = np.zeros(len(table.times), np.int64)
    for positions, _ in table.partitions(query):
        size = len(positions)
        numbers[np.asarray(positions, np.int64)] = np.arange(LAST_NUMBER - size, LAST_NUMBER) + 1
    return attrs.evolve(table, times=Numbers(numbers))


def _ended(
    lists: EventLists, frames: Iterable[Frame], measures: Sequence[RequestedTotal]
) -> Iterator[Ended]:
    variables = lists.query.variables
    last = variables[-1]
    columns = [None if values is None else _objects(values) for _, values, _ in measures]
    counts: dict[int, int] = {}
    totals: list[dict[int, Total]] = [{} for _ in measures]
    for frame in frames:
        ends = lists.spans(frame)[last][1]
        found = zip(*(own.tolist() for own in np.unique(ends, return_counts=True)), strict=True)
        for at, number in found:
            counts[at] = counts.get(at, 0) + number
        for (number, _, _), column, by_event in zip(measures, columns, totals, strict=True):
            own = _totals(column, ends, *_events(lists, frame, variables[number]))
            for at, total in own:
                by_event[at] = combined(by_event.get(at, NOTHING), total)
    for at in sorted(counts):
        yield at, counts[at], tuple(by_event.get(at, NOTHING) for by_event in totals)


def _events(lists: EventLists, frame: Frame, variable: str) -> tuple[Ints, Ints]:
    """Return the events of a variable in all rows: (row, position)."""
    if variable in frame.singles:
        return np.arange(frame.size), frame.singles[variable]
    rows, numbers = expanded(*frame.closures[variable])
    return rows, lists.lists[variable].positions[numbers]


def _objects(values: Sequence[Any]) -> Any:
    """Return values as an array of Python's numbers, whose sums have any length."""
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _totals(values: Any, ends: Ints, rows: Ints, events: Ints) -> Iterator[tuple[int, Total]]:
    """Yield the totals of events by where their rows end; without values they are counted."""
    if values is not None:
        null: Any = None
        known = values[events] != null
        rows, events = rows[known], events[known]
    order = np.argsort(ends[rows], kind="stable")
    own = np.ones(len(rows), np.int64) if values is None else values[events[order]]
    places, begins, numbers = np.unique(ends[rows[order]], return_index=True, return_counts=True)
    if len(places):
        reduced = (f.reduceat(own, begins).tolist() for f in (np.add, np.minimum, np.maximum))
        totals = zip(numbers.tolist(), *reduced, strict=True)
        yield from zip(places.tolist(), totals, strict=True)


_MANY_ROWS = 1 << 14


@attrs.frozen
class QueryPlan:
    """A query and how it is answered, as it is handed to what runs it."""

    query: Query  # The query
    evaluation: str  # How matches are found
    output: str = "all"  # Which of them are requested
    runs: RunLimit | None = None  # A bound on the runs of a key


def query_matches(
    query: Query,
    table: EventTable,
    evaluation: str,
    output: str,
    limit: RunLimit | None = None,
) -> Iterator[MatchPositions]:
    """Yield the matches of a query on a table of events."""
    evaluation = resolved(query, table, evaluation, output)
    if evaluation == EVENT_LISTS and query.is_composed:
        return _composed_lists(query, table, output)
    if evaluation == EVENT_LISTS:
        return _list_matches(query, table, output)
    sequences = _sequences(query, table, limit)
    if evaluation == BACKTRACKING or output != "all":
        return sequences.searched(output)
    return sequences.matches()


def match_arrays(
    query: Query,
    table: EventTable,
    evaluation: str,
    output: str,
    limit: RunLimit | None = None,
) -> Iterator[MatchArrays] | None:
    """
    Yield the matches of a query, many at a time, as arrays.

    Returns None for queries that only :func:`query_matches` answers.
    """
    evaluation = resolved(query, table, evaluation, output)
    if evaluation == EVENT_LISTS:
        return None
    sequences = _sequences(query, table, limit)
    if evaluation == BACKTRACKING or output != "all":
        return sequences.searched_arrays(output)
    return sequences.arrays()


def _sequences(
    query: Query, table: EventTable, limit: RunLimit | None = None
) -> Sequences | ComposedSequences:
    """Return a SEQ query on a table, by automata."""
    limit, table, query = limit_of(query, limit), numbered(query, table), timed(query)
    if query.is_composed:
        return ComposedSequences(query, table, limit, narrows=True)
    return Sequences(query, table, limit=limit, narrows=True)


def list_frames(query: Query, table: EventTable, output: str = "all") -> Iterator[Frame]:
    """Yield the matches that eventLists finds, many at a time, as columns of positions."""
    return _frames(EventLists.of(query, table), output)


def _frames(lists: EventLists, output: str) -> Iterator[Frame]:
    frames = lists.frames(joined_frames(lists))
    return frames if output == "all" else selected(lists, frames, output)


def chain_frames(
    chain: PatternChain, events: ChainEvents, evaluation: str = EVENT_LISTS
) -> Iterator[Frame]:
    """Yield the matches of a chain, many at a time, as columns of positions by stage."""
    found = chain.on(events)
    typed = found.typed() if evaluation == AUTO else None
    if typed is not None:
        how = resolved(chain.by_runs, typed, AUTO)
        if how != EVENT_LISTS:
            return _run_frames(chain, typed, how)
    lists = found.lists()
    return lists.frames(joined_frames(lists))


def _run_frames(chain: PatternChain, table: EventTable, evaluation: str) -> Iterator[Frame]:
    """Yield the matches of a chain that runs find."""
    arrays = match_arrays(chain.by_runs, table, evaluation, "all")
    if arrays is None:
        every = query_matches(chain.by_runs, table, evaluation, "all")
        while some := list(islice(every, _MANY_ROWS)):
            yield Frame.of_rows(chain.stages, [[at for [at] in m.values()] for m in some])
        return
    for found in arrays:
        yield Frame.of_rows(chain.stages, found.positions.reshape(len(found), -1))


def _list_matches(query: Query, table: EventTable, output: str) -> Iterator[MatchPositions]:
    lists = EventLists.of(query, table)
    return (match for frame in _frames(lists, output) for match in lists.matches(frame))


def _composed_lists(query: Query, table: EventTable, output: str) -> Iterator[MatchPositions]:
    own = "all" if output == "all" else "onePerStart"
    found: Iterable[MatchPositions] = (
        match for plain in plain_queries(query) for match in _list_matches(plain, table, own)
    )
    if output != "all":
        partition = partition_numbers(query, table)
        found = chosen_firsts(found, query.variables, partition, output)
    return (in_order(match, query.variables) for match in found)


def compressed_matches(query: Query, table: EventTable) -> UnlistedMatches:
    """Return all matches of a query on a table, not listed."""
    return _sequences(query, table) if query.form is Form.SEQ else _Elements(query, table)


def last_event(match: MatchPositions) -> int:
    """Return the position of the last event of a match."""
    return max(own[-1] for own in match.values() if own)


def by_last_event(match: MatchPositions) -> tuple[int, list[Sequence[int]]]:
    """Return what matches are sorted by if their order must not tell how they were found."""
    return last_event(match), list(match.values())


_MANY = 1 << 22
"""Matches are counted by lists up to this number; beyond it by the automaton, if it can."""


class _Elements(Compressed):
    """
    The matches of a ``;`` query.

    Lists are the fastest where conditions leave few matches, the automaton where there are many.
    """

    def __init__(self, query: Query, table: EventTable) -> None:
        self._query, self._table = query, table
        self._lists = EventLists.of(query, table)

    @property
    def variables(self) -> list[str]:
        """The variables of matches."""
        return self._query.variables

    @cached_property
    def _runs(self) -> Sequences | None:
        """The automaton if it is to count."""
        sequence = as_sequence(self._query)
        clauses = self._lists.clauses  # some keep runs apart
        if sequence is None or ((clauses.associations or clauses.absent) and not self._are_many()):
            return None
        order = latest_element_first(self._query, self._table)
        return Sequences(sequence, self._table, order=order)

    def _are_many(self) -> bool:
        rows = 0
        for frame in self._frames():
            rows += frame.size
            if rows > _MANY:
                return True
        return False

    def _frames(self) -> Iterator[Frame]:
        return _frames(self._lists, "all")

    def matches(self) -> Iterator[MatchPositions]:
        """Yield the matches lazily."""
        return (match for frame in self._frames() for match in self._lists.matches(frame))

    def totals(self, measures: Sequence[MeasuredValues]) -> Whole:
        """Return the number of matches, and the requested totals of the measures."""
        return super().totals(measures) if self._runs is None else self._runs.totals(measures)

    def totals_by_event(self, measures: Sequence[MeasuredValues]) -> Iterator[Ended]:
        """Yield the same for each event that completes matches, its position first."""
        by_event = super().totals_by_event if self._runs is None else self._runs.totals_by_event
        return by_event(measures)

    def weighed(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended]:
        """Yield the totals of whole numbers, from the frames of all matches."""
        return _ended(self._lists, self._frames(), measures)

    def roots_by_event(self, numbers: Sequence[int] | None = None) -> Iterator[Roots]:
        """Yield the position of each event that completes matches, and the nodes of these."""
        return self._listed_roots() if self._runs is None else self._runs.roots_by_event()

    def _listed_roots(self) -> Iterator[Roots]:
        ending: dict[int, list[Node]] = {}
        known: dict[tuple[tuple[int, int], ...], Node] = {}
        for match in sorted(self.matches(), key=lambda match: list(match.values())):
            way = [(n, at) for n, own in enumerate(match.values()) for at in own]
            node: Node | None = None
            for size, event in enumerate(way, 1):
                node = known.setdefault(tuple(way[:size]), (*event, node))
            assert node is not None
            ending.setdefault(way[-1][1], []).append(node)
        yield from ending.items()


UnlistedMatches = Sequences | ComposedSequences | _Elements

_Number = TypeVar("_Number", int, float)


@attrs.frozen
class Observed:
    """What an evaluation did."""

    evaluation: str  # Its name
    matches: int  # How many matches it found
    milliseconds: float  # The CPU time it took
    # By variable, how many candidates a join tested, or how often an event was tried on a run whose
    # last event is of the variable; a search counts them all under "".
    met: dict[str, int]
    # By variable of their last event, how many runs became part of an equal one, and how many were
    # alive at most; empty without an automaton.
    merged: dict[str, int] = attrs.field(factory=dict)
    most: dict[str, int] = attrs.field(factory=dict)
    mean: dict[str, float] = attrs.field(factory=dict)  # How many were alive on average
    order: tuple[str, ...] = ()  # The order in which elements were joined


def observed(query: Query, table: EventTable, evaluation: str, output: str = "all") -> Observed:
    """
    Evaluate a query; return what that took, not the matches.

    A composed query is evaluated as the plain ones that it stands for, and they are added up.
    """
    begin = time.process_time()
    table, query = numbered(query, table), timed(query)
    every = [_observed(plain, table, evaluation, output) for plain in plain_queries(query)]
    found = _added(every, query.variables)
    if query.is_composed and output != "all":  # the first matches of some words are not the first
        matches = sum(1 for _ in query_matches(query, table, evaluation, output))
        found = attrs.evolve(found, matches=matches)
    return attrs.evolve(found, milliseconds=(time.process_time() - begin) * 1e3)


def _observed(query: Query, table: EventTable, evaluation: str, output: str) -> Observed:
    if evaluation == EVENT_LISTS:
        return _joined(query, table, output)
    if evaluation == BACKTRACKING or output != "all":
        matches, met = Sequences(query, table, narrows=True).watched_search(output)
        return Observed(BACKTRACKING, matches, 0.0, {"": met})
    matches, runs = Sequences(query, table, narrows=True).watched_runs()

    def by_name(own: Sequence[_Number]) -> dict[str, _Number]:
        return dict(zip(query.variables, own, strict=True))

    counts = by_name(runs.met), by_name(runs.merged), by_name(runs.most)
    return Observed(evaluation, matches, 0.0, *counts, by_name(runs.mean))


def _added(every: Sequence[Observed], variables: Sequence[str]) -> Observed:
    def total(of: Callable[[Observed], Mapping[str, _Number]]) -> dict[str, _Number]:
        known = [of(own) for own in every]
        names = [n for n in ("", *variables) if any(n in own for own in known)]
        return {name: sum(own[name] for own in known if name in own) for name in names}

    return Observed(
        every[0].evaluation,
        sum(own.matches for own in every),
        0.0,
        total(lambda own: own.met),
        total(lambda own: own.merged),
        total(lambda own: own.most),
        total(lambda own: own.mean),
        max((own.order for own in every), key=len),
    )


def _joined(query: Query, table: EventTable, output: str) -> Observed:
    lists = EventLists.of(query, table)
    told: list[bytes] = []
    frames = lists.frames(joined_frames(lists, told.append))
    if output != "all":
        frames = selected(lists, frames, output)
    matches = sum(frame.size for frame in frames)
    met = lists.met
    if told:
        numbers = np.frombuffer(told[0], np.int64).tolist()
        met = dict(zip(lists.order, numbers, strict=True))
    return Observed(EVENT_LISTS, matches, 0.0, dict(met), order=lists.order)
