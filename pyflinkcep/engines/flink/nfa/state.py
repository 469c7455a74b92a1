# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of the compiled pattern: states and the transitions between them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import attrs

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.errors import MalformedPatternException


class StateType(Enum):
    """The kind of a state."""

    START = "Start"
    NORMAL = "Normal"
    FINAL = "Final"
    STOP = "Stop"
    PENDING = "Pending"


class StateTransitionAction(Enum):
    """What a transition does with the event: take it, ignore it, or try it on the next state."""

    TAKE = "TAKE"
    IGNORE = "IGNORE"
    PROCEED = "PROCEED"


@attrs.define(eq=False)
class StateTransition:
    """An edge of the automaton."""

    # The state it leaves; a TAKE records the event under the source's stage.
    source: State = attrs.field(repr=lambda state: state.name)
    action: StateTransitionAction  # What it does with the event
    target: State = attrs.field(repr=lambda state: state.name)  # The state it enters
    condition: IterativeCondition | None  # The condition on the event; None for none


@attrs.define(eq=False)
class State:
    """
    A state of the automaton; it changes only while the pattern is compiled.

    Ports ``org.apache.flink.cep.nfa.State`` (Flink 2.3.0).
    """

    name: str  # The internal name, unique in the automaton: the stage's name and a suffix ``:n``
    kind: StateType  # The kind of the state
    stage: str  # The user's name of the stage
    # The edges in the order in which they are tried, which determines versions.
    transitions: list[StateTransition] = attrs.field(factory=list)

    def add_take(self, target: State, condition: IterativeCondition | None) -> None:
        """Add an edge that takes the event."""
        self.add(StateTransitionAction.TAKE, target, condition)

    def add_ignore(self, target: State, condition: IterativeCondition | None) -> None:
        """Add an edge that ignores the event."""
        self.add(StateTransitionAction.IGNORE, target, condition)

    def add_proceed(self, target: State, condition: IterativeCondition | None) -> None:
        """Add an edge that tries the same event on another state."""
        self.add(StateTransitionAction.PROCEED, target, condition)

    def add(
        self, action: StateTransitionAction, target: State, condition: IterativeCondition | None
    ) -> None:
        """Add an edge."""
        self.transitions.append(StateTransition(self, action, target, condition))

    def __str__(self) -> str:
        edges = " ".join(
            f"{t.action.value[0]}→{t.target.name}[{'true' if t.condition is None else t.condition}]"
            for t in self.transitions
        )
        kind = "" if self.kind is StateType.NORMAL else f"({self.kind.value.lower()})"
        return f"{self.name}{kind}: {edges}".rstrip(": ")


def reached(start: State, passes: Callable[[StateTransition], bool]) -> list[State]:
    """Return the states that some edges lead to, whatever their conditions, nearest first."""
    found, known = [start], {start}
    for state in found:
        for edge in state.transitions:
            if edge.target not in known and passes(edge):
                known.add(edge.target)
                found.append(edge.target)
    return found


def endless_loop(stage: str) -> MalformedPatternException:
    """Make the error for a pattern that would try one event forever (Flink hangs on it)."""
    return MalformedPatternException(
        f"stage {stage!r} is in a looping group whose stages are all optional: "
        "Flink never ends on such a pattern",
        "make one stage of the group mandatory, or loop over the stage instead of the group",
    )
