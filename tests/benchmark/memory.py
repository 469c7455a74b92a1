# SPDX-License-Identifier: Apache-2.0
"""The most memory that processes had, sampled while something runs."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType

import psutil

_INTERVAL_S = 0.1
_MIB = 1 << 20


class PeakMemory:
    """
    Samples the resident memory of a process and all below it.

    To be used in a ``with`` statement; a page that forked processes share counts for each.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._root = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peaks = {"java": 0, "workers": 0}

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self._sample()
            except psutil.NoSuchProcess:
                return
            self._stop.wait(_INTERVAL_S)

    def _sample(self) -> None:
        sizes = {"java": 0, "workers": 0}
        on_sail = "pysail" in sys.modules  # whose tasks run in this process
        for process in [self._root, *self._root.children(recursive=True)]:
            try:
                name, size = process.name(), process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            if name.startswith("java"):
                sizes["java"] += size
            elif name.startswith("python") and (process.pid != os.getpid() or on_sail):
                sizes["workers"] += size
        for kind, size in sizes.items():
            self.peaks[kind] = max(self.peaks[kind], size // _MIB)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those below it."""
    own = psutil.Process()
    found = 0.0
    for process in [own, *own.children(recursive=True)]:
        try:
            found += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return found
