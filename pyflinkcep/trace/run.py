# SPDX-License-Identifier: Apache-2.0
"""Runs a watched pattern over events, and makes the trace of what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import attrs

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.flink.nfa import NFA, EventMatch, Expressions
from pyflinkcep.engines.flink.operator import (
    CepOperator,
    Input,
    KeyedCepOperator,
    PartialMatchLimit,
)
from pyflinkcep.pattern import Pattern
from pyflinkcep.pattern.linked_stages import stages_of
from pyflinkcep.pattern.stage import Stage
from pyflinkcep.trace.model import End, Ending, PartialMatch, TracedEvent, TracedMatch
from pyflinkcep.trace.recorder import Answerer, Completed, EnoughError, Lane, Recorder
from pyflinkcep.trace.result import Trace


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
) -> tuple[Trace, Recorder]:
    """Return the trace of a pattern, and what was recorded for it."""
    nfa, given = run.nfa, run.given
    stages = list(single_stages(run.pattern))
    untils = [stage.until for stage in stages if stage.until is not None]
    answerer = Answerer(given.events, frozenset(_atoms(nfa, untils)))
    recorder = Recorder(
        answerer, given.keys, nfa.windows, nfa.skip_strategy, most_misses, most_partials
    )
    output = _Collected(given.events)
    operator = CepOperator(
        attrs.evolve(nfa, observer=recorder),
        given.events.__getitem__,
        limit=limit,
        expressions=over_numbers(run.expressions, given.events),
    )
    keyed = KeyedCepOperator(operator, output, given.order_of_numbers)
    with suppress(EnoughError):
        given.feed(keyed)
    fewest = {stage.name: _fewest(stage) for stage in stages if not stage.is_absent}
    return _Maker(nfa.description, given, recorder, fewest).trace(output), recorder


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


@attrs.frozen(eq=False)
class _Maker:
    """Makes a trace of what was recorded."""

    pattern: str
    given: Input
    recorder: Recorder
    stages: dict[str, int]

    def trace(self, output: _Collected) -> Trace:
        late = set(output.late_numbers)
        numbers = self._numbered()
        return Trace(
            self.pattern,
            self.stages,
            tuple(self._event(number, number in late) for number in range(len(self.given.events))),
            tuple(self._partial(lane, numbers) for lane in self.recorder.lanes),
            tuple(
                self._match(number, match)
                for match, number in sorted(numbers.values(), key=lambda found: found[1])
            ),
            output.matches,
            output.timeouts,
        )

    def _numbered(self) -> dict[int, tuple[Completed, int]]:
        """Return the matches with their numbers, those that did not come out last."""
        found = self.recorder.matches
        out = [match for match in found if match.number is not None]
        kept = [match for match in found if match.number is None]
        numbered = {id(match): (match, match.number or 0) for match in out}
        numbered.update((id(m), (m, len(out) + at)) for at, m in enumerate(kept))
        return numbered

    def _event(self, number: int, late: bool) -> TracedEvent:
        recorder, given = self.recorder, self.given
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

    def _partial(self, lane: Lane, numbers: dict[int, tuple[Completed, int]]) -> PartialMatch:
        ending = lane.ending or Ending(End.INPUT, None, None, lane.waits_for)
        if lane.became is not None:
            ending = _of_match(lane.became, ending, numbers[id(lane.became)][1])
        order = list(self.stages)
        taken = [order.index(step.stage) for step in lane.steps]
        return PartialMatch(
            lane.number,
            lane.key,
            lane.parent,
            tuple((step.event, step.stage) for step in lane.steps),
            lane.steps[0].time,
            lane.deadline,
            tuple(lane.misses),
            ending,
            max(taken, default=0) + 1,
        )

    @staticmethod
    def _match(number: int, match: Completed) -> TracedMatch:
        return TracedMatch(
            number,
            match.lane.number,
            match.events,
            match.completed,
            match.number is not None,
            match.emitted,
            match.held_back_by,
            match.discarded_by,
        )


def _of_match(match: Completed, ending: Ending, number: int) -> Ending:
    """Return how a partial match ended that became a match, which may not have come out."""
    if match.number is not None:
        return attrs.evolve(ending, match=number)
    if match.discarded_by is not None:
        return attrs.evolve(ending, kind=End.SKIP, match=match.discarded_by)
    return attrs.evolve(ending, kind=End.HELD, match=number, partial=match.held_back_by)
