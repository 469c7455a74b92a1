# SPDX-License-Identifier: Apache-2.0
"""The values of Java's literals."""

from __future__ import annotations

import re
import struct
import textwrap

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, text_of

__all__ = ["Constant", "float32", "literal_of", "unescaped", "wrapped"]


@attrs.frozen
class Constant:
    """A value known when the program is read, and its type; a char is a string of one."""

    value: int | float | str | bool | None
    type: JavaType


_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f", "s": " ", "0": "\0"}
_ESCAPE = re.compile(r"\\(u+[0-9a-fA-F]{4}|[0-3]?[0-7]{1,2}|\r?\n|.)", re.DOTALL)


def wrapped(value: int, type_: str) -> int:
    """Return a whole number as a type of Java holds it."""
    half = 1 << _BITS[type_] - 1
    return (value + half) % (2 * half) - half


def float32(value: float) -> float:
    """Return the nearest float of 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def unescaped(text: str) -> str:
    r"""
    Return the text that escapes stand for.

    Examples
    --------
    >>> unescaped(r"a\tb\u0041\101")
    'a\tbAA'
    """

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


def literal_of(node: Node) -> Constant | None:
    """Return the value of a literal; None for other nodes, and literals that Java refuses."""
    text = text_of(node)
    match node.type:
        case "true" | "false":
            return Constant(node.type == "true", JavaType("boolean"))
        case "null_literal":
            return Constant(None, JavaType("null"))
        case "character_literal":
            return Constant(unescaped(text[1:-1]), JavaType("char"))
        case "string_literal":
            inner = _block(text) if text.startswith('"""') else text[1:-1]
            return Constant(unescaped(inner), JavaType("String"))
        case (
            "decimal_integer_literal"
            | "hex_integer_literal"
            | "octal_integer_literal"
            | "binary_integer_literal"
        ):
            return _integer(text.replace("_", ""))
        case "decimal_floating_point_literal" | "hex_floating_point_literal":
            return _floating(text.replace("_", "").lower())
    return None


def _block(text: str) -> str:
    lines = text[3:-3].split("\n", 1)
    body = textwrap.dedent(lines[1]) if len(lines) > 1 else ""
    last = text[3:-3].rsplit("\n", 1)[-1]
    if len(lines) > 1 and not last.strip():
        body = textwrap.dedent(lines[1][: len(lines[1]) - len(last)] + last + "\0")[:-1]
    return "\n".join(line.rstrip(" \t") for line in body.split("\n"))


def _integer(text: str) -> Constant | None:
    type_ = "long" if text[-1] in "lL" else "int"
    digits = text.rstrip("lL").lower()
    try:
        if digits.startswith("0x"):
            value, is_decimal = int(digits[2:], 16), False
        elif digits.startswith("0b"):
            value, is_decimal = int(digits[2:], 2), False
        elif digits.startswith("0") and len(digits) > 1:
            value, is_decimal = int(digits, 8), False
        else:
            value, is_decimal = int(digits), True
    except ValueError:
        return None
    bits = _BITS[type_]
    if value >> bits or (is_decimal and value > 1 << bits - 1):
        return None
    return Constant(wrapped(value, type_), JavaType(type_))


def _floating(text: str) -> Constant | None:
    is_hex = text.startswith("0x")
    type_ = "float" if text.endswith("f") else "double"
    digits = text.rstrip("fd") if not is_hex or "p" in text else text
    try:
        value = float.fromhex(digits) if is_hex else float(digits)
    except (ValueError, OverflowError):
        return None
    return Constant(float32(value) if type_ == "float" else value, JavaType(type_))
