# SPDX-License-Identifier: Apache-2.0
"""
A program of its own that applies a log of rules to a folder of files; a test kills and repeats it.

``python -m tests.sinks.rules_job FOLDER`` reads FOLDER/events, one file a micro-batch, with the
rules of FOLDER/log, and writes the ids of each micro-batch's matches to a file of FOLDER/found. It
ends when FOLDER/stop is there, or the test that started it is not.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyflinkcep import CEP
from pyflinkcep.rules import RuleLog
from tests.spark.stream_job import session
from tests.spark.streams import FileSource

SCHEMA = "id bigint, ts bigint, kind string, k string, x bigint"


def main(folder: Path) -> None:
    """Run until told to stop."""
    spark = session("local[2]")
    spark.sparkContext.setLogLevel("OFF")
    # Which file was in which micro-batch is looked up at the end, so Spark's notes stay.
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", 10_000)
    spark.conf.set("spark.sql.streaming.fileSource.log.cleanupDelay", "1d")
    spark.conf.set("spark.sql.streaming.fileSource.log.compactInterval", 10_000)
    events = FileSource(folder / "events", SCHEMA).stream(spark, delay_ms=10)
    log, found = RuleLog(folder / "log"), folder / "found"
    matches = CEP.dynamicPatterns(events, log, "time", "kind", keys=["k"], keyGroups=8).toDF()

    def write(batch: Any, number: int) -> None:
        ids = [row.matchId for row in batch.select("matchId").collect()]
        hidden = found / f".{number}"
        hidden.write_text(json.dumps(ids))
        hidden.rename(found / f"{number}.json")

    writer = matches.writeStream.foreachBatch(write)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    print("started", flush=True)
    parent = os.getppid()  # a test that was killed has ended nothing
    while query.isActive and not (folder / "stop").exists() and os.getppid() == parent:
        time.sleep(0.05)
    if query.exception() is not None:
        raise RuntimeError(f"{query.exception()}")
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
