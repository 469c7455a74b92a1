# SPDX-License-Identifier: Apache-2.0
"""The conditions of a chain of stages: which events fit a stage, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

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
from pyflinkcep.engines.lists.programs import condition_of
from pyflinkcep.engines.lists.refusals import reason, refused
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.sase.tree import Comparison, Expression, Literal, Logical, Reference

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
    joining : tuple of Expression
        Conditions on the event and those of earlier stages.
    """

    own: tuple[IterativeCondition, ...]
    joining: tuple[Expression, ...]


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
    reading = _Reading(nfa, expressions, stage, before)
    own: list[IterativeCondition] = []
    joining: list[Expression] = []
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
    expressions: CompiledExpressions | None
    stage: str
    before: Collection[str]

    def is_own(self, condition: IterativeCondition) -> bool:
        """Whether a condition reads one event only."""
        if isinstance(condition, BooleanConditions):
            return True
        if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
            return all(map(self.is_own, condition.nestedConditions))
        return atom_of(self.nfa.atoms, condition).bit > 0

    def tree(self, condition: IterativeCondition) -> Expression:
        """Return a condition on several events."""
        if isinstance(condition, BooleanConditions):
            return Comparison("=", Literal(int(condition.value), ""), Literal(1, ""))
        if isinstance(condition, RichAndCondition | RichOrCondition):
            word = "and" if isinstance(condition, RichAndCondition) else "or"
            return Logical(word, tuple(map(self.tree, condition.nestedConditions)))
        if isinstance(condition, RichNotCondition):
            raise self._refused(condition, "NULL under it counts as true")
        atom = atom_of(self.nfa.atoms, condition)
        if atom.bit:
            return Comparison(
                "<>", Reference(self.stage, None, answer_name(atom), 0), Literal(0, "0")
            )
        if atom.expression is None or self.expressions is None:
            raise self._refused(condition, "it is a function of the event and the partial match")
        try:
            code = self.expressions.programs[atom.expression]
            return condition_of(code, self.stage, self.before, self.expressions)
        except NotSupportedError as cause:
            raise self._refused(condition, reason(cause)) from None

    def _refused(self, condition: IterativeCondition, why: str) -> NotSupportedError:
        return refused(f"the condition {condition!r} of stage {self.stage!r}: {why}")
