# SPDX-License-Identifier: Apache-2.0
"""``matchSase`` on columns: the matches of a list of the same events."""

from __future__ import annotations

import math
from collections import namedtuple
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pyflinkcep import matchSase
from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.sase import parse
from pyflinkcep.tables import Matches

_RANDOM = np.random.default_rng(5)
_SIZE = 60
TABLE = pa.table(
    {
        "type": pa.array(_RANDOM.choice(["A", "B", "C"], _SIZE)).dictionary_encode(),
        "at": pa.array(
            [datetime(1969, 12, 31, 23, 59, 59, 990_000, UTC) + timedelta(milliseconds=int(ms))
             for ms in _RANDOM.integers(0, 40, _SIZE)],
            pa.timestamp("us", "UTC"),
        ),
        "x": pa.array([None if n == 9 else n for n in _RANDOM.integers(0, 10, _SIZE).tolist()]),
        "y": _RANDOM.random(_SIZE).round(1),
        "s": [f"s{n}" for n in _RANDOM.integers(0, 3, _SIZE)],
        "flag": _RANDOM.random(_SIZE) < 0.5,
    }
)  # fmt: skip

QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE skip_till_next_match AND b.x > a.x WITHIN 9",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match AND [s] AND b.y > a.y WITHIN 9",
    "PATTERN SEQ(A a, C+ c[], B b) WHERE skip_till_next_match AND [s] AND c[i].x > 2 WITHIN 9",
    "PATTERN SEQ(A a, !(C c), B b) WHERE skip_till_any_match AND [x, s] WITHIN 20",
    "PATTERN SEQ(A a, B b) WHERE partition_contiguity AND [s] AND a.flag = true WITHIN 9",
    "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match AND b.x > avg(a[].x) WITHIN 4",
    "PATTERN A;B WHERE A.x < B.x WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match AND a.s = 's1' WITHIN 9 RETURN a.x, b.s AS t",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match WITHIN 9 HAVING a.x > 3",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match AND upper(a.s) = 'S1' WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match AND a.z > 1 WITHIN 5",
    "PATTERN SEQ(A a, B b) WHERE skip_till_any_match AND a.s > b.x WITHIN 5",
]


def _answer(query: str, events: Any, **how: Any) -> Any:
    try:
        return [*matchSase(query, events, **how)]
    except (InputError, InvalidArgumentError) as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("timestamp", [None, "at"])
def test_queries_on_tables(query: str, timestamp: str | None) -> None:
    """Matches, rows of RETURN and errors are those of a list, in their order."""
    listed = _answer(query, TABLE.to_pylist(), timestamp=timestamp)

    assert _answer(query, TABLE, timestamp=timestamp) == listed
    assert listed


@pytest.mark.parametrize("output", ["onePerStart", "nonOverlapping"])
@pytest.mark.parametrize("evaluation", ["nfa", "backtracking"])
def test_outputs_of_queries(output: Any, evaluation: Any) -> None:
    """Other outputs and evaluations are those of a list too."""
    how = {"timestamp": "at", "output": output, "evaluation": evaluation}

    assert _answer(QUERIES[1], TABLE, **how) == _answer(QUERIES[1], TABLE.to_pylist(), **how)


ZERO = [{"type": "A", "n": 2**62, "x": 0.0}, {"type": "B", "n": 0, "x": 1.0}]


@pytest.mark.parametrize("given", [ZERO, pa.Table.from_pylist(ZERO)], ids=["list", "table"])
def test_arithmetic_without_a_value(given: Any) -> None:
    """A division by zero is NULL, of one event as of two; what else fails is no raw error."""
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match"
    for by in ("a.x", "b.n"):
        assert len(matchSase(f"{query} AND CASE WHEN a.n / {by} > 1 THEN 1 ELSE 2 END = 2", given))
        assert not matchSase(f"{query} AND a.n / {by} > 1", given)
    for more, what in (
        (" AND abs(a.n / a.x) > 1", "division by zero"),
        (" RETURN a.n * 4 AS m", r"a\.n \* 4: overflow"),
        (" HAVING a.n * 4 > b.n", "overflow"),
    ):
        with pytest.raises(InputError, match=what):
            matchSase(query + more, given)


def test_matches_of_queries_in_columns() -> None:
    """Matches without RETURN become dicts when they are looked at, and columns at once."""
    found = matchSase(QUERIES[0], TABLE, timestamp="at")

    assert isinstance(found, Matches)
    assert found.toArrow().column_names == ["matchTimestamp", "a", "b"]
    assert found.toArrow()["a"].to_pylist() == [one["a"] for one in found]


def test_forms_of_events_that_are_not_listed(tmp_path: Path) -> None:
    """Compressed matches, and totals, read a file, a dataset and batches as they read a table."""
    path = tmp_path / "events.parquet"
    pq.write_table(TABLE, path)
    query = QUERIES[0].replace("WITHIN 9", "")
    totals = f"{QUERIES[0]} SLIDE 3 RETURN count(*) AS n"
    forms = (str(path), ds.dataset(path), TABLE.to_batches(20), TABLE.to_reader(20))

    assert {matchSase(query, form, "at", compressed=True).count() for form in forms} == {
        matchSase(query, TABLE, "at", compressed=True).count()
    }
    assert matchSase(totals, path, "at") == matchSase(totals, TABLE, "at") != []


