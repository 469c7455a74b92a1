# SPDX-License-Identifier: Apache-2.0
"""Composed queries under skip_till_any_match as patterns, by ``oneOf`` and ``allOf``."""

from __future__ import annotations

from datetime import timedelta

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.spark_sql import literal_sql
from pyflinkcep.expressions.text import written_name
from pyflinkcep.expressions.tree import Tree
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.computed import column_sql
from pyflinkcep.sase.model import Query, Strategy
from pyflinkcep.sase.normal_form import clauses
from pyflinkcep.sase.placement import placed_clause
from pyflinkcep.sase.shapes import (
    AnyOrder,
    Choice,
    One,
    Optional,
    Repeated,
    Sequence,
    Shape,
    Word,
    words,
)
from pyflinkcep.sase.sql import all_of, condition_sql
from pyflinkcep.sase.tree import references

__all__ = ["composed_pattern", "why_no_composed_pattern"]


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
    pattern = _Builder(query, type_column, every, query.words()).chain(None, query.shape)
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
class _Builder:
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
