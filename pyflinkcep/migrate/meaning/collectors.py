# SPDX-License-Identifier: Apache-2.0
"""Comparators, and collectors of streams."""

from __future__ import annotations

from collections.abc import Callable

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.java.types import BOOLEAN, INT, LONG, STRING, UNKNOWN
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Lambda, Var

__all__ = ["COMPARATOR", "collected", "comparator", "element_of", "of_collections"]

COMPARATOR = JavaType("Comparator")
_DOUBLE = JavaType("double")
_NATURAL = Call("natural order", (), COMPARATOR)
_MAPPED = {
    "Int": ("IntStream", INT), "Long": ("LongStream", LONG), "Double": ("DoubleStream", _DOUBLE),
}  # fmt: skip


def comparator(reader: Reading, node: Node, element: JavaType) -> Expression:
    """
    Return a comparator of values of a type: a function of two of them.

    Raises
    ------
    Untranslatable
        If it is none that is known.
    """
    if node.type == "cast_expression":
        return comparator(reader, node.child_by_field_name("value"), element)
    if node.type in ("lambda_expression", "method_reference"):
        return reader.function(node, (element, element))
    if node.type != "method_invocation":
        raise reader.no(node, f"{text_of(node)[:60]} as a comparator")
    owner, name = node.child_by_field_name("object"), text_of(node.child_by_field_name("name"))
    arguments = children(node.child_by_field_name("arguments"))
    before = text_of(owner).rsplit(".", 1)[-1] if owner is not None else ""
    if before in ("Comparator", "Collections", "Entry"):
        return _first(reader, name, arguments, element, node)
    given = comparator(reader, owner, element) if owner is not None else None
    if given is not None and name == "reversed":
        return Call("reversed order", (given,), COMPARATOR)
    if given is not None and name.startswith("thenComparing") and arguments:
        inner = _by(reader, arguments, element)
        return Call("then order", (given, inner), COMPARATOR)
    raise reader.no(node, f"{name}() of a comparator has no translation")


def _first(
    reader: Reading, name: str, arguments: list[Node], element: JavaType, node: Node
) -> Expression:
    if name == "naturalOrder" and not arguments:
        return _NATURAL
    if name == "reverseOrder" and len(arguments) < 2:
        inner = comparator(reader, arguments[0], element) if arguments else _NATURAL
        return Call("reversed order", (inner,), COMPARATOR)
    if name in ("comparingByKey", "comparingByValue"):
        place = "Entry.getKey" if name.endswith("Key") else "Entry.getValue"
        key = Lambda(("entry",), Call(place, (Var("entry", element),), UNKNOWN), UNKNOWN)
        order = comparator(reader, arguments[0], UNKNOWN) if arguments else None
        return Call("order by", (key, *([order] if order is not None else [])), COMPARATOR)
    if name.startswith("comparing") and arguments:
        return _by(reader, arguments, element)
    raise reader.no(node, f"Comparator.{name}() has no translation")


def _by(reader: Reading, arguments: list[Node], element: JavaType) -> Expression:
    """Return an order by a key, or what is a comparator already."""
    first = arguments[0]
    is_order = first.type == "method_invocation" or (
        first.type == "lambda_expression" and text_of(first).split("->")[0].count(",") == 1
    )
    if is_order:
        return comparator(reader, first, element)
    key = reader.function(first, (element,))
    order = [comparator(reader, one, key.type) for one in arguments[1:2]]
    return Call("order by", (key, *order), COMPARATOR)


def of_collections(
    reader: Reading, owner: str, name: str, arguments: list[Node]
) -> Expression | None:
    """Return a method of ``Collections`` or ``Arrays`` that compares; None for others."""
    known = ("max", "min", "sort") if owner == "Collections" else ("sort",)
    if owner not in ("Collections", "Arrays") or name not in known or not arguments:
        return None
    values = reader.read(arguments[0])
    element = element_of(values.type)
    order = comparator(reader, arguments[1], element) if len(arguments) > 1 else _NATURAL
    if name == "sort":
        return Call("List.sort", (values, order), JavaType("void"))
    return Call("not null", (Call(f"Stream.{name}By", (values, order), element),), element)


def element_of(type_: JavaType) -> JavaType:
    """Return the type of the elements of a list, array or stream."""
    if type_.dims:
        return JavaType(type_.name, type_.args, type_.dims - 1)
    return type_.args[0] if type_.args else UNKNOWN


