# SPDX-License-Identifier: Apache-2.0
"""
The methods of Java's library and Flink: one row each.

A row names the class, the method, the number of arguments, the type of the result and the
operation that a call becomes: a template of Python, an operation that others know too, or a
function for what depends on the operands. The object of a method is its first operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import attrs

from pyflinkcep.migrate.java.constants import BITS, promoted
from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, LONG, STRING, UNKNOWN, JavaType
from pyflinkcep.migrate.java.project import is_enum, never_equal
from pyflinkcep.migrate.java.source import Node, children, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.json_nodes import json_call
from pyflinkcep.migrate.meaning.operations import Operation
from pyflinkcep.migrate.meaning.reading import Reading, element_of
from pyflinkcep.migrate.meaning.tree import Call, Const, Expression, Get, Lambda, Make, Unary, Var
from pyflinkcep.migrate.runtime import text

Operands = tuple[Expression, ...]
Result = JavaType | Callable[[Operands], JavaType]
Made = Callable[[Reading, Operands, Node], Expression | None]
"""Makes what a call becomes; None if it has no translation."""
_DOUBLE, _CHAR, _VOID = JavaType("double"), JavaType("char"), JavaType("void")
_DECIMAL, _DURATION, _INSTANT = (JavaType(n) for n in ("BigDecimal", "Duration", "Instant"))
_ANY = -1
"""Any number of arguments."""


@attrs.frozen
class Method:
    """A row: methods of some classes, and what a call of them becomes."""

    owners: str  # Names of classes, or of kinds of them, with | between
    names: str
    count: int
    result: Result
    becomes: str | Operation | Made
    # By the type of the object, those of the parameters of a function that is an argument.
    given: Callable[[JavaType], tuple[JavaType, ...]] = lambda _: ()

    def call(self, reader: Reading, operands: Operands, node: Node) -> Expression | None:
        """Return what a call becomes."""
        if isinstance(self.becomes, Operation):
            result = self.result if isinstance(self.result, JavaType) else self.result(operands)
            return Call(self.becomes, operands, result)
        assert not isinstance(self.becomes, str)
        return self.becomes(reader, operands, node)


def _table(*rows: Method) -> dict[tuple[str, str, int], Method]:
    found: dict[tuple[str, str, int], Method] = {}
    for row in rows:
        if isinstance(row.becomes, str):
            row = attrs.evolve(row, becomes=Operation(row.names, row.becomes))
        for owner in row.owners.split("|"):
            for name in row.names.split("|"):
                found[owner, name, row.count] = row
    return found


# --- types of results


def _element(of: Operands) -> JavaType:
    return _each(of[0].type)[0]


def _same(of: Operands) -> JavaType:
    return of[0].type


def _optional(of: Operands) -> JavaType:
    return JavaType("Optional", (_element(of),))


def _of_elements(kind: str) -> Result:
    return lambda of: JavaType(kind, (_element(of),))


def _pair(type_: JavaType) -> tuple[JavaType, ...]:
    """Return the types of the keys and values of a map or an entry."""
    return type_.args if len(type_.args) == 2 else (UNKNOWN, UNKNOWN)


def _each(type_: JavaType) -> tuple[JavaType, ...]:
    """Return what a function of an element is given."""
    kinds = {"IntStream": INT, "LongStream": LONG, "DoubleStream": _DOUBLE}
    return (kinds.get(type_.name) or element_of(type_),)


# --- what depends on operands


def _numeric(
    operation: Operation,
    cast: JavaType | None,
    result: JavaType | None,
    reader: Reading,
    of: Operands,
    _: Node,
) -> Expression | None:
    """Return an operation of numbers as values of a type, or of their common one."""
    if not all(one.type.is_numeric or (cast and one.type == UNKNOWN) for one in of):
        return None
    type_ = cast or JavaType(promoted(*(one.type.unboxed.name for one in of)))
    return Call(operation, tuple(reader.cast(one, type_) for one in of), result or type_)


def _absolute(reader: Reading, of: Operands, _: Node) -> Expression | None:
    type_ = of[0].type.unboxed
    if not type_.is_numeric:
        return None
    type_ = type_ if type_.is_floating or type_ == LONG else INT
    operation = {"int": ops.ABS_INT, "long": ops.ABS_LONG}.get(type_.name, ops.ABS)
    return Call(operation, (reader.cast(of[0], type_),), type_)


def _rounded(reader: Reading, of: Operands, _: Node) -> Expression | None:
    if not of[0].type.is_numeric:
        return None
    if of[0].type.unboxed == JavaType("float"):
        return Call(ops.ROUND_FLOAT, of, INT)
    return Call(ops.ROUND, (reader.cast(of[0], _DOUBLE),), LONG)


def _parsed(type_: str, reader: Reading, of: Operands, node: Node) -> Expression | None:
    is_text = of[0].type in (STRING, UNKNOWN) and type_ in ops.PARSE
    return Call(ops.PARSE[type_], of, JavaType(type_)) if is_text else None


def _boxed(type_: str, reader: Reading, of: Operands, node: Node) -> Expression | None:
    if of[0].type.is_numeric:
        return reader.cast(of[0], JavaType(type_))
    return _parsed(type_, reader, of, node) if of[0].type in (STRING, UNKNOWN) else of[0]


def _flag(_: Reading, of: Operands, __: Node) -> Expression | None:
    return Call(ops.PARSE_BOOLEAN, of, BOOLEAN) if of[0].type == STRING else of[0]


def _not(operation: Operation) -> Made:
    return lambda _, of, __: Unary("!", Call(operation, of, BOOLEAN), BOOLEAN)


_FORMATS = re.compile(r"%[-+0 ,#]*\d*(?:\.\d+)?(.|\n|)")


def _formatted(reader: Reading, of: Operands, node: Node) -> Expression | None:
    """Return a text made by a pattern, if the pattern is a constant."""
    if len(of) > 1 and of[0].type.name == "Locale":
        of = of[1:]
    pattern = of[0].value if of and isinstance(of[0], Const) else None
    if not isinstance(pattern, str):
        return None
    kinds = _FORMATS.findall(pattern)
    if not set(kinds) <= set("sdfxXcbn%"):
        raise reader.no(node, "String.format() with an unusual pattern")
    values, kinds = list(of), [kind for kind in kinds if kind not in "n%"]
    for place, kind in enumerate(kinds[: len(of) - 1], 1):
        bits = BITS.get(of[place].type.unboxed.name)
        if kind in "xX" and bits is None:
            raise reader.no(node, f"String.format() of {of[place].type} with %{kind}")
        if kind in "xX" and bits is not None:  # of a negative number, its bits
            unsigned = Operation("unsigned", f"a % {1 << bits}")
            values[place] = Call(unsigned, (of[place],), of[place].type)
    return Call(ops.FORMAT, tuple(values), STRING)


def _cased(operation: Operation) -> Made:
    """Return ``toLowerCase(Locale)`` without its locale."""
    return lambda _, of, __: (
        Call(operation, of[:1], STRING) if of[1].type.name == "Locale" else None
    )


def _replaced(reader: Reading, of: Operands, node: Node) -> Expression | None:
    if not isinstance(of[2], Const) or set(str(of[2].value)) & set("$\\"):
        raise reader.no(node, "replaceAll() with groups")
    return Call(ops.REPLACE_ALL, of, STRING)


def _joined(_: Reading, of: Operands, __: Node) -> Expression | None:
    """Return ``String.join`` of a list, or of several texts."""
    many = ("List", "Set", "ArrayList", "Collection", "Iterable")
    if len(of) < 2:
        return None
    is_list = len(of) == 2 and (of[1].type.name in many or of[1].type.dims)
    values = of[1] if is_list else Call(ops.LIST, of[1:], JavaType("List", (STRING,)))
    return Call(ops.JOINING, (values, of[0]), STRING)


def _appended(reader: Reading, of: Operands, node: Node) -> Expression | None:
    if not _is_all_of_statement(node):
        raise reader.no(node, "append() changes a text whose value is used here")
    return Call(ops.APPEND, of, of[0].type)


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
    bodies = ("expression_statement", "lambda_expression", "switch_rule", "for_statement")
    only = text_of(whole.child_by_field_name("name")) == "append"
    return only and around is not None and around.type in bodies


def _tuple(_: Reading, of: Operands, __: Node) -> Expression | None:
    name = f"Tuple{len(of)}"
    fields = tuple((f"f{place}", one) for place, one in enumerate(of))
    return Make(name, fields, JavaType(name, tuple(one.type for one in of)))


def _listed(kind: str, _: Reading, of: Operands, __: Node) -> Expression | None:
    if len(of) == 1 and of[0].type.dims:
        element = element_of(of[0].type)
        if element.unboxed == element and (element.is_numeric or element == BOOLEAN):
            return None  # a list of one array
        return Call(ops.LIST_OF, of, JavaType(kind, (element,)))
    types = {one.type for one in of}
    args = () if not of else (of[0].type,) if len(types) == 1 else (UNKNOWN,)
    return Call(ops.LIST, of, JavaType(kind, args))


def _mapped(_: Reading, of: Operands, __: Node) -> Expression | None:
    type_ = JavaType("Map", tuple(one.type for one in of[:2]))
    return Call(ops.MAP, of, type_) if len(of) % 2 == 0 else None


def _streamed(_: Reading, of: Operands, __: Node) -> Expression | None:
    if not of or not (of[0].type.dims or of[0].type.name in ("Iterable", "List")):
        return None
    return Call(ops.STREAM, of[:1], JavaType("Stream", (element_of(of[0].type),)))


def _in_time_unit(
    millis: int, target: int, reader: Reading, of: Operands, node: Node
) -> Expression | None:
    if not of[0].type.is_whole:
        return None
    sign, by = ("*", millis // target) if millis >= target else ("/", target // millis)
    return reader.operation(sign, reader.cast(of[0], LONG), Const(by, LONG), node)


def _decimal_of(exact: bool, _: Reading, of: Operands, __: Node) -> Expression | None:
    """Return a number as a decimal: its digits, or what a double is exactly."""
    (value,) = of
    if isinstance(value, Const):
        number = Decimal(value.value) if exact and value.type.is_floating else value.value
        value = Const(text(number), STRING)
    return Call(ops.DECIMAL, (value,), _DECIMAL) if value.type == STRING else None


def _at_utc(_: Reading, of: Operands, __: Node) -> Expression | None:
    """Return a moment as a time of UTC."""
    is_utc = isinstance(of[1], Const) and of[1].value == "UTC"
    return Call(ops.COPY, of[:1], JavaType("LocalDateTime")) if is_utc else None


def _duration(unit: int) -> Made:
    return lambda _, of, __: Call(ops.DURATION, (*of, Const(unit, INT)), _DURATION)


def _in_unit(
    unit: int, operation: Operation, _: Reading, of: Operands, __: Node
) -> Expression | None:
    """Return a duration in a unit: Java rounds its seconds down, larger units towards zero."""
    match of[0]:
        case Call(ops.DURATION, (Const(value=int(count)), Const(value=int(size)))):
            return Const(count * size // unit, LONG)
    return Call(operation, of, LONG)


def _of_same_type(template: str) -> Made:
    operation = Operation("isAfter", template)
    return lambda _, of, __: Call(operation, of, BOOLEAN) if of[0].type == of[1].type else None


def _millis(_: Reading, of: Operands, __: Node) -> Expression | None:
    if isinstance(of[0], Call) and of[0].operation is ops.TIME_OF_MILLIS:
        return of[0].operands[0]
    return Call(ops.MILLIS_OF, of, LONG)


def _searched(
    operation: Operation,
    result: JavaType,
    missing: bool | int,
    reader: Reading,
    of: Operands,
    node: Node,
) -> Expression | None:
    """Return where a list has a value, or whether: never, if the types differ."""
    element = element_of(of[0].type)
    if never_equal(element, of[1].type):
        what = f"no {element} equals {of[1].type}: it is never found"
        reader.note(node, what)
        return Const(missing, result)
    return Call(operation, of, result)


def _keyed(
    operation: Operation, result: JavaType | None, reader: Reading, of: Operands, node: Node
) -> Expression | None:
    """Return what a map has for a key."""
    key, value = _pair(of[0].type)
    if never_equal(key, of[1].type):
        raise reader.no(node, f"a key {of[1].type} of a map of {key}, which has none")
    return Call(operation, of, result or value)


def _iterated(
    operation: Operation, of_list: Operation, _: Reading, of: Operands, __: Node
) -> Expression | None:
    """Return a step of an iterator: of a new one, something of the list itself."""
    type_ = BOOLEAN if operation is ops.HAS_NEXT else element_of(of[0].type)
    match of[0]:
        case Call(ops.ITERATOR, whole):
            return Call(of_list, whole, type_)
    return Call(operation, of, type_)


def _mapped_to(
    type_: JavaType, kind: str, reader: Reading, of: Operands, _: Node
) -> Expression | None:
    function = of[1]
    if not isinstance(function, Lambda):
        return None
    inner = Lambda(function.parameters, reader.cast(function.body, type_), type_)
    return Call(ops.MAPPED, (of[0], inner), JavaType(kind, (type_,)))


def _reduced(reader: Reading, of: Operands, _: Node) -> Expression | None:
    element = _element(of)
    first = (reader.assigned(of[1], element), *of)
    return Call(Operation("Stream.reduce", "reduced([*[a], *b], d)"), first, element)


def _or_else(reader: Reading, of: Operands, _: Node) -> Expression | None:
    element = element_of(of[0].type)
    other = of[1].body if isinstance(of[1], Lambda) else of[1]
    other = other if element == UNKNOWN else reader.cast(other, element)
    return Call(ops.OR_ELSE, (of[0], other), element)


_CONVERSIONS = {
    "intValue": "int", "longValue": "long", "doubleValue": "double", "floatValue": "float",
    "shortValue": "short", "byteValue": "byte", "booleanValue": "boolean", "charValue": "char",
}  # fmt: skip


def _unboxed(type_: str, reader: Reading, of: Operands, _: Node) -> Expression | None:
    value = reader.cast(attrs.evolve(of[0], type=of[0].type.unboxed), JavaType(type_))
    return Call(ops.NOT_NULL, (value,), value.type)


def _events(reader: Reading, of: Operands, _: Node) -> Expression | None:
    type_ = JavaType("Iterable", (reader.event_type,))
    if not reader.event_type.is_plain:
        return Call(ops.EVENTS, of[1:], type_)
    value = Get(Var("each", UNKNOWN), "value", reader.event_type)
    values = Lambda(("each",), value, reader.event_type)
    return Call(ops.MAPPED, (Call(ops.EVENTS, of[1:], JavaType("Iterable")), values), type_)


def _in_context(operation: Operation, type_: JavaType) -> Made:
    return lambda _, of, __: Call(operation, of[1:], type_)


# --- the table

LISTS = ("List", "ArrayList", "LinkedList", "Collection", "Set", "HashSet", "Iterable", "Deque",
          "TreeSet", "LinkedHashSet", "ArrayDeque", "ImmutableList", "ImmutableSet", "SortedSet",
          "Queue")  # fmt: skip
MAPS = ("Map", "HashMap", "LinkedHashMap", "TreeMap", "ConcurrentHashMap", "ImmutableMap",
         "SortedMap", "EnumMap")  # fmt: skip
_DATES = "LocalDateTime|ZonedDateTime|LocalDate"
_TIMES = f"{_DATES}|Instant|Date|Timestamp|Duration"
_OF_NUMBERS = "IntStream|LongStream|DoubleStream"
_OF_DOUBLES = {
    **dict.fromkeys(("sqrt", "floor", "ceil", "exp", "log", "log10", "sin", "cos", "signum",
                     "toRadians", "toDegrees", "tan", "asin", "acos", "atan", "rint", "cbrt"), 1),
    "hypot": 2, "atan2": 2,
}  # fmt: skip


def _kinds(type_: JavaType) -> tuple[str, ...]:
    """Return the names under which the table may have the methods of a type."""
    name = type_.name
    if type_.dims:
        return ("List", "*")
    if name in LISTS:
        return ("Set", "List", "*") if "Set" in name else ("List", "*")
    if type_.is_boxed:
        return ("Number", "*")
    if name in ("?", "Object"):
        return ()
    for kind in ("Optional", "Tuple"):
        if name.startswith(kind):
            return (kind, "*")
    for kind in ("Stream", "Context"):
        if name.endswith(kind):
            return (name, kind, "*")
    name = "String" if name == "CharSequence" else name
    return ("Map" if name in MAPS else name, "*")


METHODS = _table(
    Method("*", "equals", 1, BOOLEAN, ops.EQUALS),
    Method("*", "toString", 0, STRING, ops.TO_STRING),
    # --- texts
    Method("String", "equalsIgnoreCase", 1, BOOLEAN, "equals_ignore_case(a, b)"),
    Method("String", "contains", 1, BOOLEAN, ops.CONTAINS),
    Method("String", "startsWith", 1, BOOLEAN, ops.STARTS_WITH),
    Method("String", "endsWith", 1, BOOLEAN, ops.ENDS_WITH),
    Method("String", "matches", 1, BOOLEAN, ops.MATCHES),
    Method("String", "isEmpty", 0, BOOLEAN, ops.IS_EMPTY),
    Method("String", "isBlank", 0, BOOLEAN, "is_a_blank(a)"),
    Method("String|StringBuilder|StringBuffer", "length", 0, INT, "length(a)"),
    Method("String", "toLowerCase", 0, STRING, ops.LOWER),
    Method("String", "toUpperCase", 0, STRING, ops.UPPER),
    Method("String", "toLowerCase", 1, STRING, _cased(ops.LOWER)),
    Method("String", "toUpperCase", 1, STRING, _cased(ops.UPPER)),
    Method("String", "trim", 0, STRING, "trim(a)"),
    *(Method("String|StringBuilder|StringBuffer", "substring", count, STRING, "substring(*all)")
      for count in (1, 2)),
    Method("String", "charAt", 1, _CHAR, "char_at(a, b)"),
    Method("String", "indexOf", 1, INT, "index_of(a, b)"),
    Method("String", "lastIndexOf", 1, INT, "index_of(a, b, last=True)"),
    Method("String", "replace", 2, STRING, "present(a).replace(present(b), present(c))"),
    Method("String", "replaceAll", 2, STRING, _replaced),
    Method("String", "concat", 1, STRING, ops.CONCAT),
    Method("String", "compareTo", 1, INT, "compare_text(a, b)"),
    Method("String", "repeat", 1, STRING, "a * b"),
    Method("String", "split", 1, JavaType("String", (), 1), "java_split(a, regex(b))"),
    Method("String", "split", 2, JavaType("String", (), 1), "java_split(a, regex(b), c)"),
    Method("String", "chars", 0, JavaType("Stream", (_CHAR,)), ops.CHARS),
    Method("String", "toCharArray", 0, JavaType("char", (), 1), ops.CHARS),
    Method("String", "formatted", _ANY, STRING, _formatted),
    Method("StringBuilder|StringBuffer", "append", 1, _same, _appended),
    # --- numbers and classes
    *(Method("Number", name, 0, UNKNOWN, partial(_unboxed, type_))
      for name, type_ in _CONVERSIONS.items()),
    Method("Number", "compareTo", 1, INT, partial(_numeric, ops.COMPARE, None, INT)),
    Method("Number", "isNaN", 0, BOOLEAN, ops.IS_NAN),
    Method("Number", "isInfinite", 0, BOOLEAN, "math.isinf(a)"),
    Method("BigDecimal", "compareTo", 1, INT,
           lambda _, of, __: Call(ops.COMPARE, of, INT) if of[1].type == _DECIMAL else None),
    *(Method("BigDecimal", name, 1, _DECIMAL, f'decimal(a, b, "{name}")')
      for name in ("add", "subtract", "multiply")),
    Method("BigDecimal", "doubleValue", 0, _DOUBLE, "float(a)"),
    Method("BigDecimal", "intValue|longValue", 0, LONG, "int(a)"),
    Method("Class", "getSimpleName", 0, STRING, lambda _, of, __: (
        attrs.evolve(of[0], type=STRING) if isinstance(of[0], Const | Get) else None)),
    # --- times
    *(Method("Duration", name, 0, LONG, partial(_in_unit, unit, Operation("Duration.to", python)))
      for name, unit, python in (
          ("toMillis", 1, "millis(a)"), ("getSeconds|toSeconds", 1000, "millis(a) // 1000"),
          ("toMinutes", 60_000, "div_int(millis(a) // 1000, 60)"),
          ("toHours", 3_600_000, "div_int(millis(a) // 1000, 3600)"),
          ("toDays", 86_400_000, "div_int(millis(a) // 1000, 86400)"),
      )),
    Method(_TIMES, "isAfter|after", 1, BOOLEAN, _of_same_type("a > b")),
    Method(_TIMES, "isBefore|before", 1, BOOLEAN, _of_same_type("a < b")),
    Method(_TIMES, "toEpochMilli|getTime", 0, LONG, _millis),
    Method(_TIMES, "compareTo", 1, INT, ops.COMPARE),
    *(Method(_DATES, f"get{part}", 0, INT, f"a.{python}")
      for part, python in (("Hour", "hour"), ("Minute", "minute"), ("Second", "second"),
                           ("Year", "year"), ("MonthValue", "month"), ("DayOfMonth", "day"))),
    # --- lists, sets, iterators
    Method("List", "stream|parallelStream", 0, _of_elements("Stream"), ops.STREAM),
    Method("List", "spliterator", 0, UNKNOWN, lambda _, of, __: of[0]),
    Method("List|Stream", "iterator|listIterator", 0, _of_elements("Iterator"), ops.ITERATOR),
    Method("List|Map", "size", 0, INT, ops.SIZE),
    Method("List|Map", "isEmpty", 0, BOOLEAN, ops.NO_ELEMENTS),
    Method("List", "getFirst|peekFirst|first", 0, _element, ops.FIRST),
    Method("List", "getLast|peekLast|last", 0, _element, ops.LAST),
    Method("List", "clear", 0, _VOID, ops.CLEAR),
    Method("List", "removeIf", 1, _VOID, ops.REMOVE_IF, _each),
    Method("List", "get|elementAt", 1, _element, ops.GET),
    Method("List", "contains", 1, BOOLEAN, partial(_searched, ops.HAS, BOOLEAN, False)),
    Method("List", "indexOf", 1, INT,
           partial(_searched, Operation("List.indexOf", "index_in(a, b)"), INT, -1)),
    Method("List", "add|addLast", 1, _VOID, ops.ADD),
    Method("Set", "add|addLast", 1, BOOLEAN, ops.ADD_TO_SET),
    Method("List", "addAll", 1, _VOID, ops.ADD_ALL),
    Method("Set", "addAll", 1, _VOID, ops.ADD_ALL_TO_SET),
    Method("List", "containsAll", 1, BOOLEAN, "all(one in a for one in b)"),
    Method("List", "subList", 2, _same, "held(a)[b:c]"),
    Method("Iterator|ListIterator", "next", 0, _element, partial(_iterated, ops.NEXT, ops.FIRST)),
    Method("Iterator|ListIterator", "hasNext", 0, BOOLEAN,
           partial(_iterated, ops.HAS_NEXT, ops.HAS_ANY)),
    # --- maps
    Method("Map", "get", 1, UNKNOWN, partial(_keyed, ops.MAP_GET, None)),
    Method("Map", "getOrDefault", 2, UNKNOWN, partial(_keyed,
        Operation("Map.getOrDefault", "a.get(b, c)", nullable=True, is_part=True), None)),
    Method("Map", "containsKey", 1, BOOLEAN, partial(_keyed, ops.HAS, BOOLEAN)),
    Method("Map", "containsValue", 1, BOOLEAN, "b in a.values()"),
    Method("Map", "put", 2, _VOID, ops.PUT),
    Method("Map", "putIfAbsent", 2, _VOID,
           Operation("Map.putIfAbsent", "a.setdefault(b, c)", changes=True)),
    Method("Map", "merge", 3, lambda of: _pair(of[0].type)[1], ops.MERGE,
           lambda type_: (_pair(type_)[1],) * 2),
    Method("Map", "computeIfAbsent", 2, lambda of: _pair(of[0].type)[1], ops.COMPUTE,
           lambda type_: _pair(type_)[:1]),
    Method("Map", "keySet", 0, lambda of: JavaType("Set", _pair(of[0].type)[:1]), "a.keys()"),
    Method("Map", "values", 0, lambda of: JavaType("Collection", _pair(of[0].type)[1:]),
           Operation("Map.values", "a.values()", is_part=True)),
    Method("Map", "entrySet", 0,
           lambda of: JavaType("Set", (JavaType("Entry", _pair(of[0].type)),)), ops.ENTRIES),
    Method("Entry", "getKey", 0, lambda of: _pair(of[0].type)[0], ops.KEY),
    Method("Entry", "getValue", 0, lambda of: _pair(of[0].type)[1], ops.VALUE),
    # --- streams
    Method("Stream", "filter", 1, _same, ops.FILTER, _each),
    Method("Stream", "anyMatch", 1, BOOLEAN, ops.ANY_MATCH, _each),
    Method("Stream", "allMatch", 1, BOOLEAN, ops.ALL_MATCH, _each),
    Method("Stream", "noneMatch", 1, BOOLEAN, ops.NONE_MATCH, _each),
    Method("Stream", "map", 1, lambda of: JavaType(of[0].type.name, (of[1].type,)), ops.MAPPED,
           _each),
    Method("Stream", "mapToObj", 1, lambda of: JavaType("Stream", (of[1].type,)), ops.MAPPED,
           _each),
    *(Method("Stream", f"mapTo{kind}", 1, UNKNOWN,
             partial(_mapped_to, type_, f"{kind}Stream"), _each)
      for kind, type_ in (("Int", INT), ("Long", LONG), ("Double", _DOUBLE))),
    Method("Stream", "flatMap", 1, lambda of: attrs.evolve(of[1].type, name="Stream"),
           ops.FLAT_MAPPED, _each),
    Method("Stream", "boxed|parallel|sequential", 0, _of_elements("Stream"), ops.STREAM),
    Method("Stream", "asDoubleStream", 0, JavaType("DoubleStream", (_DOUBLE,)), ops.STREAM),
    Method("Stream", "sorted", 0, _same, "in_order(a)"),
    Method("Stream", "distinct", 0, _same, "distinct(a)"),
    Method("Stream", "count", 0, LONG, ops.COUNT),
    Method("Stream", "toList", 0, _of_elements("List"), ops.TO_LIST),
    Method("Stream", "findFirst|findAny", 0, _optional,
           Operation("Stream.findFirst", "next(iter(a), None)", nullable=True)),
    Method("Stream", "limit", 1, _same, ops.LIMIT),
    Method("Stream", "skip", 1, _same, ops.SKIP),
    Method("Stream", "reduce", 1, _optional, ops.REDUCED, lambda type_: _each(type_) * 2),
    Method("Stream", "reduce", 2, UNKNOWN, _reduced, lambda type_: _each(type_) * 2),
    Method(_OF_NUMBERS, "sum", 0, _element, ops.SUM),
    Method(_OF_NUMBERS, "average", 0, JavaType("Optional", (_DOUBLE,)), "stream_average(a)"),
    Method(_OF_NUMBERS, "max", 0, _optional, "reduced(a, java_max)"),
    Method(_OF_NUMBERS, "min", 0, _optional, "reduced(a, java_min)"),
    *(Method("Stream", name, 1, _optional, Operation(
        f"Stream.{name}", f"{name}(a, key=by(b), default=None)", nullable=True), _each)
      for name in ("max", "min")),
    Method("Stream", "sorted", 1, _same,
           Operation("Stream.sorted", "sorted(a, key=by(b))", makes_list=True), _each),
    Method("Optional", "isPresent", 0, BOOLEAN, _not(ops.IS_NULL)),
    Method("Optional", "isEmpty", 0, BOOLEAN, ops.IS_NULL),
    Method("Optional", "get|getAsDouble|getAsInt|getAsLong|orElseThrow", 0, _element, ops.NOT_NULL),
    Method("Optional", "map", 1, lambda of: JavaType("Optional", (of[1].type,)), "mapped(a, b)",
           _each),
    Method("Optional", "flatMap", 1, lambda of: JavaType("Optional", (element_of(of[1].type),)),
           "mapped(a, b)", _each),
    Method("Optional", "filter", 1, _optional, "kept_if(a, b)", _each),
    Method("Optional", "orElse|orElseGet", 1, UNKNOWN, _or_else),
    # --- Flink
    Method("Context", "getEventsForPattern", 1, UNKNOWN, _events),
    Method("Context", "timestamp", 0, LONG, _in_context(ops.TIMESTAMP, LONG)),
    Method("Context", "currentProcessingTime", 0, LONG, _in_context(ops.PROCESSING_TIME, LONG)),
    Method("Context", "output", 2, _VOID, _in_context(ops.OUTPUT, _VOID)),
    Method("Collector", "collect", 1, _VOID, ops.COLLECT),
)  # fmt: skip

_BOXES = {
    "Integer": "int", "Long": "long", "Double": "double", "Float": "float", "Short": "short",
    "Byte": "byte",
}  # fmt: skip
_UNITS = {
    "MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000,
}  # fmt: skip

STATIC = _table(
    Method("Objects|StringUtils", "equals", 2, BOOLEAN, ops.SAME),
    Method("Objects", "isNull", 1, BOOLEAN, ops.IS_NULL),
    Method("Objects", "nonNull", 1, BOOLEAN, _not(ops.IS_NULL)),
    Method("Objects", "requireNonNullElse", 2, _same, ops.OR_ELSE),
    *(Method("Objects", "requireNonNull", count, _same,
             lambda _, of, __: Call(ops.NOT_NULL, of[:1], of[0].type)) for count in (1, 2)),
    Method("StringUtils|Strings|CollectionUtils|CollectionUtil", "isEmpty|isNullOrEmpty", 1,
           BOOLEAN, ops.EMPTY_OR_NULL),
    Method("StringUtils", "isBlank", 1, BOOLEAN, ops.BLANK_OR_NULL),
    Method("StringUtils", "isNotEmpty", 1, BOOLEAN, _not(ops.EMPTY_OR_NULL)),
    Method("StringUtils", "isNotBlank", 1, BOOLEAN, _not(ops.BLANK_OR_NULL)),
    Method("String", "valueOf", 1, STRING, lambda _, of, __: (
        Call(ops.JOINING if of[0].type == JavaType("char", (), 1) else ops.TEXT, of, STRING))),
    Method("Arrays", "toString", 1, STRING, "text(a)"),
    Method("Objects|Integer|Long|Double|Float|Short|Byte|Character|Boolean", "toString", 1, STRING,
           ops.TEXT),
    Method("String", "format", _ANY, STRING, _formatted),
    Method("String", "join", _ANY, STRING, _joined),
    Method("Boolean", "parseBoolean|valueOf", 1, BOOLEAN, _flag),
    *(Method(owner, "parseInt" if type_ == "int" else f"parse{owner}", 1, UNKNOWN,
             partial(_parsed, type_))
      for owner, type_ in _BOXES.items()),
    *(Method(owner, "valueOf", 1, UNKNOWN,
             partial(_boxed, type_)) for owner, type_ in _BOXES.items()),
    *(Method(owner, "compare", 2, INT, partial(_numeric, ops.COMPARE, JavaType(_BOXES[owner]), INT))
      for owner in ("Integer", "Long", "Double", "Float")),
    Method("Integer|Long|Double|Float", "sum", 2, UNKNOWN,
           lambda reader, of, node: reader.operation("+", of[0], of[1], node)),
    Method("Math|Integer|Long|Double|Float", "max", 2, UNKNOWN,
           partial(_numeric, ops.MAX, None, None)),
    Method("Math|Integer|Long|Double|Float", "min", 2, UNKNOWN,
           partial(_numeric, ops.MIN, None, None)),
    *(Method("Math", name, 2, UNKNOWN, partial(_numeric, Operation(name, python), None, None))
      for name, python in (("floorMod", "a % b"), ("floorDiv", "a // b"))),
    Method("Math", "abs", 1, UNKNOWN, _absolute),
    Method("Math", "round", 1, UNKNOWN, _rounded),
    Method("Math", "pow", 2, _DOUBLE, partial(_numeric, ops.POW, _DOUBLE, None)),
    *(Method("Math", name, count, _DOUBLE,
             partial(_numeric, Operation(f"Math.{name}", f'java_math(*all, "{name}")'),
                     _DOUBLE, None))
      for name, count in _OF_DOUBLES.items()),
    Method("Double", "isNaN", 1, BOOLEAN, ops.IS_NAN),
    Method("Character", "toUpperCase", 1, _CHAR, ops.UPPER),
    Method("Character", "toLowerCase", 1, _CHAR, ops.LOWER),
    *(Method("Character", name, 1, BOOLEAN, f'char_is(a, "{name}")')
      for name in ("isDigit", "isLetter", "isLetterOrDigit", "isUpperCase", "isLowerCase",
                   "isWhitespace")),
    Method("BigDecimal", "valueOf", 1, _DECIMAL, partial(_decimal_of, False)),
    Method("BigDecimal", "new", 1, _DECIMAL, partial(_decimal_of, True)),
    *(Method(name, "new", 1, JavaType(name), ops.TIME_OF_MILLIS) for name in ("Date", "Timestamp")),
    Method("JSONObject|ObjectNode|JsonObject", "new", 0, JavaType("JSONObject"), ops.MAP),
    Method("JSONObject", "new", 1, UNKNOWN, lambda _, of, __: (
        Call(ops.JSON_OF, of, JavaType("JsonNode")) if of[0].type == STRING else None)),
    Method("Pattern", "matches", 2, BOOLEAN,
           lambda _, of, __: Call(ops.MATCHES, of[::-1], BOOLEAN)),
    # --- times
    Method("System", "currentTimeMillis", 0, LONG, "current_millis()"),
    Method("Duration", "between", 2, _DURATION, "b - a"),
    *(Method("Duration", f"of{unit.capitalize()}", 1, _DURATION, _duration(millis))
      for unit, millis in (("MILLIS", 1), *list(_UNITS.items())[1:])),
    Method("Instant", "ofEpochMilli", 1, _INSTANT, ops.TIME_OF_MILLIS),
    Method("LocalDateTime", "ofInstant", 2, UNKNOWN, _at_utc),
    Method("Timestamp|Date", "from", 1, UNKNOWN, lambda _, of, __: of[0]),
    Method("Locale", "getDefault", 0, UNKNOWN, lambda *_: Const("ROOT", JavaType("Locale"))),
    *(Method(unit, name, 1, UNKNOWN, partial(_in_time_unit, millis, target))
      for unit, millis in _UNITS.items()
      for name, target in (("toMillis", 1), ("toSeconds", 1000), ("toMinutes", 60_000),
                           ("toHours", 3_600_000))),
    # --- lists, maps and streams
    *(Method(f"Tuple{count}", "of", count, UNKNOWN, _tuple) for count in range(1, 26)),
    Method("Row", "of", _ANY, UNKNOWN, _tuple),
    Method("Arrays|List|ImmutableList|Collections", "asList|of|emptyList|singletonList", _ANY,
           UNKNOWN, partial(_listed, "List")),
    Method("Set|ImmutableSet|EnumSet|Collections", "of|emptySet|singleton", _ANY, UNKNOWN,
           partial(_listed, "Set")),
    Method("Map|ImmutableMap|Collections", "of|emptyMap", _ANY, UNKNOWN, _mapped),
    Method("Collections",
           "unmodifiableList|unmodifiableSet|unmodifiableMap|unmodifiableCollection", 1, UNKNOWN,
           lambda _, of, __: of[0]),
    Method("Collections", "disjoint", 2, BOOLEAN, _not(ops.MEETS)),
    Method("Arrays|Collections", "sort", 1, _VOID, ops.SORT),
    Method("Lists", "reverse", 1, _same,
           Operation("Lists.reverse", "held(a)[::-1]", makes_list=True)),
    Method("Iterables", "size", 1, INT, ops.SIZE),
    Method("Iterables", "isEmpty", 1, BOOLEAN, ops.NO_ELEMENTS),
    Method("Iterables", "getLast", 1, _element, ops.LAST),
    Method("StreamSupport|Arrays|Streams", "stream", _ANY, UNKNOWN, _streamed),
    Method("IntStream", "range", 2, JavaType("IntStream", (INT,)), ops.RANGE),
    Method("Optional", "of|ofNullable", 1, lambda of: JavaType("Optional", (of[0].type,)),
           ops.COPY),
)  # fmt: skip

_LOCALES = ("ROOT", "ENGLISH", "US", "UK", "CANADA", "GERMAN", "GERMANY", "FRENCH", "FRANCE",
            "ITALIAN", "ITALY", "CHINESE", "CHINA", "JAPAN", "JAPANESE", "KOREA",
            "KOREAN")  # fmt: skip
CONSTANTS: dict[tuple[str, str], Expression] = {
    **{("Locale", name): Const(name, JavaType("Locale")) for name in _LOCALES},
    ("Boolean", "TRUE"): Const(True, BOOLEAN),
    ("Boolean", "FALSE"): Const(False, BOOLEAN),
    ("ZoneOffset", "UTC"): Const("UTC", JavaType("ZoneId")),
    ("Math", "PI"): Const(3.141592653589793, _DOUBLE),
    ("Math", "E"): Const(2.718281828459045, _DOUBLE),
    **{
        ("BigDecimal", name): Call(ops.DECIMAL, (Const(value, STRING),), _DECIMAL)
        for name, value in (("ZERO", "0"), ("ONE", "1"), ("TEN", "10"))
    },
}
"""By class and name, constants of Java's library."""


