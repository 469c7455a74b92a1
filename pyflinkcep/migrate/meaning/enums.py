# SPDX-License-Identifier: Apache-2.0
"""Fields of constants of enums."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method, method_of
from pyflinkcep.migrate.java.project import property_of
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import BOOLEAN
from pyflinkcep.migrate.meaning.bodies import value_of_body
from pyflinkcep.migrate.meaning.construction import assigned, given_fields, initial
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression

__all__ = ["enum_field", "enum_static", "enum_value"]


def enum_static(
    reader: Reading, of: JavaClass, method: str, arguments: list[Node]
) -> Expression | None:
    """Return what ``valueOf`` or ``values`` of an enum returns; None for other methods."""
    constants = tuple(Const(name, JavaType(of.name)) for name in of.constants)
    if method == "values" and not arguments:
        return Call("List.of", constants, JavaType(of.name, (), 1))
    if method != "valueOf" or len(arguments) != 1:
        return None
    name = reader.read(arguments[0])
    if isinstance(name, Const) and name.value in of.constants:
        return Const(name.value, JavaType(of.name))
    return Call("enum of", (name, *constants), JavaType(of.name))


def enum_value(reader: Reading, owner: Expression, of: JavaClass, method: str) -> Expression | None:
    """Return what a getter of an enum returns, as a choice of its constants; None if none."""
    name = _field_of(of, method)
    bodies = {constant: _body_of(node, method) for constant, node in _nodes(of)}
    if name is None and not any(bodies.values()):
        return None
    values = [
        (constant, _value(reader, of, constant, node, method, bodies[constant]))
        for constant, node in _nodes(of)
    ]
    return _chosen(reader, owner, of, values)


def enum_field(reader: Reading, owner: Expression, of: JavaClass, name: str) -> Expression | None:
    """Return a field of an enum, as a choice of its constants; None if it is not known."""
    values = [(constant, _fields(reader, of, node).get(name)) for constant, node in _nodes(of)]
    return _chosen(reader, owner, of, values)


def _chosen(
    reader: Reading, owner: Expression, of: JavaClass, values: list[tuple[str, Expression | None]]
) -> Expression | None:
    if isinstance(owner, Const):
        return dict(values).get(str(owner.value))
    found: Expression | None = None
    for constant, value in reversed(values):
        if value is None:
            return None
        test = Call("equals", (owner, Const(constant, JavaType(of.name))), BOOLEAN)
        found = value if found is None else reader.choice(test, value, found)
    return found


def _value(
    reader: Reading, of: JavaClass, constant: str, node: Node, method: str, own: Method | None
) -> Expression | None:
    """Return what a method without arguments returns for a constant of an enum."""
    name = _field_of(of, method)
    if own is None and name is not None:
        return _fields(reader, of, node).get(name)
    declared = own or next((m for m in of.methods.get(method, []) if not m.parameters), None)
    if declared is None or declared.body is None:
        return None
    inner = reader.at(of.source, of, this=Const(constant, JavaType(of.name)))
    return value_of_body(inner, declared, [], reader)


def _body_of(node: Node, method: str) -> Method | None:
    """Return a method without parameters that a constant of an enum has of its own."""
    body = next((part for part in children(node) if part.type == "class_body"), None)
    for part in children(body) if body is not None else ():
        if part.type == "method_declaration":
            found = method_of(part)
            if found.name == method and not found.parameters:
                return found
    return None


def _field_of(of: JavaClass, method: str) -> str | None:
    """Return the field that a method of an enum returns."""
    declared = next((m for m in of.methods.get(method, []) if not m.parameters), None)
    if declared is None:
        name = property_of(method)
        return name if name in of.fields else None
    statements = children(declared.body) if declared.body is not None else []
    if len(statements) != 1 or statements[0].type != "return_statement":
        return None
    written = text_of(children(statements[0])[0]).removeprefix("this.")
    return written if written in of.fields else None


def _nodes(of: JavaClass) -> list[tuple[str, Node]]:
    body = of.node.child_by_field_name("body")
    return [
        (text_of(node.child_by_field_name("name")), node)
        for node in children(body)
        if node.type == "enum_constant"
    ]


def _fields(reader: Reading, of: JavaClass, node: Node) -> dict[str, Expression]:
    given = node.child_by_field_name("arguments")
    inner = reader.at(of.source, of)
    values = [inner.read(argument) for argument in children(given)] if given is not None else []
    constructor = inner.constructor(of, values)
    if constructor is not None:
        return {**initial(inner, of), **assigned(inner, of, constructor, values)}
    names = given_fields(of, len(values))
    return {**initial(inner, of), **dict(zip(names, values, strict=True))}
