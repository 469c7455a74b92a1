# SPDX-License-Identifier: Apache-2.0
"""Every recorded answer to a bounded job, on Sail; the suite runs a sample of them on Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP
from tests.conformance.bounded_cases import (
    at_the_end_of_input,
    in_time,
    runs_on_spark,
    timeless_cases,
)
from tests.conformance.cases import Case, load
from tests.conformance.sql_cases import flink_cases, problems, standard_cases
from tests.spark.test_batch_conformance import job_of, run_as_one_job
from tests.spark.test_sql import case_frame

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("PYFLINKCEP_TEST_ENGINE") != "sail",
        reason="runs on Sail alone, with python -m tests.sail",
    ),
]

_AT_ONE_TIME = 40


def parts(cases: Sequence[Case]) -> list[Sequence[Case]]:
    """Cut cases into jobs of some."""
    return [cases[at : at + _AT_ONE_TIME] for at in range(0, len(cases), _AT_ONE_TIME)]


def in_any_order(answer: Any) -> dict[str, dict[str, list[str]]]:
    """Return matches and timeouts by key, in an order of their own: Sail's rows have none."""
    return {
        tag: {key: sorted(map(json.dumps, rows)) for key, rows in by_key.items()}
        for tag, by_key in answer.items()
    }


@pytest.mark.parametrize("cases", [flink_cases(), standard_cases()], ids=["flink", "standard"])
def test_clauses(spark: SparkSession, cases: tuple[Case, ...]) -> None:
    """Bounded statements give the recorded rows or errors, in both dialects."""

    def answer(case: Case) -> tuple[list[str], list[Any]]:
        case_frame(spark, case).createOrReplaceTempView("events")
        result = CEP.sql(spark, case["sql"], dialect=case.get("dialect", "flink"))
        return result.columns, [list(row) for row in result.collect()]

    bounded = [case for case in cases if case["mode"] == "batch"]

    assert len(bounded) > 250
    assert problems(bounded, answer) == {}


def test_patterns_of_one_key(spark: SparkSession) -> None:
    """The matches are the recorded ones of Flink's automaton."""
    for cases in parts(timeless_cases()):
        answers = run_as_one_job(spark, [job_of(case, case["events"]) for case in cases])
        for case in cases:
            found = [json.dumps(match) for _, match in answers[case["id"]]["main"].get(None, [])]
            recorded = [json.dumps(m["match"]) for m in case["expect"]["matches"]]
            assert sorted(found) == sorted(recorded), case["id"]


def test_patterns_of_many_keys(spark: SparkSession) -> None:
    """The matches and timeouts are those of Flink's operator at the end of input."""
    keyed = [case for case in load("operator_cases") if runs_on_spark(case) and case["keyed"]]
    for cases in parts(keyed):
        inputs = {case["id"]: in_time(case) for case in cases}
        answers = run_as_one_job(spark, [job_of(case, inputs[case["id"]]) for case in cases])
        for case in cases:
            expected = at_the_end_of_input(case, inputs[case["id"]])
            assert in_any_order(answers[case["id"]]) == in_any_order(expected), case["id"]
