# SPDX-License-Identifier: Apache-2.0
"""Reads references to methods, such as ``Type::method``."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method
from pyflinkcep.migrate.java.source import Node, text_of
from pyflinkcep.migrate.java.types import BOOLEAN, INT, STRING, UNKNOWN
from pyflinkcep.migrate.meaning.bodies import value_of_body
from pyflinkcep.migrate.meaning.calls import is_value, on_value
from pyflinkcep.migrate.meaning.construction import constructed
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.static import STATIC
from pyflinkcep.migrate.meaning.tree import Call, Expression, Lambda, Var
from pyflinkcep.migrate.meaning.utilities import UTILITIES

__all__ = ["reference"]


def reference(reader: Reading, node: Node, types: tuple[JavaType, ...]) -> Lambda:
    """Return what ``Type::method`` means for a value of a type."""
    owner, name = text_of(node.children[0]), text_of(node.children[-1])
    type_ = types[0] if types else UNKNOWN
    if name == "new":
        return _constructor(reader, owner, type_, node)
    if len(types) == 2:
        return _of_two(reader, owner, name, types, node)
    parameter = Var("each", type_)
    if name == "equals" and is_value(reader, node.children[0]):
        same = Call("equals", (reader.read(node.children[0]), parameter), BOOLEAN)
        return Lambda(("each",), same, BOOLEAN)
    of = reader.class_named(owner)
    if of is not None:
        method = reader.method(of, name, [parameter])
        if method is not None and "static" in method.modifiers:
            body = _applied(reader, method, of, parameter)
            return Lambda(("each",), body, body.type)
        typed = Var("each", JavaType(of.name)) if type_ == UNKNOWN else parameter
        body = on_value(reader, typed, name, [], node)
        return Lambda(("each",), body, body.type)
    if reader.is_variable(owner) or owner == "this":
        raise reader.no(node, f"{text_of(node)} as a function")
    static = STATIC.get((owner, name)) or UTILITIES.get((owner, name))
    if static is not None and name not in ("toString", "intValue", "doubleValue", "longValue"):
        body_ = static(reader, (parameter,), node)
        if body_ is not None:
            return Lambda(("each",), body_, body_.type)
    typed = Var("each", JavaType(owner)) if type_ == UNKNOWN else parameter
    body = on_value(reader, typed, name, [], node)
    return Lambda(("each",), body, body.type)


def _constructor(reader: Reading, owner: str, type_: JavaType, node: Node) -> Lambda:
    of = reader.class_named(owner)
    if of is None or type_ == UNKNOWN:
        raise reader.no(node, f"{text_of(node)} as a function")
    made = constructed(reader, of, [Var("each", type_)], node)
    return Lambda(("each",), made, made.type)


def _of_two(
    reader: Reading, owner: str, name: str, types: tuple[JavaType, ...], node: Node
) -> Lambda:
    """Return what ``Math::max`` or ``Type::method`` means for two values."""
    values = [Var(one, type_) for one, type_ in zip("ab", types, strict=True)]
    of = reader.class_named(owner)
    method = reader.method(of, name, values) if of is not None else None
    static = STATIC.get((owner, name))
    found: Expression | None = None
    if of is not None and method is not None and "static" in method.modifiers:
        found = value_of_body(reader.at(of.source, of, this=None), method, [*values], reader)
    elif static is not None:
        found = static(reader, tuple(values), node)
    elif name == "compareTo" and types[0] in (STRING, UNKNOWN):
        found = Call("compareTo", tuple(values), INT)
    elif name == "compareTo":
        found = Call("compare", tuple(values), INT)
    elif types[0].name == "BigDecimal" and name in ("add", "multiply", "subtract"):
        found = Call(f"BigDecimal.{name}", tuple(values), types[0])
    elif name == "concat":
        found = Call("concat", tuple(values), STRING)
    elif name == "addAll":
        raise reader.no(node, f"{text_of(node)} as a function")
    if found is None:
        raise reader.no(node, f"{text_of(node)} as a function")
    return Lambda(("a", "b"), found, found.type)


def _applied(reader: Reading, method: Method, of: JavaClass, value: Expression) -> Expression:
    inner = reader.at(of.source, of, this=None)
    return value_of_body(inner, method, [value], reader)
