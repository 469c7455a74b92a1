# SPDX-License-Identifier: Apache-2.0
"""
Programs on arrays with null masks: a value for each row instead of one.

Texts are numbers here, which compare as the texts do, and all branches are computed
(:func:`columnar`); without ANSI no computation fails. The rules are those of
:mod:`~pyflinkcep.expressions.program`. Mirror: ``kernel/src/lists/batch.c``. SQL about one event
(:class:`EventTree`) has here for all events at once the values that the evaluator computes for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from pyflinkcep.errors import CepError
from pyflinkcep.expressions.codegen import called_function, scalar, unbranched
from pyflinkcep.expressions.compiler import LeafFields, value_code
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.numbers import LEAST, MOST, NUMBER_FUNCTIONS, ROUNDINGS
from pyflinkcep.expressions.parser import event_tree
from pyflinkcep.expressions.program import (
    BITS,
    OPERATORS,
    RULES,
    TRUTHS,
    Code,
    Instruction,
    Kind,
    Nulls,
    Op,
    Rule,
    Type,
    floats_compared,
    like_regex,
)
from pyflinkcep.expressions.sql_types import (
    DATE,
    FLOAT,
    TIMESTAMP,
    SqlType,
    literal_type,
    operation_type,
)
from pyflinkcep.expressions.tree import Call, Column, Literal, Operation, Tree, leaves, parts

Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class Values:
    """A value for each row."""

    data: Any  # The values; arbitrary for NULL
    nulls: Any = False  # The null mask


def holding(code: Code, size: int, field: Callable[[int], Values], ranks: TextRanks) -> Array:
    """Return for each row whether a condition is true."""
    return np.broadcast_to(_is_true(computed(code, field, ranks)), size)


def computed(code: Code, field: Callable[[int], Values], ranks: TextRanks) -> Values:
    """Return a value or a condition for each row; see :func:`holding`."""
    stack: list[Values] = []
    with np.errstate(all="ignore"):  # infinities, NaN and numbers that wrap around are values
        for op, operand in code:
            if op is Op.FIELD:
                stack.append(field(int(operand or 0)))
            elif op in (Op.INT, Op.FLOAT):
                stack.append(Values(operand))
            elif op is Op.DECIMAL:
                stack.append(Values(np.asarray(Decimal(str(operand)), object)))
            elif op is Op.NULL:
                stack.append(Values(0, True))
            elif op is Op.CHOOSE:
                other, value, condition = (stack.pop() for _ in range(3))
                stack.append(_chosen(_is_true(condition), value, other))
            elif op is Op.PREFIX_END:
                stack.append(_looked_up(stack.pop(), ranks.ends))
            elif op is Op.LIKE:
                stack.append(_looked_up(stack.pop(), ranks.fitting(str(operand))))
            else:
                operands = [stack.pop() for _ in range(RULES[op].operands)][::-1]
                function = called_function(op, operand, ansi=False)
                if function is None and (op in OPERATIONS or RULES[op].nulls in _ASKING):
                    stack.append(_operation(op, operand == Type.FLOAT, *operands))
                else:
                    function = function or scalar(op, operand, ansi=False)
                    stack.append(_by_value(op, function, *operands))
    (found,) = stack
    return found


_ASKING = (Nulls.ASKED, Nulls.DECIDES)


@attrs.frozen(eq=False, slots=False)
class TextRanks:
    """Texts as numbers that compare as they do."""

    numbers: Mapping[str, int]  # The place of each text among all in ascending order
    _fitting: dict[str, Array] = attrs.field(factory=dict, init=False, repr=False)

    @cached_property
    def ends(self) -> Array:
        """By number, the least number of the texts after all that begin with a text."""
        texts = sorted(self.numbers)
        ends = np.full(len(texts), len(texts), np.int64)
        begun: list[int] = []
        for number, text in enumerate(texts):
            while begun and not text.startswith(texts[begun[-1]]):
                ends[begun.pop()] = number
            begun.append(number)
        return ends

    def fitting(self, pattern: str) -> Array:
        """Return by number which texts are like a pattern."""
        if pattern not in self._fitting:
            fits = like_regex(pattern).fullmatch
            found = [fits(text) is not None for text in sorted(self.numbers)]
            self._fitting[pattern] = np.asarray(found, bool)
        return self._fitting[pattern]


def by_ranks(tree: Tree) -> Tree:
    """Return a condition that can be computed on the numbers of texts."""
    if not isinstance(tree, Operation):
        return tree
    if tree.operator == "startswith":
        text, prefix = map(by_ranks, tree.operands)
        end = Operation("prefix end", (prefix,), span=tree.span)
        tests = Operation(">=", (text, prefix)), Operation("<", (text, end))
        return Operation("and", tests, tree.text, tree.span)
    return attrs.evolve(tree, operands=tuple(map(by_ranks, tree.operands)))


def columnar(code: Code, ranks: TextRanks, *, is_condition: bool = False) -> Code:
    """Return a program over the numbers of texts instead of texts, without jumps."""
    return ranked(unbranched(code, is_condition=is_condition), ranks)


def ranked(code: Code, ranks: TextRanks) -> Code:
    """Return a program without jumps over the numbers of texts instead of texts."""
    found: list[Instruction] = []
    for (before, text), (op, operand) in pairwise(((Op.NULL, None), *code)):
        if op is Op.TEXT:
            found.append((Op.INT, ranks.numbers[str(operand)]))
        elif op is Op.PREFIX_END and before is Op.TEXT:
            found[-1] = Op.INT, int(ranks.ends[ranks.numbers[str(text)]])
        elif operand is Type.TEXT:  # not the number of digits that ROUND has
            found.append((op, Type.INT))
        else:
            found.append((op, operand))
    return tuple(found)


# --- decimals


def _by_value(op: Op, function: Callable[..., Any], *operands: Values) -> Values:
    """Return the result of a function that NumPy lacks, computed value by value."""
    data = np.broadcast_arrays(*(np.asarray(values.data) for values in operands))
    masks = [np.broadcast_to(values.nulls, data[0].shape).ravel() for values in operands]
    rows = zip(*(column.ravel().tolist() for column in data), strict=True)
    known = zip(*(~mask for mask in masks), strict=True)
    yields = RULES[op].nulls is Nulls.YIELDS
    found: list[Any] = []
    for row, valid in zip(rows, known, strict=True):
        if all(valid):
            found.append(function(*row))
        else:
            left = [value for value, is_valid in zip(row, valid, strict=True) if is_valid]
            found.append(left[0] if yields and left else None)
    nulls = np.asarray([value is None for value in found], bool).reshape(data[0].shape)
    dtype = _DTYPES.get(op, object)
    filled = np.empty(len(found), dtype)
    filled[:] = [0 if value is None else value for value in found]
    return Values(filled.reshape(data[0].shape), nulls)


_DTYPES: dict[Op, Any] = {
    Op.UNITS: np.int64, Op.DECIMAL_TO_INT: np.int64, Op.DECIMAL_TO_FLOAT: np.float64,
    **dict.fromkeys((Op[name.upper()] for name in (*NUMBER_FUNCTIONS, *ROUNDINGS)), np.float64),
}  # fmt: skip


# --- NULL


def _is_true(values: Values) -> Array:
    data = np.asarray(values.data)
    if values.nulls is False and data.dtype == bool:
        return data
    found: Array = np.logical_and(data, np.logical_not(values.nulls))
    return found


def _chosen(condition: Any, value: Values, other: Values) -> Values:
    """Return one value where a condition is true, else the other."""
    data = np.where(condition, _numbers(value.data), _numbers(other.data))
    return Values(data, np.where(condition, value.nulls, other.nulls))


def _operation(op: Op, is_float: bool, *operands: Values) -> Values:
    """Return the result of an operation, which is NULL as its rule says."""
    rule = RULES[op]
    if rule.nulls is Nulls.ASKED:
        return Values(np.asarray(operands[0].nulls))
    data = [_numbers(values.data) for values in operands]
    nulls = operands[0].nulls
    if len(operands) > 1 and operands[1].nulls is not False:
        nulls = operands[1].nulls if nulls is False else np.logical_or(nulls, operands[1].nulls)
    if rule.nulls is Nulls.DECIDES:
        return _decided(op is Op.OR, *operands)
    if rule.divides:
        zero = np.equal(data[1], 0)
        nulls = np.logical_or(nulls, zero)
        data[1] = np.where(zero, 1, data[1])
    if rule.of_positive:
        outside = np.less_equal(data[0], 0)
        nulls = np.logical_or(nulls, outside)
        data[0] = np.where(outside, 1, data[0])
    found = OPERATIONS[op](is_float, *data)
    if rule.nulls is Nulls.EQUALS:
        both = np.logical_and(operands[0].nulls, operands[1].nulls)
        return Values(np.where(nulls, both, found))
    if rule.nulls is Nulls.YIELDS:
        known = _chosen(operands[0].nulls, operands[1], operands[0])
        return _chosen(nulls, known, Values(found))
    return Values(found, nulls)


def _decided(decides: bool, *operands: Values) -> Values:
    """Return AND or OR, which one operand decides if it is false or true."""
    truths = [np.asarray(part.data, bool) == decides for part in operands]
    a, b = (truth & np.logical_not(p.nulls) for truth, p in zip(truths, operands, strict=True))
    decided = a | b
    nulls = np.logical_or(operands[0].nulls, operands[1].nulls) & ~decided
    return Values(decided if decides else np.logical_not(decided), nulls)


# --- operations: functions of whether operands are floats, and of these


def _numbers(data: Any) -> Any:
    """Return a constant in 64 bits, in which integers wrap around."""
    if isinstance(data, int) and not isinstance(data, bool):
        return np.int64(data)
    return np.float64(data) if isinstance(data, float) else data


_Function = Callable[..., Any]


def _column(form: str) -> _Function:
    """Return what Python says of the columns ``a`` and ``b``."""
    function: _Function = eval(f"lambda is_float, a, b=None: {form}", {"np": np})
    return function


_FORMS = {op: rule.form.format(a="a", b="b") for op, rule in RULES.items() if rule.form}
_COMPARED: dict[Op, _Function] = {
    op: _column(f"{floats_compared(op, 'a', 'b', BITS)} if is_float else {_FORMS[op]}")
    for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)
}


def _looked_up(a: Values, of_numbers: Array) -> Values:
    return Values(np.take(of_numbers, a.data), a.nulls) if len(of_numbers) else a


def _whole(function: Callable[[Any], Any]) -> _Function:
    """Return a function to whole numbers, which stop at the ends of the range."""

    def integers(_is_float: bool, data: Any) -> Any:
        found = function(data)
        inside = np.abs(found) < 2.0**63
        ends = np.where(np.isnan(found), 0, np.where(found > 0, MOST, LEAST))
        return np.where(inside, np.where(inside, found, 0).astype(np.int64), ends)

    return integers


def _int_div(_is_float: bool, a: Any, b: Any) -> Any:
    return np.where(b == -1, np.negative(a), _toward_zero(a, np.where(b == -1, 1, b)))


def _toward_zero(a: Any, b: Any) -> Any:
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a))


def _pmod(_is_float: bool, a: Any, b: Any) -> Any:
    remainder = np.fmod(a, b)
    return np.where(remainder < 0, np.fmod(remainder + b, b), remainder)


def _extreme(op: Op) -> _Function:
    """Return the second value if it is less, or greater, else the first."""
    better = _COMPARED[Op.LT if op is Op.LEAST else Op.GT]
    return lambda is_float, a, b: np.where(better(is_float, b, a), b, a)


OPERATIONS: dict[Op, _Function] = {
    **{op: _column(form) for op, form in _FORMS.items()},
    Op.INT_TO_FLOAT: lambda _, a: np.asarray(a, np.float64),
    Op.TRUTH_TO_INT: lambda _, a: np.asarray(a, np.int64),
    Op.INT_DIV: _int_div,
    Op.MOD: lambda _, a, b: np.fmod(a, b),
    Op.PMOD: _pmod,
    Op.FLOOR: _whole(np.floor),
    Op.CEIL: _whole(np.ceil),
    **{Op[name.upper()]: _column(of.column) for name, of in NUMBER_FUNCTIONS.items() if of.column},
    **_COMPARED,
    Op.EQ_NULLSAFE: _COMPARED[Op.EQ],
    Op.LEAST: _extreme(Op.LEAST),
    Op.GREATEST: _extreme(Op.GREATEST),
    Op.OR_ELSE: lambda _, a, _b: a,
    Op.NOT: lambda _, a: np.logical_not(a),
}
"""The operations on columns without NULL; what it lacks is computed value by value."""


# --- SQL about one event

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
        return _read(text)

    @classmethod
    def of_tree(cls, tree: Tree) -> EventTree:
        """Return a tree, or a part of one, that programs have."""
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


@lru_cache(maxsize=20_000)
def _read(text: str) -> EventTree | None:
    """Return what a text means, read once: a stream asks again in each micro-batch."""
    try:
        tree = event_tree(text)
    except CepError:
        return None
    if any(isinstance(part, Call) for part in parts(tree)):
        return None
    return EventTree.of_tree(tree)


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
    """Whether a program has a value for all rows: no number out of range, no division by zero."""
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
            is_whole = rule.has_range and operand == Type.INT
            if is_whole and not (found and LEAST < found[0] <= found[1] <= MOST):
                return False
            stack.append(_Known(found))
    return True


@attrs.frozen
class _Known:
    """What is known of a value on the stack."""

    range: Range
    is_not_zero: bool = False


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
