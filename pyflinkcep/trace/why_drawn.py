# SPDX-License-Identifier: Apache-2.0
"""The counts of a trace as bars: how many beginnings reached each stage, and how they ended."""

from __future__ import annotations

from pyflinkcep.show.svg import Drawing, text_width, wrapped
from pyflinkcep.trace.model import End
from pyflinkcep.trace.why_facts import Facts

__all__ = ["why_svg"]

_LEFT, _BAR, _ROW, _MARGIN = 22.0, 420.0, 34.0, 22.0
_ENDED = {
    End.CONTIGUITY: ("red", "did not fit, may not be skipped"),
    End.UNTIL: ("red", "until held"),
    End.NOT: ("red", "NOT stage came"),
    End.WINDOW: ("amber", "window over"),
    End.GAP: ("amber", "gap over"),
    End.INPUT: ("amber", "input ended"),
    End.SKIP: ("violet", "superfluous after a match"),
    End.LIMIT: ("violet", "too many"),
    End.HELD: ("amber", "a match held back"),
    End.MATCH: ("green", "a match"),
}


def why_svg(facts: Facts, title: str) -> str:
    """
    Return the counts as SVG.

    Parameters
    ----------
    facts : Facts
        The counts.
    title : str
        What it shows, for those who cannot see it.
    """
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
                colour, words = _ENDED[kind]
                width = max(_BAR * len(ended) / total, 3)
                drawing.rect(start, y - 4, width, 8, colour, "", 2)
                text = f"{len(ended)} {words}"
                drawing.text(start + width + 8, y + 4, text, colour, 11.5)
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
