# SPDX-License-Identifier: Apache-2.0
"""The progress of bounded jobs, where Spark shows none."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.spark.plan.job import told_to
from pyflinkcep.spark.worker.progress import SoFar, read_so_far


class Progress:
    """
    Shows how far bounded jobs are: events read, matches so far, tasks and keys done.

    Of the jobs that are planned within its ``with`` block, also those that run later in it. Tasks
    tell it by files, so it works where they run on the driver's machine: on Sail in the Python
    process, on a local master, with a local server of Spark Connect. Of a cluster it shows
    nothing; there, Spark's page and ``spark.registerProgressHandler`` tell of tasks.

    Parameters
    ----------
    show : callable, optional
        Receives what :attr:`soFar` is, again and again; by default it is a line on standard error.
    every : float, default 0.5
        After how many seconds to show it again.

    Attributes
    ----------
    soFar : SoFar
        Its fields are ``events``, ``matches``, ``tasks`` and ``keys``.

    Examples
    --------
    >>> with Progress(show=lambda so_far: None) as progress:
    ...     count = CEP.pattern(events, pattern).inEventTime("ts").toDF().count()
    >>> progress.soFar.matches == count
    True
    """

    def __init__(self, show: Callable[[SoFar], None] | None = None, every: float = 0.5) -> None:
        if show is not None and not callable(show):
            raise InvalidArgumentError(
                f"Progress: expected show to be a function, got {show!r}",
                "pass a function of one argument, or leave it out",
            )
        if isinstance(every, bool) or not isinstance(every, (int, float)) or every <= 0:
            raise InvalidArgumentError(
                f"Progress: expected every to be a number above 0, got {every!r}",
                "write every=0.5 for half a second",
            )
        self._show = _line if show is None else show
        self._ends = show is None
        self._every = every
        self.soFar = SoFar()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        """Begin to show."""
        folder = tempfile.mkdtemp(prefix="pyflinkcep-progress-")
        self._open.callback(shutil.rmtree, folder, ignore_errors=True)
        over = threading.Event()
        shown = threading.Thread(
            target=self._watch, args=(folder, over), name="cep-progress", daemon=True
        )
        shown.start()
        self._open.callback(self._finish, folder, over, shown)
        self._open.enter_context(told_to(folder))
        return self

    def __exit__(self, *_: object) -> None:
        """Show how far it came."""
        self._open.close()

    def _watch(self, folder: str, over: threading.Event) -> None:
        while not over.wait(self._every):
            self._tell(folder)

    def _tell(self, folder: str) -> None:
        with contextlib.suppress(OSError):
            found = read_so_far(folder)
            if found != self.soFar:
                self.soFar = found
                self._show(found)

    def _finish(self, folder: str, over: threading.Event, shown: threading.Thread) -> None:
        over.set()
        shown.join()
        self._tell(folder)
        if self._ends and self.soFar != SoFar():
            print(file=sys.stderr)


def _line(so_far: SoFar) -> None:
    events, matches = _some(so_far.events, "event"), _some(so_far.matches, "match", "matches")
    tasks, keys = _some(so_far.tasks, "task"), _some(so_far.keys, "key")
    text = f"{events} read, {matches}, {tasks} with {keys} done"
    print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)


def _some(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"
