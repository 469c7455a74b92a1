# SPDX-License-Identifier: Apache-2.0
"""The events near the rarest component of a SEQ query, the only ones that can be in a match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.nearness import spans
from pyflinkcep.engines.lists.ranges import Ints
from pyflinkcep.engines.lists.type_codes import TypeCodes
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Query

__all__ = ["Nearness"]

_RARER = 16
"""How many times rarer than another type one must be for a search to pay off."""

_MANY = 1024
"""Partitions of fewer events are not taken apart."""


@attrs.frozen(eq=False, slots=False)
class Nearness:
    """
    Finds what of the partitions of a query can have matches.

    All events of a match, those that a negated component must not have, and those between them,
    are within the window of each of its events, so also of one of the rarest component.

    Parameters
    ----------
    query : Query
        The query.
    table : EventTable
        The events.
    """

    _query: Query
    _table: EventTable

    def of(self, partitions: Iterable[Sequence[int]]) -> Iterator[Sequence[int]]:
        """Yield the stretches of partitions that hold all matches, each a partition of its own."""
        if self._rarest is None:
            yield from partitions
            return
        if not len(self._rarest):
            return
        for positions in partitions:
            yield from self._near(positions, self._rarest)

    @cached_property
    def _rarest(self) -> Ints | None:
        """The events of the rarest component; None if all are about as frequent."""
        types = [part.type for part in self._query.positive]
        codes = TypeCodes.of(self._table.types, types)
        sample = codes.sampled()
        rarest = min(types, key=sample.__getitem__)
        if len(self._table.times) < _MANY or sample[rarest] * _RARER > max(sample.values()):
            return None
        return codes.positions_of(rarest)

    @cached_property
    def _is_rare(self) -> Any:
        flags = np.zeros(len(self._table.times), bool)
        flags[self._rarest] = True
        return flags

    @cached_property
    def _times(self) -> Ints:
        return np.asarray(self._table.times, np.int64)

    def _near(self, positions: Sequence[int], rarest: Ints) -> Iterator[Sequence[int]]:
        if isinstance(positions, range):
            low, high = np.searchsorted(rarest, (positions.start, positions.stop))
            own, times = rarest[low:high] - positions.start, None
        else:
            at = np.asarray(positions, np.int64)
            own, times = np.flatnonzero(self._is_rare[at]), self._times[at]
        if not len(own):
            return
        if self._query.window is None or len(positions) < _MANY:
            yield positions
            return
        if times is None:
            times = self._times[positions.start : positions.stop]  # type: ignore[attr-defined]
        begins, ends = spans(self._query.window, times, own)
        if 2 * int((ends - begins).sum()) > len(positions):
            yield positions
            return
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield positions[begin:end]
