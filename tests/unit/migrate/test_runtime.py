# SPDX-License-Identifier: Apache-2.0
"""What translated functions call: numbers, strings, times and JSON as Java has them."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf, nan
from typing import Any

import pytest

from pyflinkcep.migrate import runtime as r

AT = datetime(2024, 1, 2, 3, 4, tzinfo=UTC)
VALUES: list[tuple[Any, Any]] = [
    (r.present("a"), "a"),
    (r.int32(2147483647 + 1), -2147483648),
    (r.div_int(-7, 2), -3),
    (r.div_float(1, 0.0), inf),
    ([r.truncated(-1.9, 32), r.truncated(1e300, 32), r.truncated(nan, 64)], [-1, 2147483647, 0]),
    ([r.java_math(2.5, "floor"), r.java_math(0.0, "log")], [2.0, -inf]),
    (
        [r.text(None), r.text(True), r.text(1e10), r.text(0.001)],
        ["null", "true", "1.0E10", "0.001"],
    ),
    ([r.text(12.5), r.text([1, "a"])], ["12.5", "[1, a]"]),
    ([r.text(r.div_float(0.0, 0.0)), r.text(r.java_math(-1.0, "sqrt"))], ["NaN", "NaN"]),
    (r.time_text(AT, "Instant"), "2024-01-02T03:04:00Z"),
    (r.time_text(AT, "LocalDateTime"), "2024-01-02T03:04"),
    ([r.equals_ignore_case("Fail", "FAIL"), r.equals_ignore_case("ß", "SS")], [True, False]),
    ([r.index_of("abcab", "ab"), r.index_of("abcab", "ab", last=True)], [0, 3]),
    ([r.java_split("a,b,,", ","), r.java_split("a,b,c", ",", 2)], [["a", "b"], ["a", "b,c"]]),
    (r.java_split("a,b,,", ",", -1), ["a", "b", "", ""]),
    ([r.compare(1, 2), r.compare(nan, 1.0), r.compare(0.0, -0.0)], [-1, 1, 1]),
    (r.row_of({"user": "ann", "n": 2, "event_time": 7}, "user", "n"), ("ann", 2)),
    (r.json_object('{"user": "ann"}')["user"], "ann"),
    (r.json_object('{"user": "ann"}')["age"], None),
    ([r.json_item([1, 2], 1), r.json_item([1, 2], 2)], [2, None]),
    (r.json_item(r.json_object('{"a": 3}'), "a"), 3),
    (r.json_find(r.json_object('{"a": {"b": [{"c": 1}]}}'), "c"), 1),
    ([r.json_as(5, "String"), r.json_as("12", "int"), r.json_as("x", "int")], ["5", 12, 0]),
    (r.json_as(None, "int", 7), 7),
    (
        [r.json_is("a", "text"), r.json_is(True, "number"), r.json_is(1.5, "number")],
        [True, False, True],
    ),
    (r.collected(lambda event, out: out.collect(event + 1))(2), [3]),
    ([r.natural_order("a", "b"), r.natural_order(2, 2), r.natural_order(True, False)], [-1, 0, 1]),
    (r.in_order([3, 1, 2]), [1, 2, 3]),
    (r.java_format("%,8d|%-6.1f|% d", 12345, 2.25, 7), "  12,345|2.3   | 7"),
]


@pytest.mark.parametrize(("found", "expected"), VALUES)
def test_values_are_those_of_java(found: Any, expected: Any) -> None:
    """Each function has the value of Java, where Python's own differs."""
    assert found == expected


def test_an_iterator_knows_whether_there_is_another_element() -> None:
    """As ``hasNext`` and ``next`` of Java."""
    iterator = r.Iterator([1])

    assert [iterator.has_next(), iterator.next(), iterator.has_next()] == [True, 1, False]
