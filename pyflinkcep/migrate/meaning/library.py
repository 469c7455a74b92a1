# SPDX-License-Identifier: Apache-2.0
"""The methods of Java's library, Flink and the usual JSON libraries."""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    UNKNOWN,
    is_boxed,
    is_enum,
    is_floating,
    is_numeric,
    is_plain,
    is_whole,
    unboxed,
)
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.streams import element_of, list_call, map_call, stream_call
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Cast,
    Const,
    Expression,
    Get,
    Lambda,
    Make,
    Unary,
    Var,
)

_TIMES = (
    "Duration", "Instant", "Date", "Timestamp", "LocalDateTime", "ZonedDateTime", "LocalDate",
)  # fmt: skip
_DECIMAL = JavaType("BigDecimal")
_PARTS = {"getHour": "hour", "getMinute": "minute", "getSecond": "second", "getYear": "year",
          "getMonthValue": "month", "getDayOfMonth": "day"}  # fmt: skip
_DURATIONS = {"toMillis": 1, "getSeconds": 1000, "toSeconds": 1000, "toMinutes": 60_000,
              "toHours": 3_600_000, "toDays": 86_400_000}  # fmt: skip


def _of_time(owner: Expression, name: str, operands: tuple[Expression, ...]) -> Expression | None:
    if name in _DURATIONS and owner.type.name == "Duration" and not operands:
        match owner:
            case Call("Duration.of", (Const(value=int(count)), Const(value=int(unit)))):
                return Const(count * unit // _DURATIONS[name], LONG)
        return Call("Duration.to", (owner, Const(_DURATIONS[name], INT)), LONG)
    utc = (
        len(operands) == 1 and isinstance(operands[0], Const) and operands[0].value in ("UTC", "Z")
    )
    if name in ("atZone", "atOffset") and utc and owner.type.name == "Instant":
        return Call("copy", (owner,), JavaType("ZonedDateTime"))
    same = len(operands) == 1 and operands[0].type == owner.type
    if name in ("isAfter", "isBefore", "after", "before") and same:
        return Call(name.removeprefix("is").lower(), (owner, *operands), BOOLEAN)
    if name in _PARTS and owner.type.name in ("LocalDateTime", "ZonedDateTime", "LocalDate"):
        return Call(f"time.{_PARTS[name]}", (owner,), INT)
    if name in ("toEpochMilli", "getTime") and not operands:
        if isinstance(owner, Call) and owner.name == "time of millis":
            return owner.operands[0]
        return Call("millis of", (owner,), LONG)
    if name == "compareTo" and len(operands) == 1 and owner.type.name != "Duration":
        return Call("compare", (owner, *operands), INT)
    if name == "compareTo" and len(operands) == 1:
        return Call("compare", (owner, *operands), INT)
    return None


def time_call(owner: Expression, name: str, operands: tuple[Expression, ...]) -> Expression | None:
    """Return a method of a time, duration or BigDecimal; None for others."""
    if owner.type == _DECIMAL:
        return _of_decimal(owner, name, operands)
    return _of_time(owner, name, operands) if owner.type.name in _TIMES else None


def _of_decimal(
    owner: Expression, name: str, operands: tuple[Expression, ...]
) -> Expression | None:
    if name == "compareTo" and len(operands) == 1 and operands[0].type == _DECIMAL:
        return Call("compare", (owner, *operands), INT)
    if name in ("add", "subtract", "multiply") and len(operands) == 1:
        return Call(f"BigDecimal.{name}", (owner, *operands), owner.type)
    if name == "signum" and not operands:
        zero = Call("BigDecimal.of", (Const("0", STRING),), owner.type)
        return Call("compare", (owner, zero), INT)
    if name == "doubleValue":
        return Call("BigDecimal.doubleValue", (owner,), JavaType("double"))
    if name in ("intValue", "longValue") and not operands:
        return Call("BigDecimal.longValue", (owner,), LONG)
    return None


DOUBLE = JavaType("double")
Static = Callable[["Reading", tuple[Expression, ...], Node], Expression | None]


def _call(name: str, type_: JavaType, count: int) -> Static:
    def made(_: Reading, operands: tuple[Expression, ...], __: Node) -> Expression | None:
        return Call(name, operands, type_) if len(operands) == count else None

    return made


def _parsed(name: str, type_: str) -> Static:
    def made(_: Reading, operands: tuple[Expression, ...], __: Node) -> Expression | None:
        if len(operands) != 1:
            return None
        if operands[0].type not in (STRING, UNKNOWN):
            return operands[0] if name.startswith("valueOf") else None
        return Call(f"parse {type_}", operands, JavaType(type_))

    return made


def _boxed(type_: str) -> Static:
    def made(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
        if len(operands) == 1 and is_numeric(operands[0].type):
            return reader.cast(operands[0], JavaType(type_))
        if len(operands) == 1 and unboxed(operands[0].type) == BOOLEAN and type_ == "boolean":
            return operands[0]
        return _parsed("valueOf", type_)(reader, operands, node)

    return made


def _compare(type_: str) -> Static:
    def made(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
        if len(operands) != 2 or not all(is_numeric(o.type) or o.type == UNKNOWN for o in operands):
            return None
        a, b = (reader.cast(operand, JavaType(type_)) for operand in operands)
        return Call("compare", (a, b), INT)

    return made


def _math(name: str) -> Static:
    def made(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
        return _math_call(reader, name, operands)

    return made


_OF_DOUBLE = (
    "sqrt", "pow", "floor", "ceil", "exp", "log", "log10", "sin", "cos", "hypot", "signum",
    "toRadians", "toDegrees", "tan", "atan2", "asin", "acos", "atan", "rint", "cbrt",
)  # fmt: skip
_COUNTS = {"pow": 2, "hypot": 2, "atan2": 2}


def _math_call(reader: Reading, name: str, operands: tuple[Expression, ...]) -> Expression | None:
    if not operands or not all(is_numeric(operand.type) for operand in operands):
        return None
    if name in _OF_DOUBLE and len(operands) == _COUNTS.get(name, 1):
        wide = tuple(reader.cast(operand, DOUBLE) for operand in operands)
        return Call(f"Math.{name}", wide, DOUBLE)
    type_ = unboxed(operands[0].type)
    if name == "abs" and len(operands) == 1:
        type_ = type_ if is_floating(type_) or type_ == LONG else INT
        return Call("Math.abs", (reader.cast(operands[0], type_),), type_)
    if name in ("max", "min") and len(operands) == 2:
        common = reader.common_type(*operands)
        wide = tuple(reader.cast(operand, common) for operand in operands)
        return Call(f"Math.{name}", wide, common)
    if name == "round" and len(operands) == 1:
        result = INT if type_ == JavaType("float") else LONG
        value = operands[0] if type_ == JavaType("float") else reader.cast(operands[0], DOUBLE)
        return Call("Math.round", (value,), result)
    return None


def _is_null(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
    return Call("is null", operands, BOOLEAN) if len(operands) == 1 else None


def _non_null(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
    return reader.negated(Call("is null", operands, BOOLEAN)) if len(operands) == 1 else None


def _constant_boolean(
    reader: Reading, operands: tuple[Expression, ...], _: Node
) -> Expression | None:
    if len(operands) != 1:
        return None
    return Call("parse boolean", operands, BOOLEAN) if operands[0].type == STRING else operands[0]


def formatted(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
    """Return a text made by a pattern, if the pattern is a constant."""
    if len(operands) > 1 and operands[0].type.name == "Locale":
        operands = operands[1:]
    literal = bool(operands) and isinstance(operands[0], Const)
    return Call("String.format", operands, STRING) if literal else None


def _between(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
    return Call("Duration.between", operands, JavaType("Duration")) if len(operands) == 2 else None


def _of_millis(unit: int) -> Static:
    def made(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
        if len(operands) != 1:
            return None
        return Call("Duration.of", (*operands, Const(unit, INT)), JavaType("Duration"))

    return made


def _added(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    return reader.operation("+", *operands, node) if len(operands) == 2 else None


def _streamed(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    source = operands[0] if operands else None
    if source is None or not (source.type.dims or source.type.name in ("Iterable", "List")):
        return None
    return Call("stream", (source,), JavaType("Stream", (element_of(source.type),)))


def _tuple(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    types = tuple(operand.type for operand in operands)
    fields = tuple((f"f{place}", operand) for place, operand in enumerate(operands))
    return Make(f"Tuple{len(operands)}", fields, JavaType(f"Tuple{len(operands)}", types))


def _listed(kind: str) -> Static:
    def made(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
        if len(operands) == 1 and operands[0].type.dims:
            element = element_of(operands[0].type)
            if unboxed(element) == element and (is_numeric(element) or element == BOOLEAN):
                return None  # a list of one array
            return Call("copy of", operands, JavaType(kind, (element,)))
        common = operands[0].type if operands else UNKNOWN
        given = (common,) if operands and all(o.type == common for o in operands) else ()
        mixed = (UNKNOWN,) if operands and not given else given
        return Call("List.of", operands, JavaType(kind, mixed))

    return made


def _mapped(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    types = tuple(operand.type for operand in operands[:2])
    return Call("Map.of", operands, JavaType("Map", types)) if len(operands) % 2 == 0 else None


def _passed(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    return operands[0] if len(operands) == 1 else None


def _listed_again(
    reader: Reading, operands: tuple[Expression, ...], node: Node
) -> Expression | None:
    """Return the list that ``Lists.newArrayList`` makes of several values, or of many in one."""
    many = ("Iterable", "List", "Collection", "Set", "Iterator")
    if len(operands) == 1 and operands[0].type.name in many:
        return Call("copy of", operands, JavaType("List", operands[0].type.args))
    return _listed("List")(reader, operands, node)


def _of_iterable(name: str, type_: JavaType | None) -> Static:
    def made(_: Reading, operands: tuple[Expression, ...], __: Node) -> Expression | None:
        result = type_ if type_ is not None else element_of(operands[0].type) if operands else None
        if len(operands) != 1 or result is None:
            return None
        copied = Call("copy of", operands, JavaType("List", operands[0].type.args))
        is_events = isinstance(operands[0], Call) and operands[0].name == "events"
        return Call(name, operands if is_events else (copied,), result)

    return made


def _range(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    return Call("range", operands, JavaType("IntStream", (INT,))) if len(operands) == 2 else None


def _closed(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    if len(operands) != 2:
        return None
    last = reader.operation("+", operands[1], Const(1, INT), node)
    return Call("range", (operands[0], last), JavaType("IntStream", (INT,)))


def _chained(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    return Call("Stream.concat", operands, operands[0].type) if len(operands) == 2 else None


def _regex(reader: Reading, operands: tuple[Expression, ...], node: Node) -> Expression | None:
    return Call("regex", operands, JavaType("Regex")) if len(operands) == 1 else None


def _one_of(_: Reading, operands: tuple[Expression, ...], __: Node) -> Expression | None:
    """Return whether a text is one of several."""
    if len(operands) < 2:
        return None
    listed = Call("List.of", operands[1:], JavaType("List", (STRING,)))
    return Call("List.contains", (listed, operands[0]), BOOLEAN)


def _numbers_of(type_: JavaType, kind: str) -> Static:
    def made(_: Reading, operands: tuple[Expression, ...], __: Node) -> Expression | None:
        if len(operands) == 1 and operands[0].type.dims:
            return Call("stream", operands, JavaType(kind, (type_,)))
        listed = Call("List.of", operands, JavaType("List", (type_,)))
        return Call("stream", (listed,), JavaType(kind, (type_,)))

    return made


def _floored(name: str) -> Static:
    def made(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
        if len(operands) != 2 or not all(is_numeric(one.type) for one in operands):
            return None
        return Call(name, operands, reader.common_type(*operands))

    return made


STATIC: dict[tuple[str, str], Static] = {
    ("Objects", "equals"): _call("Objects.equals", BOOLEAN, 2),
    ("StringUtils", "equals"): _call("Objects.equals", BOOLEAN, 2),
    ("Objects", "isNull"): _is_null,
    ("Objects", "nonNull"): _non_null,
    ("StringUtils", "isEmpty"): _call("StringUtils.isEmpty", BOOLEAN, 1),
    ("StringUtils", "isBlank"): _call("StringUtils.isBlank", BOOLEAN, 1),
    ("Boolean", "parseBoolean"): _constant_boolean,
    ("Boolean", "valueOf"): _constant_boolean,
    ("String", "valueOf"): _call("text", STRING, 1),
    ("Integer", "toString"): _call("text", STRING, 1),
    ("Long", "toString"): _call("text", STRING, 1),
    ("Double", "toString"): _call("text", STRING, 1),
    **{(owner, "toString"): _call("text", STRING, 1) for owner in ("Float", "Short", "Byte")},
    ("Objects", "toString"): _call("text", STRING, 1),
    ("String", "format"): formatted,
    ("Double", "isNaN"): _call("isNaN", BOOLEAN, 1),
    ("System", "currentTimeMillis"): _call("System.currentTimeMillis", LONG, 0),
    ("Duration", "between"): _between,
    ("Collections", "emptyList"): _call("List.of", JavaType("List"), 0),
    ("Instant", "now"): _call("Instant.now", JavaType("Instant"), 0),
    **{
        ("Duration", name): _of_millis(unit)
        for name, unit in (
            ("ofMillis", 1), ("ofSeconds", 1000), ("ofMinutes", 60_000), ("ofHours", 3_600_000),
            ("ofDays", 86_400_000),
        )
    },
    **{
        (owner, f"parse{name}"): _parsed("parse", type_)
        for owner, name, type_ in (
            ("Integer", "Int", "int"), ("Long", "Long", "long"), ("Double", "Double", "double"),
            ("Float", "Float", "float"), ("Short", "Short", "short"), ("Byte", "Byte", "byte"),
        )
    },
    **{
        (owner, "valueOf"): _boxed(type_)
        for owner, type_ in (
            ("Integer", "int"), ("Long", "long"), ("Double", "double"), ("Float", "float"),
            ("Short", "short"), ("Byte", "byte"),
        )
    },
    **{
        (owner, "compare"): _compare(type_)
        for owner, type_ in (
            ("Integer", "int"), ("Long", "long"), ("Double", "double"), ("Float", "float"),
        )
    },
    **{
        ("Math", name): _math(name) for name in (*_OF_DOUBLE, "abs", "max", "min", "round")
    },
    **{
        (owner, name): _math(name)
        for owner in ("Integer", "Long", "Double", "Float") for name in ("max", "min")
    },
    **{(owner, "sum"): _added for owner in ("Integer", "Long", "Double", "Float")},
    **{(f"Tuple{count}", "of"): _tuple for count in range(1, 26)},
    ("StreamSupport", "stream"): _streamed,
    ("Arrays", "stream"): _streamed,
    ("Arrays", "asList"): _listed("List"),
    ("List", "of"): _listed("List"),
    ("Set", "of"): _listed("Set"),
    ("ImmutableList", "of"): _listed("List"),
    ("EnumSet", "of"): _listed("Set"),
    ("StringUtils", "equalsAny"): _one_of,
    ("Collections", "disjoint"): lambda r, o, _: (
        r.negated(Call("List.meets", o, BOOLEAN)) if len(o) == 2 else None),
    ("IntStream", "of"): _numbers_of(INT, "IntStream"),
    ("LongStream", "of"): _numbers_of(LONG, "LongStream"),
    ("DoubleStream", "of"): _numbers_of(DOUBLE, "DoubleStream"),
    ("Objects", "requireNonNullElse"): lambda _, o, __: (
        Call("or else", o, o[0].type) if len(o) == 2 else None),
    ("Integer", "bitCount"): _call("bit count", INT, 1),
    ("Math", "floorMod"): _floored("Math.floorMod"),
    ("Math", "floorDiv"): _floored("Math.floorDiv"),
    ("Character", "toUpperCase"): _call("toUpperCase", JavaType("char"), 1),
    ("Character", "toLowerCase"): _call("toLowerCase", JavaType("char"), 1),
    ("ImmutableSet", "of"): _listed("Set"),
    ("Map", "of"): _mapped,
    ("ImmutableMap", "of"): _mapped,
    ("Collections", "emptyMap"): _mapped,
    ("Collections", "emptySet"): _listed("Set"),
    ("Collections", "singletonList"): _listed("List"),
    ("Collections", "singleton"): _listed("Set"),
    **{("Collections", f"unmodifiable{kind}"): _passed
       for kind in ("List", "Set", "Map", "Collection")},
    ("Lists", "newArrayList"): _listed_again,
    ("Iterables", "size"): _of_iterable("List.size", INT),
    ("Iterables", "isEmpty"): _of_iterable("List.isEmpty", BOOLEAN),
    ("Iterables", "getLast"): _of_iterable("List.getLast", None),
    ("Streams", "stream"): _streamed,
    ("IntStream", "range"): _range,
    ("IntStream", "rangeClosed"): _closed,
    ("Stream", "concat"): _chained,
    ("Pattern", "compile"): _regex,
    ("Row", "of"): _tuple,
    ("Character", "toString"): _call("text", STRING, 1),
    ("Boolean", "toString"): _call("text", STRING, 1),
}  # fmt: skip
"""By class and method, what becomes of a call with some arguments; None if nothing."""


_BY_NAME = (
    "JSONObject",
    "JsonNode",
    "ObjectNode",
    "JsonObject",
    "JsonElement",
    "Row",
    "GenericRecord",
    "MissingNode",
    "JSONArray",
    "JsonArray",
    "ArrayNode",
)
_MADE = ("JSONObject", "ObjectNode", "JsonObject")
_MAPS = ("Map", "HashMap", "LinkedHashMap", "TreeMap")
_ARRAYS = ("JSONArray", "JsonArray", "ArrayNode")
_NODE_CLASSES = (
    "JsonNode", "ObjectNode", "JsonObject", "JsonElement", "MissingNode", "JSONObject", *_ARRAYS,
)  # fmt: skip
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
    STRING: "",
    INT: 0,
    LONG: 0,
    _DOUBLE: 0.0,
    BOOLEAN: False,
}
"""What a field that is missing is, where that is no error."""
_FIELDS = ("get", "path", "getField", "getFieldAs", "opt", "with", "at")


def is_by_name(value: Expression) -> bool:
    """Whether the fields of an object are read by their names."""
    name = value.type.name
    return name in _BY_NAME or (name in _MAPS and isinstance(value, Var) and value.name == "event")


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
        return Call("json of", (reader.read(arguments[0]),), _NODE)
    if name not in ("readValue", "fromJson", "parseObject") or len(arguments) != 2:
        return None
    kind = text_of(arguments[1]).removesuffix(".class")
    if arguments[1].type != "class_literal":
        return None
    type_ = JavaType(kind.rsplit(".", 1)[-1])
    fields = reader.scope.project.all_fields(reader.class_of(type_))
    names = [(field.alias, name) for name, field in fields.items() if field.alias]
    pairs = tuple(Const(one, STRING) for pair in names for one in pair)
    return Call("json of", (reader.read(arguments[0]), *pairs), type_)


def json_call(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method that reads a field by its name; None for others."""
    if owner.type.name in _MADE and not isinstance(owner, Get):
        made = _made_json(reader, owner, name, arguments)
        if made is not None:
            return made
    if not is_by_name(owner):
        return None
    if isinstance(owner, Call) and owner.name == "json of" and not arguments:
        return owner if name in ("getAsJsonObject", "asObject") else None
    if name in ("size", "length") and not arguments and owner.type.name in _NODE_CLASSES:
        listed = JavaType("List", (STRING,))
        whole = attrs.evolve(owner, type=listed) if isinstance(owner, Get) else owner
        return Call("List.size", (whole,), INT)
    parsed = is_parsed(owner, reader.findings.parsed)
    if not arguments and parsed and name in _KINDS:
        operands = (owner, Const(_KINDS[name], STRING))
        return Call("json is", operands, BOOLEAN)
    if not arguments and (parsed or isinstance(owner, Get | Call)):
        return _converted(owner, name, parsed)
    if not arguments:
        return None
    keys = [reader.argument(argument) for argument in arguments]
    if len(keys) == 1 and owner.type.name in _NODE_CLASSES and is_whole(keys[0].type):
        element = _of_array(owner, name, keys[0])
        if element is not None:
            return element
    if name == "findValue" and len(keys) == 1 and parsed:
        return Call("json find", (owner, keys[0]), _NODE)
    if name in ("get", "path") and len(keys) == 1 and parsed and not isinstance(keys[0], Const):
        return Call("json item", (owner, keys[0]), _NODE)
    if owner.type.name == "Row" and len(keys) == 1 and is_whole(keys[0].type):
        return _of_row(reader, owner, name, keys[0], node)
    if name in _NODES and isinstance(owner, Get) and len(keys) == 1:
        other = reader.cast(keys[0], _NODES[name])
        if parsed:
            kind = Const(_NODES[name].name, STRING)
            return Call("json as", (owner, kind, other), _NODES[name])
        return _or_else(owner, _NODES[name], other)
    key = keys[0].value if isinstance(keys[0], Const) else None
    if not isinstance(key, str):
        return None
    key = key.removeprefix("/") if name == "at" else key
    if "/" in key:
        return None
    value_type = owner.type.args[1] if len(owner.type.args) == 2 else UNKNOWN
    if name == "findValue" and len(keys) == 1 and owner.type.name in _NODE_CLASSES:
        reader.note(node, f"{key} is taken as a field of {_named(owner)}, wherever JSON has it")
        return Get(owner, key, _NODE)
    if name in _FIELDS and len(keys) == 1:
        type_ = _NODE if owner.type.name in _NODE_CLASSES else value_type
        type_ = _written_type(reader, node) or type_
        type_ = _MISSING if name == "path" else type_
        return Get(owner, key, UNKNOWN if type_.name == "Object" else type_)
    if name in ("has", "containsKey", "hasNonNull") and len(keys) == 1:
        reader.note(node, f"a missing {key} and a null one are the same here")
        return Unary("!", Call("is null", (Get(owner, key, UNKNOWN),), BOOLEAN), BOOLEAN)
    for prefix in ("get", "opt"):
        found = _TYPED.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        default = _DEFAULTS.get(unboxed(found)) if found is not None else None
        if found is not None and prefix == "opt" and default is not None:
            other = Const(default, unboxed(found)) if len(keys) == 1 else keys[1]
            return _or_else(Get(owner, key, found), unboxed(found), other)
        if found is not None and len(keys) == 1:
            return Get(owner, key, found)
    if name == "getOrDefault" and len(keys) == 2:
        return Call("or else", (Get(owner, key, keys[1].type), keys[1]), keys[1].type)
    return None


def _made_json(
    reader: Reading, owner: Expression, name: str, arguments: list[Node]
) -> Expression | None:
    """Return a method that fills or writes a new object of JSON."""
    if name in ("put", "set", "addProperty") and len(arguments) == 2:
        operands = tuple(reader.argument(argument) for argument in arguments)
        return Call("Map.put", (owner, *operands), JavaType("void"))
    if name in ("toJSONString", "toString") and not arguments:
        return Call("json", (owner,), STRING)
    return None


def _or_else(owner: Get | Call, type_: JavaType, other: Expression) -> Expression:
    """Return a field as a value of a type, or another value if it is missing."""
    return Call("or else", (attrs.evolve(owner, type=type_), other), type_)


def is_parsed(of: Expression, names: Collection[str]) -> bool:
    """Whether a value is JSON that code reads itself, rather than of an event."""
    while isinstance(of, Get) or (isinstance(of, Call) and of.name == "json item"):
        of = of.owner if isinstance(of, Get) else of.operands[0]
    if isinstance(of, Var):
        return of.name in names
    return isinstance(of, Call) and of.name in ("json of", "json find")


_KINDS = {
    "isTextual": "text", "isNumber": "number", "isInt": "int", "isLong": "int",
    "isDouble": "double", "isBoolean": "boolean", "isArray": "array", "isObject": "object",
    "isJsonArray": "array", "isJsonObject": "object",
}  # fmt: skip


def _of_array(owner: Expression, name: str, place: Expression) -> Expression | None:
    """Return an element of an array of JSON, by its place."""
    if name in ("get", "path", "getJSONObject", "getJSONArray", "optJSONObject"):
        return Call("json item", (owner, place), _NODE)
    type_ = _TYPED.get(name.removeprefix("get")) if name.startswith("get") else None
    return None if type_ is None else Call("json item", (owner, place), type_)


def _of_row(
    reader: Reading, owner: Expression, name: str, place: Expression, node: Node
) -> Expression | None:
    """Return a field of a row by its place: Flink names those without a name f0, f1, …."""
    known = isinstance(place, Const) and isinstance(place.value, int)
    if name not in ("getField", "getFieldAs") or not known or not isinstance(place, Const):
        return None
    reader.note(node, f"field {place.value} of the row is taken as the column f{place.value}")
    return Get(owner, f"f{place.value}", _written_type(reader, node) or UNKNOWN)


def _written_type(reader: Reading, node: Node) -> JavaType | None:
    """Return the type argument of a call such as ``row.<Integer>getFieldAs("n")``."""
    given = node.child_by_field_name("type_arguments")
    return reader.type_at(children(given)[0]) if given is not None and children(given) else None


def _named(owner: Expression) -> str:
    return owner.name if isinstance(owner, Get) else "the event"


def _converted(owner: Expression, name: str, parsed: bool) -> Expression | None:
    """Return a node of JSON as a value of a type."""
    type_ = _NODES.get(name)
    if type_ == _NODE:
        return owner
    if type_ is not None and parsed and "as" in name.lower():
        operands: tuple[Expression, ...] = (owner, Const(type_.name, STRING))
        if owner.type == _MISSING and name.startswith("as"):
            operands = (*operands, Const(_DEFAULTS[type_], type_))
        return Call("json as", operands, type_)
    if isinstance(owner, Call) and owner.name != "json item":
        return None
    if type_ is not None and isinstance(owner, Get | Call):
        if owner.type == _MISSING and name.startswith("as"):
            return _or_else(owner, type_, Const(_DEFAULTS[type_], type_))
        return Call("not null", (attrs.evolve(owner, type=type_),), type_)
    if name in ("isNull", "isMissingNode", "isJsonNull"):
        return Call("is null", (owner,), BOOLEAN)
    return None


_STRINGS = {
    ("equalsIgnoreCase", 1): BOOLEAN, ("contains", 1): BOOLEAN, ("startsWith", 1): BOOLEAN,
    ("endsWith", 1): BOOLEAN, ("matches", 1): BOOLEAN, ("isEmpty", 0): BOOLEAN,
    ("isBlank", 0): BOOLEAN, ("length", 0): INT, ("toLowerCase", 0): STRING,
    ("toUpperCase", 0): STRING, ("trim", 0): STRING, ("strip", 0): STRING,
    ("substring", 1): STRING, ("substring", 2): STRING, ("charAt", 1): JavaType("char"),
    ("indexOf", 1): INT, ("lastIndexOf", 1): INT, ("replace", 2): STRING, ("concat", 1): STRING,
    ("compareTo", 1): INT, ("compareToIgnoreCase", 1): INT, ("hashCode", 0): INT,
    ("split", 1): JavaType("String", (), 1), ("repeat", 1): STRING,
    ("contentEquals", 1): BOOLEAN,
    ("chars", 0): JavaType("Stream", (JavaType("char"),)),
    ("toCharArray", 0): JavaType("char", (), 1), ("split", 2): JavaType("String", (), 1),
    ("replaceAll", 2): STRING, ("intern", 0): STRING,
}  # fmt: skip
_CASES = ("toLowerCase", "toUpperCase")
_DISTINCT = ("equalsIgnoreCase", "startsWith", "endsWith", "toLowerCase", "toUpperCase", "trim")
"""Methods that only strings have."""


def library_call(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method of an object of the library; None if it has no translation."""
    type_ = owner.type
    found = json_call(reader, owner, name, arguments, node)
    if found is not None:
        return found
    for group in (stream_call, list_call, map_call):
        found = group(reader, owner, name, arguments, node)
        if found is not None:
            return found
    if type_.name in ("?", "Object"):
        return None
    operands = tuple(reader.argument(argument) for argument in arguments)
    if name == "equals" and len(operands) == 1:
        return Call("equals", (owner, *operands), BOOLEAN)
    if name == "toString" and not operands:
        return Call("toString", (owner,), STRING)
    if type_ == STRING and name == "formatted":
        return formatted(reader, (owner, *operands), node)
    if type_.name in ("String", "CharSequence"):
        return _of_string(owner, name, operands)
    if is_boxed(type_):
        return _of_box(reader, owner, name, operands)
    return _of_other(reader, owner, name, operands, node)


def by_name(
    reader: Reading, owner: Expression, name: str, operands: tuple[Expression, ...], node: Node
) -> Expression | None:
    """Return a method of an object of unknown type, if its name says what it is."""
    if name == "equals" and len(operands) == 1:
        return Call("equals", (owner, *operands), BOOLEAN)
    if name == "toString" and not operands:
        return Call("toString", (owner,), STRING)
    if name in _DISTINCT:
        return _of_string(attrs.evolve(owner, type=STRING), name, operands)
    text = bool(operands) and operands[0].type == STRING
    if name in ("contains", "compareTo", "matches", "concat") and text:
        return _of_string(attrs.evolve(owner, type=STRING), name, operands)
    if name in _CONVERSIONS and not operands:
        return reader.cast(owner, JavaType(_CONVERSIONS[name]))
    return None


def _of_string(owner: Expression, name: str, operands: tuple[Expression, ...]) -> Expression | None:
    if name in _CASES and len(operands) == 1 and operands[0].type.name == "Locale":
        operands = ()
    type_ = _STRINGS.get((name, len(operands)))
    if type_ is None:
        return None
    if name == "intern":
        return owner
    name = "chars" if name == "toCharArray" else name
    name = {"contentEquals": "equals"}.get(name, name)
    return Call(name, (owner, *operands), type_)


_CONVERSIONS = {
    "intValue": "int", "longValue": "long", "doubleValue": "double", "floatValue": "float",
    "shortValue": "short", "byteValue": "byte", "booleanValue": "boolean", "charValue": "char",
}  # fmt: skip


def _of_box(
    reader: Reading, owner: Expression, name: str, operands: tuple[Expression, ...]
) -> Expression | None:
    if name in _CONVERSIONS and not operands:
        primitive = attrs.evolve(owner, type=unboxed(owner.type)) if _has_type(owner) else owner
        value = reader.cast(primitive, JavaType(_CONVERSIONS[name]))
        return Call("not null", (value,), value.type)
    if name == "compareTo" and len(operands) == 1:
        return _compared(owner, operands[0])
    if name in ("isNaN", "isInfinite") and not operands:
        return Call(name, (owner,), BOOLEAN)
    return None


def _has_type(owner: Expression) -> bool:
    return not isinstance(owner, Cast)


def _compared(a: Expression, b: Expression) -> Expression | None:
    if is_numeric(a.type) and is_numeric(b.type):
        return Call("compare", (a, b), INT)
    return None


def _of_other(
    reader: Reading, owner: Expression, name: str, operands: tuple[Expression, ...], node: Node
) -> Expression | None:
    type_ = owner.type.name
    if type_ == "Context" or type_.endswith("Context"):
        return _of_context(reader, name, operands, node)
    if type_ == "Class" and name == "getSimpleName":
        return attrs.evolve(owner, type=STRING) if isinstance(owner, Const | Get) else None
    if type_ == "Comparator" and name == "compare" and len(operands) == 2:
        return Call("compared by", (owner, *operands), INT)
    if type_ == "Regex" and name == "matcher" and len(operands) == 1:
        return Call("matcher", (owner, *operands), JavaType("Matcher"))
    if type_ == "Matcher" and name in _MATCHER and len(operands) <= 1:
        return Call(f"Matcher.{name}", (owner, *operands), _MATCHER[name])
    if type_ == "StringJoiner" and name == "add" and len(operands) == 1:
        return Call("joiner.add", (owner, *operands), owner.type)
    place = operands[0].value if len(operands) == 1 and isinstance(operands[0], Const) else None
    if type_.startswith("Tuple") and name == "getField" and isinstance(place, int):
        known = place < len(owner.type.args)
        return Get(owner, f"f{place}", owner.type.args[place] if known else UNKNOWN)
    if type_ in ("StringBuilder", "StringBuffer"):
        if name == "append" and len(operands) == 1:
            if not _is_all_of_statement(node):
                raise reader.no(node, "append() changes a text whose value is used here")
            return Call("append", (owner, *operands), owner.type)
        if name == "length" and not operands:
            return Call("length", (owner,), INT)
    if type_ == "Collector" and name == "collect" and len(operands) == 1:
        return Call("collect", (owner, *operands), JavaType("void"))
    timed = time_call(owner, name, operands)
    if timed is not None:
        return timed
    if is_enum(owner.type, reader.scope.project, reader.source) and name == "name":
        return Call("name of", (owner,), STRING)
    return None


def _is_all_of_statement(node: Node) -> bool:
    """Whether calls of append() are a statement, are returned, or are of a new text."""
    first = node
    while first.type == "method_invocation":
        first = first.child_by_field_name("object")
    if first.type == "object_creation_expression":
        return True
    whole, around = node, node.parent
    while around is not None and around.type == "method_invocation":
        if around.child_by_field_name("object") != whole:
            return False
        whole, around = around, around.parent
    if around is not None and around.type == "return_statement":
        return True
    only = text_of(whole.child_by_field_name("name")) == "append"
    return only and around is not None and around.type in ("expression_statement", *_BODIES)


_BODIES = ("lambda_expression", "switch_rule", "for_statement")
_MATCHER = {"matches": BOOLEAN, "find": BOOLEAN, "group": STRING}


def _of_context(
    reader: Reading, name: str, operands: tuple[Expression, ...], node: Node
) -> Expression | None:
    if name == "getEventsForPattern" and len(operands) == 1:
        type_ = JavaType("Iterable", (reader.event_type,))
        if not is_plain(reader.event_type):
            return Call("events", operands, type_)
        value = Get(Var("each", UNKNOWN), "value", reader.event_type)
        values = Lambda(("each",), value, reader.event_type)
        return Call("Stream.map", (Call("events", operands, JavaType("Iterable")), values), type_)
    if name in ("timestamp", "currentProcessingTime") and not operands:
        return Call(f"ctx.{name}", (), LONG)
    if name == "output" and len(operands) == 2:
        return Call("ctx.output", operands, JavaType("void"))
    return None
