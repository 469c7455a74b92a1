# SPDX-License-Identifier: Apache-2.0
"""What an event does to all partial matches of a key, by the states they are in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from pyflinkcep.nfa.evaluation import EventEvaluation
from pyflinkcep.nfa.nfa_state import NFAState
from pyflinkcep.nfa.steps import Ask, Atom, StateTable, Step

__all__ = ["Plan", "Situation", "Situations"]

_MOST_SITUATIONS = 4096
_MOST_PLANS = 65536


@attrs.frozen(eq=False)
class Plan:
    """
    What an event does to the partial matches of a situation.

    Attributes
    ----------
    steps : dict of StateTable to Step or Ask
        For each state the step of all partial matches in it; or where to begin asking, when
        it depends on the events that each of them took.
    passes : bool
        Whether nothing changes.
    asks : bool
        Whether partial matches must be asked one by one.
    begins : Step or None
        The start state's step, when nothing changes but that partial matches begin.
    following : Situation or None
        The situation afterwards; None if it must be looked up.
    """

    steps: dict[StateTable, Any]  # Step or Ask; the loop over partial matches tells them apart
    passes: bool
    asks: bool
    begins: Step | None
    following: Situation | None


@attrs.define(eq=False)
class Situation:
    """
    A set of states that partial matches are in at the same time.

    Attributes
    ----------
    tables : tuple of StateTable
        The states.
    family : Situations
        The other situations.
    passed : set of int
        Events that change nothing, by the bits of their conditions.
    plans : dict of int to Plan
        What other events do, by the bits of their conditions.
    root : Ask or Plan or None
        Where to begin asking; None until it is needed.
    """

    tables: tuple[StateTable, ...]
    family: Situations
    passed: set[int] = attrs.field(factory=set)
    plans: dict[int, Plan] = attrs.field(factory=dict)
    root: Ask | Plan | None = None

    def decide(self, evaluation: EventEvaluation) -> Plan:
        """Give the plan for an event, asking the conditions that look at one event."""
        if self.root is None:
            self.root = self._plan({})
        bits = evaluation.values
        plan: Any = self.root
        while plan.__class__ is Ask:
            plan = plan.following(evaluation.holds(plan.atom))
        if evaluation.known == self.family.known:
            self._remember(bits, plan)
        return plan  # type: ignore[no-any-return]

    def _remember(self, bits: int, plan: Plan) -> None:
        """Keep a plan that the bits given with an event decided alone."""
        if not self.family.reserve():
            return
        if plan.passes:
            self.passed.add(bits)
        else:
            self.plans[bits] = plan

    def _plan(self, answers: dict[Atom, bool]) -> Ask | Plan:
        """Work out the plan for these answers, or the next question."""
        steps: dict[StateTable, Any] = {}
        for table in self.tables:
            node: Any = table.first()
            while node.__class__ is Ask and node.atom in answers:
                node = node.following(answers[node.atom])
            if node.__class__ is Ask and node.atom.bit:
                return Ask(node.atom, self._plan, answers)
            steps[table] = node
        certain = [step for step in steps.values() if isinstance(step, Step)]
        changing = [table for table in self.tables if not getattr(steps[table], "keeps", False)]
        asks = len(certain) < len(steps)
        start = self.family.start
        return Plan(
            steps,
            passes=not changing,
            asks=asks,
            begins=self._beginning(steps[start]) if changing == [start] else None,
            following=None if asks else self._following(steps),
        )

    @staticmethod
    def _beginning(step: Step | Ask) -> Step | None:
        """Give the start state's step if it completes no match at once."""
        if isinstance(step, Ask) or any(move.completes for move in step.moves):
            return None
        return step

    def _following(self, steps: dict[StateTable, Any]) -> Situation | None:
        after: dict[StateTable, None] = {}
        for step in steps.values():
            if isinstance(step, Step):
                after.update((move.target, None) for move in step.moves if move.continues)
        situation = self.family.of(after)
        return situation if self.family.has(situation) else None


class Situations:
    """
    The situations that were met, for runs in which the same conditions are known beforehand.

    Parameters
    ----------
    start : StateTable
        The start state.
    known : int
        The bits of the conditions that are known beforehand.

    Notes
    -----
    This is the automaton made deterministic as far as the events need it, as search engines
    do with regular expressions: a pattern of `n` states could be in 2ⁿ situations, few of
    which are met. When too many are, the rest is worked out anew for each event.
    """

    def __init__(self, start: StateTable, known: int) -> None:
        self.start = start
        self.known = known
        self._met: dict[frozenset[StateTable], Situation] = {}
        self._plans = 0

    def of(self, tables: Iterable[StateTable]) -> Situation:
        """Give the situation of partial matches in these states."""
        states = frozenset(tables)
        situation = self._met.get(states)
        if situation is None:
            # Always in the same order, so that conditions are asked in the same order.
            ordered = tuple(table for table in self.start.tables.values() if table in states)
            situation = Situation(ordered, self)
            if len(self._met) < _MOST_SITUATIONS:
                self._met[states] = situation
        return situation

    def of_state(self, state: NFAState) -> Situation:
        """Give the situation that a key is in."""
        situation = state.situation
        if situation is None or situation.family is not self:
            situation = self.of([partial.table for partial in state.partialMatches])
            state.situation = situation
        return situation

    def has(self, situation: Situation) -> bool:
        """Say whether a situation is kept."""
        return self._met.get(frozenset(situation.tables)) is situation

    def reserve(self) -> bool:
        """Say whether one plan more may be kept, and count it."""
        self._plans += 1
        return self._plans <= _MOST_PLANS
