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
from pyflinkcep.trace.model import TracedEvent
from pyflinkcep.trace.recorder import Answerer, EnoughError, Recorder
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
