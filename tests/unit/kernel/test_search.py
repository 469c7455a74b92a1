# SPDX-License-Identifier: Apache-2.0
"""The compiled search for matches of SQL:2016 does what the plain one does."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.errors import SkipError
from pyflinkcep.kernel import make_search
from tests.conformance.cases import Case
from tests.conformance.sql_cases import standard_cases
from tests.kernel_harness import needs_kernel
from tests.unit.match_recognize.lists import answer

pytestmark = needs_kernel

_COLUMNS = [["id", "INT"], ["name", "STRING"], ["v", "DOUBLE"]]
_QUANTIFIERS = ("", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}?", "{2,}")
_CONDITIONS = (
    "@.name = 'a'", "@.name <> 'b'", "@.v > PREV(@.v)", "@.v > 2", "NEXT(@.name) = 'a'",
    "COUNT(@.v) < 3", "SUM(v) < 9", "@.v >= LAST(A.v)", "FIRST(v) < @.v", "MATCH_NUMBER() < 3",
    "COUNT(*) > 1 OR @.name = 'b'", "PREV(CLASSIFIER()) = 'A'", "TRUE",
)  # fmt: skip


@st.composite
def patterns(draw: Any, depth: int = 3) -> str:
    """Return the text of a pattern."""
    kind = draw(st.integers(0, 9)) if depth else 0
    if kind < 4:
        return draw(st.sampled_from("ABC")) + draw(st.sampled_from(_QUANTIFIERS))
    inner = [draw(patterns(depth=depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    if kind < 6:
        return " ".join(inner)
    if kind < 8:
        return f"({' | '.join(inner)}){draw(st.sampled_from(_QUANTIFIERS))}"
    if kind == 8:
        return f"{{- {inner[0]} -}} {draw(st.sampled_from(['^', '$', '()']))}?"
    return f"PERMUTE({', '.join(['A', *inner])})"


@st.composite
def cases(draw: Any) -> Case:
    """Return a clause over a few rows."""
    size = draw(st.integers(0, 9))
    rows = [
        [number, draw(st.sampled_from("abc")), draw(st.integers(0, 5)) * 1.0]
        for number in range(size)
    ]
    defined = [
        f"{name} AS {draw(st.sampled_from(_CONDITIONS)).replace('@', name)}"
        for name in "ABC"
        if draw(st.booleans())
    ]
    skip = draw(st.sampled_from(["PAST LAST ROW", "TO NEXT ROW", "TO LAST A", "TO FIRST B"]))
    define = f"DEFINE {', '.join(defined)}" if defined else "DEFINE A AS TRUE"
    sql = f"""SELECT * FROM events MATCH_RECOGNIZE (ORDER BY id
        MEASURES MATCH_NUMBER() AS n, CLASSIFIER() AS c, COUNT(*) AS k ALL ROWS PER MATCH
        AFTER MATCH SKIP {skip} PATTERN (A? B? C? {draw(patterns())}) {define}) AS m"""
    return {"sql": sql, "columns": _COLUMNS, "items": rows}


def outcome(case: Case, portions: list[int]) -> Any:
    """Return the answer, or the message of the error."""
    try:
        return answer(None, case, lambda size: [*(at for at in portions if at < size), size])
    except SkipError as error:
        return error.message


@given(cases(), st.lists(st.integers(1, 8), max_size=3))
def test_both_searches_agree(case: Case, cuts: list[int]) -> None:
    """Whatever pattern, conditions, rows and portions, both give the same rows or error."""
    portions = sorted(set(cuts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYFLINKCEP_KERNEL", "0")
        plain = outcome(case, portions)
    compiled = outcome(case, portions)

    assert (compiled, case["sql"]) == (plain, case["sql"])


def test_recorded_cases_on_the_plain_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The specification gives what the kernel gives on the recorded cases too."""
    chosen = [case for case in standard_cases() if "error" not in case["expect"]][::4]
    compiled = [answer(None, case) for case in chosen]
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "0")

    assert [answer(None, case) for case in chosen] == compiled


def search(code: Any, holds: Any, size: int = 3, flags: int = 0) -> Any:
    """Return a search for one variable whose conditions are asked."""
    return make_search(
        code, 0, size, 0, flags, True, 10, (), (None,), holds, (None,), bytearray(size),
        bytearray(size),
    )  # fmt: skip


TAKE_ALL = ((1, 1, 3), (0, 0, 0), (2, 0, 0), (7, 0, 0))
"""A greedy loop of one variable."""


def test_an_error_of_a_condition_goes_through() -> None:
    """An exception ends the search, which can be used again."""
    asked: list[int] = []

    def holds(_variable: int, row: int, _known: Any) -> bool:
        asked.append(row)
        if len(asked) == 2:
            raise ArithmeticError("no")
        return True

    made = search(TAKE_ALL, holds)
    with pytest.raises(ArithmeticError, match="no"):
        made.find(0, 3, False)

    assert made.find(0, 3, False) == 3
    assert asked == [0, 1, 0, 1, 2]


def test_what_a_search_refuses() -> None:
    """Programs that lead out of themselves, short buffers, rows that are not there, recursion."""
    with pytest.raises(ValueError, match="leads out of the program"):
        search(((2, 9, 0),), None)
    with pytest.raises(ValueError, match="shorter than the rows"):
        make_search(
            TAKE_ALL, 0, 3, 0, 0, True, 10, (), (None,), None, (None,), bytearray(2), bytearray(3)
        )  # type: ignore[arg-type]
    made = search(TAKE_ALL, lambda *_: made.find(0, 3, False))
    with pytest.raises(ValueError, match="a search within a search"):
        made.find(0, 3, False)
    with pytest.raises(ValueError, match="no such row"):
        made.find(7, 3, False)


def test_a_search_in_a_circle_is_collected() -> None:
    """A search whose condition refers to it is freed."""
    circle: list[Any] = []

    class Holds:
        def __call__(self, _variable: int, _row: int, _known: Any) -> bool:
            return bool(circle)

    gone: list[int] = []
    holds = Holds()
    Holds.__del__ = lambda _self: gone.append(1)  # type: ignore[attr-defined]
    holds.search = search(TAKE_ALL, holds)  # type: ignore[attr-defined]
    del holds
    gc.collect()

    assert gone == [1]
