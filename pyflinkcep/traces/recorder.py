# SPDX-License-Identifier: Apache-2.0
"""Watches what an automaton does to the partial matches of each key, and makes the trace of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import attrs

from pyflinkcep.conditions import IterativeCondition, sql_of
from pyflinkcep.engines.flink.nfa import NFA, ComputationState, EventMatch, Expressions
from pyflinkcep.engines.flink.nfa.atoms import Atom, Atoms, known_value
from pyflinkcep.engines.flink.nfa.observer import Observer
from pyflinkcep.engines.flink.nfa.partial_matches import NEVER, Continuation, Windows
from pyflinkcep.engines.flink.nfa.state import (
    EventEnd,
    State,
    StateTable,
    StateTransitionAction,
    StateType,
    passed_on_to,
)
from pyflinkcep.engines.flink.operator import (
    CepOperator,
    Input,
    KeyedCepOperator,
    PartialMatchLimit,
)
from pyflinkcep.engines.flink.sharedbuffer import SharedBufferAccessor
from pyflinkcep.expressions.evaluator import Compared, compared_in_match, compared_in_sql
from pyflinkcep.expressions.tree import MatchExpression
from pyflinkcep.pattern import Pattern
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.pattern import stages_of
from pyflinkcep.pattern.stage import Stage
from pyflinkcep.traces.model import (
    Answer,
    Effect,
    End,
    Ending,
    Miss,
    PartialMatch,
    TracedEvent,
    TracedMatch,
    by_stage,
)
from pyflinkcep.traces.result import Trace

Answers = Mapping[Atom, bool]


_Why = tuple[tuple[Atom, bool], ...]


def refusals(table: StateTable, answers: Answers) -> dict[str, _Why]:
    """Return the stages that could have taken an event in a state and did not, each with why."""
    found: dict[str, _Why] = {}
    for state in passed_on_to(table.state):
        for edge in state.transitions:
            if edge.action is StateTransitionAction.TAKE and state.stage not in found:
                value, why = valued(edge.condition, table.atoms, answers)
                if value is False and why:
                    found[state.stage] = why
    return found


def wanted(table: StateTable) -> tuple[str, ...]:
    """Return the stages that could take an event in a state, nearest first."""
    return tuple(dict.fromkeys(state.stage for state in passed_on_to(table.state) if _takes(state)))


def stopped_by(table: StateTable, answers: dict[Atom, bool]) -> str | None:
    """Return the NOT stage whose event came, by the answers; None if none did."""
    stops: list[State] = [
        edge.target for edge in table.edges(answers) if edge.target.kind is StateType.STOP
    ]
    return stops[0].stage if stops else None


def _takes(state: State) -> bool:
    return any(edge.action is StateTransitionAction.TAKE for edge in state.transitions)


def valued(
    condition: IterativeCondition | None, atoms: Atoms, answers: Answers
) -> tuple[bool | None, _Why]:
    """Return a condition's value as far as known, and the answers that decide it."""
    value, parts = known_value(condition, lambda part: answers.get(atoms.of(part)))
    why = [atoms.of(part) for part in parts]
    return value, tuple((atom, answers[atom]) for atom in why)


Steps = Sequence[tuple[int, str]]
"""Events that were taken, by their numbers, each with the stage."""


@attrs.define(eq=False)
class Answerer:
    """Makes answers of conditions, with the values that they compared."""

    events: Sequence[Any]  # The events, by their numbers
    untils: frozenset[Atom]  # The conditions of ``until``
    _known: dict[tuple[int, int], Answer] = attrs.field(factory=dict)

    def answer(self, atom: Atom, holds: bool, event: int, steps: Steps = ()) -> Answer:
        """Return a condition's answer for an event."""
        if not atom.bit:
            return self._made(atom, holds, self._in_match(atom.condition, event, steps))
        found = self._known.get((event, atom.bit))
        if found is None:
            text = sql_of(atom.condition)
            parts = () if text is None else compared_in_sql(text, self.events[event])
            found = self._known[event, atom.bit] = self._made(atom, holds, parts)
        return found

    def _in_match(
        self, condition: IterativeCondition, event: int, steps: Steps
    ) -> tuple[Compared, ...]:
        if not isinstance(condition, MatchExpression):
            return ()
        taken = {s: [self.events[n] for n in own] for s, own in by_stage(steps).items()}
        order = [self.events[number] for number, _ in steps]
        return compared_in_match(condition, self.events[event], taken, order)

    def _made(self, atom: Atom, holds: bool, parts: tuple[Compared, ...]) -> Answer:
        failed = () if holds else tuple((p.text, p.values) for p in parts if not p.holds)
        values = dict(value for part in parts for value in part.values)
        text = repr(atom.condition)
        return Answer(atom.stage, text, holds, atom in self.untils, failed, tuple(values.items()))


