# SPDX-License-Identifier: Apache-2.0
"""The live page: what queries tell of their micro-batches, as HTML and as Prometheus' text."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.show.charts import unit_of
from pyflinkcep.show.svg import Drawing, text_width
from pyflinkcep.time import moment_text

# By observed metric: the name for Prometheus, its labels, the factor, and the help.
_DROPPED, _ENDED = "Events dropped", "Partial matches that ended"
_COUNTERS = {
    "numMatches": ("matches_total", {}, 1, "Matches"),
    "numLateRecordsDropped": ("dropped_events_total", {"reason": "late"}, 1, _DROPPED),
    "numAheadRecordsDropped": ("dropped_events_total", {"reason": "ahead"}, 1, _DROPPED),
    "numNullRecordsDropped": ("dropped_events_total", {"reason": "null"}, 1, _DROPPED),
    "endedByWindow": ("ended_total", {"reason": "window"}, 1, _ENDED),
    "endedBySkipStrategy": ("ended_total", {"reason": "skip"}, 1, _ENDED),
    "endedByContiguity": ("ended_total", {"reason": "contiguity"}, 1, _ENDED),
    "endedByUntil": ("ended_total", {"reason": "until"}, 1, _ENDED),
    "endedByNotStage": ("ended_total", {"reason": "not"}, 1, _ENDED),
    "numPartialMatchesDropped": ("ended_total", {"reason": "limit"}, 1, _ENDED),
    "stateBytesRead": ("state_read_bytes_total", {}, 1, "State read"),
    "stateBytesWritten": ("state_written_bytes_total", {}, 1, "State written"),
    "unpackingMs": ("work_seconds_total", {"part": "unpacking"}, 1e-3, "Time of all tasks"),
    "matchingMs": ("work_seconds_total", {"part": "matching"}, 1e-3, "Time of all tasks"),
    "stateMs": ("work_seconds_total", {"part": "state"}, 1e-3, "Time of all tasks"),
}
"""The observed metrics that add up."""

_GAUGES = {
    "numKeys": ("keys", 1, "Keys with state"),
    "numEventsHeld": ("held_events", 1, "Events that partial matches hold"),
    "numEventsQueued": ("queued_events", 1, "Events that the watermark has not reached"),
    "numMatchesHeldBack": ("held_back_matches", 1, "Matches that a skip strategy holds back"),
    "largestKey": ("largest_key", 1, "Partial matches of the key with the most"),
    "numBuckets": ("buckets", 1, "Parts of the state that were worked on, and are told of"),
    "oldestPartialMatch": ("oldest_partial_match_seconds", 1e-3, "When it began, epoch seconds"),
    "oldestQueuedEvent": ("oldest_queued_event_seconds", 1e-3, "Its time, epoch seconds"),
    "watermark": ("watermark_seconds", 1e-3, "The watermark of the pattern, epoch seconds"),
}
"""The observed metrics of what is left after a micro-batch; times in milliseconds."""

_OWN = frozenset(["numMatches", "unpackingMs", "stateBytesRead"])
"""What tells the metrics of a pattern from those that users observe."""

_MOST_ENDED = 20


@attrs.frozen(eq=False)
class PatternPoint:
    """What a micro-batch told of a pattern."""

    counters: dict[str, float]  # What is in ``_COUNTERS``, of this micro-batch
    gauges: dict[str, int | None]  # What is in ``_GAUGES``, after this micro-batch
    stages: dict[str, int]  # The partial matches by stage; empty if there are no stages

    @classmethod
    def of(cls, row: Mapping[str, Any], before: PatternPoint | None) -> PatternPoint:
        """
        Read observed metrics.

        A micro-batch that worked on no part of the state has no watermark and knows of nothing
        that is left; then it is what was left before.
        """
        counters = {name: float(row.get(name) or 0) for name in _COUNTERS}
        if row.get("watermark") is None and before is not None:
            return cls(counters, before.gauges, before.stages)
        gauges = {name: row[name] for name in _GAUGES if name in row}
        return cls(counters, gauges, dict(row.get("partialMatches") or {}))


@attrs.frozen(eq=False)
class Point:
    """A micro-batch."""

    time: float  # When it ended
    seconds: float  # How long it took
    rows: int  # Its input
    patterns: dict[str, PatternPoint]  # What it told of each pattern


@attrs.define(eq=False)
class Query:
    """A query."""

    run: str  # What identifies its run
    name: str  # Its name, or what identifies it
    points: deque[Point]  # The last micro-batches
    status: str = "running"  # Whether it runs
    # How many micro-batches and input rows there were.
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0  # How long the micro-batches took
    # The counters of each pattern, added up.
    totals: dict[str, dict[str, float]] = attrs.field(factory=dict)

    @property
    def last(self) -> dict[str, PatternPoint]:
        """What was told last of each pattern."""
        return self.points[-1].patterns if self.points else {}

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add the progress of a micro-batch."""
        before, found = self.last, {}
        for name, row in (progress.get("observedMetrics") or {}).items():
            if row.keys() >= _OWN:
                found[name] = PatternPoint.of(row, before.get(name))
                totals = self.totals.setdefault(name, dict.fromkeys(_COUNTERS, 0.0))
                for counter, value in found[name].counters.items():
                    totals[counter] += value
        seconds = float(progress.get("batchDuration") or 0) / 1000
        begun = datetime.fromisoformat(str(progress["timestamp"])).timestamp()
        rows = int(progress.get("numInputRows") or 0)
        self.points.append(Point(begun + seconds, seconds, rows, {**before, **found}))
        self.batches += 1
        self.rows += rows
        self.seconds += seconds


