# SPDX-License-Identifier: Apache-2.0
"""Patterns that event lists can evaluate: single stages joined by followedByAny."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.lists.chain_conditions import (
    StageConditions,
    answer_name,
    conditions_of,
    fitting,
)
from pyflinkcep.engines.lists.frame import Flags
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.lists.ranges import Ints
from pyflinkcep.engines.lists.refusals import refused
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.program import CompiledExpressions, Kind
from pyflinkcep.expressions.tree import Column, Leaf, attribute_of, rewritten
from pyflinkcep.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.quantifier import ConsumingStrategy, QuantifierProperty
from pyflinkcep.sase.computed import column_sql
from pyflinkcep.sase.model import Component, Form, Query
from pyflinkcep.sase.normal_form import MOST_CLAUSES, clause_count
from pyflinkcep.sase.tree import references

__all__ = ["ChainEvents", "ChainTable", "PatternChain", "check_chain"]


@attrs.frozen(eq=False)
class ChainEvents:
    """
    Events in their final order, as a chain of stages sees them.

    Attributes
    ----------
    times : sequence or array of int, milliseconds
        Their times, in ascending order within a key.
    holding : callable
        Returns for each event whether a condition on single events holds.
    field : callable
        Returns for each event a field of match expressions, given its number; None for NULL.
    keys : sequence or array of int, or None
        The number of each event's key, events of one key side by side; None if there is one.
    starts, ends : sequence or array of bool, or None
        Which events may be a match's first, and its last; None for all.
    """

    times: Sequence[int] | Ints
    holding: Callable[[Atom], Flags]
    field: Callable[[int], Any]
    keys: Sequence[int] | Ints | None = None
    starts: Sequence[bool] | Flags | None = None
    ends: Sequence[bool] | Flags | None = None


@attrs.frozen(eq=False, slots=False)
class PatternChain:
    """
    A pattern as a query on event lists, with the same matches in the same multiplicity.

    Attributes
    ----------
    query : Query
        The stages, the conditions that join their events, and the window.
    """

    query: Query
    _nfa: NFA
    _expressions: CompiledExpressions | None
    _conditions: Mapping[str, StageConditions]

    @classmethod
    def of(
        cls, pattern: Pattern, nfa: NFA, expressions: CompiledExpressions | None
    ) -> PatternChain:
        """
        Return a pattern as a chain.

        Parameters
        ----------
        pattern : Pattern
            The pattern.
        nfa : NFA
            The pattern, compiled.
        expressions : CompiledExpressions or None
            The program of its match expressions.

        Raises
        ------
        NotSupportedError
            If the answers could differ; the message says why.
        """
        stages = pattern.stages()
        check_chain(stages, nfa)
        conditions: dict[str, StageConditions] = {}
        components: list[Component] = []
        for stage in stages:
            name, before = stage.getName(), [p.variable for p in components if not p.negated]
            found = conditions_of(nfa, expressions, name, stage.getCondition(), before)
            if _is_not(stage) and found.joining:
                raise refused(f"the condition of the NOT stage {name!r} reads other stages")
            conditions[name] = found
            components.append(Component(name, name, negated=_is_not(stage)))
        joining = [tree for found in conditions.values() for tree in found.joining]
        if sum(map(clause_count, joining)) > MOST_CLAUSES:
            raise refused(f"its conditions have more than {MOST_CLAUSES} clauses")
        window = nfa.window_time - 1 if nfa.window_time > 0 else None  # Flink's is half open
        query = Query(Form.SEQ, tuple(components), conditions=tuple(joining), window=window)
        return cls(query, nfa, expressions, conditions)

    @cached_property
    def by_runs(self) -> Query:
        """The query as runs evaluate it: with the names of columns in place of their SQL."""
        conditions = tuple(rewritten(tree, _named) for tree in self.query.conditions)
        return attrs.evolve(self.query, conditions=conditions)

    @property
    def stages(self) -> list[str]:
        """The stages that take events, in pattern order."""
        return self.query.variables

    def on(self, events: ChainEvents) -> ChainTable:
        """Return the chain's query on events."""
        columns = dict(self._columns(events))
        kinds = {name: kind for name, kind in self._kinds() if name in columns}
        shown: Any = (events.keys, events.starts, events.ends)
        times: Any = events.times
        table = EventTable(times, (), columns, kinds, *shown)
        size = len(events.times)
        fits = {
            name: fitting(self._nfa, found.own, events.holding, size)
            for name, found in self._conditions.items()
        }
        for name, absent in self._closed():
            fits[name] &= ~fits[absent]
        own = {name: np.flatnonzero(held) for name, held in fits.items()}
        return ChainTable(self.query, table, own)

    def _closed(self) -> Iterator[tuple[str, str]]:
        """
        Yield stages with a NOT stage before them; they cannot take its events.

        In Flink an event that fits both also moves the partial match to the stop state, which drops
        all its branches except those into the final state.
        """
        absent: list[str] = []
        for part in self.query.components:
            if part.negated:
                absent.append(part.variable)
            else:
                if part is not self.query.components[-1]:
                    yield from ((part.variable, name) for name in absent)
                absent = []

    @property
    def _asked(self) -> set[str]:
        return {str(r.attribute) for tree in self.query.conditions for r in references(tree)}

    def _columns(self, events: ChainEvents) -> Iterator[tuple[str, Any]]:
        """Yield what conditions read: fields, and answers as numbers."""
        asked = self._asked
        for number, field in enumerate(self._expressions.fields if self._expressions else ()):
            if attribute_of(field.sql) in asked:
                yield attribute_of(field.sql), events.field(number)
        for atom in self._nfa.atoms:
            if answer_name(atom) in asked:
                yield answer_name(atom), events.holding(atom).astype(np.int64)

    def _kinds(self) -> Iterator[tuple[str, Kind]]:
        for field in self._expressions.fields if self._expressions else ():
            yield attribute_of(field.sql), field.kind
        for atom in self._nfa.atoms:
            yield answer_name(atom), Kind.BOOLEAN


