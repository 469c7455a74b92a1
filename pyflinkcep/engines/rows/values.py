# SPDX-License-Identifier: Apache-2.0
"""The conditions of DEFINE on the rows of partitions, in Python: leaves, slots, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import and_, or_, xor
from typing import Any, Protocol

import attrs
import numpy as np

from pyflinkcep.errors import CepError, ConditionError, InputError, NotSupportedError, counted
from pyflinkcep.expressions.aggregates import Moments
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.evaluator import UNTYPED, RowTypes, part_value
from pyflinkcep.expressions.grammar import Form, Syntax
from pyflinkcep.expressions.program import (
    ALL,
    OVERFLOW,
    Code,
    CompiledExpressions,
    Field,
    Function,
    Instruction,
    Kind,
    Op,
    Slot,
    Type,
)
from pyflinkcep.expressions.sql_functions import FUNCTIONS
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
from pyflinkcep.expressions.sql_values import cast_value, compared, is_same, truth
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


def fold_function(fold: Fold, types: RowTypes = UNTYPED) -> Typed:
    """Return the function of a fold, for fields of some types, and the type of its values."""
    # The number of the match is the last value of a row, if the fold reads it.
    arguments = fold.arguments
    of = _FOLDS.get(fold.name)
    if of is None or fold.is_ordered or not of.least <= len(arguments) <= of.most:
        what = f"{fold.name.upper()} WITHIN GROUP" if fold.is_ordered else fold.name.upper()
        raise NotSupportedError(
            f"{what} with {counted(len(arguments), 'argument')} in DEFINE",
            f"the aggregates of DEFINE are {', '.join(sorted(_FOLDS)).upper()}; "
            "all others are for MEASURES",
        )
    given = [_input(fold, part, types) for part in arguments]
    inputs = [part.function for part in given]
    conditions = [_input(fold, part, types).function for part in fold.conditions]
    type_ = of.type(fold.name, given[0].type if given else None)
    if of.takes in (_NUMBERS, _LENGTHS) and given[0].type == STRING:
        inputs[0] = spread((inputs[0],), lambda text: cast_value(text, DOUBLE))

    def folded(rows: Sequence[Sequence[Any]]) -> Any:
        taken = [
            [value(row) for value in inputs]
            for row in rows
            if all(truth(condition(row)) for condition in conditions)
        ]
        taken = _distinct(taken) if fold.is_distinct else taken
        try:
            return of.value(taken, given[0].type if given else None)
        except ArithmeticError:
            if fold.name.startswith("try_"):
                return None
            raise

    return Typed(folded, type_)


_ARRAY = array_of(None)

_Takes = tuple[Callable[[SqlType], bool], str]
_NUMBERS: _Takes = (lambda type_: type_.is_number, "use numbers")
_LENGTHS: _Takes = (lambda type_: type_.is_number or type_ in (INTERVAL, DAYS), "use numbers")
_WHOLE: _Takes = (lambda type_: type_.is_whole, "use whole numbers")
_TRUTHS: _Takes = (lambda type_: type_ == BOOLEAN, "compare it with a value")
_TEXTS: _Takes = (lambda _: False, "cast it to string")


@attrs.frozen
class _Fold:
    """An aggregate in Python."""

    # Of the first arguments that are not NULL, and NULL without any; or of the arguments of all
    # rows; neither if conditions over stages have it too.
    of_values: Callable[[list[Any]], Any] | None = None
    result: SqlType | None = None  # Its type; None for that of its first argument
    # The least and greatest number of its arguments.
    least: int = 1
    most: int = 1
    takes: _Takes | None = None  # What its first argument is, beside a text or NULL, and a hint
    aggregate: str = "stddev"  # What it is called there, or what has its type
    of_rows: Callable[[list[list[Any]]], Any] | None = None

    def type(self, name: str, of: SqlType | None) -> SqlType | None:
        """Return the type of its values, which refuses what it never takes."""
        if self.takes is not None and of not in (None, VOID, STRING):
            fits, hint = self.takes
            if of is not None and not fits(of):
                raise InputError(f"{name.upper()} of {of.name}", hint)
        if self.takes in (_NUMBERS, _LENGTHS):
            return of and aggregate_type(self.aggregate, of)
        return array_of(of) if self.result is _ARRAY else self.result or of

    def value(self, rows: list[list[Any]], type_: SqlType | None) -> Any:
        """Return its value, given the arguments of all rows, the first of a type."""
        if self.of_rows is not None:
            return self.of_rows(rows)
        values = _values(rows)
        if self.of_values is None:
            return aggregated(self.aggregate, values, type_)
        return self.of_values(values) if values else None


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


def _moments(values: list[Any]) -> Moments:
    return Moments(list(map(float, values)))


def _by(sign: int) -> Callable[[list[list[Any]]], Any]:
    """Return MAX_BY or MIN_BY; of equal rows the last, as in Spark."""

    def better(best: list[Any], row: list[Any]) -> list[Any]:
        return row if sign * compared(row[1], best[1]) >= 0 else best

    def aggregate(rows: list[list[Any]]) -> Any:
        known = [row for row in rows if row[1] is not None]
        return reduce(better, known)[0] if known else None

    return aggregate


def _joined(rows: list[list[Any]]) -> str | None:
    values = _values(rows)
    between = rows[0][1] if rows and len(rows[0]) > 1 and rows[0][1] is not None else ""
    return between.join(values) if values else None


def _distinct_values(rows: list[list[Any]]) -> list[Any]:
    return list(FUNCTIONS["array_distinct"].compute(_values(rows)))


_EVERY = _Fold(lambda values: all(map(truth, values)), BOOLEAN, takes=_TRUTHS)
_ANY = _Fold(lambda values: any(map(truth, values)), BOOLEAN, takes=_TRUTHS)
_FIRST = _Fold(of_rows=lambda rows: rows[0][0] if rows else None)
_TEXT = _Fold(result=STRING, most=2, takes=_TEXTS, of_rows=_joined)
_VARIANCE = _Fold(lambda values: _moments(values).variance(), takes=_NUMBERS)

_BITS = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}
_FOLDS = {
    "count": _Fold(
        of_rows=lambda rows: sum(None not in row for row in rows), result=BIGINT, least=0, most=255
    ),
    "array_agg": _Fold(of_rows=gathered, result=_ARRAY),
    "collect_list": _Fold(of_rows=_values, result=_ARRAY),
    "collect_set": _Fold(of_rows=_distinct_values, result=_ARRAY),
    "approx_count_distinct": _Fold(
        of_rows=lambda rows: len(_distinct_values(rows)), result=BIGINT, most=2
    ),
    "count_if": _Fold(
        of_rows=lambda rows: sum(truth(row[0]) is True for row in rows), result=BIGINT,
        takes=_TRUTHS,
    ),
    **dict.fromkeys(("bool_and", "every"), _EVERY),
    **dict.fromkeys(("bool_or", "any", "some"), _ANY),
    "max_by": _Fold(of_rows=_by(1), least=2, most=2),
    "min_by": _Fold(of_rows=_by(-1), least=2, most=2),
    **dict.fromkeys(("any_value", "first_value"), _FIRST),
    "last_value": _Fold(of_rows=lambda rows: rows[-1][0] if rows else None),
    **dict.fromkeys(("listagg", "string_agg"), _TEXT),
    **{name: _Fold(partial(reduce, function), takes=_WHOLE) for name, function in _BITS.items()},
    "stddev_pop": _Fold(lambda values: _moments(values).deviation(0), takes=_NUMBERS),
    "var_pop": _Fold(lambda values: _moments(values).variance(0), takes=_NUMBERS),
    **dict.fromkeys(("variance", "var_samp"), _VARIANCE),
    **{name: _Fold(takes=_NUMBERS, aggregate=name) for name in ("stddev", "median")},
    **dict.fromkeys(("std", "stddev_samp"), _Fold(takes=_NUMBERS)),
    **{name: _Fold(takes=_LENGTHS, aggregate=name.removeprefix("try_"))
       for name in ("sum", "try_sum", "avg", "try_avg")},
    "mean": _Fold(takes=_LENGTHS, aggregate="avg"),
    **{name: _Fold(aggregate=name) for name in ("min", "max")},
}  # fmt: skip
"""The aggregates of DEFINE, and of MEASURES in memory."""


Known = tuple[Any, ...]

UNKNOWN = 2
"""Stands for an answer: the condition was not evaluated."""

_OVERFLOWED: Known = (object(),)
"""Stands for what is known: an error in every condition that is asked from then on."""


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
        self._start = self._number = 0
        self._part = range(size)
        self._labels = bytearray()
        self._slots = _Slots(variables, members)
        self._positional = [True] * len(variables)
        self.remembers = True
        self._asked = [conditions.get(name) for name in variables]
        leaves = [leaf for condition in conditions.values() for leaf in condition.leaves]
        self.is_numbered = any(leaf.has_number for leaf in leaves)
        self._size = size
        self._getters = [
            None if c is None else [self._getter(leaf, number, c.is_evaluated) for leaf in c.leaves]
            for number, c in enumerate(self._asked)
        ]
        self.initial = tuple(0 if slot[0] is Function.COUNT else None for slot in self._slots.slots)
        self.updates = [self._update(number, ansi) for number in range(len(variables))]

    def answers(self, variable: int) -> bytearray | None:
        """Return whether a condition holds for each row; None if its position does not decide."""
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
        if known is _OVERFLOWED:
            raise condition.failed(OVERFLOW)
        try:
            return condition.function([getter(row, known) for getter in getters])
        except ArithmeticError as cause:
            raise condition.failed(str(cause)) from cause

    # --- leaves

    def _getter(self, leaf: Leaf, variable: int, raw: bool) -> Callable[[int, Known], Any]:
        """Return the function of a leaf's value, given the current row and what is known."""
        at_row = leaf.is_row and at_hand(leaf, self._variables[variable], self._members)
        if not at_row:
            self._positional[variable] = False
        if leaf.function == "match_number":
            return lambda _row, _known: self._number
        if not leaf.is_row:
            return self._aggregate(leaf, raw)
        value, shift = self._value(leaf.argument or "", raw), leaf.shift
        if at_row and leaf.argument == LABEL and not shift:
            name = self._variables[variable]
            return lambda _row, _known: name
        if leaf.has_label:
            self._positional[variable] = self.remembers = False
        if at_row:
            return lambda row, _known: value(row + shift, row)
        slot = self._slots.row(leaf, lambda _: _NUMBER)

        def navigated(row: int, known: Known) -> Any:
            return None if known[slot] is None else value(known[slot] + shift, row)

        return navigated

    def _column(self, argument: str, raw: bool) -> Sequence[Any]:
        return self._evaluated(argument) if raw else self._columns.plain(argument)

    def _value(self, argument: str, raw: bool) -> Callable[[int, int], Any]:
        """Return the function of a leaf's argument at a row, when the match is at another."""
        if not has_label(argument):
            column = self._column(argument, raw)
            return lambda at, _row: known_value(column[at]) if at in self._part else None
        columns = [self._labelled(argument, name, raw) for name in self._variables]

        def of_variable(at: int, row: int) -> Any:
            if not self._start <= at <= row:
                return None
            return known_value(columns[self._labels[at - self._start]][at])

        return of_variable

    def _labelled(self, argument: str, variable: str, raw: bool) -> Sequence[Any]:
        """Return the values of an argument for rows of a variable."""
        if argument == LABEL:
            return [variable] * self._size
        return self._column(labelled(argument, variable), raw)

    def _aggregate(self, leaf: Leaf, raw: bool) -> Callable[[int, Known], Any]:
        """Return the function of an aggregate: of slots, or computed from all rows each time."""
        type_ = Type.INT
        if leaf.argument is not None:
            type_ = _type_of(self._labelled(leaf.argument, self._variables[0], raw))
        of_numbers = type_ in (Type.INT, Type.FLOAT)
        if leaf.function not in _FUNCTIONS or not (of_numbers or leaf.function in _OF_ALL):
            return self._folded(leaf)
        slots = self._slots.summary(leaf, type_, lambda name: _argument(leaf, name, raw))
        if leaf.function == "avg":
            total, count = slots
            return lambda _row, known: known[total] / known[count] if known[count] else None
        (slot,) = slots
        return lambda _row, known: known[slot]

    def _folded(self, leaf: Leaf) -> Callable[[int, Known], Any]:
        fold: Callable[[Sequence[Sequence[Any]]], Any] = gathered
        if leaf.fold is not None:
            fold = fold_function(leaf.fold).function
        elif leaf.function != "array_agg":
            fold = lambda rows: aggregated(leaf.function, [row[0] for row in rows])  # noqa: E731
        slot = self._slots.slot(Function.LIST, self._slots.seen(leaf, lambda _: _NUMBER))
        values = [self._value(field, True) for field in leaf.arguments]
        if leaf.has_label:
            self.remembers = False

        def folded(row: int, known: Known) -> Any:
            number = [self._number] if leaf.has_number else []
            rows = known[slot] or ()
            return fold([[*(value(at, row) for value in values), *number] for at in rows])

        return folded

    # --- slots

    def _update(self, variable: int, ansi: bool) -> Callable[[Known, int], Known] | None:
        """Return the function that updates slots when a variable takes a row; None if none."""
        name, fields, slots = self._variables[variable], dict[_Field, int](), list[Slot]()
        named = list(self._slots.fields)
        for function, seen, source, offset, type_ in self._slots.slots:
            field = seen[variable]
            if field >= 0:
                field = fields.setdefault(named[field], len(fields))
            stage, field = ("", ALL) if field == _NOTHING else (name, field)
            slots.append(Slot(function, stage, field, type_, source, offset))
        known = tuple(Field(argument, Kind.BIGINT) for argument, _, _ in fields)
        update = generated(CompiledExpressions(known, tuple(slots), {}, ansi)).updates.get(name)
        if update is None:
            return None
        columns = [self._field(field, name) for field in fields]

        def updated(known: Known, row: int) -> Known:
            if known is _OVERFLOWED:
                return known
            try:
                return update(known, [known_value(column[row]) for column in columns])
            except ArithmeticError:
                return _OVERFLOWED

        return updated

    def _field(self, field: _Field, variable: str) -> Sequence[Any]:
        argument, _, raw = field
        if field == _NUMBER:
            return range(self._size)
        return [variable] * self._size if argument == LABEL else self._column(argument, raw)


