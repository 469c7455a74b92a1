# SPDX-License-Identifier: Apache-2.0
"""Fields that are read by their names: of JSON, maps and rows."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, LONG, STRING, UNKNOWN, JavaType
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Get, Unary, Var

_MADE = ("JSONObject", "ObjectNode", "JsonObject")
_MAPS = ("Map", "HashMap", "LinkedHashMap", "TreeMap")
_ARRAYS = ("JSONArray", "JsonArray", "ArrayNode")
_NODE_CLASSES = (
    "JsonNode", "ObjectNode", "JsonObject", "JsonElement", "MissingNode", "JSONObject", *_ARRAYS,
)  # fmt: skip
_BY_NAME = (*_NODE_CLASSES, "Row", "GenericRecord")
_DOUBLE, _NODE, _MISSING = JavaType("double"), JavaType("JsonNode"), JavaType("MissingNode")
_TYPED = {
    "String": STRING, "Integer": JavaType("Integer"), "Int": INT, "IntValue": INT,
    "Long": JavaType("Long"), "LongValue": LONG, "Double": JavaType("Double"),
    "DoubleValue": _DOUBLE, "Boolean": JavaType("Boolean"), "BooleanValue": BOOLEAN,
    "JSONObject": JavaType("JSONObject"), "AsJsonObject": JavaType("JsonObject"),
    "FloatValue": JavaType("float"), "Float": JavaType("Float"),
    "JSONArray": JavaType("JSONArray"), "AsJsonArray": JavaType("JsonArray"),
}  # fmt: skip
_NODES = {
    "asText": STRING, "textValue": STRING, "asString": STRING, "getAsString": STRING,
    "asInt": INT, "intValue": INT, "getAsInt": INT, "asLong": LONG, "longValue": LONG,
    "getAsLong": LONG, "asDouble": _DOUBLE, "doubleValue": _DOUBLE, "getAsDouble": _DOUBLE,
    "asBoolean": BOOLEAN, "booleanValue": BOOLEAN, "getAsBoolean": BOOLEAN,
    "getAsJsonObject": _NODE, "getAsJsonArray": _NODE, "deepCopy": _NODE,
}  # fmt: skip
_DEFAULTS: dict[JavaType, str | int | float | bool] = {
    STRING: "", INT: 0, LONG: 0, _DOUBLE: 0.0, BOOLEAN: False,
}  # fmt: skip
"""What a field that is missing is, where that is no error."""
_ELEMENTS = ("get", "path", "getJSONObject", "getJSONArray", "optJSONObject")
_FIELDS = ("get", "path", "getField", "getFieldAs", "opt", "with", "at")


def is_json(type_: JavaType) -> bool:
    """Whether values of a type are JSON, whose methods are no getters of columns."""
    return type_.name in _NODE_CLASSES


def parsed_json(reader: Reading, node: Node, name: str, arguments: list[Node]) -> Expression | None:
    """Return what a library makes of a text of JSON; None for other calls."""
    owner = text_of(node.child_by_field_name("object"))
    plain = name in ("readTree", "parseString", "parseObject") or (
        name == "parse" and owner.rstrip("()").endswith(("JsonParser", "JSON"))
    )
    if plain and len(arguments) == 1:
        return Call(ops.JSON_OF, (reader.read(arguments[0]),), _NODE)
    if name not in ("readValue", "fromJson", "parseObject") or len(arguments) != 2:
        return None
    kind = text_of(arguments[1]).removesuffix(".class")
    if arguments[1].type != "class_literal":
        return None
    type_ = JavaType(kind.rsplit(".", 1)[-1])
    fields = reader.scope.project.all_fields(reader.class_of(type_))
    names = [(field.alias, name) for name, field in fields.items() if field.alias]
    pairs = tuple(Const(one, STRING) for pair in names for one in pair)
    return Call(ops.JSON_OF, (reader.read(arguments[0]), *pairs), type_)


def json_call(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method that reads a field by its name; None for others."""
    if owner.type.name in _MADE and not isinstance(owner, Get):  # an object that code fills
        if name in ("put", "set", "addProperty") and len(arguments) == 2:
            operands = tuple(reader.argument(argument) for argument in arguments)
            return Call(ops.PUT, (owner, *operands), JavaType("void"))
        if name in ("toJSONString", "toString") and not arguments:
            return Call(ops.JSON, (owner,), STRING)
    is_map = owner.type.name in _MAPS and isinstance(owner, Var) and owner.name == "event"
    if owner.type.name not in _BY_NAME and not is_map:
        return None
    if isinstance(owner, Call) and owner.operation is ops.JSON_OF and not arguments:
        return owner if name in ("getAsJsonObject", "asObject") else None
    if name in ("size", "length") and not arguments and owner.type.name in _NODE_CLASSES:
        listed = JavaType("List", (STRING,))
        whole = attrs.evolve(owner, type=listed) if isinstance(owner, Get) else owner
        return Call(ops.SIZE, (whole,), INT)
    parsed = is_parsed(owner, reader.findings.parsed)
    if not arguments and parsed and name in _KINDS:
        return Call(ops.JSON_IS, (owner, Const(_KINDS[name], STRING)), BOOLEAN)
    if not arguments and (parsed or isinstance(owner, Get | Call)):
        return _converted(owner, name, parsed)
    if not arguments:
        return None
    keys = [reader.argument(argument) for argument in arguments]
    if len(keys) == 1 and owner.type.name in _NODE_CLASSES and keys[0].type.is_whole:
        type_ = _TYPED.get(name.removeprefix("get")) if name.startswith("get") else None
        type_ = _NODE if name in _ELEMENTS else type_
        if type_ is not None:
            return Call(ops.JSON_ITEM, (owner, keys[0]), type_)
    if name == "findValue" and len(keys) == 1 and parsed:
        return Call(ops.JSON_FIND, (owner, keys[0]), _NODE)
    if name in ("get", "path") and len(keys) == 1 and parsed and not isinstance(keys[0], Const):
        return Call(ops.JSON_ITEM, (owner, keys[0]), _NODE)
    if owner.type.name == "Row" and len(keys) == 1 and keys[0].type.is_whole:
        place = keys[0].value if isinstance(keys[0], Const) else None
        if name not in ("getField", "getFieldAs") or place is None:
            return None
        reader.note(node, f"field {place} of the row is taken as the column f{place}")
        return Get(owner, f"f{place}", _written_type(reader, node) or UNKNOWN)
    if name in _NODES and isinstance(owner, Get) and len(keys) == 1:
        other = reader.cast(keys[0], _NODES[name])
        if parsed:
            kind = Const(_NODES[name].name, STRING)
            return Call(ops.JSON_AS, (owner, kind, other), _NODES[name])
        return _or_else(owner, _NODES[name], other)
    key = keys[0].value if isinstance(keys[0], Const) else None
    if not isinstance(key, str):
        return None
    key = key.removeprefix("/") if name == "at" else key
    if "/" in key:
        return None
    value_type = owner.type.args[1] if len(owner.type.args) == 2 else UNKNOWN
    if name == "findValue" and len(keys) == 1 and owner.type.name in _NODE_CLASSES:
        of = owner.name if isinstance(owner, Get) else "the event"
        reader.note(node, f"{key} is taken as a field of {of}, wherever JSON has it")
        return Get(owner, key, _NODE)
    if name in _FIELDS and len(keys) == 1:
        type_ = _NODE if owner.type.name in _NODE_CLASSES else value_type
        type_ = _written_type(reader, node) or type_
        type_ = _MISSING if name == "path" else type_
        return Get(owner, key, UNKNOWN if type_.name == "Object" else type_)
    if name in ("has", "containsKey", "hasNonNull") and len(keys) == 1:
        reader.note(node, f"a missing {key} and a null one are the same here")
        return Unary("!", Call(ops.IS_NULL, (Get(owner, key, UNKNOWN),), BOOLEAN), BOOLEAN)
    for prefix in ("get", "opt"):
        found = _TYPED.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        default = _DEFAULTS.get(found.unboxed) if found is not None else None
        if found is not None and prefix == "opt" and default is not None:
            other = Const(default, found.unboxed) if len(keys) == 1 else keys[1]
            return _or_else(Get(owner, key, found), found.unboxed, other)
        if found is not None and len(keys) == 1:
            return Get(owner, key, found)
    if name == "getOrDefault" and len(keys) == 2:
        return Call(ops.OR_ELSE, (Get(owner, key, keys[1].type), keys[1]), keys[1].type)
    return None


