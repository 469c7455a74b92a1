# SPDX-License-Identifier: Apache-2.0
"""The trace that users hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import attrs

from pyflinkcep.errors import Field, KeyFields, counted
from pyflinkcep.show.diagram import DrawnPicture, Picture, Report
from pyflinkcep.show.model import Plot, Plotted
from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.time import is_calendar
from pyflinkcep.traces.model import (
    ENDS,
    Answer,
    Effect,
    End,
    PartialMatch,
    Record,
    TracedEvent,
    TracedMatch,
    answer_text,
    ending_text,
    event_text,
    match_text,
    miss_lines,
    quoted,
    time_text,
)

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
            lines.append(f"  #{ended[0].number} {ending_text(ended.pop(0).ending)}")
        lines += by_event[event.number]
    lines += [f"  #{partial.number} {ending_text(partial.ending)}" for partial in ended]
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
        yield f"  {match_line(match)}"
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
    yield f"  {ending_text(partial.ending)}"
    yield from (f"    {line}" for line in miss_lines(decisive, trace.values))
    yield from (f"    {line}" for line in _came(partial))


def _came(partial: PartialMatch) -> Iterator[str]:
    """Yield what was true of the event of a NOT stage."""
    yield from (_answer_line(answer, "was") for answer in partial.ending.answers)


def _answer_line(answer: Answer, verb: str) -> str:
    values, holds = answer_text(answer)[1], "true" if answer.holds else "false"
    shown = f"{answer.stage}: {answer.condition} {verb} {holds}"
    return f"{shown}: {values}" if values else shown


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
    yield from (f"  {_answer_line(answer, 'is')}" for answer in event.answers)
    for effect in event.effects:
        yield from _effect_lines(trace, number, effect)
    for match in trace.found:
        if match.emitted == number and match.completed != number:
            yield f"  {match_line(match)}"


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
            yield f"{name} {ending_text(partial.ending)}"
            yield from (f"      {line}" for line in _came(partial))
        case "matched":
            found = [
                m for m in trace.found if m.partial == partial.number and m.completed == number
            ]
            for match in found:
                yield f"{name} {match_line(match)}"
    misses = [miss for miss in partial.misses if miss.event == number]
    if effect.what in ("passed by", "ended"):
        yield from (f"      {line}" for line in miss_lines(misses, trace.values))


def match_line(match: TracedMatch) -> str:
    """Return a match on one line, and why it came out later than it was complete."""
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


_MOST_EVENTS, _MOST_LANES = 60, 40
_LEFT, _TOP, _LANE, _MARGIN, _SEEN = 20.0, 74.0, 38.0, 22.0, 900.0
_LEGEND = (
    ("green", "a match"),
    ("red", "ended by an event"),
    ("amber", "window over, or the input"),
    ("violet", "dropped"),
)


def in_order(trace: Record) -> list[TracedEvent]:
    """Return the events in order of time, those that came too late left out."""
    events = sorted(trace.events, key=lambda event: (event.time, event.number))
    return [event for event in events if not event.late]


def events_placed(events: Sequence[TracedEvent], first: float) -> dict[int, float]:
    """Return where events stand on a line, by their numbers."""
    step = max(58.0, min(110.0, 760 / max(len(events), 1)))
    return {event.number: first + at * step for at, event in enumerate(events)}


def event_axis(
    drawing: Drawing, events: Sequence[TracedEvent], places: Mapping[int, float], bottom: float
) -> None:
    """Draw events on a line, with their times and the values that conditions compared."""
    step = places[events[1].number] - places[events[0].number] if len(events) > 1 else 110.0
    day = ""
    for event in events:
        x = places[event.number]
        drawing.line([(x, 66), (x, bottom)], "edge", 1, "2 4")
        drawing.circle(x, 42, 4, "line")
        full = f"{time_text(event.time)}: {event_text(event.event, 400)}"
        drawing.text(x, 18, f"event {event.number}", "dim", 10.5, "middle", title=full)
        drawing.text(x, 32, _short(event.time, step), "dim", 10, "middle", title=full)
        before, day = day, time_text(event.time).partition(" ")[0]
        if is_calendar(event.time) and day != before:
            drawing.text(x, 7, day, "ink", 9, "middle", title=full)
        compared = dict(value for answer in event.answers for value in answer.values)
        values = " ".join(str(value) for value in compared.values())
        shown = wrapped(values, int(step / 6.4), 1)[0]
        drawing.text(x, 60, shown, "ink", 10, "middle", title=full)


def _short(time: int, room: float) -> str:
    """Return a time shortened to fit: the time of day, or the last digits."""
    text = time_text(time)
    if text.endswith(" UTC"):
        text = text.split()[1]
        return text if text_width(text, 10) < room else text.partition(".")[0]
    return text if len(text) < 9 else f"…{text[-7:]}"


@attrs.define(eq=False)
class _Page:
    """A picture under construction; `places` has the x of each event that is drawn."""

    trace: Record
    lanes: Sequence[PartialMatch]
    order: Sequence[int]
    places: dict[int, float]
    drawing: Drawing = attrs.field(factory=Drawing)

    @classmethod
    def of(cls, trace: Record) -> _Page:
        events = in_order(trace)[:_MOST_EVENTS]
        order = [event.number for event in events]
        drawn = set(order)
        lanes = [p for p in trace.partials if {n for n, _ in p.steps} <= drawn][:_MOST_LANES]
        names = [text_width(_name(trace, partial), 12, bold=True) for partial in lanes]
        places = events_placed(events, _LEFT + max([60.0, *names]) + 30)
        return cls(trace, lanes, order, places)

    def svg(self, title: str) -> str:
        end = max(self.places.values(), default=200.0)
        right = end + 60
        bottom = _TOP + _LANE * len(self.lanes)
        event_axis(self.drawing, [self.trace.events[n] for n in self.order], self.places, bottom)
        for row, partial in enumerate(self.lanes):
            right = max(right, self._lane(partial, _TOP + _LANE * (row + 0.5), end))
        bottom = self._below(bottom + 8)
        return self.drawing.svg(max(right, 560) + _MARGIN, bottom, title)

    def _lane(self, partial: PartialMatch, y: float, end: float) -> float:
        page, ending = self.drawing, partial.ending
        colour = ENDS[ending.kind].colour
        began = self.places[partial.steps[0][0]]
        if partial.deadline is not None:
            until = min(self._at_time(partial.deadline), end + 40)
            title = f"window until {time_text(partial.deadline)}"
            page.rect(began, y - 12, max(until - began, 6), 24, "sand", "", 4, title=title)
        stop = self._stop(partial, end)
        shown = _name(self.trace, partial)
        name = f"{shown}: {match_text(partial.events)}"
        page.text(_LEFT, y + 4, shown, "ink", 12, bold=True, title=name)
        if began > _SEEN:  # where the first name is out of sight
            page.text(began - 12, y + 4, shown, "ink", 12, "end", bold=True, title=name)
        page.line([(began, y), (stop, y)], colour, 2.2, title=name)
        for number, stage in partial.steps:
            x = self.places[number]
            page.circle(x, y, 6, "paper", colour)
            page.circle(x, y, 3, colour)
            shown = wrapped(stage, 9, 1)[0]
            page.text(x, y - 10, shown, "ink", 10.5, "middle", title=stage)
        text = wrapped(ending_text(ending, beside=True), 60, 1)[0]
        self._mark(partial, stop, y, colour)
        page.text(stop + 12, y + 4, text, colour, 11, title=ending_text(partial.ending))
        return stop + 12 + text_width(text, 11)

    def _mark(self, partial: PartialMatch, x: float, y: float, colour: str) -> None:
        if partial.ending.kind in (End.MATCH, End.HELD):
            return
        if partial.ending.kind is End.INPUT:
            self.drawing.line([(x - 6, y), (x + 4, y)], colour, 2, arrow=True)
            return
        for slope in (1, -1):
            ends = [(x - 4.0, y - 4.0 * slope), (x + 4.0, y + 4.0 * slope)]
            self.drawing.line(ends, colour, 2.2, radius=0)

    def _stop(self, partial: PartialMatch, end: float) -> float:
        """Return where a lane ends."""
        ending = partial.ending
        if ending.event is not None and ending.event in self.places:
            return self.places[ending.event]
        if ending.time is not None and ending.kind is not End.MATCH:
            return min(self._at_time(ending.time), end + 30)
        last = self.places[partial.steps[-1][0]]
        return (
            last if ending.kind is End.MATCH and ending.event is not None else max(end + 20, last)
        )

    def _at_time(self, time: int) -> float:
        """Return the place of a time between the events before and after it."""
        events = self.trace.events
        known = [(events[number].time, self.places[number]) for number in self.order]
        for (t0, x0), (t1, x1) in itertools.pairwise(known):
            if t0 <= time < t1:
                return x0 + (x1 - x0) * (time - t0) / (t1 - t0)
        before = [x for t, x in known if t < time]
        return known[-1][1] + 30 if before else known[0][1]

    def _below(self, y: float) -> float:
        x = _LEFT
        for colour, text in _LEGEND:
            self.drawing.line([(x, y + 10), (x + 20, y + 10)], colour, 2.2)
            self.drawing.text(x + 26, y + 14, text, "dim", 11)
            x += 26 + text_width(text, 11) + 16
        self.drawing.rect(x, y + 3, 20, 14, "sand", "", 3)
        self.drawing.text(x + 26, y + 14, "its window", "dim", 11)
        y += 34
        for note in self._notes():
            self.drawing.text(_LEFT, y, note, "dim", 11)
            y += 16
        return y

    def _notes(self) -> list[str]:
        trace, late = self.trace, [e.number for e in self.trace.events if e.late]
        notes = [f"came too late: {' '.join(map(str, late))}"] if late else []
        if len(self.order) + len(late) < len(trace.events):
            notes.append(f"the first {len(self.order)} of {len(trace.events)} events")
        if len(self.lanes) < len(trace.partials):
            notes.append(f"{len(self.lanes)} of {len(trace.partials)} partial matches")
        return notes


def _name(trace: Record, partial: PartialMatch) -> str:
    """Return the name of a partial match, with its key if there are several."""
    fork = "" if partial.parent is None else f" from #{partial.parent}"
    key = f" {event_text(partial.key, 16)}" if len(trace.keys) > 1 else ""
    return f"#{partial.number}{fork}{key}"


@attrs.frozen(repr=False)
class Trace(Report, Record, Plotted):
    """
    What a pattern did with events; made by :func:`pyflinkcep.trace`.

    Its text says for each event that could begin a match how far it got, and what failed there.
    """

    def text(self, full: bool = False) -> str:
        """
        Return the trace as text.

        Parameters
        ----------
        full : bool
            Whether to tell all that each event did, instead of how far each beginning got.
        """
        return full_text(self) if full else beginnings_text(self)

    def plotted(self, time: Field | None, key: KeyFields | None) -> Plot:
        """Return the matches; their events with time and key as known, if none is given."""
        if time is not None or key is not None:
            return self.matches, time, key
        out = (match for match in self.found if match.came_out)
        rows = [{s: [self.events[n] for n in own] for s, own in m.events.items()} for m in out]
        return rows, "time", "key" if len(self.keys) > 1 else None

    def diagram(self) -> Picture:
        """Return the trace as a picture, with ``svg`` and ``save(path)``."""
        title = f"trace of {self.pattern}"
        return DrawnPicture(title=title, draw=lambda: _Page.of(self).svg(title))
