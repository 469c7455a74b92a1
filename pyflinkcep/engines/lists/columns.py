# SPDX-License-Identifier: Apache-2.0
"""The attributes that the conditions of a query read, as arrays with null masks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import attrs
import numpy as np

from pyflinkcep.engines.lists.programs import Program, Types, program_of
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.arrays import Array, TextRanks, Values, ranked
from pyflinkcep.expressions.local_match import machine_value
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.expressions.tree import Literal, Tree, parts

__all__ = ["Columns", "column_of"]

_TIMES = (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DATE, Kind.INTERVAL)


@attrs.frozen(eq=False)
class Columns:
    """
    The attributes of events as arrays.

    Texts are replaced by their rank among all texts of the table and the query, so that they
    compare as numbers.

    Attributes
    ----------
    types : Types
        The types of the attributes.
    ranks : TextRanks
        The numbers of texts.
    """

    types: Types
    ranks: TextRanks
    _columns: Mapping[str, Values]
    _programs: dict[Tree, Program] = attrs.field(factory=dict)

    @classmethod
    def of(cls, table: EventTable, conditions: Iterable[Tree]) -> Columns:
        """Return the columns of a table for the conditions of a query."""
        texts = (part.value for tree in conditions for part in parts(tree) if _is_text(part))
        text_columns = [name for name, kind in table.kinds.items() if kind.type == Type.TEXT]
        every = {
            *texts,
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
        """
        Return the program of a condition, its texts being ranks.

        Raises
        ------
        InputError
            If types are incompatible.
        """
        if condition not in self._programs:
            program = program_of(condition, self.types)
            self._programs[condition] = attrs.evolve(program, code=ranked(program.code, self.ranks))
        return self._programs[condition]


def _is_text(part: Tree) -> TypeGuard[Literal]:
    return isinstance(part, Literal) and isinstance(part.value, str)


def column_of(values: Sequence[Any], kind: Kind) -> Values:
    """
    Return a column as numbers: times are microseconds.

    Raises
    ------
    OverflowError
        If a whole number does not fit 64 bits.
    """
    dtype = np.float64 if kind.type == Type.FLOAT else np.int64
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


def _column(values: Sequence[Any], kind: Kind) -> Values:
    """Return a column as numbers; those beyond 64 bits as objects, which numpy compares."""
    try:
        return column_of(values, kind)
    except OverflowError:
        nulls = np.fromiter((value is None for value in values), bool, len(values))
        return Values(np.asarray([value or 0 for value in values], object), nulls)
