# SPDX-License-Identifier: Apache-2.0
"""Reads calls of methods and constructors: what they return, what a new object holds."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, STRING, JavaClass, JavaType, Method
from pyflinkcep.migrate.java.project import column_names, discriminator, filled, property_of
from pyflinkcep.migrate.java.source import Node, children, text_of, written_in
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.json_nodes import is_json, parsed_json
from pyflinkcep.migrate.meaning.library import (
    CONSTANTS,
    LISTS,
    MAPS,
    METHODS,
    STATIC,
    by_name,
    library_call,
    static_call,
)
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.statements import function_called, value_of_body
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Const,
    Expression,
    Get,
    Lambda,
    Make,
    Untranslatable,
    Var,
    field_of,
)


def enum_static(
    reader: Reading, of: JavaClass, method: str, arguments: list[Node]
) -> Expression | None:
    """Return what ``valueOf`` or ``values`` of an enum returns; None for other methods."""
    constants = tuple(Const(name, JavaType(of.name)) for name in of.constants)
    if method == "values" and not arguments:
        return Call(ops.LIST, constants, JavaType(of.name, (), 1))
    if method != "valueOf" or len(arguments) != 1:
        return None
    name = reader.read(arguments[0])
    if isinstance(name, Const) and name.value in of.constants:
        return Const(name.value, JavaType(of.name))
    return Call(ops.ENUM_OF, (name, *constants), JavaType(of.name))


def enum_value(reader: Reading, owner: Expression, of: JavaClass, method: str) -> Expression | None:
    """Return what a getter of an enum returns, as a choice of its constants; None if none."""
    declared = next((m for m in of.methods.get(method, []) if not m.parameters), None)
    if declared is None:
        return enum_field(reader, owner, of, property_of(method))
    if declared.body is None:
        return None
    values: dict[str, Expression | None] = {}
    for name in of.constants:
        inner = reader.at(of.source, of, this=Const(name, JavaType(of.name)))
        values[name] = value_of_body(inner, declared, [], reader)
    return _chosen(reader, owner, of, values)


def enum_field(reader: Reading, owner: Expression, of: JavaClass, name: str) -> Expression | None:
    """Return a field of an enum, as a choice of its constants; None if it is not known."""
    values: dict[str, Expression | None] = {}
    for constant, node in of.constants.items():
        inner, given = reader.at(of.source, of), children(node.child_by_field_name("arguments"))
        fields = {**initial(inner, of), **set_fields(inner, of, given, node)}
        values[constant] = fields.get(name)
    return _chosen(reader, owner, of, values)


def _chosen(
    reader: Reading, owner: Expression, of: JavaClass, values: dict[str, Expression | None]
) -> Expression | None:
    if isinstance(owner, Const):
        return values.get(str(owner.value))
    found: Expression | None = None
    for constant, value in reversed(values.items()):
        if value is None:
            return None
        test = Call(ops.EQUALS, (owner, Const(constant, JavaType(of.name))), BOOLEAN)
        found = value if found is None else reader.choice(test, value, found)
    return found


_LIBRARY = {
    *(owner for owner, _, _ in (*METHODS, *STATIC)), *LISTS, *MAPS, "ZonedDateTime", "LocalTime",
    "BigInteger", "Matcher", "Comparator",
}  # fmt: skip
"""Classes whose getters are no columns."""
_OF_FUNCTIONS = ("Supplier", "Predicate", "Function", "Operator", "Consumer")
_OF_ENUM = ("name", "toString", "equals", "ordinal")
_OF_VALUES = frozenset({"@Data", "@Value", "@EqualsAndHashCode"})
"""Annotations of Lombok by which ``equals`` compares fields."""
_TO_JSON = ("toJson", "writeValueAsString", "toJSONString")
_MOST_CALLS = 12
"""How deep calls of the project's methods are followed."""


