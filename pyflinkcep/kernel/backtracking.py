# SPDX-License-Identifier: Apache-2.0
"""Search for the matches of SEQ queries in the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    _spec: tuple[Any, ...]
    _ends: Any

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> KernelSearch | None:
        """Return the search for a query's matches; None if the plain path must do."""
        if compiled_module() is None or not has_bits(automaton):
            return None
        if len(table.times) > _MOST_EVENTS:
            return None
        try:
            with naming_memory_errors(_SEARCHING):
                events = SequenceEvents.of(automaton, table)
        except OverflowError:  # a number of more than 64 bits
            return None
        ends = None if table.ends is None else np.asarray(table.ends, np.uint8)
        return cls(events, query_spec(automaton), ends)

    def matches(
        self,
        partitions: Iterable[Sequence[int]],
        output: str,
        watermark: int | None = None,
        undecided: list[int] | None = None,
    ) -> Iterator[MatchArrays]:
        """
        Yield the matches of partitions, some at a time, found when they are asked for.

        Parameters
        ----------
        partitions : iterable of sequence of int
            The positions of each partition's events.
        output : {"all", "onePerStart", "nonOverlapping"}
            Which matches.
        watermark : int or None, milliseconds
            The time up to which the events are all there; None if no more will come.
        undecided : list of int, optional
            Gets for each partition the position of the start at which its search stopped, if any.
        """
        with naming_memory_errors(_SEARCHING):
            search = self._made()
            given = None if output == "all" else watermark
            search.turn_to(
                _OUTPUTS.index(output), given, *self.events.streams(partitions, self._ends)
            )
        most = _FIRST
        while True:
            with naming_memory_errors(_SEARCHING):
                *found, stopped = search.find(most)
            matches = MatchArrays(*map(np.frombuffer, found, (np.int64, np.int64, np.int32)))
            if not len(matches):
                break
            yield matches
            most = min(2 * most, _MOST)
        if undecided is not None:
            undecided += np.frombuffer(stopped, np.int64).tolist()

    def _made(self) -> Any:
        """Return a search of its own for each call: several may take turns."""
        search = compiled_module().Backtracker(*self._spec)
        search.set_events(len(self.events), self.events.fields)
        return search
