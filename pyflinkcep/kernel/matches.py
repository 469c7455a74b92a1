# SPDX-License-Identifier: Apache-2.0
"""SEQ queries and their matches, in the form of the kernel's searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.compact.arrays import MatchArrays
from pyflinkcep.kernel.bridge import compiled_module
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.kernel.sequences import SequenceEvents, has_bits, query_spec
from pyflinkcep.nfab.compiler import SaseAutomaton
from pyflinkcep.sase.table import EventTable

__all__ = ["KernelQuery", "portions"]

_FIRST, _MOST = 1 << 10, 1 << 17
"""How many events of matches to hand over at a time: few at first, since the caller may stop
early."""


@attrs.frozen(eq=False)
class KernelQuery:
    """
    A SEQ query on a table of events.

    Attributes
    ----------
    events : SequenceEvents
        The events.
    """

    events: SequenceEvents
    _spec: tuple[Any, ...]
    _ends: Any

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable, doing: str) -> KernelQuery | None:
        """Return a query; None if only the plain path can run it. `doing` is for errors."""
        if compiled_module() is None or not has_bits(automaton):
            return None
        try:
            with naming_memory_errors(doing):
                events = SequenceEvents.of(automaton, table)
        except OverflowError:  # a number of more than 64 bits
            return None
        ends = None if table.ends is None else np.asarray(table.ends, np.uint8)
        return cls(events, query_spec(automaton), ends)

    def made(self, name: str) -> Any:
        """Return a new object of one of the kernel's types; several may be used in turn."""
        found = getattr(compiled_module(), name)(*self._spec)
        found.set_events(len(self.events), self.events.fields)
        return found

    def streams(self, partitions: Iterable[Sequence[int]]) -> tuple[Any, ...]:
        """Return partitions as :meth:`SequenceEvents.streams` does."""
        return self.events.streams(partitions, self._ends)


def portions(
    find: Callable[[int], tuple[bytes, bytes, bytes]], doing: str
) -> Iterator[MatchArrays]:
    """Yield the kernel's matches in growing portions."""
    most = _FIRST
    while True:
        with naming_memory_errors(doing):
            found = find(most)
        matches = MatchArrays(*map(np.frombuffer, found, (np.int64, np.int64, np.int32)))
        if not len(matches):
            return
        yield matches
        most = min(2 * most, _MOST)
