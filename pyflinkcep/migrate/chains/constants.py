# SPDX-License-Identifier: Apache-2.0
"""Values of Java expressions that are known before the program runs."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pyflinkcep.migrate.chains.lookup import quoted, snake
from pyflinkcep.migrate.chains.values import Constant, Symbol, Value
from pyflinkcep.migrate.java import constants as java
from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.literals import Constant as JavaConstant
from pyflinkcep.migrate.java.literals import literal_of
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.java.types import unboxed

__all__ = [
    "as_java",
    "binary",
    "converted",
    "duration",
    "in_unit",
    "least",
    "listed",
    "literal",
    "parameter",
    "tested",
    "unary",
]

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
    return None if found is None else Constant(found.value, found.type.name)


def as_java(value: Constant) -> JavaConstant | None:
    """Return a number, text or boolean with its Java type; None for other values."""
    held = value.value
    if value.type and isinstance(held, bool | int | float | str):
        return JavaConstant(held, unboxed(JavaType(value.type)))
    kinds = {bool: "boolean", float: "double", str: "String"}
    if type(held) in kinds:
        return JavaConstant(held, JavaType(kinds[type(held)]))  # type: ignore[arg-type]
    if isinstance(held, int):
        return JavaConstant(held, JavaType("int" if -(1 << 31) <= held < 1 << 31 else "long"))
    return None


def converted(value: Value, type_: str) -> Value:
    """
    Return a number as a variable of a type holds it; other values unchanged.

    Examples
    --------
    >>> converted(Constant(2**31, "long"), "int")
    Constant(value=-2147483648, type='int')
    """
    known = as_java(value) if isinstance(value, Constant) else None
    numbers = ("byte", "short", "int", "long", "float", "double", "char")
    kind = unboxed(JavaType(type_)).name
    if known is None or kind not in numbers or isinstance(known.value, bool):
        return value
    made = java.converted(known, JavaType(kind))
    return value if made is None else Constant(made.value, kind)


def unary(sign: str, value: Constant) -> Constant | None:
    """Return the value of an operation on a constant; None if it is not known."""
    known = as_java(value)
    made = None if known is None else java.unary(sign, known)
    return None if made is None else Constant(made.value, made.type.name)


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
        return _folded(sign, left, right)
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
    if isinstance(value, Constant) and not isinstance(value.value, tuple):
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


def _folded(sign: str, left: Constant, right: Constant) -> Constant | None:
    known = [as_java(side) for side in (left, right)]
    if known[0] is not None and known[1] is not None:
        made = java.binary(sign, known[0], known[1])
        if made is not None:
            return Constant(made.value, made.type.name)
    if sign == "+" and (isinstance(left.value, str) or isinstance(right.value, str)):
        return Constant(_shown(left.value) + _shown(right.value))
    try:
        return Constant(_OPERATORS[sign](left.value, right.value))
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


def in_unit(unit: str, method: str, amount: Value) -> Value | None:
    """
    Return what a unit of time makes of an amount, such as ``TimeUnit.SECONDS.toMillis(3)``.

    Examples
    --------
    >>> in_unit("SECONDS", "toMillis", Constant(3)), in_unit("SECONDS", "toMinutes", Constant(90))
    (Constant(value=3000, type='long'), Constant(value=1, type='long'))
    """
    sizes = [duration("of", [1, name]) for name in (unit, method.removeprefix("to"))]
    if sizes[0] is None or sizes[1] is None:
        return None
    if isinstance(amount, Symbol) and sizes[0] >= sizes[1]:
        return Symbol(f"({amount.python} * {sizes[0] // sizes[1]})", "long", amount.names)
    if not isinstance(amount, Constant) or not isinstance(amount.value, int):
        return None
    size = abs(amount.value) * sizes[0] // sizes[1]
    return Constant(size if amount.value > 0 else -size, "long")


def listed(written: str, kind: str) -> Symbol:
    """
    Return the parameter for a list that is known at run time alone, named as Java names it.

    Examples
    --------
    >>> listed("rules.getNames()", "String").names
    (('names', 'List<String>'),)
    """
    last = written.split("(", 1)[0].rsplit(".", 1)[-1]
    named = last[3:] if last.startswith("get") and last[3:4].isupper() else last
    return parameter(named, f"List<{kind}>")


def parameter(name: str, kind: str, default: object = None) -> Symbol:
    """Return a value of a Java type that a pattern is given when it is built."""
    python = snake(name)
    return Symbol(python, kind, ((python, kind),), default)


def tested(written: str) -> Symbol:
    """Return the parameter for a condition that is known at run time alone."""
    name = snake(written.strip("()!").replace("()", "").rsplit(".", 1)[-1])[:40]
    name = name.removeprefix("get_") or "test"
    python = f"not {name}" if written.strip("(").startswith("!") else name
    return Symbol(python, "boolean", ((name, "boolean"),))


def least(digits: str) -> Constant:
    """Return the least int or long, whose digits alone are no literal."""
    is_long = digits[-1:] in ("l", "L")
    return Constant(-(1 << 63) if is_long else -(1 << 31), "long" if is_long else "int")
