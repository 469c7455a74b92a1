# SPDX-License-Identifier: Apache-2.0
"""What evaluating a query on a table took."""

from __future__ import annotations

import time

import attrs
import numpy as np

from pyflinkcep.engines.choice import BACKTRACKING, EVENT_LISTS
from pyflinkcep.engines.lists.bridge import joined_frames, kernel_split
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.selecting import selected
from pyflinkcep.engines.sequences.evaluation import Sequences
from pyflinkcep.engines.sequences.watched import RunCounts
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Query

__all__ = ["Observed", "observed"]


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
    runs : RunCounts or None
        What became of runs, if there were any.
    order : tuple of str
        The order in which elements were joined.
    """

    evaluation: str
    matches: int
    milliseconds: float
    met: dict[str, int]
    runs: RunCounts | None = None
    order: tuple[str, ...] = ()


def observed(query: Query, table: EventTable, evaluation: str, output: str = "all") -> Observed:
    """Evaluate a plain query in SEQ or with ``;``; return what that took, not the matches."""
    begin = time.process_time()
    if evaluation == EVENT_LISTS:
        found = _joined(query, table, output)
    elif evaluation == BACKTRACKING or output != "all":
        matches, met = Sequences(query, table, narrows=True).watched_search(output)
        found = Observed(BACKTRACKING, matches, 0.0, {"": met})
    else:
        matches, counts = Sequences(query, table, narrows=True).watched_runs()
        by_name = dict(zip(query.variables, counts.met, strict=True))
        found = Observed(evaluation, matches, 0.0, by_name, counts)
    return attrs.evolve(found, milliseconds=(time.process_time() - begin) * 1e3)


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
