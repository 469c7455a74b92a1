# SPDX-License-Identifier: Apache-2.0
"""The frame of every task: its context, its errors, and garbage collection."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.time import wrong_unit

Range = tuple[int, int]  # The earliest and the latest time, in epoch milliseconds


def merged(one: Range | None, other: Range | None) -> Range | None:
    """Return the range of two; None is the empty one."""
    if one is None or other is None:
        return other if one is None else one
    return min(one[0], other[0]), max(one[1], other[1])


@attrs.frozen(eq=False)
class TimeRange:
    """Reads the times of the batches that pass by, until they look like milliseconds."""

    column: str  # The column of times: whole numbers
    tell: Callable[[Range], Any]  # Receives the range of the times read

    def seen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches; tell their range at the end."""
        times: Range | None = None
        is_open = True
        for batch in batches:
            if is_open and batch.num_rows:
                found = pc.min_max(batch.column(self.column)).as_py()
                if found["min"] is not None:
                    times = merged(times, (found["min"], found["max"]))
                    is_open = times is None or wrong_unit(*times, "") is not None
            yield batch
        if times is not None:
            self.tell(times)


_MOST_BYTES = 64 << 20


def large_tables(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.Table]:
    """Yield events in tables of many, since each rule costs something for each table."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most_rows or size >= _MOST_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held).combine_chunks()


_COLLECTIONS = (200_000, 20, 100)


def partition_number() -> int:
    """Return the number of the task's partition; 0 outside Spark."""
    task = TaskContext.get()
    return task.partitionId() if task else 0


def run_of_query() -> str | None:
    """Return what stands for a query from its start to its end; None outside of a stream."""
    task = TaskContext.get()
    if task is None:
        return None
    query, run = map(task.getLocalProperty, ("sql.streaming.queryId", "spark.jobGroup.id"))
    return None if query is None else f"{query} {run}"


def runtime_context(pattern: str) -> RuntimeContext:
    """Return the runtime context of rich functions; `pattern` is the pattern on one line."""
    return RuntimeContext(job_name(pattern), partition_number())


def job_name(pattern: str, name: str | None = None, language: str = "CEP") -> str:
    """Return the name of a job in Spark's UI and progress."""
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
    """Exclude all objects loaded so far from garbage collection, once in a process."""
    # Spark collects garbage in a worker after every task. That visits every module, which takes
    # longer than the tasks of a small micro-batch, and modules are never garbage.
    gc.freeze()


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Make Python collect cyclic garbage less often within a ``with``."""
    # A worker holds very many rows that are in no cycle. With Python's default thresholds, visiting
    # them takes a third of the time of conditions in Python.
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
