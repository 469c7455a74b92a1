# SPDX-License-Identifier: Apache-2.0
"""Composed queries as plain ones: a plain query for each word of the pattern.

A match of a composed query takes events for the components of one word, in its order, and the
clauses that name only these apply: so it is a match of the word's query. Words differ in their
components or in their order, so each match is one of one word only. A strategy other than
skip_till_next_match treats an event as the word's query alone does. Under skip_till_next_match a
run that waits is ended by an event that begins another component which may come next, unless it
also begins the word's own; that is a negated component with the conditions of the other one. After
a loop nothing waits: the loop goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import attrs

from pyflinkcep.expressions.tree import (
    ALL,
    Aggregate,
    Column,
    Leaf,
    Literal,
    Operation,
    Tree,
    leaves,
    mapped,
    rewritten,
)
from pyflinkcep.sase.attributes import BEFORE, CURRENT, PREVIOUS, variables_of
from pyflinkcep.sase.model import (
    Component,
    Query,
    Strategy,
    Word,
    enclosing,
    iteration_of,
    variable_of,
)
from pyflinkcep.sase.placement import clause_edges, query_clauses

Names = Mapping[str, str]
"""By variable its name in a word."""


@attrs.frozen
class Iterations:
    """
    The groups of a query that repeat.

    A condition on a variable in such a group holds in each iteration; variables of one group are of
    the same iteration, and ``a[i-1]`` is the event of the iteration before.
    """

    groups: Mapping[str, tuple[int, ...]]  # By variable the groups around it, the outermost first
    singles: frozenset[str]  # The variables in groups that take one event in an iteration

    @classmethod
    def of(cls, query: Query) -> Iterations:
        """Return the groups of a query."""
        negated = {part.variable for part in query.components if part.negated}
        groups = {} if query.shape is None else enclosing(query.shape, negated)
        singles = (part for part in query.components if part.in_group and not part.repeats)
        return cls(groups, frozenset(part.variable for part in singles))

    def of_word(self, clause: Tree, word: Word) -> Iterator[Tree]:
        """Yield a condition for the iterations of a word; none if the word lacks what it names."""
        found = list(leaves(clause))
        own = dict.fromkeys(leaf.over.variable for leaf in found if not self.is_previous(leaf))
        if not any(self.groups.get(leaf.over.variable) for leaf in found):
            if set(own) <= set(word):
                yield clause
            return
        named: list[list[str]] = [[n for n in word if variable_of(n) == v] for v in own]
        for names in product(*named):
            by_variable = dict(zip(own, names, strict=True))
            if self._are_of_one(by_variable):
                yield from self._renamed(clause, by_variable, word)

    def is_previous(self, leaf: Leaf) -> bool:
        """Whether a value is of the iteration before."""
        over = leaf.over
        return over.index == PREVIOUS and over.variable in self.singles

    def anchor(self, variable: str, others: Iterable[str]) -> str | None:
        """Return one of some variables that is in each group around another; None without one."""
        own = self.groups[variable]
        return next((v for v in others if self.groups.get(v, ())[: len(own)] == own), None)

    def _are_of_one(self, names: Names) -> bool:
        """Whether variables that share groups are of the same iterations of these."""
        every = [(self.groups.get(v, ()), iteration_of(name)) for v, name in names.items()]
        return all(
            one_at == other_at
            for groups, at in every
            for others, other in every
            for group, one_at, own, other_at in zip(groups, at, others, other, strict=False)
            if group == own
        )

    def _renamed(self, clause: Tree, names: Names, word: Word) -> Iterator[Tree]:
        """Yield the condition with names of a word; nothing if there is no iteration before."""
        before: dict[str, str] = {}
        for leaf in filter(self.is_previous, leaves(clause)):
            variable = leaf.over.variable
            name = self._previous(variable, names)
            if name not in word:
                return
            before[variable] = name

        def renamed(leaf: Leaf) -> Tree:
            variable = leaf.over.variable
            if isinstance(leaf, Column) and self.is_previous(leaf):
                return attrs.evolve(leaf, variable=before[variable], index=None, text="")
            return _named(leaf, names[variable], is_single=variable in self.singles)

        yield rewritten(untitled(clause), renamed)

    def _previous(self, variable: str, names: Names) -> str:
        """Return the name of a variable in the iteration before."""
        anchor = self.anchor(variable, names)
        assert anchor is not None
        *outer, last = iteration_of(names[anchor])[: len(self.groups[variable])]
        return f"{variable}\t{'.'.join(map(str, (*outer, last - 1)))}"


def _named(leaf: Leaf, name: str, is_single: bool) -> Leaf:
    """Return a value of the events of a name in a word."""
    if isinstance(leaf, Aggregate):
        return attrs.evolve(leaf, stage=name, text="")
    index = None if is_single and leaf.over.index == CURRENT else leaf.over.index
    return attrs.evolve(leaf, variable=name, index=index, text="")


def untitled(tree: Tree) -> Tree:
    """Return a condition without the text that it was read from."""
    return mapped(tree, lambda p: attrs.evolve(p, text="") if isinstance(p, Operation) else p)


def alternatives(query: Query) -> tuple[Query, ...]:
    """
    Return the plain queries that a query stands for: itself unless it is composed.

    They have neither HAVING nor RETURN, and each match of the query is a match of one of them.
    """
    if not query.is_composed:
        return (query,)
    every = query.words()
    writer = _Writer(query, query_clauses(query), Iterations.of(query))
    positive = list(map(writer.positive, every))
    return tuple(writer.plain(word, positive) for word in every)


@attrs.frozen
class _Writer:
    query: Query
    clauses: Sequence[Tree]
    iterations: Iterations

    def positive(self, word: Word) -> Word:
        """Return the components of a word that take events."""
        return tuple(name for name in word if not self._part(name).negated)

    def _part(self, name: str) -> Component:
        """Return a component under its name in a word."""
        return attrs.evolve(self.query.component(name), variable=name)

    def plain(self, word: Word, every: Sequence[Word]) -> Query:
        """Return the query of a word; `every` has the words without negated components."""
        query = self.query
        conditions = [
            own for clause in self.clauses for own in self.iterations.of_word(clause, word)
        ]
        components: list[Component] = []
        before: Word = ()
        for name in word:
            part = self._part(name)
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
            self._strategies(before),
            query.equal,
            query.constants,
            tuple(conditions),
            query.window,
            most_events=query.most_events,
        )

    def _strategies(self, word: Word) -> tuple[tuple[str, Strategy], ...]:
        """Return the strategies of a word, and all that make the query see the whole stream."""
        query = self.query
        own = tuple((name, query.strategy_of(name)) for name in word if query.strategies)
        present = {variable_of(name) for name in word}
        # Without them [attr] would be a partition of this word, and a condition in the others.
        absent = [(name, how) for name, how in query.strategies if name not in present]
        return *own, *(each for each in absent if each[1] is Strategy.STRICT_CONTIGUITY)

    # --- what else may come next

    def _rivals(self, before: Word, name: str, every: Sequence[Word]) -> Iterator[str]:
        """Yield the components that would consume an event while `name` is waited for."""
        if self.query.strategy_of(name) is not Strategy.SKIP_TILL_NEXT_MATCH:
            return
        if not before or self._part(before[-1]).repeats:
            return
        size = len(before)
        following = (word[size] for word in every if word[:size] == before and len(word) > size)
        yield from (rival for rival in dict.fromkeys(following) if rival != name)

    def _negated(self, rival: str, name: str) -> Component:
        type_ = self._part(rival).type
        return Component(type_, _absent_name(rival, name), negated=True)

    def _conditions_of(self, rival: str, name: str, before: Word) -> Iterator[Tree]:
        """Yield the conditions under which an event begins another component."""
        chain = tuple(map(self._part, (*before, rival)))
        prefix = attrs.evolve(self.query, components=chain, shape=None)

        def renamed(leaf: Leaf) -> Leaf:
            if not isinstance(leaf, Column) or leaf.variable != rival:
                return leaf
            return attrs.evolve(leaf, variable=_absent_name(rival, name), index=None, text="")

        for clause in self.clauses:
            for own in self.iterations.of_word(clause, (*before, rival)):
                if rival in variables_of(own) and "begin" in clause_edges(own, prefix)[1]:
                    yield rewritten(untitled(own), renamed)


def _absent_name(rival: str, name: str) -> str:
    """Return the variable of a component that must not begin before another; no text has it."""
    return f"{rival} before {name}\n"


def _counts(part: Component) -> Iterator[Tree]:
    """Yield the conditions on the number of events of a loop."""
    if part.least > 1:
        count = Aggregate("count", part.variable, None, index=ALL)
        yield Operation(">=", (count, Literal(part.least, str(part.least))))
    if part.most is not None:
        count = Aggregate("count", part.variable, None, index=BEFORE)
        yield Operation("<", (count, Literal(part.most, str(part.most))))
