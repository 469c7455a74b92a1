# SPDX-License-Identifier: Apache-2.0
"""Queries that parse but are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import attrs

from pyflinkcep.errors import InputError, InvalidArgumentError
from pyflinkcep.expressions.tree import ALL, Aggregate, Column, Tree, leaves
from pyflinkcep.sase.alternatives import Iterations, alternatives
from pyflinkcep.sase.attributes import (
    BEFORE,
    CURRENT,
    FIRST,
    LAST,
    PREVIOUS,
    functions,
    plain_references,
    references,
    variables_of,
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
    Word,
    inner,
    ones,
    variable_of,
)
from pyflinkcep.sase.placement import (
    MOST_CLAUSES,
    clause_count,
    clauses,
    is_constant,
    query_clauses,
)

Failure = Callable[[int, str, str], InvalidArgumentError]
"""Makes the error for a problem at an offset: (offset, what, hint)."""

_MOVING = (CURRENT, PREVIOUS, BEFORE)


def check_query(query: Query, failure: Failure) -> None:
    """Refuse a query that has no meaning."""
    if query.is_composed:
        _ComposedChecks(query, failure).run()
    else:
        _Checks(query, failure).run()
    totals = query.totals
    if totals is None:
        return
    at = query.components[0].at
    if query.looks_back or query.looks_ahead:
        raise failure(at, f"SLIDE with {OUTSIDE}", "leave that component out, or SLIDE")
    missing = () if query.is_global else [n for n in query.equal if n not in totals.groups]
    if totals.groups and missing:
        what = f"GROUP BY without {missing[0]!r}, which all events of a match share: [{missing[0]}]"
        raise failure(at, what, f"add it: GROUP BY {', '.join((*totals.groups, *missing))}")


@attrs.frozen
class _Checks:
    """Checks of any query."""

    query: Query
    failure: Failure

    def run(self) -> None:
        self._pattern()
        if self.query.form is Form.LIST:
            self._list()
        self._partitions()
        self._where()
        for condition in self.query.conditions if not self.query.is_composed else ():
            for function in functions(condition):
                self._aggregate(function.over)
            for clause in clauses(condition):
                self._clause(clause)
        for column in self.query.columns or ():
            self._given_out(column.value, is_column=True)
        if self.query.having is not None:
            self._clause_count((self.query.having,))
            self._given_out(self.query.having, is_column=False)

    def _refused(
        self, what: str, hint: str, about: Component | Column | None = None
    ) -> InvalidArgumentError:
        """Make the error about a component or a reference, or about the pattern."""
        return self.failure((about or self.query.components[0]).at, what, hint)

    def _part(self, reference: Column) -> Component:
        return self.query.component(reference.variable)

    # --- the pattern

    def _pattern(self) -> None:
        first, last = self.query.components[0], self.query.components[-1]
        if not self.query.positive:
            raise self._refused("every component is negated", "a match needs at least one event")
        for part in (first, last) if not self.query.is_composed else ():
            self._end(part)

    def _end(self, part: Component) -> None:
        """Refuse a negated component at an end of a pattern without a window."""
        if part.negated and not self.query.has_window:
            what = f"{part.variable!r} is negated at an end of the pattern without WITHIN"
            raise self._refused(what, "add WITHIN: how long no such event may occur", part)

    def _list(self) -> None:
        positive = self.query.positive
        first, last = positive[0], positive[-1]
        if self.query.most_events is not None:
            what = "WITHIN … EVENTS of a pattern of elements with ;, which goes by time"
            raise self._refused(what, "write PATTERN SEQ(…), or a window of time", first)
        if self.query.strategies:
            what = "a pattern of elements with ; has no strategies"
            raise self._refused(what, "write PATTERN SEQ(...) to use them", first)
        if all(part.repeats for part in positive):
            what = f"the closure {first.variable!r} needs a single element next to it"
            raise self._refused(what, "the elements next to a closure bound it", first)
        for one, two in pairwise(positive):
            if one.repeats and two.repeats:
                what = f"the closures {one.variable!r} and {two.variable!r} are side by side"
                raise self._refused(what, "put a single element between them", two)
        if first.repeats and last.repeats:
            what = f"the closures {first.variable!r} and {last.variable!r} at both ends"
            raise self._refused(what, "begin or end with a single element", last)
        end = next((part for part in (first, last) if part.repeats), None)
        if end is not None and self.query.window is None:
            what = f"the closure {end.variable!r} at an end needs WITHIN"
            raise self._refused(what, "add WITHIN: how far the closure reaches", end)

    def _partitions(self) -> None:
        names = [name for name, s in self.query.strategies if s is Strategy.PARTITION_CONTIGUITY]
        if names and not (self.query.equal or self.query.constants):
            what = "partition_contiguity needs an equivalence test"
            hint = "write one such as [symbol], which defines the partitions"
            raise self._refused(what, hint, self.query.component(names[0]))

    # --- WHERE

    def _where(self) -> None:
        conditions = self.query.conditions
        try:
            self._clause_count(conditions)
        except InputError as cause:  # the types of constants
            raise self._refused(cause.message, str(cause.hint)) from cause
        if conditions and all(map(is_constant, conditions)):
            hint = "name a variable of PATTERN, or leave WHERE out"
            raise self._refused("the condition names no variable", hint)

    def _clause_count(self, conditions: Iterable[Tree]) -> None:
        if sum(map(clause_count, conditions)) > MOST_CLAUSES:
            raise self._refused(
                f"the conditions have more than {MOST_CLAUSES} clauses in conjunctive normal form",
                "write fewer ANDs inside ORs",
            )

    def _aggregate(self, over: Column) -> None:
        if not self._part(over).repeats:
            what = f"an aggregate over {over.variable!r}, which does not repeat"
            raise self._refused(what, f"write {over.variable}.attribute", over)

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
            variable = self.query.components[last].variable
            mine = [r for r in plain if r.variable == variable]
            self._together(variable, mine, [r for r in over if r.variable == variable])

    def _one_negation(self, negated: list[str], found: list[Column]) -> None:
        """Refuse conditions on negated components that are not of one sequence."""
        for parts in self.query.negations:
            own = [part.variable for part in parts]
            others = [name for name in negated if name not in own]
            if others and len(others) < len(negated):
                first = next(name for name in negated if name in own)
                what = f"a condition names two negated components, {first!r} and {others[0]!r}"
                hint = "each is checked alone, unless they are one sequence: ~(SEQ(B b, C c))"
                raise self._refused(what, hint, found[0])

    def _plain(self, reference: Column) -> None:
        part, variable = self._part(reference), reference.variable
        self._has_attribute(reference)
        if self.query.form is Form.SEQ and part.repeats and reference.index is None:
            what = f"expected an index after {variable!r}, which repeats"
            hint = f"write {variable}[i], {variable}[1], {variable}[LEN] or {variable}[]"
            raise self._refused(what, hint, reference)

    def _has_attribute(self, reference: Column) -> None:
        if reference.attribute is None:
            variable = reference.variable
            what = f"{variable!r} needs an attribute"
            raise self._refused(what, f"write {variable}.attribute", reference)

    def _moving(self, reference: Column, last: int, negated: bool) -> None:
        """Refuse ``[i]`` and the like in conditions that are not evaluated event by event."""
        variable, index = reference.variable, reference.index
        if self.query.form is Form.LIST:
            if index != ALL:
                what = f"{variable}[{index}] in a pattern with ;"
                hint = f"a closure takes all its events at once: write {variable}.attribute"
                raise self._refused(what, hint, reference)
        elif negated or self.query.place(variable) != last:
            what = f"{variable}[{index}] in a condition about a later or negated component"
            hint = f"write {variable}[1], {variable}[LEN] or an aggregate over {variable}[]"
            raise self._refused(what, hint, reference)

    def _together(self, variable: str, plain: list[Column], over: list[Column]) -> None:
        """Refuse indexes of one variable that become known at different moments."""
        each = [r for r in plain if r.index == ALL]
        if each and (over or len(each) < len(plain)):
            what = f"{variable!r} with both [] and another index"
            hint = f"{variable}[] is every event: compare each with {variable}[i]"
            raise self._refused(what, hint, each[0])
        moving = {r.index for r in [*plain, *over]} & set(_MOVING)
        ends = [r for r in plain if r.index == LAST] + [r for r in over if r.index == ALL]
        if moving and ends:
            what = f"{variable!r} with both [i] and an index known only at the end"
            hint = f"write [..i-1] for the events before {variable}[i]"
            raise self._refused(what, hint, ends[0])

    # --- HAVING and RETURN

    def _given_out(self, value: Tree, is_column: bool) -> None:
        for function in functions(value) if self.query.shape is None else ():
            self._aggregate(function.over)
        for reference in references(value):
            variable = reference.variable
            if self._part(reference).negated:
                what = f"{variable!r} is negated, so it has no event in a match"
                hint = "use variables that take events in RETURN and HAVING"
                raise self._refused(what, hint, reference)
            if reference.index in _MOVING:
                what = f"{variable}[{reference.index}] outside WHERE"
                hint = f"write {variable}[1], {variable}[LEN] or an aggregate"
                raise self._refused(what, hint, reference)
        if is_column and isinstance(value, Column):
            return
        for reference in plain_references(value):
            variable = reference.variable
            if self._part(reference).takes_many and reference.index not in (FIRST, LAST):
                what = f"expected one value, got every event of {variable!r}"
                hint = f"write {variable}[1], {variable}[LEN] or an aggregate over {variable}[]"
                raise self._refused(what, hint, reference)
            self._has_attribute(reference)


class _ComposedChecks(_Checks):
    """Checks of a composed query, and of the plain ones that it stands for."""

    def run(self) -> None:
        for shape, part in _inside(self.query.shape):
            self._negations(shape, part)
        self._repetitions()
        iterations = Iterations.of(self.query)
        every = query_clauses(self.query)
        for clause in every:
            self._references(clause, iterations)
        words = self._words()
        self._readings(words)
        self._strategies()
        super().run()
        for clause in every:
            self._of_one_word(clause, words, iterations)
        for plain in alternatives(self.query):
            _Checks(plain, self._failure_of_word(plain)).run()

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

    def _words(self) -> list[Word]:
        """Return the words of the pattern; refuse those without a meaning of their own."""
        try:
            every = self.query.words()
        except TooManyWordsError:
            raise self._refused(
                f"the pattern stands for more than {MOST_WORDS} sequences of components",
                "write fewer ? and |, fewer parts in AND, and fewer iterations",
            ) from None
        known: dict[Word, Word] = {}
        for word in every:
            parts = [self.query.component(name) for name in word]
            positive = tuple(part.variable for part in parts if not part.negated)
            if not positive:
                hint = "leave ? out of one component"
                raise self._refused("the pattern may have no event", hint)
            for part in (parts[0], parts[-1]):
                self._end(part)
            bare = tuple(map(variable_of, word))
            if known.setdefault(positive, bare) != bare:
                what = f"two alternatives are both {', '.join(positive)}"
                raise self._refused(what, "let them differ in a component that takes an event")
        named = {variable_of(name) for word in every for name in word}
        for part in self.query.components:
            if part.negated and part.variable not in named:
                raise self._no_gap(part, "in AND without two components around it")
        return every

    def _negations(self, shape: Shape, part: Shape) -> None:
        """Refuse negated components of a part of a shape that stand in no gap of their own."""
        every = [self.query.component(one.variable) for one in ones(part)]
        absent = [one for one in every if one.negated]
        if isinstance(shape, AnyOrder):
            if absent and not isinstance(part, One):
                raise self._no_gap(absent[0], "in a part of AND")
        elif not isinstance(shape, Sequence) and len(absent) == len(every):
            raise self._no_gap(absent[0], "alone in an alternative")

    def _no_gap(self, part: Component, where: str) -> InvalidArgumentError:
        hint = "negate a component between others: SEQ(A a, ~(N n), B b), AND(A a, ~(N n), B b)"
        return self._refused(f"{part.variable!r} is negated {where}", hint, part)

    def _repetitions(self) -> None:
        """Refuse groups that repeat without a bound."""
        if self.query.most_events is not None:
            return
        for shape in (*(part for _, part in _inside(self.query.shape)), self.query.shape):
            if isinstance(shape, Repeated) and shape.most is None:
                first = self.query.component(next(ones(shape)).variable)
                what = f"nothing bounds how often the group of {first.variable!r} repeats"
                hint = "write how often at most, as in {1,5}, or WITHIN 20 EVENTS"
                raise self._refused(what, hint, first)

    def _references(self, clause: Tree, iterations: Iterations) -> None:
        """Refuse indexes of a variable that a group takes once in each iteration."""
        found = list(leaves(clause))
        own = [leaf.over.variable for leaf in found if not iterations.is_previous(leaf)]
        for leaf in found:
            variable, index = leaf.over.variable, leaf.over.index
            if variable not in iterations.singles:
                continue
            if isinstance(leaf, Aggregate) or index not in (None, CURRENT, PREVIOUS):
                raise self._refused(
                    f"{variable!r} has one event in each iteration of its group",
                    f"write {variable}.attribute, or {variable}[i-1].attribute of the "
                    "iteration before",
                    leaf.over,
                )
            if index == PREVIOUS and iterations.anchor(variable, own) is None:
                what = f"{variable}[i-1] without an event of this iteration"
                hint = f"compare it with {variable}.attribute, or another of its group"
                raise self._refused(what, hint, leaf.over)

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
                what = f"an event of {part.variable!r} may belong to two iterations of its group"
                hint = "let each iteration end with a component that is neither optional nor a loop"
                raise self._refused(what, hint, part)

    def _strategies(self) -> None:
        several = len({s for _, s in self.query.strategies}) > 1
        loops = [part for part in self.query.positive if part.repeats]
        if self.query.shape is not None and several and loops:
            raise self._refused(
                "a pattern with |, AND, ? or * has several strategies and the loop "
                f"{loops[0].variable!r}",
                "name one strategy, for all variables",
                loops[0],
            )

    def _of_one_word(self, clause: Tree, every: list[Word], iterations: Iterations) -> None:
        """Refuse a condition on components that no match has together."""
        if any(own for word in every for own in iterations.of_word(clause, word)):
            return
        what = f"no match has all of {', '.join(map(repr, sorted(variables_of(clause))))}"
        hint = "a condition is about components of one alternative"
        raise self._refused(what, hint, next(references(clause)))


def _inside(shape: Shape | None) -> Iterator[tuple[Shape, Shape]]:
    """Yield the parts of a shape, each after the parts inside of it, with what it is a part of."""
    if shape is None or isinstance(shape, One):
        return
    for part in inner(shape):
        yield from _inside(part)
        yield shape, part
