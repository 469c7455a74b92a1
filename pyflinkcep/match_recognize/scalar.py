# SPDX-License-Identifier: Apache-2.0
"""Conditions as functions of their leaves, in the one language of SQL over stages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.literals import interval_us
from pyflinkcep.expressions.parser import Scope, match_part
from pyflinkcep.expressions.program import Code, Kind
from pyflinkcep.expressions.tree import (
    Aggregate,
    Constant,
    EventPart,
    Interval,
    MatchExpression,
    Operation,
    Part,
)
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LEAF, Leaf

__all__ = ["ConditionProgram", "condition_program"]

_BEFORE = "compute it in a subquery before"
_NO_STAGES = Scope(frozenset(), has_event=False)
_SHIFTED = re.compile(rf"\(({LEAF}\d+)\) ([+-]) INTERVAL\b(.*)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rf"(?:cast\()?{LEAF}(\d+)(?: as (\w+)\))?", re.IGNORECASE)


@attrs.frozen(eq=False)
class ConditionProgram:
    """
    A condition as a program whose fields are leaves.

    Attributes
    ----------
    leaves : tuple of Leaf
        What it takes of the match.
    kinds : tuple of Kind
        What the leaves give.
    casts : tuple of bool
        Which of the leaves' values are made doubles.
    code : Code
        The program; its field ``i`` is leaf ``i``.
    function : callable
        Whether it holds, given the leaves' values as they are.
    """

    leaves: tuple[Leaf, ...]
    kinds: tuple[Kind, ...]
    casts: tuple[bool, ...]
    code: Code
    function: Callable[[Sequence[Any]], bool]


def condition_program(
    expression: Expression, kinds: Mapping[Leaf, Kind], ansi: bool
) -> ConditionProgram:
    """
    Compile a condition.

    Parameters
    ----------
    expression : Expression
        The condition; each of its leaves is a value of the match.
    kinds : mapping of Leaf to Kind
        What the leaves give.
    ansi : bool
        Whether overflow and division by zero are errors.

    Raises
    ------
    InputError
        If kinds do not go together, or it is no condition.
    InvalidArgumentError
        If something is around leaves that is not supported.
    """
    part = _leaves_as_fields(match_part(expression.sql, "", _NO_STAGES))
    of_names = {f"{LEAF}{n}": kinds[leaf] for n, leaf in enumerate(expression.leaves)}
    _check_fields(part, of_names)
    values = compiled([("DEFINE", MatchExpression(expression.text, part))], of_names, ansi)
    (function,), (code,) = generated(values).conditions.values(), values.programs.values()
    wanted, casts = [], []
    for field in values.fields:
        found = _FIELD.fullmatch(field.sql)
        if found is None:
            raise InputError(f"{field.sql!r} beside values of the match", _BEFORE)
        leaf = expression.leaves[int(found[1])]
        if found[2] not in (None, "double"):
            leaf = _cast(leaf, found[2])
        wanted.append(leaf)
        casts.append(found[2] == "double")
    asked = _Function(function, casts) if any(casts) else _Plain(function)
    leaf_kinds = tuple(field.kind for field in values.fields)
    return ConditionProgram(tuple(wanted), leaf_kinds, tuple(casts), code, asked)


def _cast(leaf: Leaf, type_: str) -> Leaf:
    """Return a leaf whose argument Spark casts, at the row where its value is."""
    if not leaf.is_row:
        raise InputError(
            f"{leaf.function.upper()}({leaf.argument}) is not one row's time",
            "take FIRST or LAST, or a timestamp_ntz",
        )
    return attrs.evolve(leaf, argument=f"cast({leaf.argument} as {type_})")


@attrs.frozen(eq=False)
class _Plain:
    """A condition that takes the leaves' values as they are."""

    function: Callable[[Sequence[Any], tuple[Any, ...]], bool]

    def __call__(self, fields: Sequence[Any]) -> bool:
        return self.function(fields, ())


@attrs.frozen(eq=False)
class _Function:
    """A condition some of whose leaves' values are made doubles."""

    function: Callable[[Sequence[Any], tuple[Any, ...]], bool]
    casts: Sequence[bool]

    def __call__(self, fields: Sequence[Any]) -> bool:
        values = [
            float(value) if cast and value is not None else value
            for value, cast in zip(fields, self.casts, strict=True)
        ]
        return self.function(values, ())


def _leaves_as_fields(part: Part) -> Part:
    """Return a part whose leaves are fields; times moved by intervals are moved here, not there."""
    if isinstance(part, Aggregate):
        argument = part.argument or ""
        shifted = _SHIFTED.fullmatch(argument)
        length = None if shifted is None else interval_us(shifted[3].strip())
        if shifted is None or length is None:
            return EventPart(argument)
        by = Constant(Interval(length), f"INTERVAL{shifted[3]}")
        return Operation(shifted[2], (EventPart(shifted[1]), by), part.text)
    if isinstance(part, Operation):
        return attrs.evolve(part, operands=tuple(map(_leaves_as_fields, part.operands)))
    return part


def _check_fields(part: Part, known: Collection[str]) -> None:
    """Refuse what only Spark could compute of a leaf, which it does not see."""
    if isinstance(part, EventPart) and part.text not in known:
        raise InputError(f"{part.text!r} beside values of the match", _BEFORE)
    for operand in part.operands if isinstance(part, Operation) else ():
        _check_fields(operand, known)
