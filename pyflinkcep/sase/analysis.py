# SPDX-License-Identifier: Apache-2.0
"""A query, and what follows from it alone, computed once: also the pattern with its matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any

import attrs

from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.expressions.tree import (
    WHOLE,
    Aggregate,
    Column,
    Leaf,
    Operation,
    Tree,
    attribute_of,
    literal_sql,
    spark_sql,
    written_name,
)
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.attributes import (
    column_sql,
    computed_for,
    functions,
    is_computed,
    owned_sql,
    variables_of,
)
from pyflinkcep.sase.model import (
    CONTIGUOUS,
    AnyOrder,
    Choice,
    Component,
    Form,
    One,
    Optional,
    Query,
    Repeated,
    Sequence,
    Shape,
    Strategy,
    Word,
    inner,
    words,
)
from pyflinkcep.sase.placement import (
    Edges,
    PlacedClause,
    Placement,
    placed,
    placed_clause,
    query_clauses,
)


@attrs.frozen(eq=False, slots=False)
class AnalysedQuery:
    """
    A query, analysed; each result is computed when it is first asked for, and kept.

    Examples
    --------
    >>> from pyflinkcep.sase import parse
    >>> query = AnalysedQuery(parse("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x"))
    >>> query.slots
    {'a': (), 'b': ('last(b.x)',), 'c': ()}
    >>> query.why_no_pattern is None
    True
    """

    query: Query  # The query
    type_column: str = "type"  # The column that holds an event's type

    @cached_property
    def edges(self) -> Placement:
        """The clauses by variable and edge; empty for a ``;`` query."""
        return placed(self.query) if self.query.form is Form.SEQ else {}

    @cached_property
    def slots(self) -> Mapping[str, tuple[str, ...]]:
        """
        What distinguishes runs, by the variable of their last event; empty for a ``;`` query.

        Runs that agree in all of it are merged, since no later condition can tell them apart. With
        a window, the time of the first event distinguishes runs too.

        Notes
        -----
        Agrawal and others, SIGMOD 2008, section 5.2: the bits M, for V[t…].
        """
        query, placement = self.query, self.edges
        found: dict[str, tuple[str, ...]] = {}
        if not placement or query.is_composed:
            return found
        names = query.variables
        for number, name in enumerate(names):
            edges = placement[name]
            ahead = [*edges.take, *edges.leave] if query.positive[number].repeats else []
            for later in names[number + 1 :]:
                edges = placement[later]
                ahead += [*edges.begin, *edges.take, *edges.leave]
            for part in query.components:
                ahead += placement[part.variable].absent
            read = [slot for clause in ahead for slot in functions(clause.tree)]
            shown = [_text(slot) for slot in read if slot.stage in names[: number + 1]]
            if query.is_global:
                shown += [f"first({names[0]}.{attribute})" for attribute in query.equal]
            found[name] = tuple(dict.fromkeys(shown))
        found[names[-1]] = found[names[-1]] if query.positive[-1].repeats else ()
        return found

    def slots_explained(self) -> Iterator[str]:
        """Yield a line for each variable: what distinguishes the runs that have just taken it."""
        query = self.query
        started = [] if query.window is None else ["the time of its first event"]
        if query.most_events is not None:
            started = ["the number of its first event"]
        for name, own in self.slots.items():
            if query.positive[-1].variable == name and not query.positive[-1].repeats:
                continue  # a match
            yield f"after {name}: {', '.join([*own, *started]) or 'nothing, they are one run'}"

    @cached_property
    def computed(self) -> Mapping[str, list[str]]:
        """The attributes that SQL computes, each with the event types that need it."""
        return computed_for(self.query)

    @property
    def skips_others(self) -> bool:
        """Whether its strategies skip all events that it cannot use."""
        strategies = {strategy for _, strategy in self.query.strategies}
        return self.query.most_events is None and strategies.isdisjoint(CONTIGUOUS)

    @property
    def usable_ways(self) -> tuple[str, ...]:
        """
        Conditions in SQL, one of which an event satisfies that the query can use.

        Those with arithmetic are left out: what fails in Spark is NULL in a query.
        """
        return tuple(dict.fromkeys(map(self._way, self.query.components)))

    @cached_property
    def usable_sql(self) -> str:
        """Which events the query can use."""
        return " OR ".join(f"({way})" for way in self.usable_ways)

    def _way(self, part: Component) -> str:
        """Return which events a component can use."""
        is_type, edges = _is(self.type_column, part.type), self.edges.get(part.variable)
        if edges is None:
            return is_type
        if part.negated:
            return _all([is_type, *_plain(edges.absent)])
        begin, take = _all(_plain(edges.begin)), _all(_plain(edges.take))
        if not part.repeats or begin == take:
            return _all([is_type, *([begin] if begin else [])])
        return f"{is_type} AND ({begin} OR {take})" if begin and take else is_type

    @cached_property
    def why_no_pattern(self) -> str | None:
        """Why no pattern has the matches of the query; None if one has."""
        if self.query.totals is not None:
            return "it totals the matches of windows: SLIDE"
        return why_no_pattern(self.query, self.edges)

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern that has the same matches."""
        if self.why_no_pattern is not None:
            raise NotSupportedError(
                f"no pattern has the matches of this query: {self.why_no_pattern}",
                "run the query itself: CEP.pattern(events, query)",
            )
        query = self.query
        if query.is_composed:
            pattern = composed_pattern(query, self.type_column)
        else:
            pattern = _Builder(query, self.type_column, self.edges).pattern()
        if query.window is None:
            return pattern
        return pattern.within(timedelta(milliseconds=query.window + 1))


