# SPDX-License-Identifier: Apache-2.0
"""Which events in memory satisfy conditions on single events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
)
from pyflinkcep.engines.flink.nfa import NFA, EventEvaluation, NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import atom_of
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.sql import evaluated_here


@attrs.frozen(eq=False)
class EventConditions:
    """Conditions of a compiled pattern on single events, asked of events in memory."""

    nfa: NFA
    events: Sequence[Any]
    times: Sequence[int]
    _evaluation: EventEvaluation = attrs.field(init=False, factory=EventEvaluation)

    def where(self, condition: IterativeCondition) -> list[int]:
        """Return the positions of the events that satisfy a condition."""
        return self._among(condition, list(range(len(self.events))))

    def _among(self, condition: IterativeCondition, positions: list[int]) -> list[int]:
        """Ask of some events only, as the parts of a condition are asked one after another."""
        if isinstance(condition, BooleanConditions):
            return positions if condition.value else []
        if isinstance(condition, RichAndCondition):
            for part in condition.nestedConditions:
                positions = self._among(part, positions)
            return positions
        if isinstance(condition, RichOrCondition):
            left, right = condition.nestedConditions
            found = self._among(left, positions)
            return sorted(found + self._among(right, _without(positions, found)))
        if isinstance(condition, RichNotCondition):
            return _without(positions, self._among(condition.nestedConditions[0], positions))
        atom, found = atom_of(self.nfa.atoms, condition), []
        for at in positions:
            self._evaluation.begin(self.events[at], self.times[at])
            if self._evaluation.holds(atom):
                found.append(at)
        return found


def _without(positions: list[int], found: list[int]) -> list[int]:
    others = set(found)
    return [at for at in positions if at not in others]


def satisfying(
    conditions: Mapping[str, Any], events: Sequence[Any], times: Sequence[int]
) -> dict[str, list[int]]:
    """Return for each condition, by name, the positions of the events that satisfy it."""
    pattern: Pattern | None = None
    for name, condition in conditions.items():
        stage = Pattern.begin(name) if pattern is None else pattern.followedBy(name)
        pattern = stage.where(condition)
    if pattern is None:
        return {}
    here = evaluated_here(pattern, events)
    nfa = NFACompiler.compile(here)
    nfa.open(RuntimeContext())
    for atom in nfa.atoms:
        if not atom.bit:
            raise InvalidArgumentError(
                f"{atom.stage!r}: the condition {atom.condition!r} reads a partial match",
                "write a condition on one event",
            )
    asked = EventConditions(nfa, events, times)
    return {stage.getName(): asked.where(stage.getCondition()) for stage in here.stages()}
