# SPDX-License-Identifier: Apache-2.0
"""Pages of state travel many at a time between Spark's state store and workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import Pattern, Time
from tests.spark.streams import FileSource, run
from tests.spark.support import on

pytestmark = pytest.mark.usefixtures("one_task")

KEYS = 10_000


def test_many_pages_are_read_written_and_deleted(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """With many pages no partial match is lost, and when all have ended no page is left."""
    users = [f"user {number:0160}" for number in range(KEYS)]
    for time, name in ((1_000, "a"), (2_000, "b"), (3_000, "c")):
        source.add([(user, time, name, number) for number, user in enumerate(users)])
    source.add([("end", 90_000, "z", -1)])
    pattern = (
        Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")
        .followedBy("c").where("name = 'c'").within(Time.seconds(9))
    )  # fmt: skip
    found = on(source.stream(spark), pattern, "user", time="time", parallelTasks=1).toDF()
    kept = found.select(F.expr("a[0].id + b[0].id + c[0].id AS id"))
    finished = run(kept, tmp_path / "checkpoint")

    assert sorted(row.id for row in finished.rows) == [3 * number for number in range(KEYS)]
    entries = [progress.stateOperators[0].numRowsTotal for progress in finished.progress]
    assert max(entries) > 128, entries
    assert entries[-1] < 8, entries
