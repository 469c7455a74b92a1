# SPDX-License-Identifier: Apache-2.0
"""Patterns that event lists can evaluate: single stages joined by followedByAny."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
    single_conditions,
)
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom, atom_of
from pyflinkcep.engines.lists.frame import Flags, Ints
from pyflinkcep.engines.lists.matching import EventLists
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.codegen import unbranched
from pyflinkcep.expressions.compiler import LeafFields, condition_code
from pyflinkcep.expressions.program import RULES, Code, CompiledExpressions, Kind, Op, Type
from pyflinkcep.expressions.tree import (
    Column,
    Leaf,
    Literal,
    MatchExpression,
    Operation,
    Tree,
    attribute_of,
    rewritten,
)
from pyflinkcep.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.stage import ConsumingStrategy, QuantifierProperty
from pyflinkcep.sase.attributes import column_sql, references
from pyflinkcep.sase.model import Component, Form, Query
from pyflinkcep.sase.placement import MOST_CLAUSES, clause_count


class NotListedError(NotSupportedError):
    """A pattern that lists cannot evaluate."""

    reason: str  # Why


def refused(why: str) -> NotListedError:
    """Return the error for a pattern that lists cannot evaluate."""
    error = NotListedError(
        f'evaluation="eventLists": {why}', 'leave evaluation out, or write evaluation="nfa"'
    )
    error.reason = why
    return error


_OF_ONE = ("first", "last", "min", "max", "sum")
"""The aggregates that are the value itself if there is one event."""

_WHOLE = (Op.FLOOR, Op.CEIL)
_CONSTANTS = (Op.INT, Op.FLOAT)
_NOT_COMPUTED = (Op.SLOT, Op.ADD_PASSING, Op.CONCAT)
"""What stands for several events of a stage, and texts that no event has."""


def answer_name(atom: Atom) -> str:
    """Return the attribute name for the answers of a condition on single events."""
    return f"answer {atom.bit}"


@attrs.frozen
class StageConditions:
    """The conditions of a stage."""

    own: tuple[IterativeCondition, ...]  # Conditions on the event alone
    joining: tuple[Tree, ...]  # Conditions on the event and those of earlier stages


def fitting(
    nfa: NFA,
    conditions: Sequence[IterativeCondition],
    holding: Callable[[Atom], Flags],
    size: int,
) -> Flags:
    """Return which events satisfy conditions; `holding` evaluates the user's."""
    fits = np.ones(size, bool)
    for condition in conditions:
        fits &= _holding(nfa, condition, holding, size)
    return fits


def _holding(
    nfa: NFA, condition: IterativeCondition, holding: Callable[[Atom], Flags], size: int
) -> Flags:
    if isinstance(condition, BooleanConditions):
        return np.full(size, condition.value)
    if not isinstance(condition, RichAndCondition | RichOrCondition | RichNotCondition):
        return holding(atom_of(nfa.atoms, condition))
    parts = [_holding(nfa, part, holding, size) for part in condition.nestedConditions]
    if isinstance(condition, RichNotCondition):
        return ~parts[0]
    together = np.logical_and if isinstance(condition, RichAndCondition) else np.logical_or
    found: Flags = together(*parts)
    return found


def _conjuncts(condition: IterativeCondition) -> Iterator[IterativeCondition]:
    if isinstance(condition, RichAndCondition):
        for part in condition.nestedConditions:
            yield from _conjuncts(part)
    else:
        yield condition


