# SPDX-License-Identifier: Apache-2.0
"""The live page: what queries tell of their micro-batches, as HTML and as Prometheus' text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from html import escape
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.show.charts import unit_of
from pyflinkcep.show.query_history import (
    COUNTERS,
    GAUGES,
    History,
    PatternPoint,
    Point,
    Query,
    reason_of,
)
from pyflinkcep.show.svg import Drawing, text_width
from pyflinkcep.time import moment_text


@attrs.frozen
class Sign:
    """What a counter tells. The manual has each, in the same words."""

    what: str  # What it is
    helps: str  # What helps

    def text(self, stage: str = "") -> str:
        """Return it as a sentence, of a stage if it is about one."""
        about = f"{stage}: " if stage else ""
        return f"{about}{self.what[0].upper()}{self.what[1:]}. What helps: {self.helps}."


NO_INPUT = Sign(
    "no events arrive", "look at the source; sources of the progress has a number for each"
)
HELD_BACK = Sign(
    "the watermark is held back: all events wait for it",
    "waiting(checkpoint) says what holds it back",
)
OUT_OF_TIME = Sign(
    "events are behind or far ahead",
    "a longer delay of the watermark; sideOutputLateData and sideOutputAheadData have them",
)
WITHOUT_KEY_OR_TIME = Sign("they have no key or no time", "sideOutputNullData has them")
NO_BEGINNING = Sign(
    "no event begins a match",
    "whyNot() on a bounded part of the same events: the first condition",
)
ALL_WAIT = Sign("all wait for the next", "that stage's condition; waiting(checkpoint)")
ALL_END = Sign("they begin and end", "a longer window, or followedBy in place of next")
MATCHES_WAIT = Sign("matches wait for the skip strategy", "a window")
IT_MATCHES = Sign(
    "it does match", "what comes after the pattern: the output mode, a join, the sink"
)

SIGNS = (
    NO_INPUT, HELD_BACK, OUT_OF_TIME, WITHOUT_KEY_OR_TIME, NO_BEGINNING, ALL_WAIT, ALL_END,
    MATCHES_WAIT, IT_MATCHES,
)  # fmt: skip

_LOOKED_AT = 5
_FEWEST = 3


def has_no_input(query: Query) -> bool:
    """Whether no events arrive, in the last micro-batches or since them."""
    last = _last(query.points)[-_FEWEST:]
    return query.is_idle or (len(last) == _FEWEST and not any(point.rows for point in last))


def signs_of(points: Sequence[Point], pattern: str) -> Iterator[tuple[Sign, str]]:
    """Yield what the last micro-batches tell of a pattern, with the stage that it is about."""
    last = _last(points)
    own = [point.patterns[pattern] for point in last]
    matches = _sum(own, "numMatches")
    if _sum(own, "numLateRecordsDropped", "numAheadRecordsDropped"):
        yield OUT_OF_TIME, ""
    if _sum(own, "numNullRecordsDropped"):
        yield WITHOUT_KEY_OR_TIME, ""
    if matches:
        yield IT_MATCHES, ""
    if len(own) < _FEWEST:
        return
    if _grows(own, "numMatchesHeldBack"):
        yield MATCHES_WAIT, ""
    marks = {point.gauges.get("watermark") for point in own}
    if len(marks) == 1 and _grows(own, "numEventsQueued"):
        yield HELD_BACK, ""
        return
    stages = own[-1].stages
    for stage in stages:
        counts = [point.stages.get(stage, 0) for point in own]
        if all(before < after for before, after in pairwise(counts)):
            yield ALL_WAIT, stage
    if stages and not matches:
        if _sum(own, "endedByWindow", "endedByContiguity"):
            yield ALL_END, ""
        elif any(point.rows for point in last) and not _begins(own):
            yield NO_BEGINNING, ""


def _last(points: Sequence[Point]) -> list[Point]:
    return list(islice(reversed(points), _LOOKED_AT))[::-1]


def _sum(own: Sequence[PatternPoint], *counters: str) -> float:
    return sum(point.counters[counter] for point in own for counter in counters)


def _grows(own: Sequence[PatternPoint], gauge: str) -> bool:
    values: list[Any] = [point.gauges.get(gauge) or 0 for point in own]
    return values[-1] > values[0] and all(one <= other for one, other in pairwise(values))


def _begins(own: Sequence[PatternPoint]) -> bool:
    """Whether a partial match began, whatever became of it."""
    ends = ("endedBySkipStrategy", "endedByUntil", "endedByNotStage", "numPartialMatchesDropped")
    return bool(_sum(own, *ends)) or any(any(point.stages.values()) for point in own)


COLOURS = ("blue", "violet", "green", "amber", "red", "dim")
_WIDTH, _HEIGHT = 404, 216
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 14, 44, 58
_ROW, _MOST_ROWS = 17, 6
_TICK_TEXT = 10


@attrs.frozen
class Line:
    """A line of a chart."""

    name: str  # What it is called in the legend
    values: Sequence[float | None]  # A value for each micro-batch; None for a gap


def chart(title: str, points: Sequence[Point], lines: Sequence[Line], unit: str = "") -> str:
    """Return a chart over micro-batches as SVG."""
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
    places = _places([point.time for point in points])
    _ticks(drawing, points, places, bottom)
    for number, line in enumerate(lines):
        colour = COLOURS[min(number, len(COLOURS) - 1)]
        for piece in _pieces(places, line.values, low, top):
            if len(piece) > 1:
                drawing.line(piece, colour, 1.8, radius=0)
            else:
                drawing.circle(*piece[0], 2.2, colour)
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
    if unit == "s" and abs(value) >= 120:
        size, unit = unit_of(abs(value) * 1000)
        value *= 1000 / size
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= power:
            return f"{value / power:.3g}{letter}" + (f" {unit}" if unit else "")
    return f"{value:.3g}" + (f" {unit}" if unit else "")


def _places(times: Sequence[float]) -> list[float]:
    """Return where micro-batches stand: by the clock, so that a pause is seen."""
    first, span = times[0], (times[-1] - times[0]) or 1.0
    return [_LEFT + (time - first) / span * (_WIDTH - _LEFT - _RIGHT) for time in times]


def _ticks(
    drawing: Drawing, points: Sequence[Point], places: Sequence[float], bottom: float
) -> None:
    """Name the first micro-batch, the last, and one between them if there is room."""
    middle = min(range(len(points)), key=lambda at: abs(places[at] - places[-1] / 2 - _LEFT / 2))
    free = float(_LEFT)
    last = _tick_text(points[-1])
    start = places[-1] - text_width(last, _TICK_TEXT)
    for at, anchor in ((0, 0.0), (middle, 0.5)):
        text = _tick_text(points[at])
        width = text_width(text, _TICK_TEXT)
        left = places[at] - anchor * width
        if left >= free and left + width + 8 <= start:
            _tick(drawing, text, places[at], left, bottom)
            free = left + width + 8
    _tick(drawing, last, places[-1], max(start, _LEFT), bottom)


def _tick(drawing: Drawing, text: str, x: float, left: float, bottom: float) -> None:
    drawing.line([(x, bottom), (x, bottom + 4)], "line", 1)
    drawing.text(left, bottom + 16, text, "dim", _TICK_TEXT)


def _tick_text(point: Point) -> str:
    """Return the number of a micro-batch and when it ended, by the clock of UTC."""
    return f"{point.number:,} · {_clock(point.time)}"


def _clock(time: float) -> str:
    return _utc(int(time) * 1000).removesuffix(" UTC").partition(" ")[2]


def _pieces(
    places: Sequence[float], values: Sequence[float | None], low: float, top: float
) -> list[list[tuple[float, float]]]:
    """Return the points of a line, cut where there is no value."""
    height = _HEIGHT - _TOP - _BOTTOM
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, value in zip(places, values, strict=True):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((x, _TOP + (1 - (value - low) / ((top - low) or 1.0)) * height))
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


_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--paper:#f6f8fa;--edge:#d1d9e0;
--warn:#9a6700;--fail:#cf222e}
@media (prefers-color-scheme:dark){
:root{--ink:#e6edf3;--dim:#9198a1;--paper:#010409;--edge:#3d444d;--warn:#e3b341;--fail:#ff7b72}}
body{margin:0;padding:1.2rem 1.6rem;background:var(--paper);color:var(--ink);
font:14px/1.45 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}
header{display:flex;gap:1rem;align-items:baseline}
h1{font-size:1.25rem;margin:0}h2{font-size:1.1rem;margin:1.6rem 0 .2rem;overflow-wrap:anywhere}
h3{font-size:1rem;font-weight:600;margin:.9rem 0 .4rem;overflow-wrap:anywhere}
.dim,#status{color:var(--dim)}
.charts{display:flex;flex-wrap:wrap;gap:.7rem;align-items:flex-start}
figure{margin:0;width:404px;max-width:100%}
figure>svg{border:1px solid var(--edge);border-radius:8px;box-sizing:border-box;display:block}
.sign,.failed{border-left:4px solid var(--warn);padding:.1rem .6rem;margin:.4rem 0;
overflow-wrap:anywhere;white-space:pre-line}
.failed{border-color:var(--fail)}
summary{color:var(--dim);cursor:pointer;font-size:.85rem;margin:.2rem 0}
table{border-collapse:collapse;font-size:.8rem;font-variant-numeric:tabular-nums}
details>div{max-height:20rem;overflow:auto}pre{font-size:.8rem;white-space:pre-wrap;overflow-wrap:anywhere}
caption{text-align:left;color:var(--dim)}
th,td{padding:.1rem .5rem;text-align:right;border-bottom:1px solid var(--edge)}
main>section{border-top:1px solid var(--edge);margin-top:1.2rem}
"""


