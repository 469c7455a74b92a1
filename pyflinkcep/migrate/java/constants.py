# SPDX-License-Identifier: Apache-2.0
"""Expressions whose values are known when the program is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType
from pyflinkcep.migrate.java.literals import Constant, float32, literal_of, wrapped
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source, children, text_of

__all__ = ["LIMITS", "binary", "constant_of", "converted", "promoted", "unary"]

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

    Parameters
    ----------
    node : Node
        The expression.
    source : Source
        Its file.
    project : Project
        The classes that it may name.
    within : JavaClass, optional
        The class around it; by default the one around its line.
    known : mapping of str to object, optional
        The values of variables.

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
