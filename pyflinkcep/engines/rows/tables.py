# SPDX-License-Identifier: Apache-2.0
"""
DEFINE in the form of the compiled search: fields of rows, slots of the match, programs.

They are those of :mod:`pyflinkcep.expressions.program`, with two differences: slots include the
current row, and a slot may see the rows of several variables (a union, or all), with a different
field for each (an argument with CLASSIFIER).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.rows.columns import FieldArray, RowColumns, shifted
from pyflinkcep.engines.rows.values import Condition, at_hand
from pyflinkcep.expressions.program import ALL, Code, Function, Instruction, Op, Type
from pyflinkcep.match_recognize.leaves import LABEL, Leaf, labelled

__all__ = ["SearchTables", "search_tables"]

_NOTHING = -2
_MOST_SLOTS = 100
_JUMPS = (Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.JUMP_IF_NOT_NULL, Op.JUMP_UNLESS, Op.JUMP)
_FUNCTIONS = {"sum": Function.SUM, "min": Function.MIN, "max": Function.MAX}

Slot = tuple[Function, tuple[int, ...], int, int, bool]
"""Function; the field by variable, ALL or _NOTHING; source; offset; whether it is a float."""

_Field = tuple[str, int, bool]
"""Argument, distance from the current row, and whether it is a text constant."""


@attrs.frozen(eq=False)
class SearchTables:
    """
    All conditions of a clause.

    Attributes
    ----------
    slots : tuple
        What is known of a match: for each slot its function, for each variable the field that it
        takes from its rows (-1 for the rows themselves, -2 if it does not see them), and its
        source, offset and whether it is a float, as in
        :class:`~pyflinkcep.expressions.program.Slot`.
    programs : tuple of Code or None
        By variable; None if every row is accepted.
    fields : tuple of (str, int, bool)
        Argument and distance from the current row; or a text, 0 and True.
    answers : tuple of str or None
        By variable: the argument that is its answer, empty if the answer depends on the row's
        position alone, None if on more.
    has_number : bool
        Whether the first slot is the number of the match.
    """

    slots: tuple[Slot, ...]
    programs: tuple[Code | None, ...]
    fields: tuple[_Field, ...]
    answers: tuple[str | None, ...]
    has_number: bool

    def field_arrays(
        self, columns: RowColumns, ends: np.ndarray[Any, Any]
    ) -> tuple[FieldArray, ...]:
        """Return the fields of rows; `ends` says where the partitions end."""
        size = int(ends[-1]) if len(ends) else 0
        return tuple(
            ([argument] * size, None, False)
            if is_text
            else shifted(columns.array(argument), shift, ends)
            for argument, shift, is_text in self.fields
        )


def search_tables(
    variables: Sequence[str],
    conditions: Mapping[str, Condition],
    members: Mapping[str, tuple[str, ...]],
    is_float: Callable[[str], bool],
) -> SearchTables | None:
    """
    Put conditions into tables; None if the compiled search does not support them.

    Parameters
    ----------
    variables : sequence of str
        The variables by number.
    conditions : mapping of str to Condition
        The conditions; a variable without one accepts every row.
    members : mapping of str to tuple of str
        The variables of each union.
    is_float : callable
        Whether the values of an argument are floats.
    """
    if any(condition.is_evaluated for condition in conditions.values()):
        return None
    leaves = [leaf for condition in conditions.values() for leaf in condition.leaves]
    if any(leaf.has_label and leaf.shift for leaf in leaves):
        return None  # depends on which variables have rows, which no slot has
    if any(leaf.function == "last" and leaf.offset > _MOST_SLOTS for leaf in leaves):
        return None  # one slot per offset, all copied with every row
    has_number = any(leaf.function == "match_number" for leaf in leaves)
    builder = _Builder(variables, members, is_float, has_number)
    programs: list[Code | None] = []
    answers: list[str | None] = []
    for variable in variables:
        condition = conditions.get(variable)
        programs.append(None if condition is None else builder.code(condition, variable))
        answers.append(_answer(condition, programs[-1]))
    return SearchTables(
        tuple(builder.slots), tuple(programs), tuple(builder.fields), tuple(answers), has_number
    )


def _answer(condition: Condition | None, code: Code | None) -> str | None:
    if condition is None or code is None:
        return None
    if condition.is_leaf:
        return condition.leaves[0].argument
    return None if any(op is Op.SLOT for op, _ in code) else ""


class _Builder:
    def __init__(
        self,
        variables: Sequence[str],
        members: Mapping[str, tuple[str, ...]],
        is_float: Callable[[str], bool],
        has_number: bool,
    ) -> None:
        self._variables = variables
        self._members = members
        self._is_float = is_float
        self._fields: dict[_Field, int] = {}
        self._slots: dict[Slot, int] = {}
        if has_number:
            self._slot(Function.COUNT, (_NOTHING,) * len(variables))

    @property
    def fields(self) -> list[_Field]:
        """The fields by number."""
        return list(self._fields)

    @property
    def slots(self) -> list[Slot]:
        """The slots by number."""
        return list(self._slots)

    def code(self, condition: Condition, variable: str) -> Code:
        """Return a condition's program with its leaves inserted."""
        values = [self._value(leaf, variable) for leaf in condition.leaves]
        pieces: list[Code] = [
            values[int(operand or 0)] if op is Op.FIELD else ((op, operand),)
            for op, operand in condition.code
        ]
        begins = np.cumsum([0, *map(len, pieces)]).tolist()
        written: list[Instruction] = []
        for at, piece in enumerate(pieces):
            op, operand = piece[0]
            if len(piece) == 1 and op in _JUMPS:
                piece = ((op, begins[at + 1 + int(operand or 0)] - begins[at + 1]),)
            written += piece
        return tuple(written)

    # --- leaves

    def _value(self, leaf: Leaf, variable: str) -> Code:
        """Return the instructions that push the value of a leaf."""
        if leaf.function == "match_number":
            return ((Op.SLOT, 0),)
        if at_hand(leaf, variable, self._members):
            return ((Op.FIELD, self._field(leaf, variable)),)
        if leaf.is_row:
            return ((Op.SLOT, self._row(leaf)),)
        if leaf.function == "count":
            return ((Op.SLOT, self._slot(Function.COUNT, self._seen(leaf))),)
        fields = self._seen(leaf)
        if leaf.function == "avg":
            total = self._slot(Function.SUM, fields, is_float=True)
            count = self._slot(Function.COUNT, fields)
            average = (Op.INT_TO_FLOAT, None), (Op.DIV, Type.FLOAT)
            return (Op.SLOT, total), (Op.SLOT, count), *average
        argument = leaf.argument or ""
        is_float = argument != LABEL and self._is_float(labelled(argument, self._variables[0]))
        return ((Op.SLOT, self._slot(_FUNCTIONS[leaf.function], fields, is_float=is_float)),)

    def _row(self, leaf: Leaf) -> int:
        """Return the slot of a value at a row of the match."""
        fields = self._seen(leaf)
        if leaf.function == "first":
            everything = tuple(field if field == _NOTHING else ALL for field in fields)
            count = self._slot(Function.COUNT, everything)
            return self._slot(Function.FIRST, fields, count, leaf.offset)
        slot = self._slot(Function.LAST, fields)
        for offset in range(1, leaf.offset + 1):
            slot = self._slot(Function.LAST, fields, slot, offset)
        return slot

    def _seen(self, leaf: Leaf) -> tuple[int, ...]:
        """Return for each variable the field that a leaf takes from its rows."""
        names = self._variables
        if leaf.variable is not None:
            names = self._members.get(leaf.variable, (leaf.variable,))
        return tuple(
            self._field(leaf, name) if name in names else _NOTHING for name in self._variables
        )

    def _field(self, leaf: Leaf, variable: str) -> int:
        if leaf.argument is None:
            return ALL
        field: _Field = (labelled(leaf.argument, variable), leaf.shift, False)
        if leaf.argument == LABEL:
            field = (variable, 0, True)
        return self._fields.setdefault(field, len(self._fields))

    def _slot(
        self,
        function: Function,
        fields: tuple[int, ...],
        source: int = -1,
        offset: int = 0,
        is_float: bool = False,
    ) -> int:
        slot = (function, fields, source, offset, is_float)
        return self._slots.setdefault(slot, len(self._slots))
