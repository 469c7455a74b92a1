# SPDX-License-Identifier: Apache-2.0
"""Composed queries that parse but are refused."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from pyflinkcep.sase.alternatives import alternatives
from pyflinkcep.sase.checks import Failure, check, check_end
from pyflinkcep.sase.model import MOST_WORDS, OUTSIDE, Component, Query, Totals
from pyflinkcep.sase.normal_form import clauses
from pyflinkcep.sase.shapes import AnyOrder, Choice, One, Optional, Shape, TooManyWordsError, Word
from pyflinkcep.sase.tree import references

__all__ = ["check_query"]


def check_query(query: Query, failure: Failure) -> None:
    """
    Refuse a query that has no meaning.

    Raises
    ------
    InvalidArgumentError
        If the query has no meaning; the message says where and why.
    """
    if query.is_composed:
        _Checks(query, failure).run()
    else:
        check(query, failure)
    if query.totals is not None:
        _check_totals(query, query.totals, failure)


def _check_totals(query: Query, totals: Totals, failure: Failure) -> None:
    """Refuse totals of windows about which events outside of them decide, or of half a key."""
    if query.looks_back or query.looks_ahead:
        raise failure(
            query.components[0].at, f"SLIDE with {OUTSIDE}", "leave that component out, or SLIDE"
        )
    missing = () if query.is_global else [n for n in query.equal if n not in totals.groups]
    if totals.groups and missing:
        raise failure(
            query.components[0].at,
            f"GROUP BY without {missing[0]!r}, which all events of a match share: [{missing[0]}]",
            f"add it: GROUP BY {', '.join((*totals.groups, *missing))}",
        )


@attrs.frozen
class _Checks:
    query: Query
    failure: Failure

    def run(self) -> None:
        self._negations(self.query.shape)
        self._words(self._every_word())
        self._strategies()
        check(self.query, self.failure)
        self._clauses()
        for plain in alternatives(self.query):
            check(plain, self.failure)

    @property
    def _at(self) -> int:
        return self.query.components[0].at

    def _every_word(self) -> list[Word]:
        try:
            return self.query.words()
        except TooManyWordsError:
            raise self.failure(
                self._at,
                f"the pattern stands for more than {MOST_WORDS} sequences of components",
                "write fewer ? and |, and fewer parts in AND",
            ) from None

    def _words(self, every: list[Word]) -> None:
        known: dict[Word, Word] = {}
        for word in every:
            parts = [self.query.component(name) for name in word]
            positive = tuple(part.variable for part in parts if not part.negated)
            if not positive:
                raise self.failure(
                    self._at, "the pattern may have no event", "leave ? out of one component"
                )
            for part in (parts[0], parts[-1]):
                check_end(part, self.query, self.failure)
            if known.setdefault(positive, word) != word:
                raise self.failure(
                    self._at,
                    f"two alternatives are both {', '.join(positive)}",
                    "let them differ in a component that takes an event",
                )

    def _negations(self, shape: Shape | None) -> None:
        """Refuse negated components where they stand in no gap of their own."""
        if shape is None or isinstance(shape, One):
            return
        inner = (shape.part,) if isinstance(shape, Optional) else shape.parts
        for part in inner:
            self._negations(part)
        alone = isinstance(shape, Optional | Choice)
        found = [part for part in inner if isinstance(part, One)] if alone else []
        if isinstance(shape, AnyOrder):
            found = list(_ones(shape))
        for one in found:
            component: Component = self.query.component(one.variable)
            if component.negated:
                where = "in AND" if isinstance(shape, AnyOrder) else "alone in an alternative"
                raise self.failure(
                    component.at,
                    f"{component.variable!r} is negated {where}",
                    "negate a component between others: SEQ(A a, ~(N n), B b)",
                )

    def _strategies(self) -> None:
        several = len({s for _, s in self.query.strategies}) > 1
        loops = [part for part in self.query.positive if part.repeats]
        if self.query.shape is not None and several and loops:
            raise self.failure(
                loops[0].at,
                "a pattern with |, AND, ? or * has several strategies and the loop "
                f"{loops[0].variable!r}",
                "name one strategy, for all variables",
            )

    def _clauses(self) -> None:
        """Refuse conditions on components that no match has together."""
        every = [set(word) for word in self.query.words()]
        for condition in self.query.conditions:
            for clause in clauses(condition):
                found = list(references(clause))
                names = {reference.variable for reference in found}
                if not any(names <= word for word in every):
                    raise self.failure(
                        found[0].at,
                        f"no match has all of {', '.join(map(repr, sorted(names)))}",
                        "a condition is about components of one alternative",
                    )


def _ones(shape: Shape) -> Iterator[One]:
    if isinstance(shape, One):
        yield shape
        return
    for part in (shape.part,) if isinstance(shape, Optional) else shape.parts:
        yield from _ones(part)
