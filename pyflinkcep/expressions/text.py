# SPDX-License-Identifier: Apache-2.0
"""Trees as text: as they were written, or as a query writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyflinkcep.expressions.tokens import UNITS_US
from pyflinkcep.expressions.tree import (
    Aggregate,
    Call,
    Column,
    Interval,
    Leaf,
    Literal,
    Moment,
    Operation,
    Tree,
)

_WORD = re.compile(r"[^\W\d]\w*")
_RESERVED = ("not", "null")
_LOGIC = ("and", "or")
_ARITHMETIC = ("+", "-", "*", "/", "%", "||")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def shown(tree: Tree) -> str:
    """Return the text of a condition or a value."""
    if tree.text:
        return tree.text
    if isinstance(tree, Literal):
        return str(tree.value)
    if isinstance(tree, Column):
        return _column(tree)
    if isinstance(tree, Aggregate):
        return f"{tree.function}({_column(tree.over)})"
    if isinstance(tree, Call):
        return _call(tree)
    operator, operands = tree.operator, tree.operands
    if operator in _LOGIC:
        return f" {operator.upper()} ".join(map(_factor, operands))
    if operator == "not":
        return f"NOT {_factor(operands[0])}"
    if operator in ("is null", "is not null"):
        return f"{shown(operands[0])} {operator.upper()}"
    if operator == "neg":
        return f"-{_operand(operands[0])}"
    if operator in _ARITHMETIC:
        return f" {operator} ".join(map(_operand, operands))
    if operator in _COMPARISONS:
        return f" {operator} ".join(map(shown, operands))
    if operator == "case":
        return _case(list(map(shown, operands)))
    return f"{operator}({', '.join(map(shown, operands))})"


def _call(tree: Call) -> str:
    operands = [shown(part) for part in tree.operands]
    match tree.function:
        case ".":
            return f"{operands[0]}.{tree.detail}"
        case "[]":
            return f"{operands[0]}[{operands[1]}]"
        case "cast" | "try_cast":
            return f"{tree.function}({operands[0]} as {tree.detail})"
    if tree.detail == "distinct":
        return f"{tree.function}(distinct {', '.join(operands)})"
    return f"{tree.function}({', '.join([tree.detail, *operands] if tree.detail else operands)})"


def _case(parts: list[str]) -> str:
    otherwise = f" ELSE {parts.pop()}" if len(parts) % 2 else ""
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return f"CASE{''.join(f' WHEN {c} THEN {v}' for c, v in pairs)}{otherwise} END"


def _factor(condition: Tree) -> str:
    text = shown(condition)
    is_logic = isinstance(condition, Operation) and condition.operator in _LOGIC
    return f"({text})" if is_logic else text


def _operand(tree: Tree) -> str:
    text = shown(tree)
    negative = isinstance(tree, Literal) and text.startswith("-")
    return f"({text})" if isinstance(tree, Operation) or negative else text


def _column(tree: Column) -> str:
    if not tree.variable:
        return tree.sql or ""
    index = "" if tree.index is None else f"[{tree.index}]"
    attribute = "" if tree.attribute is None else f".{written_name(tree.attribute)}"
    return f"{written_name(tree.variable)}{index}{attribute}"


def written_name(name: str) -> str:
    """Return a name as text has it: in backticks unless it is a plain word."""
    is_plain = _WORD.fullmatch(name) is not None and name.lower() not in _RESERVED
    return name if is_plain else quoted_name(name)


def quoted_name(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


_SIGNS = (
    "+", "-", "*", "/", "%", "div", "||", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or",
    "like",
)  # fmt: skip
_AFTER = ("is null", "is not null")
_BEFORE = {"not": "NOT", "neg": "-"}
_BITS = ("&", "|", "^", "<<", ">>", ">>>")
_DIVISIONS = ("/", "%")


def spark_sql(tree: Tree, leaf: Callable[[Leaf], str], *, zero_is_null: bool = False) -> str:
    """Return a tree of a query as Spark SQL."""
    if isinstance(tree, Literal):
        return literal_sql(tree.value)
    if isinstance(tree, Leaf):
        return leaf(tree)
    operands = [spark_sql(part, leaf, zero_is_null=zero_is_null) for part in tree.operands]
    if isinstance(tree, Call):
        return _call_sql(tree, operands)
    operator = tree.operator
    if operator in _AFTER:
        return f"({operands[0]} {operator.upper()})"
    if operator in _BEFORE:
        return f"({_BEFORE[operator]} {operands[0]})"
    if zero_is_null and operator in _DIVISIONS:
        return f"({operands[0]} {operator} nullif({operands[1]}, 0))"
    if operator in _SIGNS:
        return f"({f' {operator.upper()} '.join(operands)})"
    if operator == "in":
        return f"({operands[0]} IN ({', '.join(operands[1:])}))"
    if operator == "case":
        return _case_sql(operands)
    unit = [tree.detail] if tree.detail else []
    return f"{operator}({', '.join([*unit, *operands])})"


def _case_sql(operands: list[str]) -> str:
    pairs = zip(operands[::2], operands[1::2], strict=False)
    branches = [f"WHEN {condition} THEN {value}" for condition, value in pairs]
    otherwise = [f"ELSE {operands[-1]}"] if len(operands) % 2 else []
    return " ".join(["(CASE", *branches, *otherwise, "END)"])


def _call_sql(tree: Call, operands: list[str]) -> str:
    match tree.function:
        case "":
            return _filled(tree.between, operands) if tree.between else tree.text
        case ".":
            return f"{operands[0]}.{quoted_name(tree.detail)}"
        case "[]":
            return f"{operands[0]}[{operands[1]}]"
        case "cast":
            return f"cast({operands[0]} AS {tree.detail})"
        case "try_cast":
            return f"try_cast({operands[0]} AS {tree.detail})"
        case "~":
            return f"(~ {operands[0]})"
        case operator if operator in _BITS:
            return f"({operands[0]} {operator} {operands[1]})"
    before = f"{tree.detail.upper()} " if tree.detail == "distinct" else ""
    unit = [tree.detail] if tree.detail and not before else []
    return f"{tree.function}({before}{', '.join([*unit, *operands])})"


def _filled(between: tuple[str, ...], operands: list[str]) -> str:
    """Return operands with text before, between and after them."""
    filled = [part for pair in zip(between, operands, strict=False) for part in pair]
    return "".join([*filled, between[-1]])


def literal_sql(value: Any) -> str:
    """Return a literal as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return text_sql(value)
    if isinstance(value, Interval):
        days, rest = divmod(value.microseconds, UNITS_US["DAY"])
        return f"INTERVAL {value.microseconds} MICROSECONDS" if rest else f"INTERVAL {days} DAYS"
    if isinstance(value, Moment):
        return f"{'DATE' if value.is_date else 'TIMESTAMP'} {text_sql(value.text)}"
    if isinstance(value, Decimal):
        return f"{value}BD"
    return f"{value!r}D" if isinstance(value, float) else str(value)


def text_sql(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
