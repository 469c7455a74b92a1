# SPDX-License-Identifier: Apache-2.0
"""Lists the matches of SEQ queries in the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs
import numpy as np

from pyflinkcep.compact.arrays import MatchArrays
from pyflinkcep.kernel.matches import KernelQuery, portions
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.nfab.compiler import SaseAutomaton
from pyflinkcep.sase.table import EventTable

__all__ = ["KernelLister"]

_LISTING = "matches are listed"


@attrs.frozen(eq=False)
class KernelLister:
    """
    A SEQ query on a table of events, ready to list its matches.

    Attributes
    ----------
    query : KernelQuery
        Both.
    """

    query: KernelQuery

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> KernelLister | None:
        """Return the lister of a query; None if only the plain path can run it."""
        query = KernelQuery.of(automaton, table, _LISTING)
        return None if query is None else cls(query)

    def matches(
        self, partitions: Iterable[Sequence[int]], begun: list[int] | None = None
    ) -> Iterator[MatchArrays]:
        """
        Yield the matches of partitions lazily, many at a time.

        Parameters
        ----------
        partitions : iterable of sequence of int
            The positions of each partition's events.
        begun : list of int, optional
            Receives for each partition the position at which its first live run began.
        """
        with naming_memory_errors(_LISTING):
            lister = self.query.made("Lister")
            lister.open(begun is not None, *self.query.streams(partitions))
        yield from portions(lister.next, _LISTING)
        if begun is not None:
            begun += np.frombuffer(lister.begun(), np.int64).tolist()
