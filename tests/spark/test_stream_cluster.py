# SPDX-License-Identifier: Apache-2.0
"""Executors in processes of their own: what is sent to them is real, and what dies is replaced."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from tests.spark.test_stream_crash import begin, commits, expected, finish, folder, start, written

__all__ = ["folder"]


def test_on_a_cluster_of_two_executors(spark: SparkSession, folder: Path) -> None:
    """
    Batch and stream on a cluster give the same matches as the operator.

    A Python worker is killed in the middle of a micro-batch: what was lost is done again, nothing
    else. If it was being told of its state, Spark ends its executor with it, and what that executor
    has written for the shuffle is made anew.
    """
    job = begin(start(folder, "batch,stream,flush", "local-cluster[2,1,1024]", 8, slow_ms=10))
    killed: list[int] = []
    deadline = time.monotonic() + 240
    while not killed and job.poll() is None and time.monotonic() < deadline:
        seen = commits(folder)
        worker = _busy_worker(job.pid) if seen else None
        if worker is not None:
            with suppress(psutil.NoSuchProcess):  # it may have ended meanwhile
                worker.kill()
                killed.append(worker.pid)
        time.sleep(0.02)
    finish(job)

    assert len(killed) == 1
    assert written(spark, folder, "batch") == expected()
    assert written(spark, folder, "stream", "flush") == expected()


def _busy_worker(pid: int) -> psutil.Process | None:
    """Return a Python worker of a job's executors that is doing something."""
    for process in psutil.Process(pid).children(recursive=True):
        try:
            parent = process.parent()
            if "pyspark.daemon" not in process.cmdline() or parent is None:
                continue
            daemon_of = parent.parent() if "pyspark.daemon" in parent.cmdline() else None
            if daemon_of is None or not any("ExecutorBackend" in a for a in daemon_of.cmdline()):
                continue  # the driver has a worker too, whose death ends a query
            if process.cpu_percent(0.02) > 0:
                return process
        except psutil.NoSuchProcess:
            continue
    return None
