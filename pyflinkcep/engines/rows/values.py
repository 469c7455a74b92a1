# SPDX-License-Identifier: Apache-2.0
"""The conditions of DEFINE on the rows of partitions, in Python: leaves, slots, functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_, or_, xor
from typing import Any, NamedTuple, Protocol

import attrs
import numpy as np

from pyflinkcep.errors import ConditionError, InputError, NotSupportedError, counted
from pyflinkcep.expressions.aggregates import AGGREGATES, Moments
from pyflinkcep.expressions.evaluator import UNTYPED, RowTypes, part_value
from pyflinkcep.expressions.grammar import Form, Syntax
from pyflinkcep.expressions.program import ALL, Code, Function, Instruction, Op, Type
from pyflinkcep.expressions.rules import OVERFLOW
from pyflinkcep.expressions.sql_types import (
    BIGINT,
    BOOLEAN,
    DAYS,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    VOID,
    SqlType,
    aggregate_type,
    array_of,
)
from pyflinkcep.expressions.sql_values import (
    arithmetic,
    cast_value,
    compared,
    greater,
    is_same,
    lesser,
    truth,
)
from pyflinkcep.expressions.tokens import LEAST, MOST, wrapped
from pyflinkcep.expressions.values import Typed, aggregated, spread
from pyflinkcep.match_recognize.leaves import LABEL, Fold, Leaf, has_label, labelled

FieldArray = tuple[np.ndarray[Any, Any] | list[Any], np.ndarray[Any, Any] | None, bool]
"""
Values as int64 or float64; the mask of those that are not NULL, None for all; whether they are
floats. Texts and decimals are a list.
"""


class RowColumns(Protocol):
    """The arguments of leaves, for each row."""

    def plain(self, argument: str) -> Sequence[Any]:
        """Return the values of an argument."""

    def array(self, argument: str) -> FieldArray:
        """Return the same as an array."""


def shifted(field: FieldArray, shift: int, ends: np.ndarray[Any, Any]) -> FieldArray:
    """Return for each row the value at a distance in the same partition; NULL outside."""
    values, valid, is_float = field
    if not shift:
        return field
    sizes = np.diff(ends, prepend=0)
    rows = np.arange(len(values)) + shift
    there = (rows >= np.repeat(ends - sizes, sizes)) & (rows < np.repeat(ends, sizes))
    rows = np.where(there, rows, 0)
    if isinstance(values, list):
        texts = zip(rows.tolist(), there.tolist(), strict=True)
        return [values[row] if is_there else None for row, is_there in texts], None, is_float
    if valid is not None:
        there &= valid[rows]
    return values[rows], there, is_float


class TypedFold(NamedTuple):
    """A fold as a function of its fields for each row, and the type of its values."""

    function: Callable[[Sequence[Sequence[Any]]], Any]
    type: SqlType | None


def fold_function(fold: Fold, types: RowTypes = UNTYPED) -> TypedFold:
    """
    Return the function of a fold, for fields of some types, and the type of its values.

    The number of the match is the last value of a row, if the fold reads it.
    """
    arguments = fold.arguments
    least, most, function = _FOLDS.get(fold.name, (0, -1, None))
    if fold.name in _AGGREGATED:
        least, most, function = 1, 1, _values
    if function is None or fold.is_ordered or not least <= len(arguments) <= most:
        what = f"{fold.name.upper()} WITHIN GROUP" if fold.is_ordered else fold.name.upper()
        raise NotSupportedError(
            f"{what} with {counted(len(arguments), 'argument')} in DEFINE",
            f"the aggregates of DEFINE are {', '.join(sorted({*_FOLDS, *_AGGREGATED})).upper()}; "
            "all others are for MEASURES",
        )
    given = [_input(fold, part, types) for part in arguments]
    inputs = [part.function for part in given]
    conditions = [_input(fold, part, types).function for part in fold.conditions]
    type_ = _fold_type(fold.name, [part.type for part in given])
    if fold.name in _OF_NUMBERS and given[0].type == STRING:
        inputs[0] = spread((inputs[0],), lambda text: cast_value(text, DOUBLE))

    def folded(rows: Sequence[Sequence[Any]]) -> Any:
        taken = [
            [value(row) for value in inputs]
            for row in rows
            if all(truth(condition(row)) for condition in conditions)
        ]
        found = function(_distinct(taken) if fold.is_distinct else taken)
        if fold.name not in _AGGREGATED:
            return found
        try:
            return aggregated(_AGGREGATED[fold.name], found, given[0].type)
        except ArithmeticError:
            if fold.name.startswith("try_"):
                return None
            raise

    return TypedFold(folded, type_)


_OF_TRUTHS = ("count_if", "bool_and", "every", "bool_or", "any", "some")
_COLLECTED = ("array_agg", "collect_list", "collect_set")


def _fold_type(name: str, types: Sequence[SqlType | None]) -> SqlType | None:
    """Return the type of a fold of arguments, which refuses those that it never takes."""
    first = types[0] if types else None
    if name in _OF_NUMBERS and first is not None:
        function = _AGGREGATED.get(name, "stddev")
        is_length = function in ("sum", "avg") and first in (INTERVAL, DAYS)
        if not (first.is_number or is_length or first in (STRING, VOID)):
            raise InputError(f"{name.upper()} of {first.name}", "use numbers")
        return aggregate_type(function, first)
    if first is not None and first not in (VOID, STRING):
        if name in _OF_TRUTHS and first != BOOLEAN:
            raise InputError(f"{name.upper()} of {first.name}", "compare it with a value")
        if name.startswith("bit_") and not first.is_whole:
            raise InputError(f"{name.upper()} of {first.name}", "use whole numbers")
        if name in ("listagg", "string_agg"):
            raise InputError(f"{name.upper()} of {first.name}", "cast it to string")
    if name in _COLLECTED:
        return array_of(first)
    if name in _SAME:
        return first
    return _FOLD_TYPES.get(name, DOUBLE if first is not None else None)


def gathered(rows: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Return what ARRAY_AGG does."""
    return [row[0] for row in rows] or None


