# SPDX-License-Identifier: Apache-2.0
"""
States and transitions of the compiled pattern, and the effect of an event in each state.

The effect is computed once per combination of condition results. Specifies
``kernel/src/flink/tables.c``; they must be changed together.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum, IntEnum
from typing import Any

import attrs

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
)
from pyflinkcep.engines.flink.nfa.atoms import Atom, Atoms
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


# --- the effect of an event on a partial match


class EventEnd(IntEnum):
    """Why an event ends a partial match."""

    CONTIGUITY = 0
    """It could not be taken, and may not be passed by."""
    UNTIL = 1
    """The condition of ``until`` held, and nothing could follow."""
    NOT_STAGE = 2
    """It is the event of a NOT stage."""


@attrs.frozen(eq=False)
class Move:
    """One continuation of a partial match."""

    target: StateTable  # The state after the move
    takes: bool = False  # Whether the event is taken rather than ignored
    stage: str = ""  # The stage that a taken event is recorded under
    # Whether state and events are unchanged; the version still grows by `increase`.
    stays: bool = False
    continues: bool = True  # Whether a partial match follows
    # Whether a match follows, either because the target is the final state or because the rest of
    # the pattern may stay empty.
    completes: bool = False
    increase: int = 0  # The increase of the version's last digit
    adds_stage: bool = False  # Whether the version then gets one more digit


@attrs.frozen(eq=False)
class Step:
    """Everything one event does to a partial match in one state."""

    # The continuations, in Flink's order; none if the partial match ends. The start state's last
    # move is to stay.
    moves: tuple[Move, ...]
    ending: EventEnd = EventEnd.CONTIGUITY  # Why it ends, if there are none
    keeps: bool = attrs.field(init=False)  # Whether the partial match is unchanged
    takes: bool = attrs.field(init=False)  # Whether some move takes the event
    # Whether some partial match continues with the event taken.
    keeps_event: bool = attrs.field(init=False)
    # The only move, if there is just one, it changes something and does not complete the pattern.
    single: Move | None = attrs.field(init=False)

    @keeps.default
    def _only_stays(self) -> bool:
        return len(self.moves) == 1 and self.moves[0].stays

    @takes.default
    def _any_takes(self) -> bool:
        return any(move.takes for move in self.moves)

    @keeps_event.default
    def _any_goes_on_with_it(self) -> bool:
        return any(move.takes and move.continues for move in self.moves)

    @single.default
    def _only_move(self) -> Move | None:
        move = self.moves[0] if len(self.moves) == 1 else None
        if move is None or move.stays or move.completes:
            return None
        return move


@attrs.define(eq=False)
class Ask:
    """A point at which the effect depends on a condition not yet evaluated."""

    atom: Atom  # The condition to evaluate
    resolve: Callable[[dict[Atom, bool]], Any]  # Computes what follows from answers
    answers: dict[Atom, bool]  # The answers so far
    # What follows, another Ask or the result; None until first needed.
    yes: Any = None
    no: Any = None

    def following(self, holds: bool) -> Any:
        """Return what follows on an answer."""
        node = self.yes if holds else self.no
        if node is None:
            node = self.resolve({**self.answers, self.atom: holds})
            if holds:
                self.yes = node
            else:
                self.no = node
        return node


class _Unanswered(Exception):
    def __init__(self, atom: Atom) -> None:
        self.atom = atom


@attrs.define(eq=False)
class StateTable:
    """
    A state of the running automaton: its window, and its steps as far as computed.

    The steps port ``NFA.createDecisionGraph``, ``computeNextStates`` and
    ``findFinalStateAfterProceed`` (Flink 2.3.0). They depend only on the state and the conditions'
    results, so each combination is computed once. Conditions are evaluated in Flink's order, and
    never more of them than in Flink.
    """

    state: State  # The compiled state
    atoms: Atoms  # The pattern's conditions
    tables: dict[State, StateTable]  # The tables of all states
    gap_ms: int = 0  # The longest time since the previous event; 0 for any
    root: Ask | Step | None = None  # The first decision; use :meth:`first`
    name: str = attrs.field(init=False)
    kind: StateType = attrs.field(init=False)
    is_final: bool = attrs.field(init=False)
    is_stop: bool = attrs.field(init=False)
    is_pending: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.name = self.state.name
        self.kind = self.state.kind
        self.is_final = self.kind is StateType.FINAL
        self.is_stop = self.kind is StateType.STOP
        self.is_pending = self.kind is StateType.PENDING

    def first(self) -> Ask | Step:
        """Return the first decision for an event."""
        if self.root is None:
            self.root = self.resolve({})
        return self.root

    def resolve(self, answers: dict[Atom, bool]) -> Ask | Step:
        """Compute the step for these answers, or the next condition to evaluate."""

        def holds(condition: IterativeCondition | None) -> bool:
            return _evaluate(condition, self.atoms, answers)

        try:
            step = self._step(holds)
            return step if step.moves else attrs.evolve(step, ending=self._ending(answers))
        except _Unanswered as question:
            return Ask(question.atom, self.resolve, answers)

    def edges(self, answers: dict[Atom, bool]) -> list[StateTransition]:
        """Return the edges that an event takes, once :meth:`resolve` needs no more answers."""
        return self._outgoing_edges(lambda condition: _evaluate(condition, self.atoms, answers))

    def ending(self, answers: dict[Atom, bool]) -> EventEnd:
        """Return why a partial match ended, once :meth:`resolve` needs no more answers."""
        step = self.resolve(answers)
        assert isinstance(step, Step)
        return step.ending

    def _ending(self, answers: dict[Atom, bool]) -> EventEnd:
        if any(edge.target.kind is StateType.STOP for edge in self.edges(answers)):
            return EventEnd.NOT_STAGE
        for state in passed_on_to(self.state):
            for edge in state.transitions:
                takes = edge.action is StateTransitionAction.TAKE
                if takes and _is_closed(edge.condition, self.atoms, answers):
                    return EventEnd.UNTIL
        return EventEnd.CONTIGUITY

    # What ``computeNextStates`` does with the edges of an event, and who grows the version, so that
    # branches with one past have different ones:
    # * IGNORE
    #   * to the state itself: the partial match stays; its version grows by the other IGNOREs and
    #     the TAKEs, at least 1, if there are any; without them it does not change
    #   * to another state: the version grows by the TAKEs but one, and by the IGNOREs that come
    #     after this one and itself, and gets a digit for the stage
    # * TAKE: the version grows by the TAKEs that come after this one, and gets a digit; if PROCEED
    #   edges from its target lead to the final state, it completes a match too
    # * PROCEED: no move, its target's edges take its place (``createDecisionGraph``)
    # * the start state stays whatever happens, and grows as in the first case.
    def _step(self, holds: Callable[[IterativeCondition | None], bool]) -> Step:
        edges = self._outgoing_edges(holds)
        takes = sum(edge.action is StateTransitionAction.TAKE for edge in edges)
        ignores = sum(
            edge.action is StateTransitionAction.IGNORE and edge.target is not self.state
            for edge in edges
        )
        stay = ignores + max(1, takes) if ignores or takes else 0
        branches = [max(0, takes - 1), ignores]
        moves: list[Move] = []
        for edge in edges:
            if edge.action is StateTransitionAction.TAKE:
                moves.append(self._take(edge, branches[0], holds))
                branches[0] -= 1
            elif self.kind is StateType.START:
                continue
            elif edge.target is self.state:
                # Two partial matches must not be one object, so at most one move stays.
                stays = not any(move.stays for move in moves)
                moves.append(Move(self, stays=stays, increase=stay))
            else:
                target = self.tables[edge.target]
                moves.append(
                    Move(
                        target,
                        continues=not target.is_final,
                        completes=target.is_final,
                        increase=max(0, takes - 1) + branches[1],
                        adds_stage=True,
                    )
                )
                branches[1] -= 1
        if any(move.target.is_stop for move in moves):
            moves = [attrs.evolve(move, continues=False) for move in moves if move.completes]
        if self.kind is StateType.START:
            moves.append(Move(self, stays=True, increase=stay))
        return Step(tuple(moves))

    def _take(
        self,
        edge: StateTransition,
        increase: int,
        holds: Callable[[IterativeCondition | None], bool],
    ) -> Move:
        """Return the move of a TAKE edge."""
        target = self.tables[edge.target]
        return Move(
            target,
            takes=True,
            stage=edge.source.stage,
            continues=not target.is_final,
            completes=target.is_final or self._reaches_final(edge.target, holds),
            increase=increase,
            adds_stage=True,
        )

    def _outgoing_edges(
        self, holds: Callable[[IterativeCondition | None], bool]
    ) -> list[StateTransition]:
        """Return the edges for the event: the state's own, then those behind PROCEED edges."""
        edges = []
        stack: list[tuple[State, tuple[State, ...]]] = [(self.state, ())]
        while stack:
            state, path = stack.pop()
            path = (*path, state)
            for edge in state.transitions:
                if holds(edge.condition):
                    if edge.action is StateTransitionAction.PROCEED:
                        stack.append((_unless_endless(edge.target, path), path))
                    else:
                        edges.append(edge)
        return edges

    @staticmethod
    def _reaches_final(target: State, holds: Callable[[IterativeCondition | None], bool]) -> bool:
        """Whether the event just taken also lets the rest of the pattern stay empty."""
        stack: list[tuple[State, tuple[State, ...]]] = [(target, ())]
        while stack:
            state, path = stack.pop()
            path = (*path, state)
            for edge in state.transitions:
                if edge.action is StateTransitionAction.PROCEED and holds(edge.condition):
                    if edge.target.kind is StateType.FINAL:
                        return True
                    stack.append((_unless_endless(edge.target, path), path))
        return False


