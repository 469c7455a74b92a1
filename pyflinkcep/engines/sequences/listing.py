# SPDX-License-Identifier: Apache-2.0
"""Lists the matches of SEQ queries in the kernel: by merged runs, or run after run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.arrays import MatchArrays
from pyflinkcep.engines.sequences.bridge import SequenceEvents, is_native, query_spec
from pyflinkcep.engines.sequences.compiler import SaseAutomaton
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.kernel.memory import naming_memory_errors
from pyflinkcep.kernel.module import CompiledModule, compiled_module

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = ["KernelLister", "KernelQuery", "KernelSearch"]

_LISTING, _SEARCHING = "matches are listed", "matches are searched for"
_INSTEAD = (
    "count or aggregate them with compressed(), which lists none, write a shorter WITHIN, or "
)
_OUTPUTS = ("all", "onePerStart", "nonOverlapping")
"""In the order of ``backtracking.h``."""

_MOST_EVENTS = (1 << 31) - 3
"""How many events a search can tell apart."""

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
    _module: CompiledModule
    _spec: tuple[Any, ...]
    _ends: Any

    @classmethod
    def of(cls, automaton: SaseAutomaton, table: EventTable, doing: str) -> KernelQuery | None:
        """Return a query; None if only the plain path can run it. `doing` is for errors."""
        module = compiled_module()
        if module is None or not is_native(automaton):
            return None
        try:
            with naming_memory_errors(doing):
                events = SequenceEvents.of(automaton, table)
        except OverflowError:  # a number of more than 64 bits
            return None
        ends = None if table.ends is None else np.asarray(table.ends, np.uint8)
        return cls(events, module, query_spec(automaton), ends)

    def lister(self) -> _kernel.Lister:
        """Return a new lister; several may be used in turn."""
        lister = self._module.Lister(*self._spec)
        lister.set_events(len(self.events), self.events.fields)
        return lister

    def backtracker(self) -> _kernel.Backtracker:
        """Return a new search; several may be used in turn."""
        search = self._module.Backtracker(*self._spec)
        search.set_events(len(self.events), self.events.fields)
        return search

    def streams(self, partitions: Iterable[Sequence[int]]) -> tuple[Any, ...]:
        """Return partitions as :meth:`SequenceEvents.streams` does."""
        return self.events.streams(partitions, self._ends)


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
        self,
        partitions: Iterable[Sequence[int]],
        begun: list[int] | None = None,
        limit: RunLimit | None = None,
        watched: Callable[[bytes], None] | None = None,
    ) -> Iterator[MatchArrays]:
        """
        Yield the matches of partitions lazily, many at a time.

        Parameters
        ----------
        partitions : iterable of sequence of int
            The positions of each partition's events.
        begun : list of int, optional
            Receives for each partition the position at which its first live run began.
        limit : RunLimit, optional
            A bound on the runs of a partition.
        watched : callable, optional
            Receives at the end what became of runs, as the lister's `watched` has it.
        """
        with naming_memory_errors(_LISTING, _INSTEAD):
            lister = self.query.lister()
            if watched is not None:
                lister.watch()
            if limit is not None:
                lister.set_limit(limit.most, limit.exceeded)
            lister.open(begun is not None, *self.query.streams(partitions))
        yield from _portions(lister.next, _LISTING, _INSTEAD)
        if begun is not None:
            begun += np.frombuffer(lister.begun(), np.int64).tolist()
        if watched is not None:
            watched(lister.watched())


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
        met: Callable[[int], None] | None = None,
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
        met : callable, optional
            Receives at the end how often an event was tried on a run.
        """
        with naming_memory_errors(_SEARCHING):
            search = self.query.backtracker()
            given = None if output == "all" else watermark
            streams = self.query.streams(partitions)
            search.turn_to(_OUTPUTS.index(output), given, *streams)
        yield from _portions(search.find, _SEARCHING, "")
        if undecided is not None:
            undecided += np.frombuffer(search.undecided(), np.int64).tolist()
        if met is not None:
            met(search.met())


def _portions(
    find: Callable[[int], _kernel.Match], doing: str, instead: str
) -> Iterator[MatchArrays]:
    """Yield the kernel's matches in growing portions."""
    most = _FIRST
    while True:
        with naming_memory_errors(doing, instead):
            found = find(most)
        matches = MatchArrays(*map(np.frombuffer, found, (np.int64, np.int64, np.int32)))
        if not len(matches):
            return
        yield matches
        most = min(2 * most, _MOST)
