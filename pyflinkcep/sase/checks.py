# SPDX-License-Identifier: Apache-2.0
"""Queries that parse but are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import attrs

from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.expressions.tree import ALL, Aggregate, Column, Tree, leaves
from pyflinkcep.sase.alternatives import Iterations, alternatives
from pyflinkcep.sase.computed import (
    BEFORE,
    CURRENT,
    FIRST,
    LAST,
    PREVIOUS,
    functions,
    plain_references,
    references,
)
from pyflinkcep.sase.model import (
    MOST_WORDS,
    OUTSIDE,
    AnyOrder,
    Component,
    Form,
    One,
    Query,
    Repeated,
    Sequence,
    Shape,
    Strategy,
    TooManyWordsError,
    Totals,
    Word,
    inner,
    ones,
    variable_of,
)
from pyflinkcep.sase.placement import MOST_CLAUSES, clause_count, clauses, is_constant

Failure = Callable[[int, str, str], InvalidArgumentError]
"""Makes the error for a problem at an offset: (offset, what, hint)."""

_MOVING = (CURRENT, PREVIOUS, BEFORE)


def check(query: Query, failure: Failure) -> None:
    """Refuse a query that has no meaning."""
    _Checks(query, failure).run()


def check_end(part: Component, query: Query, failure: Failure) -> None:
    """Refuse a negated component at an end of a pattern without a window."""
    if part.negated and not query.has_window:
        raise failure(
            part.at,
            f"{part.variable!r} is negated at an end of the pattern without WITHIN",
            "add WITHIN: how long no such event may occur",
        )


@attrs.frozen
class _Checks:
    query: Query
    failure: Failure

    def run(self) -> None:
        self._pattern()
        if self.query.form is Form.LIST:
            self._list()
        self._strategies()
        self._where()
        for condition in self.query.conditions if not self.query.is_composed else ():
            self._condition(condition)
        for column in self.query.columns or ():
            self._given_out(column.value, is_column=True)
        if self.query.having is not None:
            self._clause_count((self.query.having,))
            self._given_out(self.query.having, is_column=False)

    # --- the pattern

    def _pattern(self) -> None:
        first, last = self.query.components[0], self.query.components[-1]
        if not self.query.positive:
            raise self.failure(
                first.at, "every component is negated", "a match needs at least one event"
            )
        for part in (first, last) if not self.query.is_composed else ():
            check_end(part, self.query, self.failure)

    def _list(self) -> None:
        positive = self.query.positive
        if self.query.most_events is not None:
            raise self.failure(
                positive[0].at,
                "WITHIN … EVENTS of a pattern of elements with ;, which goes by time",
                "write PATTERN SEQ(…), or a window of time",
            )
        if self.query.strategies:
            raise self.failure(
                positive[0].at,
                "a pattern of elements with ; has no strategies",
                "write PATTERN SEQ(...) to use them",
            )
        if all(part.repeats for part in positive):
            raise self.failure(
                positive[0].at,
                f"the closure {positive[0].variable!r} needs a single element next to it",
                "the elements next to a closure bound it",
            )
        for one, two in pairwise(positive):
            if one.repeats and two.repeats:
                raise self.failure(
                    two.at,
                    f"the closures {one.variable!r} and {two.variable!r} are side by side",
                    "put a single element between them",
                )
        ends = [part for part in (positive[0], positive[-1]) if part.repeats]
        if len(ends) == 2:
            raise self.failure(
                ends[1].at,
                f"the closures {ends[0].variable!r} and {ends[1].variable!r} at both ends",
                "begin or end with a single element",
            )
        if ends and self.query.window is None:
            raise self.failure(
                ends[0].at,
                f"the closure {ends[0].variable!r} at an end needs WITHIN",
                "add WITHIN: how far the closure reaches",
            )

    def _strategies(self) -> None:
        names = [name for name, s in self.query.strategies if s is Strategy.PARTITION_CONTIGUITY]
        if names and not (self.query.equal or self.query.constants):
            raise self.failure(
                self.query.component(names[0]).at,
                "partition_contiguity needs an equivalence test",
                "write one such as [symbol], which defines the partitions",
            )

    # --- WHERE

    def _where(self) -> None:
        conditions = self.query.conditions
        try:
            self._clause_count(conditions)
        except InputError as cause:  # the types of constants
            raise self.failure(
                self.query.components[0].at, cause.message, str(cause.hint)
            ) from cause
        if conditions and all(map(is_constant, conditions)):
            raise self.failure(
                self.query.components[0].at,
                "the condition names no variable",
                "name a variable of PATTERN, or leave WHERE out",
            )

    def _condition(self, condition: Tree) -> None:
        for function in functions(condition):
            self._aggregate(function.over)
        for clause in clauses(condition):
            self._clause(clause)

    def _clause_count(self, conditions: Iterable[Tree]) -> None:
        if sum(map(clause_count, conditions)) > MOST_CLAUSES:
            raise self.failure(
                self.query.components[0].at,
                f"the conditions have more than {MOST_CLAUSES} clauses in conjunctive normal form",
                "write fewer ANDs inside ORs",
            )

    def _aggregate(self, over: Column) -> None:
        if not self._part(over).repeats:
            raise self.failure(
                over.at,
                f"an aggregate over {over.variable!r}, which does not repeat",
                f"write {over.variable}.attribute",
            )

    def _clause(self, clause: Tree) -> None:
        read = list(leaves(clause))
        found = [leaf.over for leaf in read]
        negated = list(dict.fromkeys(r.variable for r in found if self._part(r).negated))
        self._one_negation(negated, found)
        positive = [r for r in found if r.variable not in negated]
        last = max((self.query.place(r.variable) for r in positive), default=-1)
        plain = [leaf for leaf in read if isinstance(leaf, Column)]
        for reference in plain:
            self._plain(reference)
        over = [leaf.over for leaf in read if isinstance(leaf, Aggregate)]
        moving = [r for r in plain if r.index in (CURRENT, PREVIOUS, ALL)]
        moving += [r for r in over if r.index == BEFORE]
        for reference in moving:
            self._moving(reference, last, bool(negated))
        if last >= 0 and self.query.form is Form.SEQ:
            self._together(plain, over, self.query.components[last])

    def _one_negation(self, negated: list[str], found: list[Column]) -> None:
        """Refuse conditions on negated components that are not of one sequence."""
        for parts in self.query.negations:
            own = [part.variable for part in parts]
            others = [name for name in negated if name not in own]
            if others and len(others) < len(negated):
                first = next(name for name in negated if name in own)
                raise self.failure(
                    found[0].at,
                    f"a condition names two negated components, {first!r} and {others[0]!r}",
                    "each is checked alone, unless they are one sequence: ~(SEQ(B b, C c))",
                )

    def _plain(self, reference: Column) -> None:
        part, variable = self._part(reference), reference.variable
        if reference.attribute is None:
            raise self.failure(
                reference.at, f"{variable!r} needs an attribute", f"write {variable}.attribute"
            )
        if self.query.form is Form.SEQ and part.repeats and reference.index is None:
            raise self.failure(
                reference.at,
                f"expected an index after {variable!r}, which repeats",
                f"write {variable}[i], {variable}[1], {variable}[LEN] or {variable}[]",
            )

    def _moving(self, reference: Column, last: int, negated: bool) -> None:
        """Refuse ``[i]`` and the like in conditions that are not evaluated event by event."""
        variable, index = reference.variable, reference.index
        if self.query.form is Form.LIST:
            if index != ALL:
                raise self.failure(
                    reference.at,
                    f"{variable}[{index}] in a pattern with ;",
                    f"a closure takes all its events at once: write {variable}.attribute",
                )
        elif negated or self.query.place(variable) != last:
            raise self.failure(
                reference.at,
                f"{variable}[{index}] in a condition about a later or negated component",
                f"write {variable}[1], {variable}[LEN] or an aggregate over {variable}[]",
            )

    def _together(self, plain: list[Column], over: list[Column], part: Component) -> None:
        """Refuse indexes of one variable that become known at different moments."""
        mine = [r for r in plain if r.variable == part.variable]
        over = [r for r in over if r.variable == part.variable]
        each = [r for r in mine if r.index == ALL]
        others = {r.index for r in mine if r.index != ALL} | {f"over {r.index}" for r in over}
        if each and others:
            raise self.failure(
                each[0].at,
                f"{part.variable!r} with both [] and another index",
                f"{part.variable}[] is every event: compare each with {part.variable}[i]",
            )
        moving = {r.index for r in [*mine, *over]} & set(_MOVING)
        ends = [r for r in mine if r.index == LAST] + [r for r in over if r.index == ALL]
        if moving and ends:
            raise self.failure(
                ends[0].at,
                f"{part.variable!r} with both [i] and an index known only at the end",
                f"write [..i-1] for the events before {part.variable}[i]",
            )

    # --- HAVING and RETURN

    def _given_out(self, value: Tree, is_column: bool) -> None:
        for function in functions(value) if self.query.shape is None else ():
            self._aggregate(function.over)
        for reference in references(value):
            if self._part(reference).negated:
                raise self.failure(
                    reference.at,
                    f"{reference.variable!r} is negated, so it has no event in a match",
                    "use variables that take events in RETURN and HAVING",
                )
            if reference.index in _MOVING:
                raise self.failure(
                    reference.at,
                    f"{reference.variable}[{reference.index}] outside WHERE",
                    f"write {reference.variable}[1], {reference.variable}[LEN] or an aggregate",
                )
        alone = is_column and isinstance(value, Column)
        for reference in plain_references(value):
            self._one_value(reference, alone)

    def _one_value(self, reference: Column, alone: bool) -> None:
        if alone:
            return
        variable = reference.variable
        if self._part(reference).takes_many and reference.index not in (FIRST, LAST):
            raise self.failure(
                reference.at,
                f"expected one value, got every event of {variable!r}",
                f"write {variable}[1], {variable}[LEN] or an aggregate over {variable}[]",
            )
        if reference.attribute is None:
            raise self.failure(
                reference.at, f"{variable!r} needs an attribute", f"write {variable}.attribute"
            )

    def _part(self, reference: Column) -> Component:
        return self.query.component(reference.variable)


def check_query(query: Query, failure: Failure) -> None:
    """Refuse a query that has no meaning."""
    if query.is_composed:
        _ComposedChecks(query, failure).run()
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
class _ComposedChecks:
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
