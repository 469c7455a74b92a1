# SPDX-License-Identifier: Apache-2.0
"""Why a pattern has the matches it has: how far beginnings got, what stopped them, and advice."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.conditions import IterativeCondition, sql_of
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.errors import Field, InvalidArgumentError, KeyFields, counted, suggesting
from pyflinkcep.expressions.evaluator import compared_in_sql
from pyflinkcep.pattern.stage import Stage
from pyflinkcep.show.diagram import DrawnPicture, Picture, Report
from pyflinkcep.show.model import Plot, Plotted
from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.time import MIN_WATERMARK, duration_text
from pyflinkcep.traces.difference import Difference, Side
from pyflinkcep.traces.model import (
    ENDS,
    End,
    Miss,
    PartialMatch,
    Record,
    answer_text,
    ending_text,
    event_text,
    miss_lines,
    quoted,
    time_text,
)
from pyflinkcep.traces.recorder import Recorder, Run, single_stages, valued, watched
from pyflinkcep.traces.result import Trace


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
    def place(self) -> tuple[str, End]:
        """The last stage that took an event, and how it ended there."""
        return self.partial.steps[-1][1], self.partial.ending.kind

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
                found.setdefault(one.place, []).append(one)
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
class WhyNot(Report, Plotted):
    """
    Why a pattern matches what it matches, and not more.

    Made by :func:`pyflinkcep.whyNot` and :meth:`pyflinkcep.PatternStream.whyNot`. Its text
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

    def plotted(self, time: Field | None, key: KeyFields | None) -> Plot:
        """Return what :meth:`trace` plots."""
        return self.trace.plotted(time, key)

    @property
    def funnel_rows(self) -> list[dict[str, Any]]:
        """How many keys, and events that could begin a match, reached each stage."""
        return self.trace.funnel_rows

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

    @suggesting
    def compare(self, other: WhyNot, names: Sequence[str] = ("before", "after")) -> Difference:
        """
        Return what is different in another answer: of other events, or of another pattern.

        Parameters
        ----------
        other : WhyNot
            The other answer, such as today's beside yesterday's.
        names : two str
            How the two are called.

        Returns
        -------
        Difference
            Events, matches, how many beginnings reached each stage, how the others ended and how
            often each condition holds, side by side, with what changed; and the advice that only
            the other has. As text, as a picture (``diagram()``), which notebooks show with a table,
            and as ``rows``.

        Raises
        ------
        InvalidArgumentError
            If `other` is no such answer, or `names` are not two texts.

        Examples
        --------
        >>> from pyflinkcep import Pattern, whyNot
        >>> pattern = Pattern.begin("low").where("n < 3").next("high").where("n > 7")
        >>> monday, tuesday = ([{"n": n} for n in day] for day in ((1, 9, 2, 8), (1, 5, 2, 6)))
        >>> names = ("Mon", "Tue")
        >>> whyNot(pattern, monday).compare(whyNot(pattern, tuesday), names)  # doctest: +ELLIPSIS
        low ⇒ high
        <BLANKLINE>
                                                           Mon     Tue
          matches                                            2       0  gone
          events                                             4       4
        <BLANKLINE>
        Beginnings that reached
          low                                           2 of 2  2 of 2
          high                                          2 of 2  0 of 2  gone
        <BLANKLINE>
        How the others ended
          after 'low': did not fit, may not be skipped  0 of 2  2 of 2  new
        <BLANKLINE>
        Conditions
          low: n < 3                                    2 of 4  2 of 4
          high: n > 7                                   2 of 4  0 of 4  gone
        <BLANKLINE>
        Advice for Tue
          * No event satisfies 'n > 7' of 'high'. The most frequent values of n: 1 (1), ...
        """
        if not isinstance(other, WhyNot):
            raise InvalidArgumentError(
                f"compare: expected what whyNot() returns, got {other!r}",
                "write whyNot(pattern, monday).compare(whyNot(pattern, tuesday))",
            )
        is_text = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not is_text or len(names) != 2:
            raise InvalidArgumentError(
                f"compare: expected two names, got {names!r}", "write names=('Mon', 'Tue')"
            )
        old, new = (
            Side(name, one.facts.pattern, one.facts.matches, one.rows, one.advice)
            for name, one in zip(names, (self, other), strict=True)
        )
        return Difference(old, new)

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


_LOOKED_AT = 1000


