# SPDX-License-Identifier: Apache-2.0
"""The result of a pattern is a DataFrame, classic or Spark Connect, and its jobs say what they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, DataFrameWriter, Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CepDataFrame, OutputTag, Pattern
from tests.jvm import JVM_OPTIONS
from tests.spark.support import a_then_b, configured, events, ids, on

INPUT = "u:a u:b v:a u:a v:c u:b u:a@50"
TIMEOUTS = OutputTag("timeouts", "text string, at bigint")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Return the events of most tests here."""
    return events(spark, INPUT)


def test_persist_runs_once(spark: SparkSession, frame: DataFrame) -> None:
    """After persist() all outputs come from one run; without it each runs again."""
    runs = spark.sparkContext.accumulator(0)

    def counted(match: Any, ctx: Any, out: Any) -> None:
        runs.add(1)
        out.collect(ids(match))

    tag = OutputTag("late")
    result = on(frame, a_then_b(), "user").sideOutputLateData(tag).process(counted, "text string")
    result.persist()
    for output in (result, result, result.getSideOutput(tag), result.tagged()):
        output.collect()
    once = runs.value
    result.unpersist(blocking=True)
    result.collect()

    assert (once, runs.value) == (2, 4)


def test_the_result_behaves_as_its_dataframe(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attributes, columns, methods, writers, views and joins are those of the main output."""
    result = on(frame, a_then_b(), "user").select(ids, "text string")
    result.createOrReplaceTempView("matches")
    result.write.parquet(str(tmp_path / "out"))
    result.show()
    shown = capsys.readouterr().out

    assert (result.columns, result.isStreaming, result.schema["text"].nullable) == (
        ["text"],
        False,
        True,
    )
    assert result.filter(result.text.endswith("6")).first() == Row(text="a=4 b=6")
    assert result.where(result["text"] == "a=1 b=2").count() == 1
    assert result.toDF("other").columns == ["other"]
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2
    assert spark.sql("SELECT count(*) AS n FROM matches").first() == Row(n=2)
    assert frame.select(F.col("name").alias("text")).union(result).count() == 9
    assert "a=4 b=6" in shown
    assert "filter" in dir(result)
    assert repr(result) == "CepDataFrame[text: string] of CEP: a ⇒ b"
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = result.nothing_such


def test_the_result_is_a_dataframe(spark: SparkSession, frame: DataFrame) -> None:
    """The result is of the class of its input, so it goes wherever a DataFrame does."""
    result = on(frame, a_then_b(), "user").select(ids, "text string")
    texts = frame.select(F.col("name").alias("text"))

    assert isinstance(result, DataFrame)
    assert isinstance(result, type(frame))
    assert isinstance(result, CepDataFrame)
    assert isinstance(result.write, DataFrameWriter)
    assert result.transform(lambda df: df.where("text = 'a=1 b=2'")).count() == 1
    assert (texts.union(result).count(), result.union(texts).count()) == (9, 9)
    assert texts.join(result, "text", "left_semi").count() == 0
    assert sorted(result.toPandas()["text"]) == ["a=1 b=2", "a=4 b=6"]
    assert type(result.where("true")) is type(frame)


def test_a_pattern_on_the_result_of_a_pattern(spark: SparkSession, frame: DataFrame) -> None:
    """A result can be the input of another pattern."""
    first = on(frame, a_then_b(), "user").select(
        lambda m: (m["b"][0].ts, m["a"][0].user), "ts bigint, user string"
    )
    found = on(first, Pattern.begin("one").next("two")).select(ids, "text string")

    assert found.collect() == [Row(text="one=2 two=6")]


@pytest.mark.parametrize("way", ["collect", "foreachPartition", "write"])
def test_jobs_carry_the_pattern(
    spark: SparkSession, frame: DataFrame, tmp_path: Path, way: str
) -> None:
    """While an action or a writer runs, Spark's UI names the pattern; afterwards it does not."""
    context = spark.sparkContext
    stage = f"told_{way}"
    result = on(frame, Pattern.begin(stage), "user").select(ids, "text string")
    context.setLocalProperty("spark.job.description", "mine")
    try:
        match way:
            case "collect":
                result.collect()
            case "foreachPartition":
                result.foreachPartition(lambda rows: None)
            case "write":
                result.write.mode("overwrite").format("json").save(str(tmp_path / "out"))
        after = context.getLocalProperty("spark.job.description")
    finally:
        context.setLocalProperty("spark.job.description", None)

    called = next(name for text, name in _jobs(spark) if text == f"CEP: {stage}")
    assert after == "mine"
    assert (called.split(" at ")[0], "test_cep_dataframe.py:" in called) == (
        "save" if way == "write" else way,
        True,
    )


def _jobs(spark: SparkSession) -> set[tuple[str, str]]:
    """Return the descriptions and names of all jobs, as the UI's store has them."""
    store = spark.sparkContext._jsc.sc().statusStore()
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = store.jobsList(None)
    found = set()
    for at in range(jobs.size()):
        description = jobs.apply(at).description()
        if description.isDefined():
            found.add((description.get(), jobs.apply(at).name()))
    return found


def test_the_plan(
    spark: SparkSession, frame: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """One shuffle by key, one Arrow map named after the pattern; no sort by Spark, no pandas."""
    with configured(spark, {"spark.sql.adaptive.enabled": "false"}):
        on(frame, a_then_b(), "user").toDF().explain()
        on(frame, a_then_b()).toDF().explain()
    keyed, keyless = capsys.readouterr().out.split("== Physical Plan ==")[1:]

    assert [keyed.count(word) for word in ("Exchange", "MapInArrow CEP: a ⇒ b(")] == [1, 1]
    assert "Sort " not in keyed + keyless
    assert (keyless.count("Exchange"), keyless.count("Coalesce 1")) == (0, 1)
    assert "pandas" not in (keyed + keyless).lower()


ON_CONNECT = """
import sys
from datetime import timedelta
from pyspark.sql import DataFrame, SparkSession
from pyflinkcep import CEP, CepDataFrame, OutputTag, Pattern, keyBy
from pyflinkcep.monitor import Monitor

spark = SparkSession.builder.remote("local[1]").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", 1)
spark.conf.set("spark.sql.codegen.wholeStage", False)
spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
rows = [("u", "a", 1), ("u", "b", 2), ("v", "a", 1)]
frame = spark.createDataFrame(rows, "user string, name string, ts bigint")
pattern = (
    Pattern.begin("a").where("name = 'a'").next("b").where(lambda e: e.name == "b")
    .within(timedelta(milliseconds=10))
)
late = OutputTag("late", "user string")
result = CEP.pattern(keyBy(frame, "user"), pattern).inEventTime("ts").select(
    late, lambda m, t: (m["a"][0].user,), lambda m: (m["b"][0].user, m["b"][0].ts),
    "user string, ts bigint",
)
kinds = [isinstance(result, kind) for kind in (DataFrame, CepDataFrame, type(frame))]
both = frame.select("user", "ts").union(result).transform(lambda df: df.where("ts = 2"))
print(kinds, [tuple(row) for row in result.persist().collect()], result.is_cached)
print(result.getSideOutput(late).toPandas().values.tolist(), both.count())
frame.createOrReplaceTempView("events")
clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts + 1 AS ts PATTERN (A) DEFINE A AS ts < 3)"
inner = f"SELECT * FROM events {clause} AS m"
CEP.sql(spark, f"CREATE TEMPORARY VIEW kept AS SELECT '{{}}' AS x, ts FROM ({inner}) {clause} AS n")
print(CEP.sql(spark, inner).count(), [tuple(row) for row in spark.table("kept").collect()])
monitor = Monitor(spark, port=0)
lines = spark.readStream.text(sys.argv[1]).writeStream.format("noop").queryName("lines")
lines.trigger(availableNow=True).start().awaitTermination()
monitor.stop()
print([(query.name, query.rows, query.status) for query in monitor.history.read()])
spark.stop()
"""


def test_on_spark_connect(tmp_path: Path) -> None:
    """
    Over Spark Connect the result is a DataFrame of Spark Connect, with all its outputs.

    The server's workers run the driver's Python, not the first ``python3`` on the path. A monitor
    hears of streams.
    """
    pytest.importorskip("grpc")
    pytest.importorskip("grpc_status")
    pytest.importorskip("zstandard")
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    environment = {name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, "-c", ON_CONNECT, str(tmp_path)],
        env={
            **environment,
            "PATH": f"{tmp_path}:{environment['PATH']}",
            "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
            "JAVA_TOOL_OPTIONS": JVM_OPTIONS,
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == [
        "[True, True, True] [('u', 2)] True",
        "[['v']] 2",
        "3 [('{}', 3), ('{}', 3)]",
        "[('lines', 2, 'stopped')]",
    ], done.stderr[-3000:]