def page(history: History) -> str:
    """Return the whole page."""
    name = escape(history.application)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{f'{name} · ' if name else ''}Patterns</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>{name or 'Patterns'}</h1>"
        '<span id="status" role="status">loaded</span></header>'
        f'<main>{body(history)}</main><script src="monitor.js"></script></body></html>'
    )


def body(history: History) -> str:
    """Return what the page shows."""
    sections = "".join(map(_query, history.read()))
    return sections or '<p class="dim">No query has told of a micro-batch yet.</p>'


def _query(query: Query) -> str:
    facts = [query.status, f"{query.batches:,} micro-batches", f"{query.rows:,} rows of input"]
    if query.ended is not None:
        facts[0] += f" at {_utc(int(query.ended) * 1000)}"
    head = f'<h2>{escape(query.name)}</h2><p class="dim">{escape(" · ".join(facts))}</p>'
    if query.error is not None:
        head += _failure(query, query.error)
    inside = ""
    if query.points:
        points = list(query.points)
        no_input = [NO_INPUT.text()] if query.ended is None and has_no_input(query) else []
        rows, seconds = [p.rows for p in points], [p.seconds for p in points]
        figures = [
            _figure("Input, rows per micro-batch", points, [Line("rows", rows)], signs=no_input),
            _figure("Time per micro-batch", points, [Line("all", seconds)], "s"),
        ]
        inside = f'<div class="charts">{"".join(figures)}</div>'
        inside += "".join(_pattern(query, name) for name in query.last)
    return f'<section data-key="{escape(query.run)}">{head}{inside}</section>'


