# SPDX-License-Identifier: Apache-2.0
"""Conditions as programs over columns, compiled once for all tables of the same kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs

from pyflinkcep.engines.lists.clauses import named
from pyflinkcep.expressions.arrays import by_ranks
from pyflinkcep.expressions.compiler import condition_code, value_code
from pyflinkcep.expressions.leaf_fields import LeafFields
from pyflinkcep.expressions.program import Code, Kind, Op
from pyflinkcep.expressions.text import shown
from pyflinkcep.expressions.tree import CONDITIONS, Column, Leaf, Operation, Tree, attribute_of
from pyflinkcep.expressions.typed import Typed
from pyflinkcep.expressions.unbranched import unbranched

__all__ = ["ElementValue", "JoinPrograms", "Program", "Types", "join_programs", "program_of"]

Types = tuple[tuple[str, Kind], ...]
"""The attributes and their types; those without one are NULL in every event."""

_TAKEN_APART = tuple(operator for operator in CONDITIONS if operator != "like")


@attrs.frozen(eq=False)
class Program:
    """
    A condition or a value as a program over arrays.

    Attributes
    ----------
    code : Code
        The program, without jumps; field ``i`` is leaf ``i``.
    leaves : tuple of Leaf
        What it reads.
    """

    code: Code
    leaves: tuple[Leaf, ...]


@attrs.frozen(eq=False)
class ElementValue:
    """
    What conditions read of one element alone.

    Attributes
    ----------
    variable : str
        The element.
    typed : Typed
        The type of the value.
    program : Program
        Computes it from the attributes of the element's events.
    """

    variable: str
    typed: Typed
    program: Program


@attrs.frozen(eq=False)
class JoinPrograms:
    """
    The conditions that join elements, as programs over values of one element each.

    Attributes
    ----------
    codes : mapping of Tree to Code
        By condition, its program without jumps; field ``i`` is value ``i``.
    values : sequence of ElementValue
        The values.
    """

    codes: Mapping[Tree, Code]
    values: Sequence[ElementValue]


@lru_cache(maxsize=256)
def program_of(condition: Tree, types: Types) -> Program:
    """
    Return the program of a condition over attributes.

    Raises
    ------
    InputError
        If types are incompatible.
    """
    fields = _Attributes(dict(types))
    code = condition_code(by_ranks(condition), fields, f"the condition {shown(condition)!r}")
    return Program(unbranched(code), tuple(fields.leaves))


@lru_cache(maxsize=64)
def join_programs(conditions: tuple[Tree, ...], types: Types) -> JoinPrograms:
    """
    Return conditions on several elements as programs.

    Raises
    ------
    InputError
        If types are incompatible.
    """
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
    """
    Compiles conditions; a value of one element alone is a column, whose number is its field.

    Parameters
    ----------
    types : Types
        The types of attributes.

    Attributes
    ----------
    values : list of ElementValue
        What stands for each number.
    """

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
        return Typed([(Op.FIELD, number)], value.kind, value.scale)
