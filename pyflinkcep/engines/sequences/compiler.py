# SPDX-License-Identifier: Apache-2.0
"""From a SEQ query to the automaton NFAᵇ, with its conditions compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import attrs

from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.codegen import MatchFunctions, generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.program import Code, CompiledExpressions, Kind, Op
from pyflinkcep.expressions.tree import (
    Aggregate,
    Column,
    MatchExpression,
    Operation,
    Tree,
    attribute_of,
    leaves,
)
from pyflinkcep.sase.attributes import column_sql
from pyflinkcep.sase.model import Component, Query, Strategy
from pyflinkcep.sase.placement import PlacedClause, constant_tests, joined, placed

Fields = Sequence[Any]
"""The values of an event that conditions read."""

Slots = tuple[Any, ...]
"""What conditions still read from a run: V in the paper."""


@attrs.frozen(eq=False)
class EdgeConditions:
    """The conditions on an edge."""

    # The condition on the event alone; None if there is none.
    alone: Callable[[Fields, Slots], bool] | None = None
    # The condition on the event and the run; None if there is none.
    joint: Callable[[Fields, Slots], bool] | None = None
    reads: frozenset[int] = frozenset()  # The slots that `joint` reads
    codes: tuple[Code, Code] = ((), ())  # The programs of both; empty without conditions


Update = Callable[[Slots, Fields], Slots]
"""Returns the slots after an event."""


@attrs.frozen(eq=False)
class Absent:
    """An event that must not come."""

    type: str  # Its type
    # The conditions under which it forbids a match, or goes on with a sequence that does.
    conditions: EdgeConditions
    # How the slots change with it, for what comes after it in the sequence; None if they do not.
    update: Update | None = None


@attrs.frozen(eq=False)
class Negative:
    """A negated component, or a negated sequence."""

    events: tuple[Absent, ...]  # Its event, or those of the sequence
    gap: int  # How many components come before it: 0 at the beginning
    # The component whose beginning makes the conditions decidable; the number of components if only
    # the whole match does.
    needs: int
    reads: frozenset[int]  # The slots of a run that the conditions read

    @property
    def is_sequence(self) -> bool:
        """Whether several events forbid a match, one after another."""
        return len(self.events) > 1

    @property
    def judges(self) -> bool:
        """Whether it depends on more than its candidates between two events of a run."""
        return self.is_sequence or self.events[0].conditions.joint is not None


@attrs.frozen(eq=False)
class SaseAutomaton:
    """A SEQ query, ready to run."""

    query: Query  # The query
    types: tuple[str, ...]  # The types of its positive components
    loops: tuple[bool, ...]  # Which of them repeat
    strategies: tuple[Strategy, ...]  # Their strategies
    # The conditions on their edges.
    begin: tuple[EdgeConditions, ...]
    take: tuple[EdgeConditions, ...]
    leave: tuple[EdgeConditions, ...]
    partition: EdgeConditions  # The condition that an event is in a run's partition
    negatives: tuple[Negative, ...]  # The negated components and sequences
    fields: tuple[str, ...]  # The attributes that :data:`Fields` hold, in order
    expressions: CompiledExpressions  # The programs, fields and slots
    functions: MatchFunctions  # The slots' initial values and updates
    # How the slots change with an event of each component; None if they do not.
    updates: tuple[Update | None, ...]

    @property
    def size(self) -> int:
        """The number of positive components."""
        return len(self.types)

    def columns(self, table: EventTable) -> list[Sequence[Any]]:
        """Return the columns that :data:`Fields` hold."""
        kinds = (field.kind for field in self.expressions.fields)
        return [table.field(name, kind) for name, kind in zip(self.fields, kinds, strict=True)]


def compile_query(query: Query, kinds: Mapping[str, Kind]) -> SaseAutomaton:
    """Compile a SEQ query, which is kept for the next tables of the same kinds."""
    return _compiled(query, tuple(sorted(kinds.items(), key=itemgetter(0))))


@lru_cache(maxsize=512)  # a composed query may stand for many
def _compiled(query: Query, kinds: tuple[tuple[str, Kind], ...]) -> SaseAutomaton:
    return _Compiler(query).run(dict(kinds))


_Keys = tuple[str | None, str | None]
"""The keys of an edge's conditions, on the event alone and on the run too; None for none."""


