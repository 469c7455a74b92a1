# SPDX-License-Identifier: Apache-2.0
"""SQL about one event on columns: for all events at once what the evaluator computes for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.arrays import OPERATIONS, TextRanks, by_ranks, columnar
from pyflinkcep.expressions.compiler import value_code
from pyflinkcep.expressions.event_reader import EventReader
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.leaf_fields import LeafFields
from pyflinkcep.expressions.program import Code, Kind, Op, Type
from pyflinkcep.expressions.rules import LEAST, MOST, RULES, TRUTHS, Rule
from pyflinkcep.expressions.tree import Call, Column, Literal, Tree, leaves, parts

__all__ = ["EventTree", "Program", "Range", "never_fails"]

Range = tuple[float, float] | None
"""The least and the greatest of whole numbers; None for values that are not."""

_SUPPORTED = {
    *OPERATIONS, Op.FIELD, Op.INT, Op.FLOAT, Op.NULL, Op.ROUND, Op.PREFIX_END, Op.LIKE, Op.CHOOSE,
    Op.AND, Op.OR, Op.IS_NULL,
}  # fmt: skip

_OTHERS = {Op.NULL: Rule(0), Op.CHOOSE: Rule(3)}


@attrs.frozen
class Program:
    """
    A value of one event as a program over columns.

    Attributes
    ----------
    code : Code
        The program, for :func:`~pyflinkcep.expressions.arrays.computed`.
    columns : tuple of str
        The column of each field.
    kind : Kind or None
        The value's type; None if it is always NULL.
    """

    code: Code
    columns: tuple[str, ...]
    kind: Kind | None


@attrs.frozen
class EventTree:
    """
    SQL about one event, read.

    Attributes
    ----------
    tree : Tree
        Its meaning.
    columns : mapping of str to str
        The name of each column that it reads, by the column's SQL.
    """

    tree: Tree
    columns: Mapping[str, str]

    @classmethod
    def of(cls, text: str) -> EventTree | None:
        """Return what a text means; None if programs do not have what it consists of."""
        try:
            tree = EventReader(text).part(parsed(text))
        except CepError:
            return None
        if any(isinstance(part, Call) for part in parts(tree)):
            return None
        columns = [leaf for leaf in leaves(tree) if isinstance(leaf, Column)]
        return cls(tree, {str(leaf.sql): str(leaf.attribute) for leaf in columns})

    @property
    def texts(self) -> Iterable[str]:
        """The texts that it compares with."""
        values = (part.value for part in parts(self.tree) if isinstance(part, Literal))
        return (value for value in values if isinstance(value, str))

    def program(
        self, kinds: Mapping[str, Kind], ranks: TextRanks, *, is_condition: bool
    ) -> Program | None:
        """
        Return the program.

        Parameters
        ----------
        kinds : mapping of str to Kind
            The types of the columns, by name; others are NULL in every event.
        ranks : TextRanks
            The numbers of all texts, those of :attr:`texts` too.
        is_condition : bool
            Whether the value is to be a truth value.

        Returns
        -------
        Program or None
            None if types are incompatible, or a part is for single events only.
        """
        known = {sql: kinds[name] for sql, name in self.columns.items() if name in kinds}
        fields = LeafFields(known)
        try:
            value = value_code(by_ranks(self.tree), fields, "")
        except CepError:
            return None
        allowed = (Kind.BOOLEAN, None) if is_condition else (*Kind, None)
        if value.scale or value.kind not in allowed or fields.casts:
            return None
        code = columnar(tuple(value.code), ranks, is_condition=is_condition)
        if not {op for op, _ in code} <= _SUPPORTED:
            return None
        own = [leaf for leaf in fields.leaves if isinstance(leaf, Column)]
        names = tuple(self.columns[str(leaf.sql)] for leaf in own)
        return Program(code, names, value.kind)


def never_fails(code: Code, ranges: Mapping[int, Range]) -> bool:
    """
    Whether a program has a value for all rows: no number out of range, no division by zero.

    Parameters
    ----------
    code : Code
        The program.
    ranges : mapping of int to Range
        The least and the greatest value of the fields that are whole numbers.

    Examples
    --------
    >>> code = (Op.FIELD, 0), (Op.INT, 10), (Op.MUL, Type.INT)
    >>> never_fails(code, {0: (-5, 5)}), never_fails(code, {0: (0, 2**62)})
    (True, False)
    """
    stack: list[_Known] = []
    for op, operand in code:
        if op is Op.FIELD:
            stack.append(_Known(ranges.get(int(operand or 0))))
        elif op in (Op.INT, Op.FLOAT):
            number = operand if isinstance(operand, int | float) else 0
            stack.append(_Known((number, number) if op is Op.INT else None, number != 0))
        else:
            rule = _OTHERS.get(op) or RULES[op]
            operands = stack[len(stack) - rule.operands :]
            del stack[len(stack) - rule.operands :]
            if rule.divides and not operands[1].is_not_zero:
                return False
            found = _range(op, operand == Type.FLOAT, [known.range for known in operands])
            if rule.has_range and operand == Type.INT and not _fits(found):
                return False
            stack.append(_Known(found))
    return True


@attrs.frozen
class _Known:
    """What is known of a value on the stack."""

    range: Range
    is_not_zero: bool = False


def _fits(found: Range) -> bool:
    return found is not None and LEAST < found[0] <= found[1] <= MOST


def _range(op: Op, is_float: bool, operands: list[Range]) -> Range:
    """Return the range of a result."""
    if op in TRUTHS or op in (Op.TRUTH_TO_INT, Op.NULL):
        return (0, 1)
    if op in (Op.FLOOR, Op.CEIL):
        return (LEAST, MOST)
    values = operands[1:] if op is Op.CHOOSE else operands
    known = [own for own in values if own is not None]
    if is_float or not known or len(known) < len(values):
        return None
    (low, high), *others = known
    if op in (Op.NEG, Op.ABS):
        return (-high, -low) if op is Op.NEG else (0, max(-low, high))
    if not others:
        return None
    least, most = others[0]
    if op is Op.ADD:
        return (low + least, high + most)
    if op is Op.SUB:
        return (low - most, high - least)
    if op is Op.MUL:
        products = [a * b for a in (low, high) for b in (least, most)]
        return (min(products), max(products))
    if op in (Op.INT_DIV, Op.MOD, Op.PMOD):
        furthest = max(-low, high) if op is Op.INT_DIV else max(-least, most)
        return (-furthest, furthest)
    return (min(low, least), max(high, most))
