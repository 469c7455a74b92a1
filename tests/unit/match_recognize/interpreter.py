# SPDX-License-Identifier: Apache-2.0
"""Computes SQL over the columns of one row, and what is around leaves, in place of Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyflinkcep.expressions.grammar import Form, Syntax, parsed
from pyflinkcep.expressions.tokens import string_value

_BINARY = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "%": lambda a, b: a % b, "/": lambda a, b: a / b, "||": lambda a, b: str(a) + str(b),
    "like": lambda a, b: re.fullmatch(b.replace("%", ".*").replace("_", "."), a, re.S) is not None,
    "lower": str.lower, "upper": str.upper, "abs": abs, "mod": lambda a, b: a % b,
    "neg": lambda a: -a, "not": lambda a: not a,
    "between": lambda a, low, high: low <= a <= high, "array": lambda *values: list(values),
}  # fmt: skip


def computed(sql: str, row: Mapping[str, Any]) -> Any:
    """Return the value of an expression over a row, columns by their names in small letters."""
    return _value(parsed(sql), row)


def _value(tree: Syntax, row: Mapping[str, Any]) -> Any:
    if tree.form is Form.COLUMN:
        return row[tree.value[-1].lower()]
    if tree.form is Form.LITERAL:
        return _literal(tree.value)
    values = [_value(operand, row) for operand in tree.operands]
    if tree.form is Form.PAREN or tree.value == "cast":
        return values[0]
    if tree.form is Form.CASE:
        pairs = zip(values[::2], values[1::2], strict=False)
        otherwise = values[-1] if tree.value[1] else None
        return next((then for when, then in pairs if when), otherwise)
    if tree.value in ("and", "or"):
        decides = tree.value == "or"
        return decides if decides in values else None if None in values else not decides
    if tree.value == "is null":
        return values[0] is None
    if tree.value == "coalesce":
        return next((value for value in values if value is not None), None)
    if tree.value == "in":
        value, *options = values
        if value is None or value in options:
            return None if value is None else True
        return None if None in options else False
    return None if None in values else _BINARY[tree.value](*values)  # type: ignore[operator]


def _literal(written: str) -> Any:
    if written in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[written]
    if written[0] in "'\"":
        return string_value(written)
    return float(written) if "." in written else int(written)
