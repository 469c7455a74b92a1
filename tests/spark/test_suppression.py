# SPDX-License-Identifier: Apache-2.0
"""Suppressed alerts on Spark: bounded, on a stream with a restart, and in memory the same."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, Time, keyBy, matchId, matchMany, suppress
from pyflinkcep.errors import InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.rules import Rule, RuleLog
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.plan.engine import SPARK, engine_of
from tests.spark.streams import TAGGED, FileSource, run, tagged_events
from tests.spark.support import configured
from tests.spark.test_stream_rules import RULES as ALL

RULES = {name: ALL[name] for name in ("runs", "missing", "single", "rise", "not")}
PERIOD = Time.milliseconds(40)


def shown(events: DataFrame, **options: Any) -> CepDataFrame:
    """Return what is shown of the alerts of rules."""
    found = CEP.patterns(events, RULES, "time", "kind", keyGroups=8).toDF()
    return CEP.suppress(found, PERIOD, keyGroups=8, **options)


def last(found: list[Row]) -> dict[str, tuple[Any, ...]]:
    """Return for each alert its last row, which has the most; check that it comes twice at most."""
    greatest: dict[str, tuple[Any, ...]] = {}
    ids = [row.matchId for row in found]
    for row in found:
        one = (row.suppressed, row.rule, dict(row.key), str(row.matchTimestamp), str(row.events))
        greatest[row.matchId] = max(one, greatest.get(row.matchId, (-1,)), key=lambda own: own[0])
    assert all(ids.count(own) <= 2 for own in greatest)
    return greatest


def test_a_stream_shows_what_a_bounded_job_shows(spark: SparkSession, tmp_path: Path) -> None:
    """With a restart in the middle, and with what is left at the end, the alerts are the same."""
    source, checkpoint = FileSource(tmp_path / "in", TAGGED), tmp_path / "checkpoint"
    given = tagged_events(tied=False)
    with configured(spark, {"spark.sql.shuffle.partitions": "1"}):
        source.add(given[:70], given[70:120])
        finished = run(shown(source.stream(spark, delay_ms=10)), checkpoint)
        source.add(given[120:])
        frame = shown(source.stream(spark, delay_ms=10))
        run(frame, checkpoint, finished)
        streamed = [*finished.rows, *frame.flush(str(checkpoint)).collect()]
        events = source.bounded(spark).coalesce(1)
        bounded = shown(events).collect()
    in_memory = suppress(matchMany(RULES, events.toArrow(), "time", "kind"), PERIOD).to_pylist()

    assert len(bounded) == len(last(bounded)) > 50
    assert sum(row.suppressed for row in bounded) > 20
    assert {row.rule for row in bounded} == {*RULES}
    assert last(streamed) == last(bounded)
    assert {row["matchId"]: row["suppressed"] for row in in_memory} == {
        row.matchId: row.suppressed for row in bounded
    }


def test_keys(spark: SparkSession) -> None:
    """The key is the rule's, or columns, fields and expressions; without one, rules have one each."""
    events = spark.createDataFrame(
        [(at, f"u{at % 2}", f"h{at % 3}") for at in range(12)],
        "at bigint, user string, host string",
    )
    every = Pattern.begin("a").where("at >= 0")
    rules = {"one": Rule("one", every, ("user", "host")), "two": every}
    alerts = CEP.patterns(events, rules, "at").toDF()

    def counts(**key: Any) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row in CEP.suppress(alerts, "1 minute", **key).orderBy("matchTimestamp").collect():
            found.setdefault(row.rule, []).append(row.suppressed)
        return found

    assert counts() == {"one": [1] * 6, "two": [11]}
    assert counts(key=[]) == {"one": [11], "two": [11]}
    user = {"one": [5, 5], "two": [11]}
    assert counts(key=F.col("key")["user"].alias("user")) == user
    if engine_of(spark) is SPARK:  # Sail does not read maps so
        assert counts(key="key.user") == user
    assert counts(key=["rule", "matchTimestamp"]) == {"one": [0] * 12, "two": [0] * 12}


def test_alerts_of_a_pattern(spark: SparkSession) -> None:
    """Alerts are any rows with a time; those of one time are in order of a hash, however they lie."""
    events = spark.createDataFrame(
        [("ann", at // 4, at) for at in range(20)], "user string, ts bigint, id int"
    )
    found = CEP.pattern(keyBy(events, "user"), Pattern.begin("a")).inEventTime("ts").toDF()
    named = found.select("user", "matchTimestamp", matchId("user", "a").alias("id"))
    first = CEP.suppress(named, "2 ms", key="user").orderBy("matchTimestamp").collect()
    again = CEP.suppress(named.orderBy("id").repartition(3), "2 ms", key="user")
    assert [(row.matchTimestamp, row.suppressed) for row in first] == [(0, 7), (2, 7), (4, 3)]
    assert again.orderBy("matchTimestamp").collect() == first


def test_what_is_refused(spark: SparkSession) -> None:
    """A bad period, and a missing or wrong column, each by name."""
    alerts = spark.createDataFrame([], "rule string, user string, at timestamp, n string")
    with pytest.raises(InvalidArgumentError, match="at least a millisecond"):
        CEP.suppress(alerts, Time.seconds(-1), "user", "at")
    with pytest.raises(InvalidArgumentError, match="period: expected a timedelta or a text"):
        CEP.suppress(alerts, "soon", "user", "at")
    with pytest.raises(InvalidArgumentError, match="no column 'key'"):
        CEP.suppress(alerts, "1 minute", timestamp="at")
    with pytest.raises(InvalidArgumentError, match="names of columns as key, got 1"):
        CEP.suppress(alerts, "1 minute", [1], "at")  # type: ignore[list-item]
    with pytest.raises(InputError, match="suppress: key column 'usr'") as raised:
        CEP.suppress(alerts, "1 minute", "usr", "at")
    assert "user" in str(raised.value.hint)
    with pytest.raises(InputError, match="suppress: time column 'matchTimestamp'"):
        CEP.suppress(alerts, "1 minute", "user")
    with pytest.raises(InputError, match="time column 'n': expected timestamp"):
        CEP.suppress(alerts, "1 minute", "user", "n")
    with pytest.raises(InputError, match="have a column 'suppressed'"):
        CEP.suppress(alerts.withColumnRenamed("n", "suppressed"), "1 minute", "user", "at")


def test_a_stream_without_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    """It is refused: no alert would ever come."""
    stream = FileSource(tmp_path / "in").raw(spark).withColumn("at", F.timestamp_millis("ts"))
    with pytest.raises(InputError, match="no watermark on the stream"):
        CEP.suppress(stream, "1 minute", "user", "at")


def test_a_stream_of_changing_rules(spark: SparkSession, tmp_path: Path) -> None:
    """How far behind the watermark its alerts are is not known, and has to be said."""
    log = RuleLog(tmp_path / "log")
    log.publish([Rule("a", Pattern.begin("a").where("name = 'a'"), ("user",))])
    stream = FileSource(tmp_path / "in").stream(spark)
    alerts = CEP.dynamicPatterns(stream, log, "time").toDF()
    with pytest.raises(NotSupportedError, match="may be any time behind the watermark"):
        CEP.suppress(alerts, PERIOD)
    timed = alerts.withEventTime("matchTimestamp", timedelta(0))
    assert CEP.suppress(timed, PERIOD).columns == [*alerts.columns, "suppressed"]
