# SPDX-License-Identifier: Apache-2.0
"""Which events a pattern wants, decided once for all patterns of one shape."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
)
from pyflinkcep.engines.flink.bridge import knows_skip
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.analysis import KeyNeeds, Relevance
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.state import StateTable
from pyflinkcep.pattern.aftermatch import SkipToElementStrategy

Shape = tuple[Any, ...]
"""An automaton without names, lengths of windows and what conditions say."""

Form = tuple[Any, ...]
"""An automaton without names, the length of its window and what conditions say."""


@attrs.frozen
class EventNeeds:
    """Which events patterns of one shape want."""

    droppable: frozenset[int]  # Those that change nothing, by the bits of conditions that hold
    of_key: KeyNeeds | None  # What a key needs to have a match

    @classmethod
    def of(cls, nfa: NFA) -> EventNeeds:
        """Decide about a pattern."""
        known = known_bits(nfa.atoms)
        relevance = Relevance.of(nfa, known, shows_next=False)
        return cls(relevance.droppable, KeyNeeds.of(nfa, known))


def shape_of(nfa: NFA) -> Shape:
    """
    Return all of an automaton on which it depends what events it wants.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.engines.flink.nfa import NFACompiler
    >>> def shape(a, b):
    ...     pattern = Pattern.begin(a).where("x = 1").followedBy(b).where("x = 2")
    ...     return shape_of(NFACompiler.compile(pattern))
    >>> shape("a", "b") == shape("low", "high")
    True
    """
    states = {table.state: number for number, table in enumerate(nfa.tables.values())}
    stages = {stage: number for number, stage in enumerate(nfa.stages)}
    skip, known = nfa.skip_strategy, known_bits(nfa.atoms)
    return (
        type(skip).__name__,
        stages.get(skip.getPatternName() or ""),
        nfa.window_time > 0,
        nfa.handle_timeout,
        tuple((bool(atom.bit), bool(atom.bit & known)) for atom in nfa.atoms),
        tuple(
            (
                table.kind,
                stages[table.state.stage],
                table.name in nfa.window_times,
                table is nfa.start,
                tuple(
                    (edge.action, states[edge.target], _form(edge.condition, table, nfa))
                    for edge in table.state.transitions
                ),
            )
            for table in nfa.tables.values()
        ),
    )


def form_of(shape: Shape, nfa: NFA) -> Form | None:
    """Return the form of an automaton; None if it has a strategy of the user's."""
    skip = nfa.skip_strategy
    if not knows_skip(skip):
        return None
    throws = isinstance(skip, SkipToElementStrategy) and skip.shouldThrowException
    gaps = tuple(table.gap_ms for table in nfa.tables.values())
    return shape, gaps, throws


def _form(condition: IterativeCondition | None, table: StateTable, nfa: NFA) -> Any:
    if condition is None:
        return None
    if isinstance(condition, BooleanConditions):
        return condition.value
    if isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
        parts = condition.nestedConditions
        return (type(condition).__name__, *(_form(part, table, nfa) for part in parts))
    return nfa.atoms.index(table.atoms.of(condition))
