# SPDX-License-Identifier: Apache-2.0
"""The page as a web application of Starlette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.monitor.history import History, Query
from pyflinkcep.monitor.page import SCRIPT, body, page

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_TOTALS = {
    "numMatches": ("matches_total", {}, 1, "Matches"),
    "numLateRecordsDropped": ("dropped_events_total", {"reason": "late"}, 1, "Events dropped"),
    "numAheadRecordsDropped": ("dropped_events_total", {"reason": "ahead"}, 1, "Events dropped"),
    "numNullRecordsDropped": ("dropped_events_total", {"reason": "null"}, 1, "Events dropped"),
    "endedByWindow": ("ended_total", {"reason": "window"}, 1, "Partial matches that ended"),
    "endedBySkipStrategy": ("ended_total", {"reason": "skip"}, 1, "Partial matches that ended"),
    "endedByContiguity": ("ended_total", {"reason": "contiguity"}, 1, "Partial matches that ended"),
    "endedByUntil": ("ended_total", {"reason": "until"}, 1, "Partial matches that ended"),
    "endedByNotStage": ("ended_total", {"reason": "not"}, 1, "Partial matches that ended"),
    "numPartialMatchesDropped": (
        "ended_total", {"reason": "limit"}, 1, "Partial matches that ended"
    ),
    "stateBytesRead": ("state_read_bytes_total", {}, 1, "State read"),
    "stateBytesWritten": ("state_written_bytes_total", {}, 1, "State written"),
    "unpackingMs": ("work_seconds_total", {"part": "unpacking"}, 1e-3, "Time of all tasks"),
    "matchingMs": ("work_seconds_total", {"part": "matching"}, 1e-3, "Time of all tasks"),
    "stateMs": ("work_seconds_total", {"part": "state"}, 1e-3, "Time of all tasks"),
}  # fmt: skip
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
        for counter, (name, more, factor, text) in _TOTALS.items():
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