def _input(fold: Fold, part: Syntax, types: RowTypes) -> Typed:
    """Return the function of an argument or condition, given the fields of a row."""
    if part.form is Form.STAR:
        return Typed(lambda _: 1, INT)
    is_field = part in fold.inputs
    is_filter = part in fold.conditions
    inner = part.operands[0] if is_filter and not is_field else part
    return part_value(fold.text, inner, fold.inputs, types)


def _distinct(rows: list[list[Any]]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for row in rows:
        if not any(all(map(is_same, row, other)) for other in found):
            found.append(row)
    return found


# --- the aggregates; each is given the arguments of all rows


def _values(rows: list[list[Any]]) -> list[Any]:
    """Return the first arguments that are not NULL."""
    return [row[0] for row in rows if row[0] is not None]


def _of_some(function: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    """Return an aggregate of the values that are not NULL; NULL if there are none."""

    def aggregate(rows: list[list[Any]]) -> Any:
        values = _values(rows)
        return function(values) if values else None

    return aggregate


def _moments(values: list[Any]) -> Moments:
    return Moments(list(map(float, values)))


def _by(sign: int) -> Callable[[list[list[Any]]], Any]:
    """Return MAX_BY or MIN_BY; of equal rows the last, as in Spark."""

    def aggregate(rows: list[list[Any]]) -> Any:
        best = None
        for row in rows:
            if row[1] is None:
                continue
            if best is None or sign * compared(row[1], best[1]) >= 0:
                best = row
        return None if best is None else best[0]

    return aggregate


def _joined(rows: list[list[Any]]) -> str | None:
    values = _values(rows)
    between = rows[0][1] if rows and len(rows[0]) > 1 and rows[0][1] is not None else ""
    return between.join(values) if values else None


def _distinct_values(rows: list[list[Any]]) -> list[Any]:
    values = (v + 0.0 if isinstance(v, float) else v for v in _values(rows))  # not -0.0
    return [row[0] for row in _distinct([[value] for value in values])]


def _picked(at: int) -> Callable[[list[list[Any]]], Any]:
    return lambda rows: rows[at][0] if rows else None


def _bits(function: Callable[[int, int], int]) -> Callable[[Any], Any]:
    return _of_some(lambda values: reduce(function, values))


_EVERY = _of_some(lambda values: all(map(truth, values)))
_ANY = _of_some(lambda values: any(map(truth, values)))
_VARIANCE = _of_some(lambda values: _moments(values).variance())

_FOLDS: dict[str, tuple[int, int, Callable[[list[list[Any]]], Any]]] = {
    "count": (0, 255, lambda rows: sum(None not in row for row in rows)),
    "array_agg": (1, 1, gathered),
    "collect_list": (1, 1, _values),
    "collect_set": (1, 1, _distinct_values),
    "approx_count_distinct": (1, 2, lambda rows: len(_distinct_values(rows))),
    "count_if": (1, 1, lambda rows: sum(truth(row[0]) is True for row in rows)),
    "bool_and": (1, 1, _EVERY),
    "every": (1, 1, _EVERY),
    "bool_or": (1, 1, _ANY),
    "any": (1, 1, _ANY),
    "some": (1, 1, _ANY),
    "max_by": (2, 2, _by(1)),
    "min_by": (2, 2, _by(-1)),
    "any_value": (1, 1, _picked(0)),
    "first_value": (1, 1, _picked(0)),
    "last_value": (1, 1, _picked(-1)),
    "stddev_pop": (1, 1, _of_some(lambda values: _moments(values).deviation(0))),
    "variance": (1, 1, _VARIANCE),
    "var_samp": (1, 1, _VARIANCE),
    "var_pop": (1, 1, _of_some(lambda values: _moments(values).variance(0))),
    "listagg": (1, 2, _joined),
    "string_agg": (1, 2, _joined),
    "bit_and": (1, 1, _bits(and_)),
    "bit_or": (1, 1, _bits(or_)),
    "bit_xor": (1, 1, _bits(xor)),
}
"""By name, the least and greatest number of arguments, and the function."""

_AGGREGATED = {
    "sum": "sum", "try_sum": "sum", "avg": "avg", "mean": "avg", "try_avg": "avg", "min": "min",
    "max": "max", "stddev": "stddev", "std": "stddev", "stddev_samp": "stddev", "median": "median",
}  # fmt: skip
"""Those that conditions over stages have too, and what they are called there."""

_OF_NUMBERS = frozenset({
    "stddev_pop", "variance", "var_samp", "var_pop",
    *(name for name, other in _AGGREGATED.items() if AGGREGATES[other].of_numbers),
})  # fmt: skip
_SAME = frozenset({
    "min", "max", "max_by", "min_by", "any_value", "first_value", "last_value", "bit_and", "bit_or",
    "bit_xor",
})  # fmt: skip
_FOLD_TYPES = {
    **dict.fromkeys(("count", "approx_count_distinct", "count_if"), BIGINT),
    **dict.fromkeys(_OF_TRUTHS[1:], BOOLEAN),
    **dict.fromkeys(("listagg", "string_agg"), STRING),
}
"""The types of folds, whatever their arguments are."""


Known = tuple[Any, ...]

UNKNOWN = 2
"""Stands for an answer: the condition was not evaluated."""

_OVERFLOWED = object()
"""Stands for a sum: an error in every condition that reads it."""


@attrs.frozen(eq=False)
class Condition:
    """The condition of a variable."""

    variable: str  # The variable
    text: str  # The condition as it was written
    # What it takes from the match, in the order of the arguments of `function`.
    leaves: tuple[Leaf, ...]
    code: Code  # The condition as a program whose fields are the leaves
    function: Callable[[Sequence[Any]], bool]  # Whether it holds, given the leaves' values
    is_leaf: bool = False  # Whether it is a column of the current row, which holds the answer
    # Whether there is no program: `function` takes values as Spark has them.
    is_evaluated: bool = False

    def failed(self, message: str) -> ConditionError:
        """Return the error for a condition that cannot be computed."""
        return ConditionError(
            f"the condition {self.text!r} failed. {message}",
            "test for it first: CASE WHEN v <> 0 THEN 1 / v END",
            stage=self.variable,
        )


def at_hand(leaf: Leaf, variable: str, members: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a leaf is a value of the current row, or of a row at a fixed distance from it."""
    if leaf.function != "last" or leaf.offset:
        return False
    return leaf.variable is None or variable in members.get(leaf.variable, (leaf.variable,))


class RowConditions:
    """The conditions, ready to be evaluated on the rows of concatenated partitions."""

    def __init__(
        self,
        variables: Sequence[str],
        conditions: Mapping[str, Condition],
        members: Mapping[str, tuple[str, ...]],
        size: int,
        columns: RowColumns,
        ansi: bool,
        evaluated: Callable[[str], Sequence[Any]] | None = None,
    ) -> None:
        self._evaluated = evaluated or columns.plain
        self._variables = variables
        self._members = members
        self._columns = columns
        self._ansi = ansi
        self._start = self._number = 0
        self._part = range(size)
        self._labels = bytearray()
        self._slots: dict[tuple[Any, ...], int] = {}
        self._positional = [True] * len(variables)
        self.remembers = True
        self.is_numbered = False
        self._asked = [conditions.get(name) for name in variables]
        self._size = size
        self._getters = [
            None if c is None else [self._getter(leaf, number, c.is_evaluated) for leaf in c.leaves]
            for number, c in enumerate(self._asked)
        ]
        self.initial = tuple(_INITIAL.get(slot[0]) for slot in self._slots)
        self.updates = [self._update(name) for name in variables]

    def answers(self, variable: int) -> bytearray | None:
        """
        Return whether the condition of a variable holds for each row; :data:`UNKNOWN` if not
        evaluated.

        None if it depends on more than the row's position in its partition.
        """
        condition = self._asked[variable]
        if condition is None:
            return bytearray([1]) * self._size
        if not self._positional[variable]:
            return None
        if not condition.is_leaf:
            return bytearray([UNKNOWN]) * self._size
        (leaf,) = condition.leaves
        return bytearray(map(bool, self._columns.plain(leaf.argument or "")))

    def turn_to(self, part: range) -> None:
        """Select another partition."""
        self._part = part

    def begin(self, start: int, number: int, labels: bytearray) -> None:
        """Begin another match; `labels` will have the variables of its rows as they are taken."""
        self._start, self._number, self._labels = start, number, labels

    def holds(self, variable: int, row: int, known: Known) -> bool:
        """Whether a condition holds for a row, given what is known including that row."""
        condition, getters = self._asked[variable], self._getters[variable]
        if condition is None or getters is None:
            return True
        if _OVERFLOWED in known:
            raise condition.failed(OVERFLOW)
        try:
            return condition.function([getter(row, known) for getter in getters])
        except ArithmeticError as cause:
            raise condition.failed(str(cause)) from cause

    # --- leaves

    def _getter(self, leaf: Leaf, variable: int, raw: bool) -> Callable[[int, Known], Any]:
        """Return the function of a leaf's value, given the current row and what is known."""
        if leaf.function == "match_number":
            self._positional[variable] = False
            self.is_numbered = True
            return lambda _row, _known: self._number
        if not leaf.is_row:
            self._positional[variable] = False
            many = leaf.function in ("fold", "array_agg")
            return self._folded(leaf) if many else self._aggregate(leaf, raw)
        value = self._value(leaf.argument or "", raw)
        shift = leaf.shift
        if at_hand(leaf, self._variables[variable], self._members):
            if leaf.argument == LABEL and not shift:
                name = self._variables[variable]
                return lambda _row, _known: name
            if leaf.has_label:
                self._positional[variable] = self.remembers = False
            return lambda row, _known: value(row + shift, row)
        self._positional[variable] = False
        if leaf.has_label:
            self.remembers = False
        slot = self._slot(leaf.function, leaf.variable, leaf.offset + 1)
        offset = leaf.offset if leaf.function == "first" else -1 - leaf.offset

        def navigated(row: int, known: Known) -> Any:
            rows = known[slot]
            return value(rows[offset] + shift, row) if len(rows) > leaf.offset else None

        return navigated

    def _column(self, argument: str, raw: bool) -> Sequence[Any]:
        return self._evaluated(argument) if raw else self._columns.plain(argument)

    def _value(self, argument: str, raw: bool) -> Callable[[int, int], Any]:
        """Return the function of a leaf's argument at a row, when the match is at another."""
        if not has_label(argument):
            column = self._column(argument, raw)
            return lambda at, _row: column[at] if at in self._part else None
        columns = self._labelled(argument, raw)

        def of_variable(at: int, row: int) -> Any:
            return columns[self._labels[at - self._start]][at] if self._start <= at <= row else None

        return of_variable

    def _labelled(self, argument: str, raw: bool) -> list[Any]:
        """Return the columns of an argument with CLASSIFIER, by variable."""
        if argument == LABEL:
            return [_Constant(name) for name in self._variables]
        return [self._column(labelled(argument, name), raw) for name in self._variables]

    def _aggregate(self, leaf: Leaf, raw: bool) -> Callable[[int, Known], Any]:
        if leaf.function == "avg":
            total = self._slot("sum", leaf.variable, leaf.argument, raw, True)
            count = self._slot("count", leaf.variable, leaf.argument, raw)
            return lambda _row, known: known[total] / known[count] if known[count] else None
        slot = self._slot(leaf.function, leaf.variable, leaf.argument, raw)
        return lambda _row, known: known[slot]

    def _folded(self, leaf: Leaf) -> Callable[[int, Known], Any]:
        """Return the function of an aggregate that is computed from all its rows each time."""
        fold = gathered if leaf.fold is None else fold_function(leaf.fold).function
        slot = self._slot("last", leaf.variable, sys.maxsize)
        values = [self._value(field, True) for field in leaf.arguments]
        self.is_numbered |= leaf.has_number
        if leaf.has_label:
            self.remembers = False

        def folded(row: int, known: Known) -> Any:
            number = [self._number] if leaf.has_number else []
            return fold([[*(value(at, row) for value in values), *number] for at in known[slot]])

        return folded

    # --- slots

    def _slot(self, *what: Any) -> int:
        return self._slots.setdefault(what, len(self._slots))

    def _update(self, variable: str) -> Callable[[Known, int], Known] | None:
        """Return the function that updates slots when a variable takes a row; None if none."""
        changed = [
            (number, self._step(slot, variable))
            for slot, number in self._slots.items()
            if slot[1] is None or variable in self._members.get(slot[1], (slot[1],))
        ]
        if not changed:
            return None

        def update(known: Known, row: int) -> Known:
            values = list(known)
            for number, step in changed:
                values[number] = step(values[number], row)
            return tuple(values)

        return update

    def _step(self, slot: tuple[Any, ...], variable: str) -> Callable[[Any, int], Any]:
        function, argument = slot[0], slot[2]
        if function == "last":
            return lambda rows, row: (*rows, row)[-argument:]
        if function == "first":
            return lambda rows, row: rows if len(rows) == argument else (*rows, row)
        if argument is None:
            return lambda count, _row: count + 1
        column: Any
        is_raw, is_float = (*slot[3:], False, False)[:2]
        if argument == LABEL:
            column = _Constant(variable)
        else:
            column = self._column(labelled(argument, variable), is_raw)
        if function == "count":
            return lambda count, row: count if column[row] is None else count + 1
        combine = (_COMBINE_RAW if is_raw else _COMBINE)[function]
        if is_float:
            combine = _add_raw_floats if is_raw else _add_floats
        add = self._in_range if combine is _add else combine

        def step(value: Any, row: int) -> Any:
            new = column[row]
            if new is None or value is _OVERFLOWED:
                return value
            return new if value is None else add(value, new)

        return step

    def _in_range(self, a: Any, b: Any) -> Any:
        total = a + b
        if isinstance(total, int) and not LEAST <= total <= MOST:
            return _OVERFLOWED if self._ansi else wrapped(total)
        return total


class _Constant:
    """A column with one value."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getitem__(self, row: int) -> Any:
        return self._value


def _add(a: Any, b: Any) -> Any:
    return a + b


def _add_floats(a: Any, b: Any) -> float:
    return float(a) + float(b)


def _add_raw_floats(a: Any, b: Any) -> Any:
    """Add whole numbers as doubles, decimals exactly."""
    a, b = (float(value) if isinstance(value, int) else value for value in (a, b))
    return _exact_sum(a, b)


def _exact_sum(a: Any, b: Any) -> Any:
    try:
        return arithmetic("+", a, b)
    except ArithmeticError:
        return _OVERFLOWED


_INITIAL: dict[str, Any] = {"count": 0, "first": (), "last": ()}
_EXTREMES: dict[str, Callable[[Any, Any], Any]] = {"min": lesser, "max": greater}
_COMBINE = {"sum": _add, **_EXTREMES}
_COMBINE_RAW = {"sum": _exact_sum, **_EXTREMES}


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
    """All conditions of a clause."""

    # What is known of a match: for each slot its function, for each variable the field that it
    # takes from its rows (-1 for the rows themselves, -2 if it does not see them), and its source,
    # offset and whether it is a float, as in :class:`~pyflinkcep.expressions.program.Slot`.
    slots: tuple[Slot, ...]
    programs: tuple[Code | None, ...]  # By variable; None if every row is accepted
    fields: tuple[_Field, ...]  # Argument and distance from the current row; or a text, 0 and True
    # By variable: the argument that is its answer, empty if the answer depends on the row's
    # position alone, None if on more.
    answers: tuple[str | None, ...]
    has_number: bool  # Whether the first slot is the number of the match

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
    """Put conditions into tables; None if the compiled search does not support them."""
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
