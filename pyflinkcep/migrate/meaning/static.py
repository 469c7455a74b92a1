# SPDX-License-Identifier: Apache-2.0
"""The static methods of Java's library."""

from __future__ import annotations

from collections.abc import Callable

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node
from pyflinkcep.migrate.java.types import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    UNKNOWN,
    is_floating,
    is_numeric,
    unboxed,
)
from pyflinkcep.migrate.meaning.collectors import element_of
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Make

__all__ = ["STATIC", "formatted"]

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