def method_call(reader: Reading, node: Node) -> Expression:
    """Return what a call means."""
    name = text_of(node.child_by_field_name("name"))
    owner = node.child_by_field_name("object")
    arguments = children(node.child_by_field_name("arguments"))
    if owner is not None and owner.type == "super":
        raise reader.no(node, f"super.{name}() is not followed")
    if owner is None:
        return _own(reader, name, arguments, node)
    if owner.type == "this" and reader.scope.this is None:
        return _own(reader, name, arguments, node)
    if tuple(text_of(owner).split(".")) in CONSTANTS:
        return on_value(reader, reader.read(owner), name, arguments, node)
    parsed = parsed_json(reader, node, name, arguments)
    if parsed is not None:
        return parsed
    if name in _TO_JSON and len(arguments) == 1:
        return Call(ops.JSON, (reader.argument(arguments[0]),), STRING)
    if name == "createObjectNode":
        return Call(ops.MAP, (), JavaType("JSONObject"))
    if owner.type in ("identifier", "field_access") and not is_value(reader, owner):
        return _static(reader, text_of(owner), name, arguments, node)
    return on_value(reader, reader.read(owner), name, arguments, node)


def is_value(reader: Reading, owner: Node) -> bool:
    """Whether what stands before a dot is a value rather than a class."""
    first = owner
    while first.type == "field_access":
        first = first.child_by_field_name("object")
    if first.type in ("this", "method_invocation") or first.type != "identifier":
        return True
    if reader.is_variable(text_of(first)):
        return True
    if reader.class_named(text_of(first)) is not None:
        of = reader.class_named(text_of(owner))
        return owner is not first and of is None
    if owner is not first:
        last = text_of(owner.child_by_field_name("field"))
        return not last[:1].isupper()
    return not text_of(owner)[:1].isupper()


def _own(reader: Reading, name: str, arguments: list[Node], node: Node) -> Expression:
    """Return a call without an owner: of the object itself, or of a class around."""
    scope = reader.scope
    if scope.this is not None:
        of = reader.class_of(scope.this.type)
        if of is not None and scope.project.overloads(of, name, len(arguments)):
            return on_value(reader, scope.this, name, arguments, node)
        of_object = name == "getClass" or (
            of is not None and of.kind == "enum" and name in _OF_ENUM
        )
        if of is not None and (of_object or (not arguments and scope.project.getter(of, name))):
            return on_value(reader, scope.this, name, arguments, node)
    if scope.dynamic is not None:
        method = reader.method(scope.dynamic, name, arguments)
        if method is not None:
            return _followed(reader, method, scope.dynamic, None, arguments, node)
    around = scope.within
    while around is not None:
        method = reader.method(around, name, arguments)
        if method is not None:
            return _followed(reader, method, around, None, arguments, node)
        around = around.outer
    for full in scope.source.imports.values():
        if full.endswith("." + name):
            owner = full.removesuffix("." + name).rsplit(".", 1)[-1]
            return _static(reader, owner, name, arguments, node)
    of = scope.within
    while of is not None and of.kind != "enum":
        of = of.outer
    found = None if of is None else enum_static(reader, of, name, arguments)
    if found is not None:
        return found
    raise reader.no(node, f"the method {name}() is not in the sources")


def _static(
    reader: Reading, owner: str, name: str, arguments: list[Node], node: Node
) -> Expression:
    of = reader.class_named(owner)
    simple = owner.rsplit(".", 1)[-1]
    if of is not None:
        method = reader.method(of, name, arguments)
        if method is not None:
            return _followed(reader, method, of, None, arguments, node)
        if name == "builder" and not arguments and "@Builder" in of.annotations:
            return Make(of.name, (), JavaType(f"builder of {of.name}"))
        made = enum_static(reader, of, name, arguments) if of.kind == "enum" else None
        if made is not None:
            return made
    if (simple, name) == ("SimpleCondition", "of"):
        return known_function(reader, node)
    operands = tuple(reader.argument(argument) for argument in arguments)
    found = static_call(reader, simple, name, operands, node)
    if found is None:
        raise reader.no(node, f"{simple}.{name}() has no translation")
    return found


