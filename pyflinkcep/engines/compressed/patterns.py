# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern without a skip strategy, counted, aggregated or as nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import (
    Compressed,
    Ended,
    Payloads,
    RequestedTotal,
    Roots,
    Weighed,
    Weighing,
    weighed_totals,
)
from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA, EventEvaluation
from pyflinkcep.engines.flink.nfa.atoms import Atom, known_bits
from pyflinkcep.engines.flink.nfa.evaluation import expression_failed
from pyflinkcep.engines.flink.nfa.state import Ask, Move, State, StateTable, Step, reached
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.codegen import MatchFunctions, generated
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.time import MAX_WATERMARK

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


Fields = Callable[[], Sequence[Any]]
"""Returns what match expressions read from the event."""

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
    """Refuse a pattern whose matches cannot be compressed."""
    if nfa.skips:
        raise NotSupportedError(
            f"compressed matches do not support a skip strategy, got {nfa.skip_strategy}",
            "a skip strategy needs matches one by one: use AfterMatchSkipStrategy.noSkip()",
        )
    for atom in nfa.atoms:
        if not atom.bit and atom.expression is None:
            raise NotSupportedError(
                f"compressed matches do not support the condition {atom.condition!r} of "
                f"stage {atom.stage!r}, a function of the event and the partial match",
                "write it as SQL over stages, as in where('price > avg(up.price)')",
            )


class PatternRuns:
    """
    The partial matches of one key.

    Partial matches are merged if they are in the same state and agree in all that later conditions
    may read and in the times that windows use. Duplicates count as in Flink.
    """

    def __init__(
        self,
        nfa: NFA,
        payloads: Payloads,
        functions: MatchFunctions | None,
        live: Mapping[str, tuple[int, ...]],
    ) -> None:
        self._nfa = nfa
        self._payloads = payloads
        self._functions = functions
        self._stages = {stage: number for number, stage in enumerate(nfa.stages)}
        self._live = live
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
        self, at: int, time: int, answers: EventEvaluation, fields: Fields
    ) -> Iterator[Any]:
        """Process an event; call :meth:`advance` before the first event of each time."""
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
        self,
        partial: _Partial,
        time: int,
        answers: EventEvaluation,
        fields: Fields,
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

    def _compute(self, atom: Atom, slots: Slots, time: int, fields: Fields) -> bool:
        assert self._functions is not None
        if isinstance(slots, ArithmeticError):
            raise expression_failed(atom, slots, time) from slots
        try:
            return self._functions.conditions[str(atom.expression)](fields(), slots)
        except ArithmeticError as cause:
            raise expression_failed(atom, cause, time) from cause

    def _moved(self, partial: _Partial, move: Move, at: int, time: int, fields: Fields) -> _Partial:
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
        table.name: tuple(
            sorted(set().union(*(own[state] for state in reached(table.state, lambda _: True))))
        )
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


@attrs.frozen(eq=False)
class KeyedEvents:
    """The events of several keys, key by key."""

    times: Any  # The events' times, ascending within each key
    bits: Any  # The answers of conditions known beforehand; see :meth:`Kernel.run`
    bounds: Any  # Where the events of each key begin, and where those of the last end
    # How many of each key's events were processed earlier, so that their matches are known.
    held: int = 0
    before: int | None = None  # The time reached after those; None if there are none
    watermark: int = MAX_WATERMARK  # The time reached after the last event


@attrs.frozen(eq=False)
class EventViews:
    """Events by position, as conditions see them."""

    row: Callable[[int], Any]  # Returns an event as the user's functions see it
    fields: Callable[[int], Sequence[Any]]  # Returns what match expressions read from an event
    columns: tuple[Any, ...]  # The same for all events; see :meth:`Kernel.set_events`
    # Returns for each event the answers of conditions known beforehand, as bits of an integer.
    answers: Callable[[], Sequence[int]]


@attrs.frozen(eq=False)
class CompressiblePattern:
    """A pattern whose matches can be compressed."""

    nfa: NFA  # The pattern
    functions: MatchFunctions | None  # Its match expressions
    variables: tuple[str, ...]  # The stages that take events; nodes refer to them by index
    counter: _kernel.Kernel | None  # The pattern's kernel; None if the plain path must count
    live: dict[str, tuple[int, ...]]  # By state, the slots that distinguish partial matches

    @classmethod
    def of(
        cls, nfa: NFA, expressions: CompiledExpressions | None, variables: tuple[str, ...]
    ) -> CompressiblePattern:
        """Prepare a pattern."""
        refuse_incompressible(nfa)
        functions = None if expressions is None else generated(expressions)
        live = {} if expressions is None else live_slots(nfa, expressions)
        known = known_bits(nfa.atoms)
        counter = make_kernel(nfa, known, sets_timers=False, expressions=expressions)
        return cls(nfa, functions, variables, counter, live)


