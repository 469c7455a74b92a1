# SPDX-License-Identifier: Apache-2.0
"""Whatever is killed, and whenever: no match is lost, and none is there twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep.testing import OperatorTestHarness, matchSase
from tests.conformance.cases import Event
from tests.spark import stream_job
from tests.spark.stream_job import RISES, SCHEMA, WINDOW
from tests.spark.streams import FileSource

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("KILLS", "1"))  # each costs the start of a JVM
FILES = max(40, 10 * KILLS)  # more than that many short runs can read


def events() -> list[tuple[str, int, str, int]]:
    """Return events of some users, up to 20 ms out of order, none of them late."""
    choose = random.Random(5)
    times = sorted(
        range(1000, 1000 + 10 * FILES * 12, 10), key=lambda ts: ts + choose.randrange(20)
    )
    return [
        (f"u{choose.randrange(3)}", ts, choose.choice("abc"), number)
        for number, ts in enumerate(times)
    ]


def expected() -> list[tuple[Any, ...]]:
    """Return all matches of the events."""
    from pyflinkcep import Pattern

    pattern = Pattern.begin("a").where(lambda e: e.name == "a").followedBy("b")
    harness = OperatorTestHarness(pattern.where(lambda e: e.name == "b").within(WINDOW))
    for user, ts, name, number in events():
        harness.processElement(Event(number, name, 0), ts, user)
    harness.close()
    return sorted((user, m["a"][0].id, m["b"][0].id, ts) for user, ts, m in harness.matches)


def expected_rises() -> list[tuple[Any, ...]]:
    """Return all matches of the SASE+ query on the events."""
    rows = [
        {"user": user, "ts": ts, "name": name, "id": number} for user, ts, name, number in events()
    ]
    return [
        (f"{m['y'][0]['user']} rises", m["x"][0]["id"], m["y"][0]["id"], m["y"][0]["ts"])
        for m in matchSase(RISES, rows, "ts", "name")
    ]


def written(spark: SparkSession, folder: Path, *modes: str) -> list[tuple[Any, ...]]:
    """Return what jobs wrote, as Spark reads it: only files that their logs know."""
    found: list[tuple[Any, ...]] = []
    for mode in modes:
        table = spark.read.schema("user string, a int, b int, at bigint").json(str(folder / mode))
        found += [tuple(row) for row in table.collect()]
    return sorted(found)


def start(
    folder: Path, modes: str, master: str = "local[2,4]", files: int = 1, slow_ms: int = 0
) -> Any:
    """Start a job in a process group of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [master, str(folder), modes, str(files), str(slow_ms)]
    command = [sys.executable, "-m", "tests.spark.stream_job", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def begin(job: Any) -> Any:
    """Let a job that was started do its work."""
    job.stdin.write("begin\n")
    job.stdin.flush()
    return job


def kill(job: Any) -> None:
    """Kill a job with its JVM and its workers, at once."""
    os.killpg(job.pid, signal.SIGKILL)
    job.communicate()


def finish(job: Any) -> None:
    """Wait for a job's end."""
    output, _ = job.communicate(timeout=240)
    assert job.returncode == 0, f"{output[:3000]} … {output[-4000:]}"  # its cause comes first


def commits(folder: Path) -> int:
    """Return the number of micro-batches that are committed."""
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the events in files."""
    source, rows = FileSource(tmp_path / "source", SCHEMA), events()
    source.add(*(rows[at : at + 12] for at in range(0, len(rows), 12)))
    return tmp_path


def test_killed_again_and_again(spark: SparkSession, folder: Path) -> None:
    """
    A query killed at a random moment, with KILLS at several, gives every match once when another session ends it.

    It has three operators: a pattern, the same as MATCH_RECOGNIZE, and a SASE+ query.
    """
    choose = random.Random()
    killed_at = []
    following = start(folder, "all")
    for kills_left in reversed(range(KILLS)):
        job = begin(following)
        if kills_left:  # the next JVM starts while the query of this one runs
            following = start(folder, "all")
        assert "started\n" in iter(job.stdout.readline, ""), "the query did not start"
        time.sleep(choose.random() * 3)  # the first batch takes about two seconds
        while not kills_left and commits(folder) < 3 and job.poll() is None:
            time.sleep(0.05)
        assert job.poll() is None, f"the query has ended by itself: {job.stdout.read()[-4000:]}"
        kill(job)
        killed_at.append(commits(folder))
    stream_job.run(spark, str(folder), "all,allflush", "10")

    found = written(spark, folder, "all", "allflush")
    pairs, rises = expected(), expected_rises()
    in_sql = [(f"{user} in SQL", *rest) for user, *rest in pairs]
    assert found == sorted([*pairs, *in_sql, *rises]), f"killed after the commits {killed_at}"
    assert 3 <= killed_at[-1] < FILES
    assert len(pairs) > 50
    assert len(rises) > 50
