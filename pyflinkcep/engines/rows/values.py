# SPDX-License-Identifier: Apache-2.0
"""The conditions of DEFINE on the rows of partitions, in Python: leaves, slots, functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.engines.rows.columns import RowColumns
from pyflinkcep.engines.rows.folding import fold_function, gathered
from pyflinkcep.errors import ConditionError
from pyflinkcep.expressions.program import Code
from pyflinkcep.expressions.rules import LEAST, MOST, OVERFLOW, wrapped
from pyflinkcep.expressions.sql_values import arithmetic, greater, lesser
from pyflinkcep.match_recognize.leaves import LABEL, Leaf, has_label, labelled

__all__ = ["UNKNOWN", "Condition", "Known", "RowConditions", "at_hand"]

Known = tuple[Any, ...]

UNKNOWN = 2
"""Stands for an answer: the condition was not evaluated."""

_OVERFLOWED = object()
"""Stands for a sum: an error in every condition that reads it."""


@attrs.frozen(eq=False)
class Condition:
    """
    The condition of a variable.

    Attributes
    ----------
    variable : str
        The variable.
    text : str
        The condition as it was written.
    leaves : tuple of Leaf
        What it takes from the match, in the order of the arguments of `function`.
    code : Code
        The condition as a program whose fields are the leaves.
    function : callable
        Whether it holds, given the leaves' values.
    is_leaf : bool
        Whether it is a column of the current row, which holds the answer.
    is_evaluated : bool
        Whether there is no program: `function` takes values as Spark has them.
    """

    variable: str
    text: str
    leaves: tuple[Leaf, ...]
    code: Code
    function: Callable[[Sequence[Any]], bool]
    is_leaf: bool = False
    is_evaluated: bool = False

    def failed(self, message: str) -> ConditionError:
        """Return the error for a condition that cannot be computed."""
        return ConditionError(
            f"the condition {self.text!r} failed. {message}",
            "test for it in the condition, or set spark.sql.ansi.enabled to false",
            stage=self.variable,
        )


def at_hand(leaf: Leaf, variable: str, members: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a leaf is a value of the current row, or of a row at a fixed distance from it."""
    if leaf.function != "last" or leaf.offset:
        return False
    return leaf.variable is None or variable in members.get(leaf.variable, (leaf.variable,))


class RowConditions:
    """
    The conditions, ready to be evaluated on the rows of concatenated partitions.

    Parameters
    ----------
    variables : sequence of str
        The variables by number.
    conditions : mapping of str to Condition
        The conditions; a variable without one accepts every row.
    members : mapping of str to tuple of str
        The variables of each union.
    size : int
        The number of rows.
    columns : RowColumns
        The columns that the conditions read. For an argument with :data:`LABEL` there is one for
        each variable, with its name inserted as a string.
    ansi : bool
        Whether overflow is an error.
    evaluated : callable, optional
        Returns an argument's values as Spark has them, for conditions without a program.

    Attributes
    ----------
    initial : tuple
        What is known of a match without rows.
    updates : list of callable or None
        By variable: returns what is known of a match once a row is taken; None if that changes
        nothing.
    remembers : bool
        Whether conditions read nothing of a match but what is known.
    is_numbered : bool
        Whether a condition reads the number of the match.
    """

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
        fold = gathered if leaf.fold is None else fold_function(leaf.fold)
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