@attrs.frozen(eq=False)
class _Reading:
    """Reads the condition of a stage."""

    nfa: NFA
    expressions: CompiledExpressions | None
    stage: str
    before: Collection[str]  # The earlier stages; each takes one event

    def split(self, condition: IterativeCondition) -> StageConditions:
        """Split the condition by the events that its parts read."""
        own: list[IterativeCondition] = []
        joining: list[Tree] = []
        for part in _conjuncts(condition):
            if self._is_own(part):
                own.append(part)
            else:
                joining.append(self._tree(part))
        return StageConditions(tuple(own), tuple(joining))

    def _is_own(self, condition: IterativeCondition) -> bool:
        """Whether a condition reads one event only."""
        return all(atom_of(self.nfa.atoms, part).bit for part in single_conditions(condition))

    def _tree(self, condition: IterativeCondition) -> Tree:
        """Return a condition on several events."""
        if isinstance(condition, BooleanConditions):
            return Operation("=", (Literal(int(condition.value)), Literal(1)))
        if isinstance(condition, RichAndCondition | RichOrCondition):
            word = "and" if isinstance(condition, RichAndCondition) else "or"
            return Operation(word, tuple(map(self._tree, condition.nestedConditions)))
        if isinstance(condition, RichNotCondition):
            raise self._refused(condition, "NULL under it counts as true")
        atom = atom_of(self.nfa.atoms, condition)
        if atom.bit:
            return Column(answer_name(atom), self.stage)
        if not isinstance(atom.condition, MatchExpression) or self.expressions is None:
            raise self._refused(condition, "it is a function of the event and the partial match")
        tree = rewritten(atom.condition.tree, partial(self._leaf, condition))
        kinds = {field.sql: field.kind for field in self.expressions.fields}
        code = condition_code(tree, LeafFields(kinds), self.stage)
        problem = _problem(unbranched(code), self.expressions.ansi)
        if problem is not None:
            raise self._refused(condition, problem)
        return tree

    def _leaf(self, condition: IterativeCondition, part: Leaf) -> Column:
        """Return what a condition reads as a value of one event."""
        if isinstance(part, Column):
            return Column(part.sql, self.stage)
        if part.stage not in self.before:
            why = f"it reads {part.stage!r}, which is not an earlier stage"
            raise self._refused(condition, why)
        if part.function not in _OF_ONE or part.offset or part.argument is None:
            why = f"it counts or averages what {part.stage!r} has taken, or reads further back"
            raise self._refused(condition, why)
        return Column(part.argument, part.stage)

    def _refused(self, condition: IterativeCondition, why: str) -> NotSupportedError:
        return refused(f"the condition {condition!r} of stage {self.stage!r}: {why}")


def _problem(code: Code, ansi: bool) -> str | None:
    """Return why lists cannot run a program; None if they can."""
    for (before, value), (op, operand) in pairwise(((Op.NULL, None), *code)):
        if op in _NOT_COMPUTED:
            return f"{op.name} is computed for partial matches only"
        rule = RULES.get(op)
        if not ansi or rule is None:
            continue
        if op in _WHOLE or (rule.has_range and operand != Type.FLOAT):
            return "whole numbers may overflow, which is an error: cast one to double"
        if rule.divides and not (before in _CONSTANTS and value):
            return "it may divide by zero, which is an error"
    return None


@attrs.frozen(eq=False)
class ChainEvents:
    """Events in their final order, as a chain of stages sees them."""

    times: Sequence[int] | Ints  # Their times, in ascending order within a key
    # Returns for each event whether a condition on single events holds.
    holding: Callable[[Atom], Flags]
    # Returns for each event a field of match expressions, given its number; None for NULL.
    field: Callable[[int], Any]
    # The number of each event's key, events of one key side by side; None if there is one.
    keys: Sequence[int] | Ints | None = None
    # Which events may be a match's first, and its last; None for all.
    starts: Sequence[bool] | Flags | None = None
    ends: Sequence[bool] | Flags | None = None


@attrs.frozen(eq=False, slots=False)
class PatternChain:
    """A pattern as a query on event lists, with the same matches in the same multiplicity."""

    query: Query  # The stages, the conditions that join their events, and the window
    _nfa: NFA
    _expressions: CompiledExpressions | None
    _conditions: Mapping[str, StageConditions]

    @classmethod
    def of(
        cls, pattern: Pattern, nfa: NFA, expressions: CompiledExpressions | None
    ) -> PatternChain:
        """Return a pattern as a chain."""
        stages = pattern.stages()
        check_chain(stages, nfa)
        conditions: dict[str, StageConditions] = {}
        components: list[Component] = []
        for stage in stages:
            name, before = stage.getName(), [p.variable for p in components if not p.negated]
            found = _Reading(nfa, expressions, name, before).split(stage.getCondition())
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

    def _columns(self, events: ChainEvents) -> Iterator[tuple[str, Any]]:
        """Yield what conditions read: fields, and answers as numbers."""
        every = (r for tree in self.query.conditions for r in references(tree))
        asked = {str(reference.attribute) for reference in every}
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
    """A chain's query on events."""

    query: Query  # The query
    table: EventTable  # The events; they have no types
    own: Mapping[str, Ints]  # By stage, the positions of the events that fit it

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
