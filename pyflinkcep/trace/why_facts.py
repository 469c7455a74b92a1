# SPDX-License-Identifier: Apache-2.0
"""What a trace says when it is counted: by stage, by reason, by condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.trace.model import End, Miss, PartialMatch
from pyflinkcep.trace.record import Record
from pyflinkcep.trace.words import answer_text, ending_text, event_text, miss_lines, time_text

__all__ = ["Beginning", "ConditionCount", "Facts", "counted_facts", "most_frequent"]


@attrs.frozen
class ConditionCount:
    """
    How often a condition holds.

    Attributes
    ----------
    stage : str
        The stage that it was written for.
    text : str
        The condition.
    holds : int
        How often it held.
    of : int
        How often it was evaluated: for each event, or as often as matching asked.
    per_event : bool
        Whether it is about one event alone.
    values : tuple of (str, tuple of (object, int))
        If it never holds, what it compared, and the most frequent values.
    """

    stage: str
    text: str
    holds: int
    of: int
    per_event: bool = True
    values: tuple[tuple[str, tuple[tuple[Any, int], ...]], ...] = ()

    @property
    def verdict(self) -> str:
        """``never`` or ``always``; empty otherwise."""
        if not self.of:
            return "never asked"
        return "never" if not self.holds else "always" if self.holds == self.of > 1 else ""


@attrs.frozen
class Beginning:
    """
    An event that could begin a match, and the partial match that got furthest from it.

    Attributes
    ----------
    name : str
        The event and its key.
    partial : PartialMatch
        The partial match.
    matched : bool
        Whether some match began with the event.
    lines : tuple of str
        How it ended, and the answers that decided.
    event : str
        The event that ended it, or the last one that did not fit; empty if there is none.
    condition : str
        What was decisive there.
    compared : str
        The values that it compared.
    """

    name: str
    partial: PartialMatch
    matched: bool
    lines: tuple[str, ...]
    event: str = ""
    condition: str = ""
    compared: str = ""

    @property
    def closeness(self) -> tuple[int, int, int]:
        """How far it got, greater if further."""
        misses = self.partial.misses
        lacking = len(misses[-1].answers) if misses else 0
        return self.partial.reached, len(self.partial.steps), -lacking


@attrs.frozen
class Facts:
    """
    What was counted.

    Attributes
    ----------
    pattern : str
        The pattern on one line.
    matches : int
        The number of matches.
    input : mapping of str to int
        The numbers of events, keys, and events that are late, out of order or without a key or a
        time.
    stages : mapping of str to int
        The stages that take events, and the fewest events of each.
    beginnings : tuple of Beginning
        The events that could begin a match.
    conditions : tuple of ConditionCount
        The conditions.
    has_key : bool
        Whether events have keys.
    sample : str
        If not all was looked at, what was.
    """

    pattern: str
    matches: int
    input: Mapping[str, int]
    stages: Mapping[str, int]
    beginnings: tuple[Beginning, ...]
    conditions: tuple[ConditionCount, ...]
    has_key: bool
    sample: str = ""
    trace: Record | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def reached(self) -> dict[str, int]:
        """Stage to the number of beginnings that came to it."""
        order = list(self.stages)
        return {
            stage: sum(beginning.partial.reached > place for beginning in self.beginnings)
            for place, stage in enumerate(order)
        }

    @property
    def ended(self) -> dict[tuple[str, End], list[Beginning]]:
        """The beginnings without a match by stage and reason, frequent ones first."""
        found: dict[tuple[str, End], list[Beginning]] = {}
        for one in sorted(self.beginnings, key=lambda one: one.closeness, reverse=True):
            if not one.matched:
                at = (one.partial.steps[-1][1], one.partial.ending.kind)
                found.setdefault(at, []).append(one)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    @property
    def closest(self) -> list[Beginning]:
        """The beginnings without a match, those that got furthest first."""
        without = [one for one in self.beginnings if not one.matched]
        return sorted(without, key=lambda one: one.closeness, reverse=True)


def counted_facts(
    trace: Record,
    conditions: Iterable[ConditionCount],
    more: Mapping[str, int],
    *,
    has_key: bool,
    sample: str = "",
) -> Facts:
    """
    Return what a trace says when it is counted.

    Parameters
    ----------
    trace : Record
        The trace.
    conditions : iterable of ConditionCount
        How often conditions hold.
    more : mapping of str to int
        Further numbers about the input.
    has_key : bool
        Whether events have keys.
    sample : str
        What was looked at, if not all.
    """
    numbers = {"events": len(trace.events), "keys": len(trace.keys) if has_key else 0}
    numbers["late"] = sum(event.late for event in trace.events)
    begun = {next(iter(match.events.values()))[0] for match in trace.found if match.came_out}
    return Facts(
        trace.pattern,
        sum(match.came_out for match in trace.found),
        {**numbers, **more},
        trace.stages,
        tuple(
            _beginning(trace, number, family, number in begun, has_key)
            for number, family in trace.families().items()
        ),
        tuple(conditions),
        has_key,
        sample,
        trace,
    )


def _beginning(
    trace: Record, number: int, family: Sequence[PartialMatch], matched: bool, has_key: bool
) -> Beginning:
    best = max(family, key=lambda partial: (partial.reached, len(partial.steps)))
    event = trace.events[number]
    key = f"key {event.key!r}, " if has_key else ""
    name = f"{key}event {number} at {time_text(event.time)}: {event_text(event.event, 60)}"
    misses = _decisive(best)
    lines = (ending_text(best), *miss_lines(misses, trace.values))
    if not misses:
        return Beginning(name, best, matched, lines)
    last = misses[-1]
    texts = [answer_text(answer) for answer in last.answers]
    return Beginning(
        name,
        best,
        matched,
        lines,
        event_text(trace.values[last.event]),
        " and ".join(text for text, _ in texts),
        ", ".join(values for _, values in texts if values),
    )


def _decisive(partial: PartialMatch) -> list[Miss]:
    """Return what failed for the event that ended a partial match, or else all it passed by."""
    own = [miss for miss in partial.misses if miss.event == partial.ending.event]
    return own or list(partial.misses)


def most_frequent(values: Iterable[Any], most: int = 4) -> tuple[tuple[Any, int], ...]:
    """Return the most frequent values and how often they occur."""
    counts: Counter[str] = Counter(repr(value) for value in values)
    return tuple(counts.most_common(most))
