# SPDX-License-Identifier: Apache-2.0
"""A trace as text: how far each beginning got, or all that happened."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from pyflinkcep.errors import counted
from pyflinkcep.trace.model import Effect, End, PartialMatch, TracedEvent, TracedMatch
from pyflinkcep.trace.record import Record
from pyflinkcep.trace.words import (
    answer_text,
    ending_text,
    event_text,
    match_text,
    miss_lines,
    quoted,
    time_text,
)

__all__ = ["beginnings_text", "full_text"]

_MOST, _MOST_MATCHES = 40, 8


def beginnings_text(trace: Record) -> str:
    """Return, for each event that could begin a match, how far it got and what failed there."""
    shown = itertools.islice(trace.families().items(), _MOST)
    lines = [_heading(trace)]
    for number, family in shown:
        lines += ["", _event_line(trace, trace.events[number]), *_beginning(trace, family)]
    rest = len(trace.families()) - _MOST
    if rest > 0:
        lines += ["", f"and {rest} more that began: text(full=True) tells of all"]
    return "\n".join([*lines, *_others(trace)])


def full_text(trace: Record) -> str:
    """Return what each event did, in order."""
    lines = [_heading(trace)]
    by_event = {number: list(_of_event(trace, number)) for number in range(len(trace.events))}
    ended = sorted(
        (p for p in trace.partials if p.ending.event is None and p.ending.kind is not End.MATCH),
        key=lambda p: (p.ending.time is None, p.ending.time or 0),
    )
    for event in sorted(trace.events, key=lambda event: (event.time, event.number)):
        while ended and ended[0].ending.time is not None and ended[0].ending.time <= event.time:
            lines.append(f"  #{ended[0].number} {ending_text(ended.pop(0))}")
        lines += by_event[event.number]
    lines += [f"  #{partial.number} {ending_text(partial)}" for partial in ended]
    return "\n".join(lines)


def _heading(trace: Record) -> str:
    out = [match for match in trace.found if match.came_out]
    keys = len(trace.keys)
    facts = [counted(len(trace.events), "event"), counted(len(out), "match", "matches")]
    facts += [counted(keys, "key")] if keys > 1 else []
    return f"{trace.pattern}: {', '.join(facts)}"


# --- beginnings


def _beginning(trace: Record, family: Sequence[PartialMatch]) -> Iterator[str]:
    own = {partial.number for partial in family}
    found = [match for match in trace.found if match.partial in own]
    for match in found[:_MOST_MATCHES]:
        yield f"  {_match_line(match)}"
    if len(found) > _MOST_MATCHES:
        yield f"  and {len(found) - _MOST_MATCHES} more that began with it"
    if not found:
        yield from _furthest(trace, max(family, key=lambda p: (p.reached, len(p.steps))))


def _furthest(trace: Record, partial: PartialMatch) -> Iterator[str]:
    last, count = partial.steps[-1][1], len(trace.stages)
    has, needs = len(partial.events[last]), trace.stages[last]
    lacks = f", with {has} of {needs} events" if has < needs else ""
    where = f"stage {partial.reached} of {count}{lacks}"
    yield f"  got to {last!r}, {where}: {match_text(partial.events)}"
    passed = [miss for miss in partial.misses if miss.event != partial.ending.event]
    decisive = [miss for miss in partial.misses if miss.event == partial.ending.event]
    if passed:
        waited = quoted(miss.stage for miss in passed)
        events = len({miss.event for miss in passed})
        yield f"  waited for {waited}: {counted(events, 'event')} did not fit"
        yield from (f"    {line}" for line in miss_lines(passed, trace.values))
    yield f"  {ending_text(partial)}"
    yield from (f"    {line}" for line in miss_lines(decisive, trace.values))
    yield from (f"    {line}" for line in _came(partial))


def _came(partial: PartialMatch) -> Iterator[str]:
    """Yield what was true of the event of a NOT stage."""
    for answer in partial.ending.answers:
        _, values = answer_text(answer)
        holds = "true" if answer.holds else "false"
        yield f"{answer.stage}: {answer.condition} was {holds}" + (f": {values}" if values else "")


def _others(trace: Record) -> Iterator[str]:
    """Yield what is to be said of events that began nothing."""
    missed = [event for event in trace.events if event.begins]
    if missed:
        yield ""
        yield f"{counted(len(missed), 'event')} could not begin a match"
        misses = [miss for event in missed for miss in event.begins]
        yield from (f"  {line}" for line in miss_lines(misses, trace.values))
    late = [event.number for event in trace.events if event.late]
    if late:
        yield ""
        yield f"{counted(len(late), 'event')} came too late: {' '.join(map(str, late))}"


# --- everything


def _of_event(trace: Record, number: int) -> Iterator[str]:
    event = trace.events[number]
    yield ""
    yield _event_line(trace, event)
    if event.late:
        yield "  came too late: the watermark had passed it"
    for answer in event.answers:
        _, values = answer_text(answer)
        holds = "true" if answer.holds else "false"
        yield f"  {answer.stage}: {answer.condition} is {holds}" + (f": {values}" if values else "")
    for effect in event.effects:
        yield from _effect_lines(trace, number, effect)
    for match in trace.found:
        if match.emitted == number and match.completed != number:
            yield f"  {_match_line(match)}"


def _effect_lines(trace: Record, number: int, effect: Effect) -> Iterator[str]:
    partial = trace.partials[effect.partial]
    name = f"  #{partial.number}"
    match effect.what:
        case "began":
            yield f"{name} began: {effect.stage!r}"
        case "took":
            yield f"{name} took it for {effect.stage!r}"
        case "forked":
            taken = f"takes it for {effect.stage!r}" if effect.stage else "passes it by"
            yield f"{name} goes on beside #{partial.parent}, and {taken}"
        case "passed by":
            yield f"{name} passed it by"
        case "ended":
            yield f"{name} {ending_text(partial)}"
            yield from (f"      {line}" for line in _came(partial))
        case "matched":
            found = [
                m for m in trace.found if m.partial == partial.number and m.completed == number
            ]
            for match in found:
                yield f"{name} {_match_line(match)}"
    misses = [miss for miss in partial.misses if miss.event == number]
    if effect.what in ("passed by", "ended"):
        yield from (f"      {line}" for line in miss_lines(misses, trace.values))


def _match_line(match: TracedMatch) -> str:
    text = f"match {match.number}: {match_text(match.events)}"
    held = ""
    if match.held_back_by is not None:
        held = f", held back by #{match.held_back_by}, which began earlier"
    if match.discarded_by is not None:
        return f"complete, but dropped: {match_text(match.events)}; " + (
            f"match {match.discarded_by} made it superfluous (skip strategy){held}"
        )
    if not match.came_out:
        return f"complete, but still waits: {match_text(match.events)}{held}"
    if match.emitted is None:
        return f"{text}, when its window was over{held}"
    late = match.completed is not None and match.emitted != match.completed
    return text + held + (f", until event {match.emitted}" if late else "")


def _event_line(trace: Record, event: TracedEvent) -> str:
    key = "" if len(trace.keys) < 2 else f" key {event.key!r}"
    return f"event {event.number} at {time_text(event.time)}{key}: {event_text(event.event)}"