@attrs.define(eq=False)
class PatternMatches(Compressed):
    """
    The matches of a pattern on the events of keys.

    A place is the position of the event that completes matches. For matches that end with the
    watermark, not at an event, it is the negative of the position after the key's last event.
    """

    pattern: CompressiblePattern  # The pattern
    events: KeyedEvents  # The events
    views: EventViews  # The events as conditions see them
    # Set once matches have been requested: when the last key's first live partial match began, and
    # when the first window of one ends.
    begun: int | None = None
    deadline: int | None = None
    failed: int = 0  # The index of the key that an error came from
    _answers: Sequence[int] | None = attrs.field(default=None, init=False)

    @property
    def variables(self) -> Sequence[str]:
        """The stages, of which measures name some."""
        return self.pattern.nfa.stages

    def ended(self, payloads: Payloads) -> Iterator[tuple[int, Any]]:
        """Yield where matches end, and what they carry."""
        for key in range(len(self.events.bounds) - 1):
            yield from self.ended_of(key, payloads)

    def roots_by_event(self, numbers: Sequence[int] | None = None) -> Iterator[Roots]:
        """Yield where matches end, and their nodes, with the indexes of variables."""
        places = {name: number for number, name in enumerate(self.pattern.variables)}
        return super().roots_by_event([places.get(stage, -1) for stage in self.variables])

    def weighed(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended] | None:
        """Return the numbers and totals from the kernel; None if it cannot compute them."""
        loops = [True] * len(self.variables)
        weighed = Weighed.all_of(measures, loops, len(self.events.times))
        if self.pattern.counter is None or weighed is None:
            return None
        return self._by_kernel(self.pattern.counter, weighed)

    def _by_kernel(self, kernel: _kernel.Kernel, measures: Sequence[Weighed]) -> Iterator[Ended]:
        pattern, events = self.pattern, self.events
        live = tuple(pattern.live.get(name, ()) for name in pattern.nfa.tables)
        kernel.set_events(self.views.row, 0, len(events.times), self.views.columns)
        known = events.times, events.bits, events.bounds, events.held, events.before
        asked = live, *known, events.watermark

        def counting(weighing: Weighing) -> Iterator[tuple[int, int, int]]:
            found, self.begun, self.deadline = kernel.count(*asked, *weighing)
            places, counts, weights = found
            places = np.frombuffer(places, np.int64).tolist()
            return zip(places, counts, weights or counts, strict=True)

        try:
            yield from weighed_totals(counting, measures)
        finally:
            self.failed = kernel.failed

    # --- partial matches

    def ended_of(self, key: int, payloads: Payloads) -> Iterator[tuple[int, Any]]:
        """Yield lazily where matches of a key end and what they carry."""
        self.failed = key
        pattern, events = self.pattern, self.events
        runs = PatternRuns(pattern.nfa, payloads, pattern.functions, pattern.live)
        start, end = events.bounds[key : key + 2].tolist()
        since = start + events.held
        for at, payload in self._shown(runs, start, end):
            if at >= since:
                yield at, payload
        if since == end:
            self._pass_again(runs)
        joins = end > start and int(events.times[end - 1]) == events.watermark
        for payload in runs.advance(events.watermark):
            yield end - 1 if joins else -end, payload
        self.begun, self.deadline = runs.earliest_start(), runs.deadline()

    def _shown(self, runs: PatternRuns, start: int, end: int) -> Iterator[tuple[int, Any]]:
        """Process a key's events; yield what ends with each, including runs begun earlier."""
        evaluation = EventEvaluation(self.views.row, known_bits(self.pattern.nfa.atoms))
        times = self.events.times[start:end].tolist()
        if self._answers is None:
            self._answers = self.views.answers()
        answers, before = self._answers, None
        for at, time in enumerate(times, start):
            if at == start + self.events.held:
                self._pass_again(runs)
            if time != before:  # once per time, as in CepOperator
                yield from ((at, payload) for payload in runs.advance(time))
            evaluation.begin(at, time, answers[at])
            found = runs.process(at, time, evaluation, functools.partial(self.views.fields, at))
            yield from ((at, payload) for payload in found)
            before = time

    def _pass_again(self, runs: PatternRuns) -> None:
        """Advance to the time before the new events, and discard what ends by it."""
        if self.events.before is not None:
            for _ in runs.advance(self.events.before):
                pass
