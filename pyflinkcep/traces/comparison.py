# SPDX-License-Identifier: Apache-2.0
"""What variants of a pattern make of the same events, beside what the pattern makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import attrs

from pyflinkcep.errors import counted
from pyflinkcep.show.diagram import DrawnPicture, Picture, Report, html_table
from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.traces.model import Record, TracedMatch, match_text
from pyflinkcep.traces.result import event_axis, events_placed, in_order, match_line

TITLES = {
    "contiguity": "Contiguity",
    "quantifiers": "Quantifiers",
    "skip": "Skip strategy",
    "given": "Others",
}
_MOST = 4
"""How many matches of a variant are told."""


@attrs.frozen
class Outcome:
    """What a pattern, or a variant of it, makes of the events."""

    what: str  # What is varied: a name of :data:`TITLES`
    name: str  # What is written instead
    trace: Record
    is_whole: bool = True  # Whether all was traced: some patterns make too many partial matches

    @property
    def found(self) -> list[TracedMatch]:
        """The matches, in the order in which they came out."""
        return [match for match in self.trace.found if match.came_out]


def _events_of(match: TracedMatch) -> str:
    return match_text(match.events)


@attrs.frozen
class _Change:
    """How the matches of a variant differ from those of the pattern."""

    more: list[str]
    fewer: list[str]
    moved: list[str]  # Those that come out with another event
    is_whole: bool  # Whether all of both was traced; else what is lacking is not known

    @classmethod
    def of(cls, base: Outcome, own: Outcome) -> _Change:
        old, new = (Counter(map(_events_of, one.found)) for one in (base, own))
        at = {_events_of(match): match.emitted for match in base.found}
        moved = [
            f"{text} {_when(match.emitted)}"
            for match in own.found
            if (text := _events_of(match)) in at and at[text] != match.emitted
        ]
        is_whole = base.is_whole and own.is_whole
        fewer = list((old - new).elements()) if own.is_whole else []
        more = list((new - old).elements()) if base.is_whole else []
        return cls(more, fewer, moved if is_whole else [], is_whole)

    def __bool__(self) -> bool:
        return bool(self.more or self.fewer or self.moved) or not self.is_whole

    def text(self) -> str:
        """Return it on one line."""
        parts = (("also", self.more), ("without", self.fewer), ("at another time:", self.moved))
        told = [f"{word} {_listed(own)}" for word, own in parts if own]
        told += [] if self.is_whole else ["stopped at too many partial matches"]
        return "; ".join(told) or "the same"


def _when(event: int | None) -> str:
    return "when time passes" if event is None else f"with event {event}"


def _listed(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return " | ".join([*texts[:_MOST], *more])


@attrs.frozen(repr=False)
class Comparison(Report):
    """
    What variants of a pattern make of the same events; made by :func:`pyflinkcep.compare`.

    Attributes
    ----------
    outcomes : tuple of Outcome
        What the pattern makes of the events, and then each variant; each with its ``trace``.
    delay : int
        How far a stream's watermark is behind the latest time, in milliseconds.
    """

    outcomes: tuple[Outcome, ...]
    delay: int = 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """
        The outcomes as rows: the pattern's, and then one for each variant.

        ``what`` is varied, ``variant`` is written instead, ``found`` has the numbers of the events
        of each match, ``more`` and ``fewer`` the matches that the pattern lacks or has.
        """
        base = self.outcomes[0]
        changes = [_Change.of(base, own) for own in self.outcomes]
        return [
            {
                "what": own.what,
                "variant": own.name,
                "pattern": own.trace.pattern,
                "matches": len(own.found),
                "differs": bool(change),
                "more": change.more,
                "fewer": change.fewer,
                "found": [dict(match.events) for match in own.found],
            }
            for own, change in zip(self.outcomes, changes, strict=True)
        ]

    def text(self) -> str:
        """Return the comparison as text."""
        base, *others = self.outcomes
        events = counted(len(base.trace.events), "event")
        lines = [f"{base.trace.pattern}: {events}, {_counted(base)}"]
        lines += [f"  {match_line(m)}{self._on_stream(m)}" for m in base.found[: 2 * _MOST]]
        if len(base.found) > 2 * _MOST:
            lines.append(f"  and {len(base.found) - 2 * _MOST} more")
        for what, title in TITLES.items():
            groups = _grouped(base, _of(what, others))
            lines += ["", title] if groups else []
            width = max((len(own[0].name) for own, change in groups if change), default=0)
            for own, change in sorted(groups, key=lambda group: not group[1]):
                first, *rest = (one.name for one in own)
                if not change:
                    lines.append(f"  the same with {', '.join([first, *rest])}")
                    continue
                lines.append(f"  {first:{width}}  {_counted(own[0])}: {change.text()}")
                lines += [f"  {'':{width}}  likewise {', '.join(rest)}"] if rest else []
        return "\n".join(lines)

    def _on_stream(self, match: TracedMatch) -> str:
        """Return with which event a match comes out on a stream, if an event lets it out."""
        if match.emitted is None:
            return ""
        times = [event.time for event in self.outcomes[0].trace.events]
        latest = list(accumulate(times, max))
        numbers = [number for own in match.events.values() for number in own]
        late = [n for n in numbers if n and latest[n - 1] - self.delay > times[n]]
        if late:
            return f"; on a stream event {late[0]} would be late"
        due = times[match.emitted] + self.delay
        later = (n for n in range(max(numbers), len(times)) if latest[n] > due)
        number = next(later, None)
        what = "a later event" if number is None else f"event {number}"
        return f"; on a stream once {what} has come"

    def diagram(self) -> Picture:
        """Return the comparison as a picture, with ``svg`` and ``save(path)``."""
        title = f"variants of {self.outcomes[0].trace.pattern}"
        return DrawnPicture(title=title, draw=lambda: _svg(self.outcomes, title))

    def _repr_html_(self) -> str:
        base, *others = self.outcomes
        head = ("what", "variant", "pattern", "matches", "difference")
        rows = [("", base.name, base.trace.pattern, _counted(base), "")]
        rows += [
            (one.what, one.name, one.trace.pattern, _counted(one), _Change.of(base, one).text())
            for one in others
        ]
        return self.diagram().html + html_table(head, rows, "variants and their matches")


def _of(what: str, outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.what == what]


def _grouped(base: Outcome, outcomes: Sequence[Outcome]) -> list[tuple[list[Outcome], _Change]]:
    """Return outcomes with how they differ from the pattern's, alike ones together."""
    found: list[tuple[list[Outcome], _Change]] = []
    for one in outcomes:
        change = _Change.of(base, one)
        alike = next((own for own, other in found if other == change), None)
        if alike is None:
            found.append(([one], change))
        else:
            alike.append(one)
    return found


