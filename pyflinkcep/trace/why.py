# SPDX-License-Identifier: Apache-2.0
"""Why a pattern has the matches it has: how far beginnings got, and what stopped them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import attrs

from pyflinkcep.errors import counted
from pyflinkcep.show import Picture
from pyflinkcep.trace.model import End
from pyflinkcep.trace.result import Trace
from pyflinkcep.trace.why_drawn import why_svg
from pyflinkcep.trace.why_facts import Beginning, ConditionCount, Facts

__all__ = ["WhyNot", "WhyPicture"]

_SHOWN = 3


@attrs.frozen(repr=False)
class WhyPicture(Picture):
    """The picture of an answer: how many beginnings reached each stage, and how they ended."""

    drawn: Facts = attrs.field(kw_only=True)

    @property
    def svg(self) -> str:
        """The picture as SVG, for light and dark pages."""
        return why_svg(self.drawn, self.title)


@attrs.frozen(repr=False)
class WhyNot:
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

    def diagram(self) -> WhyPicture:
        """Return the answer as a picture, with ``svg`` and ``save(path)``."""
        return WhyPicture(title=f"why not: {self.facts.pattern}", drawn=self.facts)

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

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"{self.diagram().svg}<pre>{escape(self.text())}</pre>"


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
        lines.append(f"  after {stage!r}, {_WHY[kind]}: {len(ended)}{lacking}")
        lines += [f"    {line}" for line in ended[0].lines]
    return lines


def _closest(facts: Facts) -> list[str]:
    closest = facts.closest[:_SHOWN]
    lines = ["", "The closest"] if closest else []
    for beginning in closest:
        lines.append(f"  {beginning.name}, {counted(len(beginning.partial.steps), 'event')} taken")
        lines += [f"    {line}" for line in beginning.lines]
    return lines


_WHY: Mapping[End, str] = {
    End.CONTIGUITY: "an event came that did not fit and may not be skipped",
    End.UNTIL: "the condition of until held",
    End.NOT: "the event of a NOT stage came",
    End.WINDOW: "the window was over",
    End.GAP: "the longest gap was over",
    End.SKIP: "a match made them superfluous",
    End.LIMIT: "there were too many partial matches",
    End.INPUT: "the input ended",
    End.HELD: "a match that is held back",
    End.MATCH: "a match",
}


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
