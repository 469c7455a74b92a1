# SPDX-License-Identifier: Apache-2.0
"""The automaton: advances the partial matches of a key by one event or by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.evaluation import EventEvaluation
from pyflinkcep.engines.flink.nfa.observer import Observer
from pyflinkcep.engines.flink.nfa.partial_matches import (
    NEVER,
    ComputationState,
    EventMatch,
    FoundMatch,
    NFAState,
    Successors,
    Windows,
    branch,
    emit,
    emit_at_once,
    move_on,
    release,
)
from pyflinkcep.engines.flink.nfa.state import Ask, StateTable, Step
from pyflinkcep.engines.flink.sharedbuffer import DeweyNumber, LockableEvent, SharedBufferAccessor
from pyflinkcep.functions import RichFunction, RuntimeContext
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy

TimedOut = tuple[EventMatch, int]
"""A timed-out partial match, and the end of its window in epoch milliseconds."""


@attrs.frozen(eq=False)
class NFA:
    """
    A compiled pattern. It is constant while it runs; the run state is :class:`NFAState`.

    Ports ``org.apache.flink.cep.nfa.NFA`` (Flink 2.3.0), an NFA with a shared versioned match
    buffer. ``doProcess`` handles an event in three steps:

    1. For every partial match, its state and the answers of the conditions select edges
       (``createDecisionGraph``: :meth:`StateTable.resolve`), the edges become successors
       (``computeNextStates``: :func:`~pyflinkcep.engines.flink.nfa.partial_matches.branch`), and
       a successor that takes the event gets a node in the buffer that points back at the previous
       one.
    2. Each successor locks its node, and then the old partial match releases its own, so that a
       step that ends, or a window that is over (:meth:`advance_time`), drops what nothing else
       holds: an event leaves the buffer with the last partial match, or waiting match, on whose
       path it lies.
    3. Matches are extracted in the order of their first event
       (``processMatchesAccordingToSkipStrategy``:
       :mod:`~pyflinkcep.engines.flink.nfa.partial_matches`), and each prunes what the skip strategy
       makes superfluous.

    This path is the specification; ``kernel/src/flink/nfa.c`` mirrors it and must change with it.
    Differs from Flink: there is no quadratic clean-up after each event, whose result Flink ignores.

    Agrawal, Diao, Gyllstrom, Immerman: Efficient Pattern Matching over Event Streams,
    SIGMOD 2008.
    """

    tables: dict[str, StateTable]  # The states by internal name
    start: StateTable  # The start state
    final: StateTable  # The final state
    atoms: tuple[Atom, ...]  # The user's conditions
    window_time: int  # The longest time from first to last event; 0 for any
    # The longest gap before a state's event, in milliseconds, by internal name.
    window_times: dict[str, int]
    handle_timeout: bool  # Whether timed-out partial matches are needed
    skip_strategy: AfterMatchSkipStrategy  # Decides what a match makes superfluous
    description: str  # The pattern on one line
    observer: Observer | None = None  # Receives what the automaton does
    skips: bool = attrs.field(init=False)  # Whether the skip strategy ever discards anything
    # The names of stages in matches, in the order of the pattern's states.
    stages: tuple[str, ...] = attrs.field(init=False)
    windows: Windows = attrs.field(init=False)  # Decides when partial matches time out
    _places: dict[StateTable, int] = attrs.field(init=False, repr=False)

    @skips.default
    def _has_skip_strategy(self) -> bool:
        return self.skip_strategy.isSkipStrategy()

    @stages.default
    def _names_in_matches(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(table.state.stage for table in self.tables.values()))

    @windows.default
    def _windows_of_the_pattern(self) -> Windows:
        return Windows(self.window_time, bool(self.window_times))

    @_places.default
    def _places_in_the_pattern(self) -> dict[StateTable, int]:
        return {table: place for place, table in enumerate(self.start.tables.values())}

    @property
    def is_compressible(self) -> bool:
        """Whether matches can be counted without listing them."""
        reads = [atom for atom in self.atoms if not atom.bit and atom.expression is None]
        return not self.skips and not reads

    def create_initial_state(self) -> NFAState:
        """Return the state of a new key."""
        return NFAState([ComputationState(self.start, DeweyNumber.of([1]))], deadline=NEVER)

    def open(self, context: RuntimeContext) -> None:
        """Open the conditions that have a life cycle, once for every transition."""
        for condition in self._rich_conditions():
            condition.setRuntimeContext(context)
            condition.open(context)

    def close(self) -> None:
        """Close the conditions that have a life cycle."""
        for condition in self._rich_conditions():
            condition.close()

    def _rich_conditions(self) -> list[RichFunction]:
        conditions: list[object] = [
            t.condition for table in self.tables.values() for t in table.state.transitions
        ]
        return [condition for condition in conditions if isinstance(condition, RichFunction)]

    # --- time

    def advance_time(
        self, accessor: SharedBufferAccessor, state: NFAState, timestamp: int
    ) -> tuple[list[tuple[EventMatch, int]], list[TimedOut]]:
        """
        End the partial matches whose window has passed.

        Ports ``NFA.advanceTime`` (Flink 2.3.0).
        """
        if timestamp < state.deadline:
            return [], []
        partials, windows = state.partial_matches, self.windows
        kept: list[ComputationState] = []
        pending: list[ComputationState] = []
        timed_out: list[TimedOut] = []
        first = NEVER
        for partial in partials:
            end = windows.deadline(partial)
            if timestamp < end:
                kept.append(partial)
                if end < first:
                    first = end
                continue
            node = partial.previous_node
            assert node is not None
            if partial.table.is_pending:
                pending.append(partial)
                if self.observer is not None:
                    self.observer.waited(partial)
                continue
            state.ended.window += 1
            if self.observer is not None:
                self.observer.timed_out(partial, windows.passed_deadline(partial, timestamp))
            if self.handle_timeout:
                match = accessor.materialize_match(node, partial.version)
                timed_out.append((match, windows.passed_deadline(partial, timestamp)))
            accessor.release_node(node, partial.version)
        state.deadline = first
        if len(kept) == len(partials):
            return [], []
        state.state_changed = True
        state.partial_matches = kept
        return self._emit_pending(accessor, state, pending, timestamp), timed_out

    def release_time(self, state: NFAState, timestamp: int) -> int:
        """
        Return the first time, up to a given one, at which the end of a window may release a match.

        A skip strategy decides again at each such time, as it does if time passes without a jump:
        where the next event or watermark stands makes no difference.
        """
        if not self.skips or timestamp < state.deadline:
            return timestamp
        windows, partials, waiting = self.windows, state.partial_matches, state.completed_matches
        ends = [windows.deadline(p) for p in partials if p.table.is_pending]
        first = waiting[0].start_event_id if waiting else None
        if first is not None:
            starts = ((p, p.start_event_id) for p in partials)
            holders = [windows.deadline(p) for p, start in starts if start and start < first]
            ends.append(max(holders, default=timestamp))
        return min([*ends, timestamp])

    def _emit_pending(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        pending: list[ComputationState],
        timestamp: int,
    ) -> list[tuple[EventMatch, int]]:
        """Emit what waited for its window to pass without the event of a NOT stage."""
        if self.skips:
            matches = self._emit_by_strategy(accessor, state, pending)
            return [(match, timestamp) for match in matches]
        found = []
        for partial in pending:
            node, start = partial.previous_node, partial.start_event_id
            assert node is not None
            assert start is not None
            events = accessor.materialize_match(node, partial.version)
            found.append(FoundMatch(start, events, self.windows.deadline(partial)))
            accessor.release_node(node, partial.version)
        emitted = [(match.events, match.time) for match in emit_at_once(found)]
        if self.observer is not None:
            matches = [match for match, _ in emitted]
            self.observer.emitted(matches, pending, [], [], state.partial_matches)
        return emitted

    def drop_oldest(
        self, accessor: SharedBufferAccessor, state: NFAState, count: int
    ) -> list[EventMatch]:
        """Drop the `count` partial matches that began first; return matches that they held back."""
        partials = state.partial_matches
        if self.observer is not None:
            self.observer.dropped(partials[:count])
        for partial in partials[:count]:
            release(accessor, partial)
        state.partial_matches = partials[count:]
        state.deadline = self.windows.first_deadline(state.partial_matches)
        return self._emit_by_strategy(accessor, state, []) if state.completed_matches else []

    # --- events

    def process(
        self,
        accessor: SharedBufferAccessor,
        state: NFAState,
        timestamp: int,
        evaluation: EventEvaluation,
        event: Any,
    ) -> list[EventMatch]:
        """
        Process an event for every partial match; call :meth:`advance_time` first.

        Ports ``NFA.process`` and ``doProcess`` (Flink 2.3.0).
        """
        observer, final = self.observer, self.final if self.skips else None
        following: list[ComputationState] = []
        successors = Successors(following, [], [])
        entry: LockableEvent | None = None
        matches: list[EventMatch] = []
        changed = False
        if observer is not None:
            observer.comes(event, timestamp)
        steps = self._first_steps(state, evaluation)
        for partial in state.partial_matches:
            step = steps[partial.table]
            if isinstance(step, Ask):
                step = evaluation.decide(partial.previous_node, partial.version, step)
            if step.keeps:
                following.append(partial)
                continue
            changed = True
            if entry is None and (step.keeps_event or (self.skips and step.takes)):
                entry = accessor.register_event(event, timestamp)
            before, sizes = partial if observer is None else partial.copy(), successors.sizes
            if step.single is not None:
                move_on(accessor, partial, step.single, entry)
                following.append(partial)
            else:
                if partial.table is self.start and timestamp > 0:
                    state.is_new_start_partial_match = True
                if not step.moves:
                    state.ended.by_event[step.ending] += 1
                branch(accessor, partial, step, entry, event, final, successors)
            if observer is not None:
                made = successors.made_of(step, sizes)
                if before.table is self.start:
                    observer.began(accessor, [one for one in made if not one.move.stays])
                else:
                    observer.went_on(accessor, partial, before, made)
        if changed:
            state.state_changed = True
            state.partial_matches = following
            matches = self._emit(accessor, state, successors)
            state.deadline = self.windows.deadline_after(state.deadline, state.partial_matches)
            if entry is not None:
                accessor.release_event(entry)
        if observer is not None:
            observer.done(state.partial_matches)
        return matches

    def _first_steps(
        self, state: NFAState, evaluation: EventEvaluation
    ) -> dict[StateTable, Step | Ask]:
        """
        Return what an event does in each state, as far as conditions on it alone tell.

        In the order of the pattern, so that conditions are evaluated in one order.
        """
        tables = {partial.table for partial in state.partial_matches}
        ordered = sorted(tables, key=self._places.__getitem__) if len(tables) > 1 else tables
        return {table: evaluation.on_event_alone(table) for table in ordered}

    def _emit(
        self, accessor: SharedBufferAccessor, state: NFAState, successors: Successors
    ) -> list[EventMatch]:
        """Emit the matches that an event completed, and those that it releases."""
        if successors.completed or state.completed_matches:
            return self._emit_by_strategy(accessor, state, successors.completed)
        matches = [match.events for match in emit_at_once(successors.found)]
        if matches and self.observer is not None:
            self.observer.emitted(matches, [], [], [], state.partial_matches)
        return matches

    def _emit_by_strategy(
        self, accessor: SharedBufferAccessor, state: NFAState, completed: list[ComputationState]
    ) -> list[EventMatch]:
        """Emit the matches that the skip strategy releases."""
        if self.observer is None:
            return emit(self.skip_strategy, accessor, state, completed)
        partials, before = state.partial_matches, [*state.completed_matches, *completed]
        matches = emit(self.skip_strategy, accessor, state, completed)
        waiting, left = list(state.completed_matches), state.partial_matches
        gone, discarded = _without(before, waiting), _without(partials, left)
        self.observer.emitted(matches, gone, waiting, discarded, left)
        return matches


def _without(
    before: Sequence[ComputationState], after: Sequence[ComputationState]
) -> list[ComputationState]:
    left = set(map(id, after))
    return [state for state in before if id(state) not in left]
