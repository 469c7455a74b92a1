# SPDX-License-Identifier: Apache-2.0
"""Walks through statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyflinkcep.migrate.meaning.tree import (
    Do,
    Expression,
    ForEach,
    If,
    Let,
    Raise,
    Return,
    Set,
    Statement,
    Try,
    Var,
    While,
)

__all__ = ["all_statements", "expressions_of"]


def _inside(of: Statement) -> tuple[Statement, ...]:
    match of:
        case If():
            return (*of.then, *of.otherwise)
        case ForEach():
            return of.body
        case While():
            return (*of.body, *of.update)
        case Try():
            return (*of.body, *of.handler)
    return ()


def all_statements(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements and all inside."""
    for one in statements:
        yield one
        yield from all_statements(_inside(one))


def expressions_of(statements: Iterable[Statement]) -> Iterator[Expression]:
    """Yield the expressions in statements; of an assignment to a variable, only its value."""
    for one in all_statements(statements):
        match one:
            case Let(value=value) | Return(value=value) | Do(value=value):
                if value is not None:
                    yield value
            case Set():
                yield one.value
                if not isinstance(one.target, Var):
                    yield one.target
            case If(condition=condition) | While(condition=condition):
                yield condition
            case ForEach(iterable=iterable):
                yield iterable
            case Raise(message=message) if message is not None:
                yield message