def known_value(value: Any) -> Any:
    """Return a value of a row; raise the error that stands for what has none."""
    if isinstance(value, CepError):
        raise value
    return value


def _type_of(values: Sequence[Any]) -> Type:
    """Return the type of the values of a column."""
    found = (v for v in values if v is not None and not isinstance(v, CepError))
    return {int: Type.INT, float: Type.FLOAT}.get(type(next(found, 0)), Type.TEXT)


_NOTHING = -2
_NUMBER = ("", 0, False)
"""The field that is the number of the row."""
_MOST_SLOTS = 100
_JUMPS = (Op.JUMP_IF_FALSE, Op.JUMP_IF_TRUE, Op.JUMP_IF_NOT_NULL, Op.JUMP_UNLESS, Op.JUMP)
_FUNCTIONS = {
    "count": Function.COUNT, "sum": Function.SUM, "avg": Function.SUM, "min": Function.MIN,
    "max": Function.MAX,
}  # fmt: skip
_OF_ALL = ("count", "min", "max")

SlotOfRows = tuple[Function, tuple[int, ...], int, int, Type]
"""Function; the field by variable, ALL or _NOTHING; source; offset; type."""

_Field = tuple[str, int, bool]
"""
Argument and distance from the current row; and whether it is a text constant, or for the search in
Python whether it has values as Spark has them.
"""


