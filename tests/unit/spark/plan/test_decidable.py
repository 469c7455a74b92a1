# SPDX-License-Identifier: Apache-2.0
"""What of a clause with the standard's meaning a stream can decide in time."""

from __future__ import annotations

import pytest

from pyflinkcep.engines.rows.plan import StandardClause
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.spark.plan.clauses.standard_job import check_decidable
from tests.unit.match_recognize.planning import plans


def _checked(measure: str, pattern: str, define: str) -> None:
    clause = f"ORDER BY ts MEASURES {measure} PATTERN ({pattern}) DEFINE {define}"
    (read,) = plans(f"SELECT * FROM e MATCH_RECOGNIZE ({clause})", ["ts", "x"], "standard")
    assert isinstance(read, StandardClause)
    check_decidable(read)


@pytest.mark.parametrize(
    ("measure", "pattern", "define", "message"),
    [
        ("A.x AS m", "A B", "B AS NEXT(x) > 1", "DEFINE B: NEXT on a stream: later rows decide it"),
        ("A.x AS B", "A B", "B AS NEXT(x) > 1", "DEFINE B: NEXT on a stream: later rows decide it"),
        ("NEXT(A.x) AS B", "A B", "B AS x > 1", "measure B: NEXT on a stream"),
        ("median(A.x) AS m", "A B", "B AS x > 1", "measure m: MEDIAN on a stream, where COUNT"),
        ("A.x AS m", "A B $", "B AS x > 1", "$ on a stream: later rows decide it"),
    ],
)
def test_what_later_rows_decide_is_refused(
    measure: str, pattern: str, define: str, message: str
) -> None:
    """It is refused by its place, also if a measure has the name of a variable."""
    with pytest.raises(NotSupportedError) as raised:
        _checked(measure, pattern, define)

    assert raised.value.message.startswith(message)


def test_what_rows_so_far_decide_is_accepted() -> None:
    """Earlier rows, aggregates that are computed row by row, and any aggregate in DEFINE."""
    _checked("sum(A.x) AS B, array_agg(x) AS m", "A B", "B AS median(A.x) > PREV(x)")
