# SPDX-License-Identifier: Apache-2.0
"""A pattern for human readers: one line for logs, a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import attrs

from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.stage import ConsumingStrategy, QuantifierProperty, Stage, WithinType


@attrs.frozen
class Shown:
    """How a contiguity is shown: as an arrow, in ``allOf``, in words, and in a picture."""

    arrow: str
    between: str  # What joins the parts of ``allOf``; empty for NOT stages
    words: str
    line: str  # The kind of the link; see ``show/model.py``
    method: str  # That of ``Pattern``


SHOWN = {
    ConsumingStrategy.STRICT: Shown("⇒", "&⇒", "directly after", "strict", "next"),
    ConsumingStrategy.SKIP_TILL_NEXT: Shown("→", "&", "some time after", "relaxed", "followedBy"),
    ConsumingStrategy.SKIP_TILL_ANY: Shown("⇢", "&⇢", "any time after", "any", "followedByAny"),
    ConsumingStrategy.NOT_NEXT: Shown("⇏", "", "not directly after", "not", "notNext"),
    ConsumingStrategy.NOT_FOLLOW: Shown("↛", "", "not before the next", "not", "notFollowedBy"),
}
BETWEEN = {
    ConsumingStrategy.STRICT: "consecutive",
    ConsumingStrategy.SKIP_TILL_ANY: "all combinations",
}
"""How repetitions follow each other, if not as usual."""
_COLUMNS = ("stage", "follows", "how often", "condition")


def one_line(stages: Sequence[Stage]) -> str:
    """Return a pattern on one line."""
    text = ""
    for stage in stages:
        if text:
            text += f" {SHOWN[stage.quantifier.consumingStrategy].arrow} "
        text += (f"({_inside(stage)})" if stage.inside else stage.name) + _count(stage)
    return text


def _inside(stage: Stage) -> str:
    """Return the stages of a group, and how patterns are combined."""
    if stage.combination is None:
        return one_line(stage.inside)
    between = "|"
    if stage.combination.in_any_order:
        between = SHOWN[stage.combination.joinedBy].between
    return f" {between} ".join(one_line(part.inside) for part in stage.inside)


def stage_table(stages: Sequence[Stage], skip: AfterMatchSkipStrategy) -> str:
    """Return a pattern as an HTML table of its stages, with windows and skip strategy below."""
    from pyflinkcep.show.diagram import html_table  # which no worker needs

    below = "<br>".join(map(escape, [*_windows(stages), f"after a match: {skip!r}"]))
    return f"{html_table(_COLUMNS, _rows(stages), one_line(stages))}<p>{below}</p>"


def _rows(stages: Sequence[Stage], depth: int = 0) -> Iterator[tuple[str, str, str, str]]:
    for number, stage in enumerate(stages):
        name = "group" if stage.inside else stage.name
        if stage.combination is not None:
            name = stage.combination.method
        condition = "" if stage.inside else "any event"
        if stage.condition is not None:
            condition = repr(stage.condition)
        if stage.until is not None:
            condition = f"{condition} until {stage.until!r}".strip()
        follows = SHOWN[stage.quantifier.consumingStrategy].words if number else ""
        yield "\u2003" * depth + name, follows, _repetition(stage), condition
        yield from _rows(stage.inside, depth + 1)


def _repetition(stage: Stage) -> str:
    quantifier = stage.quantifier
    words = [_count(stage) or "1"]
    if stage.times is not None and quantifier.innerConsumingStrategy in BETWEEN:
        words.append(BETWEEN[quantifier.innerConsumingStrategy])
    if quantifier.hasProperty(QuantifierProperty.GREEDY):
        words.append("greedy")
    return ", ".join(words)


def _windows(stages: Sequence[Stage], place: str = "") -> Iterator[str]:
    for stage in stages:
        for kind, length in stage.windows.items():
            what = "match" if kind is WithinType.FIRST_AND_LAST else "gap between events"
            yield f"each {what}{place} within {length} ms (set on {stage.name!r})"
        yield from _windows(stage.inside, " of the group")


def _count(stage: Stage) -> str:
    """Return the quantifier as in a regular expression."""
    quantifier, times = stage.quantifier, stage.times
    text = ""
    if times is not None and quantifier.hasProperty(QuantifierProperty.LOOPING):
        text = "+" if times.from_ == 1 else f"{{{times.from_},}}"
    elif times is not None:
        exact = times.from_ == times.to
        text = f"{{{times.from_}}}" if exact else f"{{{times.from_},{times.to}}}"
    return text + ("?" if quantifier.hasProperty(QuantifierProperty.OPTIONAL) else "")
