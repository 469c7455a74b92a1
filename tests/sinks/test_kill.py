# SPDX-License-Identifier: Apache-2.0
"""Whatever moment a writer is killed at, the sink of each page has every match once in the end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.sinks.job import SCHEMA
from tests.sinks.pages import names_of
from tests.sinks.servers import broker, postgresql
from tests.spark.streams import FileSource

pytestmark = pytest.mark.skipif(
    "PYFLINKCEP_TEST_SINKS" not in os.environ, reason="takes minutes and servers: make sinks"
)

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("KILLS", "1"))  # at random moments; each costs the start of a JVM
FILES, ROWS = max(16, 6 * KILLS), 40
Alert = tuple[str, str, datetime, int]
NAMES = ("id", "user", "at", "n")


@attrs.frozen
class Job:
    """A job that is killed and started again."""

    folder: Path
    page: str
    settings: Mapping[str, str]

    @contextmanager
    def started(self, stalls: str = "no") -> Iterator[Any]:
        """Start it in a process group of its own, up to the start of its stream; kill it after."""
        arguments = [str(self.folder), self.page, stalls, json.dumps(self.settings)]
        job = subprocess.Popen(
            [sys.executable, "-m", "tests.sinks.job", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": "Asia/Kathmandu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            wait_for(job, "started")
            yield job
        finally:
            # With its JVM and its workers, at once, also where the test has failed.
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.communicate()

    def kill_stalled(self, stalls: str) -> None:
        """Run it to where it stalls, and kill it there."""
        with self.started(stalls) as job:
            wait_for(job, "stalled")

    def kill_when(self, ready: Callable[[], bool]) -> None:
        """Run it until the sink is in some state, and kill it there."""
        with self.started() as job:
            while not ready() and job.poll() is None:
                time.sleep(0.002)
            assert job.poll() is None, f"it ended by itself: {job.stdout.read()[-4000:]}"

    def kill_at_random(self) -> None:
        """Kill it at random moments after the first micro-batch of a run: KILLS times, or once."""
        for _ in range(KILLS):
            self._kill_at_random()

    def _kill_at_random(self) -> None:
        before = self.commits()
        with self.started() as job:
            while self.commits() == before and job.poll() is None:
                time.sleep(0.02)
            time.sleep(random.Random().random() * 1.5)
            assert job.poll() is None, f"it ended by itself: {job.stdout.read()[-4000:]}"

    def finish(self) -> None:
        """Run it to the end of its source."""
        with self.started() as job:
            output, _ = job.communicate(timeout=240)
            assert job.returncode == 0, output[-6000:]

    def commits(self) -> int:
        """Return the number of micro-batches that Spark has noted as done."""
        return len(list((self.folder / "checkpoint" / "commits").glob("[0-9]*")))

    def attempts(self) -> dict[int, list[list[str]]]:
        """Return of each micro-batch the ids of its matches, each time that they were asked for."""
        found: dict[int, list[list[str]]] = {}
        for line in (self.folder / "attempts").read_text(encoding="utf-8").splitlines():
            number, ids = json.loads(line)
            found.setdefault(number, []).append(ids)
        return found


def wait_for(job: Any, word: str) -> None:
    """Wait until a job prints a word."""
    lines = []
    for line in job.stdout:
        lines.append(line)
        if line.strip() == word:
            return
    pytest.fail(f"it ended before it was {word}: {''.join(lines)[-6000:]}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with logins in files; the last are so late that no match waits for more."""
    choose, start = random.Random(3), datetime(2026, 1, 1, tzinfo=UTC)
    times = (start + timedelta(seconds=n) for n in range(FILES * ROWS))
    rows = [
        (f"u{choose.randrange(4)}", time.isoformat(), choose.choice(["fail", "fail", "ok"]))
        for time in times
    ]
    source = FileSource(tmp_path / "events", SCHEMA)
    source.add(*(rows[at : at + ROWS] for at in range(0, len(rows), ROWS)))
    for days in (1, 2):
        source.add([("end", (start + timedelta(days=days)).isoformat(), "none")])
    return tmp_path


@pytest.fixture
def expected(spark: SparkSession, folder: Path) -> list[Alert]:
    """Return the alerts that a bounded run finds."""
    events = spark.read.schema(SCHEMA).json(str(folder / "events"))
    found = alerts_of(names_of("index")["alerts"](events).toArrow())
    assert len({id for id, *_ in found}) == len(found) > 100
    return found


def alerts_of(table: pa.Table) -> list[Alert]:
    """Return the rows of a table in order."""
    return sorted(zip(*(table[name].to_pylist() for name in NAMES), strict=True))


