# SPDX-License-Identifier: Apache-2.0
"""Values of Java expressions that are known before the program runs."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pyflinkcep.migrate.chains.lookup import quoted
from pyflinkcep.migrate.chains.values import Constant, Symbol, Value
from pyflinkcep.migrate.java.literals import literal_of
from pyflinkcep.migrate.java.source import Node

__all__ = ["binary", "duration", "literal"]

_UNITS = {
    "milli": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}
_ISO = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>[\d.]+)S)?)?",
    re.IGNORECASE,
)


def literal(node: Node) -> Constant | None:
    """Return the value of a literal, or None."""
    found = literal_of(node)
    return None if found is None else Constant(found.value)


def _divide(left: Any, right: Any) -> object:
    if isinstance(left, int) and isinstance(right, int):
        size = abs(left) // abs(right)
        return size if (left < 0) == (right < 0) else -size
    return left / right


def _remainder(left: Any, right: Any) -> object:
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    return math.fmod(left, right)


_OPERATORS: dict[str, Callable[[Any, Any], object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&&": lambda left, right: left and right,
    "||": lambda left, right: left or right,
}
_PYTHON = {"&&": "and", "||": "or"}
_TRUTHS = frozenset(["==", "!=", "<", "<=", ">", ">=", "&&", "||"])
_FLOATS = frozenset(["float", "double", "Float", "Double"])
_LONGS = frozenset(["long", "Long"])


def binary(sign: str, left: Value, right: Value) -> Value | None:
    """Return the value of an operation; None if it is not known."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _folded(sign, left.value, right.value)
    if sign not in _OPERATORS:
        return None
    operands = [_operand(value) for value in (left, right)]
    if None in operands:
        return None
    names = {**_names(left), **_names(right)}
    texts = [
        value.type if isinstance(value, Symbol) else type(value.value).__name__
        for value in (left, right)
        if isinstance(value, Symbol | Constant)
    ]
    if sign == "+" and any(kind in ("String", "str") for kind in texts):
        return Symbol(_joined(left, right), "String", tuple(names.items()))
    kind = _kind_of(texts)
    if sign == "%" or (sign == "/" and kind == "long"):
        return None  # Python's signs, and its quotients beyond 53 bits, are others
    if sign == "/" and kind == "int":
        return Symbol(f"int({operands[0]} / {operands[1]})", kind, tuple(names.items()))
    python = f"{operands[0]} {_PYTHON.get(sign, sign)} {operands[1]}"
    if sign in _TRUTHS:
        return Symbol(python, "boolean", tuple(names.items()))
    return Symbol(f"({python})", kind, tuple(names.items()))


def _kind_of(operands: list[str]) -> str:
    """Return the Java type of an operation on numbers of some types."""
    if _FLOATS & set(operands):
        return "double"
    return "long" if _LONGS & set(operands) else "int"


def _names(value: Value) -> dict[str, str]:
    return dict(value.names) if isinstance(value, Symbol) else {}


def _operand(value: Value) -> str | None:
    if isinstance(value, Symbol):
        return value.python
    if isinstance(value, Constant):
        return quoted(value.value) if isinstance(value.value, str) else repr(value.value)
    return None


def _joined(left: Value, right: Value) -> str:
    """Return an f-string of text and what is appended to it."""
    parts = []
    for value in (left, right):
        if isinstance(value, Constant):
            parts.append(str(value.value).replace("{", "{{").replace("}", "}}"))
        elif isinstance(value, Symbol) and value.python.startswith('f"'):
            parts.append(value.python[2:-1])
        elif isinstance(value, Symbol):
            parts.append("{" + value.python.strip("()") + "}")
    return 'f"' + "".join(parts) + '"'


def _folded(sign: str, left: Any, right: Any) -> Constant | None:
    if sign == "+" and (isinstance(left, str) or isinstance(right, str)):
        return Constant(_shown(left) + _shown(right))
    try:
        return Constant(_OPERATORS[sign](left, right))
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return None


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def duration(method: str, arguments: list[Any]) -> timedelta | None:
    """
    Return the duration that a method of ``Duration`` or ``Time`` makes.

    Examples
    --------
    >>> duration("ofMinutes", [5]), duration("of", [2, "TimeUnit.HOURS"])
    (datetime.timedelta(seconds=300), datetime.timedelta(seconds=7200))
    """
    if method == "parse" and len(arguments) == 1:
        found = _ISO.fullmatch(str(arguments[0]))
        parts = {} if found is None else {k: float(v) for k, v in found.groupdict().items() if v}
        return timedelta(**parts) if parts else None
    unit = method.removeprefix("of") if len(arguments) == 1 else str(arguments[-1])
    unit = unit.rsplit(".", 1)[-1].lower()
    if not arguments or not isinstance(arguments[0], int | float):
        return None
    for name, size in _UNITS.items():
        if unit.startswith(name):
            return size * arguments[0]
    return timedelta(0) if unit == "zero" else None
