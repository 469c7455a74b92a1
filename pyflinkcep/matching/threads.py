# SPDX-License-Identifier: Apache-2.0
"""The parts of a job that need not wait for each other, on the cores that the process may use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.kernel.module import compiled_module

if TYPE_CHECKING:
    from pyflinkcep.matching.columns import Ints

_SHARES = 2  # of each thread, since some keys need more work than others
LEAST_SHARE = 1 << 15  # events

ResultT = TypeVar("ResultT")


_TOLD: ContextVar[bytearray | None] = ContextVar("_TOLD", default=None)
"""A byte of the part that a thread works on, which is not 0 once it is to stop."""


def heed() -> None:
    """Raise if the part that this thread works on is to stop; the kernel asks by itself."""
    told = _TOLD.get()
    if told is not None and told[0]:
        raise InterruptedError("the work was stopped")


@contextmanager
def _heeding(flag: bytearray) -> Iterator[None]:
    """Let a byte stop the work of this thread, in Python and in the kernel."""
    module, token = compiled_module(), _TOLD.set(flag)
    if module is not None:
        module.heed(flag)
    try:
        yield
    finally:
        if module is not None:
            module.heed(None)
        _TOLD.reset(token)


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


def cuts(begins: Ints, size: int, threads: int) -> list[int]:
    """Return where to cut events into shares of whole keys, given where these begin."""
    count = min(threads * _SHARES, size // LEAST_SHARE) if threads > 1 else 1
    return cuts_between(begins, size, max(count, 1))


def cuts_between(begins: Ints, size: int, count: int) -> list[int]:
    """Return where to cut events into about so many shares of whole keys of about equal size."""
    ends = np.searchsorted(begins, np.linspace(0, size, count + 1)[1:-1])
    return [0, *dict.fromkeys(begins[ends[ends < len(begins)]].tolist()), size]


def results(parts: Sequence[Callable[[], ResultT]], threads: int) -> list[ResultT]:
    """
    Return what parts of a job give, in their order.

    A part raises soon if :func:`heed` or the kernel does, which it is told by.

    The caller's thread works too, since only the main thread hears Ctrl-C. Of several errors the
    one of the first part is raised, as if the parts were done one after the other.
    """
    if min(threads, len(parts)) < 2:
        return [part() for part in parts]
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

    def __init__(self, parts: Sequence[Callable[[], Any]]) -> None:
        self.found: dict[int, Any] = {}
        self.failed: dict[int, BaseException] = {}
        self._parts = dict(enumerate(parts))  # those that are not done, for their memory
        self._flags = [bytearray(1) for _ in parts]
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
                with _heeding(self._flags[number]):
                    self.found[number] = self._parts[number]()
                del self._parts[number]
            except Exception as error:
                self.failed[number] = error
                self.stop(number + 1)
            except BaseException:
                self.stop(0)
                raise

    def stop(self, first: int) -> None:
        """Stop the parts from one on."""
        for flag in self._flags[first:]:
            flag[0] = 1
