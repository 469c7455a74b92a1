# SPDX-License-Identifier: Apache-2.0
"""The page as HTML: everything that queries are named with is text in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

import attrs

from pyflinkcep.monitor.history import History, PatternPoint, Query
from pyflinkcep.show.svg import Drawing, text_width
from pyflinkcep.time import moment_text

COLOURS = ("blue", "violet", "green", "amber", "red", "dim")
_WIDTH, _HEIGHT = 404, 198
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 14, 44, 40
_ROW, _MOST_ROWS = 17, 6


@attrs.frozen
class Line:
    """A line of a chart."""

    name: str  # What it is called in the legend
    values: Sequence[float | None]  # A value for each time; None for a gap


def chart(title: str, times: Sequence[float], lines: Sequence[Line], unit: str = "") -> str:
    """Return a chart as SVG."""
    drawing = Drawing()
    drawing.text(14, 22, title, size=13, bold=True)
    known = [value for line in lines for value in line.values if value is not None]
    low = min([*known, 0.0])
    top = max([*known, 0.0]) or float(low == 0)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for part in (0.0, 0.5, 1.0):
        y = bottom - part * (bottom - _TOP)
        drawing.line([(_LEFT, y), (right, y)], "edge", 1)
        drawing.text(_LEFT - 6, y + 4, in_words(low + part * (top - low), unit), "dim", 10, "end")
    for number, line in enumerate(lines):
        colour = COLOURS[min(number, len(COLOURS) - 1)]
        for points in _pieces(times, line.values, low, top):
            if len(points) > 1:
                drawing.line(points, colour, 1.8, radius=0)
            else:
                drawing.circle(*points[0], 2.2, colour)
    return drawing.svg(_WIDTH, _legend(drawing, lines, unit), title)


def in_words(value: float | None, unit: str = "") -> str:
    """
    Return a number in few characters.

    Examples
    --------
    >>> in_words(1234567), in_words(0.25, "s"), in_words(7_200, "s"), in_words(None)
    ('1.23M', '0.25 s', '2 h', '–')
    """
    if value is None:
        return "–"
    if unit == "s":
        for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
            if abs(value) >= 2 * size:
                return f"{value / size:.3g} {name}"
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= power:
            return f"{value / power:.3g}{letter}" + (f" {unit}" if unit else "")
    return f"{value:.3g}" + (f" {unit}" if unit else "")


def _pieces(
    times: Sequence[float], values: Sequence[float | None], low: float, top: float
) -> list[list[tuple[float, float]]]:
    """Return the points of a line, cut where there is no value."""
    first, span = times[0], (times[-1] - times[0]) or 1.0
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    pieces: list[list[tuple[float, float]]] = [[]]
    for time, value in zip(times, values, strict=True):
        if value is None:
            pieces.append([])
            continue
        x = _LEFT + (time - first) / span * width
        y = _TOP + (1 - (value - low) / ((top - low) or 1.0)) * height
        pieces[-1].append((x, y))
    return [piece for piece in pieces if piece]


def _legend(drawing: Drawing, lines: Sequence[Line], unit: str) -> float:
    """Add the names of the lines with their last values; return the height of all its rows."""
    x, y = 14.0, _HEIGHT - 14.0
    for number, line in enumerate(lines):
        last = in_words(line.values[-1] if line.values else None, unit)
        name = line.name if len(line.name) <= 24 else line.name[:23] + "…"
        text = f"{name} {last}"
        width = text_width(text, 11) + 24
        if x + width > _WIDTH and x > 14:
            x, y = 14.0, y + _ROW
        if y > _HEIGHT + (_MOST_ROWS - 1) * _ROW:
            drawing.text(x, y, f"and {len(lines) - number} more", "dim", 11)
            break
        drawing.circle(x + 4, y - 4, 4, COLOURS[min(number, len(COLOURS) - 1)])
        drawing.text(x + 13, y, text, "dim", 11, title=line.name)
        x += width
    return y + 14


SCRIPT = """\
"use strict";
const main = document.querySelector("main");
const status = document.querySelector("#status");
const source = new EventSource("events");
source.onmessage = (event) => {
  main.innerHTML = JSON.parse(event.data);
  status.textContent = "live";
};
source.onerror = () => { status.textContent = "no connection"; };
"""

_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--paper:#f6f8fa;--edge:#d1d9e0}
@media (prefers-color-scheme:dark){
:root{--ink:#e6edf3;--dim:#9198a1;--paper:#010409;--edge:#3d444d}}
body{margin:0;padding:1.2rem 1.6rem;background:var(--paper);color:var(--ink);
font:14px/1.45 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}
header{display:flex;gap:1rem;align-items:baseline}
h1{font-size:1.25rem;margin:0}h2{font-size:1.1rem;margin:1.6rem 0 .2rem;overflow-wrap:anywhere}
h3{font-size:1rem;font-weight:600;margin:.9rem 0 .4rem;overflow-wrap:anywhere}
.dim,#status{color:var(--dim)}
.charts{display:flex;flex-wrap:wrap;gap:.7rem}
.charts svg{border:1px solid var(--edge);border-radius:8px}
section{border-top:1px solid var(--edge);margin-top:1.2rem}
"""


