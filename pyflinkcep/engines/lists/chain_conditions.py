# SPDX-License-Identifier: Apache-2.0
"""The conditions of a chain of stages: which events fit a stage, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import attrs
import numpy as np

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
)
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom, atom_of
from pyflinkcep.engines.lists.frame import Flags
from pyflinkcep.engines.lists.refusals import refused
from pyflinkcep.engines.lists.stage_values import StageValues
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.expressions.tree import Column, Literal, MatchExpression, Operation, Tree

__all__ = ["StageConditions", "answer_name", "conditions_of", "fitting"]


def answer_name(atom: Atom) -> str:
    """Return the attribute name for the answers of a condition on single events."""
    return f"answer {atom.bit}"


@attrs.frozen
class StageConditions:
    """
    The conditions of a stage.

    Attributes
    ----------
    own : tuple of IterativeCondition
        Conditions on the event alone.
    joining : tuple of Tree
        Conditions on the event and those of earlier stages.
    """

    own: tuple[IterativeCondition, ...]
    joining: tuple[Tree, ...]


def conditions_of(
    nfa: NFA,
    expressions: CompiledExpressions | None,
    stage: str,
    condition: IterativeCondition,
    before: Collection[str],
) -> StageConditions:
    """
    Split the condition of a stage.

    Parameters
    ----------
    nfa : NFA
        The pattern.
    expressions : CompiledExpressions or None
        What its match expressions need.
    stage : str
        The stage.
    condition : IterativeCondition
        Its condition.
    before : collection of str
        The stages before it that take events.

    Raises
    ------
    NotSupportedError
        If lists cannot evaluate a part; the message says which and why.
    """
    values = None
    if expressions is not None:
        kinds = {field.sql: field.kind for field in expressions.fields}
        values = StageValues(stage, before, kinds, expressions.ansi)
    reading = _Reading(nfa, values, stage)
    own: list[IterativeCondition] = []
    joining: list[Tree] = []
    for part in _conjuncts(condition):
        if reading.is_own(part):
            own.append(part)
        else:
            joining.append(reading.tree(part))
    return StageConditions(tuple(own), tuple(joining))


def fitting(
    nfa: NFA,
    conditions: Sequence[IterativeCondition],
    holding: Callable[[Atom], Flags],
    size: int,
) -> Flags:
    """Return which events satisfy conditions; `holding` evaluates the user's."""
    fits = np.ones(size, bool)
    for condition in conditions:
        fits &= _holding(nfa, condition, holding, size)
    return fits


def _holding(
    nfa: NFA, condition: IterativeCondition, holding: Callable[[Atom], Flags], size: int
) -> Flags:
    if isinstance(condition, BooleanConditions):
        return np.full(size, condition.value)
    if not isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
        return holding(atom_of(nfa.atoms, condition))
    parts = [_holding(nfa, part, holding, size) for part in condition.nestedConditions]
    if isinstance(condition, RichNotCondition):
        return ~parts[0]
    together = np.logical_and if isinstance(condition, RichAndCondition) else np.logical_or
    found: Flags = together(*parts)
    return found


def _conjuncts(condition: IterativeCondition) -> Iterator[IterativeCondition]:
    if isinstance(condition, RichAndCondition):
        for part in condition.nestedConditions:
            yield from _conjuncts(part)
    else:
        yield condition


@attrs.frozen(eq=False)
class _Reading:
    """Reads the condition of a stage."""

    nfa: NFA
    values: StageValues | None
    stage: str

    def is_own(self, condition: IterativeCondition) -> bool:
        """Whether a condition reads one event only."""
        if isinstance(condition, BooleanConditions):
            return True
        if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
            return all(map(self.is_own, condition.nestedConditions))
        return atom_of(self.nfa.atoms, condition).bit > 0

    def tree(self, condition: IterativeCondition) -> Tree:
        """Return a condition on several events."""
        if isinstance(condition, BooleanConditions):
            return Operation("=", (Literal(int(condition.value)), Literal(1)))
        if isinstance(condition, RichAndCondition | RichOrCondition):
            word = "and" if isinstance(condition, RichAndCondition) else "or"
            return Operation(word, tuple(map(self.tree, condition.nestedConditions)))
        if isinstance(condition, RichNotCondition):
            raise self._refused(condition, "NULL under it counts as true")
        atom = atom_of(self.nfa.atoms, condition)
        if atom.bit:
            return Column(answer_name(atom), self.stage)
        if not isinstance(atom.condition, MatchExpression) or self.values is None:
            raise self._refused(condition, "it is a function of the event and the partial match")
        return self.values.condition(atom.condition.tree, partial(self._refused, condition))

    def _refused(self, condition: IterativeCondition, why: str) -> NotSupportedError:
        return refused(f"the condition {condition!r} of stage {self.stage!r}: {why}")
