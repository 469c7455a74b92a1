# SPDX-License-Identifier: Apache-2.0
"""The order in which elements are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.candidates import ElementList
from pyflinkcep.engines.lists.clauses import Clauses, named
from pyflinkcep.engines.lists.frame import Conditions, Frame

__all__ = ["join_order"]

_SAMPLE = 256


def join_order(
    lists: Mapping[str, ElementList], clauses: Clauses, conditions: Conditions
) -> tuple[str, ...]:
    """
    Return the single elements in join order.

    The join starts at the rarest and goes on to the left or the right, each time to the element
    that keeps fewer events under the conditions it makes decidable; their selectivity is measured
    on a sample.
    """
    singles = [part.variable for part in clauses.query.positive if not part.repeats]
    counts = [len(lists[name]) for name in singles]
    if not all(counts):
        return tuple(singles)
    costs = _Costs(lists, clauses, conditions, set(singles))
    left = right = counts.index(min(counts))
    order = [singles[left]]
    while left > 0 and right + 1 < len(singles):
        if costs.of(singles[left - 1], order) < costs.of(singles[right + 1], order):
            left -= 1
            order.append(singles[left])
        else:
            right += 1
            order.append(singles[right])
    return (*order, *singles[:left][::-1], *singles[right + 1 :])


@attrs.frozen(eq=False)
class _Costs:
    """Estimates how many events of an element survive a join."""

    lists: Mapping[str, ElementList]
    clauses: Clauses
    conditions: Conditions
    singles: set[str]
    _selectivities: dict[int, float] = attrs.field(factory=dict)

    def of(self, name: str, bound: Sequence[str]) -> float:
        """Return the estimate for an element after others are bound."""
        cost = float(len(self.lists[name]))
        known = {*bound, name}
        for number, clause in enumerate(self.clauses.associations):
            names = set(named(clause))
            if name in names and names <= known:
                cost *= self._selectivity(number)
        return cost

    def _selectivity(self, number: int) -> float:
        """Return the share of randomly chosen events for which a condition holds."""
        if number not in self._selectivities:
            clause = self.clauses.associations[number]
            chosen = {}
            for place, name in enumerate(named(clause)):
                positions = self.lists[name].positions
                chosen[name] = positions[(_at_random(number, place) * len(positions)).astype(int)]
            held = self.conditions.holding(clause, Frame(_SAMPLE, chosen))
            self._selectivities[number] = (np.count_nonzero(held) + 1) / (_SAMPLE + 1)
        return self._selectivities[number]


@lru_cache(maxsize=64)
def _at_random(number: int, place: int) -> Any:
    """Return where to look, from 0 to 1, for a condition's element; the same each time."""
    return np.random.default_rng((number, place)).random(_SAMPLE)
