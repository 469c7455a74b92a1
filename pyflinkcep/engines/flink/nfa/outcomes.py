# SPDX-License-Identifier: Apache-2.0
"""All that events may do to a partial match, by the answers to conditions."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.steps import Ask, StateTable, Step

__all__ = ["Answers", "outcomes"]

Answers = dict[Atom, bool]


def outcomes(table: StateTable) -> Iterator[tuple[Answers, Step]]:
    """
    Yield each step of a partial match in a state, with the answers that lead to it.

    There may be 2ⁿ of them for n conditions.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> nfa = NFACompiler.compile(Pattern.begin("a").where("x = 1").next("b"))
    >>> [(list(answers.values()), step.takes) for answers, step in outcomes(nfa.start)]
    [([True], True), ([False], False)]
    """
    open_: list[tuple[Ask | Step, Answers]] = [(table.first(), {})]
    while open_:
        node, answers = open_.pop()
        if isinstance(node, Step):
            yield answers, node
            continue
        for holds in (False, True):
            open_.append((node.following(holds), {**answers, node.atom: holds}))
