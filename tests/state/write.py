# SPDX-License-Identifier: Apache-2.0
"""
Write the state that later releases must read: ``python -m tests.state.write FOLDER``.

Run it once for each state format, from the release that introduces it; what is in a folder that is
committed never changes.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.conformance.cases import Case, load
from tests.state.operators import CaseOperator, half


def write_operators(file: Path) -> None:
    """Write a snapshot of each recorded case, taken half-way through its input."""
    lines = []
    for case in load("operator_cases"):
        if "error" not in case["expect"]:
            lines.append(json.dumps({"id": case["id"], "snapshot": _half_way(case).hex()}))
    with gzip.GzipFile(file, "wb", mtime=0) as out:
        out.write("\n".join(lines).encode())


def _half_way(case: Case) -> bytes:
    operator = CaseOperator(case)
    operator.feed(case["items"][: half(case)])
    return operator.save()


def write_checkpoint(folder: Path) -> None:
    """Write the checkpoint of a stream, what it gave until then, and what it gives later."""
    from pyspark.sql import SparkSession

    from tests.state import archive, jobs

    spark: Any = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as temporary:
        source, checkpoint = Path(temporary, "source"), Path(temporary, "checkpoint")

        def run() -> list[Any]:
            rows: list[Any] = []
            query = (
                jobs.in_one(jobs.streamed(spark, source))
                .writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
                .option("checkpointLocation", str(checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            return rows

        jobs.write_files(source, range(jobs.FILES_BEFORE))
        before = jobs.answers(run())
        archive.pack(Path(temporary), "checkpoint", folder / "checkpoint.tar.xz")
        jobs.write_files(source, range(jobs.FILES_BEFORE, jobs.FILES))
        after = jobs.answers(run())
    facts = {"pyspark": spark.version, "before": before, "after": after}
    (folder / "answers.json").write_text(json.dumps(facts, indent=0) + "\n", encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True)
    write_operators(target / "operators.jsonl.gz")
    write_checkpoint(target)
