# SPDX-License-Identifier: Apache-2.0
"""What numbers are beside each other in HAVING and RETURN of events in memory."""

from __future__ import annotations

import pytest

from pyflinkcep.testing import matchSase

EVENTS = [
    {"type": "A", "n": 7, "x": 2.5, "s": "p"},
    {"type": "B", "n": 2**53 + 1, "x": None, "s": "q"},
    {"type": "B", "n": None, "x": 1.0, "s": None},
]

RETURNED: dict[str, list[object]] = {
    "coalesce(b.n, b.x)": [float(2**53), 1.0],
    "coalesce(a.n, b.n)": [7, 7],
    "if(a.x > 1, a.n, b.x)": [7.0, 7.0],
    "greatest(b.n, b.x)": [float(2**53), 1.0],
    "coalesce(b.n, NULL, a.n)": [2**53 + 1, 7],
    "coalesce(b.s, a.s)": ["q", "p"],
    "nullif(a.n, a.x)": [7, 7],
}


@pytest.mark.parametrize(("value", "expected"), RETURNED.items())
def test_a_choice_of_numbers_has_the_wider_type(value: str, expected: list[object]) -> None:
    """A whole number beside a double is a double, as in Spark, whichever of them is chosen."""
    query = f"PATTERN SEQ(A a, B b) WHERE skip_till_any_match RETURN {value} AS v"
    found = [row["v"] for row in matchSase(query, EVENTS)]
    assert [(v, type(v)) for v in found] == [(v, type(v)) for v in expected]


def test_an_average_is_a_double() -> None:
    """A count and a greatest whole number are none."""
    values = "if(a.n = 7, a.n, avg(b[].n)) AS u, if(a.n = 7, a.n, max(b[].n)) AS v"
    query = f"PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match RETURN {values}"
    (row, *_) = matchSase(query, EVENTS)
    assert (repr(row["u"]), repr(row["v"])) == ("7.0", "7")
