# SPDX-License-Identifier: Apache-2.0
"""Fields of constants of enums."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType
from pyflinkcep.migrate.java.project import property_of
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import BOOLEAN
from pyflinkcep.migrate.meaning.objects import assigned
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression

__all__ = ["enum_value"]


def enum_value(reader: Reading, owner: Expression, of: JavaClass, method: str) -> Expression | None:
    """Return what a getter of an enum returns, as a choice of its constants; None if none."""
    name = _field_of(of, method)
    if name is None:
        return None
    values = [(constant, _fields(reader, of, node).get(name)) for constant, node in _nodes(of)]
    found: Expression | None = None
    for constant, value in reversed(values):
        if value is None:
            return None
        test = Call("equals", (owner, Const(constant, JavaType(of.name))), BOOLEAN)
        found = value if found is None else reader.choice(test, value, found)
    return found


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
    constructor = next(
        (m for m in of.methods.get(of.name, []) if len(m.parameters) == len(values)), None
    )
    if constructor is not None:
        return assigned(inner, of, constructor, values)
    return dict(zip(of.fields, values, strict=False))