def _or_else(owner: Get | Call, type_: JavaType, other: Expression) -> Expression:
    """Return a field as a value of a type, or another value if it is missing."""
    return Call(ops.OR_ELSE, (attrs.evolve(owner, type=type_), other), type_)


def is_parsed(of: Expression, names: Collection[str]) -> bool:
    """Whether a value is JSON that code reads itself, rather than of an event."""
    while isinstance(of, Get) or (isinstance(of, Call) and of.operation is ops.JSON_ITEM):
        of = of.owner if isinstance(of, Get) else of.operands[0]
    if isinstance(of, Var):
        return of.name in names
    return isinstance(of, Call) and of.operation in (ops.JSON_OF, ops.JSON_FIND)


_KINDS = {
    "isTextual": "text", "isNumber": "number", "isInt": "int", "isLong": "int",
    "isDouble": "double", "isBoolean": "boolean", "isArray": "array", "isObject": "object",
    "isJsonArray": "array", "isJsonObject": "object",
}  # fmt: skip


def _written_type(reader: Reading, node: Node) -> JavaType | None:
    """Return the type argument of a call such as ``row.<Integer>getFieldAs("n")``."""
    given = children(node.child_by_field_name("type_arguments"))
    return reader.type_at(given[0]) if given else None


def _converted(owner: Expression, name: str, parsed: bool) -> Expression | None:
    """Return a node of JSON as a value of a type."""
    type_ = _NODES.get(name)
    if type_ == _NODE:
        return owner
    if type_ is not None and parsed and "as" in name.lower():
        operands: tuple[Expression, ...] = (owner, Const(type_.name, STRING))
        if owner.type == _MISSING and name.startswith("as"):
            operands = (*operands, Const(_DEFAULTS[type_], type_))
        return Call(ops.JSON_AS, operands, type_)
    if isinstance(owner, Call) and owner.operation is not ops.JSON_ITEM:
        return None
    if type_ is not None and isinstance(owner, Get | Call):
        if owner.type == _MISSING and name.startswith("as"):
            return _or_else(owner, type_, Const(_DEFAULTS[type_], type_))
        return Call(ops.NOT_NULL, (attrs.evolve(owner, type=type_),), type_)
    if name in ("isNull", "isMissingNode", "isJsonNull"):
        return Call(ops.IS_NULL, (owner,), BOOLEAN)
    return None
