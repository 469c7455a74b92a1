# SPDX-License-Identifier: Apache-2.0
"""The stages of a pattern as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyflinkcep.conditions import IterativeCondition, RichAndCondition
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.display import BETWEEN, SHOWN, one_line
from pyflinkcep.pattern.stage import QuantifierProperty, Stage, WithinType
from pyflinkcep.show import Diagram
from pyflinkcep.show.model import Box, Choice, Frame, Link, Part, Row
from pyflinkcep.time import duration_text


def stage_diagram(stages: Sequence[Stage], skip: AfterMatchSkipStrategy) -> Diagram:
    """Return the picture of a pattern."""
    notes = []
    if skip.isSkipStrategy():
        name = skip.getPatternName()
        called = type(skip).__name__.removesuffix("Strategy").replace("Last", "LastEvent", 1)
        called = {"SkipToLastEvent": "SkipToLast"}.get(called, called)
        called = called[0].lower() + called[1:]
        notes.append(f"after a match: {called}({'' if name is None else repr(name)})")
    return Diagram(_row(stages), tuple(notes), title=one_line(stages))


def _row(stages: Sequence[Stage]) -> Row:
    links = tuple(_link(stage) for stage in stages[1:])
    return Row(tuple(map(_part, stages)), links, tuple(_windows(stages)))


def _link(stage: Stage) -> Link:
    shown = SHOWN[stage.quantifier.consumingStrategy]
    gap = stage.windows.get(WithinType.PREVIOUS_AND_CURRENT)
    return Link(shown.line, shown.method, "" if gap is None else f"gap < {duration_text(gap)}")


def _part(stage: Stage) -> Part:
    is_optional = stage.quantifier.hasProperty(QuantifierProperty.OPTIONAL)
    repeats, optional = _repeats(stage), "optional" if is_optional else ""
    if stage.combination is not None:
        return _combined(stage, repeats, optional)
    if stage.inside:
        row = _row(stage.inside)
        return Frame(row, "group", repeats, optional)
    lines = tuple(_conditions(stage.condition)) or ("any event",)
    if stage.until is not None:
        lines = (*lines, f"until {stage.until!r}")
    return Box(stage.name, lines, repeats, optional, stage.is_absent)


def _combined(stage: Stage, repeats: str, optional: str) -> Part:
    """Return alternatives, or patterns in any order."""
    assert stage.combination is not None
    rows = tuple(_row(part.inside) for part in stage.inside)
    if stage.combination.in_any_order:
        link = Link("plain", f"and, {SHOWN[stage.combination.joinedBy].method}")
        parts = tuple(r.parts[0] if len(r.parts) == 1 else Frame(r) for r in rows)
        return Frame(Row(parts, (link,) * (len(parts) - 1)), "in any order", repeats, optional)
    choice = Choice(rows, "one of")
    return Frame(Row((choice,)), "", repeats, optional) if repeats or optional else choice


def _conditions(condition: IterativeCondition | None) -> Iterator[str]:
    """Yield the conditions that must all hold, one by one."""
    if isinstance(condition, RichAndCondition):
        left, right = condition.nestedConditions
        yield from _conditions(left)
        yield from (f"and {text.removeprefix('and ')}" for text in _conditions(right))
    elif condition is not None:
        yield repr(condition)


def _repeats(stage: Stage) -> str:
    quantifier, times = stage.quantifier, stage.times
    if times is None:
        return ""
    if quantifier.hasProperty(QuantifierProperty.LOOPING):
        words = [f"{times.from_} or more"]
    elif times.from_ == times.to:
        words = [f"{times.from_} times"]
    else:
        words = [f"{times.from_} to {times.to} times"]
    between = BETWEEN.get(quantifier.innerConsumingStrategy)
    words += [between] if between else []
    words += ["greedy"] if quantifier.hasProperty(QuantifierProperty.GREEDY) else []
    words += [f"gaps < {duration_text(times.window_ms)}"] if times.window_ms is not None else []
    return ", ".join(words)


def _windows(stages: Sequence[Stage]) -> Iterator[str]:
    for stage in stages:
        length = stage.windows.get(WithinType.FIRST_AND_LAST)
        if length is not None:
            yield f"within {duration_text(length)} of the first event"
