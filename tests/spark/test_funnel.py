# SPDX-License-Identifier: Apache-2.0
"""Funnels on DataFrames have the answers of a list; on streams the stages reached are rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, PatternStream, keyBy
from pyflinkcep.charts import durations_chart, funnel_chart, timeline_chart
from pyflinkcep.errors import CepError
from pyflinkcep.testing import funnel
from tests.spark.streams import FileSource, run
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

pytestmark = pytest.mark.spark

PATTERN = (
    Pattern.begin("low")
    .where("n < 3")
    .followedBy("high")
    .where("n > 3 * last(low.n)")
    .oneOrMore()
    .followedBy("end")
    .where("n = 0")
    .within(timedelta(seconds=10))
)
NUMBERS = [1, 2, 9, 0, 1, 7, 3, 2, 2, 8, 0, 5, 1, 1, 4, 9, 1, 0, 2, 6]
# The times of partial matches are odd numbers, so that quantiles are fractions.
ROWS = [("ab"[n % 3 % 2], n * 1000 + n * n % 97, value, n % 2) for n, value in enumerate(NUMBERS)]
SCHEMA = "k string, t timestamp, n int, `odd one` int"


def found_on(events: DataFrame, pattern: Pattern = PATTERN) -> PatternStream:
    """Return the pattern on events."""
    return CEP.pattern(keyBy(events, "k"), pattern).inEventTime("t")


def test_a_dataframe_has_the_answer_of_a_list(spark: SparkSession) -> None:
    """Grouped or not, keyed or not, by SQL or functions, to the last digit; charts take its rows."""
    rows = [(k, datetime.fromtimestamp(t / 1000, UTC), n, o) for k, t, n, o in ROWS]
    local = [{"k": k, "t": t, "n": n, "odd one": o} for k, t, n, o in ROWS]
    in_python = PATTERN.where(lambda row: row.n < 1)
    with configured(spark, QUICK_FOR_MANY_PLANS):
        events = spark.createDataFrame(rows, SCHEMA)
        found = found_on(events)
        answers = {
            "by": found.funnel(by="odd one", quantiles=(0, 0.1, 0.25, 0.9, 1)),
            "python": found_on(events, in_python).funnel(by=["k"]),
            "no key": CEP.pattern(events, PATTERN).inEventTime("t").funnel(),
            "nobody": found_on(events.where("n > 100")).funnel(),
        }
        collected = {name: [r.asDict() for r in one.collect()] for name, one in answers.items()}
        matches = found.toDF().collect()

    expected = {
        "by": funnel(PATTERN, local, "t", "k", by="odd one", quantiles=(0, 0.1, 0.25, 0.9, 1)),
        "python": funnel(PATTERN, local, "t", "k", by="k"),
        "no key": funnel(PATTERN, local, "t"),
        "nobody": funnel(PATTERN, [], key="k"),
    }
    assert collected == {name: one.rows for name, one in expected.items()}
    bars = funnel_chart(collected["python"], by="k").spec["data"]["values"]
    assert (bars[0]["group"], bars[0]["stage"]) == ("k: a", "low")
    assert len(timeline_chart(matches, time="t", key="k").spec["data"]["values"]) > 4
    lengths = durations_chart(matches, time="t").spec["data"]["values"]
    assert sum(bar["count"] for bar in lengths) == len(matches) > 1


def test_what_cannot_be_counted_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Streams have rows and no funnel; columns must exist, and events have times."""
    source = FileSource(tmp_path / "source")
    stream = CEP.pattern(keyBy(source.stream(spark), "user"), Pattern.begin("a"))
    events = spark.createDataFrame([("a", 1, 2, 3)], "k string, t bigint, Stage int, Began int")
    bounded = found_on(events, Pattern.begin("a"))
    by_stage = CEP.pattern(keyBy(events, "Stage"), Pattern.begin("a")).inEventTime("t")

    def refused(call: Any, **arguments: Any) -> str:
        with pytest.raises(CepError) as raised:
            call(**arguments)
        return str(raised.value)

    assert "groupBy(window('stageTimestamp'" in refused(stream.funnel)
    assert "write inEventTime('column')" in refused(stream.inProcessingTime().reached)
    assert "did you mean 'k'?" in refused(bounded.funnel, by="kk")
    assert "two columns named ['stage']" in refused(by_stage.funnel)
    assert "by names 'Stage'" in refused(bounded.funnel, by="Stage")
    assert bounded.funnel(by="Began").columns[0] == "Began"
    assert "expected quantiles from 0 to 1" in refused(bounded.funnel, quantiles=[50])
    assert "expected by to be names of columns" in refused(bounded.reached, by=F.col("k"))


def test_a_stream_counts_stages_by_windows_of_time(spark: SparkSession, tmp_path: Path) -> None:
    """The rows of a stream are those of the bounded job, and no window drops one as late."""
    source = FileSource(tmp_path / "source")
    rows = [("uvw"[n % 3], 100 * n - n * 7 % 300, "aabac"[n % 5], n) for n in range(1, 120)]
    source.add(rows, [("end", 10_000_000, "c", 0)])
    pattern = Pattern.begin("a").where("name = 'a'").followedBy("b").where("name = 'b'")
    pattern = pattern.followedBy("c").where("name = 'c'").within(timedelta(seconds=2))

    def counted(table: DataFrame) -> DataFrame:
        events = table.where("user != 'end' OR id = 0")
        found = CEP.pattern(keyBy(events, "user"), pattern, keyGroups=4).inEventTime("time")
        window = F.window("stageTimestamp", "1 second").alias("w")
        total = F.sum("sincePrevious").alias("since")
        grouped = found.reached(by="id").groupBy(window, "stage")
        return grouped.agg(F.count("id").alias("reached"), total).select(
            F.unix_millis("w.start"), "stage", "reached", "since"
        )

    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        streamed = run(counted(source.stream(spark, delay_ms=300)), tmp_path / "checkpoint").rows
        expected = counted(source.bounded(spark)).collect()
    assert sorted(map(tuple, streamed)) == sorted(map(tuple, expected))
    assert {row.stage for row in streamed} == {"a", "b", "c"}
