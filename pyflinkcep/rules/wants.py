# SPDX-License-Identifier: Apache-2.0
"""Which events a rule wants, by the conditions that hold for them."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from pyflinkcep.engines.flink.nfa.atoms import in_word
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.layout import is_among
from pyflinkcep.tables.order import Rows


@attrs.frozen(eq=False)
class Wanted:
    """The events that a rule wants, in order, with the conditions that hold."""

    places: Rows
    bits: Ints | None  # As of `Events`


def _is_ascending(places: Rows) -> bool:
    return bool((places[1:] >= places[:-1]).all())


@attrs.frozen
class Wants:
    """The conditions of a rule, and which events it cannot use."""

    conditions: tuple[int, ...] = ()  # Their numbers
    bits: tuple[int, ...] = ()  # The bit of each
    # The events that it cannot use, as the bits of the conditions that hold; if 0 is not among
    # them, it wants all, since one without any condition may matter.
    droppable: frozenset[int] = frozenset()

    @classmethod
    def any_of(cls, conditions: tuple[int, ...]) -> Wants:
        """Return what wants the events for which any of some conditions holds."""
        bits = tuple(1 << place for place in range(len(conditions)))
        return cls(conditions, bits, frozenset({0}))

    @property
    def wants_all(self) -> bool:
        """Whether it wants all events."""
        return 0 not in self.droppable

    @property
    def are_any(self) -> bool:
        """Whether it wants exactly the events for which any condition holds."""
        return self.droppable == {0}

    def of(self, holding: Callable[[int], Rows], size: int) -> Wanted:
        """Return the events wanted, given the places, ascending or not, of those that satisfy."""
        held = [holding(number) for number in self.conditions]
        if self.wants_all:
            return Wanted(np.arange(size, dtype=np.int32), self._bits(held, size))
        if max(self.bits, default=0) >> 62:  # too many for pairs of numbers
            bits = self._bits(held, size)
            assert bits is not None
            places = np.flatnonzero(~is_among(bits, self.droppable)).astype(np.int32)
            return Wanted(places, bits[places])
        pairs = np.concatenate(
            [np.zeros(0, np.int64)]
            + [places.astype(np.int64) << 32 | number for number, places in enumerate(held)]
        )
        # In runs that are in order already, if places are those of rows.
        pairs.sort(kind="stable" if all(map(_is_ascending, held)) else None)
        places = (pairs >> 32).astype(np.int32)
        begins = np.flatnonzero(np.r_[True, places[1:] != places[:-1]][: len(places)])
        own = np.asarray(self.bits, np.int64)[pairs & 0xFFFFFFFF]
        bits = np.bitwise_or.reduceat(own, begins) if len(own) else own
        places = places[begins]
        if not self.are_any:
            kept = ~is_among(bits, self.droppable)
            places, bits = places[kept], bits[kept]
        return Wanted(places, bits)

    def _bits(self, held: list[Rows], size: int) -> Ints | None:
        """Return the bits of all events."""
        if not held:
            return None
        count = in_word(max(self.bits))[0] + 1
        words = np.zeros((count, size), np.int64)
        for bit, places in zip(self.bits, held, strict=True):
            word, own = in_word(bit)
            words[word][places] |= own
        return words[0] if count == 1 else np.ascontiguousarray(words.T)
