# SPDX-License-Identifier: Apache-2.0
"""Lists, maps, iterators and streams."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from pyflinkcep.migrate.java.declarations import JavaType
from pyflinkcep.migrate.java.project import (
    BOOLEAN,
    INT,
    LONG,
    STRING,
    UNKNOWN,
    never_equal,
    unboxed,
)
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.meaning.reading import Reading
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Lambda, Var

COMPARATOR = JavaType("Comparator")
_DOUBLE = JavaType("double")
_NATURAL = Call("natural order", (), COMPARATOR)
_SUMMED = {
    "Int": ("IntStream", INT), "Long": ("LongStream", LONG), "Double": ("DoubleStream", _DOUBLE),
}  # fmt: skip


def comparator(reader: Reading, node: Node, element: JavaType) -> Expression:
    """Return a comparator of values of a type: a function of two of them."""
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
    kind = _SUMMED.get(name.removeprefix("summing").removeprefix("averaging"))
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


_LISTS = ("List", "ArrayList", "LinkedList", "Collection", "Set", "HashSet", "Iterable", "Deque",
          "TreeSet", "LinkedHashSet", "ArrayDeque", "ImmutableList", "ImmutableSet", "SortedSet",
          "Queue")  # fmt: skip
_MAPS = ("Map", "HashMap", "LinkedHashMap", "TreeMap", "ConcurrentHashMap", "ImmutableMap",
         "SortedMap", "EnumMap")  # fmt: skip
_STREAMS = ("Stream", "IntStream", "LongStream", "DoubleStream")
_VOID = JavaType("void")


def list_call(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method of a list, set, iterable or iterator; None for others."""
    element = element_of(owner.type)
    if owner.type.name in ("Iterator", "ListIterator"):
        return _of_iterator(owner, name, element)
    if owner.type.name not in _LISTS and not owner.type.dims:
        return None
    count = len(arguments)
    if name in ("stream", "parallelStream") and not count:
        return Call("stream", (owner,), JavaType("Stream", (element,)))
    if name == "spliterator" and not count:
        return owner
    if name in ("iterator", "listIterator") and not count:
        return Call("iterator", (owner,), JavaType("Iterator", (element,)))
    name = {
        "peekFirst": "getFirst",
        "peekLast": "getLast",
        "first": "getFirst",
        "last": "getLast",
    }.get(name, name)
    if name in ("size", "isEmpty", "getFirst", "getLast", "clear") and not count:
        types = {"size": INT, "isEmpty": BOOLEAN, "clear": _VOID}
        return Call(f"List.{name}", (owner,), types.get(name, element))
    if name == "sort" and count == 1:
        return Call("List.sort", (owner, comparator(reader, arguments[0], element)), _VOID)
    if name == "removeIf" and count == 1:
        return Call("List.removeIf", (owner, reader.function(arguments[0], (element,))), _VOID)
    operands = tuple(reader.argument(argument) for argument in arguments)
    if name in ("get", "elementAt") and count == 1:
        return Call("List.get", (owner, *operands), element)
    if name in ("contains", "indexOf") and count == 1 and never_equal(element, operands[0].type):
        reader.note(node, f"no {element} equals {operands[0].type}: it is never found")
        return Const(False, BOOLEAN) if name == "contains" else Const(-1, INT)
    if name == "contains" and count == 1:
        return Call("List.contains", (owner, *operands), BOOLEAN)
    if name in ("add", "addLast") and count == 1:
        if "Set" in owner.type.name:
            return Call("Set.add", (owner, *operands), BOOLEAN)
        return Call("List.add", (owner, *operands), _VOID)
    if name == "addAll" and count == 1:
        kind = "Set.addAll" if "Set" in owner.type.name else "List.addAll"
        return Call(kind, (owner, *operands), _VOID)
    if name == "containsAll" and count == 1:
        return Call("List.containsAll", (owner, *operands), BOOLEAN)
    if name == "subList" and count == 2:
        return Call("List.subList", (owner, *operands), owner.type)
    if name == "indexOf" and count == 1:
        return Call("List.indexOf", (owner, *operands), INT)
    return None


def _of_iterator(owner: Expression, name: str, element: JavaType) -> Expression | None:
    whole = owner.operands[0] if isinstance(owner, Call) and owner.name == "iterator" else None
    if name == "next":
        if whole is not None:
            return Call("List.getFirst", (whole,), element)
        return Call("Iterator.next", (owner,), element)
    if name == "hasNext":
        if whole is not None:
            return Call("has any", (whole,), BOOLEAN)
        return Call("Iterator.hasNext", (owner,), BOOLEAN)
    return None