@attrs.define(eq=False)
class Answered:
    """The conditions about one event, answered for every event, asked for or not."""

    nfa: NFA  # The compiled pattern
    events: Sequence[Any]  # The events
    # The answers, in the order of the events; None where the condition failed.
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
        text = sql_of(atom.condition)
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
    ) -> dict[tuple[str, End, str], int]:
        """
        Return how much later an event fits, for stages that a window kept from being reached.

        By the stage that was reached, the kind of the window and the stage that was not: after the
        first event, or after the one before.
        """
        fitting = _Fitting.of(self, trace, stages)
        found: dict[tuple[str, End, str], int] = {}
        for one in beginnings:
            partial, ending = one.partial, one.partial.ending
            if one.matched or ending.kind not in (End.WINDOW, End.GAP) or ending.time is None:
                continue
            is_gap = ending.kind is End.GAP
            since = trace.events[partial.steps[-1][0]].time if is_gap else partial.began
            for name in ending.stages:
                time = fitting.first(partial.key, name, ending.time)
                if time is not None:
                    at = (*one.place, name)
                    found[at] = min(found.get(at, time - since), time - since)
        return found

    def too_early(
        self, trace: Record, beginnings: Iterable[Beginning], stages: Sequence[Stage]
    ) -> dict[tuple[str, End, str], int]:
        """
        Return how often what a beginning waited for had come before it, if nothing matches.

        By the stage that was reached, how the beginning ended, and the stage that it waited for.
        """
        fitting = _Fitting.of(self, trace, stages)
        found: Counter[tuple[str, End, str]] = Counter()
        for one in () if trace.found else beginnings:
            partial, ending = one.partial, one.partial.ending
            if ending.kind not in (End.INPUT, End.WINDOW, End.GAP):
                continue
            for name in {*ending.stages} - partial.events.keys():
                first = fitting.first(partial.key, name, MIN_WATERMARK)
                found[*one.place, name] += first is not None and first < partial.began
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


def advised(
    facts: Facts,
    longer_ms: Mapping[tuple[str, End, str], int],
    too_early: Mapping[tuple[str, End, str], int],
    missing: str = "",
) -> Iterator[str]:
    """Yield advice, what matters most first."""
    if not facts.input["events"]:
        read = "look at what was read, and at filters before the pattern"
        yield missing or f"There are no events: {read}."
        return
    for condition in facts.conditions:
        if condition.per_event and not condition.holds and condition.of:
            yield _never(condition)
    if not facts.beginnings and all(one.holds for one in facts.conditions):
        first = next(iter(facts.stages))
        yield f"No event satisfies all conditions of {first!r}, with which a match could begin."
    for (stage, kind), ended in facts.ended.items():
        names = dict.fromkeys(name for one in ended for name in one.partial.ending.stages)
        told = "".join(f" But {text}" for text in _never_of(facts, names))
        yield from (f"{text}{told}" for text in _about(facts, stage, kind, ended, longer_ms))
        for name in names:
            if too_early.get((stage, kind, name)):
                early = too_early[stage, kind, name]
                yield (
                    f"An event that may fit {name!r} came before {early} of these "
                    f"{len(ended)}: are the stages in the order of the events?"
                )
    for condition in facts.conditions:
        if condition.per_event and condition.verdict == "always":
            yield (
                f"{condition.text!r} of {condition.stage!r} holds for all "
                f"{counted(condition.of, 'event')}: it decides nothing here."
            )
    yield from _about_input(facts)


def _never(condition: ConditionCount) -> str:
    text = f"No event satisfies {condition.text!r} of {condition.stage!r}."
    for name, values in condition.values:
        found = ", ".join(f"{value} ({count})" for value, count in values)
        text += f" The most frequent values of {name}: {found}."
    return text


def _never_of(facts: Facts, stages: Iterable[str]) -> Iterator[str]:
    """Yield which conditions over earlier stages no event passed that was waited for."""
    for one in facts.conditions:
        if one.stage in stages and not one.per_event and one.of and not one.holds:
            times = "the one time" if one.of == 1 else f"all {one.of} times"
            yield f"{one.text!r} of {one.stage!r} was false {times} that it was asked."


