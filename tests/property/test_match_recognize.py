# SPDX-License-Identifier: Apache-2.0
"""Whatever the text of a clause, the answer is a plan or an error that helps."""

from __future__ import annotations

import random
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep.errors import CepError
from tests.conformance.sql_cases import flink_cases, standard_cases
from tests.unit.match_recognize.lists import plans

_CASES = [*flink_cases()[::7], *standard_cases()[::3]]
_TOKEN = re.compile(r"\s+|'[^']*'|`[^`]*`|\w+|.")
_WORDS = [
    "A", "B", "X", "price", ",", "(", ")", "{", "}", "{-", "-}", "|", "*", "+", "?", "^", "$", "1",
    "'s'", "`", "'", ".", "AS", "PATTERN", "DEFINE", "MEASURES", "LAST", "SUM", "PREV", "COUNT(*)",
    "AFTER MATCH SKIP TO", "WITHIN", "INTERVAL", "PERMUTE", "ORDER BY", "FINAL", "RUNNING", "/*",
    "--", "MATCH_RECOGNIZE", "CASE", "END", "SELECT", "ALL ROWS PER MATCH", "SUBSET", "=", "NULL",
]  # fmt: skip


def mutated(sql: str, rng: random.Random) -> str:
    """Return a statement with some tokens dropped, doubled, swapped or replaced."""
    tokens = _TOKEN.findall(sql)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        change = rng.randrange(4)
        if change == 0:
            tokens[at] = ""
        elif change == 1:
            tokens[at] = tokens[at] + " " + tokens[at]
        elif change == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens[at] = f" {rng.choice(_WORDS)} "
    return "".join(tokens)


def check(seed: int) -> None:
    """Plan a mutated statement; an error must say where and what to write."""
    rng = random.Random(seed)
    case = rng.choice(_CASES)
    sql = mutated(case["sql"], rng)
    columns = [name for name, _ in case["columns"]]
    raised = None
    try:
        plans(sql, columns, rng.choice(["flink", "standard"]))
    except CepError as error:
        raised = error
    if raised is not None:
        assert re.search(r"line \d+, column \d+", raised.message), (sql, raised.message)
        assert raised.hint, (sql, raised.message)


@given(st.integers(0, 1 << 32))
@settings(max_examples=settings.default.max_examples * 5)
def test_mutated_clauses_end_in_a_plan_or_an_error_that_helps(seed: int) -> None:
    """Every mutated clause gives a plan, or a CepError with line, column and hint."""
    check(seed)
