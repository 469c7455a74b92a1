# SPDX-License-Identifier: Apache-2.0
"""A trace as data; events are named by their number, from 0, in the order given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import attrs

from pyflinkcep.time import is_calendar, moment_text


class End(Enum):
    """Why a partial match is no more, or still waits."""

    MATCH = "match"
    """It became a match, which came out."""
    HELD = "held back"
    """It became a match that waits for a partial match that began earlier."""
    CONTIGUITY = "contiguity"
    """The event could not be taken, and may not be skipped."""
    UNTIL = "until"
    """The event satisfied the condition of ``until``, and nothing could follow."""
    NOT = "not"
    """The event of a NOT stage came."""
    WINDOW = "window"
    """The window of the match had passed."""
    GAP = "gap"
    """The window between two events had passed."""
    SKIP = "skip"
    """A match made it superfluous, by the skip strategy; it may have been a match itself."""
    LIMIT = "limit"
    """There were too many partial matches."""
    INPUT = "input"
    """The input ended, and it had no window to wait for."""


@attrs.frozen
class Answer:
    """A condition's answer for an event, and the values compared."""

    stage: str  # The stage that it was written for
    condition: str  # The condition
    holds: bool  # Whether it holds
    until: bool = False  # Whether it is the condition of an ``until``
    # If it does not hold, the parts that do not, each with what it compared and the values; empty
    # for functions.
    failed: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    values: tuple[tuple[str, Any], ...] = ()  # All that was compared, and the values


@attrs.frozen
class Miss:
    """An event that a partial match could not take for a stage, and the answers that decided."""

    event: int
    stage: str
    answers: tuple[Answer, ...]


@attrs.frozen
class Effect:
    """What an event did to a partial match."""

    partial: int  # The number of the partial match
    # ``began``, ``took``, ``forked`` (a copy of another goes on), ``passed by``, ``matched`` or
    # ``ended``.
    what: str
    stage: str = ""  # The stage that took the event, if any


@attrs.frozen
class Ending:
    """How a partial match ended."""

    kind: End  # Why
    time: int | None = None  # When; None if the input ended
    event: int | None = None  # The event that ended it, if one did
    # The stages that it waited for, or the NOT stage whose event came.
    stages: tuple[str, ...] = ()
    match: int | None = None  # The match that it became, or that made it superfluous
    answers: tuple[Answer, ...] = ()  # The conditions of the NOT stage, if its event came
    partial: int | None = None  # The partial match that holds it back


@attrs.define
class PartialMatch:
    """A partial match, from its first event to its end; the recorder changes it until then."""

    number: int  # Its number, in the order in which they began
    key: Any  # Its key
    parent: int | None  # The partial match that it was forked from
    # The events that it took, each with the stage, those of its parent first.
    steps: tuple[tuple[int, str], ...]
    began: int  # The time of its first event
    deadline: int | None = None  # When its window ends, as it was last; None without one
    misses: tuple[Miss, ...] = ()  # What it could not take, with the answers that decided
    ending: Ending = Ending(End.INPUT)  # How it ended
    reached: int = 0  # How many stages of the pattern it has come to

    @property
    def events(self) -> dict[str, list[int]]:
        """Stage to the numbers of its events."""
        return by_stage(self.steps)


