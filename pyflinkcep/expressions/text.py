# SPDX-License-Identifier: Apache-2.0
"""Trees as text: as they were written, or as a query writes them."""

from __future__ import annotations

import re

from pyflinkcep.expressions.tree import Aggregate, Call, Column, Literal, Operation, Tree

__all__ = ["quoted_name", "shown", "written_name"]

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
