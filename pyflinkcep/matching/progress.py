# SPDX-License-Identifier: Apache-2.0
"""The progress of bounded jobs: tasks write numbers into files, and who wants to know adds up."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path

import attrs
import numpy as np

from pyflinkcep.errors import InvalidArgumentError

_EVERY = 0.2  # How often a task writes, in seconds
_folder: ContextVar[str | None] = ContextVar("folder", default=None)


@contextlib.contextmanager
def told_to(folder: str) -> Iterator[None]:
    """Let the tasks that are planned within a ``with`` tell a folder."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def told_folder() -> str | None:
    """Return the folder that tasks are to tell; None if there is none."""
    return _folder.get()


@attrs.frozen
class SoFar:
    """How far bounded jobs are."""

    events: int = 0  # The events that tasks have read
    # The rows that tasks have given: matches, unless a function makes others of them.
    matches: int = 0
    tasks: int = 0  # The tasks that are done
    keys: int = 0  # The keys of these tasks


@attrs.define(eq=False)
class Counts:
    """What a task tells; see :class:`SoFar`."""

    path: Path | None  # The file; None to tell nothing
    events: int = 0
    matches: int = 0
    tasks: int = 0
    keys: int = 0
    _told: float = 0.0

    def tell(self) -> None:
        """Write the numbers, if that is some time ago."""
        now = time.monotonic()
        if now - self._told >= _EVERY:
            self._told = now
            self.write()

    def write(self) -> None:
        """Write the numbers."""
        numbers = np.asarray([self.events, self.matches, self.tasks, self.keys], "<i8")
        if self.path is not None:
            with contextlib.suppress(OSError), self.path.open("r+b") as file:
                file.write(numbers.tobytes())  # over what is there, which others may read meanwhile


@contextlib.contextmanager
def counting() -> Iterator[Counts]:
    """Yield what a job in this process tells; on a terminal it is shown unasked."""
    with contextlib.ExitStack() as stack:
        if told_folder() is None and sys.stderr is not None and sys.stderr.isatty():
            stack.enter_context(Progress())
        folder = told_folder()
        counts = Counts(None if folder is None else Path(folder, uuid.uuid4().hex))
        if counts.path is not None:
            counts.path.touch()
        yield counts
        counts.write()


def read_so_far(folder: str) -> SoFar:
    """Return the sum of what the tasks of a folder have told."""
    total = np.zeros(4, np.int64)
    with os.scandir(folder) as files:
        for file in files:
            data = Path(file.path).read_bytes()
            if len(data) == total.nbytes:  # else the task has just begun
                total += np.frombuffer(data, "<i8")
    return SoFar(*total.tolist())


class Progress:
    """
    Shows how far bounded jobs are: events read, matches so far, tasks and keys done.

    Of the jobs that are planned within its ``with`` block, also those that run later in it. Tasks
    tell it by files, so it works where they run on the driver's machine: on Sail in the Python
    process, on a local master, with a local server of Spark Connect. Of a cluster it shows
    nothing; there, Spark's page and ``spark.registerProgressHandler`` tell of tasks.

    It shows ``match``, ``matchSase`` and ``matchRecognize`` on files larger than memory too: a task
    is a temporary file of keys. On a terminal that is shown unasked.

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
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(pa.table({"n": range(1000)}), f"{folder.name}/events.parquet")
    >>> from pyflinkcep import Pattern, match
    >>> pattern = Pattern.begin("a").where("n % 10 = 0")
    >>> with Progress(show=lambda so_far: None) as progress:
    ...     count = len(match(pattern, folder.name, memory="10kB"))
    >>> count, progress.soFar.events, progress.soFar.matches
    (100, 1000, 100)
    >>> folder.cleanup()
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
