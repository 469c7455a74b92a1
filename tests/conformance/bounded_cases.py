# SPDX-License-Identifier: Apache-2.0
"""Recorded cases as jobs on bounded input have them: all events first, then the end of input."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pyflinkcep.testing import OperatorTestHarness
from pyflinkcep.time import MIN_WATERMARK
from tests.conformance.cases import (
    Case,
    Spec,
    build_pattern,
    by_key,
    is_iterative,
    load,
    make_event,
    match_ids,
    python_condition,
)


def runs_on_spark(case: Case) -> bool:
    """Whether a case ends without an error and does without Java's subclasses."""
    return "error" not in case["expect"] and '"subtype"' not in json.dumps(case["pattern"])


def has_windows(case: Case) -> bool:
    """Whether time itself changes the answer, and so the recorded watermarks do."""
    return "within" in str(case["pattern"])


@cache
def timeless_cases() -> tuple[Case, ...]:
    """Return recorded cases of one key whose answer does not depend on how time passes."""
    return tuple(
        case
        for case in (*load("flink_itcases"), *load("nfa_cases"))
        if runs_on_spark(case) and "within" not in str(case) and _has_events_in_order(case)
    )


def _has_events_in_order(case: Case) -> bool:
    times = [row["ts"] for row in case["events"]]
    return all("id" in row for row in case["events"]) and times == sorted(times)


def in_time(case: Case) -> list[Case]:
    """Return the events of a case that are not late, in order of arrival."""
    watermark, rows = MIN_WATERMARK, []
    for row in case["items"]:
        watermark = max(watermark, row.get("wm", watermark))
        if row.get("ts", watermark) > watermark:
            rows.append(row)
    return rows


def at_the_end_of_input(case: Case, rows: list[Case]) -> dict[str, Any]:
    """Return the operator's matches and timeouts, by key, if no time passes before the end."""
    harness = OperatorTestHarness(build_pattern(case), timeoutHandling=True)
    for row in rows:
        harness.processElement(make_event(row), row["ts"], row["key"] if case["keyed"] else None)
    harness.close()
    return {
        "main": by_key((key, ts, match_ids(m)) for key, ts, m in harness.matches),
        "timeouts": by_key((key, ts, match_ids(m)) for key, ts, m in harness.timeouts),
    }


def sql_condition(spec: Spec) -> Any:
    """Return a condition as SQL where it can be one, so that a pattern mixes SQL and Python."""
    return python_condition(spec) if is_iterative(spec) else _sql(spec)


def _sql(spec: Spec) -> str:
    operator, *arguments = spec
    match operator:
        case "and" | "or":
            return "(" + f" {operator} ".join(map(_sql, arguments)) + ")"
        case "not":
            return f"not {_sql(arguments[0])}"
        case "bits":
            ones = [at for at, bit in enumerate(arguments[0], 1) if bit == "1"]
            return f"id in ({', '.join(map(str, ones))})" if ones else "false"
        case "name":
            return f"name = '{arguments[0]}'"
        case "ge" | "lt":
            return f"price {'>=' if operator == 'ge' else '<'} {arguments[0]}"
    return str(operator)
