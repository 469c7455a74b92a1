# SPDX-License-Identifier: Apache-2.0
"""
A program of its own that runs a pattern on a folder of files; tests start, kill and repeat it.

``python -m tests.spark.stream_job MASTER FOLDER MODES FILES [SLOW_MS]`` reads FOLDER/source,
on streams FILES a micro-batch, and writes FOLDER/batch, FOLDER/stream and FOLDER/flush as JSON;
MODES says which of them, such as ``stream,flush``; ``all`` and ``allflush`` have beside it, in one
streaming query, the same pattern written as MATCH_RECOGNIZE, and the SASE+ query that ``RISES``
is. It begins when it reads a line.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy
from pyflinkcep.sase import parse
from tests.checkpoints import LOCAL_CHECKPOINTS
from tests.jvm import JVM_OPTIONS, remember_classes, share_settings

SCHEMA = "user string, ts bigint, name string, id int"
PAIR = "user string, a int, b int, at bigint"
WINDOW = timedelta(milliseconds=90)
SQL = """
    SELECT concat(user, ' in SQL') AS user, a, b, at FROM events MATCH_RECOGNIZE (
      PARTITION BY user ORDER BY time
      MEASURES A.id AS a, B.id AS b, B.ts AS at
      PATTERN (A X*? B) WITHIN INTERVAL '0.09' SECOND
      DEFINE A AS name = 'a', X AS name <> 'b', B AS name = 'b') AS m
"""

RISES = """
    PATTERN SEQ(a+ x[], ~(c n), b y)
    WHERE skip_till_next_match(x[], y) { [user] and n.id % 3 = 0 }
    WITHIN 89 ms
"""


def pattern(slow_ms: int = 0) -> Pattern:
    """Return the pattern; `slow_ms` is how long its second condition thinks."""

    def is_b(event: Any) -> bool:
        time.sleep(slow_ms / 1000)
        return bool(event.name == "b")

    return Pattern.begin("a").where("name = 'a'").followedBy("b").where(is_b).within(WINDOW)


def session(master: str) -> SparkSession:
    """Return a session that starts soon."""
    remember_classes()
    python_path = str(Path(__file__).parents[2])
    builder = SparkSession.builder.master(master)
    if master.startswith("local["):  # executors of their own run PySpark as it is
        builder = builder.config("spark.python.daemon.module", "tests.spark.daemon")
        builder = builder.config(*LOCAL_CHECKPOINTS)
    made = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", JVM_OPTIONS)
        .config("spark.executor.extraJavaOptions", JVM_OPTIONS)
        .config("spark.executorEnv.PYTHONPATH", python_path)
        .config("spark.driver.memory", "768m")
        .config("spark.executor.memory", "512m")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    share_settings(made)
    return made


def main(master: str, folder: str, modes: str, files: str, slow_ms: str = "0") -> None:
    """Run the job in a session of its own."""
    spark = session(master)
    spark.sparkContext.setLogLevel("OFF")
    if sys.stdin.readline():  # or else whoever was to say so has ended
        run(spark, folder, modes, files, slow_ms)
        spark.stop()


def run(spark: SparkSession, folder: str, modes: str, files: str, slow_ms: str = "0") -> None:
    """Run the job."""
    for mode in modes.split(","):
        if mode == "batch":
            table = spark.read.schema(SCHEMA).json(f"{folder}/source")
            matches(table, 0, "ts").write.json(f"{folder}/batch")
            continue
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
        table = reader.json(f"{folder}/source").withColumn("time", F.timestamp_millis("ts"))
        table = table.withWatermark("time", "30 milliseconds")
        results = [matches(table, int(slow_ms), "time")]
        if mode.startswith("all"):
            results += [alerts(table), rises(table)]
        if mode.endswith("flush"):
            for number, result in enumerate(results):
                rest = result.flush(f"{folder}/checkpoint", number)
                rest.write.mode("append").json(f"{folder}/{mode}")
            continue
        whole = reduce(DataFrame.unionAll, [result.toDF() for result in results])
        writer = whole.writeStream.format("json").option("path", f"{folder}/{mode}")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        print("started", flush=True)
        query.awaitTermination()


def alerts(table: DataFrame) -> Any:
    """Return each match of the clause as a row."""
    table.createOrReplaceTempView("events")
    return CEP.sql(table.sparkSession, SQL, keyGroups=16)


def rises(table: DataFrame) -> Any:
    """Return each match of the query as a row; no pattern has its matches."""
    query = CEP.pattern(table, parse(RISES), type="name", keyGroups=16).inEventTime("time")
    return query.select(
        lambda m: (f"{m['y'][0].user} rises", m["x"][0].id, m["y"][0].id, m["y"][0].ts), PAIR
    )


def matches(table: DataFrame, slow_ms: int, time: str) -> Any:
    """Return each match as a row."""
    stream = CEP.pattern(keyBy(table, "user"), pattern(slow_ms), keyGroups=16)
    return stream.inEventTime(time).process(_collect, PAIR)


def _collect(match: Any, ctx: Any, out: Any) -> None:
    first, last = match["a"][0], match["b"][0]
    out.collect((first.user, first.id, last.id, ctx.timestamp()))


if __name__ == "__main__":
    main(*sys.argv[1:])
