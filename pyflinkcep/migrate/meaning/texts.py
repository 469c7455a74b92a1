# SPDX-License-Identifier: Apache-2.0
"""Objects as texts, as ``toString`` writes them."""

from __future__ import annotations

from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.java.types import STRING
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Get

__all__ = ["object_text"]

_LOMBOK = frozenset({"@Data", "@Value", "@ToString"})


def object_text(reader: Reading, value: Expression, node: Node) -> Expression:
    """Return the text of an object of the project; other values unchanged."""
    of = reader.class_of(value.type)
    if of is None or (of.kind == "enum" and reader.scope.project.method(of, "toString", 0) is None):
        return value
    if reader.scope.project.method(of, "toString", 0) is not None:
        return reader.call(value, "toString", [], node)
    if of.kind == "record" or _LOMBOK & of.annotations:
        begin, end = "[]" if of.kind == "record" else "()"
        fields = {
            name: field
            for name, field in of.fields.items()
            if not {"static", "transient"} & field.modifiers
        }
        text: Expression = Const(f"{of.name}{begin}", STRING)
        for place, (name, field) in enumerate(fields.items()):
            before = f"{', ' if place else ''}{name}="
            text = Call("concat", (text, Const(before, STRING)), STRING)
            inner = object_text(reader, Get(value, name, field.type), node)
            text = Call("concat", (text, inner), STRING)
        return Call("concat", (text, Const(end, STRING)), STRING)
    reader.note(node, f"{of.name} has no toString() in the sources: its text differs here")
    return value
