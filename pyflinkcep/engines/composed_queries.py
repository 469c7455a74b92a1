# SPDX-License-Identifier: Apache-2.0
"""Composed queries on a table of events, by the plain queries that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import (
    NOTHING,
    Compressed,
    Ended,
    MatchArrays,
    MeasuredValues,
    Node,
    Roots,
    Total,
    Whole,
    combined,
)
from pyflinkcep.engines.sequences.evaluation import MatchPositions, Sequences
from pyflinkcep.engines.sequences.runs import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.alternatives import alternatives
from pyflinkcep.sase.model import Query, variable_of

_Way = list[tuple[int, bool, int]]
"""The events of a match: where each is, whether it is a loop's later one, and its component."""


def partition_numbers(query: Query, table: EventTable) -> Sequence[int]:
    """Return the number of each event's partition."""
    numbers = [0] * len(table.times)
    for number, (positions, _) in enumerate(table.partitions(query)):
        for at in positions:
            numbers[at] = number
    return numbers


def chosen_firsts(
    found: Iterable[MatchPositions], variables: Sequence[str], partition: Sequence[int], output: str
) -> Iterator[MatchPositions]:
    """Yield the first match of each start, or one match after another, by partition as others."""
    places = {name: number for number, name in enumerate(variables)}
    first: dict[int, tuple[_Way, MatchPositions]] = {}
    for match in found:
        way = _way(match, places)
        start = way[0][0]
        if start not in first or way < first[start][0]:
            first[start] = way, match
    ended: dict[int, int] = {}
    for start in sorted(first, key=lambda at: (partition[at], at)):
        way, match = first[start]
        if output == "nonOverlapping":
            if start <= ended.get(partition[start], -1):
                continue
            ended[partition[start]] = way[-1][0]
        yield match


def _way(match: MatchPositions, places: dict[str, int]) -> _Way:
    return sorted(
        (at, number > 0, places[variable_of(name)])
        for name, own in match.items()
        for number, at in enumerate(own)
    )


# Matches have no texts, in which equal queries may differ.
plain_queries = lru_cache(maxsize=64)(alternatives)


