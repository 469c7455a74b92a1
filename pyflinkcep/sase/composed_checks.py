# SPDX-License-Identifier: Apache-2.0
"""Composed queries that parse but are refused."""

from __future__ import annotations

from itertools import pairwise

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.tree import Aggregate, leaves
from pyflinkcep.sase.alternatives import alternatives
from pyflinkcep.sase.checks import Failure, check, check_end
from pyflinkcep.sase.iterations import Iterations
from pyflinkcep.sase.model import MOST_WORDS, OUTSIDE, Component, Query, Totals
from pyflinkcep.sase.normal_form import clauses
from pyflinkcep.sase.shapes import (
    AnyOrder,
    One,
    Repeated,
    Sequence,
    Shape,
    TooManyWordsError,
    Word,
    inner,
    ones,
    variable_of,
)
from pyflinkcep.sase.tree import CURRENT, PREVIOUS, references

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
        self._repetitions(self.query.shape)
        self._references()
        every = self._every_word()
        self._words(every)
        self._readings(every)
        self._strategies()
        check(self.query, self.failure)
        self._clauses()
        for plain in alternatives(self.query):
            check(plain, self._failure_of_word(plain))

    def _failure_of_word(self, plain: Query) -> Failure:
        """Return what makes errors about a word, whose names have the numbers of iterations."""
        names = sorted((part.variable for part in plain.components), key=len, reverse=True)

        def failure(at: int, what: str, hint: str) -> InvalidArgumentError:
            for name in names:
                for shown in (name, repr(name)[1:-1]):
                    what = what.replace(shown, variable_of(name))
                    hint = hint.replace(shown, variable_of(name))
            return self.failure(at, what, hint)

        return failure

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
                "write fewer ? and |, fewer parts in AND, and fewer iterations",
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
            bare = tuple(map(variable_of, word))
            if known.setdefault(positive, bare) != bare:
                raise self.failure(
                    self._at,
                    f"two alternatives are both {', '.join(positive)}",
                    "let them differ in a component that takes an event",
                )
        named = {variable_of(name) for word in every for name in word}
        for part in self.query.components:
            if part.negated and part.variable not in named:
                raise self._no_gap(part, "in AND without two components around it")

    def _negations(self, shape: Shape | None) -> None:
        """Refuse negated components where they stand in no gap of their own."""
        if shape is None or isinstance(shape, One):
            return
        for part in inner(shape):
            self._negations(part)
            every = [self.query.component(one.variable) for one in ones(part)]
            absent = [one for one in every if one.negated]
            if isinstance(shape, AnyOrder):
                if absent and not isinstance(part, One):
                    raise self._no_gap(absent[0], "in a part of AND")
            elif not isinstance(shape, Sequence) and len(absent) == len(every):
                raise self._no_gap(absent[0], "alone in an alternative")

    def _no_gap(self, part: Component, where: str) -> InvalidArgumentError:
        return self.failure(
            part.at,
            f"{part.variable!r} is negated {where}",
            "negate a component between others: SEQ(A a, ~(N n), B b), AND(A a, ~(N n), B b)",
        )

    def _repetitions(self, shape: Shape | None) -> None:
        """Refuse groups that repeat without a bound."""
        if shape is None or isinstance(shape, One):
            return
        for part in inner(shape):
            self._repetitions(part)
        if isinstance(shape, Repeated) and shape.most is None and self.query.most_events is None:
            first = self.query.component(next(ones(shape)).variable)
            raise self.failure(
                first.at,
                f"nothing bounds how often the group of {first.variable!r} repeats",
                "write how often at most, as in {1,5}, or WITHIN 20 EVENTS",
            )

    def _references(self) -> None:
        """Refuse indexes of a variable that a group takes once in each iteration."""
        iterations = Iterations.of(self.query)
        for condition in self.query.conditions:
            for clause in clauses(condition):
                found = list(leaves(clause))
                own = [leaf.over.variable for leaf in found if not iterations.is_previous(leaf)]
                for leaf in found:
                    variable, index = leaf.over.variable, leaf.over.index
                    if variable not in iterations.singles:
                        continue
                    if isinstance(leaf, Aggregate) or index not in (None, CURRENT, PREVIOUS):
                        raise self.failure(
                            leaf.over.at,
                            f"{variable!r} has one event in each iteration of its group",
                            f"write {variable}.attribute, or {variable}[i-1].attribute of the "
                            "iteration before",
                        )
                    if index == PREVIOUS and iterations.anchor(variable, own) is None:
                        raise self.failure(
                            leaf.over.at,
                            f"{variable}[i-1] without an event of this iteration",
                            f"compare it with {variable}.attribute, or another of its group",
                        )

    def _readings(self, every: list[Word]) -> None:
        """Refuse groups whose iterations cannot be told from the events of a match."""
        known: dict[Word, Word] = {}
        for word in every:
            taken = [n for n in word if not self.query.component(n).negated]
            bare = tuple(map(variable_of, taken))
            twice = [
                one for one, other in pairwise(bare)
                if one == other and self.query.component(one).repeats
            ]  # fmt: skip
            for size in range(1, len(bare) + 1):
                if known.setdefault(bare[:size], tuple(taken[:size])) != tuple(taken[:size]):
                    twice.append(bare[size - 1])
            if twice:
                part = self.query.component(twice[0])
                raise self.failure(
                    part.at,
                    f"an event of {part.variable!r} may belong to two iterations of its group",
                    "let each iteration end with a component that is neither optional nor a loop",
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
        every, iterations = self.query.words(), Iterations.of(self.query)
        for condition in self.query.conditions:
            for clause in clauses(condition):
                found = list(references(clause))
                names = {reference.variable for reference in found}
                if not any(own for word in every for own in iterations.of_word(clause, word)):
                    raise self.failure(
                        found[0].at,
                        f"no match has all of {', '.join(map(repr, sorted(names)))}",
                        "a condition is about components of one alternative",
                    )
