# SPDX-License-Identifier: Apache-2.0
"""MATCH_RECOGNIZE beside the same pattern in the fluent API, and beside Flink SQL."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep import CEP, AfterMatchSkipStrategy, Pattern, keyBy
from tests.benchmark.events import EventSource
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory
from tests.benchmark.session import answer_columns
from tests.benchmark.workloads import seconds


@attrs.frozen
class Clause:
    """A workload in SQL, as Flink SQL and we read it."""

    name: str  # what reports call it
    # What stands between the parentheses; its measure ``times`` adds up the match's times.
    clause: str
    pattern: Callable[[], Pattern] | None = None  # makes the same pattern in the fluent API
    dialect: str = "flink"  # whose meaning the clause has

    @property
    def query(self) -> str:
        """Return the query of the times of all matches."""
        return f"SELECT times FROM events MATCH_RECOGNIZE ({self.clause}) AS m"


def _begin() -> Pattern:
    return Pattern.begin("A", AfterMatchSkipStrategy.skipToNext())


def _strict() -> Pattern:
    pattern = _begin().where("type = 0").next("B").where("type = 1").next("C")
    return pattern.where("type = 2").within(seconds(900))


def _kleene() -> Pattern:
    loop = _begin().where("type = 0").next("B").where("type = 1").oneOrMore().consecutive()
    return loop.greedy().next("C").where("type = 2").within(seconds(20))


def _stock() -> Pattern:
    above = "price > (sum(match.price) + price) / (count(match) + 1)"
    up = _begin().where("volume > 1900").next("UP").where(above).oneOrMore().consecutive()
    return up.greedy().next("B").where("volume < 0.8 * last(UP.volume)").within(seconds(20))


_KEYED = "PARTITION BY `key` ORDER BY ts"

CLAUSES = (
    Clause(
        "strict",
        f"""{_KEYED} MEASURES A.t + B.t + C.t AS times
        PATTERN (A B C) WITHIN INTERVAL '15' MINUTE
        DEFINE A AS `type` = 0, B AS `type` = 1, C AS `type` = 2""",
        _strict,
    ),
    Clause(
        "kleene",
        f"""{_KEYED} MEASURES A.t + SUM(B.t) + C.t AS times
        PATTERN (A B+ C) WITHIN INTERVAL '20' SECOND
        DEFINE A AS `type` = 0, B AS `type` = 1, C AS `type` = 2""",
        _kleene,
    ),
    Clause(
        "stock",
        f"""{_KEYED} MEASURES A.t + SUM(UP.t) + B.t AS times
        PATTERN (A UP+ B) WITHIN INTERVAL '20' SECOND
        DEFINE A AS volume > 1900, UP AS price > AVG(price), B AS volume < 0.8 * LAST(UP.volume)""",
        _stock,
    ),
)
"""The workloads that SQL can say; contiguity is strict in SQL."""

LOOP = Clause(
    "loop",
    f"""{_KEYED} MEASURES S.t + SUM(A.t) + B.t AS times PATTERN (S A+ B)
    DEFINE S AS `type` = 0, A AS `type` = 2 AND SUM(A.volume) >= 0 AND COUNT(A.volume) > 0,
    B AS `type` = 1""",
)
"""A loop whose condition looks at all of it, for events of one key."""

KEYED = (
    Clause(
        "rising, standard",
        f"""{_KEYED} MEASURES COUNT(*) AS times PATTERN (S UP+ DOWN)
        DEFINE UP AS price > PREV(price), DOWN AS price < PREV(price)""",
        dialect="standard",
    ),
    Clause(
        "stock, standard",
        f"""{_KEYED} MEASURES COUNT(*) AS times PATTERN (S UP+ DOWN)
        DEFINE S AS volume > 1900, UP AS price > AVG(price) AND COUNT(UP.t) < 20,
        DOWN AS volume < 0.8 * LAST(UP.volume)""",
        dialect="standard",
    ),
)
"""The standard's meaning for many keys: conditions over places, and over the match."""

HARD = (
    Clause(
        "A* B without B",
        "ORDER BY ts MEASURES COUNT(*) AS times PATTERN (A* B) DEFINE A AS price >= 0, B AS FALSE",
        dialect="standard",
    ),
    Clause(
        "(A+)+ B without B",
        "ORDER BY ts MEASURES COUNT(*) AS times PATTERN ((A+)+ B) "
        "DEFINE A AS price >= 0, B AS FALSE",
        dialect="standard",
    ),
)
"""What a matcher that goes back without remembering takes quadratic or exponential time for."""


def measure_clause(
    events: DataFrame, source: EventSource, keys: int, clause: Clause
) -> Measurement:
    """Run a clause."""

    def job() -> DataFrame:
        events.withColumn("t", F.unix_millis("ts")).createOrReplaceTempView("events")
        matches = CEP.sql(events.sparkSession, clause.query, dialect=clause.dialect)
        total = F.coalesce(F.sum("times"), F.lit(0)).alias("checksum")
        return matches.agg(F.count(F.lit(1)).alias("matches"), total)

    return _measure(job, "sql", clause, source, keys)


def measure_pattern(
    events: DataFrame, source: EventSource, keys: int, clause: Clause
) -> Measurement:
    """Run the same pattern, built with the fluent API."""

    def job() -> DataFrame:
        assert clause.pattern is not None
        stream = CEP.pattern(keyBy(events, "key"), clause.pattern())
        matches = stream.inEventTime("ts").toDF()
        return matches.agg(*answer_columns(matches))

    return _measure(job, "pattern", clause, source, keys)


def _measure(
    job: Callable[[], DataFrame], engine: str, clause: Clause, source: EventSource, keys: int
) -> Measurement:
    with PeakMemory() as memory:
        begin = time.perf_counter()
        row = job().collect()[0]
        taken = time.perf_counter() - begin
    return Measurement(
        engine=engine,
        workload=f"sql {clause.name}",
        variant="",
        source=source.name,
        events=source.events,
        keys=keys,
        seconds=taken,
        matches=row["matches"],
        checksum=row["checksum"],
        details={"peak_mib": memory.peaks},
    )