class ComposedSequences(Compressed):
    """A composed query on a table of events; see :class:`Sequences`, which has the same methods."""

    def __init__(
        self,
        query: Query,
        table: EventTable,
        limit: RunLimit | None = None,
        narrows: bool = False,
    ) -> None:
        self._query, self._table = query, table
        # The plain queries, and the numbers of their components in the composed one.
        self._parts: list[tuple[Sequences, list[int]]] = []
        for plain in plain_queries(query):
            numbers = [self.variables.index(variable_of(name)) for name in plain.variables]
            sequences = Sequences(plain, table, limit=limit, narrows=narrows)
            self._parts.append((sequences, numbers))

    @property
    def variables(self) -> list[str]:
        """The variables that take events."""
        return self._query.variables

    def matches(self, begun: list[int] | None = None) -> Iterator[MatchPositions]:
        """Yield all matches, found by automata; see :meth:`Sequences.matches`."""
        return self._whole(lambda sequences: sequences.matches(begun=begun))

    def searched(
        self, output: str, watermark: int | None = None, undecided: list[int] | None = None
    ) -> Iterator[MatchPositions]:
        """Yield matches found by depth-first search; see :meth:`Sequences.searched`."""
        if output == "all" or len(self._parts) == 1:
            return self._whole(lambda sequences: sequences.searched(output, watermark, undecided))
        return self._firsts(output, watermark, [] if undecided is None else undecided)

    def _firsts(
        self, output: str, watermark: int | None, undecided: list[int]
    ) -> Iterator[MatchPositions]:
        """Yield the first matches of the starts that are decided in each of the queries."""
        every = [
            match
            for sequences, _ in self._parts
            for match in sequences.searched("onePerStart", watermark, undecided)
        ]
        partition = partition_numbers(self._query, self._table)
        stops: dict[int, int] = {}
        for at in undecided:
            stops[partition[at]] = min(at, stops.get(partition[at], at))
        decided = (
            match
            for match in every
            if (at := min(own[0] for own in match.values())) < stops.get(partition[at], at + 1)
        )
        for match in chosen_firsts(decided, self.variables, partition, output):
            yield in_order(match, self.variables)

    def _whole(
        self, find: Callable[[Sequences], Iterator[MatchPositions]]
    ) -> Iterator[MatchPositions]:
        for sequences, _ in self._parts:
            for match in find(sequences):
                yield in_order(match, self.variables)

    def arrays(self) -> Iterator[MatchArrays] | None:
        """Return all matches from the kernel; None if it cannot find them."""
        return self._arrays([sequences.arrays() for sequences, _ in self._parts])

    def searched_arrays(self, output: str) -> Iterator[MatchArrays] | None:
        """Return those of :meth:`searched` from the kernel; None if it cannot find them."""
        if output != "all" and len(self._parts) > 1:
            return None
        return self._arrays([sequences.searched_arrays(output) for sequences, _ in self._parts])

    def _arrays(self, found: list[Iterator[MatchArrays] | None]) -> Iterator[MatchArrays] | None:
        if any(len(set(own)) < len(own) for _, own in self._parts):
            return None  # an array has the events of a component side by side
        known = [arrays for arrays in found if arrays is not None]
        return self._renumbered(known) if len(known) == len(found) else None

    def _renumbered(self, found: list[Iterator[MatchArrays]]) -> Iterator[MatchArrays]:
        for (_, own), arrays in zip(self._parts, found, strict=True):
            numbers = np.array(own, np.int32)
            for matches in arrays:
                yield attrs.evolve(matches, components=numbers[matches.components])

    # --- compressed

    def totals(self, measures: Sequence[MeasuredValues]) -> tuple[int, tuple[Total, ...]]:
        """Return the number of matches, and the requested totals of the measures."""
        whole: Whole = 0, (NOTHING,) * len(measures)
        for sequences, _ in self._parts:
            own, places = _own(measures, sequences.variables)
            whole = _with(whole, *sequences.totals(own), places)
        return whole

    def totals_by_event(self, measures: Sequence[MeasuredValues]) -> Iterator[Ended]:
        """Yield the same for each event that completes matches, its position first."""
        ended: dict[int, Whole] = {}
        nothing = 0, (NOTHING,) * len(measures)
        for sequences, _ in self._parts:
            own, places = _own(measures, sequences.variables)
            for at, count, found in sequences.totals_by_event(own):
                ended[at] = _with(ended.get(at, nothing), count, found, places)
        yield from ((at, *ended[at]) for at in sorted(ended))

    def roots_by_event(self, numbers: Sequence[int] | None = None) -> Iterator[Roots]:
        """Yield the position of each event that completes matches, and the nodes of these."""
        ended: dict[int, list[Node]] = {}
        for sequences, own in self._parts:
            for at, roots in sequences.roots_by_event(own):
                ended.setdefault(at, []).extend(roots)
        yield from ((at, ended[at]) for at in sorted(ended))


def in_order(match: MatchPositions, variables: Sequence[str]) -> MatchPositions:
    """Return a match of a plain query with the events of all iterations by variable."""
    if match.keys() <= set(variables):
        return {variable: match[variable] for variable in variables if variable in match}
    found: dict[str, list[int]] = {}
    for name, own in match.items():
        found.setdefault(variable_of(name), []).extend(own)
    return {variable: sorted(found[variable]) for variable in variables if variable in found}


def _own(
    measures: Sequence[MeasuredValues], variables: Sequence[str]
) -> tuple[list[MeasuredValues], list[int]]:
    """Return the measures of some variables, in each iteration, and the place of each among all."""
    own = [
        ((name, values, function), place)
        for place, (variable, values, function) in enumerate(measures)
        for name in variables
        if variable_of(name) == variable
    ]
    return [measure for measure, _ in own], [place for _, place in own]


def _with(whole: Whole, count: int, found: Sequence[Total], places: Sequence[int]) -> Whole:
    """Return a number of matches and their totals with those that a plain query adds."""
    number, totals = whole[0] + count, list(whole[1])
    for total, place in zip(found, places, strict=True):
        totals[place] = combined(totals[place], total)
    return number, tuple(totals)
