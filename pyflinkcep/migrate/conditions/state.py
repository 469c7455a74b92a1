# SPDX-License-Identifier: Apache-2.0
"""What the fields of an object that is a function hold when it is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from pyflinkcep.migrate.java.declarations import JavaClass, Method, read_type
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.written import called_in, declared_in, set_by_this, written_in
from pyflinkcep.migrate.meaning.construction import initial, opened, set_fields, zero
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.tree import Call, Expression, Untranslatable

__all__ = ["fields_of_body", "fields_of_object", "locals_around"]

_FUNCTIONS = ("method_declaration", "constructor_declaration", "lambda_expression")


def fields_of_object(
    reader: Reader,
    of: JavaClass,
    arguments: Sequence[Node | Expression],
    node: Node,
    called: Sequence[str],
) -> dict[str, Expression]:
    """
    Return the fields of a new object whose values are known when its methods are called.

    Parameters
    ----------
    reader : Reader
        Reads the arguments.
    of : JavaClass
        The class.
    arguments : sequence of Node or Expression
        What its constructor is given.
    node : Node
        Where it is made.
    called : sequence of str
        The methods that Flink calls.
    """
    project = reader.scope.project
    fields = {**initial(reader, of), **set_fields(reader, of, arguments, node)}
    for name, field in project.all_fields(of).items():
        if field.value is None and "final" not in field.modifiers and not field.type.dims:
            fields.setdefault(name, zero(field.type))
    for owner in project.lineage(of):
        for method in owner.methods.get("open", []):
            opened(reader.at(owner.source, owner), method, fields)
    methods = [m for one in project.lineage(of) for same in one.methods.values() for m in same]
    constructors = {one.name for one in project.lineage(of)}
    for name in changing([m for m in methods if m.name not in constructors], called, project):
        fields.pop(name, None)
    return fields


def fields_of_body(
    reader: Reader,
    body: Node,
    methods: Mapping[tuple[str, int], Method],
    called: Sequence[str],
) -> tuple[dict[str, Expression], set[str]]:
    """Return the known fields of an anonymous class, and the names of all of them."""
    fields: dict[str, Expression] = {}
    names: set[str] = set()
    for part in (one for one in children(body) if one.type == "field_declaration"):
        type_ = read_type(part.child_by_field_name("type"))
        for declarator in part.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            name = text_of(declarator.child_by_field_name("name"))
            names.add(name)
            if value is None:
                fields[name] = zero(type_)
                continue
            reader.scope.fields = fields
            with suppress(Untranslatable):
                held = reader.assigned(reader.argument(value), type_)
                if not (isinstance(held, Call) and not held.operands):
                    fields[name] = held
    for method in methods.values():
        if method.name == "open":
            opened(reader, method, fields)
    for name in changing(methods.values(), called, reader.scope.project):
        fields.pop(name, None)
    return fields, names


def changing(methods: Iterable[Method], called: Sequence[str], project: Project) -> set[str]:
    """Return the fields that methods of an object change which are called, by Flink or others."""
    found: set[str] = set()
    for method in methods:
        if method.body is None or method.name == "open":
            continue
        own = {name for name, _ in method.parameters} | declared_in(method.body)
        names = {name for name in written_in(method.body) if name not in own}
        names |= {name for name in set_by_this(method.body) if name in own}
        if not names:
            continue
        if method.name in called or any(method.name in called_in(s) for s in project.sources):
            found |= names
    return found


def locals_around(node: Node) -> frozenset[str]:
    """Return the variables and parameters of the methods and lambdas around code."""
    found: set[str] = set()
    one = node.parent
    while one is not None:
        if one.type in _FUNCTIONS:
            found |= declared_in(one)
        one = one.parent
    return frozenset(found)
