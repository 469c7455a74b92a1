# SPDX-License-Identifier: Apache-2.0
"""
The partial matches of a pattern without a skip strategy, equal ones merged.

Specifies ``kernel/src/compressed/pattern_runs.c``; the two must be changed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import attrs

from pyflinkcep.engines.compressed.payloads import Payloads
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.evaluation import expression_failed
from pyflinkcep.engines.flink.nfa.state import State
from pyflinkcep.engines.flink.nfa.steps import Ask, Move, StateTable, Step
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.codegen import MatchFunctions
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["PatternRuns", "live_slots", "refuse_incompressible"]


class Answers(Protocol):
    """Answers the conditions that read the current event only."""

    def holds(self, atom: Atom) -> bool:
        """Whether a condition holds."""


Slots = tuple[Any, ...] | ArithmeticError
"""What conditions read; an error if it cannot be computed, raised by the condition that reads
it."""


@attrs.define(eq=False)
class _Partial:
    """Partial matches in one state that nothing can tell apart later."""

    table: StateTable
    slots: Slots
    start: int
    previous: int
    payload: Any


def refuse_incompressible(nfa: NFA) -> None:
    """
    Refuse a pattern whose matches cannot be compressed.

    Raises
    ------
    NotSupportedError
        If the pattern has a skip strategy, or a condition that is a function of the context.
    """
    if nfa.skips:
        raise NotSupportedError(
            f"compressed matches of a pattern have no skip strategy, got {nfa.skip_strategy}",
            "a skip strategy needs matches one by one: use AfterMatchSkipStrategy.noSkip()",
        )
    for atom in nfa.atoms:
        if not atom.bit and atom.expression is None:
            raise NotSupportedError(
                f"compressed matches of a pattern with the condition {atom.condition!r} of "
                f"stage {atom.stage!r}, a function of the event and the partial match",
                "write it as SQL over stages, as in where('price > avg(up.price)')",
            )


class PatternRuns:
    """
    The partial matches of one key.

    Partial matches are merged if they are in the same state and agree in all that later conditions
    may read and in the times that windows use. Duplicates count as in Flink.

    Parameters
    ----------
    nfa : NFA
        The pattern.
    payloads : Payloads
        What partial matches carry; components are indexes into ``nfa.stages``.
    expressions : CompiledExpressions or None
        The programs of the pattern's match expressions.
    functions : MatchFunctions or None
        The expressions.

    Raises
    ------
    NotSupportedError
        If the pattern's matches cannot be compressed.
    """

    def __init__(
        self,
        nfa: NFA,
        payloads: Payloads,
        expressions: CompiledExpressions | None = None,
        functions: MatchFunctions | None = None,
    ) -> None:
        refuse_incompressible(nfa)
        self._nfa = nfa
        self._payloads = payloads
        self._functions = functions
        self._stages = {stage: number for number, stage in enumerate(nfa.stages)}
        self._live = {} if expressions is None else live_slots(nfa, expressions)
        initial = () if functions is None else functions.initial
        self._start = _Partial(nfa.start, initial, 0, 0, None)
        self._alive: dict[Any, _Partial] = {}

    def advance(self, time: int) -> Iterator[Any]:
        """End the partial matches whose window has passed; yield those that complete by it."""
        for key, partial in list(self._alive.items()):
            if time >= self._deadline(partial):
                del self._alive[key]
                if partial.table.is_pending:
                    yield partial.payload

    def earliest_start(self) -> int | None:
        """Return when the first live partial match began; None if there is none."""
        return min((partial.start for partial in self._alive.values()), default=None)

    def deadline(self) -> int | None:
        """Return when the first window of a partial match ends; None if none does."""
        ends = map(self._deadline, self._alive.values())
        return min((int(end) for end in ends if end <= MAX_WATERMARK), default=None)

    def _deadline(self, partial: _Partial) -> float:
        length, gap = self._nfa.window_time, partial.table.gap_ms
        by_first = partial.start + length if length > 0 else float("inf")
        return min(by_first, partial.previous + gap) if gap > 0 else by_first

    def process(
        self, at: int, time: int, answers: Answers, fields: Callable[[], Sequence[Any]]
    ) -> Iterator[Any]:
        """
        Process an event; call :meth:`advance` before the first event of each time.

        Parameters
        ----------
        at : int
            The event's position.
        time : int, milliseconds
            Its time.
        answers : Answers
            Answers the conditions on the event alone.
        fields : callable
            Returns what match expressions read from the event.

        Yields
        ------
        object
            What completed matches carry.
        """
        following: list[_Partial] = []
        for partial in (*self._alive.values(), self._start):
            step = self._decide(partial, time, answers, fields)
            if step.keeps and partial is not self._start:
                following.append(partial)
                continue
            for move in step.moves:
                if not (move.stays and partial is self._start):
                    after = self._moved(partial, move, at, time, fields)
                    if move.completes:
                        yield after.payload
                    if move.continues:
                        following.append(after)
        self._alive = {}
        for partial in following:
            self._put(partial)

    def _decide(
        self, partial: _Partial, time: int, answers: Answers, fields: Callable[[], Sequence[Any]]
    ) -> Step:
        step: Any = partial.table.first()
        while isinstance(step, Ask):
            atom = step.atom
            if atom.bit:
                holds = answers.holds(atom)
            else:
                holds = self._compute(atom, partial.slots, time, fields)
            step = step.following(holds)
        assert isinstance(step, Step)
        return step

    def _compute(
        self, atom: Atom, slots: Slots, time: int, fields: Callable[[], Sequence[Any]]
    ) -> bool:
        assert self._functions is not None
        if isinstance(slots, ArithmeticError):
            raise expression_failed(atom, slots, time) from slots
        try:
            return self._functions.conditions[str(atom.expression)](fields(), slots)
        except ArithmeticError as cause:
            raise expression_failed(atom, cause, time) from cause

    def _moved(
        self,
        partial: _Partial,
        move: Move,
        at: int,
        time: int,
        fields: Callable[[], Sequence[Any]],
    ) -> _Partial:
        if not move.takes:
            return _Partial(
                move.target, partial.slots, partial.start, partial.previous, partial.payload
            )
        stage, functions = self._stages[move.stage], self._functions
        payload, start = partial.payload, partial.start
        if partial is self._start:
            payload, start = self._payloads.begun(stage, at), time
        else:
            payload = self._payloads.taken(payload, stage, at)
        slots = partial.slots
        update = None if functions is None else functions.updates.get(move.stage, functions.other)
        if update is not None and not isinstance(slots, ArithmeticError):
            try:
                slots = update(slots, fields())
            except ArithmeticError as cause:
                slots = cause
        return _Partial(move.target, slots, start, time, payload)

    def _put(self, partial: _Partial) -> None:
        slots: Any = partial.slots
        if isinstance(slots, ArithmeticError):
            slots = ArithmeticError
        else:
            slots = tuple([slots[n] for n in self._live.get(partial.table.name, ())])
        start = partial.start if self._nfa.window_time > 0 else None
        previous = partial.previous if self._nfa.window_times else None
        key = partial.table.name, slots, start, previous
        other = self._alive.get(key)
        if other is None:
            self._alive[key] = partial
        else:
            merged = self._payloads.merged(other.payload, partial.payload)
            first = min(other.start, partial.start)
            self._alive[key] = _Partial(other.table, other.slots, first, other.previous, merged)


def live_slots(nfa: NFA, expressions: CompiledExpressions) -> dict[str, tuple[int, ...]]:
    """Return for each state the slots that conditions reachable from it read."""
    reads = {key: expressions.slots_of(key) for key in expressions.programs}
    own: dict[State, set[Any]] = {}
    for table in nfa.tables.values():
        asked = _expressions(table)
        own[table.state] = set().union(*(reads[key] for key in asked))
    return {
        table.name: tuple(sorted(set().union(*(own[state] for state in _reachable(table.state)))))
        for table in nfa.tables.values()
    }


def _expressions(table: StateTable) -> set[str]:
    return {
        str(atom.expression)
        for edge in table.state.transitions
        if edge.condition is not None
        for atom in table.atoms.inside(edge.condition)
        if atom.expression is not None
    }


def _reachable(state: State) -> set[State]:
    found, waiting = {state}, [state]
    while waiting:
        for edge in waiting.pop().transitions:
            if edge.target not in found:
                found.add(edge.target)
                waiting.append(edge.target)
    return found