def map_call(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method of a map; None for others."""
    if owner.type.name == "Entry" and name in ("getKey", "getValue") and not arguments:
        place = 0 if name == "getKey" else 1
        type_ = owner.type.args[place] if len(owner.type.args) == 2 else UNKNOWN
        return Call(f"Entry.{name}", (owner,), type_)
    if owner.type.name not in _MAPS:
        return None
    args = owner.type.args if len(owner.type.args) == 2 else (UNKNOWN, UNKNOWN)
    plain = arguments[: {"merge": 2, "computeIfAbsent": 1}.get(name, len(arguments))]
    operands = tuple(reader.argument(argument) for argument in plain)
    if name in ("get", "getOrDefault", "containsKey") and never_equal(args[0], operands[0].type):
        raise reader.no(node, f"a key {operands[0].type} of a map of {args[0]}, which has none")
    match name, len(arguments):
        case "get", 1:
            return Call("Map.get", (owner, *operands), args[1])
        case "getOrDefault", 2:
            return Call("Map.getOrDefault", (owner, *operands), args[1])
        case "containsKey", 1:
            return Call("Map.containsKey", (owner, *operands), BOOLEAN)
        case (("put" | "putIfAbsent"), 2):
            return Call(f"Map.{name}", (owner, *operands), _VOID)
        case "merge", 3:
            function = reader.function(arguments[2], (args[1], args[1]))
            return Call("Map.merge", (owner, *operands[:2], function), args[1])
        case "computeIfAbsent", 2:
            function = reader.function(arguments[1], (args[0],))
            return Call("Map.computeIfAbsent", (owner, operands[0], function), args[1])
        case "containsValue", 1:
            return Call("Map.containsValue", (owner, *operands), BOOLEAN)
        case "size", 0:
            return Call("List.size", (owner,), INT)
        case "isEmpty", 0:
            return Call("List.isEmpty", (owner,), BOOLEAN)
        case "keySet", 0:
            return Call("Map.keySet", (owner,), JavaType("Set", (args[0],)))
        case "values", 0:
            return Call("Map.values", (owner,), JavaType("Collection", (args[1],)))
        case "entrySet", 0:
            return Call("Map.entrySet", (owner,), JavaType("Set", (JavaType("Entry", args),)))
    return None


# --- streams

_MAPPED = {
    "mapToInt": ("IntStream", INT), "mapToLong": ("LongStream", LONG),
    "mapToDouble": ("DoubleStream", JavaType("double")),
}  # fmt: skip


def _primitive(type_: JavaType) -> JavaType:
    kinds = {"IntStream": INT, "LongStream": LONG, "DoubleStream": JavaType("double")}
    return kinds.get(type_.name, element_of(type_))


def stream_call(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method of a stream; None for others."""
    if owner.type.name.startswith("Optional"):
        return _of_optional(reader, owner, name, arguments)
    if owner.type.name.endswith("SummaryStatistics"):
        return _statistics(owner, name)
    if owner.type.name not in _STREAMS:
        return None
    element = _primitive(owner.type)
    if name in ("filter", "anyMatch", "allMatch", "noneMatch") and len(arguments) == 1:
        test = reader.function(arguments[0], (element,))
        return Call(f"Stream.{name}", (owner, test), owner.type if name == "filter" else BOOLEAN)
    if name in _MAPPED and len(arguments) == 1:
        kind, type_ = _MAPPED[name]
        function = reader.function(arguments[0], (element,))
        body = reader.cast(function.body, type_)
        mapped = Lambda(function.parameters, body, type_)
        return Call("Stream.map", (owner, mapped), JavaType(kind, (type_,)))
    if name == "map" and len(arguments) == 1:
        mapped = reader.function(arguments[0], (element,))
        return Call("Stream.map", (owner, mapped), JavaType(owner.type.name, (mapped.type,)))
    if name == "mapToObj" and len(arguments) == 1:
        mapped = reader.function(arguments[0], (element,))
        return Call("Stream.map", (owner, mapped), JavaType("Stream", (mapped.type,)))
    if name == "flatMap" and len(arguments) == 1:
        many = reader.function(arguments[0], (element,))
        return Call("Stream.flatMap", (owner, many), attrs.evolve(many.type, name="Stream"))
    if not arguments:
        return _ended(owner, name, element)
    if name == "collect" and len(arguments) == 1:
        return collected(reader, owner, arguments[0], element)
    if name in ("limit", "skip") and len(arguments) == 1:
        return Call(f"Stream.{name}", (owner, reader.argument(arguments[0])), owner.type)
    return _combined(reader, owner, name, arguments, element)


def _combined(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], element: JavaType
) -> Expression | None:
    """Return a method of a stream that compares its elements, or combines them."""
    optional = JavaType("Optional", (element,))
    match name, len(arguments):
        case "sorted", 1:
            order = comparator(reader, arguments[0], element)
            return Call("Stream.sorted", (owner, order), owner.type)
        case (("max" | "min"), 1):
            order = comparator(reader, arguments[0], element)
            return Call(f"Stream.{name}By", (owner, order), optional)
        case "reduce", 1:
            function = reader.function(arguments[0], (element, element))
            return Call("Stream.reduce", (owner, function), optional)
        case "reduce", 2:
            start = reader.assigned(reader.argument(arguments[0]), element)
            function = reader.function(arguments[1], (element, element))
            both = Call("Stream.concat", (_one(start), owner), owner.type)
            return Call("Stream.reduce", (both, function), element)
        case (("takeWhile" | "dropWhile"), 1):
            test = reader.function(arguments[0], (element,))
            return Call(f"Stream.{name}", (owner, test), owner.type)
    return None


