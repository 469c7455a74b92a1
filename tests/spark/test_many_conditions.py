# SPDX-License-Identifier: Apache-2.0
"""More conditions than one number has bits: the same answers as with a few, wherever they run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, InputError, Pattern, keyBy
from pyflinkcep.testing import OperatorTestHarness
from tests.spark.streams import FileSource, run
from tests.spark.support import configured, ids, on

pytestmark = pytest.mark.usefixtures("compiled_plans")

SCHEMA = "user string, ts bigint, n int"
STAGES = 130


def chain(condition: Any, stages: int = STAGES) -> Pattern:
    """Return a pattern of stages that follow each other, each with a condition of its own."""
    pattern: Any = Pattern.begin("s0").where(condition(0))
    for number in range(1, stages):
        pattern = pattern.followedBy(f"s{number}").where(condition(number))
    result: Pattern = pattern
    return result


def rows(stages: int) -> list[tuple[str, int, int]]:
    """Return events of two users: all that they need with others between, and one missing."""
    needed = [number for number in range(stages) for _ in range(1 + (number in (0, 62, 63, 126)))]
    wanted = [number for each in needed for number in (each, -1)]
    u = [("u", 2 * at, number) for at, number in enumerate(wanted)]
    v = [("v", 2 * at + 1, number) for at, number in enumerate(wanted) if number != 64]
    return sorted([*u, *v], key=lambda row: row[1])


def expected(stages: int = STAGES) -> list[str]:
    """Return what the harness gives for conditions in Python."""
    pattern = chain(lambda number: lambda event: event.n == number, stages)
    harness = OperatorTestHarness(pattern)
    for user, ts, n in rows(stages):
        harness.processElement(Row(user=user, ts=ts, n=n), ts, user)
    harness.close()
    return sorted(ids(match) for _, _, match in harness.matches)


def test_bounded(spark: SparkSession) -> None:
    """Columns and SQL, by turns, give what the harness gives."""
    table = spark.createDataFrame(rows(STAGES), SCHEMA)
    pattern = chain(lambda number: F.col("n") == number if number % 2 else f"n = {number}")

    found = on(table, pattern, "user").select(ids, "text string").collect()

    assert sorted(row.text for row in found) == expected()


def test_python_columns(spark: SparkSession) -> None:
    """Where conditions are costly, events are dropped by their answers, all words of them."""
    is_last = F.udf(lambda n: n == STAGES - 1, "boolean")
    pattern = chain(lambda number: F.col("n") == number if number < STAGES - 1 else is_last("n"))
    table = spark.createDataFrame(rows(STAGES), SCHEMA)

    found = on(table, pattern, "user").select(ids, "text string")

    assert sorted(row.text for row in found.collect()) == expected()


def test_200_stages_in_python(spark: SparkSession) -> None:
    """Conditions that Spark does not see are not bound by words either."""
    table = spark.createDataFrame(rows(200), SCHEMA)
    pattern = chain(lambda number: lambda event: event.n == number, 200)

    found = on(table, pattern, "user").select(ids, "text string").collect()

    assert sorted(row.text for row in found) == expected(200)


def test_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Events that wait between micro-batches keep all their answers."""
    source, all_rows = FileSource(tmp_path / "source", SCHEMA), rows(STAGES)
    half = len(all_rows) // 2
    source.add(all_rows[:half], all_rows[half:])
    stream = keyBy(source.stream(spark, delay_ms=300), "user")

    pattern = CEP.pattern(stream, chain(lambda number: F.col("n") == number)).inEventTime("time")
    result = pattern.select(ids, "text string")
    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        finished = run(result, tmp_path / "checkpoint")
        rest = result.flush(str(tmp_path / "checkpoint")).collect()

    assert rest
    assert sorted(row.text for row in [*finished.rows, *rest]) == expected()


def test_mistakes_are_named(spark: SparkSession) -> None:
    """A wrong condition is refused as any other is, wherever it stands."""
    events = spark.range(3).selectExpr("id ts", "id n")
    pattern = chain(lambda number: f"n = {number}" if number < STAGES - 1 else "m = 1")

    with pytest.raises(InputError, match="'m = 1' cannot be evaluated"):
        on(events, pattern).toDF()