class EnoughError(Exception):
    """More partial matches than anyone would look at."""


@attrs.define(eq=False)
class Recorder(Observer):
    """The observer that makes a trace; events are their numbers."""

    answerer: Answerer  # Says what a condition compared
    keys: Sequence[Any]  # The key of each event
    windows: Windows  # When windows end
    strategy: AfterMatchSkipStrategy  # Decides what a match makes superfluous
    # Of how many events that it passes by each partial match keeps why; None for all.
    most_misses: int | None = None
    # How many partial matches are recorded before :class:`EnoughError`; None for all.
    most_partials: int | None = None
    # How many steps there are before it: an event shown to a partial match is one, a match another.
    most_steps: int | None = None
    steps: int = 0
    lanes: list[PartialMatch] = attrs.field(factory=list)  # The partial matches so far
    # The matches so far, in the order in which they were complete.
    matches: list[TracedMatch] = attrs.field(factory=list)
    effects: dict[int, list[Effect]] = attrs.field(factory=dict)  # What each event did
    begins: dict[int, tuple[Miss, ...]] = attrs.field(factory=dict)  # Why an event began nothing
    # The answers about each event alone.
    asked: dict[int, dict[Atom, bool]] = attrs.field(factory=dict)
    # How often a condition over a partial match was evaluated, and held.
    answers: dict[Atom, list[int]] = attrs.field(factory=dict)
    _now: int | None = None
    _time: int = 0
    _own: dict[tuple[int, int], dict[Atom, bool]] = attrs.field(factory=dict)
    _times: dict[int, int] = attrs.field(factory=dict)
    _ids: dict[int, Any] = attrs.field(factory=dict)  # Those of events in the buffer
    _misses: dict[int, list[Miss]] = attrs.field(factory=dict)
    _became: dict[int, TracedMatch] = attrs.field(factory=dict)  # With what a partial match ended
    _open: dict[int, tuple[ComputationState, PartialMatch]] = attrs.field(factory=dict)
    _held: dict[int, tuple[ComputationState, TracedMatch]] = attrs.field(factory=dict)
    _found: list[TracedMatch] = attrs.field(factory=list)
    _touched: set[int] = attrs.field(factory=set)
    _emitted: int = 0

    # --- an event

    def comes(self, event: Any, timestamp: int) -> None:
        """Note which event is at work."""
        self.steps += len(self._open)
        if self.most_steps is not None and self.steps > self.most_steps:
            raise EnoughError
        self._now, self._time = event, timestamp
        self._times[event] = timestamp
        self._own.clear()
        self._touched.clear()
        self.asked[event] = {}

    def answered(self, atom: Atom, holds: bool, node: Any, version: Any) -> None:
        """Note a condition's answer."""
        if atom.bit:
            self.asked[self._event][atom] = holds
        else:
            self._own.setdefault((id(node), id(version)), {})[atom] = holds
            counts = self.answers.setdefault(atom, [0, 0])
            counts[0] += 1
            counts[1] += holds

    def began(self, accessor: SharedBufferAccessor, made: Sequence[Continuation]) -> None:
        """Note the partial matches that the event begins."""
        for one in made:
            lane = self._lane(None, (self._step(one),))
            self._effect(lane, "began", one.move.stage)
            self._continues(lane, one)

    def went_on(
        self,
        accessor: SharedBufferAccessor,
        partial: ComputationState,
        before: ComputationState,
        made: Sequence[Continuation],
    ) -> None:
        """Note what became of a partial match."""
        _, lane = self._open.pop(id(partial))
        if not made:
            self._ends_here(lane, before)
            return
        stays = any(one.move.stays for one in made)
        if not any(one.move.takes for one in made):
            self._passes(lane, before)
        steps, inherits = lane.steps, not stays
        for one in made:
            if one.move.stays:
                self._enter(lane, partial)
                if len(made) == 1:
                    self._effect(lane, "passed by")
                continue
            following = (*steps, self._step(one)) if one.move.takes else steps
            if inherits:
                inherits, lane.steps = False, following
                what = "took" if one.move.takes else "passed by"
                self._effect(lane, what, one.move.stage)
                self._continues(lane, one)
            else:
                fork = self._lane(lane, following)
                self._effect(fork, "forked", one.move.stage)
                self._continues(fork, one)

    def done(self, partials: Sequence[ComputationState]) -> None:
        """Note which partial matches the event passed by, and why it began none."""
        for partial in partials:
            if partial.start_event_id is None:
                if not any(effect.what == "began" for effect in self.effects.get(self._event, ())):
                    known = self._known(partial)
                    self.begins[self._event] = tuple(self._refused(partial.table, known, None))
                continue
            _, lane = self._open[id(partial)]
            if lane.number not in self._touched and self._keeps(lane):
                self._passes(lane, partial)
                self._effect(lane, "passed by")
        self._now = None

    # --- ends

    def timed_out(self, partial: ComputationState, end: int) -> None:
        """Note that a window ended a partial match."""
        _, lane = self._open.pop(id(partial))
        gap = partial.table.gap_ms
        is_gap = 0 < gap == end - self._times[lane.steps[-1][0]]
        stages = wanted(partial.table)
        lane.ending = Ending(End.GAP if is_gap else End.WINDOW, end, None, stages)

    def waited(self, partial: ComputationState) -> None:
        """Note that a partial match became a match by waiting."""
        _, lane = self._open.pop(id(partial))
        self._completes(lane, partial, ends=True)

    def dropped(self, partials: Sequence[ComputationState]) -> None:
        """Note what the limit drops."""
        for partial in partials:
            _, lane = self._open.pop(id(partial))
            lane.ending = Ending(End.LIMIT, self._time, None, wanted(partial.table))

    def _ends_here(self, lane: PartialMatch, before: ComputationState) -> None:
        """Note that the event ended a partial match, and why."""
        known = self._known(before)
        stop = stopped_by(before.table, known)
        misses = tuple(self._refused(before.table, known, lane))
        if stop is not None:
            about = tuple(
                self.answerer.answer(atom, holds, self._event, lane.steps)
                for atom, holds in known.items()
                if atom.stage == stop
            )
            ending = Ending(End.NOT, self._time, self._event, (stop,), None, about)
        else:
            self._missed(lane).extend(misses)
            is_until = before.table.ending(known) is EventEnd.UNTIL
            kind = End.UNTIL if is_until else End.CONTIGUITY
            ending = Ending(kind, self._time, self._event, wanted(before.table))
        lane.ending = ending
        self._effect(lane, "ended")

    # --- matches

    def emitted(
        self,
        matches: Sequence[EventMatch],
        gone: Sequence[ComputationState],
        waiting: Sequence[ComputationState],
        partials: Sequence[ComputationState],
        left: Sequence[ComputationState],
    ) -> None:
        """Note which matches came out, which wait, and what they made superfluous."""
        pool = [self._held.pop(id(state))[1] for state in gone] + self._found
        self._found = []
        out = []
        for match in matches:
            found = next(one for one in pool if one.events == match)
            pool.remove(found)
            found.number, found.emitted, found.came_out = self._emitted, self._now, True
            self._emitted += 1
            out.append(found)
        for dropped in pool:
            first = next(iter(dropped.events.values()))[0]
            dropped.discarded_by = self._superfluous(first, out)
        for partial in partials:
            _, lane = self._open.pop(id(partial))
            number = self._superfluous(lane.steps[0][0], out)
            lane.ending = Ending(End.SKIP, self._time, self._now, wanted(partial.table), number)
        earliest = self._first(left)
        for state in waiting:
            held = self._held[id(state)][1]
            if held.held_back_by is None:
                held.held_back_by = earliest

    def _first(self, partials: Sequence[ComputationState]) -> int | None:
        """Return the partial match that began first; None if none is left."""
        found = self._open.get(id(partials[0]))
        return None if found is None else found[1].number

    def _superfluous(self, start: int, out: Sequence[TracedMatch]) -> int | None:
        """Return the emitted match that made what began with an event superfluous."""
        for match in out:
            path = {s: [self._id(n) for n in own] for s, own in match.events.items()}
            pruning = self.strategy.pruning_id([path])
            if pruning is not None and self.strategy.should_prune(self._id(start), pruning):
                return match.number
        return None

    def _id(self, event: int) -> Any:
        return self._ids.get(event)

    def finish(self, stages: Sequence[str]) -> None:
        """Complete what is recorded of matches and partial matches, once the input has ended."""
        for match in self.matches:
            if not match.came_out:
                match.number = self._emitted
                self._emitted += 1
        self.matches.sort(key=lambda match: match.number)
        for lane in self.lanes:
            lane.misses = tuple(self._misses.get(lane.number, ()))
            lane.reached = max((stages.index(stage) for _, stage in lane.steps), default=0) + 1
            became = self._became.get(lane.number)
            if became is not None:
                lane.ending = _ending(became, lane.ending)

    # --- helpers

    @property
    def _event(self) -> int:
        assert self._now is not None
        return self._now

    def _lane(
        self, parent: PartialMatch | None, steps: tuple[tuple[int, str], ...]
    ) -> PartialMatch:
        if self.most_partials is not None and len(self.lanes) >= self.most_partials:
            raise EnoughError
        before, began = (None, self._time) if parent is None else (parent.number, parent.began)
        lane = PartialMatch(len(self.lanes), self.keys[self._event], before, steps, began)
        self.lanes.append(lane)
        return lane

    def _step(self, one: Continuation) -> tuple[int, str]:
        """Return the step by which the event was taken."""
        state = one.partial or one.completed
        node = state.previous_node if isinstance(state, ComputationState) else None
        if node is not None:
            self._ids[self._event] = node.entry.event_id
        return self._event, one.move.stage

    def _continues(self, lane: PartialMatch, one: Continuation) -> None:
        """Note where a partial match goes on, and that it is a match if it is."""
        if one.completed is not None:
            self._completes(lane, one.completed, ends=one.partial is None)
        if one.partial is not None:
            self._enter(lane, one.partial)

    def _completes(self, lane: PartialMatch, completed: Any, *, ends: bool) -> None:
        self.steps += 1
        match = TracedMatch(-1, lane.number, lane.events, self._now)
        self.matches.append(match)
        if self._now is not None:
            self._effect(lane, "matched")
        if isinstance(completed, ComputationState):
            self._held[id(completed)] = (completed, match)
        else:
            self._found.append(match)
        if ends:
            lane.ending = Ending(End.MATCH, self._time, self._now)
            self._became[lane.number] = match

    def _enter(self, lane: PartialMatch, partial: ComputationState) -> None:
        self._open[id(partial)] = (partial, lane)
        deadline = self.windows.deadline(partial)
        lane.deadline = None if deadline >= NEVER else deadline
        lane.ending = Ending(End.INPUT, None, None, wanted(partial.table))

    def _effect(self, lane: PartialMatch, what: str, stage: str = "") -> None:
        self._touched.add(lane.number)
        self.effects.setdefault(self._event, []).append(Effect(lane.number, what, stage))

    def _known(self, partial: ComputationState) -> dict[Atom, bool]:
        own = self._own.get((id(partial.previous_node), id(partial.version)), {})
        return {**self.asked[self._event], **own}

    def _keeps(self, lane: PartialMatch) -> bool:
        return self.most_misses is None or len(self._missed(lane)) < self.most_misses

    def _missed(self, lane: PartialMatch) -> list[Miss]:
        return self._misses.setdefault(lane.number, [])

    def _passes(self, lane: PartialMatch, before: ComputationState) -> None:
        self._missed(lane).extend(self._refused(before.table, self._known(before), lane))

    def _refused(
        self, table: StateTable, known: Mapping[Atom, bool], lane: PartialMatch | None
    ) -> Iterator[Miss]:
        steps = () if lane is None else lane.steps
        for stage, why in refusals(table, known).items():
            answers = (self.answerer.answer(*one, self._event, steps) for one in why)
            yield Miss(self._event, stage, tuple(answers))


