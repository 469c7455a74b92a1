# SPDX-License-Identifier: Apache-2.0
"""Splits SQL conditions into parts on one event and parts on the partial match."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition, RichAndCondition
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.grammar import parsed
from pyflinkcep.expressions.names import Names
from pyflinkcep.expressions.operators import Operators
from pyflinkcep.expressions.syntax import Form, Syntax, guards_of
from pyflinkcep.expressions.tokens import SqlSyntaxError
from pyflinkcep.expressions.tree import AGGREGATES, MatchExpression, Operation

__all__ = ["column_owners", "condition_of", "sql_condition"]

_MAY_AGGREGATE = re.compile(rf"\b(?:{'|'.join(AGGREGATES)})\s*\(", re.IGNORECASE)


def sql_condition(text: str, stage: str = "") -> IterativeCondition:
    """
    Make a condition from a SQL string.

    Parameters
    ----------
    text : str
        The string.
    stage : str, optional
        Its stage, for errors.

    Returns
    -------
    IterativeCondition
        An :class:`ExpressionCondition` if it has no aggregates over stages; otherwise as
        :func:`condition_of`.

    Raises
    ------
    InvalidArgumentError
        If an aggregate names no stage or more than one, or something around or inside it is not
        supported.

    Examples
    --------
    >>> sql_condition("type = 1 AND price > avg(up.price)")
    (type = 1 and price > avg(up.price))
    """
    if not _MAY_AGGREGATE.search(text):
        return ExpressionCondition(text)
    try:
        tree = parsed(text)
    except SqlSyntaxError:  # Spark knows more
        return ExpressionCondition(text)
    names = Names(text, stage, None)
    return ExpressionCondition(text) if names.is_about_event(tree) else condition_of(tree, names)


def condition_of(tree: Syntax, names: Names) -> IterativeCondition:
    """
    Make a condition from SQL that is parsed.

    Parameters
    ----------
    tree : Syntax
        The condition.
    names : Names
        The meaning of its names.

    Returns
    -------
    IterativeCondition
        A :class:`MatchExpression`, preceded by an :class:`ExpressionCondition` of those parts of a
        top-level AND that read only the event, or one of the two. Spark evaluates its parts as they
        were written.

    Raises
    ------
    InvalidArgumentError
        If an aggregate is over more than one stage, or something around or inside it is not
        supported.
    """
    operators = Operators(names, guards_of(tree))
    conjuncts = list(_conjuncts(tree))
    own = [p for p in conjuncts if names.is_about_event(p) and not operators.waits(p)]
    rest = [part for part in conjuncts if part not in own]
    answered = ExpressionCondition(" AND ".join(map(names.event_sql, own))) if own else None
    if not rest:
        assert answered is not None
        return answered
    joined = " AND ".join(map(names.written, rest))
    parts = tuple(map(operators.part, rest))
    matching = parts[0] if len(parts) == 1 else Operation("and", parts, joined)
    whole = joined if own else names.text
    owners = (owner for part in rest for owner in names.owners(part))
    expression = MatchExpression(whole, matching, owners, names.stage)
    return expression if answered is None else RichAndCondition(answered, expression)


def column_owners(text: str) -> set[str]:
    """Return the first names of the qualified columns of an SQL string."""
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
