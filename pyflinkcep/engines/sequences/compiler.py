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


class _Compiler:
    """Collects the conditions, compiles them together, and returns them."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._names = query.variables
        self._edges = placed(query)
        self._expressions: dict[str, MatchExpression] = {}
        self._where: dict[str, str] = {}

    def run(self, kinds: Mapping[str, Kind]) -> SaseAutomaton:
        query = self._query
        own = [self._texts(name, number) for number, name in enumerate(self._names)]
        partition = self._edge("partition", (), constants=True, same=True)
        absent = {
            part.variable: self._edge(
                f"absence of {part.variable}",
                self._edges[part.variable].absent,
                constants=True,
                same=True,
            )
            for part in query.components
            if part.negated
        }
        expressions = compiled(
            [(self._where[text], e) for text, e in self._expressions.items()],
            {column_sql(name): kind for name, kind in kinds.items()},
            False,
        )
        functions = generated(expressions)
        edge = _Handout(expressions, functions)
        return SaseAutomaton(
            query,
            tuple(part.type for part in query.positive),
            tuple(part.repeats for part in query.positive),
            tuple(query.strategy_of(name) for name in self._names),
            tuple(edge(texts[0]) for texts in own),
            tuple(edge(texts[1]) for texts in own),
            tuple(edge(texts[2]) for texts in own),
            edge(partition),
            tuple(
                self._negative(parts, [edge(absent[p.variable]) for p in parts], edge)
                for parts in query.negations
            ),
            tuple(attribute_of(field.sql) for field in expressions.fields),
            expressions,
            functions,
            tuple(map(edge.update, self._names)),
        )

    def _texts(self, name: str, number: int) -> list[tuple[str | None, str | None]]:
        edges = self._edges[name]
        return [
            self._edge(f"begin of {name}", edges.begin, constants=True, same=number > 0),
            self._edge(f"take of {name}", edges.take, constants=True, same=True),
            self._edge(f"end of {name}", edges.leave, constants=False, same=False),
        ]

    def _edge(
        self, what: str, own: Iterable[PlacedClause], *, constants: bool, same: bool
    ) -> tuple[str | None, str | None]:
        """Register the conditions of an edge; return their texts, on the event alone and joint."""
        query = self._query
        trees = [clause.tree for clause in own]
        if constants:
            trees += constant_tests(query)
        if same and query.is_global:
            first = self._names[0]
            trees += [_equal(name, first) for name in query.equal]
        alone = [tree for tree in trees if not _has_aggregate(tree)]
        joint = [tree for tree in trees if _has_aggregate(tree)]
        return self._register(what, alone), self._register(what, joint)

    def _register(self, what: str, trees: list[Tree]) -> str | None:
        if not trees:
            return None
        tree = joined("and", trees)
        text = f"{what}: {tree.text}"
        self._where[text] = f"the {what}"
        self._expressions[text] = MatchExpression(text, tree, ())
        return text

    def _negative(
        self, parts: Sequence[Component], conditions: Sequence[EdgeConditions], edge: _Handout
    ) -> Negative:
        own = [part.variable for part in parts]
        gap = needs = sum(
            not part.negated for part in self._query.components[: self._query.place(own[0])]
        )
        reads = {v for name in own for clause in self._edges[name].absent for v in clause.reads}
        for variable in reads.difference(own):
            number = self._names.index(variable)
            needs = max(needs, number + 1 if self._query.component(variable).repeats else number)
        at_end = gap in (0, len(self._names))
        slots = edge.expressions.slots
        taken = (n for asked in conditions for n in asked.reads if slots[n].stage not in own)
        return Negative(
            tuple(
                Absent(part.type, asked, edge.update(part.variable))
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


@attrs.frozen(eq=False)
class _Handout:
    """Returns compiled conditions by text."""

    expressions: CompiledExpressions
    functions: MatchFunctions

    def update(self, name: str) -> Update | None:
        """Return how the slots change with an event of a component."""
        return self.functions.updates.get(name, self.functions.other)

    def __call__(self, texts: tuple[str | None, str | None]) -> EdgeConditions:
        alone, joint = (None if text is None else self.functions.conditions[text] for text in texts)
        reads = frozenset() if texts[1] is None else self.expressions.slots_of(texts[1])
        programs = self.expressions.programs
        codes: Any = tuple(() if text is None else programs[text] for text in texts)
        return EdgeConditions(alone, joint, reads, codes)


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
    for component in range(automaton.size):
        later = _entering(automaton, component + 1)
        negative = _negated(automaton, component)
        inside = automaton.take[component].reads | automaton.leave[component].reads
        for mode in range(4):
            reads = later | negative | (inside if mode & LOOPING else frozenset())
            table.append(tuple(sorted(reads | automaton.partition.reads)))
    return tuple(table)


def _entering(automaton: SaseAutomaton, component: int) -> frozenset[int]:
    """Return what the edges of a component and later ones read."""
    edges = (automaton.begin, automaton.take, automaton.leave)
    return _union(conditions.reads for edge in edges for conditions in edge[component:])


def _negated(automaton: SaseAutomaton, component: int) -> frozenset[int]:
    """Return what deciding negated components reads from runs at a component."""
    return _union(part.reads for part in automaton.negatives if component < part.needs)


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)


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
