# SPDX-License-Identifier: Apache-2.0
"""Automata on the events near the rarest component."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any
from unittest import mock

import attrs
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.engines.sequences import evaluation
from pyflinkcep.engines.sequences.evaluation import Sequences
from pyflinkcep.engines.sequences.runs import Track
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase import parse
from tests.unit.engines.sequences.test_counts import random_query, random_table


def comparable(matches: Any) -> list[str]:
    return sorted(map(repr, matches))


@given(st.integers(0, 1 << 40))
def test_events_far_from_the_rarest_change_no_match(seed: int) -> None:
    """Under every strategy, with negations at either end, for every output, in C and in Python."""
    chance = random.Random(seed)
    try:
        query = random_query(chance, compares_absent=chance.random() < 0.5)
    except ValueError:
        return  # a negation at an end without WITHIN, ...
    table = random_table(chance, chance.choice([14, 40]))
    weights = chance.choice(["AAAAAAAAAAB", "AAAAAABBBBBBBBBCD", "BBBBBBBBCCCCCCCCCDA"])
    ends = [chance.random() < 0.5 for _ in table.times] if chance.random() < 0.2 else None
    table = attrs.evolve(table, types=[chance.choice(weights) for _ in table.times], ends=ends)
    whole = Sequences(query, table)
    if sum(1 for _ in islice(whole._unpacked(), 2001)) > 2000:
        return
    with mock.patch.multiple(evaluation, _MANY=2, RARER=1):
        near = Sequences(query, table, narrows=True)
        assert comparable(near.matches()) == comparable(whole.matches())
        assert comparable(near._unpacked()) == comparable(whole._unpacked())
        for output in ("all", "onePerStart", "nonOverlapping"):
            expected = comparable(whole.searched(output))
            assert comparable(near.searched(output)) == expected
            assert comparable(near._searched(output, None, None)) == expected


def test_a_loop_with_a_rare_end_starts_from_it() -> None:
    """Only events within the window of the one C are looked at; without a C, none is."""
    size = 4000
    query = parse("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x WITHIN 10")
    asked = []
    of = Track.of

    def counted(*given: Any) -> Track:
        asked.append(len(given[1]))
        return of(*given)

    def found(types: list[str]) -> int:
        asked.clear()
        table = EventTable(
            range(size), types, {"x": list(range(size))}, random_table(random.Random(), 0).kinds
        )
        with mock.patch.object(Track, "of", counted):
            return len(list(Sequences(query, table, narrows=True)._unpacked()))

    types = list("AB" * (size // 2))
    assert (found(types), asked) == (0, [])
    types[2000] = "C"
    assert found(types) == sum(2**n - 1 for n in (5, 4, 3, 2, 1))
    assert asked == [21]
