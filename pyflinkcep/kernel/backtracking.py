# SPDX-License-Identifier: Apache-2.0
"""Search for the matches of SEQ queries in the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.compact.arrays import MatchArrays
from pyflinkcep.kernel.bridge import compiled_module
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.kernel.sequences import SequenceEvents, has_bits, query_spec
from pyflinkcep.nfa.sase_compiler import SaseAutomaton
from pyflinkcep.sase.table import EventTable

__all__ = ["KernelSearch"]

_OUTPUTS = ("all", "onePerStart", "nonOverlapping")
"""In the order of ``backtracking.h``."""

_FIRST, _MOST = 1 << 10, 1 << 17
"""How many events of matches to hand over at a time: few at first, for nobody may want more."""

_MOST_EVENTS = (1 << 31) - 3
_SEARCHING = "matches are searched for"


@attrs.frozen(eq=False)
class KernelSearch:
    """
    A SEQ query on a table of events, ready to be searched for.

    Attributes
    ----------
    events : SequenceEvents
        The events.
    """

    events: SequenceEvents
    _search: Any

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> KernelSearch | None:
        """Return the search for a query's matches; None if the plain path must do."""
        module = compiled_module()
        if module is None or not has_bits(automaton) or len(table.times) > _MOST_EVENTS:
            return None
        try:
            with naming_memory_errors(_SEARCHING):
                events = SequenceEvents.of(automaton, table)
                search = module.Backtracker(*query_spec(automaton))
                search.set_events(len(events), events.fields)
        except OverflowError:  # a number of more than 64 bits
            return None
        return cls(events, search)

    def matches(
        self, positions: Sequence[int], output: str, watermark: int | None = None
    ) -> Iterator[MatchArrays]:
        """
        Yield the matches in a partition, some at a time, found when they are asked for.

        Parameters
        ----------
        positions : sequence of int
            The positions of the partition's events.
        output : {"all", "onePerStart", "nonOverlapping"}
            Which matches.
        watermark : int or None, milliseconds
            The time up to which the events are all there; None if no more will come.
        """
        wanted = _OUTPUTS.index(output)
        given = None if output == "all" else watermark
        with naming_memory_errors(_SEARCHING):
            self._search.turn_to(wanted, given, *self.events.stream(positions))
        most = _FIRST
        while True:
            with naming_memory_errors(_SEARCHING):
                found = self._search.find(most)
            matches = MatchArrays(*map(np.frombuffer, found, (np.int64, np.int64, np.int32)))
            if not len(matches):
                return
            yield matches
            most = min(2 * most, _MOST)

    def undecided(self, positions: Sequence[int]) -> int | None:
        """Return the position of the start at which the search in a partition stopped."""
        at = self._search.undecided
        return None if at is None else positions[at]