@attrs.frozen(eq=False)
class ChainTable:
    """
    A chain's query on events.

    Attributes
    ----------
    query : Query
        The query.
    table : EventTable
        The events; they have no types.
    own : mapping of str to array of int
        By stage, the positions of the events that fit it.
    """

    query: Query
    table: EventTable
    own: Mapping[str, Ints]

    def lists(self) -> EventLists:
        """Return the event lists that matches are joined from."""
        return EventLists.of_positions(self.query, self.table, self.own)

    def typed(self) -> EventTable | None:
        """Return the events with stages as their types; None if one fits several stages."""
        size = len(self.table.times)
        names = list(self.own)
        codes = np.full(size, len(names), np.int32)
        for number, positions in enumerate(self.own.values()):
            codes[positions] = number
        taken = size - np.count_nonzero(codes == len(names))
        if taken != sum(map(len, self.own.values())):
            return None
        return attrs.evolve(self.table, types=Coded(codes, [*names, None]))


def _named(leaf: Leaf) -> Leaf:
    """Return a value of an event by the name that its column has in a query."""
    assert isinstance(leaf, Column)  # each stage takes one event
    return attrs.evolve(leaf, sql=column_sql(str(leaf.attribute)))


def check_chain(stages: Sequence[Pattern], nfa: NFA) -> None:
    """
    Refuse a pattern that is not a chain of single stages joined by followedByAny; conditions are
    not checked.

    Raises
    ------
    NotSupportedError
        If it is not such a chain; the message says why.
    """
    if nfa.skips:
        raise refused("a skip strategy needs matches one by one")
    if nfa.window_times:
        raise refused("its window is a gap between one event and the next")
    for number, stage in enumerate(stages):
        name, strategy = stage.getName(), stage.getQuantifier().consumingStrategy
        if isinstance(stage, GroupPattern):
            raise refused("it has a group of stages")
        if stage.getQuantifier().properties != {QuantifierProperty.SINGLE}:
            raise refused(f"stage {name!r} repeats or is optional")
        if number and not _is_not(stage) and strategy is not ConsumingStrategy.SKIP_TILL_ANY:
            raise refused(f"stage {name!r} is not joined by followedByAny")
    if _is_not(stages[-1]):
        raise refused(f"it ends with the NOT stage {stages[-1].getName()!r}")


def _is_not(stage: Pattern) -> bool:
    strategy = stage.getQuantifier().consumingStrategy
    if strategy is ConsumingStrategy.NOT_NEXT:
        raise refused(f"stage {stage.getName()!r} is joined by notNext")
    return strategy is ConsumingStrategy.NOT_FOLLOW