def assert_repeated(job: Job) -> None:
    """Assert that a micro-batch was written again after a kill, and every time with its matches."""
    attempts = job.attempts()
    assert [number for number, ids in attempts.items() if ids.count(ids[0]) < len(ids)] == []
    assert max(len(ids) for ids in attempts.values() if ids[0]) > 1


@pytest.fixture
def database() -> Iterator[str]:
    """Yield the address of a database that has the page's table."""
    psycopg = pytest.importorskip("psycopg")
    page = (ROOT / "docs" / "sinks" / "postgresql.md").read_text(encoding="utf-8")
    with postgresql() as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute(page.split("```sql\n")[1].split("```")[0])
        yield dsn


def rows_of(database: str) -> list[Alert]:
    """Return the rows of the table in order."""
    import psycopg

    with psycopg.connect(database) as connection:
        return sorted(connection.execute("SELECT id, name, at, n FROM alerts").fetchall())


def test_postgresql(folder: Path, expected: list[Alert], database: str) -> None:
    """A transaction that was cut is gone, and one that was repeated leaves no row twice."""
    job = Job(folder, "postgresql", {"DSN": database})
    job.kill_stalled("half")
    job.kill_stalled("written")
    job.kill_at_random()
    job.finish()

    assert rows_of(database) == expected
    assert_repeated(job)


def test_postgresql_from_executors(folder: Path, expected: list[Alert], database: str) -> None:
    """The same where each task inserts its own rows."""
    job = Job(folder, "postgresql", {"DSN": database, "FROM_EXECUTORS": "yes"})
    job.kill_at_random()
    job.finish()

    assert rows_of(database) == expected


def test_files(spark: SparkSession, folder: Path, expected: list[Alert]) -> None:
    """Spark reads each match once; what a kill left is in the folder, and not in Spark's log."""
    written = folder / "alerts"

    def unnoted() -> set[str]:
        log = written.glob("_spark_metadata/[0-9]*")
        noted = "".join(file.read_text(encoding="utf-8") for file in log)
        return {file.name for file in written.glob("*.parquet") if file.name not in noted}

    job = Job(folder, "files", {})
    job.kill_at_random()
    left = unnoted()
    job.kill_when(lambda: bool(unnoted() - left))
    left = unnoted()
    job.finish()

    assert alerts_of(spark.read.parquet(str(written)).toArrow()) == expected
    assert left <= unnoted()


def test_delta(folder: Path, expected: list[Alert]) -> None:
    """A merge that was cut left nothing that readers see; one that is repeated inserts nothing."""
    deltalake = pytest.importorskip("deltalake")
    table = folder / "table"

    def uncommitted() -> bool:
        log = "".join(file.read_text() for file in table.glob("_delta_log/*.json"))
        return any(file.name not in log for file in table.glob("*.parquet"))

    job = Job(folder, "delta", {"TABLE": str(table)})
    job.kill_stalled("half")
    job.kill_stalled("written")
    job.kill_when(uncommitted)
    job.kill_at_random()
    job.finish()

    assert alerts_of(deltalake.DeltaTable(str(table)).to_pyarrow_table()) == expected
    assert_repeated(job)


def records(address: str) -> list[tuple[str, str]]:
    """Return all records of the topic, as key and value."""
    from confluent_kafka import Consumer, TopicPartition

    reader = Consumer({"bootstrap.servers": address, "group.id": "test"})
    reader.assign([TopicPartition("alerts", part, 0) for part in (0, 1)])
    found = []
    # Up to a silence: the end that Tansu tells is the start of the last batch.
    while (message := reader.poll(10)) is not None:
        assert message.error() is None
        found.append((message.key().decode(), message.value().decode()))
    reader.close()
    return found


def test_kafka(folder: Path, expected: list[Alert]) -> None:
    """Each match is there by its key, and records that are there twice are those of a kill."""
    with broker() as address:
        job = Job(folder, "kafka", {"SERVERS": address})
        job.kill_stalled("half")
        job.kill_stalled("written")
        job.kill_at_random()
        job.finish()
        found = records(address)

    alerts = [json.loads(value) for value in dict(found).values()]
    assert (
        sorted((a["id"], a["user"], datetime.fromisoformat(a["at"]), a["n"]) for a in alerts)
        == expected
    )
    assert {key for key, _ in found} == {a["id"] for a in alerts}
    assert_repeated(job)
    repeated = {id for ids in job.attempts().values() if len(ids) > 1 for id in ids[0]}
    times = Counter(key for key, _ in found)
    assert {key for key, count in times.items() if count > 1} <= repeated
    assert max(times.values()) > 1  # or the kills were too kind
    assert len(set(found)) == len(expected)  # what is there twice is there twice the same
