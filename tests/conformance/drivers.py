# SPDX-License-Identifier: Apache-2.0
"""Runs recorded cases through the harnesses and says where the answers differ from Flink's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyflinkcep.testing import NFATestHarness, OperatorTestHarness
from tests.conformance.cases import (
    Case,
    build_pattern,
    by_key,
    difference,
    error_difference,
    expected_rows,
    make_event,
    match_ids,
)

Check = Callable[[Case], str | None]


def disagreements(cases: Iterable[Case], check: Check) -> dict[str, str]:
    """Return case id → difference, for the cases that differ."""
    answers = {case["id"]: check(case) for case in cases}
    return {name: problem for name, problem in answers.items() if problem is not None}


def nfa_answers(harness: Any, rows: Iterable[tuple[int, Any]]) -> tuple[list[Any], list[Any]]:
    """Return matches and timeouts as recorded answers have them; rows come with their places."""
    matches: list[Any] = []
    timeouts: list[Any] = []
    for at, row in rows:
        pending, expired = harness.advanceTime(row["ts"])
        matches += [{"at": at, "pending": True, "match": match_ids(m)} for m in pending]
        timeouts += [{"at": at, "ts": ts, "match": match_ids(m)} for m, ts in expired]
        if "id" in row:
            found = harness.process(make_event(row), row["ts"])
            matches += [{"at": at, "match": match_ids(m)} for m in found]
    return matches, timeouts


def check_nfa(case: Case, make: Callable[..., Any] = NFATestHarness) -> str | None:
    """Return how the automaton's answer to a case differs from Flink's; None when it does not."""
    expect = case["expect"]
    try:
        harness = make(build_pattern(case), case["timeouts"])
        matches, timeouts = nfa_answers(harness, enumerate(case["events"]))
    except Exception as raised:
        return error_difference(raised, expect.get("error"))
    return (
        error_difference(None, expect.get("error"))
        or difference("matches", matches, expect["matches"])
        or difference("timeouts", timeouts, expect["timeouts"])
        or _more_held("partial matches", harness.partialMatches, expect["partial"])
        or _more_held("buffer nodes", harness.bufferNodes, expect["nodes"])
        or _more_held("buffered events", harness.bufferedEvents, expect["bufferedEvents"])
    )


def check_operator(case: Case, make: Callable[..., Any] = OperatorTestHarness) -> str | None:
    """Return how the operator's answer differs, with a snapshot and restore after every event."""
    error = case["expect"].get("error")
    try:
        harness = make(build_pattern(case), case["timeouts"], lateDataOutput=case["lateOutput"])
        for row in case["items"]:
            if "wm" in row:
                harness.processWatermark(row["wm"])
                continue
            key = row["key"] if case["keyed"] else None
            harness.processElement(make_event(row), row["ts"], key)
            harness = harness.snapshotAndRestore()
        harness.close()
    except Exception as raised:
        return error_difference(raised, error)
    actual = {
        "match": by_key((key, ts, match_ids(m)) for key, ts, m in harness.matches),
        "timeout": by_key((key, ts, match_ids(m)) for key, ts, m in harness.timeouts),
        "late": by_key((key, event.id) for key, event in harness.lateData),
    }
    problems = (difference(kind, actual[kind], expected_rows(case, kind)) for kind in actual)
    return error_difference(None, error) or next(filter(None, problems), None)


def _more_held(what: str, actual: int, flink: int) -> str | None:
    return f"{actual} {what}, Flink keeps {flink}" if actual > flink else None
