# SPDX-License-Identifier: Apache-2.0
"""Reads the creation of objects."""

from __future__ import annotations

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, children
from pyflinkcep.migrate.java.types import INT, STRING
from pyflinkcep.migrate.meaning.construction import as_row, constructed, default, made
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.static import STATIC
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Make, Untranslatable

__all__ = ["built", "known_function", "read_creation"]

_FUNCTIONS = (
    "SimpleCondition", "IterativeCondition", "FilterFunction", "Predicate", "Function",
    "BiPredicate", "BiFunction", "RichIterativeCondition",
)  # fmt: skip
_EMPTY = {
    "ArrayList": "List.of", "LinkedList": "List.of", "HashSet": "Set.of", "TreeSet": "Set.of",
    "LinkedHashSet": "Set.of", "HashMap": "Map.of", "LinkedHashMap": "Map.of",
    "ArrayDeque": "List.of",
}  # fmt: skip


def read_creation(reader: Reading, node: Node) -> Expression:
    """Return what ``new`` makes."""
    type_ = reader.type_at(node.child_by_field_name("type"))
    function = _function(reader, node, type_)
    if function is not None:
        return function
    if any(part.type == "class_body" for part in children(node)):
        raise reader.no(node, f"an anonymous {type_.name} as a value")
    arguments = children(node.child_by_field_name("arguments"))
    of = reader.class_of(type_)
    if of is not None:
        return constructed(reader, of, arguments, node)
    values = tuple(reader.argument(argument) for argument in arguments)
    if type_.name in _EMPTY and not (values and values[0].type != INT):
        return Call(_EMPTY[type_.name], (), type_)
    if type_.name in _EMPTY and len(values) == 1:
        if isinstance(values[0], Call) and values[0].name == "List.of":
            return Call("List.of", values[0].operands, JavaType(type_.name, values[0].type.args))
        if _EMPTY[type_.name] == "Map.of":
            args = type_.args or values[0].type.args
            return Call("copy of map", values, JavaType(type_.name, args))
        args = type_.args or values[0].type.args[:1]
        return Call("copy of", values, JavaType(type_.name, args))
    if type_.name in ("JSONObject", "ObjectNode", "JsonObject") and not values:
        return Call("Map.of", (), JavaType("JSONObject"))
    if type_.name == "BigDecimal" and len(values) == 1 and isinstance(values[0], Const):
        return Call("BigDecimal.of", (Const(str(values[0].value), STRING),), type_)
    if type_.name == "JSONObject" and len(values) == 1 and values[0].type == STRING:
        return Call("json of", values, JavaType("JsonNode"))
    if type_.name in ("Date", "Timestamp") and len(values) == 1:
        return Call("time of millis", values, type_)
    if type_.name in ("StringBuilder", "StringBuffer", "String") and len(values) <= 1:
        text = values[0] if values and values[0].type != INT else Const("", STRING)
        return Call("builder", (text,), type_) if type_.name != "String" else text
    if type_.name == "StringJoiner" and len(values) in (1, 3):
        return Call("joiner", values, type_)
    if type_.name.startswith("Tuple") and values and not type_.args:
        type_ = JavaType(type_.name, tuple(value.type for value in values))
    if type_.name.startswith("Tuple") and values:
        return made(type_, {f"f{place}": value for place, value in enumerate(values)})
    if type_.name == "BigDecimal" and len(values) == 1 and values[0].type == STRING:
        return Call("BigDecimal.of", values, type_)
    boxed = STATIC.get((type_.name, "valueOf"))  # new Long(text), as before Java 9
    value = None if boxed is None else boxed(reader, values, node)
    if value is not None:
        return value
    raise reader.no(node, f"the class {type_} is not in the sources")


def built(reader: Reading, owner: Make, name: str, arguments: list[Node]) -> Make:
    """Return what a method of a builder makes: the object, or a builder that knows more."""
    of = reader.class_named(owner.class_name)
    if of is None:
        raise Untranslatable(f"the builder of {owner.class_name}")
    fields = reader.scope.project.all_fields(of)
    if name != "build":
        if name not in fields or len(arguments) != 1:
            raise Untranslatable(f"{name}() of the builder of {of.name}")
        type_ = fields[name].type
        value = reader.assigned(reader.argument(arguments[0], (type_,)), type_)
        value = as_row(reader, value, type_)
        return Make(owner.class_name, (*owner.fields, (name, value)), owner.type)
    given = dict(owner.fields)
    values = {}
    for field, declared in fields.items():
        initial = declared.value if "@Default" in declared.modifiers else None
        values[field] = given.get(field) or default(reader, declared.type, initial, of)
    return made(JavaType(of.name), values)


def _function(reader: Reading, node: Node, type_: JavaType) -> Expression | None:
    """Return an object that is a condition or a function; None for others."""
    of = reader.class_of(type_)
    has_body = any(part.type == "class_body" for part in children(node))
    named = of is not None and any(reader.scope.project.is_a(of, one) for one in _FUNCTIONS)
    if not named and not (has_body and type_.name in _FUNCTIONS):
        return None
    return known_function(reader, node) if reader.findings.resolve is not None else None


def known_function(reader: Reading, node: Node) -> Expression:
    """Return an object that is a condition or a function, by its number."""
    findings = reader.findings
    if findings.resolve is None:
        raise reader.no(node, "a function as a value")
    findings.objects.append(findings.resolve(node, reader.source, reader.scope.within))
    return Const(len(findings.objects) - 1, JavaType("Function"))
