# SPDX-License-Identifier: Apache-2.0
"""The methods of Java's library, Flink and the usual JSON libraries."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.java.types import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    UNKNOWN,
    is_boxed,
    is_enum,
    is_floating,
    is_numeric,
    unboxed,
)
from pyflinkcep.migrate.meaning.json_events import json_call
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.streams import element_of, list_call, map_call, stream_call
from pyflinkcep.migrate.meaning.times import time_call
from pyflinkcep.migrate.meaning.tree import Call, Cast, Const, Expression, Get, Make

__all__ = ["STATIC", "by_name", "library_call"]

DOUBLE = JavaType("double")
Static = Callable[["Reading", tuple[Expression, ...], Node], Expression | None]

_STRINGS = {
    ("equalsIgnoreCase", 1): BOOLEAN, ("contains", 1): BOOLEAN, ("startsWith", 1): BOOLEAN,
    ("endsWith", 1): BOOLEAN, ("matches", 1): BOOLEAN, ("isEmpty", 0): BOOLEAN,
    ("isBlank", 0): BOOLEAN, ("length", 0): INT, ("toLowerCase", 0): STRING,
    ("toUpperCase", 0): STRING, ("trim", 0): STRING, ("strip", 0): STRING,
    ("substring", 1): STRING, ("substring", 2): STRING, ("charAt", 1): JavaType("char"),
    ("indexOf", 1): INT, ("lastIndexOf", 1): INT, ("replace", 2): STRING, ("concat", 1): STRING,
    ("compareTo", 1): INT, ("compareToIgnoreCase", 1): INT, ("hashCode", 0): INT,
    ("split", 1): JavaType("String", (), 1), ("repeat", 1): STRING, ("contentEquals", 1): BOOLEAN,
}  # fmt: skip
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
    type_ = _STRINGS.get((name, len(operands)))
    if type_ is None:
        return None
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
    if type_ in ("StringBuilder", "StringBuffer"):
        if name == "append" and len(operands) == 1:
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


def _of_context(
    reader: Reading, name: str, operands: tuple[Expression, ...], node: Node
) -> Expression | None:
    if name == "getEventsForPattern" and len(operands) == 1:
        return Call("events", operands, JavaType("Iterable", (reader.event_type,)))
    if name in ("timestamp", "currentProcessingTime") and not operands:
        return Call(f"ctx.{name}", (), LONG)
    if name == "output" and len(operands) == 2:
        return Call("ctx.output", operands, JavaType("void"))
    return None


# --- static methods


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


def _format(reader: Reading, operands: tuple[Expression, ...], _: Node) -> Expression | None:
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
        element = (operands[0].type,) if operands else ()
        return Call("List.of", operands, JavaType(kind, element))

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
    ("Objects", "toString"): _call("text", STRING, 1),
    ("String", "format"): _format,
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
        )
    },
    **{
        (owner, "valueOf"): _boxed(type_)
        for owner, type_ in (("Integer", "int"), ("Long", "long"), ("Double", "double"))
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
        for owner in ("Integer", "Long", "Double") for name in ("max", "min")
    },
    **{(owner, "sum"): _added for owner in ("Integer", "Long", "Double")},
    **{(f"Tuple{count}", "of"): _tuple for count in range(1, 26)},
    ("StreamSupport", "stream"): _streamed,
    ("Arrays", "stream"): _streamed,
    ("Arrays", "asList"): _listed("List"),
    ("List", "of"): _listed("List"),
    ("Set", "of"): _listed("Set"),
}  # fmt: skip
"""By class and method, what becomes of a call with some arguments; None if nothing."""
