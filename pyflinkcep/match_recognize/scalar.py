# SPDX-License-Identifier: Apache-2.0
"""Conditions as functions of their leaves, in the language of SQL over stages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import CepError, InputError
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.compiler import compiled
from pyflinkcep.expressions.literals import interval_us
from pyflinkcep.expressions.parser import Scope, match_part
from pyflinkcep.expressions.program import Code, Kind
from pyflinkcep.expressions.tree import (
    Aggregate,
    Column,
    Interval,
    Literal,
    MatchExpression,
    Operation,
    Tree,
)
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.leaves import LEAF, Leaf

__all__ = ["ConditionProgram", "condition_leaves", "condition_program"]

_BEFORE = "compute it in a subquery first"
_NO_STAGES = Scope(frozenset(), has_event=False)
_SHIFTED = re.compile(rf"\(({LEAF}\d+)\) ([+-]) INTERVAL\b(.*)", re.IGNORECASE | re.DOTALL)
_CAST = re.compile(r"cast\((.*) as (\w+)\)", re.IGNORECASE | re.DOTALL)
_LEAF = re.compile(rf"{LEAF}(\d+)", re.IGNORECASE)


@attrs.frozen(eq=False)
class ConditionProgram:
    """
    A condition as a program whose fields are leaves.

    Attributes
    ----------
    leaves : tuple of Leaf
        What it takes from the match.
    kinds : tuple of Kind
        The types of the leaves.
    casts : tuple of bool
        Which of the leaves' values are converted to doubles.
    code : Code
        The program; its field ``i`` is leaf ``i``.
    function : callable
        Whether it holds, given the unconverted values of the leaves.
    """

    leaves: tuple[Leaf, ...]
    kinds: tuple[Kind, ...]
    casts: tuple[bool, ...]
    code: Code
    function: Callable[[Sequence[Any]], bool]


def condition_leaves(expression: Expression) -> dict[str, Leaf]:
    """
    Return what a condition takes from the match, by how it is written there.

    What Spark can compute at one row is computed there: in ``upper(LAST(A.name)) = 'X'`` that is
    ``upper(name)`` at the last row of A, NULL if there is none. For a condition that cannot be
    read, all leaves are returned; :func:`condition_program` then raises the error.
    """
    leaves = {f"{LEAF}{number}": leaf for number, leaf in enumerate(expression.leaves)}
    try:
        part = _leaves_as_fields(match_part(expression.sql, "", _NO_STAGES))
    except CepError:
        return leaves
    found = {}
    for text in _event_parts(part):
        if text in leaves:
            found[text] = leaves[text]
            continue
        inner = [expression.leaves[int(number)] for number in _LEAF.findall(text)]
        places = {attrs.evolve(leaf, argument=None) for leaf in inner}
        if len(places) == 1 and inner[0].is_row:
            argument = _LEAF.sub(lambda at: f"({expression.leaves[int(at[1])].argument})", text)
            found[text] = attrs.evolve(inner[0], argument=argument)
    return found


def _event_parts(part: Tree) -> Iterator[str]:
    if isinstance(part, Column):
        yield part.sql or ""
    for operand in part.operands if isinstance(part, Operation) else ():
        yield from _event_parts(operand)


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
        The types of :func:`condition_leaves`.
    ansi : bool
        Whether overflow and division by zero are errors.

    Raises
    ------
    InputError
        If types are incompatible, or it is not a condition.
    InvalidArgumentError
        If the SQL around leaves is not supported.
    """
    part = _leaves_as_fields(match_part(expression.sql, "", _NO_STAGES))
    leaves = condition_leaves(expression)
    _check_fields(part, leaves)
    of_names = {text: kinds[leaf] for text, leaf in leaves.items()}
    values = compiled([("DEFINE", MatchExpression(expression.text, part))], of_names, ansi)
    (function,), (code,) = generated(values).conditions.values(), values.programs.values()
    wanted, casts = [], []
    for field in values.fields:
        cast = None if field.sql in leaves else _CAST.fullmatch(field.sql)
        leaf = leaves[field.sql if cast is None else cast[1]]
        if cast is not None and cast[2] != "double":
            leaf = _cast(leaf, cast[2])
        wanted.append(leaf)
        casts.append(cast is not None and cast[2] == "double")
    asked = _Function(function, casts) if any(casts) else _Plain(function)
    leaf_kinds = tuple(field.kind for field in values.fields)
    return ConditionProgram(tuple(wanted), leaf_kinds, tuple(casts), code, asked)


def _cast(leaf: Leaf, type_: str) -> Leaf:
    """Return a leaf whose argument Spark casts, at the row of its value."""
    if not leaf.is_row:
        raise InputError(
            f"{leaf.function.upper()}({leaf.argument}) is not one row's time",
            "use FIRST or LAST, or a timestamp_ntz",
        )
    return attrs.evolve(leaf, argument=f"cast({leaf.argument} as {type_})")


@attrs.frozen(eq=False)
class _Plain:
    """A condition on the unconverted values of leaves."""

    function: Callable[[Sequence[Any], tuple[Any, ...]], bool]

    def __call__(self, fields: Sequence[Any]) -> bool:
        return self.function(fields, ())


@attrs.frozen(eq=False)
class _Function:
    """A condition that converts some of its leaves' values to doubles."""

    function: Callable[[Sequence[Any], tuple[Any, ...]], bool]
    casts: Sequence[bool]

    def __call__(self, fields: Sequence[Any]) -> bool:
        values = [
            float(value) if cast and value is not None else value
            for value, cast in zip(fields, self.casts, strict=True)
        ]
        return self.function(values, ())


def _leaves_as_fields(part: Tree) -> Tree:
    """Return a part with leaves as fields; intervals are added to times here, not there."""
    if isinstance(part, Aggregate):
        argument = part.argument or ""
        shifted = _SHIFTED.fullmatch(argument)
        length = None if shifted is None else interval_us(shifted[3].strip())
        if shifted is None or length is None:
            return Column(argument)
        by = Literal(Interval(length), f"INTERVAL{shifted[3]}")
        return Operation(shifted[2], (Column(shifted[1]), by), part.text)
    if isinstance(part, Operation):
        return attrs.evolve(part, operands=tuple(map(_leaves_as_fields, part.operands)))
    return part


def _check_fields(part: Tree, known: Collection[str]) -> None:
    """Refuse what only Spark could compute from a leaf, which it never sees."""
    if isinstance(part, Column) and part.sql not in known:
        raise InputError(f"{part.sql!r} next to values of the match", _BEFORE)
    for operand in part.operands if isinstance(part, Operation) else ():
        _check_fields(operand, known)
