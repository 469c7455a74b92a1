# SPDX-License-Identifier: Apache-2.0
"""Internal state names."""

from __future__ import annotations

import pytest

from pyflinkcep import MalformedPatternException
from pyflinkcep.engines.flink.nfa.compiler.graph_builder import NFAStateNameHandler


def test_counters_begin_at_the_second_use() -> None:
    """The first state of a stage has the bare name, the next ones the smallest free counter."""
    names = NFAStateNameHandler()

    assert [names.unique_internal_name(n) for n in ("b", "b", "c", "b", "b:0")] == [
        "b",
        "b:0",
        "c",
        "b:1",
        "b:0:0",
    ]


def test_a_reserved_name_is_refused() -> None:
    """A name can be checked in once; after clearing it is free again."""
    names = NFAStateNameHandler()
    names.check_name_uniqueness("a")

    with pytest.raises(MalformedPatternException, match="Duplicate pattern name: a"):
        names.check_name_uniqueness("a")
    names.clear()

    assert names.unique_internal_name("a") == "a"
