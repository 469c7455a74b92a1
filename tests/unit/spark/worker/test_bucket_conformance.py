# SPDX-License-Identifier: Apache-2.0
"""A stream's bucket gives the answers that Apache Flink CEP 2.3.0 gave, watermark by watermark."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.testing import OperatorTestHarness
from pyflinkcep.time import MIN_WATERMARK
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
from tests.property.strategies import Event, PatternSpec, patterns, timed_events
from tests.unit.spark.worker.buckets import Bucket, pushed_down

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_path")]


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


def test_operator_cases() -> None:
    """Matches, timeouts and late events are Flink's, with state as bytes between all batches."""
    assert disagreements(enough(load("operator_cases")), check_bucket) == {}


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


# --- a stream's bucket gives what the operator harness gives, whatever the pattern and the batches


Batch = tuple[list[tuple[str, Event, int]], int]


@st.composite
def micro_batches(draw: st.DrawFn) -> list[Batch]:
    """Return micro-batches of some keys' events in any order, each with its watermark."""
    arrivals = [
        (f"k{key}", event, ts)
        for key in range(draw(st.integers(1, 3)))
        for event, ts in draw(timed_events())
    ]
    arrivals = draw(st.permutations(sorted(arrivals, key=lambda row: row[2])[:20]))
    found, watermark = [], 0
    while arrivals:
        size = draw(st.integers(1, len(arrivals)))
        found.append((arrivals[:size], watermark))
        arrivals = arrivals[size:]
        watermark += draw(st.integers(0, 5))
    return found


@given(patterns(), micro_batches())
def test_a_bucket_gives_what_the_operator_gives(spec: PatternSpec, batches: list[Batch]) -> None:
    """Matches, timeouts and late events are the same, and in the same order for each key."""
    bucket = Bucket(spec.build(), key_groups=2)
    harness = OperatorTestHarness(spec.build(), timeoutHandling=True, lateDataOutput=True)
    for rows, watermark in batches:
        harness.processWatermark(watermark)
        for key, event, ts in rows:
            harness.processElement(event, ts, key)
        bucket.batch(_rows(rows), watermark)
    _check(bucket, harness)


@given(patterns(), micro_batches(), st.integers(0, 6), st.sampled_from(["same", "ahead", "behind"]))
def test_the_watermark_moves_within_the_micro_batch(
    spec: PatternSpec, batches: list[Batch], delay_ms: int, spark_is: str
) -> None:
    """
    The answers are those of an operator whose source sends its watermark after each batch.

    Spark's own watermark may be ahead, because of events that a filter drops before the pattern,
    or behind, because of another watermark in the query.
    """
    bucket = Bucket(spec.build(), key_groups=2, delay_ms=delay_ms)
    harness = OperatorTestHarness(spec.build(), timeoutHandling=True, lateDataOutput=True)
    latest = MIN_WATERMARK
    for rows, other in batches:
        if spark_is == "same" and latest != MIN_WATERMARK:
            other = latest - delay_ms
        spark = MIN_WATERMARK if spark_is == "behind" else other
        harness.processWatermark(max(spark, bucket.watermark))
        for key, event, ts in rows:
            harness.processElement(event, ts, key)
        latest = max(latest, *(ts for _, _, ts in rows))
        harness.processWatermark(latest - delay_ms)
        bucket.batch(_rows(rows), spark)
    _check(bucket, harness)


def _rows(rows: list[tuple[str, Event, int]]) -> list[dict[str, Any]]:
    return [
        {"key": key, "ts": ts, "id": event.number, "name": event.name, "price": float(event.price)}
        for key, event, ts in rows
    ]


def _check(bucket: Bucket, harness: OperatorTestHarness) -> None:
    """Compare all results, after the final watermark."""
    harness.close()
    bucket.close()
    assert by_key(bucket.matches) == _answer(harness.matches)
    assert by_key(bucket.timeouts) == _answer(harness.timeouts)
    assert by_key(bucket.late) == by_key((key, event.number) for key, event in harness.lateData)


def _answer(found: list[Any]) -> dict[Any, list[Any]]:
    return by_key(
        (key, ts, [[stage, *(event.number for event in events)] for stage, events in match.items()])
        for key, ts, match in found
    )