@attrs.define(eq=False)
class History:
    """The queries of a session; a listener writes it while pages read it."""

    most: int = 300  # The micro-batches of a query to keep
    version: int = 0  # How often it has changed
    _queries: dict[str, Query] = attrs.field(factory=dict, init=False)
    _lock: Any = attrs.field(factory=threading.RLock, init=False)

    def started(self, run: str, name: str) -> None:
        """Note that a query has started; `run` identifies its run."""
        with self._lock:
            self._queries[run] = Query(run, name, deque(maxlen=self.most))
            ended = [query.run for query in self._queries.values() if query.status != "running"]
            for old in ended[:-_MOST_ENDED]:
                del self._queries[old]
            self.version += 1

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """Note the progress of a micro-batch, as Spark writes it in JSON."""
        with self._lock:
            run = str(progress["runId"])
            if run not in self._queries:  # it had started before anyone listened
                self.started(run, str(progress.get("name") or progress["id"]))
            self._queries[run].add(progress)
            self.version += 1

    def ended(self, run: str, failed: bool) -> None:
        """Note that a query has ended."""
        with self._lock:
            if run in self._queries:
                self._queries[run].status = "failed" if failed else "stopped"
                self.version += 1

    def read(self) -> Iterator[Query]:
        """Yield the queries, the last first; nothing changes meanwhile."""
        with self._lock:
            yield from reversed(list(self._queries.values()))


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
    if unit == "s" and abs(value) >= 120:
        size, unit = unit_of(abs(value) * 1000)
        return f"{value * 1000 / size:.3g} {unit}"
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
    yield "running", "gauge", "Whether the query runs", own, float(query.status == "running")
    yield "batches_total", "counter", "Micro-batches", own, query.batches
    yield "input_rows_total", "counter", "Rows of input", own, query.rows
    yield "batch_seconds_total", "counter", "Time of micro-batches", own, query.seconds
    for pattern, totals in query.totals.items():
        labels = {**own, "pattern": pattern}
        for counter, (name, more, factor, text) in _COUNTERS.items():
            yield name, "counter", text, labels | more, totals[counter] * factor
        point = query.last[pattern]
        for gauge, (name, scale, text) in _GAUGES.items():
            value = point.gauges.get(gauge)
            if value is not None:
                yield name, "gauge", text, labels, value * scale
        for stage, count in point.stages.items():
            text = "Partial matches by the stage of their last event"
            yield "partial_matches", "gauge", text, labels | {"stage": stage}, count


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


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

    async def events(_: Any) -> Any:
        return responses.StreamingResponse(
            _changes(history, is_over), media_type="text/event-stream", headers=_HEADERS
        )

    routes = [
        routing.Route("/", text("text/html", lambda: page(history))),
        routing.Route("/monitor.js", text("text/javascript", lambda: SCRIPT)),
        routing.Route("/events", events),
        routing.Route("/metrics", text(CONTENT_TYPE, lambda: prometheus_text(history))),
        routing.Route(
            "/grafana.json", text("application/json", lambda: DASHBOARD.read_text("utf-8"))
        ),
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