def test_a_query_on_no_rows() -> None:
    """An empty table has no matches, but types, which are checked."""
    assert matchSase(QUERIES[0], TABLE.slice(0, 0)) == []
    with pytest.raises(InputError):
        matchSase(QUERIES[-1], TABLE.slice(0, 0))


@pytest.mark.parametrize("column", ["a.z", "a.z AS x", "upper(a.z)", "coalesce(a.z, 1)"])
@pytest.mark.parametrize("form", [TABLE, TABLE.to_pylist()], ids=["table", "list"])
def test_a_column_of_return_that_no_event_has(column: str, form: Any) -> None:
    """It is refused, whether it is copied or computed: NULL would hide a typing error."""
    with pytest.raises(InputError, match="'z'"):
        matchSase(f"PATTERN SEQ(A a, B b) WITHIN 9 RETURN {column}", form, "at")
    loop = "PATTERN SEQ(A+ a[], B b) WITHIN 3 RETURN a[].z AS z"
    with pytest.raises(InputError, match="'z'"):
        matchSase(loop, form, "at")


def test_objects_of_several_classes() -> None:
    """What an object lacks is NULL, as in a dict; what it fails to compute is an error."""

    class Broken(NamedTuple):
        type: str
        x: int

        @property
        def y(self) -> int:
            raise AttributeError("no y today")

    opened, closed = (namedtuple(kind, ["type", name]) for kind, name in (("A", "x"), ("B", "y")))
    rows = [opened("A", 1), closed("B", 2)]
    dicts = [row._asdict() for row in rows]
    for query in (
        "PATTERN SEQ(A a, B b) WHERE b.y > a.x RETURN a.x, a.y, b.y AS t",
        "PATTERN SEQ(A a, B b) WHERE [x]",
    ):
        assert matchSase(query, rows) == matchSase(query, dicts)
    with pytest.raises(AttributeError, match="no y today"):
        matchSase("PATTERN SEQ(A a, B b) WHERE b.y > a.x", [*rows, Broken("B", 1)])


# --- totals of windows of a query on lists: what events have in common, and the names of columns


PAIRS = "PATTERN SEQ(A a, B b) WITHIN 10 SLIDE 10 GROUP BY k RETURN count(*)"


def pairs(*keys: Any) -> list[dict[str, Any]]:
    """Return an A and a B of each two keys."""
    return [{"type": "AB"[n % 2], "ts": n, "k": key, "x": 1} for n, key in enumerate(keys)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (math.nan, float("nan")),
        (0.0, -0.0),
        (1, 1.0),
        (None, None),
        ([1, 2], [1, 2]),
        (Decimal("1.0"), Decimal("1.00")),
        (datetime(2026, 1, 1, 2, tzinfo=UTC),
         datetime(2026, 1, 1, 4, tzinfo=timezone(timedelta(hours=2)))),
    ],
)  # fmt: skip
def test_values_that_spark_groups_are_one_group(one: Any, other: Any) -> None:
    """Every match is counted, whatever its key; so it is with [attr], which null does not equal."""
    (row,) = matchSase(PAIRS, pairs(one, other), "ts")
    assert row["count"] == 1
    assert row["k"] is one
    if isinstance(one, float):
        tested = PAIRS.replace("WITHIN", "WHERE [k] WITHIN")
        assert matchSase(tested, pairs(one, other), "ts") == [row]


def test_no_column_takes_the_place_of_another() -> None:
    """An aggregate named as a column of windows, or as another aggregate, is refused."""
    rows = pairs(1, 1)
    for name in ("k", "K", "count", "windowStart", "windowend"):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            matchSase(PAIRS.replace("count(*)", f"sum(a.x) AS {name}"), rows, "ts")
    found = matchSase("PATTERN SEQ(A a, B b) WHERE [k]", rows, "ts", compressed=True)
    for texts in (["sum(a.x) AS k"], ["sum(a.x) AS s", "min(b.x) AS s"]):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            found.aggregate(*texts, window="1 second")
    with pytest.raises(InvalidArgumentError, match="two columns"):
        found.aggregate("sum(a.x) AS s", "min(b.x) AS s")
    assert found.aggregate("count(b) AS count", "sum(a.x) AS k") == {"count": 1, "k": 1}


def test_events_of_matches_keep_their_type_and_time() -> None:
    """No column of theirs may take these names, however it is written."""
    query = parse("PATTERN SEQ(A a, B b) RETURN EVENT Pair(a.x)")
    for name in ("type", "matchTimestamp"):
        with pytest.raises(InvalidArgumentError, match="two columns"):
            query.returns(f"a.x AS {name}")