def passed_on_to(state: State) -> list[State]:
    """Return a state and those behind its PROCEED edges, whatever holds, nearest first."""
    proceed = StateTransitionAction.PROCEED
    return reached(
        state, lambda edge: edge.action is proceed and edge.target.kind is not StateType.STOP
    )


def _is_closed(
    condition: IterativeCondition | None, atoms: Atoms, answers: dict[Atom, bool]
) -> bool:
    """Whether a condition of ``until`` in an edge's condition holds, as far as known."""
    if atoms.is_until(condition):
        with suppress(_Unanswered):
            return _evaluate(condition, atoms, answers)
        return False
    if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
        return any(_is_closed(part, atoms, answers) for part in condition.nestedConditions)
    return False


def _unless_endless(target: State, path: tuple[State, ...]) -> State:
    """Return the target; raise if PROCEED edges form a cycle, on which Flink hangs."""
    if target in path:
        raise endless_loop(next((s.stage for s in path if s.stage != "GroupPattern"), ""))
    return target


def _evaluate(
    condition: IterativeCondition | None, atoms: Atoms, answers: dict[Atom, bool]
) -> bool:
    """Evaluate a condition from known answers, left before right, as far as needed."""
    if condition is None:
        return True
    if isinstance(condition, BooleanConditions):
        return condition.value
    if isinstance(condition, RichAndCondition):
        return all(_evaluate(part, atoms, answers) for part in condition.nestedConditions)
    if isinstance(condition, RichOrCondition):
        return any(_evaluate(part, atoms, answers) for part in condition.nestedConditions)
    if isinstance(condition, RichNotCondition):
        return not _evaluate(condition.nestedConditions[0], atoms, answers)
    atom = atoms.of(condition)
    if atom not in answers:
        raise _Unanswered(atom)
    return answers[atom]
