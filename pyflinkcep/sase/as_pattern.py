# SPDX-License-Identifier: Apache-2.0
"""Queries that can be written as patterns."""

from __future__ import annotations

from datetime import timedelta

import attrs

from pyflinkcep.expressions.spark_sql import literal_sql
from pyflinkcep.expressions.text import written_name
from pyflinkcep.expressions.tree import WHOLE
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.composed_pattern import composed_pattern, why_no_composed_pattern
from pyflinkcep.sase.computed import column_sql
from pyflinkcep.sase.model import Component, Form, Query, Strategy
from pyflinkcep.sase.placement import Edges, PlacedClause, Placement
from pyflinkcep.sase.sql import all_of, condition_sql

__all__ = ["as_pattern", "why_no_pattern"]

_STRICT, _PARTITION = Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY
_NEXT, _ANY = Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH


def as_pattern(query: Query, type_column: str, placement: Placement) -> Pattern:
    """
    Return the pattern that has the same matches as a query, if :func:`why_no_pattern` is None.

    Parameters
    ----------
    query : Query
        The query.
    type_column : str
        The column that holds an event's type.
    placement : Placement
        Where the clauses of the query are evaluated.
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