# --- collectors

Collector = Callable[[Expression], Expression]


def collected(
    reader: Reading, stream: Expression, node: Node, element: JavaType
) -> Expression | None:
    """Return what ``collect`` makes of a stream; None if the collector is unknown."""
    found = _collector(reader, node, element)
    return None if found is None else found(stream)


def _collector(reader: Reading, node: Node, element: JavaType) -> Collector | None:
    if node.type != "method_invocation":
        return None
    name = text_of(node.child_by_field_name("name"))
    arguments = children(node.child_by_field_name("arguments"))
    listed = JavaType("List", (element,))
    match name, len(arguments):
        case (("toList" | "toUnmodifiableList"), 0):
            return lambda of: Call("Stream.toList", (of,), listed)
        case (("toSet" | "toUnmodifiableSet"), 0):
            return lambda of: Call("Stream.toSet", (of,), JavaType("Set", (element,)))
        case "toCollection", 1:
            kind = "Set" if "Set" in text_of(arguments[0]) else "List"
            made = JavaType(kind, (element,))
            return lambda of: Call(f"Stream.to{kind}", (of,), made)
        case "counting", 0:
            return lambda of: Call("Stream.count", (of,), LONG)
        case "joining", count if count <= 3:
            given = tuple(reader.argument(argument) for argument in arguments)
            return lambda of: Call("Stream.joining", (of, *given), STRING)
        case (("minBy" | "maxBy"), 1):
            order = comparator(reader, arguments[0], element)
            optional = JavaType("Optional", (element,))
            return lambda of: Call(f"Stream.{name}", (of, order), optional)
    return _of_keys(reader, name, arguments, element) or _of_numbers(
        reader, name, arguments, element
    )


def _of_numbers(
    reader: Reading, name: str, arguments: list[Node], element: JavaType
) -> Collector | None:
    kind = _MAPPED.get(name.removeprefix("summing").removeprefix("averaging"))
    if kind is None or len(arguments) != 1:
        return None
    function = reader.function(arguments[0], (element,))
    inner = Lambda(function.parameters, reader.cast(function.body, kind[1]), kind[1])

    def made(of: Expression) -> Expression:
        mapped = Call("Stream.map", (of, inner), JavaType(kind[0], (kind[1],)))
        if name.startswith("summing"):
            return Call("Stream.sum", (mapped,), kind[1])
        average = Call("Stream.average", (mapped,), JavaType("Optional", (_DOUBLE,)))
        return Call("or else", (average, Const(0.0, _DOUBLE)), _DOUBLE)

    return made


def _of_keys(
    reader: Reading, name: str, arguments: list[Node], element: JavaType
) -> Collector | None:
    if name == "mapping" and len(arguments) == 2:
        function = reader.function(arguments[0], (element,))
        inner = _collector(reader, arguments[1], function.type)
        type_ = JavaType("Stream", (function.type,))
        if inner is None:
            return None
        after: Collector = inner
        return lambda of: after(Call("Stream.map", (of, function), type_))
    if name in ("groupingBy", "partitioningBy") and arguments:
        key = reader.function(arguments[0], (element,))
        group = Var("group", JavaType("Stream", (element,)))
        below = Call("Stream.toList", (group,), JavaType("List", (element,)))
        inner = (
            _collector(reader, arguments[-1], element) if len(arguments) > 1 else lambda _: below
        )
        if inner is None:
            return None
        value = inner(group)
        sorts = any("TreeMap" in text_of(argument) for argument in arguments)
        type_ = BOOLEAN if name == "partitioningBy" else key.type
        result = JavaType("TreeMap" if sorts else "Map", (type_, value.type))
        each = Lambda(("group",), value, value.type)
        both = (Const(True, BOOLEAN),) if name == "partitioningBy" else ()
        return lambda of: Call("grouped", (of, key, each, *both), result)
    if name == "toMap" and len(arguments) in (2, 3):
        key, value_ = (reader.function(one, (element,)) for one in arguments[:2])
        merge = [reader.function(one, (value_.type, value_.type)) for one in arguments[2:]]
        result = JavaType("Map", (key.type, value_.type))
        return lambda of: Call("as map", (of, key, value_, *merge), result)
    return None
