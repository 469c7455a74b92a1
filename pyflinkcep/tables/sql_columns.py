# SPDX-License-Identifier: Apache-2.0
"""SQL about one event on the columns of a table: all events at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa

from pyflinkcep.errors import ConditionError, did_you_mean
from pyflinkcep.expressions.arrays import Array, TextRanks, Values, computed, holding
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.event_arrays import EventTree, Program, Range, never_fails
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.tokens import slip
from pyflinkcep.expressions.tree import Column
from pyflinkcep.tables.typed_columns import (
    NumberColumn,
    is_exact,
    kind_of,
    numbers,
    ranked,
    row_types,
)

__all__ = ["SqlColumns"]

_AT_ONCE = 1 << 17
_BITS = 63  # in a word


class SqlColumns:
    """
    Expressions of SQL about one event, on a table.

    Parameters
    ----------
    table : pyarrow.Table
        The events.
    texts : iterable of str
        The expressions.
    types : RowTypes, optional
        The types of the columns, unless those of the table say enough.

    Raises
    ------
    ConditionError
        If one names a column that there is not.
    """

    def __init__(
        self, table: pa.Table, texts: Iterable[str], types: RowTypes | None = None
    ) -> None:
        self._table = table
        self.types = row_types(table.schema) if types is None else types
        self._numbers: dict[str, NumberColumn | None] = {}
        self._trees: dict[str, EventTree] = {}
        self._names: dict[str, str] = {}
        for text in texts:
            tree = EventTree.of(text)
            if tree is not None:
                self._trees[text] = tree
                for written in tree.columns.values():
                    self._names[written] = self._found(written, text)

    def _found(self, written: str, text: str) -> str:
        """Return the column of a name, which is compared as in Spark."""
        names = self._table.column_names
        if written in names:
            return written
        same = [name for name in names if name.casefold() == written.casefold()]
        if len(same) == 1:
            return str(same[0])
        raise ConditionError(
            f"the condition {text!r}: the events have no column {written!r}",
            slip(text) or did_you_mean(written, names, f"the columns are {names}"),
        )

    def program(self, text: str, *, is_condition: bool) -> Program | None:
        """Return the program of an expression; None if it has none, or could fail on a row."""
        tree = self._trees.get(text)
        if tree is None or not all(map(self._is_known, tree.columns.values())):
            return None
        found = tree.program(self._kinds, self._ranks, is_condition=is_condition)
        if found is None or not tree.is_plain(self.types, self._range):
            return None
        fields = [self._of(name) for name in found.columns]
        if any(field is None for field in fields):
            return None
        ranges = {place: field.range for place, field in enumerate(fields) if field is not None}
        return found if never_fails(found.code, ranges) else None

    def _range(self, leaf: Column) -> Range:
        column = self._of(self._names[str(leaf.attribute)])
        return None if column is None else column.range

    def plain_kind(self, text: str) -> Kind | None:
        """Return the type of an expression that is only a column; None for any other."""
        name = self._column(text)
        if name is None:
            return None
        return kind_of(self._table.column(name).type)

    def plain(self, text: str, kind: Kind) -> NumberColumn | pa.ChunkedArray | None:
        """Return the values of an expression that is only a column: numbers, or texts."""
        name = self._column(text)
        if name is None or kind_of(self._table.column(name).type) is not kind:
            return None
        column = self._table.column(name)
        if kind is Kind.STRING:
            return column
        return numbers(column, kind)

    def own_column(self, text: str) -> pa.ChunkedArray | None:
        """Return the column that an expression is; None for any other expression."""
        name = self._column(text)
        return None if name is None else self._table.column(name)

    def _column(self, text: str) -> str | None:
        tree = self._trees.get(text)
        if tree is None or not isinstance(tree.tree, Column):
            return None
        return self._names[str(tree.tree.attribute)]

    def _is_known(self, written: str) -> bool:
        """Whether a column is always NULL, or has a type and exact values in programs."""
        column = self._table.column(self._names[written])
        if pa.types.is_null(column.type):
            return True
        return kind_of(column.type) is not None and is_exact(column)

    @cached_property
    def _kinds(self) -> Mapping[str, Kind]:
        """The types of columns, by the name in the SQL."""
        schema = self._table.schema
        kinds = {name: kind_of(schema.field(own).type) for name, own in self._names.items()}
        return {name: kind for name, kind in kinds.items() if kind is not None}

    @cached_property
    def _ranks(self) -> TextRanks:
        """The numbers of all texts; those of columns are kept."""
        of_texts = [name for name, kind in self._kinds.items() if kind is Kind.STRING]
        texts = (text for tree in self._trees.values() for text in tree.texts)
        columns = [self._table.column(self._names[name]) for name in of_texts]
        ranks, found = ranked(columns, texts)
        self._numbers.update(zip(of_texts, found, strict=True))
        return ranks

    def _of(self, name: str) -> NumberColumn | None:
        if name not in self._numbers:
            column = self._table.column(self._names[name])
            self._numbers[name] = numbers(column, self._kinds[name])
        return self._numbers[name]

    def values(self, program: Program) -> Values:
        """Return the value of a program for each row."""
        size = self._table.num_rows
        found = computed(
            program.code, lambda place: self._part(program, place, 0, size), self._ranks
        )
        return Values(
            np.broadcast_to(np.asarray(found.data), size),
            found.nulls if found.nulls is False else np.broadcast_to(found.nulls, size),
        )

    def _part(self, program: Program, place: int, begin: int, size: int) -> Values:
        column = self._of(program.columns[place])
        assert column is not None
        return column.values(begin, size)

    def bits(self, programs: Mapping[int, Program]) -> Array | None:
        """
        Return for each row the bits of the conditions that hold.

        Parameters
        ----------
        programs : mapping of int to Program
            The conditions, by bit.

        Returns
        -------
        array or None
            A number for each row, or a row of numbers with 63 bits each, as small as they can be;
            None without conditions.
        """
        if not programs:
            return None
        size, places = self._table.num_rows, {bit: bit.bit_length() - 1 for bit in programs}
        words = 1 + max(places.values()) // _BITS
        most = max(places.values()) + 1
        dtype = np.uint8 if most <= 8 else np.int32 if most <= 31 else np.int64
        found: Array = np.zeros((words, size) if words > 1 else size, dtype)
        for begin in range(0, size, _AT_ONCE):
            rows = min(_AT_ONCE, size - begin)
            for bit, program in programs.items():
                word, shift = divmod(places[bit], _BITS)
                own = found[word] if words > 1 else found
                held = self._holding(program, begin, rows)
                own[begin : begin + rows] |= np.left_shift(held.astype(dtype), shift)
        return found.T if words > 1 else found

    def _holding(self, program: Program, begin: int, rows: int) -> Array:
        return holding(
            program.code,
            rows,
            lambda place: self._part(program, place, begin, rows),
            self._ranks,
        )