def _ending(match: TracedMatch, ending: Ending) -> Ending:
    """Return how a partial match ended that became a match, which may not have come out."""
    if match.came_out:
        return attrs.evolve(ending, match=match.number)
    if match.discarded_by is not None:
        return attrs.evolve(ending, kind=End.SKIP, match=match.discarded_by)
    return attrs.evolve(ending, kind=End.HELD, match=match.number, partial=match.held_back_by)


class Run(Protocol):
    """A pattern and events, ready to be watched; ``tables/match.py`` makes it."""

    @property
    def pattern(self) -> Pattern:
        """The pattern, with conditions that can be evaluated here."""

    @property
    def nfa(self) -> NFA:
        """The same, compiled and opened."""

    @property
    def given(self) -> Input:
        """The events."""

    @property
    def expressions(self) -> Expressions | None:
        """The SQL over stages."""


def watched(
    run: Run,
    limit: PartialMatchLimit | None,
    most_misses: int | None = None,
    most_partials: int | None = None,
    most_steps: int | None = None,
) -> tuple[Trace, Recorder]:
    """Return the trace of a pattern, and what was recorded for it."""
    nfa, given = run.nfa, run.given
    stages = list(single_stages(run.pattern))
    untils = [stage.until for stage in stages if stage.until is not None]
    answerer = Answerer(given.events, frozenset(_atoms(nfa, untils)))
    recorder = Recorder(
        answerer,
        given.keys,
        nfa.windows,
        nfa.skip_strategy,
        most_misses,
        most_partials,
        most_steps,
    )
    output = _Collected(given.events)
    operator = CepOperator(
        attrs.evolve(nfa, observer=recorder),
        given.events.__getitem__,
        limit=limit,
        expressions=over_numbers(run.expressions, given.events),
        by_windows=True,
    )
    keyed = KeyedCepOperator(operator, output, given.order_of_numbers)
    with suppress(EnoughError):
        given.feed(keyed)
    fewest = {stage.name: _fewest(stage) for stage in stages if not stage.is_absent}
    recorder.finish(list(fewest))
    late = set(output.late_numbers)
    events = (_event(recorder, given, n, n in late) for n in range(len(given.events)))
    trace = Trace(
        nfa.description,
        fewest,
        tuple(events),
        tuple(recorder.lanes),
        tuple(recorder.matches),
        output.matches,
        output.timeouts,
    )
    return trace, recorder


