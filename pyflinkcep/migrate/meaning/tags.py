# SPDX-License-Identifier: Apache-2.0
"""Output tags, as constants by their names."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import Field, JavaType, read_type
from pyflinkcep.migrate.java.literals import literal_of
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Const

__all__ = ["declared_tag", "field_tag"]


def made_tag(node: Node | None) -> Const | None:
    """Return ``new OutputTag<…>("name")`` as a constant; None for others."""
    if node is None or node.type != "object_creation_expression":
        return None
    type_ = read_type(node.child_by_field_name("type"))
    arguments = children(node.child_by_field_name("arguments"))
    name = literal_of(arguments[0]) if arguments else None
    if type_.name != "OutputTag" or name is None or not isinstance(name.value, str):
        return None
    return Const(name.value, type_)


def field_tag(field: Field | None) -> Const | None:
    """Return the tag that a field holds; None for others."""
    if field is None or field.type.name != "OutputTag":
        return None
    return _typed(made_tag(field.value), field.type)


def declared_tag(reader: Reading, node: Node) -> Const | None:
    """Return the tag that a variable of a method around, or a field, holds; None for others."""
    name = text_of(node)
    scope = reader.scope
    found = scope.project.constant_field(name, scope.source, scope.within)
    if found is not None and found[0].type.name == "OutputTag":
        return _typed(made_tag(found[0].value), found[0].type)
    around = node.parent
    while around is not None:
        if around.type in ("block", "constructor_body"):
            for statement in children(around):
                if statement.type != "local_variable_declaration":
                    continue
                for part in statement.children_by_field_name("declarator"):
                    if text_of(part.child_by_field_name("name")) == name:
                        declared = read_type(statement.child_by_field_name("type"))
                        return _typed(made_tag(part.child_by_field_name("value")), declared)
        around = around.parent
    return None


def _typed(tag: Const | None, declared: JavaType) -> Const | None:
    if tag is None or tag.type.args or not declared.args:
        return tag
    return Const(tag.value, declared)
