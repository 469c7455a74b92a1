# SPDX-License-Identifier: Apache-2.0
"""The frame of every task: its context, its errors, and garbage collection."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import TaskContext

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.runtime import RuntimeContext

__all__ = [
    "errors_in",
    "fewer_collections",
    "job_name",
    "partition_number",
    "prepare_worker",
    "running",
    "runtime_context",
]

_COLLECTIONS = (200_000, 20, 100)


def partition_number() -> int:
    """Return the number of the task's partition; 0 outside Spark."""
    task = TaskContext.get()
    return task.partitionId() if task else 0


def runtime_context(pattern: str) -> RuntimeContext:
    """Return the runtime context of rich functions; `pattern` is the pattern on one line."""
    return RuntimeContext(job_name(pattern), partition_number())


def job_name(pattern: str, name: str | None = None, language: str = "CEP") -> str:
    """
    Return the name of a job in Spark's UI and progress.

    Parameters
    ----------
    pattern : str
        The pattern on one line.
    name : str or None
        The name that the user gave the job.
    language : str
        What the pattern is written in.
    """
    return f"{language}: {pattern}" if name is None else f"CEP: {name}"


@contextmanager
def errors_in(pattern: str) -> Iterator[None]:
    """Name the pattern in errors; a user's function that exits fails the task like any other."""
    try:
        yield
    except CepRuntimeError as error:
        raise error.in_pattern(pattern) from error.__cause__
    except (SystemExit, KeyboardInterrupt) as cause:
        raise _left(cause).in_pattern(pattern) from cause


def _left(cause: BaseException) -> CepRuntimeError:
    """Return the error for code that exits; for a condition it names stage and time."""
    if isinstance(cause.__cause__, CepRuntimeError):
        return cause.__cause__
    return CepRuntimeError(
        f"user code exited. {type(cause).__name__}: {cause}",
        "raise an exception to stop a job; a condition or function must not exit",
    )


@contextmanager
def running(pattern: str) -> Iterator[RuntimeContext]:
    """Run a task over a whole partition: yield its context; see :func:`errors_in`."""
    with errors_in(pattern), fewer_collections():
        yield runtime_context(pattern)


@functools.cache
def prepare_worker() -> None:
    """
    Exclude all objects loaded so far from garbage collection, once in a process.

    Spark collects garbage in a worker after every task. That visits every module, which takes
    longer than the tasks of a small micro-batch, and modules are never garbage.
    """
    gc.freeze()


@contextmanager
def fewer_collections() -> Iterator[None]:
    """
    Make Python collect cyclic garbage less often within a ``with``.

    A worker holds very many rows that are in no cycle. With Python's default thresholds, visiting
    them takes a third of the time of conditions in Python.
    """
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
