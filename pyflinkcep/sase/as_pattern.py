# SPDX-License-Identifier: Apache-2.0
"""Queries that can be written as patterns."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.text import literal_sql, spark_sql, written_name
from pyflinkcep.expressions.tree import WHOLE, Aggregate, Column, Leaf, Operation, Tree
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.computed import column_sql, is_computed, owned_sql, references
from pyflinkcep.sase.model import (
    AnyOrder,
    Choice,
    Component,
    Form,
    One,
    Optional,
    Query,
    Repeated,
    Sequence,
    Shape,
    Strategy,
    Word,
    words,
)
from pyflinkcep.sase.placement import Edges, PlacedClause, Placement, clauses, placed_clause

_PLAIN = ("=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null", "is not null")
"""The operators that never fail."""


def usable_sql(query: Query, type_column: str, placement: Placement) -> str:
    """
    Return which events a query can use, if its strategies skip all others.

    Conditions with arithmetic are left out: what fails in Spark is NULL in a query.
    """
    ways = [_way(part, placement.get(part.variable), type_column) for part in query.components]
    return " OR ".join(f"({way})" for way in dict.fromkeys(ways))


def _way(part: Component, edges: Edges | None, type_column: str) -> str:
    is_type = f"{column_sql(type_column)} = {literal_sql(part.type)}"
    if edges is None:
        return is_type
    if part.negated:
        return all_of([is_type, *_plain(edges.absent)])
    begin = all_of(_plain(edges.begin))
    take = all_of(_plain(edges.take))
    if not part.repeats or begin == take:
        return all_of([is_type, *([begin] if begin else [])])
    if not begin or not take:
        return is_type
    return f"{is_type} AND ({begin} OR {take})"


def _plain(clauses: Iterable[PlacedClause]) -> list[str]:
    return [condition_sql(c.tree) for c in clauses if _is_plain(c.tree)]


def _is_plain(tree: Tree) -> bool:
    """Whether a condition compares columns and literals only."""
    if isinstance(tree, Column):
        return not is_computed(str(tree.sql))
    if isinstance(tree, Operation):
        return tree.operator in _PLAIN and all(map(_is_plain, tree.operands))
    return not isinstance(tree, Aggregate)


def all_of(tests: Iterable[str]) -> str:
    """Return conditions joined by AND."""
    return " AND ".join(tests)


def condition_sql(tree: Tree) -> str:
    """Return a condition over the current event and the run as SQL over stages."""
    return spark_sql(tree, _leaf_sql)


def _leaf_sql(leaf: Leaf) -> str:
    if isinstance(leaf, Column):
        return str(leaf.sql)
    stage = written_name(leaf.stage)
    what = f"{stage}.*" if leaf.argument is None else owned_sql(leaf.over, stage)
    return f"{leaf.function}({what})"


def why_no_composed_pattern(query: Query) -> str | None:
    """Return why no pattern has the matches of a composed query; None if one has."""
    if {query.strategy_of(part.variable) for part in query.positive} != {
        Strategy.SKIP_TILL_ANY_MATCH
    }:
        return "it is composed, and events that begin one component are skipped for no other"
    if any(part.in_group for part in query.components):
        return "it is composed, and a group repeats"
    for part in query.components:
        if part.repeats or part.negated:
            what = "repeats" if part.repeats else "is negated"
            return f"it is composed, and {part.variable!r} {what}"
    if query.equal and any(len(word) == 1 for word in query.words()):
        return "it is composed, and one event may be a match, whose [attr] may be NULL"
    assert query.shape is not None
    if _interleaves(query.shape):
        return "events of a SEQ within AND may stand between those of other parts"
    try:
        composed_pattern(query, "type")
    except CepError as error:
        return f"it is composed: {error.message}"
    return None


def composed_pattern(query: Query, type_column: str) -> Pattern:
    """Return the pattern with the matches of a query; see :func:`why_no_composed_pattern`."""
    assert query.shape is not None
    every = [clause for condition in query.conditions for clause in clauses(condition)]
    pattern = _ComposedBuilder(query, type_column, every, query.words()).chain(None, query.shape)
    if query.window is not None:
        pattern = pattern.within(timedelta(milliseconds=query.window + 1))
    return pattern


def _interleaves(shape: Shape) -> bool:
    """Whether parts in any order have more than one event, or perhaps none."""
    if isinstance(shape, One):
        return False
    inner = (shape.part,) if isinstance(shape, Optional | Repeated) else shape.parts
    if isinstance(shape, AnyOrder) and any(len(w) != 1 for p in inner for w in words(p, 1000)):
        return True
    return any(map(_interleaves, inner))


@attrs.frozen
class _ComposedBuilder:
    """Writes a shape as stages and groups of stages."""

    query: Query
    type_column: str
    clauses: list[Tree]
    words: list[Word]

    def chain(self, before: Pattern | None, shape: Shape) -> Pattern:
        """Return the pattern before a shape with the shape after it."""
        if isinstance(shape, Sequence):
            for part in shape.parts:
                before = self.chain(before, part)
            assert before is not None
            return before
        if isinstance(shape, One):
            name = shape.variable
            stage = Pattern.begin(name) if before is None else before.followedByAny(name)
            return stage.where(self._condition(name))
        assert not isinstance(shape, Repeated)
        group = self._group(shape)
        return Pattern.begin(group) if before is None else before.followedByAny(group)

    def _group(self, shape: Choice | AnyOrder | Optional) -> Pattern:
        if isinstance(shape, Choice):
            return Pattern.oneOf(*(self.chain(None, part) for part in shape.parts))
        if isinstance(shape, AnyOrder):
            parts = (self.chain(None, part) for part in shape.parts)
            return Pattern.allOf(*parts, joinedBy="followedByAny")
        if isinstance(shape.part, Choice | AnyOrder):
            return self._group(shape.part).optional()
        return Pattern.oneOf(self.chain(None, shape.part)).optional()

    def _condition(self, variable: str) -> str:
        """Return the condition on the event of a component, as SQL."""
        query = self.query
        tests = [
            f"{column_sql(self.type_column)} = {literal_sql(query.component(variable).type)}",
            *(
                f"{column_sql(name)} = {literal_sql(value.value)}"
                for name, value in query.constants
            ),
            *(f"{column_sql(name)} = {column_sql(name)}" for name in query.equal),
        ]
        for clause in self.clauses:
            others = {reference.variable for reference in references(clause)}
            if not others:
                tests.append(condition_sql(clause))
            elif variable in others:
                tests += self._test(clause, variable, others - {variable})
        return all_of(tests)

    def _test(self, clause: Tree, variable: str, others: set[str]) -> list[str]:
        """Return a clause as a test on an event: void unless the others have taken theirs."""
        own = [word for word in self.words if variable in word]
        before = [others & set(word[: word.index(variable)]) for word in own]
        if others not in before:
            return []
        test = condition_sql(placed_clause(clause, variable, "begin").tree)
        missing = sorted(name for name in others if any(name not in found for found in before))
        void = [f"count({written_name(name)}.*) = 0" for name in missing]
        return [f"({' OR '.join([*void, f'({test})'])})"]


_STRICT, _PARTITION = Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY
_NEXT, _ANY = Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH


def as_pattern(query: Query, type_column: str, placement: Placement) -> Pattern:
    """
    Return the pattern that has the same matches as a query, if :func:`why_no_pattern`
    is None.
    """
    if query.is_composed:
        return composed_pattern(query, type_column)
    return _Builder(query, type_column, placement).pattern()


def why_no_pattern(query: Query, placement: Placement) -> str | None:
    """Return why no pattern has the matches of a query, given its clauses; None if one has."""
    if query.form is Form.LIST:
        return "elements joined by ; have distinct times, those of a pattern may be equal"
    if query.before is not None:
        return "it reads the events of another query"
    if query.most_events is not None:
        return "its window counts events"
    if query.is_composed:
        return why_no_composed_pattern(query)
    if any(part.variable == WHOLE for part in query.components):
        return f"a variable is named {WHOLE}, which stands for all stages in SQL"
    strategies = {query.strategy_of(part.variable) for part in query.positive}
    loops = [part for part in query.positive if part.repeats]
    if loops and len(strategies) > 1:
        return "strategies differ around a loop"
    if _PARTITION in strategies and (query.constants or query.is_global):
        return "partition_contiguity passes events by that [attr = literal] or strictness sees"
    about_negation = _about_negation(query, placement, strategies)
    return about_negation or _about_loops(query, placement, strategies)


def _about_negation(query: Query, placement: Placement, strategies: set[Strategy]) -> str | None:
    if any(len(parts) > 1 for parts in query.negations):
        return "a sequence of events is negated"
    seen = set()
    for number, part in enumerate(query.components):
        if not part.negated:
            seen.add(part.variable)
            continue
        name = part.variable
        if number == 0:
            return f"{name!r} is negated before the first component"
        if query.components[number - 1].negated:
            return "two negated components are side by side"
        if query.components[number - 1].repeats:
            return f"{name!r} is negated after a loop, which a pattern would end"
        if part.type in [later.type for later in query.components[number + 1 : number + 2]]:
            return f"an event may be {name!r}, which is negated, and what comes after it"
        if not strategies <= {_NEXT, _ANY}:
            return "negation with contiguity"
        if any(not clause.reads <= seen for clause in placement[name].absent):
            return f"{name!r} is negated and compared with a later component"
    return None


def _about_loops(query: Query, placement: Placement, strategies: set[Strategy]) -> str | None:
    parts = query.positive
    for number, part in enumerate(parts):
        if not part.repeats:
            continue
        if placement[part.variable].leave:
            return f"a condition is evaluated when {part.variable!r} is left"
        following = [later.type for later in parts[number + 1 : number + 2]]
        if strategies == {_NEXT} and part.type in following:
            return f"an event may be taken by {part.variable!r} and begin what follows it"
    return None


@attrs.frozen
class _Builder:
    """Writes a query as stages."""

    query: Query
    type_column: str
    placement: Placement

    def pattern(self) -> Pattern:
        query = self.query
        pattern: Pattern | None = None
        before: Component | None = None
        for part in query.components:
            condition = self._condition(part, self.placement[part.variable], pattern is None)
            pattern = self._stage(pattern, before, part).where(condition)
            pattern = self._loop(pattern, part)
            before = part if not part.negated else before
        assert pattern is not None
        if query.window is not None:
            pattern = pattern.within(timedelta(milliseconds=query.window + 1))
        return pattern

    def _stage(self, pattern: Pattern | None, before: Component | None, part: Component) -> Pattern:
        name = part.variable
        if pattern is None or before is None:
            return Pattern.begin(name)
        if part.negated:
            return pattern.notFollowedBy(name)
        strategy = self.query.strategy_of(name)
        if strategy in (_STRICT, _PARTITION):
            return pattern.next(name)
        if strategy is _ANY or before.repeats:
            return pattern.followedByAny(name)
        return pattern.followedBy(name)

    def _loop(self, pattern: Pattern, part: Component) -> Pattern:
        if not part.repeats:
            return pattern
        strategy = self.query.strategy_of(part.variable)
        if strategy is _ANY:
            return pattern.oneOrMore().allowCombinations()
        if strategy is _NEXT:
            is_last = part is self.query.positive[-1]
            return pattern.oneOrMore() if is_last else pattern.oneOrMore().greedy()
        return pattern.oneOrMore().consecutive()

    # --- conditions

    def _condition(self, part: Component, edges: Edges, is_first: bool) -> str:
        """Return the condition on an event, as SQL."""
        tests = [f"{column_sql(self.type_column)} = {literal_sql(part.type)}"]
        for name, value in self.query.constants:
            tests.append(f"{column_sql(name)} = {literal_sql(value.value)}")
        begin, take = self._all(edges.begin, is_first=is_first), self._all(edges.take)
        if part.negated:
            tests += self._all(edges.absent)
        elif part.repeats and begin != take:
            taken = f"count({written_name(part.variable)}.*)"
            first, later = f"{taken} = 0", f"{taken} > 0"
            tests.append(f"({all_of([first, *begin])} OR {all_of([later, *take])})")
        else:
            tests += begin
        return all_of(tests)

    def _all(self, clauses: tuple[PlacedClause, ...], *, is_first: bool = False) -> list[str]:
        texts = [condition_sql(clause.tree) for clause in clauses]
        if is_first:
            return texts
        first = self.query.positive[0].variable
        for name in self.query.equal:
            column = column_sql(name)
            other = f"first({written_name(first)}.{column})" if self.query.is_global else column
            texts.append(f"{column} = {other}")
        return texts