def _text(slot: Aggregate) -> str:
    argument = "*" if slot.argument is None else attribute_of(slot.argument)
    return f"{slot.function}({slot.stage}.{argument})"


# --- as a pattern


_PLAIN = ("=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null", "is not null")
"""The operators that never fail."""
_all = " AND ".join


def _is(attribute: str, value: Any) -> str:
    """Return the test of an attribute for a constant as SQL."""
    return f"{column_sql(attribute)} = {literal_sql(value)}"


def _plain(clauses: Iterable[PlacedClause]) -> list[str]:
    return [condition_sql(c.tree) for c in clauses if _is_plain(c.tree)]


def _is_plain(tree: Tree) -> bool:
    """Whether a condition compares columns and literals only."""
    if isinstance(tree, Column):
        return not is_computed(str(tree.sql))
    if isinstance(tree, Operation):
        return tree.operator in _PLAIN and all(map(_is_plain, tree.operands))
    return not isinstance(tree, Aggregate)


def condition_sql(tree: Tree) -> str:
    """Return a condition over the current event and the run as SQL over stages."""
    return spark_sql(tree, _leaf_sql)


def _leaf_sql(leaf: Leaf) -> str:
    if isinstance(leaf, Column):
        return str(leaf.sql)
    stage = written_name(leaf.stage)
    what = f"{stage}.*" if leaf.argument is None else owned_sql(leaf.over, stage)
    return f"{leaf.function}({what})"


def _own_tests(query: Query, part: Component, type_column: str) -> list[str]:
    """Return the tests of a component's type, and ``[attr = literal]``, as SQL."""
    constants = (_is(name, literal.value) for name, literal in query.constants)
    return [_is(type_column, part.type), *constants]


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
    """Return the pattern with the matches of a query, but its window."""
    assert query.shape is not None
    builder = _ComposedBuilder(query, type_column, query_clauses(query), query.words())
    return builder.chain(None, query.shape)


def _interleaves(shape: Shape) -> bool:
    """Whether parts in any order have more than one event, or perhaps none."""
    if isinstance(shape, One):
        return False
    own = inner(shape)
    if isinstance(shape, AnyOrder) and any(len(w) != 1 for p in own for w in words(p, 1000)):
        return True
    return any(map(_interleaves, own))


@attrs.frozen
class _ComposedBuilder:
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
        tests = _own_tests(query, query.component(variable), self.type_column)
        tests += [f"{column_sql(name)} = {column_sql(name)}" for name in query.equal]
        for clause in self.clauses:
            others = variables_of(clause)
            if not others:
                tests.append(condition_sql(clause))
            elif variable in others:
                tests += self._test(clause, variable, others - {variable})
        return _all(tests)

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


_STRICT, _PARTITION = Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY
_NEXT, _ANY = Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH


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
        tests = _own_tests(self.query, part, self.type_column)
        begin, take = self._all(edges.begin, is_first=is_first), self._all(edges.take)
        if part.negated:
            tests += self._all(edges.absent)
        elif part.repeats and begin != take:
            taken = f"count({written_name(part.variable)}.*)"
            first, later = f"{taken} = 0", f"{taken} > 0"
            tests.append(f"({' AND '.join([first, *begin])} OR {' AND '.join([later, *take])})")
        else:
            tests += begin
        return _all(tests)

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
