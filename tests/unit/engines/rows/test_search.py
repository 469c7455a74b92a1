# SPDX-License-Identifier: Apache-2.0
"""The compiled search for matches of SQL:2016 does what the plain one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.engines.rows.matching import CompiledSearch
from pyflinkcep.errors import ConditionError, SkipError
from pyflinkcep.expressions.program import Code, Function, Op, Type
from pyflinkcep.kernel.module import compiled_module, instruction
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
    "LAST(@.v, 1) < @.v OR LAST(U.name, 2) LIKE '%b'", "FIRST(U.v, 1) IS NULL OR AVG(U.v) <= 3",
    "COUNT(U.*) % 2 = 0", "MIN(v) = MAX(@.v)", "LAST(CLASSIFIER(), 1) <> 'B'",
    "CASE WHEN COUNT(@.v) > 1 THEN LAST(CLASSIFIER(U)) = 'A' ELSE @.v / COUNT(*) > 1 END",
    "PREV(LAST(@.v, 1), 1) IS NULL", "NEXT(FIRST(U.name)) IN ('a', 'c')",
    "MAX(CLASSIFIER()) || @.name = 'Bb'", "coalesce(SUM(@.id), 0) < 2 * MATCH_NUMBER() + 7",
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
    values = st.one_of(st.none(), *(st.just(float(v)) for v in range(6)))
    names = st.sampled_from(["a", "b", "c", None])
    rows = [[number, draw(names), draw(values)] for number in range(size)]
    defined = [
        f"{name} AS {draw(st.sampled_from(_CONDITIONS)).replace('@', name)}"
        for name in "ABC"
        if draw(st.booleans())
    ]
    skip = draw(st.sampled_from(["PAST LAST ROW", "TO NEXT ROW", "TO LAST A", "TO FIRST B"]))
    define = f"DEFINE {', '.join(defined)}" if defined else "DEFINE A AS TRUE"
    sql = f"""SELECT * FROM events MATCH_RECOGNIZE (ORDER BY id
        MEASURES MATCH_NUMBER() AS n, CLASSIFIER() AS c, COUNT(*) AS k ALL ROWS PER MATCH
        AFTER MATCH SKIP {skip} PATTERN (A? B? C? {draw(patterns())}) SUBSET U = (A, C) {define})"""
    return {"sql": sql, "columns": _COLUMNS, "items": rows}


def outcome(case: Case, portions: list[int], within: int) -> Any:
    """Return the answer, or the message of the error."""
    try:
        return answer(
            None, case, lambda size: [*(at for at in portions if at < size), size], within
        )
    except (SkipError, ConditionError) as error:
        return error.message


@given(cases(), st.lists(st.integers(1, 8), max_size=3), st.sampled_from([0, 0, 2, 5]))
def test_both_searches_agree(case: Case, cuts: list[int], within: int) -> None:
    """Whatever pattern, conditions, rows, portions and window, both give the same or an error."""
    portions = sorted(set(cuts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYFLINKCEP_KERNEL", "0")
        plain = outcome(case, portions, within)
    compiled = outcome(case, portions, within)

    assert (compiled, case["sql"]) == (plain, case["sql"])


def test_recorded_cases_on_the_plain_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The specification gives what the kernel gives on the recorded cases too."""
    chosen = [case for case in standard_cases() if "error" not in case["expect"]][::4]
    compiled = [answer(None, case) for case in chosen]
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "0")

    assert [answer(None, case) for case in chosen] == compiled


OVERFLOWING = 1 << 62


def search(code: Any, **changed: Any) -> Any:
    """Return a search for one variable in three rows, turned to all of them."""
    size = changed.get("rows", 3)
    labels, hidden = bytearray(size), bytearray(size)
    given: dict[str, Any] = {
        "code": code, "loops": 0, "rows": 3, "has_flags": False, "slots": (), "programs": (None,),
        "has_number": False, "ansi": True, "most_remembered": 10, "fields": (), "answers": (None,),
        "labels": labels, "hidden": hidden, "times": None, "within": 0, "watermark": None, **changed
    }  # fmt: skip
    given["programs"] = tuple(
        tuple(instruction(op, operand, True) for op, operand in code or ())
        for code in given["programs"]
    )
    module = compiled_module()
    assert module is not None
    made = CompiledSearch(
        module.RowSearch(*given.values()),
        labels,
        hidden,
        lambda variable, what: ValueError(f"{variable}: {what}"),
    )
    made.turn_to(0, 3, True)
    return made


TAKE_ALL = ((1, 1, 3), (0, 0, 0), (2, 0, 0), (7, 0, 0))
"""A greedy loop of one variable."""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (((Op.SLOT, 0), (Op.INT, 0), (Op.GE, Type.INT)), "0: overflow: the result does not fit"),
        (((Op.INT, 1), (Op.INT, 0), (Op.INT_DIV, Type.INT)), "0: division by zero"),
    ],
)
def test_an_error_of_a_condition_names_its_variable(code: Code, message: str) -> None:
    """What cannot be computed is an error of the variable asked; the search can be used again."""
    values = np.array([OVERFLOWING, OVERFLOWING, 0])
    slot = (int(Function.SUM), (0,), -1, 0, False)
    made = search(TAKE_ALL, slots=(slot,), programs=(code,), fields=((values, None, False),))

    for _ in range(2):
        with pytest.raises(ValueError, match=message) as raised:
            made.find(0, 1)
        assert isinstance(raised.value.__cause__, ArithmeticError)


def test_partitions_do_not_touch() -> None:
    """A match ends with its partition, and starts are looked for up to the partition's end."""
    made = search(TAKE_ALL)
    made.turn_to(1, 2, True)

    assert made.find(1, 1) == (1, 2)
    assert made.find(2, 1) is None


def test_what_a_search_refuses() -> None:
    """Programs that lead out of themselves, slots that do not fit, rows that are not there."""
    with pytest.raises(ValueError, match="leads out of the program"):
        search(((2, 9, 0),))
    with pytest.raises(ValueError, match="a field for each variable"):
        search(TAKE_ALL, slots=((0, (-1, -1), -1, 0, False),))
    with pytest.raises(ValueError, match="a time for each row"):
        search(TAKE_ALL, times=np.array([1, 2]))
    with pytest.raises(ValueError, match="shorter than the rows"):
        search(TAKE_ALL, answers=(bytearray(2),))
    made = search(TAKE_ALL)
    with pytest.raises(ValueError, match="rows out of range"):
        made.turn_to(0, 4, True)
    made.turn_to(1, 3, True)
    with pytest.raises(ValueError, match="row out of range"):
        made.find(0, 1)
