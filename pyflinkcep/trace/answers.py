# SPDX-License-Identifier: Apache-2.0
"""What a condition compared, for answers in a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.expressions.compared import Compared, compared_in_match, compared_in_sql
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.trace.lanes import Step
from pyflinkcep.trace.model import Answer

__all__ = ["Answerer"]


@attrs.define(eq=False)
class Answerer:
    """
    Makes answers of conditions, with the values that they compared.

    Attributes
    ----------
    events : sequence
        The events, by their numbers.
    sql_of : callable
        Returns the SQL of a condition about one event; None if it is a function.
    untils : frozenset of Atom
        The conditions of ``until``.
    """

    events: Sequence[Any]
    sql_of: Callable[[IterativeCondition], str | None]
    untils: frozenset[Atom]
    _known: dict[tuple[int, int], Answer] = attrs.field(factory=dict)

    def answer(self, atom: Atom, holds: bool, event: int, steps: Sequence[Step] = ()) -> Answer:
        """
        Return a condition's answer for an event.

        Parameters
        ----------
        atom : Atom
            The condition.
        holds : bool
            The answer of the engine.
        event : int
            The number of the event.
        steps : sequence of Step
            What the partial match had taken.
        """
        if not atom.bit:
            return self._made(atom, holds, self._in_match(atom.condition, event, steps))
        found = self._known.get((event, atom.bit))
        if found is None:
            text = self.sql_of(atom.condition)
            parts = () if text is None else compared_in_sql(text, self.events[event])
            found = self._known[event, atom.bit] = self._made(atom, holds, parts)
        return found

    def _in_match(
        self, condition: IterativeCondition, event: int, steps: Sequence[Step]
    ) -> tuple[Compared, ...]:
        if not isinstance(condition, MatchExpression):
            return ()
        taken: dict[str, list[Any]] = {}
        for step in steps:
            taken.setdefault(step.stage, []).append(self.events[step.event])
        order = [self.events[step.event] for step in steps]
        return compared_in_match(condition, self.events[event], taken, order)

    def _made(self, atom: Atom, holds: bool, parts: tuple[Compared, ...]) -> Answer:
        failed = () if holds else tuple((p.text, p.values) for p in parts if not p.holds)
        values = dict(value for part in parts for value in part.values)
        text = repr(atom.condition)
        return Answer(atom.stage, text, holds, atom in self.untils, failed, tuple(values.items()))
