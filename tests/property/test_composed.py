# SPDX-License-Identifier: Apache-2.0
"""Random composed queries have the matches of the reference in every evaluation."""

from __future__ import annotations

import random

import pytest

from pyflinkcep.matching import threads
from tests.property.composed_queries import ManyNegations, check, events, orders, queries


@pytest.mark.parametrize("switch", ["1", "0"])
def test_every_evaluation_is_the_reference(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed, searched, by lists, counted, aggregated and unpacked; in the kernel and without."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
    chance = random.Random(int(switch))
    writers = [queries(chance), queries(chance, ManyNegations)]
    answered = [
        check(next(every), events(chance, chance.randrange(4, 10)))
        for _ in range(37)
        for every in writers
    ]
    assert sum(map(bool, answered)) > 15


@pytest.mark.slow
def test_the_order_of_matches_tells_not_where_they_were_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is one on lists and tables, of one thread and two, in the kernel and without."""
    monkeypatch.setattr(threads, "LEAST_SHARE", 1)
    chance = random.Random(33)
    writers = [queries(chance), queries(chance, ManyNegations)]
    for number in range(30):
        rows = events(chance, chance.randrange(4, 16))
        chance.shuffle(rows)
        query, found = next(writers[number % 2]), []
        for switch in ("1", "0"):
            monkeypatch.setenv("PYFLINKCEP_KERNEL", switch)
            found.append(orders(query, rows))
        assert found[0] == found[1], (query, rows)
