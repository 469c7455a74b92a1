# SPDX-License-Identifier: Apache-2.0
"""Reads SQL conditions: which parts look at one event, and which at the partial match."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition, RichAndCondition
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.names import Names, Scope
from pyflinkcep.expressions.operators import Operators
from pyflinkcep.expressions.syntax import Form, Syntax
from pyflinkcep.expressions.tokens import SqlSyntaxError
from pyflinkcep.expressions.tree import AGGREGATES, Aggregate, MatchExpression, Operation, Part

__all__ = ["Scope", "aggregates_in", "column_owners", "match_part", "sql_condition"]

_MAY_AGGREGATE = re.compile(rf"\b(?:{'|'.join(AGGREGATES)})\s*\(", re.IGNORECASE)


def sql_condition(text: str, stage: str = "", scope: Scope | None = None) -> IterativeCondition:
    """
    Make a condition of a SQL string.

    Parameters
    ----------
    text : str
        The string.
    stage : str, optional
        The stage that it is written for, for errors.
    scope : Scope, optional
        What its names mean; without one, as in the fluent API.

    Returns
    -------
    IterativeCondition
        An :class:`ExpressionCondition` if it has no aggregates over stages; else a
        :class:`MatchExpression`, behind an ExpressionCondition of those parts of a top-level AND
        that look at the event alone. What Spark is to evaluate is cut out of the text as it was
        written.

    Raises
    ------
    InvalidArgumentError
        When an aggregate names no stage or more than one, or something is around or inside it
        that is not supported; with a scope, also when the text is not an expression.

    Examples
    --------
    >>> sql_condition("type = 1 AND price > avg(up.price)")
    (type = 1 and price > avg(up.price))
    """
    tree = None
    if scope is not None or _MAY_AGGREGATE.search(text):
        try:
            tree = parsed(text)
        except SqlSyntaxError:
            if scope is not None:
                raise
    names = Names(text, stage, scope)
    if tree is None or (scope is None and names.is_about_event(tree)):
        return ExpressionCondition(text)
    operators = Operators(names)
    conjuncts = list(_conjuncts(tree))
    own = [part for part in conjuncts if names.is_about_event(part)]
    rest = [part for part in conjuncts if not names.is_about_event(part)]
    answered = ExpressionCondition(" AND ".join(map(names.event_sql, own))) if own else None
    if not rest:
        assert answered is not None
        return answered
    matching: Part = operators.part(rest[0])
    for number, conjunct in enumerate(rest[1:], 2):
        joined = " AND ".join(map(names.written, rest[:number]))
        matching = Operation("and", (matching, operators.part(conjunct)), joined)
    whole = " AND ".join(map(names.written, rest)) if own else text
    owners = (owner for part in rest for owner in names.owners(part))
    expression = MatchExpression(whole, matching, owners, stage)
    return expression if answered is None else RichAndCondition(answered, expression)


def match_part(text: str, stage: str, scope: Scope) -> Part:
    """Read an expression of any type over stages; raise InvalidArgumentError if it is none."""
    return Operators(Names(text, stage, scope)).part(parsed(text))


def aggregates_in(text: str, stage: str, scope: Scope) -> list[tuple[int, int, Aggregate]]:
    """
    Return what of an expression is about the match, for others to compute the rest.

    Returns
    -------
    list of (int, int, Aggregate)
        In the order of the text, the place ``text[start:end]`` of each outermost part that is an
        aggregate, or a column that means one, and what it is.
    """
    names = Names(text, stage, scope)
    return [
        (part.start, part.end, names.aggregate(part)) for part in names.aggregates(parsed(text))
    ]


def column_owners(text: str) -> set[str]:
    """Return what stands before the first dot of the qualified columns of an SQL string."""
    try:
        tree = parsed(text)
    except InvalidArgumentError:
        return set()
    return set(Names(text, "", None).owners(tree))


def _conjuncts(tree: Syntax) -> Iterator[Syntax]:
    bare = tree.bare()
    if bare.form is Form.OPERATION and bare.value == "and":
        yield from _conjuncts(bare.operands[0])
        yield from _conjuncts(bare.operands[1])
    else:
        yield tree
