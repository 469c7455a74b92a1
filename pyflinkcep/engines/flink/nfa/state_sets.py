# SPDX-License-Identifier: Apache-2.0
"""Lazy determinization of the automaton: sets of states, and reactions to events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.evaluation import EventEvaluation
from pyflinkcep.engines.flink.nfa.steps import Ask, StateTable, Step

__all__ = ["Reaction", "StateSet", "StateSets"]

_MOST_SETS = 4096
_MOST_REACTIONS = 65536
_MOST_STEPS = 1_000_000


@attrs.frozen(eq=False)
class Reaction:
    """
    The effect of an event on the partial matches of a key.

    Attributes
    ----------
    steps : dict of StateTable to Step or Ask
        For each state the step of all partial matches in it, or the first condition that depends on
        the events that each of them took.
    passes : bool
        Whether nothing changes.
    asks : bool
        Whether partial matches must be evaluated one by one.
    begins : Step or None
        The start state's step, if the only change is that partial matches begin.
    following : StateSet or None
        The set of states afterwards; None if it must be looked up.
    """

    steps: dict[StateTable, Any]  # Step or Ask; the loop over partial matches distinguishes them
    passes: bool
    asks: bool
    begins: Step | None
    following: StateSet | None


@attrs.define(eq=False)
class StateSet:
    """
    A set of states that the partial matches of a key occupy at the same time.

    Attributes
    ----------
    tables : tuple of StateTable
        The states.
    family : StateSets
        The other sets.
    reactions : dict of int to Reaction
        The effects of events, by the bits of their conditions.
    root : Ask or Reaction or None
        The first condition to evaluate; None until first needed.
    """

    tables: tuple[StateTable, ...]
    family: StateSets
    reactions: dict[int, Reaction] = attrs.field(factory=dict)
    root: Ask | Reaction | None = None

    def react(self, evaluation: EventEvaluation) -> Reaction:
        """Return the effect of an event, evaluating the conditions on single events."""
        bits = evaluation.values
        remembered = self.reactions.get(bits)
        if remembered is not None:
            return remembered
        if self.root is None:
            self.root = self._resolve({})
        reaction: Any = self.root
        while reaction.__class__ is Ask:
            reaction = reaction.following(evaluation.holds(reaction.atom))
        follows_from_bits = evaluation.known == self.family.known
        if follows_from_bits and self.family.reserve(len(reaction.steps)):
            self.reactions[bits] = reaction
        return reaction  # type: ignore[no-any-return]

    def _resolve(self, answers: dict[Atom, bool]) -> Ask | Reaction:
        """Compute the reaction for these answers, or the next condition to evaluate."""
        steps: dict[StateTable, Any] = {}
        for table in self.tables:
            node: Any = table.first()
            while node.__class__ is Ask and node.atom in answers:
                node = node.following(answers[node.atom])
            if node.__class__ is Ask and node.atom.bit:
                return Ask(node.atom, self._resolve, answers)
            steps[table] = node
        certain = [step for step in steps.values() if isinstance(step, Step)]
        changing = [table for table in self.tables if not getattr(steps[table], "keeps", False)]
        asks = len(certain) < len(steps)
        start = self.family.start
        return Reaction(
            steps,
            passes=not changing,
            asks=asks,
            begins=self._beginning(steps[start]) if changing == [start] else None,
            following=None if asks else self._following(steps),
        )

    @staticmethod
    def _beginning(step: Step | Ask) -> Step | None:
        """Return the start state's step unless it completes a match immediately."""
        if isinstance(step, Ask) or any(move.completes for move in step.moves):
            return None
        return step

    def _following(self, steps: dict[StateTable, Any]) -> StateSet | None:
        after: dict[StateTable, None] = {}
        for step in steps.values():
            if isinstance(step, Step):
                after.update((move.target, None) for move in step.moves if move.continues)
        following = self.family.of(after)
        return following if self.family.has(following) else None


class StateSets:
    """
    The sets of states met so far, for runs with the same conditions known beforehand.

    Parameters
    ----------
    start : StateTable
        The start state.
    known : int
        The bits of the conditions that are known beforehand.

    Notes
    -----
    Regular expression engines determinize lazily in the same way: a pattern of `n` states could be
    in 2ⁿ sets, few of which occur. Beyond a bound, the rest is recomputed for each event.
    """

    def __init__(self, start: StateTable, known: int) -> None:
        self.start = start
        self.known = known
        self._met: dict[frozenset[StateTable], StateSet] = {}
        self._reactions = 0
        self._steps = 0

    def of(self, tables: Iterable[StateTable]) -> StateSet:
        """Return the set of these states."""
        states = frozenset(tables)
        found = self._met.get(states)
        if found is None:
            # Always in the same order, so that conditions are evaluated in the same order.
            ordered = tuple(table for table in self.start.tables.values() if table in states)
            found = StateSet(ordered, self)
            if len(self._met) < _MOST_SETS:
                self._met[states] = found
        return found

    def has(self, state_set: StateSet) -> bool:
        """Whether a set is kept."""
        return self._met.get(frozenset(state_set.tables)) is state_set

    def reserve(self, steps: int) -> bool:
        """Count one more reaction and its steps; return whether it may be kept."""
        self._reactions += 1
        self._steps += steps
        return self._reactions <= _MOST_REACTIONS and self._steps <= _MOST_STEPS
