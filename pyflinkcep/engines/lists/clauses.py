# SPDX-License-Identifier: Apache-2.0
"""The conditions of a query, sorted by the events that they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.arrays import Array, TextRanks, Values, by_ranks, ranked
from pyflinkcep.expressions.codegen import unbranched
from pyflinkcep.expressions.compiler import LeafFields, Typed, condition_code, value_code
from pyflinkcep.expressions.evaluator import machine_value
from pyflinkcep.expressions.program import Code, Kind, Op, Type
from pyflinkcep.expressions.tree import (
    ALL,
    CONDITIONS,
    Column,
    Leaf,
    Literal,
    Operation,
    Tree,
    attribute_of,
    parts,
    shown,
)
from pyflinkcep.sase.attributes import functions, plain_references, references
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.placement import clauses, constant_tests


@attrs.frozen(eq=False)
class Clauses:
    """The clauses of WHERE."""

    query: Query  # The query
    # By variable, the clauses on one of its events alone, ``[attr = literal]`` among them.
    constant: dict[str, list[Tree]]
    # The clauses that join events of several variables, or all events of a closure.
    associations: tuple[Tree, ...]
    # By negated variable, the clauses that join its events to others; of a negated sequence, to
    # earlier events of it too.
    absent: dict[str, list[Tree]]

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, query: Query) -> Clauses:
        """Return the clauses of a query, which are kept for the next tables."""
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

    def decidable(self, name: str, bound: Iterable[str]) -> Iterator[Tree]:
        """Yield the clauses that join an element to others, all of which are bound."""
        known = {*bound, name}
        for clause in self.associations:
            names = named(clause)
            if name in names and known.issuperset(names):
                yield clause


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


Types = tuple[tuple[str, Kind], ...]
"""The attributes and their types; those without one are NULL in every event."""

_TAKEN_APART = tuple(operator for operator in CONDITIONS if operator != "like")


@attrs.frozen(eq=False)
class Program:
    """A condition or a value as a program over arrays."""

    code: Code  # The program, without jumps; field ``i`` is leaf ``i``
    leaves: tuple[Leaf, ...]  # What it reads


@attrs.frozen(eq=False)
class ElementValue:
    """What conditions read of one element alone."""

    variable: str  # The element
    typed: Typed  # The type of the value
    program: Program  # Computes it from the attributes of the element's events


@attrs.frozen(eq=False)
class JoinPrograms:
    """The conditions that join elements, as programs over values of one element each."""

    # By condition, its program without jumps; field ``i`` is value ``i``.
    codes: Mapping[Tree, Code]
    values: Sequence[ElementValue]  # The values


@lru_cache(maxsize=256)
def program_of(condition: Tree, types: Types) -> Program:
    """Return the program of a condition over attributes."""
    fields = _Attributes(dict(types))
    code = condition_code(by_ranks(condition), fields, f"the condition {shown(condition)!r}")
    return Program(unbranched(code), tuple(fields.leaves))


@lru_cache(maxsize=64)
def join_programs(conditions: tuple[Tree, ...], types: Types) -> JoinPrograms:
    """Return conditions on several elements as programs."""
    compiler = _Compiler(types)
    codes = {condition: compiler.code(condition) for condition in conditions}
    return JoinPrograms(codes, compiler.values)


class _Attributes(LeafFields):
    """Attributes as fields, by their names."""

    def knows(self, sql: str) -> bool:
        """Whether an attribute has a type."""
        return super().knows(attribute_of(sql))

    def kind(self, sql: str) -> Kind:
        """Return the kind of an attribute."""
        return super().kind(attribute_of(sql))


class _Compiler(LeafFields):
    """Compiles conditions; a value of one element alone is a column, whose number is its field."""

    def __init__(self, types: Types) -> None:
        super().__init__({})
        self._types = dict(types)
        self._columns: dict[Tree, Column] = {}
        self.values: list[ElementValue] = []

    def code(self, tree: Tree) -> Code:
        """Return the program of a condition."""
        asked = f"the condition {shown(tree)!r}"
        code = condition_code(self._by_element(by_ranks(tree)), self, asked)
        return unbranched(code, is_condition=True)

    def _by_element(self, tree: Tree) -> Any:
        """Return a condition whose values of one element are columns."""
        if not isinstance(tree, Operation | Leaf):
            return tree
        names = named(tree)
        if isinstance(tree, Operation) and (tree.operator in _TAKEN_APART or len(names) != 1):
            return attrs.evolve(tree, operands=tuple(map(self._by_element, tree.operands)))
        if tree not in self._columns:
            self._columns[tree] = Column(str(len(self._columns)), names[0])
            self.values.append(self._value(tree, names[0]))
        return self._columns[tree]

    def _value(self, tree: Tree, name: str) -> ElementValue:
        fields = _Attributes(self._types)
        value = value_code(tree, fields, f"the value {shown(tree)!r}")
        program = Program(unbranched(tuple(value.code)), tuple(fields.leaves))
        return ElementValue(name, value, program)

    # --- the columns of values as fields

    def cast(self, sql: str, kind: Kind) -> str:
        """Return the column of a value cast to another kind."""
        return sql if self.values[int(sql)].typed.kind is kind else str(self._cast(int(sql), kind))

    def _cast(self, number: int, kind: Kind) -> int:
        """Return the column of a time's cast, given that of the time."""
        own = next(tree for tree, column in self._columns.items() if column.sql == str(number))
        if not isinstance(own, Column):
            return number  # computed, so that it is no time of an event
        cast = attrs.evolve(own, sql=f"cast({own.sql} as {kind.value})")
        return int(str(self._by_element(cast).over.sql))

    def knows(self, sql: str) -> bool:
        """Whether a column has a type."""
        return self.values[int(sql)].typed.kind is not None

    def column(self, part: Column) -> Typed:
        """Return the instruction that pushes a column."""
        number = int(part.sql or 0)
        value = self.values[number].typed
        return Typed([(Op.FIELD, number)], value.kind, value.form)


_TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE, Kind.INTERVAL)


@attrs.frozen(eq=False)
class Columns:
    """
    The attributes of events as arrays.

    Texts are replaced by their rank among all texts of the table and the query, so that they
    compare as numbers.
    """

    types: Types  # The types of the attributes
    ranks: TextRanks  # The numbers of texts
    _columns: Mapping[str, Values]
    _programs: dict[Tree, Program] = attrs.field(factory=dict)

    @classmethod
    def of(cls, table: EventTable, conditions: Iterable[Tree]) -> Columns:
        """Return the columns of a table for the conditions of a query."""
        literals = (p.value for tree in conditions for p in parts(tree) if isinstance(p, Literal))
        text_columns = [name for name, kind in table.kinds.items() if kind.type == Type.TEXT]
        every = {
            *(value for value in literals if isinstance(value, str)),
            *(v for name in text_columns for v in table.columns[name] if v is not None),
        }
        ranks = {text: rank for rank, text in enumerate(sorted(every))}
        columns = {}
        for name, kind in table.kinds.items():
            values = table.columns[name]
            if kind.type == Type.TEXT:
                values = [None if value is None else ranks[value] for value in values]
            columns[name] = _column(values, kind)
        return cls(tuple(table.kinds.items()), TextRanks(ranks), columns)

    @property
    def is_native(self) -> bool:
        """Whether all numbers fit 64 bits."""
        return all(column.data.dtype != object for column in self._columns.values())

    def taken(self, name: str, positions: Array) -> Values:
        """Return an attribute of the events at some positions."""
        column = self._columns.get(name)
        if column is None:
            return Values(np.zeros(len(positions), np.int64), True)
        nulls = column.nulls if column.nulls is False else np.take(column.nulls, positions)
        return Values(np.take(column.data, positions), nulls)

    def program(self, condition: Tree) -> Program:
        """Return the program of a condition, its texts being ranks."""
        if condition not in self._programs:
            program = program_of(condition, self.types)
            self._programs[condition] = attrs.evolve(program, code=ranked(program.code, self.ranks))
        return self._programs[condition]


def column_of(values: Sequence[Any], kind: Kind) -> Values:
    """Return a column as numbers: times are microseconds, long decimals objects."""
    dtype: Any = _DTYPES.get(kind.type, np.int64)
    if isinstance(values, np.ma.MaskedArray):
        return Values(np.asarray(values.data, dtype), np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray):
        return Values(np.asarray(values, dtype))
    if kind in _TIMES:
        values = [machine_value(value, kind) for value in values]
    if None not in values:
        return Values(np.asarray(values, dtype))
    nulls = np.fromiter((value is None for value in values), bool, len(values))
    filled = [0 if value is None else value for value in values]
    return Values(np.asarray(filled, dtype), nulls)


_DTYPES: dict[Type, Any] = {Type.FLOAT: np.float64, Type.DECIMAL: object}


def _column(values: Sequence[Any], kind: Kind) -> Values:
    """Return a column as numbers; those beyond 64 bits as objects, which numpy compares."""
    try:
        return column_of(values, kind)
    except OverflowError:
        nulls = np.fromiter((value is None for value in values), bool, len(values))
        return Values(np.asarray([value or 0 for value in values], object), nulls)
