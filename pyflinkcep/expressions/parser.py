# SPDX-License-Identifier: Apache-2.0
"""Reads SQL conditions: which parts look at one event, and which at the partial match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from pyflinkcep.conditions import ExpressionCondition, IterativeCondition, RichAndCondition
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.expressions.tree import (
    AGGREGATES,
    Aggregate,
    Constant,
    EventPart,
    MatchExpression,
    Operation,
    Part,
)

__all__ = ["column_owners", "sql_condition"]

_MAY_AGGREGATE = re.compile(rf"\b(?:{'|'.join(AGGREGATES)})\s*\(", re.IGNORECASE)
_DECIMAL = re.compile(r"\d*\.\d*")
_ALLOWED = (
    "around first, last, count, sum, min, max and avg there may be + - * / %, comparisons, AND, "
    "OR, NOT, IS NULL, BETWEEN, coalesce, literals, and anything about the event alone; "
    "a Python function of (event, ctx) can do the rest"
)
_OPERATORS: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.NullSafeEQ: "<=>",
    exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "and", exp.Or: "or",
}  # fmt: skip
_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY")


def sql_condition(text: str, stage: str = "") -> IterativeCondition:
    """
    Make a condition of a SQL string.

    Parameters
    ----------
    text : str
        The string.
    stage : str, optional
        The stage that it is written for, for errors.

    Returns
    -------
    IterativeCondition
        An :class:`ExpressionCondition` where it has no aggregates over stages; else a
        :class:`MatchExpression`, behind an ExpressionCondition of those parts of a top-level AND
        that look at the event alone.

    Raises
    ------
    InvalidArgumentError
        When an aggregate names no stage or more than one, or something is around or inside it
        that cannot be.

    Examples
    --------
    >>> sql_condition("type = 1 AND price > avg(up.price)")
    (type = 1 and price > avg(up.price))
    """
    tree = _parsed(text) if _MAY_AGGREGATE.search(text) else None
    if tree is None or not _has_aggregate(tree):
        return ExpressionCondition(text)
    conjuncts = list(_conjuncts(tree))
    own = [part for part in conjuncts if not _has_aggregate(part)]
    rest = [part for part in conjuncts if _has_aggregate(part)]
    reader = _Reader(text, stage)
    matching: Part = reader.part(rest[0])
    for number, conjunct in enumerate(rest[1:], 2):
        joined = " AND ".join(map(_sql, rest[:number]))
        matching = Operation("and", (matching, reader.part(conjunct)), joined)
    owners = (owner for part in rest for owner in _owners(part))
    expression = MatchExpression(" AND ".join(map(_sql, rest)) if own else text, matching, owners)
    if not own:
        return expression
    return RichAndCondition(ExpressionCondition(" AND ".join(map(_sql, own))), expression)


def column_owners(text: str) -> set[str]:
    """Give what stands before the first dot of the qualified columns of an SQL string."""
    tree = _parsed(text)
    return set() if tree is None else set(_owners(tree))


# --- parsing


_SparkParser: Any = Spark.Parser


class _Dialect(Spark):
    """Spark's, with every function as it is written: none is translated to a like one."""

    class Parser(_SparkParser):  # type: ignore[misc]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012 - names and forms are sqlglot's
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse
            for name, parse in _SparkParser.FUNCTION_PARSERS.items()
            if name in _OWN_SYNTAX
        }


def _parsed(text: str) -> Any:
    """Give the syntax tree of an expression, None for what is none."""
    try:
        trees = _Dialect().parse(text)
    except SqlglotError:
        return None
    tree = trees[0] if len(trees) == 1 else None
    return None if isinstance(tree, exp.Alias | exp.Query) else tree


def _sql(tree: Any) -> str:
    sql: str = tree.sql(dialect=_Dialect, normalize_functions=False, comments=False)
    return sql


def _has_aggregate(tree: Any) -> bool:
    return next(_aggregates(tree), None) is not None


def _aggregates(tree: Any) -> Iterator[Any]:
    """Give the aggregates over stages: neither window functions nor those of subqueries."""
    hidden = (exp.Window, exp.Query)
    for node in tree.walk(prune=lambda node: isinstance(node, hidden)):
        if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
            yield node


