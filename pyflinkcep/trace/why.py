# SPDX-License-Identifier: Apache-2.0
"""Why a pattern has the matches it has: how far beginnings got, and what stopped them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import counted
from pyflinkcep.show.diagram import DrawnPicture, Picture, Report
from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.trace.model import (
    ENDS,
    End,
    Miss,
    PartialMatch,
    Record,
    answer_text,
    ending_text,
    event_text,
    miss_lines,
    time_text,
)
from pyflinkcep.trace.result import Trace


@attrs.frozen
class ConditionCount:
    """How often a condition holds."""

    stage: str  # The stage that it was written for
    text: str  # The condition
    holds: int  # How often it held
    of: int  # How often it was evaluated: for each event, or as often as matching asked
    per_event: bool = True  # Whether it is about one event alone
    # If it never holds, what it compared, and the most frequent values.
    values: tuple[tuple[str, tuple[tuple[Any, int], ...]], ...] = ()

    @property
    def verdict(self) -> str:
        """``never`` or ``always``; empty otherwise."""
        if not self.of:
            return "never asked"
        return "never" if not self.holds else "always" if self.holds == self.of > 1 else ""


@attrs.frozen
class Beginning:
    """An event that could begin a match, and the partial match that got furthest from it."""

    name: str  # The event and its key
    partial: PartialMatch  # The partial match
    matched: bool  # Whether some match began with the event
    lines: tuple[str, ...]  # How it ended, and the answers that decided
    # The event that ended it, or the last one that did not fit; empty if there is none.
    event: str = ""
    condition: str = ""  # What was decisive there
    compared: str = ""  # The values that it compared

    @property
    def closeness(self) -> tuple[int, int, int]:
        """How far it got, greater if further."""
        misses = self.partial.misses
        lacking = len(misses[-1].answers) if misses else 0
        return self.partial.reached, len(self.partial.steps), -lacking


@attrs.frozen
class Facts:
    """What was counted."""

    pattern: str  # The pattern on one line
    matches: int  # The number of matches
    # The numbers of events, keys, and events that are late, out of order or without a key or a
    # time.
    input: Mapping[str, int]
    stages: Mapping[str, int]  # The stages that take events, and the fewest events of each
    beginnings: tuple[Beginning, ...]  # The events that could begin a match
    conditions: tuple[ConditionCount, ...]  # The conditions
    has_key: bool  # Whether events have keys
    sample: str = ""  # If not all was looked at, what was
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
    """Return what a trace says when it is counted."""
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
    lines = (ending_text(best.ending), *miss_lines(misses, trace.values))
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


_LEFT, _BAR, _ROW, _MARGIN = 22.0, 420.0, 34.0, 22.0


def why_svg(facts: Facts, title: str) -> str:
    """Return the counts as SVG."""
    drawing = Drawing()
    total = max(len(facts.beginnings), 1)
    names = [text_width(wrapped(name, 28, 1)[0], 13, bold=True) for name in facts.stages]
    start = _LEFT + max([70.0, *names]) + 14
    y, right = _MARGIN, start + _BAR + 90
    for stage, reached in facts.reached.items():
        name = wrapped(stage, 28, 1)[0]
        drawing.text(start - 12, y + 17, name, "ink", 13, "end", bold=True, title=stage)
        drawing.rect(start, y, _BAR, 24, "box", "edge", 4)
        if reached:
            drawing.rect(start, y, max(_BAR * reached / total, 4), 24, "blue", "", 4)
        drawing.text(start + _BAR + 12, y + 17, f"{reached} of {len(facts.beginnings)}", "ink", 12)
        y += _ROW
        for (after, kind), ended in facts.ended.items():
            if after == stage:
                words = ENDS[kind]
                width = max(_BAR * len(ended) / total, 3)
                drawing.rect(start, y - 4, width, 8, words.colour, "", 2)
                text = f"{len(ended)} {words.below}"
                drawing.text(start + width + 8, y + 4, text, words.colour, 11.5)
                right = max(right, start + width + 8 + text_width(text, 11.5))
                y += 19
        y += 8
    matched = sum(one.matched for one in facts.beginnings)
    drawing.text(start - 12, y + 14, "match", "ink", 13, "end", bold=True)
    drawing.rect(start, y, _BAR, 20, "box", "edge", 4)
    if matched:
        drawing.rect(start, y, max(_BAR * matched / total, 4), 20, "green", "", 4)
    drawing.text(start + _BAR + 12, y + 14, f"{matched} of {len(facts.beginnings)}", "ink", 12)
    y += 42
    counts = f"{len(facts.beginnings)} of {facts.input['events']} events could begin a match"
    drawing.text(_LEFT, y, counts, "dim", 11.5)
    y += 16
    return drawing.svg(right + _MARGIN, y, title)


_SHOWN = 3


@attrs.frozen(repr=False)
class WhyNot(Report):
    """
    Why a pattern matches what it matches, and not more.

    Made by :func:`pyflinkcep.testing.whyNot` and :meth:`pyflinkcep.PatternStream.whyNot`. Its text
    ends with advice.

    Attributes
    ----------
    facts : Facts
        What was counted.
    advice : tuple of str
        What to look at first, in plain words.
    """

    facts: Facts
    advice: tuple[str, ...]

    schema = (
        "what string, stage string, reason string, count bigint, total bigint, key string, "
        "time bigint, event string, condition string, compared string"
    )
    """The schema of :attr:`rows`."""

    @property
    def trace(self) -> Trace:
        """What became of each event, of those that were traced."""
        assert isinstance(self.facts.trace, Trace)
        return self.facts.trace

    @property
    def rows(self) -> list[dict[str, Any]]:
        """
        The answer as rows, for ``spark.createDataFrame(why.rows, why.schema)``.

        ``what`` is ``input``, ``stage``, ``ended`` or ``condition``; ``count`` is of ``total``;
        key, time, event, condition and the values compared are those of an example.
        """
        facts, total = self.facts, len(self.facts.beginnings)
        rows = [_row("input", reason=name, count=count) for name, count in facts.input.items()]
        for stage, reached in facts.reached.items():
            rows.append(_row("stage", stage, count=reached, total=total))
        for (stage, kind), ended in facts.ended.items():
            example = ended[0]
            rows.append(_row("ended", stage, kind.value, len(ended), total) | _example(example))
        for one in facts.conditions:
            row = _row("condition", one.stage, one.verdict, one.holds, one.of)
            rows.append(row | {"condition": one.text})
        return rows

    def diagram(self) -> Picture:
        """Return the answer as a picture, with ``svg`` and ``save(path)``."""
        title = f"why not: {self.facts.pattern}"
        return DrawnPicture(title=title, draw=lambda: why_svg(self.facts, title))

    def text(self) -> str:
        """Return the answer as text."""
        facts = self.facts
        lines = [f"{facts.pattern}: {', '.join(_heading(facts))}"]
        lines += [facts.sample] if facts.sample else []
        lines += ["", "Beginnings that reached"]
        total = len(facts.beginnings)
        width = max(map(len, facts.reached), default=0)
        for stage, reached in facts.reached.items():
            lines.append(f"  {stage:{width}}  {reached} of {total}")
        lines += _ended(facts) + _closest(facts)
        lines += ["", "Conditions", *(f"  {_condition(one)}" for one in facts.conditions)]
        if self.advice:
            lines += ["", "Advice", *(f"  * {advice}" for advice in self.advice)]
        return "\n".join(lines)


def _heading(facts: Facts) -> list[str]:
    where = " in the sample" if facts.sample else ""
    matches = counted(facts.matches, "match", "matches") + where
    one = {"events": "event", "keys": "key"}
    counts = ((name, count) for name, count in facts.input.items() if count)
    return [matches, *(f"{n} {one.get(name, name) if n == 1 else name}" for name, n in counts)]


def _ended(facts: Facts) -> list[str]:
    lines = ["", "How the others ended"] if facts.ended else []
    for (stage, kind), ended in facts.ended.items():
        needs = facts.stages[stage]
        few = sum(len(one.partial.events[stage]) < needs for one in ended)
        lacking = f", {few} with fewer than {needs} events" if few else ""
        lines.append(f"  after {stage!r}, {ENDS[kind].many}: {len(ended)}{lacking}")
        lines += [f"    {line}" for line in ended[0].lines]
    return lines


def _closest(facts: Facts) -> list[str]:
    closest = facts.closest[:_SHOWN]
    lines = ["", "The closest"] if closest else []
    for beginning in closest:
        lines.append(f"  {beginning.name}, {counted(len(beginning.partial.steps), 'event')} taken")
        lines += [f"    {line}" for line in beginning.lines]
    return lines


def _condition(one: ConditionCount) -> str:
    what = "events" if one.per_event else "evaluations"
    verdict = f"  ({one.verdict})" if one.verdict else ""
    return f"{one.stage}: {one.text}: true for {one.holds} of {one.of} {what}{verdict}"


def _row(
    what: str, stage: str = "", reason: str = "", count: int = 0, total: int | None = None
) -> dict[str, Any]:
    empty = dict.fromkeys(("key", "time", "event", "condition", "compared"))
    return {
        "what": what, "stage": stage, "reason": reason, "count": count, "total": total, **empty
    }  # fmt: skip


def _example(example: Beginning) -> dict[str, Any]:
    return {
        "key": repr(example.partial.key),
        "time": example.partial.ending.time,
        "event": example.event,
        "condition": example.condition,
        "compared": example.compared,
    }
