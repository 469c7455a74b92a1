# SPDX-License-Identifier: Apache-2.0
"""Search for the matches of SEQ queries in the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np

from pyflinkcep.compact.arrays import MatchArrays
from pyflinkcep.kernel.matches import KernelQuery, portions
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.nfab.compiler import SaseAutomaton
from pyflinkcep.sase.table import EventTable

__all__ = ["KernelSearch"]

_OUTPUTS = ("all", "onePerStart", "nonOverlapping")
"""In the order of ``backtracking.h``."""


_MOST_EVENTS = (1 << 31) - 3
_SEARCHING = "matches are searched for"


@attrs.frozen(eq=False)
class KernelSearch:
    """
    A SEQ query on a table of events, ready to search.

    Attributes
    ----------
    query : KernelQuery
        Both.
    """

    query: KernelQuery

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> KernelSearch | None:
        """Return the search for a query's matches; None if only the plain path can run it."""
        if len(table.times) > _MOST_EVENTS:
            return None
        query = KernelQuery.of(automaton, table, _SEARCHING)
        return None if query is None else cls(query)

    def matches(
        self,
        partitions: Iterable[Sequence[int]],
        output: str,
        watermark: int | None = None,
        undecided: list[int] | None = None,
    ) -> Iterator[MatchArrays]:
        """
        Yield the matches of partitions lazily, many at a time.

        Parameters
        ----------
        partitions : iterable of sequence of int
            The positions of each partition's events.
        output : {"all", "onePerStart", "nonOverlapping"}
            Which matches.
        watermark : int or None, milliseconds
            The time up to which all events have arrived; None if no more will come.
        undecided : list of int, optional
            Receives for each partition the position of the start at which its search stopped, if
            any.
        """
        with naming_memory_errors(_SEARCHING):
            search = self.query.made("Backtracker")
            given = None if output == "all" else watermark
            streams = self.query.streams(partitions)
            search.turn_to(_OUTPUTS.index(output), given, *streams)
        yield from portions(search.find, _SEARCHING)
        if undecided is not None:
            undecided += np.frombuffer(search.undecided(), np.int64).tolist()
