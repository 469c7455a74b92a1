# SPDX-License-Identifier: Apache-2.0
"""A stream's bucket gives the answers that Apache Flink CEP 2.3.0 gave, watermark by watermark."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance.cases import (
    Case,
    build_pattern,
    by_key,
    difference,
    error_difference,
    expected_rows,
    load,
)
from tests.conformance.covering import enough
from tests.conformance.drivers import disagreements
from tests.unit.spark.worker.buckets import Bucket, pushed_down

pytestmark = pytest.mark.usefixtures("each_path")


def rows_for_subtypes(case: Case) -> Case:
    """Return a case whose ``subtype`` stages look at a column, since Rows have no subclasses."""
    case = copy.deepcopy(case)
    stages = list(case["pattern"])
    for stage in stages:
        stages += stage.get("group", ())
        stage["mods"] = [
            ["where", ["sub"]] if mod[0] == "subtype" else mod for mod in stage.get("mods", ())
        ]
    return case


def condition(spec: Any) -> Any:
    """Return a condition; those of one event are answered before the bucket, as Spark does."""
    return (lambda event: event.sub) if spec == ["sub"] else pushed_down(spec)


def check_bucket(case: Case, filtered: bool = False) -> str | None:
    """Return how a bucket's answer differs from Flink's; None when it does not."""
    bucket: Any = None
    error: Exception | None = None
    keyed = case["keyed"]
    try:
        pattern = build_pattern(rows_for_subtypes(case), condition)
        bucket = Bucket(pattern, case["timeouts"], keyed, filtered=filtered)
        waiting: list[Any] = []
        for item in case["items"]:
            if "wm" in item:
                bucket.batch(waiting)
                bucket.batch([], item["wm"])
                waiting = []
            else:
                waiting.append({**item, "key": item["key"] if keyed else None})
        bucket.batch(waiting)
        bucket.close()
    except Exception as raised:
        error = raised
    problem = error_difference(error, case["expect"].get("error"))
    if problem is not None or error is not None:
        return problem
    actual = {
        "match": by_key(bucket.matches),
        "timeout": by_key(bucket.timeouts),
        "late": by_key(bucket.late) if case["lateOutput"] else {},
    }
    if filtered and case["lateOutput"]:
        expected = expected_rows(case, "late")
        del actual["late"]
        if bucket.late_count != sum(map(len, expected.values())):
            return f"{bucket.late_count} late events, expected {expected}"
    problems = (difference(kind, actual[kind], expected_rows(case, kind)) for kind in actual)
    return next((problem for problem in problems if problem is not None), None)


@pytest.mark.parametrize("part", range(8))
def test_operator_cases(part: int) -> None:
    """Matches, timeouts and late events are Flink's, with state as bytes between all batches."""
    assert disagreements(enough(load("operator_cases"))[part::8], check_bucket) == {}


@pytest.mark.parametrize("kind", ["match", "timeout", "late"])
def test_a_wrong_expectation_is_noticed(kind: str) -> None:
    """A result that Flink did not give makes its case fail."""
    case = copy.deepcopy(
        next(
            case
            for case in load("operator_cases")
            if any(row["kind"] == kind for row in case["expect"].get("out", ()))
        )
    )
    rows = case["expect"]["out"]
    rows.remove(next(row for row in rows if row["kind"] == kind))

    assert list(disagreements([case], check_bucket)) == [case["id"]]
