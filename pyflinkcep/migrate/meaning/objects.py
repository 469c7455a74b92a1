# SPDX-License-Identifier: Apache-2.0
"""Reads the creation of objects."""

from __future__ import annotations

from collections.abc import Sequence

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method, read_type
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import INT, STRING, column_names, discriminator
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.static import STATIC
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Make, Untranslatable

__all__ = [
    "as_row",
    "built",
    "constructed",
    "initial",
    "known_function",
    "made",
    "opened",
    "read_creation",
]

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
    type_ = read_type(node.child_by_field_name("type"))
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
        return Call("copy of", values, type_)
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
    values = {
        field: given.get(field) or _default(reader, fields[field].type, None, of)
        for field in fields
    }
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


def made(type_: JavaType, fields: dict[str, Expression]) -> Make:
    """Return a new object."""
    return Make(type_.name, tuple(fields.items()), type_)


def constructed(
    reader: Reading, of: JavaClass, arguments: Sequence[Node | Expression], node: Node
) -> Make:
    """Return an object of a class of the project: its fields after the constructor."""
    fields = reader.scope.project.all_fields(of)
    constructor = next(
        (m for m in of.methods.get(of.name, []) if len(m.parameters) == len(arguments)), None
    )
    if constructor is not None:
        values = [
            _argument(reader, argument, (type_,))
            for argument, (_, type_) in zip(arguments, constructor.parameters, strict=True)
        ]
        given = assigned(reader, of, constructor, values)
    else:
        own = [name for name in fields if name in fields]
        all_arguments = of.kind == "record" or {"@AllArgsConstructor", "@Value"} & of.annotations
        if arguments and not (all_arguments and len(own) == len(arguments)):
            raise reader.no(node, f"no constructor of {of.name} has {len(arguments)} arguments")
        values = [_argument(reader, argument) for argument in arguments]
        given = dict(zip(own, values, strict=False))
    result: dict[str, Expression] = {}
    for name, field in fields.items():
        value = given.get(name)
        result[name] = (
            as_row(reader, reader.assigned(value, field.type), field.type)
            if value is not None
            else _default(reader, field.type, field.value, of)
        )
    lineage = list(reader.scope.project.lineage(of))
    if len(lineage) > 1 or reader.scope.project.subclasses(of):
        column = discriminator(of, reader.scope.project)
        kinds = {name for one in lineage for name in column_names(one, reader.scope.project)}
        if column in kinds and column not in result:
            result[column] = Const(of.name, STRING)
    return made(JavaType(of.name), result)


def _argument(
    reader: Reading, given: Node | Expression, types: tuple[JavaType, ...] = ()
) -> Expression:
    return given if isinstance(given, Expression) else reader.argument(given, types)


def as_row(reader: Reading, value: Expression, type_: JavaType) -> Expression:
    """Return an event, or a list of events, as fields of a row that has their columns alone."""
    is_list = type_.name in ("List", "Collection", "Iterable", "Set") and len(type_.args) == 1
    of = reader.class_of(type_.args[0] if is_list else type_)
    is_null = isinstance(value, Const) and value.value is None
    if of is None or of.kind == "enum" or is_null or isinstance(value, Make):
        return value
    if is_list and isinstance(value, Call) and value.name == "List.of":
        return value
    names = tuple(Const(name, STRING) for name in column_names(of, reader.scope.project))
    return Call("rows of" if is_list else "row of", (value, *names), value.type)


def _default(reader: Reading, type_: JavaType, value: Node | None, of: JavaClass) -> Expression:
    if value is not None:
        return reader.assigned(reader.at(of.source, of).read(value), type_)
    zeros: dict[str, int | float | bool] = {"int": 0, "long": 0, "short": 0, "byte": 0,
        "double": 0.0, "float": 0.0, "boolean": False}  # fmt: skip
    if type_.name in zeros and not type_.dims:
        return Const(zeros[type_.name], type_)
    return Const(None, JavaType("null"))


def assigned(
    reader: Reading, of: JavaClass, constructor: Method, values: list[Expression]
) -> dict[str, Expression]:
    """Return what a constructor assigns to fields."""
    names = {
        name: reader.assigned(value, type_)
        for (name, type_), value in zip(constructor.parameters, values, strict=True)
    }
    inner = reader.at(of.source, of, values=names)
    found: dict[str, Expression] = {}
    for statement in children(constructor.body) if constructor.body is not None else ():
        if statement.type == "explicit_constructor_invocation":
            found.update(_delegated(inner, of, statement))
            continue
        target, value = _assignment(statement)
        if target is None or value is None:
            raise Untranslatable(f"the constructor of {of.name}: {text_of(statement)[:60]}")
        found[target] = inner.read(value)
        if target not in names:
            inner.scope.values[target] = found[target]
    return found


def initial(reader: Reading, of: JavaClass) -> dict[str, Expression]:
    """Return the fields of an object that have a value before its constructor runs."""
    found: dict[str, Expression] = {}
    for name, field in reader.scope.project.all_fields(of).items():
        if field.value is None:
            continue
        try:
            value = reader.at(of.source, of).argument(field.value)
        except Untranslatable:
            continue
        if not (isinstance(value, Call) and not value.operands):
            found[name] = reader.assigned(value, field.type)
    return found


def opened(reader: Reading, method: Method) -> dict[str, Expression]:
    """Return the fields that a method sets, of those whose values are known."""
    found: dict[str, Expression] = {}
    for statement in children(method.body) if method.body is not None else ():
        target, value = _assignment(statement)
        if target is None or value is None:
            continue
        try:
            found[target] = reader.read(value)
        except Untranslatable:
            found.pop(target, None)
    return found


def _delegated(reader: Reading, of: JavaClass, node: Node) -> dict[str, Expression]:
    arguments = children(node.child_by_field_name("arguments"))
    if text_of(node.child_by_field_name("constructor")) == "this":
        target: JavaClass | None = of
    else:
        target = reader.class_of(of.superclass) if of.superclass is not None else None
    if target is None:
        if arguments:
            raise reader.no(node, f"the superclass of {of.name} is not in the sources")
        return {}
    return dict(constructed(reader, target, arguments, node).fields)


def _assignment(statement: Node) -> tuple[str | None, Node | None]:
    """Return the field and the value of ``this.x = …;``."""
    inner = children(statement)[0] if statement.type == "expression_statement" else None
    if inner is None or inner.type != "assignment_expression":
        return None, None
    if text_of(inner.child_by_field_name("operator")) != "=":
        return None, None
    left = text_of(inner.child_by_field_name("left")).removeprefix("this.")
    return (left if left.isidentifier() else None), inner.child_by_field_name("right")
