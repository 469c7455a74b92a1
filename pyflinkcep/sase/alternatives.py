# SPDX-License-Identifier: Apache-2.0
"""
Composed queries as plain ones: a plain query for each word of the pattern, see ``shapes.py``.

A match of a composed query takes events for the components of one word, in its order, and the
clauses that name only these apply: so it is a match of the word's query. Words differ in their
components or in their order, so each match is one of one word only. A strategy other than
skip_till_next_match treats an event as the word's query alone does. Under skip_till_next_match a
run that waits is ended by an event that begins another component which may come next, unless it
also begins the word's own; that is a negated component with the conditions of the other one. After
a loop nothing waits: the loop goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from pyflinkcep.expressions.tree import Aggregate, Column, Leaf, Literal, Operation, Tree, rewritten
from pyflinkcep.sase.model import Component, Query, Strategy
from pyflinkcep.sase.normal_form import clauses
from pyflinkcep.sase.placement import clause_edges
from pyflinkcep.sase.shapes import Word
from pyflinkcep.sase.tree import ALL, BEFORE, references

__all__ = ["alternatives"]


def alternatives(query: Query) -> tuple[Query, ...]:
    """
    Return the plain queries that a query stands for: itself unless it is composed.

    They have neither HAVING nor RETURN, and each match of the query is a match of one of them.
    """
    if not query.is_composed:
        return (query,)
    every = query.words()
    writer = _Writer(query, [clause for c in query.conditions for clause in clauses(c)])
    positive = [writer.positive(word) for word in every]
    return tuple(writer.plain(word, positive) for word in every)


@attrs.frozen
class _Writer:
    query: Query
    clauses: Sequence[Tree]

    def positive(self, word: Word) -> Word:
        """Return the components of a word that take events."""
        return tuple(name for name in word if not self.query.component(name).negated)

    def plain(self, word: Word, every: Sequence[Word]) -> Query:
        """Return the query of a word; `every` has the words without negated components."""
        own, query = set(word), self.query
        conditions = [clause for clause in self.clauses if _names(clause) <= own]
        components: list[Component] = []
        before: Word = ()
        for name in word:
            part = query.component(name)
            if not part.negated:
                for rival in self._rivals(before, name, every):
                    components.append(self._negated(rival, name))
                    conditions += self._conditions_of(rival, name, before)
                before = (*before, name)
                conditions += _counts(part)
            components.append(attrs.evolve(part, least=1, most=None))
        return Query(
            query.form,
            tuple(components),
            tuple(pair for name in before for pair in query.strategies if pair[0] == name),
            query.equal,
            query.constants,
            tuple(conditions),
            query.window,
            most_events=query.most_events,
        )

    # --- what else may come next

    def _rivals(self, before: Word, name: str, every: Sequence[Word]) -> Iterator[str]:
        """Yield the components that would consume an event while `name` is waited for."""
        if self.query.strategy_of(name) is not Strategy.SKIP_TILL_NEXT_MATCH:
            return
        if not before or self.query.component(before[-1]).repeats:
            return
        size = len(before)
        following = (word[size] for word in every if word[:size] == before and len(word) > size)
        yield from (rival for rival in dict.fromkeys(following) if rival != name)

    def _negated(self, rival: str, name: str) -> Component:
        type_ = self.query.component(rival).type
        return Component(type_, _absent_name(rival, name), negated=True)

    def _conditions_of(self, rival: str, name: str, before: Word) -> Iterator[Tree]:
        """Yield the conditions under which an event begins another component."""
        known = {*before, rival}
        chain = tuple(self.query.component(v) for v in (*before, rival))
        prefix = attrs.evolve(self.query, components=chain, shape=None)

        def renamed(leaf: Leaf) -> Leaf:
            if not isinstance(leaf, Column) or leaf.variable != rival:
                return leaf
            return attrs.evolve(leaf, variable=_absent_name(rival, name), index=None, text="")

        for clause in self.clauses:
            names = _names(clause)
            if rival in names and names <= known and "begin" in clause_edges(clause, prefix)[1]:
                yield rewritten(_untitled(clause), renamed)


def _absent_name(rival: str, name: str) -> str:
    """Return the variable of a component that must not begin before another; no text has it."""
    return f"{rival} before {name}\n"


def _names(clause: Tree) -> set[str]:
    return {reference.variable for reference in references(clause)}


def _untitled(tree: Tree) -> Tree:
    """Return a condition without the text that it was read from."""
    if not isinstance(tree, Operation):
        return tree
    operands = tuple(map(_untitled, tree.operands))
    return attrs.evolve(tree, operands=operands, text="")


def _counts(part: Component) -> Iterator[Tree]:
    """Yield the conditions on the number of events of a loop."""
    if part.least > 1:
        count = Aggregate("count", part.variable, None, index=ALL)
        yield Operation(">=", (count, Literal(part.least, str(part.least))))
    if part.most is not None:
        count = Aggregate("count", part.variable, None, index=BEFORE)
        yield Operation("<", (count, Literal(part.most, str(part.most))))