def _counted(outcome: Outcome) -> str:
    at_least = "" if outcome.is_whole else "at least "
    return at_least + counted(len(outcome.found), "match", "matches")


_MOST_EVENTS, _MOST_LANES, _LANE, _LEFT, _TOP, _MARGIN = 60, 6, 24.0, 20.0, 74.0, 22.0
_PAINTS = {"also": ("green", ""), "without": ("red", "5 4"), "as written": ("line", "")}


def _svg(outcomes: Sequence[Outcome], title: str) -> str:
    """Draw the events on a line, and below them the matches of the pattern and of each variant."""
    base, *others = outcomes
    groups = [group for what in TITLES for group in _grouped(base, _of(what, others))]
    shown = [([base], _Change.of(base, base)), *(group for group in groups if group[1])]
    events = in_order(base.trace)[:_MOST_EVENTS]
    heads = [
        (
            f"{own[0].name}{f', {len(own) - 1} likewise' if len(own) > 1 else ''}",
            f"{own[0].trace.pattern}: {_counted(own[0])}",
        )
        for own, _ in shown
    ]
    names = [text_width(line, 12, bold=True) for head in heads for line in head]
    places = events_placed(events, _LEFT + max([60.0, *names]) + 40)
    end = max(places.values(), default=_LEFT + 200)
    page, above = Drawing(), Drawing()
    y = _TOP
    for ((one, *_), change), head in zip(shown, heads, strict=True):
        page.line([(_LEFT, y - 8), (end + 30, y - 8)], "edge", 1)
        page.text(_LEFT, y + 10, head[0], "ink", 12, bold=True)
        page.text(_LEFT, y + 26, head[1], "dim", 11)
        lanes = list(_lanes(base, one, change))
        for number, (match, kind) in enumerate(lanes[:_MOST_LANES]):
            _draw_match(page, match, places, y + 6 + _LANE * number, kind)
        y += max(_LANE * min(len(lanes), _MOST_LANES), 34) + 4
        if len(lanes) > _MOST_LANES:
            page.text(end, y, f"and {len(lanes) - _MOST_LANES} more", "dim", 11, "end")
            y += 16
    event_axis(above, events, places, y)
    above.moved(page, 0, 0)
    same = [one for own, change in groups if not change for one in own]
    for note in _notes(base, same, end):
        y += 17
        above.text(_LEFT, y + 4, note, "dim", 11.5)
    return above.svg(end + 60, y + _MARGIN, title)


def _lanes(base: Outcome, own: Outcome, change: _Change) -> Iterator[tuple[TracedMatch, str]]:
    """Yield the matches to draw: what is new or gone first."""
    yield from ((match, "also") for match in own.found if _events_of(match) in change.more)
    yield from ((match, "without") for match in base.found if _events_of(match) in change.fewer)
    yield from (
        (match, "as written") for match in own.found if _events_of(match) not in change.more
    )


def _draw_match(
    page: Drawing, match: TracedMatch, places: dict[int, float], y: float, kind: str
) -> None:
    steps = [(places[n], stage) for stage, own in match.events.items() for n in own if n in places]
    colour, dash = _PAINTS[kind]
    title = f"{kind}: {_events_of(match)}"
    xs = [x for x, _ in steps]
    if xs:
        page.line([(min(xs), y), (max(xs) + 0.1, y)], colour, 2, dash, title=title)
    for x, stage in steps:
        page.circle(x, y, 5, "paper" if dash else colour, colour)
        page.text(x + 9, y + 12, wrapped(stage, 7, 1)[0], "dim", 10, title=stage)


def _notes(base: Outcome, same: Sequence[Outcome], width: float) -> Iterator[str]:
    yield "grey: a match as written; green: also a match; red, dashed: no match of the variant"
    if same:
        text = f"the same matches with {', '.join(one.name for one in same)}"
        yield from wrapped(text, max(int(width / 6.5), 60))
    if len(base.trace.events) > _MOST_EVENTS:
        yield f"the first {_MOST_EVENTS} of {len(base.trace.events)} events"
