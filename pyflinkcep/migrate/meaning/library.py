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
    is_numeric,
    is_plain,
    unboxed,
)
from pyflinkcep.migrate.meaning.json_events import json_call
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.static import formatted
from pyflinkcep.migrate.meaning.streams import list_call, map_call, stream_call
from pyflinkcep.migrate.meaning.times import time_call
from pyflinkcep.migrate.meaning.tree import Call, Cast, Const, Expression, Get, Lambda, Var

__all__ = ["by_name", "library_call"]

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
