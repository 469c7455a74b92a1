# SPDX-License-Identifier: Apache-2.0
"""Conditions on the values of columns, which are answered from columns in order."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import Eql
from pyflinkcep.rules.shared_events import Conditions, SharedEvents
from pyflinkcep.tables.eql_match import trees_of
from pyflinkcep.tables.field_values import EventFields
from tests.seeds import each_seed

_WORDS = ("=", "<", "<=", ">", ">=")
_LIMITS = (-(1 << 63), (1 << 63) - 1)


def _table(choose: random.Random, size: int) -> pa.Table:
    """Return events with extremes, nulls and equal values."""
    wide = [choose.choice([None, *_LIMITS, *range(-3, 4)]) for _ in range(size)]
    columns = {
        "t": pa.array(range(size)),
        "Wide": pa.array(wide, pa.int64()),
        "small": pa.array([choose.randrange(-9, 9) for _ in range(size)], pa.int8()),
        "part": pa.array([choose.choice([0.5, 1.0, 2.0]) for _ in range(size)]),
        "name": pa.array([choose.choice(["a", "b", "", "é", None]) for _ in range(size)]),
    }
    return pa.table(columns)


def _test(choose: random.Random) -> str:
    column = choose.choice(["Wide", "wide", "small", "part", "name"])
    if column == "name":
        return f"name {choose.choice(['=', '=', '<'])} '{choose.choice(['a', 'b', 'é', '', 'x'])}'"
    value = choose.choice([*range(-4, 5), 10, -200, "1.0", *_LIMITS])
    word = choose.choice(_WORDS)
    return f"{value} {word} {column}" if choose.random() < 0.3 else f"{column} {word} {value}"


@each_seed(20)
def test_ranges_are_what_programs_find(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a condition is answered, it holds for the same events in the same order."""
    choose = random.Random(seed)
    table = _table(choose, choose.choice([0, 1, 200]))
    texts = [" AND ".join(_test(choose) for _ in range(choose.randrange(1, 4))) for _ in range(60)]
    texts += [f"{_test(choose)} OR {_test(choose)}" for _ in range(3)]
    fields = EventFields.of_table(table)
    queries = [text.replace("=", "==").replace("<==", "<=").replace(">==", ">=").replace("'", '"')
               for text in texts if not any(part in text for part in ("wide", "name <", "808"))]  # fmt: skip
    trees = [
        tree
        for query in queries
        for tree in trees_of(Eql(f"any where {query.replace('AND', 'and').replace('OR', 'or')}"),
                             fields, "name")
    ]  # fmt: skip

    def held() -> list[Any]:
        events = SharedEvents.of(table, "t", "name", texts, "UTC", Conditions([*texts, *trees]))
        known = [not isinstance(one, str) or events.computes(one) for one in [*texts, *trees]]
        return [
            events.holding(n).tolist() if is_known else None for n, is_known in enumerate(known)
        ]

    in_ranges = held()
    monkeypatch.setattr(SharedEvents, "_in_ranges", lambda *_: None)
    assert in_ranges == held()
