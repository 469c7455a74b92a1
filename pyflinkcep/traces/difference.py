# SPDX-License-Identifier: Apache-2.0
"""What is different between two answers of whyNot: of two days, or of two patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.show.diagram import DrawnPicture, Picture, Report, html_table
from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.traces.model import ENDS, End

_TITLES = {
    "input": "Input",
    "stage": "Beginnings that reached",
    "ended": "How the others ended",
    "condition": "Conditions",
}
_POINTS, _TIMES = 0.1, 1.5
"""From how much on a share is another: by points, or by its multiple."""


@attrs.frozen
class Side:
    """One of the two answers."""

    label: str  # How it is called
    pattern: str  # The pattern on one line
    matches: int
    rows: Sequence[Mapping[str, Any]]  # Those of ``WhyNot``
    advice: tuple[str, ...]


@attrs.frozen
class Line:
    """What was counted on both sides."""

    what: str  # A name of :data:`_TITLES`
    stage: str
    text: str  # What was counted, as users read it
    counts: tuple[int, int]
    totals: tuple[int | None, int | None]  # Of how many; None if not of any

    @property
    def change(self) -> str:
        """``new``, ``gone``, ``more`` or ``less``; empty if it is about the same."""
        before, after = self.counts
        if not before or not after:
            return "" if before == after else "gone" if before else "new"
        old, new = self.shares
        if abs(new - old) < _POINTS and 1 / _TIMES < new / old < _TIMES:
            return ""
        return "more" if new > old else "less"

    @property
    def shares(self) -> tuple[float, float]:
        """The shares; of counts that are not of any, their parts of the greater."""
        most = max(*self.counts, 1)
        totals = (most if total is None else total or 1 for total in self.totals)
        old, new = (count / total for count, total in zip(self.counts, totals, strict=True))
        return old, new

    def cells(self) -> tuple[str, str]:
        """Return the counts as text."""
        pairs = zip(self.counts, self.totals, strict=True)
        old, new = (str(c) if total is None else f"{c} of {total}" for c, total in pairs)
        return old, new


@attrs.frozen(repr=False)
class Difference(Report):
    """
    What is different between two answers; made by :meth:`WhyNot.compare`.

    Attributes
    ----------
    before, after : Side
        The answers.
    """

    before: Side
    after: Side

    @property
    def lines(self) -> tuple[Line, ...]:
        """What was counted, side by side."""
        return tuple(_lines(self.before, self.after))

    @property
    def advice(self) -> tuple[str, ...]:
        """The advice of the second answer that the first did not give."""
        return tuple(one for one in self.after.advice if one not in self.before.advice)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """
        The difference as rows.

        ``what`` is ``input``, ``stage``, ``ended`` or ``condition``; ``before`` is of
        ``totalBefore``, ``after`` of ``totalAfter``; ``change`` is ``new``, ``gone``, ``more``,
        ``less`` or empty.
        """
        return [
            {
                "what": line.what,
                "stage": line.stage,
                "text": line.text,
                "before": line.counts[0],
                "totalBefore": line.totals[0],
                "after": line.counts[1],
                "totalAfter": line.totals[1],
                "change": line.change,
            }
            for line in self.lines
        ]

    def text(self) -> str:
        """Return the difference as text."""
        lines, labels = self.lines, (self.before.label, self.after.label)
        cells = [line.cells() for line in lines]
        wide = max(len(line.text) for line in lines)
        left, right = (max(map(len, column)) for column in zip(labels, *cells, strict=True))
        told = [*self._patterns(), "", f"  {'':{wide}}  {labels[0]:>{left}}  {labels[1]:>{right}}"]
        what = "input"
        for line, (old, new) in zip(lines, cells, strict=True):
            told += [] if line.what == what else ["", _TITLES[line.what]]
            what = line.what
            row = f"  {line.text:{wide}}  {old:>{left}}  {new:>{right}}  {line.change}"
            told.append(row.rstrip())
        if self.advice:
            told += ["", f"Advice for {labels[1]}", *(f"  * {one}" for one in self.advice)]
        return "\n".join(told)

    def _patterns(self) -> list[str]:
        if self.before.pattern == self.after.pattern:
            return [self.before.pattern]
        return [f"{side.label}: {side.pattern}" for side in (self.before, self.after)]

    def diagram(self) -> Picture:
        """Return the difference as a picture, with ``svg`` and ``save(path)``."""
        title = f"{self.before.label} and {self.after.label}: {self.after.pattern}"
        return DrawnPicture(title=title, draw=lambda: _svg(self, title))

    def _repr_html_(self) -> str:
        head = ("", "", self.before.label, self.after.label, "change")
        rows = [(_TITLES[one.what], one.text, *one.cells(), one.change) for one in self.lines]
        advice = html_table(
            (f"advice for {self.after.label}",), ((one,) for one in self.advice), ""
        )
        table = html_table(head, rows, " and ".join(self._patterns()))
        return self.diagram().html + table + (advice if self.advice else "")


_Row = Mapping[str, Any]


def _lines(before: Side, after: Side) -> Iterator[Line]:
    yield Line("input", "", "matches", (before.matches, after.matches), (None, None))
    for what in _TITLES:
        pairs = _paired(*([row for row in s.rows if row["what"] == what] for s in (before, after)))
        for old, new in pairs:
            known: _Row = old or new or {}
            counts = tuple(0 if row is None else row["count"] for row in (old, new))
            totals = tuple(None if row is None else row["total"] for row in (old, new))
            if what == "input":
                if any(counts):
                    yield Line(what, "", known["reason"], (counts[0], counts[1]), (None, None))
                continue
            ends = (totals[0] or 0, totals[1] or 0)
            if what == "ended":
                ends = (_beginnings(before), _beginnings(after))
            yield Line(what, known["stage"], _text(old, new), (counts[0], counts[1]), ends)


def _beginnings(side: Side) -> int:
    return next((int(row["total"]) for row in side.rows if row["what"] == "stage"), 0)


def _text(old: _Row | None, new: _Row | None) -> str:
    row: _Row = old or new or {}
    stage = row["stage"]
    if row["what"] == "stage":
        return str(stage)
    if row["what"] == "ended":
        return f"after {stage!r}: {ENDS[End(row['reason'])].below}"
    texts = dict.fromkeys(str(one["condition"]) for one in (old, new) if one is not None)
    return f"{stage}: {' → '.join(texts)}"


def _paired(
    before: Sequence[_Row], after: Sequence[_Row]
) -> Iterator[tuple[_Row | None, _Row | None]]:
    """Yield what was counted on both sides; conditions of a stage that changed with each other."""
    left = list(after)

    def taken(row: _Row, names: tuple[str, ...]) -> _Row | None:
        for one in left:
            if all(one[name] == row[name] for name in names):
                left.remove(one)
                return one
        return None

    names = {"ended": ("stage", "reason"), "condition": ("stage", "condition"), "stage": ("stage",)}
    found = [(row, taken(row, names.get(row["what"], ("reason",)))) for row in before]
    for old, new in found:
        if new is None and old["what"] == "condition":
            new = taken(old, ("stage",))
        yield old, new
    yield from ((None, one) for one in left)


_LEFT, _BAR, _ROW, _MARGIN = 22.0, 300.0, 40.0, 22.0
_MARKS = {"new": "violet", "gone": "red", "more": "amber", "less": "amber", "": "dim"}


def _svg(difference: Difference, title: str) -> str:
    """Draw two bars for each count, and the change beside them."""
    page, lines = Drawing(), difference.lines
    names = [text_width(wrapped(line.text, 48, 1)[0], 12) for line in lines]
    start = _LEFT + max(names) + 16
    y, right, what = 40.0, start + _BAR + 160, ""
    for at, (side, colour) in enumerate(((difference.before, "line"), (difference.after, "blue"))):
        page.rect(start + 150 * at, y - 20, 12, 12, colour, "", 2)
        page.text(start + 150 * at + 18, y - 10, wrapped(side.label, 18, 1)[0], "ink", 12)
    for line in lines:
        if line.what != what:
            what = line.what
            page.text(_LEFT, y + 14, _TITLES[what], "dim", 12, bold=True)
            y += 24
        shown = wrapped(line.text, 48, 1)[0]
        page.text(start - 12, y + 19, shown, "ink", 12, "end", title=line.text)
        for bar, (share, cell, colour) in enumerate(
            zip(line.shares, line.cells(), ("line", "blue"), strict=True)
        ):
            top = y + 3 + 15 * bar
            page.rect(start, top, _BAR, 12, "box", "edge", 3)
            if share:
                page.rect(start, top, max(_BAR * share, 3), 12, colour, "", 3)
            page.text(start + _BAR + 10, top + 10, cell, "ink", 10.5)
        if line.change:
            mark, wide = _MARKS[line.change], start + _BAR + 24
            x = wide + max(text_width(cell, 10.5) for cell in line.cells())
            page.text(x, y + 20, line.change, mark, 12.5, bold=True)
            right = max(right, x + 60)
        y += _ROW
    return page.svg(right + _MARGIN, y + 8, title)
