# SPDX-License-Identifier: Apache-2.0
"""Counts the matches of patterns in the kernel, without listing them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.pattern_runs import live_slots
from pyflinkcep.engines.compressed.payloads import NO_WEIGHTS, Weighing
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.time import MAX_WATERMARK

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = ["Counted", "KernelPatternCounter", "KeyedCounts", "KeyedEvents"]


@attrs.frozen(eq=False)
class KeyedEvents:
    """
    The events of several keys, key by key.

    Attributes
    ----------
    times : array of int64, epoch milliseconds
        The events' times, ascending within each key.
    bits : array of int64 or None
        The answers of conditions known beforehand; see :meth:`Kernel.run`.
    bounds : array of int64
        Where the events of each key begin, and where those of the last end.
    held : int
        How many of each key's events were processed earlier, so that their matches are known.
    before : int or None, epoch milliseconds
        The time reached after those; None if there are none.
    watermark : int, epoch milliseconds
        The time reached after the last event.
    """

    times: Any
    bits: Any
    bounds: Any
    held: int = 0
    before: int | None = None
    watermark: int = MAX_WATERMARK


@attrs.frozen(eq=False)
class Counted:
    """
    Where matches end, and how many.

    Attributes
    ----------
    places : array of int64
        The position of the event that completes matches; for those that end with the watermark, the
        negative of the position after the key's last event.
    counts, weights : list of int
        The numbers of matches, and their weights.
    begun, deadline : int or None, epoch milliseconds
        When the last key's first live partial match began, and when the first window of one ends.
    """

    places: Any
    counts: list[int]
    weights: list[int] | None
    begun: int | None
    deadline: int | None


@attrs.frozen(eq=False)
class KernelPatternCounter:
    """
    A pattern, ready to count; conditions on one event may be functions.

    Attributes
    ----------
    kernel : _kernel.Kernel
        The pattern's kernel.
    """

    kernel: _kernel.Kernel
    _live: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, nfa: NFA, expressions: CompiledExpressions | None) -> KernelPatternCounter | None:
        """Return the counter of a pattern that can be compressed; None if there is no kernel."""
        kernel = make_kernel(nfa, known_bits(nfa.atoms), sets_timers=False, expressions=expressions)
        if kernel is None:
            return None
        live = {} if expressions is None else live_slots(nfa, expressions)
        return cls(kernel, tuple(live.get(name, ()) for name in nfa.tables))

    def over(self, events: KeyedEvents) -> KeyedCounts:
        """Return the counter of the matches of events, which `kernel` must know."""
        return KeyedCounts(self, events)

    def count(self, events: KeyedEvents, weighing: Weighing = NO_WEIGHTS) -> Counted:
        """Return where the matches of events end, their numbers and weights."""
        found, begun, deadline = self.kernel.count(
            self._live,
            events.times,
            events.bits,
            events.bounds,
            events.held,
            events.before,
            events.watermark,
            *weighing,
        )
        places, counts, weights = found
        return Counted(np.frombuffer(places, np.int64), counts, weights, begun, deadline)


@attrs.define(eq=False)
class KeyedCounts:
    """
    The matches of keys, counted and weighed.

    Attributes
    ----------
    counter : KernelPatternCounter
        The pattern.
    events : KeyedEvents
        The events.
    last : Counted or None
        The last count.
    """

    counter: KernelPatternCounter
    events: KeyedEvents
    last: Counted | None = None

    def counts(self) -> Iterator[tuple[int, int]]:
        """Yield where matches end, as in :class:`Counted`, and their number."""
        for place, count, _ in self._weighed(NO_WEIGHTS):
            yield place, count

    def sums(self, stage: int, weights: Any) -> Iterator[tuple[int, int, int]]:
        """Yield where matches end, their number, and the weight of a stage's events in them."""
        return self._weighed((weights, stage, False))

    def greatest(self, stage: int, ranks: Any) -> Iterator[tuple[int, int, int]]:
        """Yield the same with the greatest rank of the stage's events."""
        return self._weighed((ranks, stage, True))

    def _weighed(self, weighing: Weighing) -> Iterator[tuple[int, int, int]]:
        self.last = found = self.counter.count(self.events, weighing)
        weights = found.counts if found.weights is None else found.weights
        return zip(found.places.tolist(), found.counts, weights, strict=True)
