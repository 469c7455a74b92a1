# SPDX-License-Identifier: Apache-2.0
"""The page as a web application of Starlette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.monitor.history import History
from pyflinkcep.monitor.page import SCRIPT, body, page
from pyflinkcep.monitor.prometheus import CONTENT_TYPE, prometheus_text

__all__ = ["DASHBOARD", "make_app", "needed"]

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
    """
    Import a library of the extra.

    Raises
    ------
    NotSupportedError
        If it is not installed.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as cause:
        raise NotSupportedError(
            f"the monitor's page needs {module.partition('.')[0]}",
            "pip install 'pyflinkcep[monitor]'",
        ) from cause


def make_app(history: History, host: str, is_over: Callable[[], bool]) -> Any:
    """
    Return the application.

    Parameters
    ----------
    history : History
        What it shows.
    host : str
        The address that it listens on; at a local one only local names are answered, so that no
        other page can read it under a name of its own.
    is_over : callable
        Whether streams of events are to end.
    """
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