def _about(
    facts: Facts,
    stage: str,
    kind: End,
    ended: list[Beginning],
    longer_ms: Mapping[tuple[str, End, str], int],
) -> Iterator[str]:
    """Yield what to do about beginnings that ended at a stage for a reason."""
    count, wanted = counted(len(ended), "beginning"), quoted(ended[0].partial.ending.stages)
    few, is_one = _too_few(facts, stage, ended), len(ended) == 1
    were = "was" if is_one else "were"
    if kind is End.CONTIGUITY:
        text = f"{count} ended after {stage!r} because the very next event had to be {wanted}"
        key = "of the same key" if facts.has_key else "of all (there is no key)"
        if stage in ended[0].partial.ending.stages:
            call, instead = "consecutive() lets", "Without it, events that do not fit are skipped."
        else:
            call, instead = "next() lets", "followedBy() skips events that do not fit."
        yield f"{text}: {call} no event in between, {key}. {few}{instead}"
    elif kind in (End.WINDOW, End.GAP):
        is_gap = kind is End.GAP
        window, since = ("longest gap", "one before") if is_gap else ("window", "first")
        text = f"{count} ended after {stage!r} because the {window} was over. {few}"
        stages = [name for one in ended for name in one.partial.ending.stages]
        places = [(stage, kind, name) for name in stages]
        reached = [longer_ms[place] for place in places if place in longer_ms]
        if reached:
            came = f"An event that may fit came {duration_text(min(reached))} after the {since}"
            yield f"{text}{came}, outside the window."
        else:
            never = f"No event that fits {quoted(stages)} came later"
            yield f"{text}{never}, so a longer window does not help."
    elif kind is End.NOT:
        yield f"{count} ended after {stage!r} because {wanted} came, which must not."
    elif kind is End.UNTIL:
        yield f"{count} ended after {stage!r} because the condition of until() held."
    elif kind is End.INPUT:
        waits = "waits" if is_one else "wait"
        yield f"{count} still {waits} for {wanted}: no event that fits came. {few}".rstrip()
    elif kind is End.SKIP:
        yield f"{count} {were} dropped by the skip strategy, after a match: noSkip() keeps all."
    elif kind is End.HELD:
        yield (
            f"{count} became a match that is held back: under a skip strategy a match waits for "
            "partial matches that began earlier. A window ends these."
        )
    elif kind is End.LIMIT:
        yield f"{count} {were} dropped because there were too many: see maxPartialMatches."


def _too_few(facts: Facts, stage: str, ended: list[Beginning]) -> str:
    needs = facts.stages[stage]
    most = max(len(one.partial.events[stage]) for one in ended)
    return f"{stage!r} needs {needs} events, the closest had {most}. " if most < needs else ""


def _about_input(facts: Facts) -> Iterator[str]:
    late, nulls = facts.input.get("late", 0), facts.input.get("without a time", 0)
    if late:
        yield f"{counted(late, 'event')} came too late, behind the watermark, and took no part."
    if nulls:
        yield f"{counted(nulls, 'event')} without a time: left out."
    keyless = facts.input.get("without a key", 0)
    if keyless:
        yield f"{counted(keyless, 'event')} with a null key, which is a key like others."
    if not facts.has_key and facts.ended:
        yield "There is no key, so all events are one sequence: is one per user or device meant?"


_PARTIALS = 20_000
"""After how many partial matches to stop: a pattern that doubles them would never end."""
_MANY = 20
"""How many partial matches of a key are many."""
_ALL_OF, _MISSES = 1000, 20
"""How many events are recorded in full; of more, the first misses of each partial match are."""


def explained(
    run: Run,
    limit: PartialMatchLimit | None,
    more: Mapping[str, int],
    *,
    has_key: bool,
    sample: str = "",
    counts: Callable[[list[ConditionCount]], Sequence[ConditionCount]] = list,
    missing: str = "",
) -> WhyNot:
    """Return why a pattern has the matches it has."""
    brief = _MISSES if len(run.given.events) > _ALL_OF else None
    trace, recorder = watched(run, limit, brief, _PARTIALS)
    if len(trace.partials) == _PARTIALS:
        keys = len({partial.key for partial in trace.partials})
        is_much = keys * _MANY < _PARTIALS
        why = ": this pattern makes very many" if is_much else f" of {counted(keys, 'key')}"
        stopped = f"stopped at {_PARTIALS} partial matches{why}"
        sample = f"{sample}, {stopped}" if sample else stopped
    answered = Answered(run.nfa, run.given.events)
    stages = list(single_stages(run.pattern))
    order = {stage.name: place for place, stage in enumerate(stages)}
    conditions = sorted(  # those of until() of a group last
        counts(answered.counts(recorder)), key=lambda count: order.get(count.stage, len(order))
    )
    facts = counted_facts(trace, conditions, more, has_key=has_key, sample=sample)
    longer = answered.longer_windows(trace, facts.beginnings, stages)
    early = answered.too_early(trace, facts.beginnings, stages)
    return WhyNot(facts, tuple(advised(facts, longer, early, missing)))
