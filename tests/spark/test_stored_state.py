# SPDX-License-Identifier: Apache-2.0
"""Today's code goes on from the checkpoints of every state format."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.spark.streams import run
from tests.spark.support import configured
from tests.state import FOLDERS, archive, jobs


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_stored_checkpoint_goes_on(folder: Path, spark: SparkSession, tmp_path: Path) -> None:
    """The stream goes on as under the old code; with its flush it gives what batch gives."""
    facts = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    if _version(pyspark.__version__) < _version(facts["pyspark"]):
        pytest.skip(f"Spark's part of the checkpoint was written by {facts['pyspark']}")
    archive.unpack(folder / "checkpoint.tar.xz", tmp_path)
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    jobs.write_files(source, range(jobs.FILES))

    small = {"spark.sql.shuffle.partitions": 1, "spark.sql.codegen.wholeStage": False}
    with configured(spark, small):
        streamed = jobs.streamed(spark, source)
        after = run(jobs.in_one(streamed), checkpoint)
        flushed = {
            name: result.flush(str(checkpoint), number)
            for number, (name, result) in enumerate(streamed.items())
        }
        rest = jobs.answers(jobs.in_one(flushed).collect())
        batch = jobs.answers(jobs.in_one(jobs.bounded(spark, source)).collect())

    # The last micro-batch now moves the watermark itself: what the flush gave comes before it.
    given = jobs.answers(after.rows)
    assert all(given[name][: len(rows)] == rows for name, rows in facts["after"].items())
    parts = (facts["before"], given, rest)
    # Without times: what waits for time to pass has the watermark of its micro-batch.
    assert {
        name: [match for part in parts for _, match in part.get(name, ())] for name in batch
    } == {name: [match for _, match in rows] for name, rows in batch.items()}
    assert sum(map(len, facts["after"].values())) > 100


def _version(text: str) -> list[int]:
    return [int(number) for number in text.split(".")[:2]]
