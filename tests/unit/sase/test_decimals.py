# SPDX-License-Identifier: Apache-2.0
"""Decimals in queries are exact, in every evaluation, from lists and tables, in C and without."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import InputError
from pyflinkcep.testing import matchSase
from tests.query_decimals import (
    CALCULATIONS,
    COMPARISONS,
    TYPES,
    as_table,
    groups,
    mean,
    pairs,
    total,
)

EVALUATIONS = ("nfa", "backtracking", "eventLists")


def found(text: str, events: Any, evaluation: str) -> set[int]:
    """Return the keys of the pairs for which a condition holds."""
    query = f"PATTERN SEQ(A a, B b) WHERE [k] AND {text} WITHIN 1000000"
    return {match["a"][0]["k"] for match in matchSase(query, events, evaluation=evaluation)}


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("digits", TYPES, ids=str)
def test_comparisons_are_exact(digits: tuple[int, int]) -> None:
    """To the last of 38 digits: lists and tables, joined and by runs."""
    events = pairs(*digits)
    table = as_table(events, *digits)
    for text, rule in COMPARISONS.items():
        expected = {a["k"] for a, b in zip(events[::2], events[1::2], strict=True) if rule(a, b)}
        for evaluation in EVALUATIONS:
            for source in (events, table):
                assert (text, evaluation, found(text, source, evaluation)) == (
                    text,
                    evaluation,
                    expected,
                )


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("digits", TYPES, ids=str)
def test_calculations_agree(digits: tuple[int, int]) -> None:
    """Every evaluation calculates alike; tests on Spark hold the values to Spark's."""
    table = as_table(pairs(*digits), *digits)
    for text in CALCULATIONS:
        one, *others = (found(text, table, evaluation) for evaluation in EVALUATIONS)
        assert all(other == one for other in others), text


@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("digits", TYPES, ids=str)
def test_aggregates_are_exact(digits: tuple[int, int]) -> None:
    """Sums, averages and extremes of loops, in conditions and in what is returned."""
    for values in groups(*digits):
        known = [value for value in values if value is not None]
        facts = {
            "sum": total(values), "avg": mean(values, digits[1]), "min": min(known, default=None),
            "max": max(known, default=None),
        }  # fmt: skip
        for function, wanted in facts.items():
            p, scale = f"{function}(b[].p)", digits[1] + 4 * (function == "avg")
            own = pa.decimal128(38, min(scale, 38))
            given = [None, *values, None]
            table = pa.table({
                "type": ["A", *("B" for _ in values), "C"],
                "p": pa.array(given, pa.decimal128(*digits)),
                "w": pa.array([*(None for _ in given[1:]), wanted], own),
            })  # fmt: skip
            events = [{"type": e["type"], "p": e["p"], "w": e["w"]} for e in table.to_pylist()]
            test = f"({p} = c.w OR ({p} IS NULL AND c.w IS NULL))"
            for source in (table, events):
                loops = f"PATTERN SEQ(A a, B+ b[], C c) WHERE strict_contiguity AND {test}"
                rows = matchSase(f"{loops} RETURN {p} AS x", source, evaluation="nfa")
                assert [row["x"] for row in rows] == [wanted]
                lists = f"PATTERN A a; B^{len(values)} b; C c WHERE {test}"
                assert len(matchSase(lists, source)) == 1, (function, values)


def test_decimals_beside_doubles_in_one_attribute_are_refused() -> None:
    """What has no common type, and what is no number."""
    query = "PATTERN SEQ(A a, A b) WHERE b.p > a.p"
    mixed = [{"type": "A", "p": Decimal(1)}, {"type": "A", "p": 0.5}]
    with pytest.raises(InputError, match=r"attribute 'p'.*decimal\(1,0\) and double"):
        matchSase(query, mixed)
    whole = [{"type": "A", "p": Decimal("0.5")}, {"type": "A", "p": 2**62}]
    assert len(matchSase(query, whole)) == 1
    with pytest.raises(InputError, match="NaN"):
        matchSase(query, [{"type": "A", "p": Decimal("NaN")}] * 2)