def page(history: History) -> str:
    """Return the whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Patterns</title><style>{_STYLE}</style></head><body>"
        '<header><h1>Patterns</h1><span id="status">loaded</span></header>'
        f'<main>{body(history)}</main><script src="monitor.js"></script></body></html>'
    )


def body(history: History) -> str:
    """Return what the page shows."""
    sections = "".join(map(_query, history.read()))
    return sections or '<p class="dim">No query has told of a micro-batch yet.</p>'


def _query(query: Query) -> str:
    times = [point.time for point in query.points]
    facts = [query.status, f"{query.batches:,} micro-batches", f"{query.rows:,} rows of input"]
    head = f'<h2>{escape(query.name)}</h2><p class="dim">{escape(" · ".join(facts))}</p>'
    if not times:
        return f"<section>{head}</section>"
    charts = [
        chart("Input, rows per micro-batch", times, [Line("rows", [p.rows for p in query.points])]),
        chart("Time per micro-batch", times, [Line("all", [p.seconds for p in query.points])], "s"),
    ]
    inside = f'<div class="charts">{"".join(charts)}</div>'
    patterns = "".join(_pattern(query, name) for name in query.last)
    return f"<section>{head}{inside}{patterns}</section>"


def _pattern(query: Query, name: str) -> str:
    points = [point for point in query.points if name in point.patterns]
    times = [point.time for point in points]
    own = [point.patterns[name] for point in points]
    drawn = "".join(_charts(times, own))
    watermark = own[-1].gauges.get("watermark")
    shown = f"watermark {_utc(watermark)}" if watermark is not None else "no watermark yet"
    oldest = own[-1].gauges.get("oldestPartialMatch")
    if oldest is not None:
        shown += f" · oldest partial match {_utc(oldest)}"
    head = f'<h3>{escape(name)}</h3><p class="dim">{escape(shown)}</p>'
    return f'{head}<div class="charts">{drawn}</div>'


def _charts(times: Sequence[float], own: Sequence[PatternPoint]) -> Iterator[str]:
    behind = [
        None if mark is None else time - mark / 1000
        for time, mark in zip(times, _gauge(own, "watermark"), strict=True)
    ]
    yield chart("Watermark behind the clock", times, [Line("behind", behind)], "s")
    yield chart("Matches per micro-batch", times, [_counter(own, "matches", "numMatches")])
    stages = own[-1].stages
    if stages:
        lines = [Line(stage, [point.stages.get(stage) for point in own]) for stage in stages]
        yield chart("Partial matches that wait, by last stage", times, lines)
        ended = {"window": "endedByWindow", "skip strategy": "endedBySkipStrategy"}
        ended |= {"contiguity": "endedByContiguity", "until": "endedByUntil"}
        ended |= {"NOT stage": "endedByNotStage", "limit": "numPartialMatchesDropped"}
        lines = [_counter(own, *each) for each in ended.items()]
        yield chart("Partial matches that ended, by reason", times, lines)
    late = {"late": "numLateRecordsDropped", "too far ahead": "numAheadRecordsDropped"}
    late["without key or time"] = "numNullRecordsDropped"
    yield chart("Events dropped", times, [_counter(own, *each) for each in late.items()])
    held = {"keys": "numKeys", "events held": "numEventsHeld", "queued": "numEventsQueued"}
    if stages:
        held["held back"] = "numMatchesHeldBack"
    lines = [Line(text, _gauge(own, gauge)) for text, gauge in held.items()]
    yield chart("State", times, lines)
    moved = {"read": "stateBytesRead", "written": "stateBytesWritten"}
    yield chart("State moved", times, [_counter(own, *each) for each in moved.items()], "B")
    work = {"unpacking": "unpackingMs"}
    work |= {"matching": "matchingMs", "state": "stateMs"}
    lines = [_counter(own, *each, lambda ms: ms / 1000) for each in work.items()]
    yield chart("Time of all tasks", times, lines, "s")


def _counter(
    own: Sequence[PatternPoint],
    text: str,
    counter: str,
    scaled: Callable[[float], float] = lambda value: value,
) -> Line:
    return Line(text, [scaled(point.counters[counter]) for point in own])


def _gauge(own: Sequence[PatternPoint], gauge: str) -> list[float | None]:
    return [point.gauges.get(gauge) for point in own]


def _utc(milliseconds: int) -> str:
    """Return a time as text, also one that Python's calendar does not have."""
    return moment_text(milliseconds) or in_words(milliseconds / 1000, "s")
