# SPDX-License-Identifier: Apache-2.0
"""What users start: a listener of a session's queries, and the page that shows what it hears."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import warnings
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.show.live_page import make_app, needed
from pyflinkcep.show.query_history import History

_PATIENCE = 10.0


class Monitor:
    """
    A page about the queries of a session and their patterns.

    It shows, over the last micro-batches, watermarks, input, matches, dropped events, partial
    matches by stage and how they ended, what the state holds, and where time goes; beside a
    counter what it means where a stream writes nothing, and of a query that failed when and why.
    It shows names of queries, patterns and stages, and numbers; nothing of the events' contents,
    except that the text of an error may name a key and values.

    Parameters
    ----------
    spark : SparkSession
        The session.
    host : str, default "127.0.0.1"
        The address to listen on. The page has no password: at other addresses than local ones put
        it behind something that has.
    port : int, default 4050
        The port; 0 for any that is free.

    Attributes
    ----------
    url : str
        Where the page is.
    history : History
        What it shows.

    Raises
    ------
    NotSupportedError
        If the libraries of the extra ``monitor`` are not installed, or the session's engine, such
        as Sail, does not tell of streams.
    InputError
        If nothing can listen at the address.

    Examples
    --------
    ::

        with Monitor(spark) as monitor:
            print(monitor.url)
            query.awaitTermination()
    """

    def __init__(self, spark: SparkSession, host: str = "127.0.0.1", port: int = 4050) -> None:
        if not hasattr(spark, "streams"):
            raise InvalidArgumentError(
                f"Monitor: expected a SparkSession, got {type(spark).__name__}",
                "write Monitor(spark)",
            )
        is_port = type(port) is int and 0 <= port <= 65_535
        if not isinstance(host, str) or not host or not is_port:
            raise InvalidArgumentError(
                "Monitor: expected a host as text and a whole number as port, up to 65535, got "
                f"{host!r} and {port!r}",
                'write Monitor(spark, host="127.0.0.1", port=4050)',
            )
        self.history = History(spark.conf.get("spark.app.name", "") or "")
        self._server = _Server(self.history, host, port)
        self.url = self._server.url
        self._spark: SparkSession | None = spark
        self._listener = _Listener(self.history)
        try:
            _listen(spark, self._listener)
        except BaseException:
            self._server.stop()
            raise

    def stop(self) -> None:
        """Close the page, and listen no longer."""
        spark, self._spark = self._spark, None
        if spark is not None:
            try:
                spark.streams.removeListener(self._listener)
            finally:
                self._server.stop()

    def __enter__(self) -> Monitor:
        """Return the monitor."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noopener">{self.url}</a>'


def _listen(spark: SparkSession, listener: StreamingQueryListener) -> None:
    """
    Add a listener.

    Spark Connect starts a thread for it, for which the process would wait at its end, unless a
    daemon starts it; and it only warns if the server has no place for listeners.
    """
    if isinstance(spark, SparkSession):
        spark.streams.addListener(listener)
        return
    refused: list[Warning | str | Exception] = []

    def add() -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                spark.streams.addListener(listener)
            except Exception as error:
                refused.append(error)
        refused.extend(one.message for one in caught if one.category is UserWarning)

    adding = threading.Thread(target=add, name="cep-monitor-listener", daemon=True)
    adding.start()
    adding.join()
    if refused:
        raise NotSupportedError(
            f"Monitor needs a session that tells of streams: {refused[0]}",
            "pass a session of Spark that is not stopped; Sail runs bounded jobs only",
        )


class _Listener(StreamingQueryListener):
    """Hands what Spark tells to the history; an error in it must not disturb a query."""

    def __init__(self, history: History) -> None:
        self._history = history

    def onQueryStarted(self, event: Any) -> None:
        self._history.started(str(event.runId), str(event.name or event.id))

    def onQueryProgress(self, event: Any) -> None:
        with contextlib.suppress(Exception):
            self._history.progressed(json.loads(event.progress.json))

    def onQueryIdle(self, event: Any) -> None:
        self._history.idled(str(event.runId))

    def onQueryTerminated(self, event: Any) -> None:
        self._history.ended(str(event.runId), event.exception)


class _Server:
    """Runs the page in a thread of its own."""

    def __init__(self, history: History, host: str, port: int) -> None:
        uvicorn = needed("uvicorn")
        self._stopping = False
        app = make_app(history, host, lambda: self._stopping)
        config = uvicorn.Config(
            app, host, port, log_level="error", access_log=False, ws="none", lifespan="off",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        self._server: Any = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="cep-monitor", daemon=True)
        self._thread.start()
        until = time.monotonic() + _PATIENCE
        while not self._server.started and self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(0.02)
        if not self._server.started:
            self.stop()
            raise InputError(
                f"Monitor: cannot listen at {host}:{port}",
                "pass another port, or port=0 for any that is free, and a host of this machine",
            )
        bound = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://[{host}]:{bound}/" if ":" in host else f"http://{host}:{bound}/"

    def _run(self) -> None:
        with contextlib.suppress(SystemExit):  # how uvicorn says that it cannot listen
            self._server.run()

    def stop(self) -> None:
        """End it."""
        self._stopping = True
        self._server.should_exit = True
        self._thread.join(_PATIENCE)