def _one(value: Expression) -> Expression:
    return Call("List.of", (value,), JavaType("List", (value.type,)))


def _statistics(owner: Expression, name: str) -> Expression | None:
    """Return a number of summary statistics, which are the values themselves here."""
    kind = owner.type.name.removesuffix("SummaryStatistics")
    element = {"Int": INT, "Long": LONG}.get(kind, JavaType("double"))
    values = attrs.evolve(owner, type=JavaType(f"{kind}Stream", (element,)))
    double = JavaType("double")
    match name:
        case "getCount":
            return Call("Stream.count", (values,), LONG)
        case "getSum":
            return Call("Stream.sum", (values,), LONG if element == INT else element)
        case "getAverage":
            average = Call("Stream.average", (values,), JavaType("Optional", (double,)))
            return Call("or else", (average, Const(0.0, double)), double)
        case "getMax" | "getMin" if kind == "Double":
            least = float("-inf") if name == "getMax" else float("inf")
            found = Call(f"Stream.{name[3:].lower()}", (values,), JavaType("Optional", (double,)))
            return Call("or else", (found, Const(least, double)), double)
        case "getMax" | "getMin":
            return Call(f"Stream.{name[3:].lower()}", (values,), element)
    return None


def _ended(owner: Expression, name: str, element: JavaType) -> Expression | None:
    kind = owner.type.name
    match name:
        case "boxed" | "parallel" | "sequential":
            return Call("stream", (owner,), JavaType("Stream", (element,)))
        case "summaryStatistics" if kind != "Stream":
            names = {"IntStream": "Int", "LongStream": "Long", "DoubleStream": "Double"}
            return Call("stream", (owner,), JavaType(f"{names[kind]}SummaryStatistics", (element,)))
        case "sorted":
            return Call("Stream.sorted", (owner,), owner.type)
        case "asDoubleStream":
            return Call("stream", (owner,), JavaType("DoubleStream", (JavaType("double"),)))
        case "iterator":
            return Call("iterator", (owner,), JavaType("Iterator", (element,)))
        case "distinct":
            return Call("Stream.distinct", (owner,), owner.type)
        case "count":
            return Call("Stream.count", (owner,), LONG)
        case "toList":
            return Call("Stream.toList", (owner,), JavaType("List", (element,)))
        case "findFirst" | "findAny":
            return Call("Stream.findFirst", (owner,), JavaType("Optional", (element,)))
        case "sum" if kind != "Stream":
            return Call("Stream.sum", (owner,), unboxed(element))
        case "average" if kind != "Stream":
            return Call("Stream.average", (owner,), JavaType("Optional", (JavaType("double"),)))
        case "max" | "min" if kind != "Stream":
            return Call(f"Stream.{name}", (owner,), JavaType("Optional", (element,)))
    return None


def _of_optional(
    reader: Reading, owner: Expression, name: str, arguments: list[Node]
) -> Expression | None:
    element = element_of(owner.type)
    if name in ("isPresent", "isEmpty") and not arguments:
        found: Expression = Call("is null", (owner,), BOOLEAN)
        return found if name == "isEmpty" else reader.negated(found)
    if name in ("get", "getAsDouble", "getAsInt", "getAsLong", "orElseThrow") and not arguments:
        return Call("not null", (owner,), element)
    if name in ("map", "filter", "flatMap") and len(arguments) == 1:
        function = reader.function(arguments[0], (element,))
        type_ = element if name == "filter" else function.type
        if name == "flatMap":
            type_ = element_of(function.type)
        return Call(f"Optional.{name}", (owner, function), JavaType("Optional", (type_,)))
    if name == "orElseGet" and len(arguments) == 1 and arguments[0].type == "lambda_expression":
        arguments = [arguments[0].child_by_field_name("body")]
        name = "orElse"
    if name == "orElse" and len(arguments) == 1:
        other = reader.argument(arguments[0])
        if element != UNKNOWN:
            other = reader.cast(other, element)
        return Call("or else", (owner, other), element)
    return None
