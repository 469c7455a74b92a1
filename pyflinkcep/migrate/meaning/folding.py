# SPDX-License-Identifier: Apache-2.0
"""Folds statements into one expression: locals, early returns, loops over a stage's events."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from pyflinkcep.migrate.java.types import BOOLEAN, is_numeric, unboxed
from pyflinkcep.migrate.meaning.loops import folded_loop
from pyflinkcep.migrate.meaning.tree import (
    Binary,
    Call,
    Choice,
    Const,
    Do,
    Expression,
    ForEach,
    If,
    Let,
    Return,
    Set,
    Statement,
    Unary,
    Untranslatable,
    Var,
    parts,
    rewritten,
)
from pyflinkcep.migrate.meaning.walked import expressions_of

__all__ = ["choose", "folded", "replaced"]

_MOST_PARTS = 400
_EFFECTS = ("step", "assign", "Set.add", "Map.merge", "Map.computeIfAbsent", "Matcher.find")
Values = Mapping[str, Expression]


def folded(statements: tuple[Statement, ...]) -> Expression:
    """Return statements that return a value as an expression; raise Untranslatable otherwise."""
    for part in (p for one in expressions_of(statements) for p in parts(one)):
        if isinstance(part, Call) and part.name in _EFFECTS:
            raise Untranslatable("an expression that changes something")
    found = _fold(statements, {})
    if found is None:
        raise Untranslatable("a function that may return nothing")
    return _without_iterators(found, statements)


def _without_iterators(of: Expression, statements: tuple[Statement, ...]) -> Expression:
    """Return an expression in which the only ``next()`` of an iterator is the first element."""
    calls = [p for one in expressions_of(statements) for p in parts(one) if isinstance(p, Call)]
    if sum(1 for call in calls if call.name == "Iterator.next") > 1:
        raise Untranslatable("an iterator that moves")

    def leaf(part: Expression) -> Expression | None:
        match part:
            case Call("Iterator.next", (Call("iterator", (whole,)),), type_):
                return Call("List.getFirst", (whole,), type_)
            case Call("Iterator.hasNext", (Call("iterator", (whole,)),), type_):
                return Call("has any", (whole,), type_)
        return None

    return rewritten(of, leaf)


def replaced(of: Expression, values: Values) -> Expression:
    """Return an expression with what its variables stand for."""
    return rewritten(of, lambda part: values.get(part.name) if isinstance(part, Var) else None)


def _fold(statements: tuple[Statement, ...], values: Values) -> Expression | None:
    for place, statement in enumerate(statements):
        rest = statements[place + 1 :]
        match statement:
            case Let(value=None):
                values = {name: v for name, v in values.items() if name != statement.name}
            case Let(value=value) if value is not None:
                values = {**values, statement.name: replaced(value, values)}
            case Set(target=Var(name=name)):
                values = {**values, name: replaced(statement.value, values)}
            case Return(value=value):
                return None if value is None else replaced(value, values)
            case If():
                return _branched(statement, rest, values)
            case ForEach():
                iterable = replaced(statement.iterable, values)
                values, returned = folded_loop(statement, iterable, values, replaced)
                if returned is not None:
                    after = _fold(rest, values)
                    return None if after is None else choose(*returned, after)
            case Do(value=value) if getattr(value, "name", "") in ("log", "print"):
                raise Untranslatable("it writes to a log")
            case _:
                raise Untranslatable(f"{type(statement).__name__.lower()} in an expression")
    return None


def _branched(of: If, rest: tuple[Statement, ...], values: Values) -> Expression | None:
    condition = replaced(of.condition, values)
    yes, no = (_fold((*branch, *rest), values) for branch in (of.then, of.otherwise))
    if yes is None or no is None:
        return None
    found = choose(condition, yes, no)
    if sum(1 for _ in parts(found)) > _MOST_PARTS:
        raise Untranslatable("a function with too many branches")
    return found


def choose(condition: Expression, yes: Expression, no: Expression) -> Expression:
    """Return one of two values; of booleans, as ``&&`` and ``||`` where that is the same."""
    if isinstance(condition, Const):
        return yes if condition.value else no
    if yes == no:
        return yes
    if unboxed(yes.type) == BOOLEAN and unboxed(no.type) == BOOLEAN:
        if isinstance(yes, Const):
            if isinstance(no, Const):
                return condition if yes.value else negated(condition)
            return (
                Binary("||", condition, no, BOOLEAN)
                if yes.value
                else Binary("&&", negated(condition), no, BOOLEAN)
            )
        if isinstance(no, Const):
            return (
                Binary("||", negated(condition), yes, BOOLEAN)
                if no.value
                else Binary("&&", condition, yes, BOOLEAN)
            )
    type_ = yes.type if yes.type.name != "null" else no.type
    if is_numeric(yes.type) and is_numeric(no.type) and yes.type != no.type:
        type_ = yes.type if unboxed(yes.type).name in ("double", "float") else no.type
    return Choice(condition, yes, no, type_)


def negated(condition: Expression) -> Expression:
    """Return the negation of a condition."""
    if isinstance(condition, Unary) and condition.operator == "!":
        return condition.operand
    return attrs.evolve(Unary("!", condition, BOOLEAN))