def on_value(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression:
    """Return a method of an object."""
    if isinstance(owner, Make) and owner.type.name.startswith("builder of "):
        return built(reader, owner, name, arguments)
    if isinstance(owner, Lambda) and name not in ("test", "apply", "filter"):
        raise reader.no(node, f"{name}() of a function")
    if isinstance(owner, Lambda) or owner.type == JavaType("Function"):
        values = [reader.argument(argument) for argument in arguments]
        return function_called(reader, owner, values, node)
    of = reader.class_of(owner.type)
    if of is not None:
        found = _of_project(reader, owner, of, name, arguments, node)
        if found is not None:
            return found
    found = library_call(reader, owner, name, arguments, node)
    if found is None and of is None and owner.type.name in ("?", "Object"):
        operands = tuple(reader.argument(argument) for argument in arguments)
        found = by_name(reader, owner, name, operands, node)
    if found is None and not arguments and _may_be_property(reader, owner, of):
        property_ = property_of(name)
        if property_:
            where = f"{name}() is not in the sources"
            reader.note(node, f"{where}: taken as the column {property_}")
            type_ = BOOLEAN if name.startswith("is") else JavaType("?")
            return Get(owner, property_, type_)
    if found is None:
        raise reader.no(node, f"{name}() of {owner.type} has no translation")
    return found


def _may_be_property(reader: Reading, owner: Expression, of: JavaClass | None) -> bool:
    if of is not None:
        return reader.scope.project.method(of, "", 0) is None
    known = owner.type.is_boxed or owner.type.name in _LIBRARY or is_json(owner.type)
    known = known or owner.type.dims > 0 or owner.type.name.endswith(_OF_FUNCTIONS)
    return isinstance(owner, Var | Get | Call) and not known


def _of_project(
    reader: Reading, owner: Expression, of: JavaClass, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method of one of the project's classes; None if it has none of the name."""
    project = reader.scope.project
    if of.kind == "enum":
        for constant, one in of.constants.items():
            if any(part.type == "class_body" for part in children(one)):
                raise reader.no(node, f"{constant} of the enum {of.name} has methods of its own")
        is_own = bool(arguments) or project.method(of, name, 0) is not None
        if name in ("name", "toString") and not is_own:
            return Call(ops.NAME_OF, (owner,), STRING)
        if name == "ordinal" and not is_own:
            return Call(ops.ORDINAL, (owner, *(Const(one, STRING) for one in of.constants)), INT)
        found = None if arguments else enum_value(reader, owner, of, name)
        if found is not None:
            return found
    method = reader.method(of, name, arguments)
    if method is not None and method.body is None and not arguments:
        held = _same_field(reader, owner, of, name)
        if held is not None:
            return held
    if method is not None:
        count = len(method.parameters)
        for one in project.subclasses(of):  # the event's class says which one is called
            if any(m.body is not None and m.takes(count) for m in one.methods.get(name, [])):
                raise reader.no(node, f"{name}() is another one in {one.name}")
    if method is not None and method.body is not None:
        return _followed(reader, method, of, owner, arguments, node)
    if not arguments:
        field = project.getter(of, name)
        if field is not None:
            return field_of(owner, field.name, reader.type_of_member(owner.type, field.type))
        field = project.field(of, property_of(name)) if method is None else None
        if field is not None:
            reader.note(node, f"{name}() is not in the sources: taken as the field {field.name}")
            return Get(owner, field.name, field.type)
    if name == "equals" and len(arguments) == 1:
        if of.kind == "class" and not of.annotations & _OF_VALUES:
            what = f"{of.name} has no equals(), so Java compares references; here, values are"
            reader.note(node, what)
        return Call(ops.EQUALS, (owner, reader.read(arguments[0])), BOOLEAN)
    if name == "toString" and not arguments and method is None:
        return object_text(reader, owner, node)
    if name == "getClass" and not arguments:
        kinds = [of, *project.subclasses(of)]
        if len(kinds) == 1:
            return Const(of.name, JavaType("Class"))
        return Get(owner, discriminator(of, project), JavaType("Class"))
    return None


def _same_field(reader: Reading, owner: Expression, of: JavaClass, name: str) -> Expression | None:
    """Return the field that a getter of an interface returns, the same in all classes."""
    project = reader.scope.project
    kinds = [k for k in project.subclasses(of) if k.kind != "interface"]
    found = [project.getter(k, name) for k in kinds if "abstract" not in k.annotations]
    fields = {(field.name, field.type) for field in found if field is not None}
    if len(fields) != 1 or None in found:
        return None
    field_name, type_ = fields.pop()
    return field_of(owner, field_name, type_)


def _followed(
    reader: Reading,
    method: Method,
    of: JavaClass | None,
    owner: Expression | None,
    arguments: list[Node],
    node: Node,
) -> Expression:
    """Return the value of a method of the project, with its body in place of the call."""
    if reader.scope.depth >= _MOST_CALLS:
        raise reader.no(node, f"{method.name}() calls itself, or other methods too deeply")
    if method.body is None:
        raise reader.no(node, f"{method.name}() has no body in the sources")
    spread = max(0, len(arguments) - len(method.parameters))
    types = [type_ for _, type_ in (*method.parameters, *method.parameters[-1:] * spread)]
    values = [
        reader.argument(argument, (type_,))
        for argument, type_ in zip(arguments, types, strict=False)
    ]
    values = reader.packed(method, values)
    scope = reader.scope
    within = method.owner
    inner = reader.at(
        within.source,
        within,
        this=owner,
        fields=_fields_seen(reader, method) if owner is None else {},
        dynamic=of if scope.dynamic is not None and "static" not in method.modifiers else None,
    )
    if within.is_anonymous:
        inner.scope.around = scope.around
    if owner is not None:
        inner.scope.types = dict(zip(within.variables, owner.type.args, strict=False))
        method = attrs.evolve(method, type=filled(method.type, inner.scope.types))
    return value_of_body(inner, method, values, reader)


def _fields_seen(reader: Reading, method: Method) -> dict[str, Expression]:
    """Return the fields whose values are known, of those that a method sees: no variables."""
    scope = reader.scope
    owner = method.owner
    if owner.is_anonymous:
        return scope.fields
    hidden = {n[5:]: value for n, value in scope.fields.items() if n.startswith("this.")}
    known = {n: value for n, value in scope.fields.items() if n not in scope.around} | hidden
    if "static" not in method.modifiers:
        return known
    found = {name: scope.project.field(owner, name) for name in known}
    return {
        name: known[name]
        for name, field in found.items()
        if field is not None and "static" in field.modifiers
    }


_LOMBOK = frozenset({"@Data", "@Value", "@ToString"})


def object_text(reader: Reading, value: Expression, node: Node) -> Expression:
    """Return the text of an object of the project; other values unchanged."""
    of = reader.class_of(value.type)
    if of is None or (of.kind == "enum" and reader.scope.project.method(of, "toString", 0) is None):
        return value
    if reader.scope.project.method(of, "toString", 0) is not None:
        return on_value(reader, value, "toString", [], node)
    if of.kind == "record" or _LOMBOK & of.annotations:
        begin, end = "[]" if of.kind == "record" else "()"
        pieces: list[Expression] = [Const(f"{of.name}{begin}", STRING)]
        fields = [f for f in of.fields.values() if not {"static", "transient"} & f.modifiers]
        for field in fields:
            before = f"{'' if field is fields[0] else ', '}{field.name}="
            inner = object_text(reader, Get(value, field.name, field.type), node)
            pieces += [Const(before, STRING), inner]
        return Call(ops.CONCAT, (*pieces, Const(end, STRING)), STRING)
    reader.note(node, f"{of.name} has no toString() in the sources: its text differs here")
    return value


# --- new objects


def constructed(
    reader: Reading, of: JavaClass, arguments: Sequence[Node | Expression], node: Node
) -> Make:
    """Return an object of a class of the project: its fields after the constructor."""
    fields = reader.scope.project.all_fields(of)
    given = set_fields(reader, of, arguments, node)
    result: dict[str, Expression] = {}
    for name, field in fields.items():
        value = given.get(name)
        if value is not None:
            result[name] = reader.as_row(reader.assigned(value, field.type), field.type)
        elif field.value is not None:
            result[name] = reader.assigned(reader.at(of.source, of).read(field.value), field.type)
        else:
            result[name] = zero(field.type)
    lineage = list(reader.scope.project.lineage(of))
    if len(lineage) > 1 or reader.scope.project.subclasses(of):
        column = discriminator(of, reader.scope.project)
        kinds = {name for one in lineage for name in column_names(one, reader.scope.project)}
        if column in kinds and column not in result:
            result[column] = Const(of.name, STRING)
    return Make(of.name, tuple(result.items()), JavaType(of.name))


def zero(type_: JavaType) -> Expression:
    """Return what a field holds that nothing sets."""
    if type_ == BOOLEAN:
        return Const(False, type_)
    if type_.is_boxed or not type_.is_numeric or type_.name == "char":
        return Const(None, JavaType("null"))
    return Const(0.0 if type_.is_floating else 0, type_)


def set_fields(
    reader: Reading, of: JavaClass, arguments: Sequence[Node | Expression], node: Node
) -> dict[str, Expression]:
    """Return what a constructor sets, and those that it calls, declared or not."""
    if of.is_anonymous:
        return _implied(reader, of, node, arguments)
    constructor = reader.constructor(of, arguments)
    if constructor is not None:
        types = [type_ for _, type_ in constructor.parameters]
        values = [
            _argument(reader, argument, *types[min(place, len(types) - 1) :][:1])
            for place, argument in enumerate(arguments)
        ]
        return assigned(reader, of, constructor, reader.packed(constructor, values))
    names = given_fields(of, len(arguments))
    if len(names) != len(arguments):
        raise reader.no(node, f"no constructor of {of.name} has {len(arguments)} arguments")
    values = [_argument(reader, argument) for argument in arguments]
    body = of.node.child_by_field_name("body")
    if any(one.type == "compact_constructor_declaration" for one in children(body)):
        raise reader.no(node, f"the record {of.name} has statements in its constructor")
    return {**_implied(reader, of, node), **dict(zip(names, values, strict=True))}


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


def _argument(reader: Reading, given: Node | Expression, *types: JavaType) -> Expression:
    return given if isinstance(given, Expression) else reader.argument(given, types)


def assigned(
    reader: Reading, of: JavaClass, constructor: Method, values: list[Expression]
) -> dict[str, Expression]:
    """Return what a constructor assigns to fields."""
    names = {
        name: reader.assigned(value, type_)
        for (name, type_), value in zip(constructor.parameters, values, strict=True)
    }
    statements = children(constructor.body)
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


def _implied(
    reader: Reading, of: JavaClass, node: Node, arguments: Sequence[Node | Expression] = ()
) -> dict[str, Expression]:
    """Return what is set without being called: by the constructor above, and by blocks."""
    above = reader.class_of(of.superclass) if of.superclass is not None else None
    if of.blocks:
        raise reader.no(node, f"{of.name} has statements outside of its methods")
    return set_fields(reader, above, arguments, node) if above is not None else {}


def _run(
    reader: Reading, of: JavaClass, statements: Sequence[Node], found: dict[str, Expression]
) -> None:
    """Add to the fields what statements of a constructor set."""
    for statement in statements:
        if _checks(statement):
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


def initial(reader: Reading, of: JavaClass) -> dict[str, Expression]:
    """Return the fields of an object that have a value before its constructor runs."""
    found: dict[str, Expression] = {}
    for name, field in reader.scope.project.all_fields(of).items():
        if field.value is None:
            continue
        owner = reader.scope.project.owner_of(of, name) or of
        try:
            values = reader.scope.values if owner.is_anonymous else {}
            before = {name: held for name, held in found.items() if name in owner.fields}
            inner = reader.at(owner.source, owner, values=values, fields=before)
            value = inner.argument(field.value, (field.type,))
        except Untranslatable:
            continue
        if not (isinstance(value, Call) and not value.operands):
            found[name] = reader.assigned(value, field.type)
    return found


def opened(reader: Reading, method: Method, fields: dict[str, Expression]) -> None:
    """Let fields have what a method sets; those that it sets in other ways are not known then."""
    of = method.owner
    values = reader.scope.values if of.is_anonymous else {}
    inner = reader.at(of.source, of, values=values, fields=fields)
    for statement in children(method.body):
        try:
            _run(inner, of, [statement], fields)
        except Untranslatable:
            for name in written_in(statement):
                fields.pop(name, None)


def _delegated(reader: Reading, of: JavaClass, node: Node) -> dict[str, Expression]:
    arguments = children(node.child_by_field_name("arguments"))
    if text_of(node.child_by_field_name("constructor")) == "this":
        return set_fields(reader, of, arguments, node)
    target = reader.class_of(of.superclass) if of.superclass is not None else None
    if target is None:
        if arguments:
            raise reader.no(node, f"the superclass of {of.name} is not in the sources")
        return {}
    return set_fields(reader, target, arguments, node)


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
    empty = _EMPTY.get(type_.name)
    if empty is not None and not (values and values[0].type != INT):
        return Call(empty, (), type_)
    if empty is not None and len(values) == 1:
        if isinstance(values[0], Call) and values[0].operation is ops.LIST:
            held, is_set = values[0].operands, empty is ops.SET
            is_list = not is_set or all(isinstance(one, Const) for one in held)
            held = tuple(dict.fromkeys(held)) if is_set else held
            kind = JavaType(type_.name, values[0].type.args)
            return Call(ops.LIST if is_list else empty, held, kind)
        if empty is ops.MAP:
            args = type_.args or values[0].type.args
            return Call(ops.MAP_OF, values, JavaType(type_.name, args))
        args = type_.args or values[0].type.args[:1]
        copied = ops.TO_SET if empty is ops.SET else ops.LIST_OF
        return Call(copied, values, JavaType(type_.name, args))
    if type_.name in ("StringBuilder", "StringBuffer", "String") and len(values) <= 1:
        text = values[0] if values and values[0].type != INT else Const("", STRING)
        return Call(ops.BUILDER, (text,), type_) if type_.name != "String" else text
    if type_.name.startswith("Tuple") and values and not type_.args:
        type_ = JavaType(type_.name, tuple(value.type for value in values))
    if type_.name.startswith("Tuple") and values:
        fields = tuple((f"f{place}", value) for place, value in enumerate(values))
        return Make(type_.name, fields, type_)
    for name in ("new", "valueOf"):  # new Long(text)
        made = static_call(reader, type_.name, name, values, node)
        if made is not None:
            return made
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
        value = reader.as_row(value, type_)
        return Make(owner.class_name, (*owner.fields, (name, value)), owner.type)
    given = dict(owner.fields)
    values = {}
    for field, declared in fields.items():
        values[field] = given.get(field) or zero(declared.type)
        if field not in given and declared.value and "@Default" in declared.modifiers:
            held = reader.at(of.source, of).read(declared.value)
            values[field] = reader.assigned(held, declared.type)
    return Make(of.name, tuple(values.items()), JavaType(of.name))


def _function(reader: Reading, node: Node, type_: JavaType) -> Expression | None:
    """Return an object that is a condition or a function; None for others."""
    of = reader.class_of(type_)
    has_body = any(part.type == "class_body" for part in children(node))
    named = of is not None and any(reader.scope.project.is_a(of, one) for one in _FUNCTIONS)
    if not named and not (has_body and type_.name in _FUNCTIONS):
        return None
    return known_function(reader, node) if reader.findings.resolve is not None else None


def known_function(reader: Reading, node: Node) -> Expression:
    """Return an object that is a condition or a function."""
    findings = reader.findings
    if findings.resolve is None:
        raise reader.no(node, "a function as a value")
    return Const(findings.resolve(node, reader.scope), JavaType("Function"))