def _bare(tree: Any) -> Any:
    """Take off parentheses."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _conjuncts(tree: Any) -> Iterator[Any]:
    bare = _bare(tree)
    if isinstance(bare, exp.And):
        yield from _conjuncts(bare.this)
        yield from _conjuncts(bare.expression)
    else:
        yield tree


def _owners(tree: Any) -> Iterator[str]:
    """Give the first name of qualified columns outside of aggregates."""
    hidden = set(map(id, _aggregates(tree)))
    for node in tree.walk(prune=lambda node: id(node) in hidden):
        if isinstance(node, exp.Column) and len(node.parts) > 1:
            yield node.parts[0].name


class _Reader:
    """Takes a syntax tree apart."""

    def __init__(self, text: str, stage: str) -> None:
        self._where = f"stage {stage!r}: " if stage else ""
        self._text = text

    def part(self, tree: Any) -> Part:
        """Give what a subtree means."""
        tree = _bare(tree)
        if not _has_aggregate(tree):
            return _constant(tree) or EventPart(_event_sql(tree))
        if isinstance(tree, exp.Anonymous):
            name = tree.name.lower()
            if name in AGGREGATES:
                return self._aggregate(name, tree)
            if name == "coalesce":
                return self._operation("coalesce", tree, *tree.expressions)
        if type(tree) in _OPERATORS:
            return self._operation(_OPERATORS[type(tree)], tree, tree.this, tree.expression)
        if isinstance(tree, exp.Neg | exp.Not):
            operator = "neg" if isinstance(tree, exp.Neg) else "not"
            return self._operation(operator, tree, tree.this)
        if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null):
            return self._operation("is null", tree, tree.this)
        if isinstance(tree, exp.Between):
            low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
            high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
            return self._operation("and", tree, low, high)
        raise self._refused(f"{_sql(tree)!r} around an aggregate", _ALLOWED)

    def _operation(self, operator: str, tree: Any, *operands: Any) -> Operation:
        return Operation(operator, tuple(map(self.part, operands)), _sql(tree))

    def _aggregate(self, function: str, tree: Any) -> Aggregate:
        text = _sql(tree)
        example = f"write {function}(stage.column), with the name of a stage"
        argument = _bare(tree.expressions[0]) if len(tree.expressions) == 1 else None
        if argument is None:
            raise self._refused(f"{text!r} has {len(tree.expressions)} arguments", example)
        if isinstance(argument, exp.Distinct):
            raise self._refused(f"DISTINCT in {text!r}", _ALLOWED)
        if argument.find(exp.Query, exp.Window) or _has_aggregate(argument):
            raise self._refused(
                f"{text!r} has an aggregate or a query inside",
                "an aggregate's argument is an expression over the columns of one stage",
            )
        if function == "count" and isinstance(argument, exp.Column):
            parts = argument.parts
            if len(parts) == 1 or (len(parts) == 2 and isinstance(argument.this, exp.Star)):
                return Aggregate(function, parts[0].name, None, text)
        columns = list(argument.find_all(exp.Column))
        if not columns or any(len(column.parts) == 1 for column in columns):
            raise self._refused(f"{text!r} does not say which stage it is over", example)
        if any(isinstance(column.this, exp.Star) for column in columns):
            raise self._refused(f"{text!r}: * is for count", example)
        stages = list(dict.fromkeys(column.parts[0].name for column in columns))
        if len(stages) > 1:
            raise self._refused(
                f"{text!r} is over the stages {stages}",
                "an aggregate is over one stage: combine two, as in avg(a.x) + avg(b.x)",
            )
        return Aggregate(function, stages[0], _event_sql(_without_stage(argument)), text)

    def _refused(self, what: str, hint: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self._where}the condition {self._text!r}: {what}", hint)


def _without_stage(tree: Any) -> Any:
    """Drop the stage's name before each column."""

    def shortened(node: Any) -> Any:
        if not isinstance(node, exp.Column):
            return node
        names = reversed([part.copy() for part in node.parts[1:]])
        keys = ("this", "table", "db", "catalog")
        return exp.Column(**dict(zip(keys, names, strict=False)))

    return tree.copy().transform(shortened)


def _event_sql(tree: Any) -> str:
    """Give the SQL for Spark, in which decimal literals are doubles."""

    def double(node: Any) -> Any:
        if isinstance(node, exp.Literal) and not node.is_string and _DECIMAL.fullmatch(node.this):
            return exp.Literal(this=f"{node.this}D", is_string=False)
        return node

    return _sql(tree.copy().transform(double))


def _constant(tree: Any) -> Constant | None:
    """Give a literal as such, None for anything else; -1 is one too."""
    text = _sql(tree)
    if isinstance(tree, exp.Null):
        return Constant(None, text)
    if isinstance(tree, exp.Boolean):
        return Constant(bool(tree.this), text)
    negative = isinstance(tree, exp.Neg)
    literal = tree.this if negative else tree
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return None if negative else Constant(literal.this, text)
    return _number(f"-{literal.this}" if negative else literal.this, text)


def _number(written: str, text: str) -> Constant | None:
    if re.fullmatch(r"-?\d+", written):
        value = int(written)
        return Constant(value, text) if -(1 << 63) <= value < 1 << 63 else None
    try:
        return Constant(float(written), text)
    except ValueError:
        return None
