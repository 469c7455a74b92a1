# SPDX-License-Identifier: Apache-2.0
"""
Recorded answers to MATCH_RECOGNIZE: of Flink SQL 2.3.0, and of the standard.

A case is a JSON object: ``columns`` [[name, Flink's type]], ``items`` the rows, with ``{"wm": ms}``
after each chunk of a stream, ``sql`` over the view ``events``, and ``expect``: columns and rows, or
the error.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyflinkcep.errors import CepError
from tests.conformance.cases import Case, load

_SAME_WORDS = ("TableException", "MalformedPatternException", "FlinkRuntimeException", "Error")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

REFUSED = ("anchor-", "subset", "alias-before-used", "define-with-table-name", "aggregate-over-nav")
"""Beginnings of the ids of cases that Flink answers wrongly without a word, and we refuse."""


def flink_cases() -> tuple[Case, ...]:
    """Return Flink's answers."""
    return load("sql/sql_cases")


def standard_cases() -> tuple[Case, ...]:
    """Return the standard's answers."""
    return load("sql/sql_standard_cases")


def problems(
    cases: Sequence[Case], answer: Callable[[Case], tuple[list[str], list[Any]]]
) -> dict[str, str]:
    """Return how the answers to cases, or their errors, differ from the recorded ones, by id."""
    found = {}
    for case in cases:
        try:
            differs = problem(case, *answer(case))
        except Exception as raised:
            differs = problem_with_error(case, raised)
        if differs is not None:
            found[case["id"]] = differs
    return found


def problem(case: Case, columns: list[str], rows: list[Any]) -> str | None:
    """Return how an answer differs from the recorded one, None if it does not."""
    want = case["expect"]
    if "error" in want:
        return f"no error, want {want['error']['message'][:160]}"
    names = [c[0] if isinstance(c, list) else c for c in want["columns"]]
    if [c.lower() for c in columns] != [c.lower() for c in names] and (rows or want["rows"]):
        return f"columns {columns}, want {names}"
    decimals = {
        place
        for place, column in enumerate(want["columns"])
        if isinstance(column, list) and column[1].startswith("DECIMAL")
    }
    recorded = [
        [float(v) if at in decimals and v is not None else v for at, v in enumerate(row)]
        for row in want["rows"]
    ]
    got, expected = _counted(rows), _counted(recorded)
    if got != expected:
        return f"missing {list(expected - got)[:3]}, extra {list(got - expected)[:3]}"
    return None


def problem_with_error(case: Case, raised: Exception) -> str | None:
    """Return how an error differs from the recorded answer, None if it is the one wanted."""
    if "error" not in case["expect"]:
        if case["id"].startswith(REFUSED) and isinstance(raised, CepError):
            return None
        return f"raised {type(raised).__name__}: {raised}"
    want = case["expect"]["error"]
    if want["type"] not in _SAME_WORDS:
        return None if isinstance(raised, CepError) else f"raised {raised!r}, want a CepError"
    text = want["message"].split("{")[0]
    if "_UTF-16LE" in want["message"]:  # names Flink's own objects
        text = want["message"].rpartition("). " if "). " in want["message"] else ") ")[2]
    text = text.rpartition("). ")[2].split("\n")[0].strip()
    return None if text in str(raised) else f"{str(raised)!r} lacks {text!r}"


def _counted(rows: list[Any]) -> Counter[str]:
    return Counter(json.dumps([_tidy(value) for value in row]) for row in rows)


def _tidy(value: Any) -> Any:
    """Make values comparable: times as milliseconds, numbers to ten digits."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return [_tidy(inner) for inner in value]
    if isinstance(value, datetime):
        at = value if value.tzinfo else value.replace(tzinfo=UTC)
        return float(round((at - _EPOCH) / timedelta(milliseconds=1)))
    if isinstance(value, date):
        return float((value - _EPOCH.date()).days)
    return float(f"{Decimal(str(value)):.10g}")