class _Slots:
    """What conditions know of a match: slots over fields of its rows, each once."""

    def __init__(self, variables: Sequence[str], members: Mapping[str, tuple[str, ...]]) -> None:
        self._variables = variables
        self._members = members
        self.fields: dict[_Field, int] = {}
        self.slots: dict[SlotOfRows, int] = {}

    def field(self, field: _Field) -> int:
        """Return the number of a field."""
        return self.fields.setdefault(field, len(self.fields))

    def seen(self, leaf: Leaf, field: Callable[[str], _Field] | None) -> tuple[int, ...]:
        """Return for each variable the field that a leaf takes from its rows; None for the rows."""
        names = self._variables
        if leaf.variable is not None:
            names = self._members.get(leaf.variable, (leaf.variable,))
        return tuple(
            _NOTHING if name not in names else ALL if field is None else self.field(field(name))
            for name in self._variables
        )

    def slot(
        self,
        function: Function,
        seen: tuple[int, ...],
        source: int = -1,
        offset: int = 0,
        type_: Type = Type.INT,
    ) -> int:
        """Return the number of a slot."""
        return self.slots.setdefault((function, seen, source, offset, type_), len(self.slots))

    def row(self, leaf: Leaf, field: Callable[[str], _Field]) -> int:
        """Return the slot of a value at a row of the match."""
        seen = self.seen(leaf, field)
        if leaf.function == "first":
            count = self.slot(Function.COUNT, self.seen(leaf, None))
            return self.slot(Function.FIRST, seen, count, leaf.offset)
        slot = self.slot(Function.LAST, seen)
        for offset in range(1, leaf.offset + 1):
            slot = self.slot(Function.LAST, seen, slot, offset)
        return slot

    def summary(self, leaf: Leaf, type_: Type, field: Callable[[str], _Field]) -> tuple[int, ...]:
        """Return the slot of an aggregate of values of a type; of an average total and count."""
        seen = self.seen(leaf, None if leaf.argument is None else field)
        if leaf.function == "count":
            return (self.slot(Function.COUNT, seen),)
        if leaf.function == "avg":
            total = self.slot(Function.SUM, seen, type_=Type.FLOAT)
            return total, self.slot(Function.COUNT, seen)
        return (self.slot(_FUNCTIONS[leaf.function], seen, type_=type_),)


