# SPDX-License-Identifier: Apache-2.0
"""What Sail cannot do is refused by name: above all what depends on the order of rows in files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, CepDataFrame, NotSupportedError, Pattern, keyBy, matchRecognize, parse
from tests.sail.test_recorded import pytestmark  # noqa: F401 - the same

PATTERN = Pattern.begin("a").where("type = 'a'").next("b").where("type = 'b'")
CLAUSE = (
    "PARTITION BY k ORDER BY {} MEASURES A.id AS i PATTERN (A B) "
    "DEFINE A AS type = 'a', B AS type = 'b'"
)
ROWS = 20_000


def read(spark: SparkSession, folder: Path, of_one_time: int) -> DataFrame:
    """Return events of files of several row groups, so many of them at one time."""
    for file in range(2):
        ids = range(file * ROWS, (file + 1) * ROWS)
        columns = {
            "ts": [id_ // of_one_time for id_ in ids],
            "at": pa.array([id_ // of_one_time for id_ in ids], pa.timestamp("ms", "UTC")),
            "id": list(ids),
            "k": [0] * ROWS,
            "type": ["ab"[id_ % 2] for id_ in ids],
        }
        pq.write_table(pa.table(columns), folder / f"{file}.parquet", row_group_size=3_000)
    return spark.read.parquet(str(folder))


def results(events: DataFrame, *order: str) -> dict[str, CepDataFrame]:
    """Return a pattern, and clauses of both dialects, each with this order of equal times."""
    by = ", ".join(["at", *order])
    stream = CEP.pattern(keyBy(events, "k"), PATTERN, orderBy=order or None)
    return {
        "pattern": stream.inEventTime("ts").toDF(),
        "flink": matchRecognize(events, CLAUSE.format(by)),
        "standard": matchRecognize(events, CLAUSE.format(by), dialect="standard"),
    }


def test_times_that_differ(spark: SparkSession, tmp_path: Path) -> None:
    """Events of different times are in their order, whatever piece is read first."""
    found = {name: df.count() for name, df in results(read(spark, tmp_path, 1)).items()}

    assert found == dict.fromkeys(("pattern", "flink", "standard"), ROWS)


def test_equal_times_need_an_order(spark: SparkSession, tmp_path: Path) -> None:
    """Two events of one time are refused, with the way out, unless a column orders them."""
    events = read(spark, tmp_path, 2)
    query = CEP.pattern(keyBy(events, "k"), parse("PATTERN SEQ(a x, b y) WITHIN 5 milliseconds"))
    refused = {**results(events), "query": query.inEventTime("ts").toDF()}
    found = {name: df.count() for name, df in results(events, "id").items()}

    assert found == dict.fromkeys(("pattern", "flink", "standard"), ROWS)
    for result in refused.values():
        with pytest.raises(Exception, match="two events at one time, and this engine reads"):
            result.count()


def test_what_needs_spark(spark: SparkSession) -> None:
    """Streams, watermarks and partitions that stay are refused when a job is planned."""
    bounded = spark.createDataFrame([(1, "a")], "ts bigint, type string")
    stream = spark.readStream.format("rate").load()

    with pytest.raises(NotSupportedError, match=r"deals partitions out anew"):
        CEP.pattern(keyBy(bounded, "type", partitioned=True), PATTERN).inEventTime("ts").toDF()
    with pytest.raises(NotSupportedError, match=r"Sail .*runs bounded jobs only"):
        CEP.pattern(stream, Pattern.begin("a")).inProcessingTime().toDF()
    with pytest.raises(NotSupportedError, match="withWatermark needs an engine"):
        keyBy(stream.withWatermark("timestamp", "1 second"), "value")
