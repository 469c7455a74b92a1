# SPDX-License-Identifier: Apache-2.0
"""The id of a match is that of its events: on tables and streams, and after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, Pattern, keyBy, matchId
from pyflinkcep.errors import InvalidArgumentError
from tests.spark.streams import FileSource, run
from tests.spark.support import configured

pytestmark = pytest.mark.usefixtures("one_task")

PATTERN = Pattern.begin("a").where("name = 'a'").oneOrMore().followedBy("b").where("name = 'b'")
FILES = [
    [("ann", 1_000, "a", 1), ("bob", 1_001, "a", 2)],
    [("ann", 1_500, "a", 3), ("bob", 1_600, "b", 4)],
    [("ann", 1_700, "b", 5), ("cid", 1_800, "a", 6)],
    [("cid", 1_801, "b", 7), ("ann", 9_000, "x", 8)],
    [("bob", 19_000, "x", 9)],
]


def ids(events: DataFrame) -> DataFrame:
    """Return the matches with their ids."""
    found = CEP.pattern(keyBy(events, "user"), PATTERN, keyGroups=2).inEventTime("time").toDF()
    return found.select("user", F.col("a.id"), matchId("user", "a", "b").alias("match"))


def test_one_id_on_a_table_on_a_stream_and_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """However the events are cut into micro-batches, and in whatever time zone a session is."""
    source = FileSource(tmp_path / "events")
    source.add(*FILES[:2])
    finished = run(ids(source.stream(spark)), tmp_path / "checkpoint")
    source.add(*FILES[2:])
    with configured(spark, {"spark.sql.session.timeZone": "Asia/Kathmandu"}):
        run(ids(source.stream(spark)), tmp_path / "checkpoint", finished)
    bounded = sorted(map(tuple, ids(source.bounded(spark)).collect()))
    at_once = run(ids(source.stream(spark, files_per_trigger=9)), tmp_path / "another")

    assert sorted(map(tuple, finished.rows)) == bounded
    assert sorted(map(tuple, at_once.rows)) == bounded
    assert len({match for _, _, match in bounded}) == len(bounded) == 5


def test_ids_tell_apart_what_differs_in_a_microsecond_a_null_or_a_key(spark: SparkSession) -> None:
    """A microsecond, a null, a key or an element of an array is enough for another id."""
    rows = spark.sql(
        "SELECT * FROM VALUES (1, TIMESTAMP'2024-01-01 00:00:00.000001', 'x', array(1)), "
        "(1, TIMESTAMP'2024-01-01 00:00:00.000002', 'x', array(1)), "
        "(1, TIMESTAMP'2024-01-01 00:00:00.000002', NULL, array(1)), "
        "(2, TIMESTAMP'2024-01-01 00:00:00.000002', NULL, array(1)), "
        "(2, TIMESTAMP'2024-01-01 00:00:00.000002', NULL, array(1, NULL)), "
        "(2, TIMESTAMP'2024-01-01 00:00:00.000002', 'NULL', array(1, NULL)) AS t(k, ts, s, xs)"
    )
    own = rows.select(matchId("k", "ts", "s", "xs").alias("id"), F.expr("ts::timestamp_ntz n"))
    assert own.select("id").distinct().count() == 6
    assert own.select(matchId("n").alias("id")).distinct().count() == 2


@pytest.mark.parametrize("columns", [(), (1,), ("user", None), (["user"],)])
def test_what_is_no_name_of_a_column_is_refused(columns: Any) -> None:
    """It takes names of columns, at least one."""
    with pytest.raises(InvalidArgumentError, match="names of columns") as raised:
        matchId(*columns)
    assert raised.value.hint
