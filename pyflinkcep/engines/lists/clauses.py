# SPDX-License-Identifier: Apache-2.0
"""The conditions of a query, sorted by the events that they read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import attrs

from pyflinkcep.expressions.tree import Tree
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.normal_form import clauses
from pyflinkcep.sase.parts import constant_tests
from pyflinkcep.sase.tree import ALL, functions, plain_references, references

__all__ = ["Clauses", "each_of", "named"]


@attrs.frozen(eq=False)
class Clauses:
    """
    The clauses of WHERE.

    Attributes
    ----------
    query : Query
        The query.
    constant : dict of str to list of Tree
        By variable, the clauses on one of its events alone, ``[attr = literal]`` among them.
    associations : tuple of Tree
        The clauses that join events of several variables, or all events of a closure.
    absent : dict of str to list of Tree
        By negated variable, the clauses that join its events to others; of a negated sequence, to
        earlier events of it too.
    """

    query: Query
    constant: dict[str, list[Tree]]
    associations: tuple[Tree, ...]
    absent: dict[str, list[Tree]]

    @classmethod
    def of(cls, query: Query) -> Clauses:
        """Return the clauses of a query."""
        tests = constant_tests(query)
        constant: dict[str, list[Tree]] = {part.variable: [*tests] for part in query.components}
        absent: dict[str, list[Tree]] = {}
        associations = []
        for condition in query.conditions:
            for clause in clauses(condition):
                names = named(clause)
                negated = [name for name in names if query.component(name).negated]
                if not names:  # it never holds
                    constant[query.positive[0].variable].append(clause)
                elif len(names) == 1 and _is_constant(clause):
                    constant[names[0]].append(clause)
                elif negated:
                    absent.setdefault(max(negated, key=query.place), []).append(clause)
                else:
                    associations.append(clause)
        return cls(query, constant, tuple(associations), absent)

    @classmethod
    def once(cls, query: Query) -> Clauses:
        """Return the same, which is kept for the next tables."""
        return _sorted(query)


@lru_cache(maxsize=64)
def _sorted(query: Query) -> Clauses:
    return Clauses.of(query)


def named(clause: Tree) -> Sequence[str]:
    """Return the variables that a clause names."""
    return list(dict.fromkeys(reference.variable for reference in references(clause)))


def each_of(clause: Tree, query: Query) -> list[str]:
    """Return the closures for whose every event a clause must hold."""
    return sorted(
        {
            r.variable
            for r in plain_references(clause)
            if r.index in (None, ALL) and query.component(r.variable).repeats
        }
    )


def _is_constant(clause: Tree) -> bool:
    if any(True for _ in functions(clause)):
        return False
    return all(r.index in (None, ALL) for r in plain_references(clause))