def _failure(query: Query, error: str) -> str:
    after = f"after micro-batch {query.points[-1].number:,}" if query.points else "in its first"
    return (
        f'<p class="failed" role="alert">Failed {after}: {escape(reason_of(error))}</p>'
        f'<details><summary>All that Spark says of it</summary><div tabindex="0">'
        f"<pre>{escape(error)}</pre></div></details>"
    )


_SHOWN_ROWS = 20


def _figure(
    title: str,
    points: Sequence[Point],
    lines: Sequence[Line],
    unit: str = "",
    signs: Sequence[str] = (),
) -> str:
    """Return a chart with what it tells, and its last values as a table."""
    told = "".join(f'<p class="sign">{escape(sign)}</p>' for sign in signs)
    return (
        f'<figure data-key="{escape(title)}">{chart(title, points, lines, unit)}{told}<details>'
        f"<summary>Table: {escape(title)}</summary>"
        f'<div tabindex="0">{_table(title, points, lines, unit)}</div></details></figure>'
    )


def _table(title: str, points: Sequence[Point], lines: Sequence[Line], unit: str) -> str:
    """Return the last values of a chart, the latest first."""
    names = ["micro-batch", "ended, UTC", *(line.name for line in lines)]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = []
    for at in reversed(range(max(0, len(points) - _SHOWN_ROWS), len(points))):
        cells = [_clock(points[at].time), *(in_words(line.values[at], unit) for line in lines)]
        own = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{points[at].number:,}</th>{own}</tr>')
    shown = f"{escape(title)}: the last {len(rows)} micro-batches"
    shown += f" of {len(points)} in the chart" if len(points) > len(rows) else ""
    return (
        f"<table><caption>{shown}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _pattern(query: Query, name: str) -> str:
    points = [point for point in query.points if name in point.patterns]
    own = [point.patterns[name] for point in points]
    signs = list(signs_of(points, name)) if query.ended is None else []
    drawn = "".join(_charts(points, own, signs))
    watermark = own[-1].gauges.get("watermark")
    shown = f"watermark {_utc(watermark)}" if watermark is not None else "no watermark yet"
    oldest = own[-1].gauges.get("oldestPartialMatch")
    if oldest is not None:
        shown += f" · oldest partial match {_utc(oldest)}"
    head = f'<h3>{escape(name)}</h3><p class="dim">{escape(shown)}</p>'
    inside = f'{head}<div class="charts">{drawn}</div>'
    return f'<section data-key="{escape(name)}">{inside}</section>'


def _charts(
    points: Sequence[Point], own: Sequence[PatternPoint], found: Sequence[tuple[Sign, str]]
) -> Iterator[str]:
    def figure(title: str, lines: Sequence[Line], *beside: Sign, unit: str = "") -> str:
        told = [sign.text(stage) for sign, stage in found if sign in beside]
        return _figure(title, points, lines, unit, told)

    behind = [
        None if mark is None else point.time - mark / 1000
        for point, mark in zip(points, _gauge(own, "watermark"), strict=True)
    ]
    yield figure("Watermark behind the clock", [Line("behind", behind)], HELD_BACK, unit="s")
    matches = _counter(own, "matches", "numMatches")
    yield figure("Matches per micro-batch", [matches], IT_MATCHES)
    stages = own[-1].stages
    if stages:
        lines = [Line(stage, [point.stages.get(stage) for point in own]) for stage in stages]
        yield figure("Partial matches that wait, by last stage", lines, NO_BEGINNING, ALL_WAIT)
        ended = {"window": "endedByWindow", "skip strategy": "endedBySkipStrategy"}
        ended |= {"contiguity": "endedByContiguity", "until": "endedByUntil"}
        ended |= {"NOT stage": "endedByNotStage", "limit": "numPartialMatchesDropped"}
        lines = [_counter(own, *each) for each in ended.items()]
        yield figure("Partial matches that ended, by reason", lines, ALL_END)
    late = {"late": "numLateRecordsDropped", "too far ahead": "numAheadRecordsDropped"}
    late["without key or time"] = "numNullRecordsDropped"
    lines = [_counter(own, *each) for each in late.items()]
    yield figure("Events dropped", lines, OUT_OF_TIME, WITHOUT_KEY_OR_TIME)
    held = {"keys": "numKeys", "events held": "numEventsHeld", "queued": "numEventsQueued"}
    if stages:
        held["held back"] = "numMatchesHeldBack"
    lines = [Line(text, _gauge(own, gauge)) for text, gauge in held.items()]
    yield figure("State", lines, MATCHES_WAIT)
    moved = {"read": "stateBytesRead", "written": "stateBytesWritten"}
    yield figure("State moved", [_counter(own, *each) for each in moved.items()], unit="B")
    work = {"unpacking": "unpackingMs"}
    work |= {"matching": "matchingMs", "state": "stateMs"}
    lines = [_counter(own, *each, lambda ms: ms / 1000) for each in work.items()]
    yield figure("Time of all tasks", lines, unit="s")


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


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@attrs.define
class _Families:
    """Samples by metric, so that each has its help and type once."""

    lines: dict[str, list[str]] = attrs.field(factory=dict)

    def add(self, name: str, kind: str, text: str, labels: dict[str, str], value: float) -> None:
        """Add a sample."""
        full = f"pyflinkcep_{name}"
        head = [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        own = self.lines.setdefault(full, head)
        own.append(f"{full}{{{inside}}} {value:.15g}")


def prometheus_text(history: History) -> str:
    """Return all counters as text."""
    families = _Families()
    for query in history.read():
        for add in _of_query(query):
            families.add(*add)
    return "".join(line + "\n" for lines in families.lines.values() for line in lines)


def _of_query(query: Query) -> Iterator[tuple[str, str, str, dict[str, str], float]]:
    own = {"query": query.name, "run": query.run}
    yield "running", "gauge", "Whether the query runs", own, float(query.ended is None)
    yield "batches_total", "counter", "Micro-batches", own, query.batches
    yield "input_rows_total", "counter", "Rows of input", own, query.rows
    yield "batch_seconds_total", "counter", "Time of micro-batches", own, query.seconds
    for pattern, totals in query.totals.items():
        labels = {**own, "pattern": pattern}
        for counter, (name, more, factor, text) in COUNTERS.items():
            yield name, "counter", text, labels | more, totals[counter] * factor
        point = query.last[pattern]
        for gauge, (name, scale, text) in GAUGES.items():
            value = point.gauges.get(gauge)
            if value is not None:
                yield name, "gauge", text, labels, value * scale
        for stage, count in point.stages.items():
            text = "Partial matches by the stage of their last event"
            yield "partial_matches", "gauge", text, labels | {"stage": stage}, count


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


SCRIPT = Path(__file__).with_name("live_page.js")
"""What the page runs: it takes in what is new."""

DASHBOARD = Path(__file__).with_name("grafana.json")
"""A dashboard for Grafana over what ``/metrics`` says."""

_LOCAL = ("127.0.0.1", "localhost", "::1")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_PAUSE = 0.25


def needed(module: str) -> Any:
    """Import a library of the extra."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as cause:
        raise NotSupportedError(
            f"the monitor's page needs {module.partition('.')[0]}",
            "pip install 'pyflinkcep[monitor]'",
        ) from cause


def make_app(history: History, host: str, is_over: Callable[[], bool]) -> Any:
    """Return the application."""
    routing, responses = needed("starlette.routing"), needed("starlette.responses")
    applications, middleware = needed("starlette.applications"), needed("starlette.middleware")
    hosts = needed("starlette.middleware.trustedhost")

    def text(kind: str, make: Callable[[], str]) -> Callable[[Any], Any]:
        async def answer(_: Any) -> Any:
            made = await asyncio.to_thread(make)
            return responses.Response(made, media_type=kind, headers=_HEADERS)

        return answer

    def file(kind: str, path: Path) -> Callable[[Any], Any]:
        return text(kind, lambda: path.read_text("utf-8"))

    async def events(_: Any) -> Any:
        return responses.StreamingResponse(
            _changes(history, is_over), media_type="text/event-stream", headers=_HEADERS
        )

    routes = [
        routing.Route("/", text("text/html", lambda: page(history))),
        routing.Route("/monitor.js", file("text/javascript", SCRIPT)),
        routing.Route("/events", events),
        routing.Route("/metrics", text(CONTENT_TYPE, lambda: prometheus_text(history))),
        routing.Route("/grafana.json", file("application/json", DASHBOARD)),
    ]
    allowed = [*_LOCAL[:2], "[::1]"] if host in _LOCAL else ["*"]
    trusted = middleware.Middleware(hosts.TrustedHostMiddleware, allowed_hosts=allowed)
    return applications.Starlette(routes=routes, middleware=[trusted])


async def _changes(history: History, is_over: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield what the page shows, at once and whenever it changes."""
    shown = -1
    while not is_over():
        if history.version != shown:
            shown = history.version
            made = await asyncio.to_thread(body, history)
            yield f"data: {json.dumps(made)}\n\n"
        await asyncio.sleep(_PAUSE)
