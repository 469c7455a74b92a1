# SPDX-License-Identifier: Apache-2.0
"""Decides from the compiled pattern which events a key must have for a match."""

from __future__ import annotations

from itertools import islice

import attrs

from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.outcomes import outcomes
from pyflinkcep.engines.flink.nfa.steps import StateTable, Step
from pyflinkcep.errors import MalformedPatternException

__all__ = ["KeyNeeds"]

_MOST_STAGES = 60
_MOST_STEPS = 250

Steps = dict[StateTable, list[Step]]


@attrs.frozen
class KeyNeeds:
    """
    The stages that every match has, and the events that they take.

    Attributes
    ----------
    every : int
        The stages that every match has, a bit for each in the order of :attr:`NFA.stages`.
    ways : tuple of (int, int, int)
        The ways to take an event: bits of the conditions asked, of those that held, and of the
        stages that then take it, whatever came before.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> pattern = Pattern.begin("a").where("x = 1").followedBy("b").where("x = 2").optional()
    >>> needs = KeyNeeds.of(NFACompiler.compile(pattern.followedBy("c").where("x = 3")), known=7)
    >>> needs.every, [needs.taken(bits) for bits in (0, 1, 2, 4)]
    (10, [0, 2, 4, 8])
    """

    every: int
    ways: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, nfa: NFA, known: int) -> KeyNeeds | None:
        """
        Decide about a pattern.

        Parameters
        ----------
        nfa : NFA
            The compiled pattern.
        known : int
            The bits of the conditions evaluated beforehand.

        Returns
        -------
        KeyNeeds or None
            None if a condition is evaluated while matching, which may fail and must be seen to, or
            if there are too many conditions or stages to say.
        """
        if not all(atom.bit & known for atom in nfa.atoms) or len(nfa.stages) > _MOST_STAGES:
            return None
        found = ((table, *one) for table in nfa.tables.values() for one in outcomes(table))
        try:
            few = list(islice(found, _MOST_STEPS + 1))
        except MalformedPatternException:
            return None
        if len(few) > _MOST_STEPS:
            return None
        steps: Steps = {table: [] for table in nfa.tables.values()}
        numbers = {stage: 1 << number for number, stage in enumerate(nfa.stages)}
        taken: dict[tuple[int, int], int] = {}
        for table, answers, step in few:
            steps[table].append(step)
            bits = sum(a.bit for a in answers), sum(a.bit for a, holds in answers.items() if holds)
            for move in step.moves:
                if move.takes:
                    taken[bits] = taken.get(bits, 0) | numbers[move.stage]
        every = sum(bit for stage, bit in numbers.items() if not _ends_without(nfa, steps, stage))
        return cls(every, tuple((*bits, stages) for bits, stages in taken.items()))

    def taken(self, bits: int) -> int:
        """Return the stages that may take an event, given the conditions that hold for it."""
        found = 0
        for asked, held, stages in self.ways:
            if bits & asked == held:
                found |= stages
        return found


def _ends_without(nfa: NFA, steps: Steps, stage: str) -> bool:
    """Whether a match can come to its end without an event for a stage."""
    reached = [nfa.start]
    for table in reached:
        if table.is_pending:  # the passing of time completes it
            return True
        for step in steps[table]:
            for move in step.moves:
                if move.takes and move.stage == stage:
                    continue
                if move.completes:
                    return True
                if move.continues and move.target not in reached:
                    reached.append(move.target)
    return False
