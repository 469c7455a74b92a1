# SPDX-License-Identifier: Apache-2.0
"""Flink's dialect on lists of rows, without Spark: the clause's pattern, and measures by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from pyflinkcep.expressions.evaluator import event_function
from pyflinkcep.match_recognize.checks import check_clause
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.leaves import LEAF, Leaf
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.parser import window_ms
from pyflinkcep.match_recognize.statement import Statement
from pyflinkcep.testing import OperatorTestHarness
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["answer", "can_answer"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


def can_answer(case: dict[str, Any]) -> bool:
    """Whether a case is one clause over the plain table, with all of its output."""
    head = "SELECT * FROM events MATCH_RECOGNIZE"
    plain = case["sql"].startswith(head) and case["sql"].endswith(") AS T")
    times = [type_ for name, type_ in case["columns"] if name == case["rowtime"]]
    return plain and "TIMESTAMPDIFF" not in case["sql"].partition("DEFINE")[0] and bool(times)


def answer(_spark: Any, case: dict[str, Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return columns and rows of a recorded case."""
    statement = Statement(case["sql"])
    use = statement.next_use()
    assert use is not None
    clause = use.clause
    names = Names.of(clause, statement.source, [n for n, _ in case["columns"]], use.alias, False)
    check_clause(clause, names, case_sensitive=False)
    within = window_ms(clause, statement.source)
    read = read_flink_clause(clause, names, within)
    rows = [_row(case, item) if isinstance(item, list) else item for item in case["items"]]
    time = clause.order[0].name.text
    order = [(c.name.text, c.descending, c.nulls_first) for c in clause.order[1:]]
    keys = [key.text for key in clause.partition]
    events = [row for row in rows if "wm" not in row]
    harness = OperatorTestHarness(
        read.pattern, comparator=_comparator(order) if order else None, examples=events
    )
    for row in rows:
        if "wm" in row:
            harness.processWatermark(row["wm"])
        else:
            at = (row[time] - _EPOCH) // timedelta(milliseconds=1)
            harness.processElement(row, at, tuple(row[key] for key in keys))
    harness.close()
    found = [(*key, *_measured(read, match, _released(at))) for key, at, match in harness.matches]
    return keys + list(read.measures), found


def _row(case: dict[str, Any], item: Sequence[Any]) -> Row:
    columns = zip(case["columns"], item, strict=True)
    return {name: _python(type_, value) for (name, type_), value in columns}


def _python(type_: str, value: Any) -> Any:
    if value is None:
        return None
    if type_.startswith("TIMESTAMP"):
        return _EPOCH + timedelta(milliseconds=value)
    if type_ == "DATE":
        return date(1970, 1, 1) + timedelta(days=value)
    if type_.startswith("DECIMAL"):
        return Decimal(str(value))
    return float(value) if type_ == "DOUBLE" else value


def _released(at: int) -> datetime | None:
    return None if at == MAX_WATERMARK else _EPOCH + timedelta(milliseconds=at)


def _comparator(order: list[tuple[str, bool, bool | None]]) -> Any:
    def compare(a: Row, b: Row) -> int:
        for name, descending, nulls_first in order:
            x, y = a[name], b[name]
            if x == y:
                continue
            if x is None or y is None:
                first = not descending if nulls_first is None else nulls_first
                return -1 if (x is None) == first else 1
            return -1 if (x < y) != descending else 1
        return 0

    return cmp_to_key(compare)


def _measured(
    read: FlinkClause, match: dict[str, list[Row]], released: datetime | None
) -> list[Any]:
    rows = [row for stage in read.names.variables for row in match.get(stage, ())]
    values = []
    for expression in read.measures.values():
        names = {leaf: f"{LEAF}{number}" for number, leaf in enumerate(expression.leaves)}
        leaves = {name: _value(leaf, match, rows, released) for leaf, name in names.items()}
        values.append(event_function(expression.sql(names.__getitem__))(leaves))
    return values


def _value(
    leaf: Leaf, match: dict[str, list[Row]], rows: list[Row], released: datetime | None
) -> Any:
    if leaf.function == "rowtime":
        return released
    taken = rows if leaf.variable is None else match.get(leaf.variable, [])
    if leaf.argument is None:
        return len(taken)
    values = list(map(event_function(leaf.argument), taken))
    if leaf.is_row:
        if len(values) <= leaf.offset:
            return None
        return values[leaf.offset if leaf.function == "first" else -1 - leaf.offset]
    known = [value for value in values if value is not None]
    if leaf.function == "count":
        return len(known)
    if not known:
        return None
    functions = {"sum": sum, "min": min, "max": max, "avg": lambda v: sum(v) / len(v)}
    return functions[leaf.function](known)  # type: ignore[operator]
