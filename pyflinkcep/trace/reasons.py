# SPDX-License-Identifier: Apache-2.0
"""Which conditions kept an event from being taken, read from the states and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
)
from pyflinkcep.engines.flink.nfa.atoms import Atom, Atoms
from pyflinkcep.engines.flink.nfa.state import State, StateTransitionAction, StateType
from pyflinkcep.engines.flink.nfa.steps import StateTable, reachable

__all__ = ["Refusal", "refusals", "stopped_by", "valued", "wanted"]

Answers = Mapping[Atom, bool]


@attrs.frozen(eq=False)
class Refusal:
    """A stage that could have taken an event, and the answers for which it did not."""

    stage: str
    decisive: tuple[tuple[Atom, bool], ...]


def refusals(table: StateTable, answers: Answers) -> Iterator[Refusal]:
    """
    Yield the stages that could have taken an event in a state, and did not, each once.

    Parameters
    ----------
    table : StateTable
        The state.
    answers : mapping of Atom to bool
        The answers of the conditions that were evaluated.
    """
    seen: set[str] = set()
    for state in reachable(table):
        for edge in state.transitions:
            if edge.action is StateTransitionAction.TAKE and state.stage not in seen:
                why = decisive(edge.condition, table.atoms, answers)
                if why:
                    seen.add(state.stage)
                    yield Refusal(state.stage, why)


def wanted(table: StateTable) -> tuple[str, ...]:
    """Return the stages that could take an event in a state, nearest first."""
    return tuple(dict.fromkeys(state.stage for state in reachable(table) if _takes(state)))


def stopped_by(table: StateTable, answers: dict[Atom, bool]) -> str | None:
    """Return the NOT stage whose event came, by the answers; None if none did."""
    stops: list[State] = [
        edge.target for edge in table.edges(answers) if edge.target.kind is StateType.STOP
    ]
    return stops[0].stage if stops else None


def _takes(state: State) -> bool:
    return any(edge.action is StateTransitionAction.TAKE for edge in state.transitions)


def decisive(
    condition: IterativeCondition | None, atoms: Atoms, answers: Answers
) -> tuple[tuple[Atom, bool], ...]:
    """Return the answers for which a condition does not hold; none if it holds or is unknown."""
    value, why = valued(condition, atoms, answers)
    return why if value is False else ()


_Why = tuple[tuple[Atom, bool], ...]


def valued(
    condition: IterativeCondition | None, atoms: Atoms, answers: Answers
) -> tuple[bool | None, _Why]:
    """Return a condition's value as far as known, and the answers that decide it."""
    if condition is None:
        return True, ()
    if isinstance(condition, BooleanConditions):
        return condition.value, ()
    if isinstance(condition, RichNotCondition):
        value, why = valued(condition.nestedConditions[0], atoms, answers)
        return (None if value is None else not value), why
    if isinstance(condition, RichAndCondition | RichOrCondition):
        return _joined(condition, atoms, answers)
    atom = atoms.of(condition)
    if atom not in answers:
        return None, ()
    return answers[atom], ((atom, answers[atom]),)


def _joined(
    condition: RichAndCondition | RichOrCondition, atoms: Atoms, answers: Answers
) -> tuple[bool | None, _Why]:
    decisive_value = isinstance(condition, RichOrCondition)
    all_reasons: _Why = ()
    known = True
    for part in condition.nestedConditions:
        value, why = valued(part, atoms, answers)
        if value is decisive_value:
            return value, why
        known = known and value is not None
        all_reasons += why
    return (not decisive_value if known else None), all_reasons
