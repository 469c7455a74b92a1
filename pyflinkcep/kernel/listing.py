# SPDX-License-Identifier: Apache-2.0
"""List the matches of SEQ queries in the kernel."""

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

__all__ = ["KernelLister"]

_LISTING = "matches are listed"
_FIRST, _MOST = 1 << 10, 1 << 17
"""How many events to list at a time: few at first, for nobody may want more."""


@attrs.frozen(eq=False)
class KernelLister:
    """
    A SEQ query on a table of events, ready to list its matches.

    Attributes
    ----------
    events : SequenceEvents
        The events.
    """

    events: SequenceEvents
    _spec: tuple[Any, ...]
    _ends: Any

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable) -> KernelLister | None:
        """Return the lister of a query; None if the plain path must do."""
        if compiled_module() is None or not has_bits(automaton):
            return None
        try:
            with naming_memory_errors(_LISTING):
                events = SequenceEvents.of(automaton, table)
        except OverflowError:  # a number of more than 64 bits
            return None
        ends = None if table.ends is None else np.asarray(table.ends, np.uint8)
        return cls(events, query_spec(automaton), ends)

    def matches(
        self, partitions: Iterable[Sequence[int]], begun: list[int] | None = None
    ) -> Iterator[MatchArrays]:
        """
        Yield the matches of partitions, some at a time, found when they are asked for.

        Parameters
        ----------
        partitions : iterable of sequence of int
            The positions of each partition's events.
        begun : list of int, optional
            Gets for each partition the position at which the first run still alive began.
        """
        with naming_memory_errors(_LISTING):
            lister = self._made()
            lister.open(begun is not None, *self.events.streams(partitions, self._ends))
        most = _FIRST
        while True:
            with naming_memory_errors(_LISTING):
                found = lister.next(most)
            matches = MatchArrays(*map(np.frombuffer, found, (np.int64, np.int64, np.int32)))
            if not len(matches):
                break
            yield matches
            most = min(2 * most, _MOST)
        if begun is not None:
            begun += np.frombuffer(lister.begun(), np.int64).tolist()

    def _made(self) -> Any:
        """Return a lister of its own for each call: several may take turns."""
        lister = compiled_module().Lister(*self._spec)
        lister.set_events(len(self.events), self.events.fields)
        return lister
