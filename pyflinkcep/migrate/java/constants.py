# SPDX-License-Identifier: Apache-2.0
"""Expressions whose values are known when the program is read."""

from __future__ import annotations

import math
import re
import struct
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source, children, text_of


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


_ORDER = ("byte", "short", "char", "int", "long", "float", "double")
_NOTHING: Mapping[str, Any] = {}


def constant_of(
    node: Node,
    source: Source,
    project: Project,
    within: JavaClass | None = None,
    known: Mapping[str, Any] = _NOTHING,
) -> Constant | None:
    """
    Return the value of a constant expression; None if it is not one.

    Examples
    --------
    >>> from pyflinkcep.migrate.java.source import parse_java
    >>> source = parse_java("class A { static final int N = 2 * 3; static final long S = N + 1; }")
    >>> fields = Project([source]).find("A").fields
    >>> constant_of(fields["S"].value, source, Project([source])).value
    7
    """
    if within is None:
        within = project.at(source, node.start_point[0] + 1)
    return _Reader(source, project, known).value(node, within, 0)


class _Reader:
    def __init__(self, source: Source, project: Project, known: Mapping[str, Any]) -> None:
        self._source = source
        self._project = project
        self._known = known

    def value(self, node: Node, within: JavaClass | None, depth: int) -> Constant | None:
        literal = literal_of(node)
        if literal is not None or depth > 50:
            return literal
        inner = [self.value(part, within, depth + 1) for part in _operands(node)]
        if any(part is None for part in inner):
            return None
        parts = [part for part in inner if part is not None]
        match node.type:
            case "parenthesized_expression":
                return parts[0]
            case "binary_expression":
                return binary(text_of(node.child_by_field_name("operator")), *parts)
            case "unary_expression":
                return unary(text_of(node.child_by_field_name("operator")), parts[0])
            case "cast_expression":
                type_ = text_of(node.child_by_field_name("type"))
                return converted(parts[0], JavaType(type_))
            case "ternary_expression":
                return parts[1] if parts[0].value else parts[2]
            case "identifier":
                return self._named(text_of(node), within, depth)
            case "field_access":
                return self._member(node, within, depth)
        return None

    def _named(self, name: str, within: JavaClass | None, depth: int) -> Constant | None:
        if name in self._known:
            return _known_constant(self._known[name])
        found = self._project.constant_field(name, self._source, within)
        return self._field(*found, depth) if found is not None else None

    def _member(self, node: Node, within: JavaClass | None, depth: int) -> Constant | None:
        owner = text_of(node.child_by_field_name("object"))
        name = text_of(node.child_by_field_name("field"))
        if (owner, name) in LIMITS:
            return LIMITS[owner, name]
        if owner == "this":
            return self._named(name, within, depth)
        of = self._project.find(owner, self._source, within)
        declared = self._project.owner_of(of, name) if of is not None else None
        return self._field(declared.fields[name], declared, depth) if declared is not None else None

    def _field(self, field: Any, owner: JavaClass, depth: int) -> Constant | None:
        if not field.is_constant:
            return None
        inside = _Reader(owner.source, self._project, _NOTHING)
        value = inside.value(field.value, owner, depth + 1)
        return converted(value, field.type) if value is not None else None


LIMITS = {
    ("Integer", "MAX_VALUE"): Constant((1 << 31) - 1, JavaType("int")),
    ("Integer", "MIN_VALUE"): Constant(-(1 << 31), JavaType("int")),
    ("Long", "MAX_VALUE"): Constant((1 << 63) - 1, JavaType("long")),
    ("Long", "MIN_VALUE"): Constant(-(1 << 63), JavaType("long")),
    ("Double", "MAX_VALUE"): Constant(1.7976931348623157e308, JavaType("double")),
    ("Double", "MIN_VALUE"): Constant(5e-324, JavaType("double")),
    ("Double", "NaN"): Constant(math.nan, JavaType("double")),
    ("Double", "POSITIVE_INFINITY"): Constant(math.inf, JavaType("double")),
    ("Double", "NEGATIVE_INFINITY"): Constant(-math.inf, JavaType("double")),
    ("Float", "MAX_VALUE"): Constant(3.4028234663852886e38, JavaType("float")),
    ("Float", "MIN_VALUE"): Constant(1.401298464324817e-45, JavaType("float")),
    ("Float", "NaN"): Constant(math.nan, JavaType("float")),
    ("Float", "POSITIVE_INFINITY"): Constant(math.inf, JavaType("float")),
    ("Float", "NEGATIVE_INFINITY"): Constant(-math.inf, JavaType("float")),
    ("Short", "MAX_VALUE"): Constant((1 << 15) - 1, JavaType("short")),
    ("Short", "MIN_VALUE"): Constant(-(1 << 15), JavaType("short")),
    ("Byte", "MAX_VALUE"): Constant(127, JavaType("byte")),
    ("Byte", "MIN_VALUE"): Constant(-128, JavaType("byte")),
}
"""The limits of the types of numbers."""


