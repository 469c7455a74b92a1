# SPDX-License-Identifier: Apache-2.0
"""How far bounded jobs are, told by their tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import InvalidArgumentError, Progress
from pyflinkcep.matching.progress import Counts, SoFar, read_so_far, told_to
from pyflinkcep.spark.plan.job import watched
from pyflinkcep.spark.worker.progress import CountedTask


def batches(*keys: str) -> Iterator[pa.RecordBatch]:
    """Return a batch for each text, an event for each of its letters."""
    for each in keys:
        yield pa.RecordBatch.from_pydict({"k": pa.array(list(each), pa.string())})


def halves(events: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return half of the rows of each batch."""
    for batch in events:
        yield batch.slice(0, batch.num_rows // 2)


def test_a_task_tells_what_it_read_and_gave(tmp_path: Path) -> None:
    """Tasks add up; keys count when a task is done, which has each of its keys once."""
    with told_to(str(tmp_path)):
        task = watched(halves, ["k"])
    first = list(task(batches("aabb", "", "bbcc")))
    running = task(batches("dd", "ee"))
    next(running)

    assert [batch.num_rows for batch in first] == [2, 0, 2]
    told = read_so_far(str(tmp_path))
    assert (told.events, told.tasks, told.keys) == (10, 1, 3)
    list(running)
    assert read_so_far(str(tmp_path)) == SoFar(events=12, matches=6, tasks=2, keys=5)


def test_a_task_that_fails_is_not_counted(tmp_path: Path) -> None:
    """It is tried again, so what it did must not count twice."""

    def fails(events: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(events)
        raise ValueError("bad event")

    with pytest.raises(ValueError, match="bad event"):
        list(CountedTask(fails, str(tmp_path), "k").run(batches("ab", "c")))
    assert read_so_far(str(tmp_path)) == SoFar()


def test_another_machine_tells_nothing(tmp_path: Path) -> None:
    """Without the folder, and outside of a with block, a task is what it was."""
    gone = CountedTask(halves, str(tmp_path / "gone"), "k")
    assert sum(batch.num_rows for batch in gone.run(batches("aabb"))) == 2
    assert watched(halves, ["k"]) is halves


def test_without_a_key(tmp_path: Path) -> None:
    """Events without a key are counted, and have no keys."""
    with told_to(str(tmp_path)):
        task = watched(halves, ())
    assert len(list(task(batches("aabb")))) == 1
    assert read_so_far(str(tmp_path)) == SoFar(events=4, matches=2, tasks=1, keys=0)


def test_it_never_goes_back(tmp_path: Path) -> None:
    """Who reads while a task writes sees the numbers before or after, not none."""
    path = tmp_path / "task"
    path.touch()
    counts = Counts(path)
    over, seen = threading.Event(), [0]

    def read() -> None:
        while not over.is_set():
            seen.append(read_so_far(str(tmp_path)).events)

    reader = threading.Thread(target=read)
    reader.start()
    for events in range(3000):
        counts.events = events
        counts.write()
    over.set()
    reader.join()

    assert seen == sorted(seen)


def test_what_is_shown(capsys: Any) -> None:
    """The line on standard error ends with what came last."""
    with Progress(every=0.01) as progress:
        list(watched(halves, ["k"])(batches("aabb")))
    assert progress.soFar == SoFar(events=4, matches=2, tasks=1, keys=2)
    shown = capsys.readouterr().err
    assert shown.endswith("4 events read, 2 matches, 1 task with 2 keys done\x1b[K\n")
    assert watched(halves, ["k"]) is halves
    for wrong in ({"show": 3}, {"every": 0}, {"every": True}):
        with pytest.raises(InvalidArgumentError, match=r"Progress: expected (show|every) to be"):
            Progress(**wrong)
