# SPDX-License-Identifier: Apache-2.0
"""What the fields of a new object hold: initial values, blocks, constructors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method
from pyflinkcep.migrate.java.project import INT, STRING, column_names, discriminator
from pyflinkcep.migrate.java.source import Node, children, text_of, written_in
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.library import static_call
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Make, Untranslatable

if TYPE_CHECKING:
    from pyflinkcep.migrate.meaning.reader import Reader

_ZEROS: dict[str, int | float | bool] = {
    "int": 0, "long": 0, "short": 0, "byte": 0, "double": 0.0, "float": 0.0, "boolean": False,
}  # fmt: skip


def made(type_: JavaType, fields: dict[str, Expression]) -> Make:
    """Return a new object."""
    return Make(type_.name, tuple(fields.items()), type_)


def constructed(
    reader: Reader, of: JavaClass, arguments: Sequence[Node | Expression], node: Node
) -> Make:
    """Return an object of a class of the project: its fields after the constructor."""
    fields = reader.scope.project.all_fields(of)
    given = set_fields(reader, of, arguments, node)
    result: dict[str, Expression] = {}
    for name, field in fields.items():
        value = given.get(name)
        result[name] = (
            as_row(reader, reader.assigned(value, field.type), field.type)
            if value is not None
            else default(reader, field.type, field.value, of)
        )
    lineage = list(reader.scope.project.lineage(of))
    if len(lineage) > 1 or reader.scope.project.subclasses(of):
        column = discriminator(of, reader.scope.project)
        kinds = {name for one in lineage for name in column_names(one, reader.scope.project)}
        if column in kinds and column not in result:
            result[column] = Const(of.name, STRING)
    return made(JavaType(of.name), result)


def as_row(reader: Reader, value: Expression, type_: JavaType) -> Expression:
    """Return an event, or a list of events, as fields of a row that has their columns alone."""
    is_list = type_.name in ("List", "Collection", "Iterable", "Set") and len(type_.args) == 1
    of = reader.class_of(type_.args[0] if is_list else type_)
    is_null = isinstance(value, Const) and value.value is None
    if of is None or of.kind == "enum" or is_null or isinstance(value, Make):
        return value
    if is_list and isinstance(value, Call) and value.operation is ops.LIST:
        return value
    names = tuple(Const(name, STRING) for name in column_names(of, reader.scope.project))
    return Call(ops.ROWS_OF if is_list else ops.ROW_OF, (value, *names), value.type)


def default(reader: Reader, type_: JavaType, value: Node | None, of: JavaClass) -> Expression:
    """Return what a field holds that no constructor sets."""
    if value is not None:
        return reader.assigned(reader.at(of.source, of).read(value), type_)
    return zero(type_)


def zero(type_: JavaType) -> Expression:
    """Return what a field holds that nothing sets."""
    if type_.name in _ZEROS and not type_.dims:
        return Const(_ZEROS[type_.name], type_)
    return Const(None, JavaType("null"))


def set_fields(
    reader: Reader, of: JavaClass, arguments: Sequence[Node | Expression], node: Node
) -> dict[str, Expression]:
    """Return what a constructor sets, and those that it calls, declared or not."""
    constructor = reader.constructor(of, arguments)
    if constructor is not None:
        types = [type_ for _, type_ in constructor.parameters]
        values = [
            _argument(reader, argument, types[min(place, len(types) - 1) :][:1])
            for place, argument in enumerate(arguments)
        ]
        return assigned(reader, of, constructor, reader.packed(constructor, values))
    names = given_fields(of, len(arguments))
    if len(names) != len(arguments):
        raise reader.no(node, f"no constructor of {of.name} has {len(arguments)} arguments")
    values = [_argument(reader, argument) for argument in arguments]
    found = {**_implied(reader, of, node), **dict(zip(names, values, strict=True))}
    inner = reader.at(of.source, of, values=dict(found), fields=found)
    _run(inner, of, _compact(of), found)
    return found


def given_fields(of: JavaClass, count: int) -> list[str]:
    """Return the fields that a constructor sets which is not written: of a record or by Lombok."""
    fields = {n: f for n, f in of.fields.items() if "static" not in f.modifiers}
    everything = [n for n, f in fields.items() if f.value is None or "final" not in f.modifiers]
    required = [
        n for n, f in fields.items() if f.value is None and {"final", "@NonNull"} & f.modifiers
    ]
    whole = of.annotations & {"@AllArgsConstructor", "@Value"} or of.kind == "record"
    if whole and len(everything) == count:
        return everything
    if of.annotations & {"@RequiredArgsConstructor", "@Data"} and len(required) == count:
        return required
    return []


def _compact(of: JavaClass) -> list[Node]:
    """Return the statements of the compact constructor of a record."""
    body = of.node.child_by_field_name("body")
    for part in children(body) if body is not None else ():
        if part.type == "compact_constructor_declaration":
            return children(part.child_by_field_name("body"))
    return []


def _argument(
    reader: Reader, given: Node | Expression, types: Sequence[JavaType] = ()
) -> Expression:
    return given if isinstance(given, Expression) else reader.argument(given, tuple(types))


def assigned(
    reader: Reader, of: JavaClass, constructor: Method, values: list[Expression]
) -> dict[str, Expression]:
    """Return what a constructor assigns to fields."""
    names = {
        name: reader.assigned(value, type_)
        for (name, type_), value in zip(constructor.parameters, values, strict=True)
    }
    statements = children(constructor.body) if constructor.body is not None else []
    explicit = [one for one in statements if one.type == "explicit_constructor_invocation"]
    found: dict[str, Expression] = {}
    fields = initial(reader, of)
    inner = reader.at(of.source, of, values=names, fields=fields)
    for one in explicit:
        found.update(_delegated(inner, of, one))
    if not explicit:
        found.update(_implied(inner, of, constructor.node))
    fields.update(found)
    _run(inner, of, [one for one in statements if one not in explicit], found)
    return found


def _implied(reader: Reader, of: JavaClass, node: Node) -> dict[str, Expression]:
    """Return what is set without being called: by the constructor above, and by blocks."""
    above = reader.class_of(of.superclass) if of.superclass is not None else None
    found = set_fields(reader.at(of.source, of), above, [], node) if above is not None else {}
    inner = reader.at(of.source, of, fields={**initial(reader, of), **found})
    for block in of.blocks:
        _run(inner, of, children(block), found)
    return found


def _run(
    reader: Reader, of: JavaClass, statements: Sequence[Node], found: dict[str, Expression]
) -> None:
    """Add to the fields what statements of a constructor set."""
    for statement in statements:
        if statement.type in ("line_comment", "block_comment") or _checks(statement):
            continue
        target, value = _assignment(statement)
        if target is None or value is None:
            raise Untranslatable(f"the constructor of {of.name}: {text_of(statement)[:60]}")
        field = reader.scope.project.field(of, target)
        held = reader.argument(value, (field.type,) if field is not None else ())
        found[target] = held if field is None else reader.assigned(held, field.type)
        reader.scope.fields[target] = found[target]


def _checks(statement: Node) -> bool:
    """Whether a statement only refuses values: a program that runs has none such."""
    if statement.type == "if_statement":
        then = statement.child_by_field_name("consequence")
        body = children(then) if then.type == "block" else [then]
        only = all(part.type == "throw_statement" for part in body)
        return bool(only and statement.child_by_field_name("alternative") is None)
    call = children(statement)[0] if statement.type == "expression_statement" else None
    return (
        call is not None
        and call.type == "method_invocation"
        and text_of(call.child_by_field_name("object")) in ("Objects", "Preconditions", "Validate")
    )


def initial(reader: Reader, of: JavaClass) -> dict[str, Expression]:
    """Return the fields of an object that have a value before its constructor runs."""
    found: dict[str, Expression] = {}
    for name, field in reader.scope.project.all_fields(of).items():
        if field.value is None:
            continue
        owner = reader.scope.project.owner_of(of, name) or of
        try:
            value = reader.at(owner.source, owner).argument(field.value, (field.type,))
        except Untranslatable:
            continue
        if not (isinstance(value, Call) and not value.operands):
            found[name] = reader.assigned(value, field.type)
    return found


def opened(reader: Reader, method: Method, fields: dict[str, Expression]) -> None:
    """Let fields have what a method sets; those that it sets in other ways are not known then."""
    reader.scope.fields = fields
    for statement in children(method.body) if method.body is not None else ():
        target, value = _assignment(statement)
        if target is None or value is None:
            for name in written_in(statement):
                fields.pop(name, None)
            continue
        try:
            fields[target] = reader.read(value)
        except Untranslatable:
            fields.pop(target, None)


def _delegated(reader: Reader, of: JavaClass, node: Node) -> dict[str, Expression]:
    arguments = children(node.child_by_field_name("arguments"))
    if text_of(node.child_by_field_name("constructor")) == "this":
        return set_fields(reader, of, arguments, node)
    target = reader.class_of(of.superclass) if of.superclass is not None else None
    if target is None:
        if arguments:
            raise reader.no(node, f"the superclass of {of.name} is not in the sources")
        return {}
    found = set_fields(reader, target, arguments, node)
    for block in of.blocks:
        _run(reader.at(of.source, of, fields=dict(found)), of, children(block), found)
    return found


def _assignment(statement: Node) -> tuple[str | None, Node | None]:
    """Return the field and the value of ``this.x = …;``."""
    inner = children(statement)[0] if statement.type == "expression_statement" else None
    if inner is None or inner.type != "assignment_expression":
        return None, None
    if text_of(inner.child_by_field_name("operator")) != "=":
        return None, None
    left = text_of(inner.child_by_field_name("left")).removeprefix("this.")
    return (left if left.isidentifier() else None), inner.child_by_field_name("right")


_FUNCTIONS = (
    "SimpleCondition", "IterativeCondition", "FilterFunction", "Predicate", "Function",
    "BiPredicate", "BiFunction", "RichIterativeCondition",
)  # fmt: skip
_EMPTY = {
    "ArrayList": ops.LIST, "LinkedList": ops.LIST, "ArrayDeque": ops.LIST, "HashSet": ops.SET,
    "TreeSet": ops.SET, "LinkedHashSet": ops.SET, "HashMap": ops.MAP, "LinkedHashMap": ops.MAP,
}  # fmt: skip


def read_creation(reader: Reader, node: Node) -> Expression:
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
    empty = _EMPTY.get(type_.name)
    if empty is not None and not (values and values[0].type != INT):
        return Call(empty, (), type_)
    if empty is not None and len(values) == 1:
        if isinstance(values[0], Call) and values[0].operation is ops.LIST:
            return Call(ops.LIST, values[0].operands, JavaType(type_.name, values[0].type.args))
        if empty is ops.MAP:
            args = type_.args or values[0].type.args
            return Call(ops.MAP_OF, values, JavaType(type_.name, args))
        args = type_.args or values[0].type.args[:1]
        return Call(ops.LIST_OF, values, JavaType(type_.name, args))
    if type_.name in ("JSONObject", "ObjectNode", "JsonObject") and not values:
        return Call(ops.MAP, (), JavaType("JSONObject"))
    if type_.name == "BigDecimal" and len(values) == 1 and isinstance(values[0], Const):
        return Call(ops.DECIMAL, (Const(str(values[0].value), STRING),), type_)
    if type_.name == "JSONObject" and len(values) == 1 and values[0].type == STRING:
        return Call(ops.JSON_OF, values, JavaType("JsonNode"))
    if type_.name in ("Date", "Timestamp") and len(values) == 1:
        return Call(ops.TIME_OF_MILLIS, values, type_)
    if type_.name in ("StringBuilder", "StringBuffer", "String") and len(values) <= 1:
        text = values[0] if values and values[0].type != INT else Const("", STRING)
        return Call(ops.BUILDER, (text,), type_) if type_.name != "String" else text
    if type_.name.startswith("Tuple") and values and not type_.args:
        type_ = JavaType(type_.name, tuple(value.type for value in values))
    if type_.name.startswith("Tuple") and values:
        return made(type_, {f"f{place}": value for place, value in enumerate(values)})
    if type_.name == "BigDecimal" and len(values) == 1 and values[0].type == STRING:
        return Call(ops.DECIMAL, values, type_)
    value = static_call(reader, type_.name, "valueOf", values, node)  # new Long(text)
    if value is not None:
        return value
    raise reader.no(node, f"the class {type_} is not in the sources")


def built(reader: Reader, owner: Make, name: str, arguments: list[Node]) -> Make:
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


def _function(reader: Reader, node: Node, type_: JavaType) -> Expression | None:
    """Return an object that is a condition or a function; None for others."""
    of = reader.class_of(type_)
    has_body = any(part.type == "class_body" for part in children(node))
    named = of is not None and any(reader.scope.project.is_a(of, one) for one in _FUNCTIONS)
    if not named and not (has_body and type_.name in _FUNCTIONS):
        return None
    return known_function(reader, node) if reader.findings.resolve is not None else None


def known_function(reader: Reader, node: Node) -> Expression:
    """Return an object that is a condition or a function, by its number."""
    findings = reader.findings
    if findings.resolve is None:
        raise reader.no(node, "a function as a value")
    findings.objects.append(findings.resolve(node, reader.source, reader.scope.within))
    return Const(len(findings.objects) - 1, JavaType("Function"))
