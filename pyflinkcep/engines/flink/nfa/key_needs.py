# SPDX-License-Identifier: Apache-2.0
"""Decides from the compiled pattern which events a key must have for a match."""

from __future__ import annotations

import attrs

from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.steps import Ask, StateTable, Step
from pyflinkcep.errors import MalformedPatternException

__all__ = ["KeyNeeds"]

_MOST_STAGES = 60
_MOST_STEPS = 500

Answers = tuple[int, int]
"""The bits of the conditions asked, and of those that held."""

Steps = dict[StateTable, list[tuple[Answers, Step]]]


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
        try:
            steps = _steps(nfa)
        except (_TooMany, MalformedPatternException):
            return None
        numbers = {stage: 1 << number for number, stage in enumerate(nfa.stages)}
        taken: dict[Answers, int] = {}
        for own in steps.values():
            for answers, step in own:
                for move in step.moves:
                    if move.takes:
                        taken[answers] = taken.get(answers, 0) | numbers[move.stage]
        every = sum(bit for stage, bit in numbers.items() if not _ends_without(nfa, steps, stage))
        return cls(every, tuple((*answers, stages) for answers, stages in taken.items()))

    def taken(self, bits: int) -> int:
        """Return the stages that may take an event, given the conditions that hold for it."""
        found = 0
        for asked, held, stages in self.ways:
            if bits & asked == held:
                found |= stages
        return found


class _TooMany(Exception):
    """The conditions have too many combinations."""


def _steps(nfa: NFA) -> Steps:
    """Return what events do to partial matches, by their states and the answers to conditions."""
    steps: Steps = {}
    count = 0
    for table in nfa.tables.values():
        open_: list[tuple[Ask | Step, int, int]] = [(table.first(), 0, 0)]
        own = steps[table] = []
        while open_:
            count += 1
            if count > _MOST_STEPS:
                raise _TooMany
            node, asked, held = open_.pop()
            if isinstance(node, Step):
                own.append(((asked, held), node))
                continue
            bit = node.atom.bit
            open_.append((node.following(False), asked | bit, held))
            open_.append((node.following(True), asked | bit, held | bit))
    return steps


def _ends_without(nfa: NFA, steps: Steps, stage: str) -> bool:
    """Whether a match can come to its end without an event for a stage."""
    reached = [nfa.start]
    for table in reached:
        if table.is_pending:  # the passing of time completes it
            return True
        for _, step in steps[table]:
            for move in step.moves:
                if move.takes and move.stage == stage:
                    continue
                if move.completes:
                    return True
                if move.continues and move.target not in reached:
                    reached.append(move.target)
    return False