def _operands(node: Node) -> list[Node]:
    match node.type:
        case "parenthesized_expression":
            return children(node)[:1]
        case "binary_expression":
            return [node.child_by_field_name("left"), node.child_by_field_name("right")]
        case "unary_expression":
            return [node.child_by_field_name("operand")]
        case "cast_expression":
            return [node.child_by_field_name("value")]
        case "ternary_expression":
            return [
                node.child_by_field_name(name)
                for name in ("condition", "consequence", "alternative")
            ]
    return []


def _known_constant(value: Any) -> Constant | None:
    if isinstance(value, Constant):
        return value
    for type_, name in ((bool, "boolean"), (str, "String"), (float, "double")):
        if isinstance(value, type_):
            return Constant(value, JavaType(name))
    if isinstance(value, int):
        return Constant(value, JavaType("int" if -(1 << 31) <= value < 1 << 31 else "long"))
    return None


def promoted(a: str, b: str) -> str:
    """Return the type in which Java computes with two primitive numbers."""
    most = max(_ORDER.index(a), _ORDER.index(b), _ORDER.index("int"))
    return _ORDER[most]


def converted(constant: Constant, type_: JavaType) -> Constant | None:
    """Return a constant as a value of another type; None if that is not known."""
    value, name = constant.value, type_.name
    if type_ == constant.type:
        return constant
    if isinstance(value, str) and constant.type.name == "char" and name in _ORDER:
        value = ord(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        boxes = {"Integer": "int", "Long": "long", "Double": "double", "Float": "float"}
        match boxes.get(name, name):
            case "byte" | "short" | "int" | "long" as whole:
                if isinstance(value, float):
                    value = _truncated(value, whole)
                return Constant(wrapped(value, whole), type_)
            case "double":
                return Constant(float(value), type_)
            case "float":
                return Constant(float32(float(value)), type_)
            case "char":
                return Constant(chr(int(value) % 65536), type_)
    is_text = isinstance(value, str) and constant.type.name == "String"
    if is_text and name in ("String", "CharSequence", "Object", "?"):
        return constant
    return constant if isinstance(value, bool) and name in ("boolean", "Boolean", "?") else None


def _truncated(value: float, type_: str) -> int:
    if math.isnan(value):
        return 0
    bits = 63 if type_ == "long" else 31
    return max(-(1 << bits), min((1 << bits) - 1, int(max(-1e19, min(1e19, value)))))


def unary(operator: str, of: Constant) -> Constant | None:
    """Return the value of a unary operator; None if unknown."""
    value, type_ = of.value, of.type.name
    if operator == "!" and isinstance(value, bool):
        return Constant(not value, of.type)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    name = promoted(type_, type_) if type_ in _ORDER else type_
    if operator == "+":
        return Constant(value, JavaType(name))
    if operator == "-":
        negative = wrapped(-value, name) if isinstance(value, int) else -value
        return Constant(negative, JavaType(name))
    if operator == "~" and isinstance(value, int):
        return Constant(~value, JavaType(name))
    return None


def binary(operator: str, left: Constant, right: Constant) -> Constant | None:
    """Return the value of a binary operator by Java's rules; None if unknown or an error."""
    a, b = left.value, right.value
    if operator == "+" and "String" in (left.type.name, right.type.name):
        texts = [_text(left), _text(right)]
        return None if None in texts else Constant("".join(map(str, texts)), JavaType("String"))
    if isinstance(a, bool) and isinstance(b, bool):
        logical = {"&&": a and b, "||": a or b, "==": a == b, "!=": a != b, "^": a != b}
        return Constant(logical[operator], JavaType("boolean")) if operator in logical else None
    if left.type.name not in _ORDER or right.type.name not in _ORDER:
        return None
    type_ = promoted(left.type.name, right.type.name)
    x, y = (converted(side, JavaType(type_)) for side in (left, right))
    if x is None or y is None:
        return None
    return _numbers(operator, x.value, y.value, type_)


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
_COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip
_WHOLE: dict[str, Callable[[int, int], int]] = {
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip


def _numbers(operator: str, a: Any, b: Any, type_: str) -> Constant | None:
    if operator in _COMPARED:
        return Constant(_COMPARED[operator](a, b), JavaType("boolean"))
    if type_ in ("int", "long"):
        if operator in ("<<", ">>", ">>>"):
            bits = 64 if type_ == "long" else 32
            moved = a << b % bits if operator == "<<" else a >> b % bits
            moved = a % (1 << bits) >> b % bits if operator == ">>>" else moved
            return Constant(wrapped(moved, type_), JavaType(type_))
        compute = _COMPUTED.get(operator) or _WHOLE.get(operator)
        if compute is None or (operator in "/%" and b == 0):
            return None
        return Constant(wrapped(compute(a, b), type_), JavaType(type_))
    if operator == "/" and b != 0:
        result = a / b
    elif operator in _COMPUTED:
        result = _COMPUTED[operator](a, b)
    else:
        return None
    return Constant(float32(result) if type_ == "float" else result, JavaType(type_))


def _text(constant: Constant) -> str | None:
    value = constant.value
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | str) else None