def over_numbers(expressions: Expressions | None, events: Sequence[Any]) -> Expressions | None:
    """Return SQL over stages for events that are known by their numbers."""
    if expressions is None:
        return None
    fields = expressions.fields
    return Expressions(expressions.functions, lambda number: fields(events[number]))


def single_stages(pattern: Pattern) -> Iterator[Stage]:
    """Yield the single stages of a pattern, in order."""
    for stage in stages_of(pattern):
        yield from stage.singles()


def _fewest(stage: Stage) -> int:
    return 1 if stage.times is None else stage.times.from_


def _atoms(nfa: NFA, untils: Sequence[IterativeCondition]) -> Iterator[Any]:
    for until in untils:
        for table in nfa.tables.values():
            yield from table.atoms.inside(until)
            break


@attrs.define(eq=False)
class _Collected:
    """An operator's results, in terms of the user's events."""

    events: Sequence[Any]
    matches: list[EventMatch] = attrs.field(factory=list)
    timeouts: list[tuple[EventMatch, int]] = attrs.field(factory=list)
    late_numbers: list[int] = attrs.field(factory=list)

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        self.matches.append(self._of_user(match))

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        self.timeouts.append((self._of_user(match), timestamp))

    def dropped(self, key: Any, count: int) -> None:
        pass

    def late(self, key: Any, event: Any) -> None:
        self.late_numbers.append(event)

    def _of_user(self, match: EventMatch) -> EventMatch:
        return {stage: [self.events[n] for n in numbers] for stage, numbers in match.items()}


def _event(recorder: Recorder, given: Input, number: int, late: bool) -> TracedEvent:
    answers = tuple(
        recorder.answerer.answer(atom, holds, number)
        for atom, holds in recorder.asked.get(number, {}).items()
    )
    return TracedEvent(
        number,
        given.events[number],
        given.times[number],
        given.keys[number],
        late,
        answers,
        recorder.begins.get(number, ()),
        tuple(recorder.effects.get(number, ())),
    )