def by_stage(steps: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
    """Return stage to the numbers of its events."""
    found: dict[str, list[int]] = {}
    for number, stage in steps:
        found.setdefault(stage, []).append(number)
    return found


@attrs.define
class TracedMatch:
    """A match, from when it was complete to when it came out."""

    number: int  # Its number, in the order in which matches came out; those that did not are last
    partial: int  # The partial match that became it, or that goes on after it
    events: Mapping[str, list[int]]  # Stage to the numbers of its events
    completed: int | None  # The event that completed it; None if a window's end did
    came_out: bool = False  # Whether it came out; otherwise it was dropped, or still waits
    emitted: int | None = None  # The event at which it came out; None if time passing let it out
    # The partial match for which it had to wait first, since it began earlier.
    held_back_by: int | None = None
    discarded_by: int | None = None  # The match that made it superfluous before it came out


@attrs.frozen
class TracedEvent:
    """An event, and what it did."""

    number: int  # Its number in the order given
    event: Any  # The event
    time: int  # Its time
    key: Any  # Its key
    late: bool = False  # Whether it came too late
    answers: tuple[Answer, ...] = ()  # The conditions about this event alone that were evaluated
    # Why it could not begin a match, for each stage that could have; empty if it did.
    begins: tuple[Miss, ...] = ()
    effects: tuple[Effect, ...] = ()  # What it did to partial matches


@attrs.frozen(repr=False)
class Record:
    """What a pattern did with events."""

    pattern: str  # The pattern on one line
    # The stages that take events, in order, and the fewest events of each.
    stages: Mapping[str, int]
    events: tuple[TracedEvent, ...]  # The events, by their numbers
    partials: tuple[PartialMatch, ...]  # The partial matches, by their numbers
    found: tuple[TracedMatch, ...]  # The matches by their numbers, those that were dropped last
    matches: list[dict[str, list[Any]]]  # The matches as ``match`` returns them
    # The partial matches whose window ended, and its end in epoch milliseconds.
    timeouts: list[tuple[dict[str, list[Any]], int]]
    keys: list[Any] = attrs.field(init=False)  # The keys of the events, each once
    # The events themselves, by their numbers.
    values: list[Any] = attrs.field(init=False, eq=False)

    @keys.default
    def _each_once(self) -> list[Any]:
        return list({repr(event.key): event.key for event in self.events}.values())

    @values.default
    def _themselves(self) -> list[Any]:
        return [event.event for event in self.events]

    @property
    def funnel_rows(self) -> list[dict[str, Any]]:
        """How many keys, and events that could begin a match, reached each stage."""
        best = [(f[0].key, max(p.reached for p in f)) for f in self.families().values()]
        return [
            {
                "stage": stage,
                "step": step,
                "keys": len({repr(key) for key, reached in best if reached >= step}),
                "partialMatches": sum(reached >= step for _, reached in best),
            }
            for step, stage in enumerate(self.stages, 1)
        ]

    def families(self) -> dict[int, list[PartialMatch]]:
        """Return the partial matches by their first event, in order."""
        found: dict[int, list[PartialMatch]] = {}
        for partial in self.partials:
            found.setdefault(partial.steps[0][0], []).append(partial)
        return dict(sorted(found.items()))


_LONGEST = 90


def event_text(event: Any, longest: int = _LONGEST) -> str:
    """Return an event on one line."""
    fields = _fields(event)
    if fields is None:
        text = _value_text(event)
    else:
        text = ", ".join(f"{name}={_value_text(value)}" for name, value in fields.items())
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _value_text(value: Any) -> str:
    return str(value) if isinstance(value, date | Decimal | timedelta) else repr(value)


def time_text(milliseconds: int | None) -> str:
    """Return the time of an event, as a number if it looks like a count."""
    moment = None
    if milliseconds is not None and is_calendar(milliseconds):
        moment = moment_text(milliseconds)
    return moment or str(milliseconds)


def _fields(event: Any) -> Mapping[str, Any] | None:
    """Return the fields of a dict, a Row or a named tuple; None for other events."""
    if isinstance(event, Mapping):
        return dict(event)  # whose methods no field hides
    method = getattr(event, "asDict", None) or getattr(event, "_asdict", None)
    fields = method() if isinstance(event, tuple) and callable(method) else None
    return fields if isinstance(fields, Mapping) else None


def match_text(events: Mapping[str, Sequence[int]]) -> str:
    """Return the events of a match by their numbers."""
    return ", ".join(f"{stage} {' '.join(map(str, numbers))}" for stage, numbers in events.items())


def quoted(stages: Iterable[str], joined: str = " or ") -> str:
    """Return names of stages."""
    return joined.join(repr(stage) for stage in dict.fromkeys(stages))


def answer_text(answer: Answer) -> tuple[str, str]:
    """Return what was decisive of an answer, and the values that it compared."""
    if answer.holds:
        what = f"until {answer.condition}" if answer.until else f"not ({answer.condition})"
        return what, _values(answer.values)
    if not answer.failed:
        return answer.condition, _values(answer.values)
    texts = [text for text, _ in answer.failed]
    values = dict(value for _, compared in answer.failed for value in compared)
    return " and ".join(texts), _values(tuple(values.items()))


def _values(values: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(f"{text} = {event_text(value, 60)}" for text, value in values)


def miss_lines(misses: Iterable[Miss], events: Sequence[Any]) -> list[str]:
    """Return what failed, alike answers together, each with its last example."""
    counts: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for miss in misses:
        for answer in miss.answers:
            text, values = answer_text(answer)
            at = (miss.stage, text)
            counts[at] = counts.get(at, 0) + 1
            last[at] = (miss.event, values)
    lines = []
    for (stage, text), count in counts.items():
        number, values = last[stage, text]
        often = "" if count == 1 else f" {count} times, last"
        shown = values or event_text(events[number])
        lines.append(f"{stage}: {text} was false{often} for event {number}: {shown}")
    return lines


@attrs.frozen
class _Words:
    """How an end is told; texts have places for the facts of an :class:`Ending`."""

    colour: str  # How it is drawn
    many: str  # Why beginnings ended
    below: str  # The same in a picture
    text: str  # How one partial match ended
    beside: str  # The same in a picture


ENDS: Mapping[End, _Words] = {
    End.MATCH: _Words("green", "a match", "a match", "became match {match}", "match {match}"),
    End.HELD: _Words("amber", "a match that is held back", "a match held back",
        "is complete, but #{partial}, which began earlier, holds it back",
        "complete, held back by #{partial}"),
    End.CONTIGUITY: _Words("red", "an event came that did not fit and may not be skipped",
        "did not fit, may not be skipped", "ended{at}: {quoted} had to follow directly",
        "{stages} had to follow directly"),
    End.UNTIL: _Words("red", "the condition of until held", "until held",
        "ended{at}: its condition until holds, and {quoted} could not take it", "until holds"),
    End.NOT: _Words("red", "the event of a NOT stage came", "NOT stage came",
        "ended{at}: it is {quoted}, which must not come", "{stages} came"),
    End.WINDOW: _Words("amber", "the window was over", "window over",
        "ended: its window was over at {time}, while it waited for {quoted}",
        "window over, waited for {stages}"),
    End.GAP: _Words("amber", "the longest gap was over", "gap over",
        "ended: the longest gap was over at {time}, while it waited for {quoted}",
        "gap over, waited for {stages}"),
    End.SKIP: _Words("violet", "a match made them superfluous", "superfluous after a match",
        "dropped{at}: match {match} made it superfluous (skip strategy)",
        "superfluous after match {match}"),
    End.LIMIT: _Words("violet", "there were too many partial matches", "too many",
        "dropped: there were too many partial matches", "too many partial matches"),
    End.INPUT: _Words("amber", "the input ended", "input ended",
        "still waits for {quoted}: the input ended", "still waits for {stages}"),
}  # fmt: skip


def ending_text(ending: Ending, *, beside: bool = False) -> str:
    """Return how a partial match ended; in few words if it stands beside its picture."""
    words = ENDS[ending.kind]
    return (words.beside if beside else words.text).format(
        match=ending.match,
        partial=ending.partial,
        at="" if ending.event is None else f" by event {ending.event}",
        time=time_text(ending.time),
        quoted=quoted(ending.stages),
        stages=" or ".join(ending.stages),
    )
