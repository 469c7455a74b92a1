# SPDX-License-Identifier: Apache-2.0
"""
A program of its own that runs a pattern on a folder of files; tests start, kill and repeat it.

``python -m tests.spark.stream_job MASTER FOLDER {batch,stream,flush} [SLOW_MS]`` reads
FOLDER/source and writes FOLDER/batch, FOLDER/stream or FOLDER/flush as JSON files.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy

SCHEMA = "user string, ts bigint, name string, id int"
PAIR = "user string, a int, b int, at bigint"
WINDOW = timedelta(milliseconds=60)


def pattern(slow_ms: int = 0) -> Pattern:
    """Give the pattern; `slow_ms` is how long its second condition thinks."""

    def is_b(event: Any) -> bool:
        time.sleep(slow_ms / 1000)
        return bool(event.name == "b")

    return Pattern.begin("a").where("name = 'a'").followedBy("b").where(is_b).within(WINDOW)


def session(master: str) -> SparkSession:
    """Give a session that starts soon."""
    python_path = str(Path(__file__).parents[2])
    return (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.executorEnv.PYTHONPATH", python_path)
        .config("spark.driver.memory", "768m")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def main(master: str, folder: str, mode: str, slow_ms: int = 0) -> None:
    """Run the job."""
    spark = session(master)
    spark.sparkContext.setLogLevel("OFF")
    source, checkpoint = f"{folder}/source", f"{folder}/checkpoint"
    if mode == "batch":
        table = spark.read.schema(SCHEMA).json(source)
    else:
        table = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(source)
        table = table.withColumn("time", F.timestamp_millis("ts"))
        table = table.withWatermark("time", "30 milliseconds")
    result = (
        CEP.pattern(keyBy(table, "user"), pattern(slow_ms), keyGroups=16)
        .inEventTime("ts")
        .process(_collect, PAIR)
    )
    if mode == "stream":
        query = (
            result.writeStream.format("json")
            .option("path", f"{folder}/stream")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    else:
        found = result.flush(checkpoint) if mode == "flush" else result
        found.write.json(f"{folder}/{mode}")
    print("done", flush=True)
    spark.stop()


def _collect(match: Any, ctx: Any, out: Any) -> None:
    first, last = match["a"][0], match["b"][0]
    out.collect((first.user, first.id, last.id, ctx.timestamp()))


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))  # type: ignore[arg-type]
