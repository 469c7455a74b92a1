# SPDX-License-Identifier: Apache-2.0
"""A matcher around the compiled kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pyflinkcep.engines.flink.nfa.nfa_state import EndCounts
from pyflinkcep.engines.flink.operator.state_counts import StateCounts
from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.matching.matcher import MOST_EVENTS, Items, States, Store, Written
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events, Stretches
from pyflinkcep.time import MAX_WATERMARK

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = ["KernelMatcher"]


class KernelMatcher:
    """
    See :class:`~pyflinkcep.matching.matcher.PatternMatcher`.

    Parameters
    ----------
    kernel : _kernel.Kernel
        The pattern's kernel.
    stages : list of str
        The stages by number.
    processing_time : bool
        Whether the watermark is a clock that conditions may read.
    """

    def __init__(self, kernel: _kernel.Kernel, stages: list[str], processing_time: bool) -> None:
        self._kernel = kernel
        self._stages = stages
        self._processing_time = processing_time
        self._key: Any = None

    def set_events(self, store: Store) -> None:
        """Use another store: the events that handles refer to from now on."""
        self._kernel.set_events(store.row, *store.field_arrays())

    def run(self, stretches: Stretches, continues: bool, key_before: Any) -> Iterator[Found]:
        """Match the stretches of a chunk; yield results as they come."""
        if not continues:
            yield self.finish(key_before)
        events, bounds = stretches.events, stretches.bounds
        columns = (events.times, events.handles, events.base, events.bits)
        at, row = 0, int(bounds[0])
        while at < len(bounds) - 1:
            try:
                at, row, self._key = self._kernel.run(
                    self._key, *columns, bounds, stretches.needed, at, row, MOST_EVENTS
                )
            except CepRuntimeError as error:
                raise error.at_key(stretches.key_of(self._kernel.failed)) from error.__cause__
            yield self.take()

    def finish(self, key: Any) -> Found:
        """End the open key with its final watermark, if one is open."""
        if self._key is not None:
            try:
                self._kernel.advance(self._key, MAX_WATERMARK)
            except CepRuntimeError as error:
                raise error.at_key(key) from error.__cause__
            self._key = None
        return self.take()

    def live(self) -> list[int]:
        """Return the handles of the events that the open key holds."""
        return [] if self._key is None else self._key.live_handles()

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        if self._processing_time:
            self._kernel.helper.processing_time = watermark
        try:
            written = self._kernel.run_page(
                events.times,
                events.handles,
                events.base,
                events.bits,
                items.positions,
                items.starts,
                items.ends,
                page.numbers,
                np.r_[0, np.cumsum(page.lengths)],
                np.r_[0, np.cumsum(page.counts)],
                first_held,
                watermark,
            )
        except CepRuntimeError as error:
            raise error.at_key(items.key_of(self._kernel.failed)) from error.__cause__
        return Written(*(np.frombuffer(data, np.int64) for data in written))

    def take(self) -> Found:
        """Return the results so far, and clear them."""
        *arrays, dropped = self._kernel.take_found()
        window, skipped, *by_event = self._kernel.take_ended()
        return Found.of(self._stages, arrays, dropped, EndCounts(window, skipped, by_event))

    def count(self, page: States) -> StateCounts:
        """Return what a page's states hold."""
        held, largest, oldest, *by_stage = self._kernel.count_states(page.numbers, page.lengths)
        return StateCounts(held, largest, oldest, by_stage)
