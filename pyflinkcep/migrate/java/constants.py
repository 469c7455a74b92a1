# SPDX-License-Identifier: Apache-2.0
"""Expressions whose values are known when the program is read."""

from __future__ import annotations

import math
import re
import textwrap
from datetime import timedelta
from typing import Any

import attrs

from pyflinkcep.migrate import runtime
from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, text_of

_NATURAL = {
    bool: "boolean", float: "double", str: "String", timedelta: "Duration", type(None): "null",
}  # fmt: skip


def _natural(of: Const) -> JavaType:
    """Return the type that a value has if nothing else is said."""
    if type(of.value) is int:
        return JavaType("int" if -(1 << 31) <= of.value < 1 << 31 else "long")
    return JavaType(_NATURAL.get(type(of.value), "?"))


@attrs.frozen
class Const:
    """
    A value known when the program is read, and its type.

    A char is a string of one, a constant of an enum its name, a list a tuple.
    """

    value: Any = attrs.field(eq=lambda v: (type(v), repr(v) if isinstance(v, float) else v))
    type: JavaType = attrs.field(default=attrs.Factory(_natural, takes_self=True))

    @property
    def is_plain(self) -> bool:
        """Whether it is a number, text or boolean."""
        return isinstance(self.value, bool | int | float | str)


BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f", "s": " ", "0": "\0"}
_ESCAPE = re.compile(r"\\(u+[0-9a-fA-F]{4}|[0-3]?[0-7]{1,2}|\r?\n|.)", re.DOTALL)


def wrapped(value: int, type_: str) -> int:
    """Return a whole number as a type of Java holds it."""
    return runtime.narrowed(value, BITS[type_])


def unescaped(text: str) -> str:
    """Return the text that escapes stand for."""

    def one(found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] == "u":
            return chr(int(escape.lstrip("u"), 16))
        if escape.strip() == "" and "\n" in escape:
            return ""
        if escape[0] in "01234567":
            return chr(int(escape, 8))
        return _ESCAPES.get(escape, escape)

    found = _ESCAPE.sub(one, text)
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def literal_of(node: Node) -> Const | None:
    """Return the value of a literal; None for other nodes, and literals that Java refuses."""
    text = text_of(node)
    match node.type:
        case "true" | "false":
            return Const(node.type == "true", JavaType("boolean"))
        case "null_literal":
            return Const(None, JavaType("null"))
        case "character_literal":
            return Const(unescaped(text[1:-1]), JavaType("char"))
        case "string_literal":
            inner = _block(text) if text.startswith('"""') else text[1:-1]
            return Const(unescaped(inner), JavaType("String"))
        case type_ if type_.endswith("integer_literal"):
            return _integer(text.replace("_", ""))
        case type_ if type_.endswith("floating_point_literal"):
            return _floating(text.replace("_", "").lower())
    return None


def least(digits: str) -> Const:
    """Return the least int or long, whose digits alone are no literal."""
    is_long = digits[-1:] in ("l", "L")
    return Const(-(1 << 63) if is_long else -(1 << 31), JavaType("long" if is_long else "int"))


def _block(text: str) -> str:
    """Return the inside of a text block: the indentation of its last line counts too."""
    body = textwrap.dedent(text[3:-3].partition("\n")[2] + "\0")[:-1]
    return "\n".join(line.rstrip(" \t") for line in body.split("\n"))


def _integer(text: str) -> Const | None:
    type_ = "long" if text[-1] in "lL" else "int"
    digits = text.rstrip("lL").lower()
    is_octal = digits.startswith("0") and len(digits) > 1
    base = {"0x": 16, "0b": 2}.get(digits[:2], 8 if is_octal else 10)
    try:
        value = int(digits, base)
    except ValueError:
        return None
    bits = BITS[type_]
    if value >> bits or (base == 10 and value > 1 << bits - 1):
        return None
    return Const(wrapped(value, type_), JavaType(type_))


def _floating(text: str) -> Const | None:
    type_ = "float" if text.endswith("f") else "double"
    try:
        value = float(text.rstrip("fd"))
    except ValueError:
        return None
    return Const(runtime.float32(value) if type_ == "float" else value, JavaType(type_))


_ORDER = ("byte", "short", "char", "int", "long", "float", "double")
_FLOATS = {
    "Double": {"MAX_VALUE": 1.7976931348623157e308, "MIN_VALUE": 5e-324, "NaN": math.nan,
               "POSITIVE_INFINITY": math.inf, "NEGATIVE_INFINITY": -math.inf},
    "Float": {"MAX_VALUE": 3.4028234663852886e38, "MIN_VALUE": 1.401298464324817e-45,
              "NaN": math.nan, "POSITIVE_INFINITY": math.inf, "NEGATIVE_INFINITY": -math.inf},
}  # fmt: skip
_WHOLES = {"Byte": "byte", "Short": "short", "Integer": "int", "Long": "long"}
LIMITS = {
    **{(box, name): Const(value, JavaType(box.lower()))
       for box, values in _FLOATS.items() for name, value in values.items()},
    **{(box, "MAX_VALUE"): Const((1 << BITS[kind] - 1) - 1, JavaType(kind))
       for box, kind in _WHOLES.items()},
    **{(box, "MIN_VALUE"): Const(-(1 << BITS[kind] - 1), JavaType(kind))
       for box, kind in _WHOLES.items()},
}  # fmt: skip
"""The limits of the types of numbers."""


def promoted(a: str, b: str) -> str:
    """Return the type in which Java computes with two primitive numbers."""
    most = max(_ORDER.index(a), _ORDER.index(b), _ORDER.index("int"))
    return _ORDER[most]


def converted(constant: Const, type_: JavaType) -> Const | None:
    """Return a constant as a value of another type; None if that is not known."""
    value, name = constant.value, type_.name
    if type_ == constant.type:
        return constant
    if isinstance(value, str) and constant.type.name == "char" and name in _ORDER:
        value = ord(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        match type_.unboxed.name:
            case "byte" | "short" | "int" | "long" as whole:
                if isinstance(value, float):
                    value = runtime.truncated(value, max(32, BITS[whole]))
                return Const(wrapped(value, whole), type_)
            case "double":
                return Const(float(value), type_)
            case "float":
                return Const(runtime.float32(float(value)), type_)
            case "char":
                return Const(chr(int(value) % 65536), type_)
    is_text = isinstance(value, str) and constant.type.name == "String"
    if is_text and name in ("String", "CharSequence", "Object", "?"):
        return constant
    return constant if isinstance(value, bool) and name in ("boolean", "Boolean", "?") else None


def joined(left: Const, right: Const) -> Const | None:
    """Return two constants as one text; None if one is a number that is written when it runs."""
    texts = [_text(left), _text(right)]
    return None if None in texts else Const("".join(map(str, texts)), JavaType("String"))


def _text(constant: Const) -> str | None:
    value = constant.value
    if isinstance(value, float) and not (value == 0 or 1e-3 <= abs(value) < 1e7):
        return None
    write = runtime.float_text if constant.type.name == "float" else runtime.text
    return write(value) if value is None or constant.is_plain else None
