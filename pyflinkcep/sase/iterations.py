# SPDX-License-Identifier: Apache-2.0
"""The conditions of a query in the iterations of groups that repeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import attrs

from pyflinkcep.expressions.tree import Aggregate, Column, Leaf, Operation, Tree, leaves, rewritten
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.shapes import Word, enclosing, iteration_of, variable_of
from pyflinkcep.sase.tree import CURRENT, PREVIOUS

__all__ = ["Iterations", "untitled"]

Names = Mapping[str, str]
"""By variable its name in a word."""


@attrs.frozen
class Iterations:
    """
    The groups of a query that repeat.

    A condition on a variable in such a group holds in each iteration; variables of one group are of
    the same iteration, and ``a[i-1]`` is the event of the iteration before.

    Attributes
    ----------
    groups : mapping of str to tuple of int
        By variable the groups around it, the outermost first.
    singles : frozenset of str
        The variables in groups that take one event in an iteration.
    """

    groups: Mapping[str, tuple[int, ...]]
    singles: frozenset[str]

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
    if not isinstance(tree, Operation):
        return tree
    operands = tuple(map(untitled, tree.operands))
    return attrs.evolve(tree, operands=operands, text="")
