# SPDX-License-Identifier: Apache-2.0
"""Spark batch gives Flink's recorded answers, and the operator harness's on random patterns."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import attrs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import (
    CEP,
    OutputTag,
    Pattern,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
    keyBy,
)
from pyflinkcep.testing import OperatorTestHarness
from tests.conformance.bounded_cases import (
    at_the_end_of_input,
    has_windows,
    in_time,
    runs_on_spark,
    sql_condition,
    timeless_cases,
)
from tests.conformance.cases import Case, build_pattern, by_key, expected_rows, load, match_ids
from tests.conformance.covering import covering, features
from tests.property.strategies import Event, PatternSpec, patterns, timed_events
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured, in_one_task

COLUMNS = "case string, key string, ts bigint, id int, name string, price double"
ROW = "key string, ts bigint, match string"
TIMEOUTS = OutputTag("timeouts", ROW)


class Everything(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Gives each match and each timeout as a row of text."""

    outputTags = (TIMEOUTS,)

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        """Return the match."""
        out.collect(self._row(match, ctx))

    def processTimedOutMatch(self, match: Any, ctx: Any) -> None:
        """Return the timeout."""
        ctx.output(TIMEOUTS, self._row(match, ctx))

    def _row(self, match: Any, ctx: Any) -> tuple[Any, ...]:
        key = next(iter(match.values()))[0].key
        return (key, ctx.timestamp(), json.dumps(match_ids(match)))


@attrs.frozen
class Job:
    """A pattern, and its events as (case, key, ts, id, name, price) in order of arrival."""

    name: str
    pattern: Pattern
    rows: list[tuple[Any, ...]]
    keyed: bool = True


def run_as_one_job(spark: SparkSession, jobs: list[Job]) -> dict[str, dict[str, Any]]:
    """Return the matches and timeouts of each job by key, all of them from one Spark job."""
    table = spark.createDataFrame([row for job in jobs for row in job.rows], COLUMNS)
    outputs = []
    for job in jobs:
        own = table.where(F.col("case") == job.name)
        stream = CEP.pattern(keyBy(own, "key") if job.keyed else own, job.pattern)
        everything = stream.inEventTime("ts").process(Everything(), ROW).tagged()
        row = F.coalesce(F.col("main"), F.col("timeouts"))
        outputs.append(everything.select(F.lit(job.name).alias("case"), "tag", row.alias("row")))
    found: dict[str, Any] = {job.name: {"main": [], "timeouts": []} for job in jobs}
    with configured(spark, QUICK_FOR_MANY_PLANS):
        rows = in_one_task(reduce(DataFrame.union, outputs)).collect()
    for case, tag, (key, ts, match) in rows:
        found[case][tag].append((key, ts, json.loads(match)))
    return {
        name: {tag: by_key(rows) for tag, rows in answer.items()} for name, answer in found.items()
    }


# --- recorded cases


def job_of(case: Case, rows: list[Case]) -> Job:
    """Return the job of a recorded case."""
    keyed = case.get("keyed", False)
    return Job(
        case["id"],
        build_pattern(case, sql_condition),
        [
            (case["id"], row["key"] if keyed else None, row["ts"], row["id"], row["name"],
             float(row.get("price", 0)))
            for row in rows
        ],
        keyed,
    )  # fmt: skip


def test_recorded_cases_of_one_key(spark: SparkSession) -> None:
    """The matches and their order are the recorded ones of Flink's automaton."""
    cases = covering([case for case in timeless_cases() if case["expect"]["matches"]], 16)
    answers = run_as_one_job(spark, [job_of(case, case["events"]) for case in cases])
    actual = {
        case["id"]: [match for _, match in answers[case["id"]]["main"].get(None, [])]
        for case in cases
    }

    assert len(set().union(*map(features, cases))) >= 110
    assert actual == {case["id"]: [m["match"] for m in case["expect"]["matches"]] for case in cases}


def test_recorded_cases_of_many_keys(spark: SparkSession) -> None:
    """Without late events: what the operator gives at the end of input; without windows, Flink's."""
    cases = [case for case in load("operator_cases") if runs_on_spark(case) and case["keyed"]]
    plain = [case for case in cases if not has_windows(case) and expected_rows(case, "match")]
    plain = covering(plain, 6)
    cases = [*plain, *covering([*filter(has_windows, cases)], 12)]
    inputs = {case["id"]: in_time(case) for case in cases}
    answers = run_as_one_job(spark, [job_of(case, inputs[case["id"]]) for case in cases])
    expected = {case["id"]: at_the_end_of_input(case, inputs[case["id"]]) for case in cases}
    recorded = {case["id"]: expected_rows(case, "match") for case in plain}

    assert len(set().union(*map(features, cases))) >= 110
    assert answers == expected
    assert all(recorded.values())
    assert {name: answers[name]["main"] for name in recorded} == recorded


# --- random ones


def random_examples(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Return examples of a strategy, so that one job can do for all of them."""
    found: list[Any] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: Any) -> None:
        found.append(example)

    collect()
    return found


@st.composite
def keyed_inputs(draw: st.DrawFn) -> tuple[PatternSpec, list[tuple[str, Event, int]]]:
    """Return a pattern, and (key, event, time) of a few keys in any order."""
    spec = draw(patterns())
    inputs = draw(st.lists(timed_events(), min_size=1, max_size=3))
    rows = [(f"k{number}", *row) for number, timed in enumerate(inputs) for row in timed]
    return spec, draw(st.permutations(rows))


def test_random_patterns_on_keyed_data(spark: SparkSession) -> None:
    """Whatever the pattern, skip strategy and window, Spark gives what the operator gives."""
    jobs, expected = [], {}
    for number, (spec, arrivals) in enumerate(random_examples(keyed_inputs(), 12)):
        jobs.append(_random_job(str(number), spec, arrivals))
        expected[str(number)] = _harness_answer(spec, arrivals)
    answers = run_as_one_job(spark, jobs)

    assert answers == expected
    assert sum(map(bool, (answer["main"] for answer in answers.values()))) >= 3
    assert sum(map(bool, (answer["timeouts"] for answer in answers.values()))) >= 2


def _random_job(name: str, spec: PatternSpec, arrivals: list[tuple[str, Event, int]]) -> Job:
    rows = [
        (name, key, ts, event.number, event.name, float(event.price)) for key, event, ts in arrivals
    ]
    pattern = spec.build(lambda names: f"name IN {(*sorted(names), '')}")
    return Job(name, pattern, rows)


def _harness_answer(spec: PatternSpec, arrivals: list[tuple[str, Event, int]]) -> dict[str, Any]:
    harness = OperatorTestHarness(spec.build(), timeoutHandling=True)
    for key, event, ts in arrivals:
        harness.processElement(event, ts, key)
    harness.close()
    return {
        "main": by_key((key, ts, _numbers(match)) for key, ts, match in harness.matches),
        "timeouts": by_key((key, ts, _numbers(match)) for key, ts, match in harness.timeouts),
    }


def _numbers(match: Any) -> list[list[Any]]:
    return [[stage, *(event.number for event in found)] for stage, found in match.items()]
