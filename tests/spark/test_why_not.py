# SPDX-License-Identifier: Apache-2.0
"""Why a pattern does not match on a DataFrame."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import attrs
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy, parse
from pyflinkcep.charts import timeline_chart
from pyflinkcep.errors import CepError
from pyflinkcep.spark.plan.job import milliseconds_of
from pyflinkcep.testing import whyNot
from pyflinkcep.traces.model import End
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

pytestmark = pytest.mark.spark

PATTERN = (
    Pattern.begin("low")
    .where("n < 3")
    .followedBy("high")
    .where("n > 3 * last(low.n) AND n > 5")
    .next("end")
    .where(lambda row: row.n == 0)
    .within(timedelta(seconds=10))
)
NUMBERS = [1, 2, 9, 0, 1, 7, 3, 2, 2, 8, 0, 5, 1, 1, 4, 9, 1, 0, 2, 6]
ROWS = [("ab"[n % 3 % 2], n, value) for n, value in enumerate(NUMBERS)]


QUERY = "PATTERN SEQ(low l, high h) WHERE skip_till_next_match(l, h) {} WITHIN 10 seconds"


TIMES = (
    "timestamp_micros(at) AS t",
    "TIMESTAMP_NTZ '1970-01-01' + at * INTERVAL '0.000001' SECOND AS z",
)


def test_a_dataframe_has_the_answer_of_a_list(spark: SparkSession) -> None:
    """Counts, ends and advice are those of the events in memory; a sample, a key and nulls say so."""
    rows = [(k, datetime.fromtimestamp(t, UTC), n) for k, t, n in ROWS]
    schema = "k string, t timestamp, n int"
    with configured(spark, QUICK_FOR_MANY_PLANS):
        events = spark.createDataFrame(rows, schema)
        found = CEP.pattern(keyBy(events, "k"), PATTERN).inEventTime("t")
        why, some = found.whyNot(), found.whyNot(key="b", maxEvents=3)
        partial = spark.createDataFrame([*rows, ("a", None, 1), (None, rows[0][1], 1)], schema)
        nulls = CEP.pattern(keyBy(partial, "k"), PATTERN, onNullKey="drop").inEventTime("t")
        without = nulls.whyNot().facts.input
        query = parse(QUERY)
        inside = [(t * 100, t) for t in (5, 3, 9, 1, 7, 2)]  # of one millisecond
        close = spark.createDataFrame(inside, "t bigint, n int")
        close = close.select(F.timestamp_micros("t").alias("t"), "n")
        grows = Pattern.begin("a").next("b").where("n > last(a.n)")
        in_order = CEP.pattern(close, grows).inEventTime("t").whyNot()
        typed = events.selectExpr("k", "t", "IF(n < 3, 'low', 'high') AS type")
        of_query = CEP.pattern(keyBy(typed, "k"), query).inEventTime("t").whyNot(key="b")
        counted = CEP.pattern(
            keyBy(typed, "k"), parse(QUERY.replace("10 seconds", "3 events"))
        ).inEventTime("t")
        with pytest.raises(CepError, match=r"whyNot\(\) needs a query that is a pattern"):
            counted.whyNot()

    assert (in_order.facts.matches, in_order.facts.reached) == (5, {"a": 6, "b": 5})
    lists = [{"k": k, "t": t * 1000, "n": n} for k, t, n in ROWS]
    in_memory = whyNot(PATTERN, lists, timestamp="t", key="k")
    local = in_memory.facts
    assert {line.change for line in why.compare(in_memory).lines} == {""}
    assert timeline_chart(why).spec["data"] == timeline_chart(in_memory).spec["data"]
    assert [attrs.asdict(one) for one in why.facts.conditions] == [
        {**attrs.asdict(one), "values": ()} for one in local.conditions
    ]
    ends = {at: len(ones) for at, ones in why.facts.ended.items()}
    assert ends == {at: len(ones) for at, ones in local.ended.items()}
    assert (why.facts.matches, why.facts.reached) == (local.matches, local.reached)
    assert {event.key for event in some.trace.events} == {"b"}
    of_b = sum(key == "b" for key, _, _ in ROWS)
    assert "counted over all, traced for 3 events of 1 key, the last not to its end" in some.text()
    assert {one.ending.kind for one in some.trace.partials} == {End.INPUT}
    assert [one.of for one in some.facts.conditions if one.per_event][:2] == [of_b, of_b]
    lows = [n for key, _, n in ROWS if key == "b" and n < 3]
    assert of_query.facts.reached["l"] == len(lows)
    assert (without["without a time"], without["without a key"]) == (1, 1)


def test_times_with_a_zone_and_without(spark: SparkSession) -> None:
    """Both are read to the millisecond, before 1970 and in 9999 too, and shown as times."""
    micros = [-1, -1500001, 999, 1706700000123456, 253402300799999999]
    rows = [(number, at) for number, at in enumerate(micros)]
    events = spark.createDataFrame(rows, "n int, at bigint").selectExpr("n", *TIMES)
    pattern = Pattern.begin("a").where("n = 3").next("b").where("n = 5")
    for name in ("t", "z"):
        source = SimpleNamespace(time_column=name, time_unit=1, dataframe=events)
        column = milliseconds_of(source).alias("ms")  # type: ignore[arg-type]
        found = {row.n: row.ms for row in events.select("n", column).collect()}
        assert found == {number: at // 1000 for number, at in rows}
        why = CEP.pattern(events, pattern).inEventTime(name).whyNot()
        assert "event 3 at 2024-01-31" in str(why)


def test_what_cannot_be_asked_is_refused(spark: SparkSession) -> None:
    """A key of another type, and a number that is none, are refused with a hint; no event has others."""
    events = spark.createDataFrame([("a", 1, 2)], "k string, t bigint, n int")
    found = CEP.pattern(keyBy(events, "k"), PATTERN).inEventTime("t")
    typo = found.whyNot(key="typo").text()
    assert "No event has the key 'typo'. Some of the keys: 'a'." in typo
    wrong = (
        {"key": ("a", "b")},
        {"key": object()},
        {"key": 5},
        {"maxEvents": 0},
        {"maxEvents": "x"},
    )
    for arguments in wrong:
        with pytest.raises(CepError, match="whyNot") as caught:
            found.whyNot(**arguments)
        assert caught.value.hint
        assert ("events to trace" in caught.value.hint) == ("maxEvents" in arguments)
    stream = spark.readStream.format("rate").load().withColumnRenamed("value", "n")
    with pytest.raises(CepError, match=r"whyNot\(\) is not available on a stream"):
        CEP.pattern(stream.withWatermark("timestamp", "1 second"), PATTERN).whyNot()
