# SPDX-License-Identifier: Apache-2.0
"""The rows of distinct values, and the conditions that look them up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pyflinkcep.expressions.arrays import Values
from pyflinkcep.rules.shared_events import SharedEvents
from pyflinkcep.rules.value_ranges import ValueIndex


@pytest.mark.parametrize(
    "data",
    [
        np.array([3, 1, 3, 3, 7] * 900),
        np.array([10**12, -5, 10**12] * 1500),
        np.array([0.5, 2.0, 0.5, np.inf] * 1200),
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_rows_of_values(data: np.ndarray, missing: bool) -> None:
    """Each value has its rows in order, and NULL those without a value."""
    nulls = np.arange(len(data)) % 5 == 0 if missing else False
    index = ValueIndex.of(Values(data, nulls))
    assert index is not None
    for number, value in enumerate(index.values.data.tolist()):
        chosen = np.arange(len(index.ends)) == number
        is_null = bool(index.values.nulls[number])
        same = np.asarray(nulls) if is_null else (data == value) & ~np.asarray(nulls)
        assert index.rows_of(chosen).tolist() == np.flatnonzero(same).tolist()
        assert index.count(chosen) == same.sum()
    everything = np.ones(len(index.ends), bool)
    assert index.rows_of(everything).tolist() == list(range(len(data)))
    assert index.rows_of(~everything).tolist() == []


@pytest.mark.parametrize("data", [np.arange(9000), np.zeros(0, np.int64)])
def test_no_index_of_many_values(data: np.ndarray) -> None:
    """A column whose values are nearly all distinct has no index."""
    assert ValueIndex.of(Values(data)) is None


TEXTS = [
    "kind = 'a'", "kind = 'a' AND n > 3", "n = 2 AND kind <> 'b'", "kind IS NULL AND n < 4",
    "kind = 'a' AND (n = 1 OR n = 2)", "kind = 'zz' AND n = 1", "n > 0", "n % 2 = 1 AND kind = 'b'",
    "kind IN ('a', 'b') AND x > 0.5", "x > 0.5 AND x < 0.6 AND n = 5", "kind LIKE 'a%' AND n = 5",
]  # fmt: skip


def test_an_index_finds_the_same_rows() -> None:
    """Conditions hold for the rows for which they hold without an index."""
    rng = np.random.default_rng(5)
    kinds = [None if k == "-" else k for k in rng.choice(list("ab-cdefgh"), 5000)]
    table = pa.table({"kind": kinds, "n": rng.integers(0, 9, 5000), "x": rng.random(5000)})
    events = SharedEvents.of(table, None, "kind", TEXTS)
    for _ in range(2):
        for text in TEXTS:
            program = events.sql.program(text, is_condition=True)
            assert program is not None
            assert events.computes(text)
            alone = np.flatnonzero(events.sql.bits({1: program}).some(0, table.num_rows))
            assert events.holding(events.conditions.number(text)).tolist() == alone.tolist(), text
        events._holding.clear()
