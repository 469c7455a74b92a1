# SPDX-License-Identifier: Apache-2.0
"""A query on a table of events, by the requested evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Protocol

from pyflinkcep.engines.by_data import resolved
from pyflinkcep.engines.choice import AUTO, BACKTRACKING, EVENT_LISTS
from pyflinkcep.engines.composed import ComposedSequences, PlainQueries, in_order, whole_matches
from pyflinkcep.engines.compressed.arrays import MatchArrays
from pyflinkcep.engines.compressed.counting import Total, added
from pyflinkcep.engines.compressed.nodes import Node
from pyflinkcep.engines.compressed.payloads import MeasuredValues
from pyflinkcep.engines.event_windows import limit_of, numbered, timed
from pyflinkcep.engines.first_matches import chosen_firsts, partition_numbers
from pyflinkcep.engines.list_totals import ended_frames
from pyflinkcep.engines.lists.bridge import joined_frames, kernel_split
from pyflinkcep.engines.lists.chain import ChainEvents, PatternChain
from pyflinkcep.engines.lists.frame import Frame
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.selecting import selected
from pyflinkcep.engines.sequences.elements import as_sequence, latest_element_first
from pyflinkcep.engines.sequences.evaluation import MatchPositions, Sequences
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Form, Query

__all__ = [
    "Compressed",
    "MatchPositions",
    "by_last_event",
    "chain_frames",
    "compressed_matches",
    "last_event",
    "list_frames",
    "match_arrays",
    "query_matches",
]


_MANY_ROWS = 1 << 14


class Compressed(Protocol):
    """All matches of a query, not listed."""

    @property
    def variables(self) -> Sequence[str]:
        """The variables of matches."""

    def matches(self) -> Iterator[MatchPositions]:
        """Yield the matches lazily."""

    def totals(self, measures: Sequence[MeasuredValues]) -> tuple[int, tuple[Total, ...]]:
        """Return the number of matches, and the requested totals of the measures."""

    def totals_by_event(
        self, measures: Sequence[MeasuredValues]
    ) -> Iterator[tuple[int, int, tuple[Total, ...]]]:
        """Yield the same for each event that completes matches, its position first."""

    def roots_by_event(self) -> Iterator[tuple[int, list[Node]]]:
        """Yield the position of each event that completes matches, and the nodes of these."""


def query_matches(
    query: Query,
    table: EventTable,
    evaluation: str,
    output: str,
    limit: RunLimit | None = None,
) -> Iterator[MatchPositions]:
    """
    Yield the matches of a query on a table of events.

    Parameters
    ----------
    query : Query
        The query.
    table : EventTable
        The events.
    evaluation : {"auto", "nfa", "backtracking", "eventLists"}
        What :func:`~pyflinkcep.engines.choice.chosen` chose; "auto" to choose by the events.
    output : {"all", "onePerStart", "nonOverlapping"}
        Which matches to yield.
    limit : RunLimit, optional
        A bound on the runs of ``nfa``.
    """
    evaluation = resolved(query, table, evaluation, output)
    if evaluation == EVENT_LISTS and query.is_composed:
        return _composed_lists(query, table, output)
    if evaluation == EVENT_LISTS:
        return _list_matches(query, table, output)
    sequences = _sequences(query, table, limit)
    if evaluation == BACKTRACKING or output != "all":
        return sequences.searched(output)
    return sequences.run()


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
        return ComposedSequences(PlainQueries(query), table, limit, narrows=True)
    return Sequences(query, table, limit=limit, narrows=True)


def list_frames(query: Query, table: EventTable, output: str = "all") -> Iterator[Frame]:
    """Yield the matches that eventLists finds, many at a time, as columns of positions."""
    return _frames(EventLists.of(query, table, kernel_split()), output)


def _frames(lists: EventLists, output: str) -> Iterator[Frame]:
    frames = lists.frames(joined_frames(lists))
    return frames if output == "all" else selected(lists, frames, output)


def chain_frames(
    chain: PatternChain, events: ChainEvents, evaluation: str = EVENT_LISTS
) -> Iterator[Frame]:
    """
    Yield the matches of a chain, many at a time, as columns of positions by stage.

    Parameters
    ----------
    chain : PatternChain
        The chain.
    events : ChainEvents
        The events.
    evaluation : str
        How matches are found; "auto" if the events decide, among the evaluations of its query.
    """
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
    lists = EventLists.of(query, table, kernel_split())
    return (match for frame in _frames(lists, output) for match in lists.matches(frame))


def _composed_lists(query: Query, table: EventTable, output: str) -> Iterator[MatchPositions]:
    own = "all" if output == "all" else "onePerStart"
    found = whole_matches(query, lambda plain: _list_matches(plain, table, own))
    if output != "all":
        partition = partition_numbers(query, table)
        found = chosen_firsts(found, query.variables, partition, output)
    return (in_order(match, query.variables) for match in found)


def compressed_matches(query: Query, table: EventTable) -> Compressed:
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


class _Elements:
    """
    The matches of a ``;`` query.

    Lists are the fastest where conditions leave few matches, the automaton where there are many.

    Parameters
    ----------
    query : Query
        The query.
    table : EventTable
        The events.
    """

    def __init__(self, query: Query, table: EventTable) -> None:
        self.variables = query.variables
        self._query, self._table = query, table
        self._lists = EventLists.of(query, table, kernel_split())

    @cached_property
    def _runs(self) -> Sequences | None:
        """The automaton if it is to count."""
        sequence = as_sequence(self._query)
        if sequence is None or (self._joins_events and not self._are_many()):
            return None
        order = latest_element_first(self._query, self._table)
        return Sequences(sequence, self._table, order=order)

    @property
    def _joins_events(self) -> bool:
        """Whether conditions keep runs apart."""
        return bool(self._lists.clauses.associations or self._lists.clauses.absent)

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

    def totals(self, measures: Sequence[MeasuredValues]) -> tuple[int, tuple[Total, ...]]:
        """Return the number of matches, and the requested totals of the measures."""
        if self._runs is not None:
            return self._runs.totals(measures)
        return added(self.totals_by_event(measures), len(measures))

    def totals_by_event(
        self, measures: Sequence[MeasuredValues]
    ) -> Iterator[tuple[int, int, tuple[Total, ...]]]:
        """Yield the same for each event that completes matches, its position first."""
        if self._runs is not None:
            return self._runs.totals_by_event(measures)
        return ended_frames(self._lists, self._frames(), measures)

    def roots_by_event(self) -> Iterator[tuple[int, list[Node]]]:
        """Yield the position of each event that completes matches, and the nodes of these."""
        return self._listed_roots() if self._runs is None else self._runs.roots_by_event()

    def _listed_roots(self) -> Iterator[tuple[int, list[Node]]]:
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