def static_call(
    reader: Reading, owner: str, name: str, operands: Operands, node: Node
) -> Expression | None:
    """Return what a method of a class of the library returns; None if it has no translation."""
    row = STATIC.get((owner, name, len(operands))) or STATIC.get((owner, name, _ANY))
    return None if row is None else row.call(reader, operands, node)


def library_call(
    reader: Reading, owner: Expression, name: str, arguments: list[Node], node: Node
) -> Expression | None:
    """Return a method of an object of the library; None if it has no translation."""
    found = json_call(reader, owner, name, arguments, node)
    if found is not None:
        return found
    if name == "collect" and owner.type.name.endswith("Stream") and len(arguments) == 1:
        made = _collector(reader, arguments[0], _element((owner,)))
        return None if made is None else made(owner)
    for kind in _kinds(owner.type):
        row = METHODS.get((kind, name, len(arguments))) or METHODS.get((kind, name, _ANY))
        if row is not None:
            given = row.given(owner.type)
            operands = tuple(_argument(reader, argument, given) for argument in arguments)
            return row.call(reader, (owner, *operands), node)
    if is_enum(owner.type, reader.scope.project, reader.source) and name == "name":
        return Call(ops.NAME_OF, (owner,), STRING)
    return None


def _argument(reader: Reading, argument: Node, given: tuple[JavaType, ...]) -> Expression:
    """Return an argument; ``Comparator.comparing(f)`` is the function."""
    if given and argument.type == "method_invocation":
        inner = children(argument.child_by_field_name("arguments"))
        called = text_of(argument).removesuffix(text_of(argument.child_by_field_name("arguments")))
        argument = inner[0] if called in _COMPARATORS and len(inner) == 1 else argument
    if argument.type in ("lambda_expression", "method_reference"):
        return reader.function(argument, given)
    return reader.read(argument)


