# SPDX-License-Identifier: Apache-2.0
"""Listed matches as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

__all__ = ["MatchArrays"]


@attrs.frozen(eq=False)
class MatchArrays:
    """
    Matches of a SEQ query, one after another.

    Attributes
    ----------
    positions : array of int64
        The positions of their events; those of a match from the oldest to the newest.
    ends : array of int64
        Where each match's events end; they begin where those of the match before it end.
    components : array of int32
        The component of each event; each match has events of all.
    """

    positions: Any
    ends: Any
    components: Any

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.ends)

    def first(self, count: int) -> MatchArrays:
        """Return the first `count` matches."""
        if count >= len(self):
            return self
        events = int(self.ends[count - 1]) if count else 0
        return MatchArrays(self.positions[:events], self.ends[:count], self.components[:events])

    def matches(self, variables: Sequence[str]) -> Iterator[dict[str, list[int]]]:
        """Yield the matches as variable to positions; `variables` are those of the components."""
        taken = self.positions.tolist()
        width = len(variables)
        if len(taken) == width * len(self):  # single events
            for at in range(0, len(taken), width):
                yield {name: [taken[at + n]] for n, name in enumerate(variables)}
            return
        bounds = [*self._begins().tolist(), len(taken)]
        for at in range(0, len(bounds) - 1, width):
            ranges = pairwise(bounds[at : at + width + 1])
            yield {name: taken[a:b] for name, (a, b) in zip(variables, ranges, strict=True)}

    def _begins(self) -> Any:
        """Return where the events of each component of each match begin."""
        begins = np.ones(len(self.positions), bool)
        begins[1:] = self.components[1:] != self.components[:-1]
        begins[self.ends[:-1]] = True
        return np.flatnonzero(begins)
