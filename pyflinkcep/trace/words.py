# SPDX-License-Identifier: Apache-2.0
"""Parts of a trace in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from pyflinkcep.time import is_calendar, moment_text
from pyflinkcep.trace.model import Answer, End, Miss, PartialMatch

__all__ = [
    "answer_text",
    "ending_text",
    "event_text",
    "match_text",
    "miss_lines",
    "quoted",
    "time_text",
]

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
        return event
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


def ending_text(partial: PartialMatch) -> str:
    """Return how a partial match ended."""
    ending = partial.ending
    stages = quoted(ending.stages)
    at = "" if ending.event is None else f" by event {ending.event}"
    time = time_text(ending.time)
    match ending.kind:
        case End.MATCH:
            return f"became match {ending.match}"
        case End.HELD:
            return f"is complete, but #{ending.partial}, which began earlier, holds it back"
        case End.CONTIGUITY:
            return f"ended{at}: {stages} had to follow directly"
        case End.UNTIL:
            return f"ended{at}: its condition until holds, and {stages} could not take it"
        case End.NOT:
            return f"ended{at}: it is {stages}, which must not come"
        case End.WINDOW:
            return f"ended: its window was over at {time}, while it waited for {stages}"
        case End.GAP:
            return f"ended: the longest gap was over at {time}, while it waited for {stages}"
        case End.SKIP:
            return f"dropped{at}: match {ending.match} made it superfluous (skip strategy)"
        case End.LIMIT:
            return "dropped: there were too many partial matches"
        case End.INPUT:
            return f"still waits for {stages}: the input ended"