_COMPARATORS = tuple(f"Comparator.comparing{kind}" for kind in ("", "Int", "Long", "Double"))
_DISTINCT = ("equalsIgnoreCase", "startsWith", "endsWith", "toLowerCase", "toUpperCase", "trim")
"""Methods that only strings have."""
_OF_TEXTS = ("contains", "compareTo", "matches", "concat")


def by_name(
    reader: Reading, owner: Expression, name: str, operands: Operands, node: Node
) -> Expression | None:
    """Return a method of an object of unknown type, if its name says what it is."""
    is_text = name in _OF_TEXTS and bool(operands) and operands[0].type == STRING
    if name in _CONVERSIONS and not operands:
        return reader.cast(owner, JavaType(_CONVERSIONS[name]))
    kind = "String" if is_text or name in _DISTINCT else "*"
    row = METHODS.get((kind, name, len(operands)))
    if row is None:
        return None
    of = attrs.evolve(owner, type=STRING) if kind == "String" else owner
    return row.call(reader, (of, *operands), node)


# --- collectors

Collector = Callable[[Expression], Expression]


def _collector(reader: Reading, node: Node, element: JavaType) -> Collector | None:
    """Return what ``collect`` makes of a stream with a collector; None if that is unknown."""
    if node.type != "method_invocation":
        return None
    name = text_of(node.child_by_field_name("name"))
    arguments = children(node.child_by_field_name("arguments"))
    match name, len(arguments):
        case (("toList" | "toUnmodifiableList"), 0):
            return lambda of: Call(ops.TO_LIST, (of,), JavaType("List", (element,)))
        case (("toSet" | "toUnmodifiableSet"), 0):
            return lambda of: Call(ops.TO_SET, (of,), JavaType("Set", (element,)))
        case "counting", 0:
            return lambda of: Call(ops.COUNT, (of,), LONG)
        case "joining", count if count <= 3:
            operation = (ops.JOINING, ops.JOINING, ops.JOINING_AFTER, ops.JOINING_AROUND)[count]
            given = tuple(reader.argument(argument) for argument in arguments)
            return lambda of: Call(operation, (of, *given), STRING)
    return None