def _argument(leaf: Leaf, variable: str, third: bool) -> _Field:
    """Return the argument of a leaf for rows of a variable as a field."""
    argument = leaf.argument or ""
    return argument if argument == LABEL else labelled(argument, variable), leaf.shift, third


@attrs.frozen(eq=False)
class SearchTables:
    """All conditions of a clause."""

    # What is known of a match: for each slot its function, for each variable the field that it
    # takes from its rows (-1 for the rows themselves, -2 if it does not see them), and its source,
    # offset and type, as in :class:`~pyflinkcep.expressions.program.Slot`.
    slots: tuple[SlotOfRows, ...]
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
    known = builder.known
    return SearchTables(
        tuple(known.slots), tuple(programs), tuple(known.fields), tuple(answers), has_number
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
        self.known = _Slots(variables, members)
        if has_number:
            self.known.slot(Function.COUNT, (_NOTHING,) * len(variables))

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

    def _value(self, leaf: Leaf, variable: str) -> Code:
        """Return the instructions that push the value of a leaf."""

        def field(name: str) -> _Field:
            return (name, 0, True) if leaf.argument == LABEL else _argument(leaf, name, False)

        if leaf.function == "match_number":
            return ((Op.SLOT, 0),)
        if at_hand(leaf, variable, self._members):
            return ((Op.FIELD, self.known.field(field(variable))),)
        if leaf.is_row:
            return ((Op.SLOT, self.known.row(leaf, field)),)
        argument = leaf.argument or ""
        is_plain = leaf.function != "count" and argument != LABEL
        is_float = is_plain and self._is_float(labelled(argument, self._variables[0]))
        found = self.known.summary(leaf, Type.FLOAT if is_float else Type.INT, field)
        code: Code = tuple((Op.SLOT, slot) for slot in found)
        average = (Op.INT_TO_FLOAT, None), (Op.DIV, Type.FLOAT)
        return (*code, *average) if leaf.function == "avg" else code
