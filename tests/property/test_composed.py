# SPDX-License-Identifier: Apache-2.0
"""Random composed queries have the matches of the reference in every evaluation."""

from __future__ import annotations

import random

import pytest

from tests.property.composed_queries import ManyNegations, check, events, queries


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
