# SPDX-License-Identifier: Apache-2.0
"""The slots of a run that a condition may still read: the paper's table M, and V[t…]."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import attrs

from pyflinkcep.engines.sequences.compiler import SaseAutomaton

__all__ = ["LOOPING", "WAITING", "Liveness"]

LOOPING, WAITING = 1, 2
"""A run may take more events for its last component, wait for the next one, or both."""


@attrs.frozen(eq=False)
class Liveness:
    """
    The slots that distinguish runs.

    Attributes
    ----------
    slots : tuple of tuple of int
        By ``4 * component + mode``, mode being LOOPING, WAITING or both, the slots that a
        condition on an edge of that state or a later one reads.
    """

    slots: tuple[tuple[int, ...], ...]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, automaton: SaseAutomaton) -> Liveness:
        """Return the slots for each state of an automaton."""
        table: list[tuple[int, ...]] = []
        for component in range(automaton.size):
            later = _entering(automaton, component + 1)
            negative = _negated(automaton, component)
            inside = automaton.take[component].reads | automaton.leave[component].reads
            for mode in range(4):
                reads = later | negative | (inside if mode & LOOPING else frozenset())
                reads |= automaton.partition.reads
                table.append(tuple(sorted(reads)))
        return cls(tuple(table))


def _entering(automaton: SaseAutomaton, component: int) -> frozenset[int]:
    """Return what the edges of a component and later ones read."""
    edges = (automaton.begin, automaton.take, automaton.leave)
    return _union(conditions.reads for edge in edges for conditions in edge[component:])


def _negated(automaton: SaseAutomaton, component: int) -> frozenset[int]:
    """Return what deciding negated components reads from runs at a component."""
    return _union(part.reads for part in automaton.negatives if component < part.needs)


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)
