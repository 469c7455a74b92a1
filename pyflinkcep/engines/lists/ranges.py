# SPDX-License-Identifier: Apache-2.0
"""Ranges of numbers, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.table import Coded
from pyflinkcep.kernel.module import compiled_module, naming_memory_errors

Ints = np.ndarray[Any, np.dtype[np.int64]]

Stretches = tuple[Ints, Ints]
"""Where stretches of events begin and end, in ascending order."""


_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def later(times: Ints, milliseconds: int) -> Ints:
    """Return times moved into the future; those beyond the last time are the last."""
    return np.where(times > _MOST - milliseconds, _MOST, times + milliseconds)


def earlier(times: Ints, milliseconds: int) -> Ints:
    """Return times moved into the past; those before the first time are the first."""
    return np.where(times < _LEAST + milliseconds, _LEAST, times - milliseconds)


def expanded(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of all ranges in a row: (range of each, number)."""
    counts = np.maximum(high - low, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return rows, low[rows] + np.arange(len(rows)) - begins[rows]


_SAMPLE = 4096

JOINING = "event lists are joined"


@attrs.frozen(eq=False)
class TypeCodes:
    """The types of events as numbers."""

    codes: Any  # The code of each event's type, or of another type
    lists: Any  # For each code the index of its type in `names`, or -1
    names: Sequence[str]  # The types to find

    @classmethod
    def of(cls, types: Sequence[Any], wanted: Iterable[str]) -> TypeCodes:
        """Return the codes of events' types."""
        numbers = {name: number for number, name in enumerate(dict.fromkeys(wanted))}
        if isinstance(types, Coded):
            codes = np.asarray(types.codes)
            lists = np.array([numbers.get(name, -1) for name in types.names], np.int32)
        else:
            codes = np.fromiter(map(numbers.get, types, repeat(-1)), np.int32, len(types))
            lists = np.arange(len(numbers), dtype=np.int32)
        return cls(codes, lists, list(numbers))

    @property
    def numbers(self) -> Any:
        """For each event the index of its type in `names`, or -1."""
        return np.append(self.lists, np.int32(-1))[self.codes]  # where the code is -1 too

    def counts(self) -> dict[str, int]:
        """Return how often each type occurs."""
        known = np.bincount(self.codes + 1, minlength=len(self.lists) + 1)  # -1 is no type
        counts = dict.fromkeys(self.names, 0)
        for code in np.flatnonzero(self.lists >= 0).tolist():
            counts[self.names[self.lists[code]]] += int(known[code + 1])
        return counts

    def sampled(self) -> dict[str, int]:
        """Return about how often each type occurs, by sample."""
        step = len(self.codes) // _SAMPLE + 1
        counts = attrs.evolve(self, codes=self.codes[::step]).counts()
        return {name: step * count for name, count in counts.items()}

    def positions(self, stretches: Stretches | None = None) -> dict[str, Ints]:
        """Return the positions of each type's events; with stretches, of those within them."""
        module = compiled_module()
        if module is None:
            return self.plain_positions(stretches)
        codes, (low, high) = np.ascontiguousarray(self.codes, np.int32), stretches or (None, None)
        with naming_memory_errors(JOINING):
            found = module.split(codes, self.lists, len(self.names), low, high)
        return dict(zip(self.names, (np.frombuffer(own, np.int64) for own in found), strict=True))

    def plain_positions(self, stretches: Stretches | None) -> dict[str, Ints]:
        """Return the same without the kernel."""
        if stretches is None:
            return {name: self.positions_of(name) for name in self.names}
        places = expanded(*stretches)[1]
        inside = attrs.evolve(self, codes=self.codes[places])
        return {name: places[inside.positions_of(name)] for name in self.names}

    def positions_of(self, name: str) -> Ints:
        """Return the positions of a type's events."""
        codes = np.flatnonzero(self.lists == self.names.index(name))
        own = self.codes == codes[0] if len(codes) == 1 else np.isin(self.codes, codes)
        return np.flatnonzero(own)
