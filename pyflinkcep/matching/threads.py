# SPDX-License-Identifier: Apache-2.0
"""The parts of a job that need not wait for each other, on the cores that the process may use."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from pyflinkcep.errors import InvalidArgumentError

ResultT_co = TypeVar("ResultT_co", covariant=True)


class Part(Protocol[ResultT_co]):
    """A part of a job."""

    def run(self) -> ResultT_co:
        """Do it."""

    def stop(self) -> None:
        """Let :meth:`run`, in another thread, raise soon."""


def usable_cores(threads: int | None = None) -> int:
    """Return on how many cores to work: as many as asked for, by default all of this process's."""
    if threads is not None:
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
            raise InvalidArgumentError(
                f"threads={threads!r}", "pass a number from 1, or None for all cores"
            )
        return threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def results(parts: Sequence[Part[ResultT_co]], threads: int) -> list[ResultT_co]:
    """
    Return what parts give, in their order.

    The caller's thread works too, since only the main thread hears Ctrl-C. Of several errors the
    one of the first part is raised, as if the parts were done one after the other.
    """
    if min(threads, len(parts)) < 2:
        return [part.run() for part in parts]
    job = _Job(parts)
    count = len(parts)
    del parts
    others = [threading.Thread(target=job.work, daemon=True) for _ in range(threads - 1)]
    try:
        for thread in others:
            thread.start()
        job.work()
        for thread in others:
            thread.join()
    except BaseException:  # Ctrl-C while this thread waits
        job.stop(0)
        raise
    if job.failed:
        raise job.failed[min(job.failed)]
    return [job.found[number] for number in range(count)]


class _Job:
    """Parts that threads take one by one."""

    def __init__(self, parts: Sequence[Part[Any]]) -> None:
        self.found: dict[int, Any] = {}
        self.failed: dict[int, BaseException] = {}
        self._parts = dict(enumerate(parts))  # those that are not done, for their memory
        self._waiting = iter(range(len(parts)))
        self._lock = threading.Lock()

    def work(self) -> None:
        """Take parts until there are none, or one has failed."""
        while not self.failed:
            with self._lock:
                number = next(self._waiting, None)
            if number is None:
                return
            try:
                self.found[number] = self._parts[number].run()
                del self._parts[number]
            except Exception as error:
                self.failed[number] = error
                self.stop(number + 1)
            except BaseException:
                self.stop(0)
                raise

    def stop(self, first: int) -> None:
        """Stop the parts from one on."""
        for number, part in list(self._parts.items()):
            if number >= first:
                part.stop()
