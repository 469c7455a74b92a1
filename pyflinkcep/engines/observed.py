# SPDX-License-Identifier: Apache-2.0
"""What evaluating a query on a table took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import attrs
import numpy as np

from pyflinkcep.engines.choice import BACKTRACKING, EVENT_LISTS
from pyflinkcep.engines.event_windows import numbered, timed
from pyflinkcep.engines.lists.bridge import joined_frames, kernel_split
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.selecting import selected
from pyflinkcep.engines.queries import query_matches
from pyflinkcep.engines.sequences.evaluation import Sequences
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.alternatives import alternatives as words_of
from pyflinkcep.sase.model import Query

__all__ = ["Observed", "observed"]

_Number = TypeVar("_Number", int, float)


@attrs.frozen
class Observed:
    """
    What an evaluation did.

    Attributes
    ----------
    evaluation : str
        Its name.
    matches : int
        How many matches it found.
    milliseconds : float
        The CPU time it took.
    met : dict of str to int
        By variable, how many candidates a join tested, or how often an event was tried on a run
        whose last event is of the variable; a search counts them all under "".
    merged, most : dict of str to int
        By variable of their last event, how many runs became part of an equal one, and how many
        were alive at most; empty without an automaton.
    mean : dict of str to float
        How many were alive on average.
    order : tuple of str
        The order in which elements were joined.
    """

    evaluation: str
    matches: int
    milliseconds: float
    met: dict[str, int]
    merged: dict[str, int] = attrs.field(factory=dict)
    most: dict[str, int] = attrs.field(factory=dict)
    mean: dict[str, float] = attrs.field(factory=dict)
    order: tuple[str, ...] = ()


def observed(query: Query, table: EventTable, evaluation: str, output: str = "all") -> Observed:
    """
    Evaluate a query; return what that took, not the matches.

    A composed query is evaluated as the plain ones that it stands for, and they are added up.
    """
    begin = time.process_time()
    table, query = numbered(query, table), timed(query)
    every = [_observed(plain, table, evaluation, output) for plain in words_of(query)]
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
    lists = EventLists.of(query, table, kernel_split())
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
