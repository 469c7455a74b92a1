# SPDX-License-Identifier: Apache-2.0
"""
The first matches of starts, among those of the plain queries of a composed one.

Each plain query has a first match of a start, in the order of its search. Of these that is first
which takes an event where the others skip it, begins a component where they take it for a loop, or
begins the component that the pattern has earlier; and a match comes before what it goes on to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyflinkcep.engines.sequences.evaluation import MatchPositions
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.shapes import variable_of

__all__ = ["chosen_firsts", "partition_numbers"]

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
    """
    Yield the first match of each start, or one match after another.

    Parameters
    ----------
    found : iterable of dict
        The first match of each start, of each of the plain queries.
    variables : sequence of str
        The components, in the order of the pattern.
    partition : sequence of int
        The partition of each event.
    output : {"onePerStart", "nonOverlapping"}
        Which are requested.
    """
    places = {name: number for number, name in enumerate(variables)}
    first: dict[int, tuple[_Way, MatchPositions]] = {}
    for match in found:
        way = _way(match, places)
        start = way[0][0]
        if start not in first or way < first[start][0]:
            first[start] = way, match
    ended: dict[int, int] = {}
    for start in sorted(first):
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
