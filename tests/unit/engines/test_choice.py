# SPDX-License-Identifier: Apache-2.0
"""Which evaluation runs, whatever was requested."""

from __future__ import annotations

import pytest

from pyflinkcep.engines.choice import chosen, chosen_for_compressed
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.sase import parse
from pyflinkcep.testing import matchSase

SEQ, LIST = parse("PATTERN SEQ(A a, B b)"), parse("PATTERN A;B")


@pytest.mark.parametrize("output", ["onePerStart", "nonOverlapping"])
def test_the_first_match_of_a_start_is_searched_for(output: str) -> None:
    """An evaluation that is replaced by another says so."""
    how = chosen(SEQ, "nfa", output)
    assert how.name == "backtracking"
    assert how.reason == f"nfa was asked for, and searches for output {output} too"
    assert chosen(SEQ, "nfa").name == "nfa"


def test_an_evaluation_that_lists_matches_does_not_compress_them() -> None:
    """It is refused, not replaced."""
    assert [chosen_for_compressed(query).name for query in (SEQ, LIST)] == ["nfa", "eventLists"]
    assert chosen_for_compressed(SEQ, "nfa").name == "nfa"
    assert chosen_for_compressed(LIST, "eventLists").name == "eventLists"
    for evaluation in ("backtracking", "eventLists"):
        with pytest.raises(NotSupportedError, match=f'evaluation="{evaluation}" lists matches'):
            matchSase(SEQ, [{"type": "A"}], evaluation=evaluation, compressed=True)
