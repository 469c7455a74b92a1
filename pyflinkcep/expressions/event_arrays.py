# SPDX-License-Identifier: Apache-2.0
"""SQL about one event on columns: for all events at once what the evaluator computes for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.arrays import OPERATIONS, TextRanks, by_ranks, columnar
from pyflinkcep.expressions.compiler import value_code
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.number_functions import NUMBER_FUNCTIONS
from pyflinkcep.expressions.parser import EventReader
from pyflinkcep.expressions.program import Code, Kind, Op, Type
from pyflinkcep.expressions.program_layout import LeafFields
from pyflinkcep.expressions.rules import OPERATORS, RULES, TRUTHS, Rule
from pyflinkcep.expressions.sql_types import (
    DATE,
    FLOAT,
    TIMESTAMP,
    SqlType,
    literal_type,
    operation_type,
)
from pyflinkcep.expressions.tokens import LEAST, MOST
from pyflinkcep.expressions.tree import (
    Call,
    Column,
    Literal,
    Operation,
    Tree,
    leaves,
    parts,
)

Range = tuple[float, float] | None
"""The least and the greatest of whole numbers; None for values that are not."""

_SUPPORTED = {
    *OPERATIONS, Op.FIELD, Op.INT, Op.FLOAT, Op.NULL, Op.ROUND, Op.PREFIX_END, Op.LIKE, Op.CHOOSE,
    Op.AND, Op.OR, Op.IS_NULL, *(Op[name.upper()] for name in NUMBER_FUNCTIONS),
}  # fmt: skip

_OTHERS = {Op.NULL: Rule(0), Op.CHOOSE: Rule(3)}


@attrs.frozen
class Program:
    """A value of one event as a program over columns."""

    code: Code  # The program, for :func:`~pyflinkcep.expressions.arrays.computed`
    columns: tuple[str, ...]  # The column of each field
    kind: Kind | None  # The value's type; None if it is always NULL


@attrs.frozen
class EventTree:
    """SQL about one event, read."""

    tree: Tree  # Its meaning
    columns: Mapping[str, str]  # The name of each column that it reads, by the column's SQL

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
        """Return the program."""
        known = {sql: kinds[name] for sql, name in self.columns.items() if name in kinds}
        fields = LeafFields(known)
        try:
            value = value_code(by_ranks(self.tree), fields, "")
        except CepError:
            return None
        allowed = (Kind.BOOLEAN, None) if is_condition else (*Kind, None)
        if value.is_decimal or value.kind not in allowed or fields.casts:
            return None
        code = columnar(tuple(value.code), ranks, is_condition=is_condition)
        if not {op for op, _ in code} <= _SUPPORTED:
            return None
        own = [leaf for leaf in fields.leaves if isinstance(leaf, Column)]
        names = tuple(self.columns[str(leaf.sql)] for leaf in own)
        return Program(code, names, value.kind)

    def is_plain(self, types: RowTypes, ranges: Callable[[Column], Range]) -> bool:
        """Whether programs, which have 64 bits and times in UTC, have the values of its types."""
        return _Plain(types, ranges).of(self.tree) is not None


@attrs.frozen
class _Plain:
    """Looks for calculations whose values depend on their types."""

    types: RowTypes
    ranges: Callable[[Column], Range]

    def of(self, tree: Tree) -> tuple[SqlType | None, Range] | None:
        """Return the type and range of a part's values; None if a program lacks such values."""
        if isinstance(tree, Literal):
            value = tree.value
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return literal_type(tree), (value, value) if is_whole else None  # type: ignore[return-value]
        if isinstance(tree, Column):
            type_ = self.types.of(tree)
            return type_, self.ranges(tree) if type_ is not None and type_.is_whole else None
        assert isinstance(tree, Operation)
        known = [self.of(part) for part in tree.operands]
        found = [part for part in known if part is not None]
        if len(found) < len(known):
            return None
        types = [type_ for type_, _ in found]
        type_ = operation_type(tree, types)
        if self._is_special(tree.operator, types, type_):
            return None
        range_ = None
        if type_ is not None and type_.is_whole and tree.operator in OPERATORS:
            range_ = _range(OPERATORS[tree.operator], False, [own for _, own in found])
        if type_ is not None and type_.bits < 64 and tree.operator in _CALCULATIONS:
            half = 1 << max(type_.bits - 1, 0)
            if type_.is_whole and not (range_ and -half <= range_[0] <= range_[1] < half):
                return None
        return type_, range_

    def _is_special(
        self, operator: str, types: list[SqlType | None], type_: SqlType | None
    ) -> bool:
        if operator in _CALCULATIONS and (type_ == FLOAT or DATE in types):
            return True
        if type_ is not None and type_.name == "decimal" and operator in ("/", "%", "div"):
            return True
        if (TIMESTAMP not in types and operator != "timestampdiff") or self.types.zone is UTC:
            return False
        zone = self.types.zone
        if zone is not None and all(not zone.utcoffset(datetime(*day)) for day in _DAYS):
            return False
        return operator in _CALCULATIONS or len(set(types)) > 1


_CALCULATIONS = (
    "+", "-", "*", "%", "pmod", "neg", "abs", "round", "timestampdiff", "datediff",
)  # fmt: skip
_DAYS = [(year, month, 1) for year in range(1900, 2040, 10) for month in (1, 7)]


def never_fails(code: Code, ranges: Mapping[int, Range]) -> bool:
    """
    Whether a program has a value for all rows: no number out of range, no division by zero.

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
        elif op in (Op.FLOOR, Op.CEIL):
            return False  # of a float, which may have no whole number near it
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