class _Compiler:
    """Collects the conditions, compiles them together, and returns them."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._names = query.variables
        self._placed = placed(query)
        self._asked: dict[str, tuple[str, MatchExpression]] = {}  # With what they are called
        self._expressions: CompiledExpressions
        self._functions: MatchFunctions

    def run(self, kinds: Mapping[str, Kind]) -> SaseAutomaton:
        query, first = self._query, self._names[0]
        own = [self._placed[name] for name in self._names]
        begin = [
            self._edge(f"begin of {name}", edges.begin, follows=name != first)
            for name, edges in zip(self._names, own, strict=True)
        ]
        take = [
            self._edge(f"take of {name}", edges.take)
            for name, edges in zip(self._names, own, strict=True)
        ]
        leave = [
            self._keys(f"end of {name}", [clause.tree for clause in edges.leave])
            for name, edges in zip(self._names, own, strict=True)
        ]
        partition = self._edge("partition", ())
        absent = {
            name: self._edge(f"absence of {name}", self._placed[name].absent)
            for name in (part.variable for part in query.components if part.negated)
        }
        columns = {column_sql(name): kind for name, kind in kinds.items()}
        self._expressions = compiled(list(self._asked.values()), columns, False)
        self._functions = generated(self._expressions)
        return SaseAutomaton(
            query,
            tuple(part.type for part in query.positive),
            tuple(part.repeats for part in query.positive),
            tuple(query.strategy_of(name) for name in self._names),
            tuple(map(self._conditions, begin)),
            tuple(map(self._conditions, take)),
            tuple(map(self._conditions, leave)),
            self._conditions(partition),
            tuple(
                self._negative(parts, [self._conditions(absent[p.variable]) for p in parts])
                for parts in query.negations
            ),
            tuple(attribute_of(field.sql) for field in self._expressions.fields),
            self._expressions,
            self._functions,
            tuple(map(self._update, self._names)),
        )

    def _edge(self, what: str, own: Iterable[PlacedClause], *, follows: bool = True) -> _Keys:
        """Register the conditions of an edge; `follows` says whether a run has begun before it."""
        query = self._query
        trees: list[Tree] = [clause.tree for clause in own]
        trees += constant_tests(query)
        if follows and query.is_global:
            trees += [_equal(name, self._names[0]) for name in query.equal]
        return self._keys(what, trees)

    def _keys(self, what: str, trees: list[Tree]) -> _Keys:
        alone = [tree for tree in trees if not _has_aggregate(tree)]
        joint = [tree for tree in trees if _has_aggregate(tree)]
        return self._register(what, alone), self._register(what, joint)

    def _register(self, what: str, trees: list[Tree]) -> str | None:
        if not trees:
            return None
        tree = joined("and", trees)
        text = f"{what}: {tree.text}"
        self._asked[text] = f"the {what}", MatchExpression(text, tree, ())
        return text

    def _conditions(self, keys: _Keys) -> EdgeConditions:
        """Return compiled conditions."""
        conditions, programs = self._functions.conditions, self._expressions.programs
        alone, joint = (None if key is None else conditions[key] for key in keys)
        reads = frozenset() if keys[1] is None else self._expressions.slots_of(keys[1])
        codes: Any = tuple(() if key is None else programs[key] for key in keys)
        return EdgeConditions(alone, joint, reads, codes)

    def _update(self, name: str) -> Update | None:
        """Return how the slots change with an event of a component."""
        return self._functions.updates.get(name, self._functions.other)

    def _negative(
        self, parts: Sequence[Component], conditions: Sequence[EdgeConditions]
    ) -> Negative:
        own = [part.variable for part in parts]
        gap = needs = sum(
            not part.negated for part in self._query.components[: self._query.place(own[0])]
        )
        reads = {v for name in own for clause in self._placed[name].absent for v in clause.reads}
        for variable in reads.difference(own):
            number = self._names.index(variable)
            needs = max(needs, number + 1 if self._query.component(variable).repeats else number)
        at_end = gap in (0, len(self._names))
        slots = self._expressions.slots
        taken = (n for asked in conditions for n in asked.reads if slots[n].stage not in own)
        return Negative(
            tuple(
                Absent(part.type, asked, self._update(part.variable))
                for part, asked in zip(parts, conditions, strict=True)
            ),
            gap,
            len(self._names) if at_end else needs,
            frozenset(taken),
        )


def _equal(name: str, first: str) -> Operation:
    """Return the test that an attribute equals that of a run's first event."""
    other = Aggregate("first", first, column_sql(name), f"{first}.{name}")
    return Operation("=", (Column(column_sql(name)), other), f"{name} = {other.text}")


def _has_aggregate(tree: Tree) -> bool:
    return any(isinstance(leaf, Aggregate) for leaf in leaves(tree))


LOOPING, WAITING = 1, 2
"""A run may take more events for its last component, wait for the next one, or both."""


@lru_cache(maxsize=64)
def live_slots(automaton: SaseAutomaton) -> tuple[tuple[int, ...], ...]:
    """
    Return the slots that distinguish runs.

    By ``4 * component + mode``, mode being LOOPING, WAITING or both, those that a condition on an
    edge of that state or a later one reads.
    """
    table = []
    edges = (automaton.begin, automaton.take, automaton.leave)
    for component in range(automaton.size):
        later = [asked.reads for edge in edges for asked in edge[component + 1 :]]
        later += [part.reads for part in automaton.negatives if component < part.needs]
        inside = automaton.take[component].reads | automaton.leave[component].reads
        for mode in range(4):
            reads = automaton.partition.reads.union(*later, inside if mode & LOOPING else ())
            table.append(tuple(sorted(reads)))
    return tuple(table)


@attrs.frozen
class Equality:
    """A clause that compares a field of the event to a slot of the run."""

    # Their numbers.
    field: int
    slot: int


def equality_of(code: Code) -> Equality | None:
    """Return an equality that holds wherever a program holds; None if there is none."""
    for part in _conjuncts(code):
        read = [(op, operand) for op, operand in part if op is not Op.INT_TO_FLOAT]
        if len(read) != 3 or read[2][0] is not Op.EQ:
            continue
        numbers = dict(read[:2])
        if set(numbers) == {Op.FIELD, Op.SLOT}:
            return Equality(_number(numbers[Op.FIELD]), _number(numbers[Op.SLOT]))
    return None


def _conjuncts(code: Code) -> Iterator[Code]:
    """Yield the parts of a program that must all hold."""
    last = len(code) - 1
    if not code or code[last][0] is not Op.AND:
        yield code
        return
    for at, (op, operand) in enumerate(code):
        if op is Op.JUMP_IF_FALSE and at + _number(operand) == last:
            yield from _conjuncts(code[:at])
            yield from _conjuncts(code[at + 1 : last])


def _number(operand: object) -> int:
    assert isinstance(operand, int)
    return operand
