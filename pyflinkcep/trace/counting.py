# SPDX-License-Identifier: Apache-2.0
"""Counts conditions over all events, and windows that would have been long enough."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.expressions.compared import compared_in_sql
from pyflinkcep.pattern.stage import Stage
from pyflinkcep.time import MIN_WATERMARK
from pyflinkcep.trace.model import End
from pyflinkcep.trace.reasons import valued
from pyflinkcep.trace.record import Record
from pyflinkcep.trace.recorder import Recorder
from pyflinkcep.trace.why_facts import Beginning, ConditionCount, most_frequent

__all__ = ["Answered"]

_LOOKED_AT = 1000


@attrs.define(eq=False)
class Answered:
    """
    The conditions about one event, answered for every event, asked for or not.

    Attributes
    ----------
    nfa : NFA
        The compiled pattern.
    events : sequence
        The events.
    sql_of : callable
        Returns the SQL of a condition about one event; None if it is a function.
    answers : mapping of Atom to list of bool or None
        The answers, in the order of the events; None where the condition failed.
    """

    nfa: NFA
    events: Sequence[Any]
    sql_of: Callable[[IterativeCondition], str | None]
    answers: Mapping[Atom, list[bool | None]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        atoms = [atom for atom in self.nfa.atoms if atom.bit]
        self.answers = {atom: [_holds(atom, event) for event in self.events] for atom in atoms}

    def counts(self, recorder: Recorder) -> list[ConditionCount]:
        """Return how often each condition holds, those over partial matches as asked."""
        found = []
        for atom in self.nfa.atoms:
            text = repr(atom.condition)
            if atom.bit:
                answers = [answer for answer in self.answers[atom] if answer is not None]
                holds = sum(answers)
                values = () if holds else self._values(atom)
                one = ConditionCount(atom.stage, text, holds, len(answers), True, values)
            else:
                asked, holds = recorder.answers.get(atom, (0, 0))
                one = ConditionCount(atom.stage, text, holds, asked, False)
            found.append(one)
        return found

    def _values(self, atom: Atom) -> tuple[tuple[str, tuple[tuple[Any, int], ...]], ...]:
        text = self.sql_of(atom.condition)
        if text is None:
            return ()
        seen: dict[str, list[Any]] = {}
        for event in self.events[:_LOOKED_AT]:
            for part in compared_in_sql(text, event):
                for name, value in part.values:
                    seen.setdefault(name, []).append(value)
        return tuple((name, most_frequent(values)) for name, values in seen.items())

    def longer_windows(
        self, trace: Record, beginnings: Iterable[Beginning], stages: Sequence[Stage]
    ) -> dict[tuple[End, str], int]:
        """
        Return how much later an event fits, for stages that a window kept from being reached.

        By the kind of the window and the stage: after the first event, or after the one before.
        """
        fitting = _Fitting.of(self, trace, stages)
        found: dict[tuple[End, str], int] = {}
        for one in beginnings:
            partial, ending = one.partial, one.partial.ending
            if one.matched or ending.kind not in (End.WINDOW, End.GAP) or ending.time is None:
                continue
            is_gap = ending.kind is End.GAP
            since = trace.events[partial.steps[-1][0]].time if is_gap else partial.began
            for name in ending.stages:
                time = fitting.first(partial.key, name, ending.time)
                if time is not None:
                    at = (ending.kind, name)
                    found[at] = min(found.get(at, time - since), time - since)
        return found

    def too_early(
        self, trace: Record, beginnings: Iterable[Beginning], stages: Sequence[Stage]
    ) -> dict[tuple[End, str], int]:
        """
        Return how often what a beginning waited for had come before it, if nothing matches.

        By how the beginning ended, and the stage that it waited for.
        """
        fitting = _Fitting.of(self, trace, stages)
        found: Counter[tuple[End, str]] = Counter()
        for one in () if trace.found else beginnings:
            partial, ending = one.partial, one.partial.ending
            if ending.kind not in (End.INPUT, End.WINDOW, End.GAP):
                continue
            for name in {*ending.stages} - partial.events.keys():
                first = fitting.first(partial.key, name, MIN_WATERMARK)
                found[ending.kind, name] += first is not None and first < partial.began
        return dict(found)

    def may_fit(self, condition: IterativeCondition | None, number: int) -> bool:
        """Whether an event may satisfy a condition, as far as it is about that event."""
        known = {atom: answers[number] for atom, answers in self.answers.items()}
        answers = {atom: holds for atom, holds in known.items() if holds is not None}
        return valued(condition, self.nfa.start.atoms, answers)[0] is not False


@attrs.define(eq=False)
class _Fitting:
    """The times of the events that may fit a stage, by key, in order."""

    answered: Answered
    trace: Record
    conditions: Mapping[str, IterativeCondition | None]
    _times: dict[str, dict[Any, list[int]]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, answered: Answered, trace: Record, stages: Sequence[Stage]) -> _Fitting:
        """Return the events of a trace that may fit stages."""
        return cls(answered, trace, {stage.name: stage.condition for stage in stages})

    def first(self, key: Any, stage: str, since: int) -> int | None:
        """Return when the first event comes, at or after a time, that may fit; None if none."""
        if stage not in self.conditions:
            return None
        if stage not in self._times:
            self._times[stage] = self._of(self.conditions[stage])
        times = self._times[stage].get(key, [])
        place = bisect_left(times, since)
        return times[place] if place < len(times) else None

    def _of(self, condition: IterativeCondition | None) -> dict[Any, list[int]]:
        found: dict[Any, list[int]] = {}
        for event in sorted(self.trace.events, key=lambda event: event.time):
            if not event.late and self.answered.may_fit(condition, event.number):
                found.setdefault(event.key, []).append(event.time)
        return found


def _holds(atom: Atom, event: Any) -> bool | None:
    """Return a condition's answer; None if it fails for an event that it was not meant for."""
    try:
        return bool(atom.function(event))
    except Exception:
        return None
