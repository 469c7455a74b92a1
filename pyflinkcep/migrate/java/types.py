# SPDX-License-Identifier: Apache-2.0
"""Java's types: what kind of value each holds, and Spark's type for it."""

from __future__ import annotations

from collections.abc import Sequence

from pyflinkcep.migrate.java.declarations import JavaClass, JavaType, Method
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Source

BOOLEAN, INT, LONG = JavaType("boolean"), JavaType("int"), JavaType("long")
STRING, UNKNOWN = JavaType("String"), JavaType("?")

_BOXES = {
    "Integer": "int", "Long": "long", "Double": "double", "Float": "float", "Short": "short",
    "Byte": "byte", "Character": "char", "Boolean": "boolean",
}  # fmt: skip
_WHOLE = ("byte", "short", "int", "long")
_SPARK = {
    "byte": "tinyint", "short": "smallint", "int": "int", "long": "bigint", "float": "float",
    "double": "double", "boolean": "boolean", "char": "string", "String": "string",
    "CharSequence": "string", "UUID": "string", "BigDecimal": "decimal(38,18)",
    "BigInteger": "decimal(38,0)", "Instant": "timestamp", "Date": "timestamp",
    "Timestamp": "timestamp", "ZonedDateTime": "timestamp", "OffsetDateTime": "timestamp",
    "LocalDateTime": "timestamp_ntz", "LocalDate": "date", "Duration": "interval day to second",
    "Number": "double", "Object": "string",
}  # fmt: skip
_LISTS = ("List", "ArrayList", "LinkedList", "Collection", "Set", "HashSet", "Iterable", "Deque")
_MAPS = ("Map", "HashMap", "LinkedHashMap", "TreeMap", "ConcurrentHashMap")


def unboxed(type_: JavaType) -> JavaType:
    """Return the primitive type in a boxed one; other types unchanged."""
    return JavaType(_BOXES[type_.name]) if is_boxed(type_) else type_


def is_boxed(type_: JavaType) -> bool:
    """Whether values are objects around primitive ones."""
    return type_.name in _BOXES and not type_.dims


def is_whole(type_: JavaType) -> bool:
    """Whether values are whole numbers, boxed or not; a char is none here."""
    return unboxed(type_).name in _WHOLE and not type_.dims


def is_floating(type_: JavaType) -> bool:
    """Whether values are floats or doubles, boxed or not."""
    return unboxed(type_).name in ("float", "double") and not type_.dims


def is_numeric(type_: JavaType) -> bool:
    """Whether Java computes with the values."""
    return is_whole(type_) or is_floating(type_) or unboxed(type_) == JavaType("char")


def is_plain(type_: JavaType) -> bool:
    """Whether events of a type are single values, which have the column ``value``."""
    return (is_numeric(type_) or type_.name in ("String", "boolean", "Boolean")) and not type_.dims


def never_equal(a: JavaType, b: JavaType) -> bool:
    """Whether ``equals`` is false for all values, since they are of other classes of numbers."""
    return is_numeric(a) and is_numeric(b) and unboxed(a) != unboxed(b)


def is_enum(type_: JavaType, project: Project, source: Source | None = None) -> bool:
    """Whether a type is an enum of the project."""
    found = project.find(type_.name, source) if not type_.dims else None
    return found is not None and found.kind == "enum"


def spark_type(
    type_: JavaType,
    project: Project,
    source: Source | None = None,
    within: JavaClass | None = None,
    seen: tuple[str, ...] = (),
) -> str | None:
    """
    Return Spark's type for values of a Java type; None if it is unknown.

    Examples
    --------
    >>> spark_type(JavaType("List", (JavaType("Integer"),)), Project())
    'array<int>'
    """
    if type_.dims:
        inner = JavaType(type_.name, type_.args, type_.dims - 1)
        if inner == JavaType("byte"):
            return "binary"
        element = spark_type(inner, project, source, within, seen)
        return element and f"array<{element}>"
    name = unboxed(type_).name
    declared = project.find(name, source, within)
    if declared is None and name in _SPARK:
        return _SPARK[name]
    parts = [spark_type(arg, project, source, within, seen) for arg in type_.args]
    if declared is not None:
        return _declared(declared, project, seen)
    if None in parts:
        return None
    if name in _LISTS and len(parts) == 1:
        return f"array<{parts[0]}>"
    if name in _MAPS and len(parts) == 2:
        return f"map<{parts[0]},{parts[1]}>"
    if name == "Optional" and len(parts) == 1:
        return parts[0]
    if name.startswith("Tuple") and parts:
        fields = ",".join(f"f{number}:{part}" for number, part in enumerate(parts))
        return f"struct<{fields}>"
    return None


def _declared(of: JavaClass, project: Project, seen: tuple[str, ...]) -> str | None:
    if of.kind == "enum":
        return "string"
    if of.full_name in seen:
        return None
    fields = _columns(of, project, (*seen, of.full_name))
    return f"struct<{','.join(f'{n}:{t}' for n, t in fields)}>" if fields else None


def _columns(of: JavaClass, project: Project, seen: tuple[str, ...]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    kinds = [of, *project.subclasses(of)]
    if len(kinds) > 1:
        found[discriminator(of, project)] = "string"
    for one in kinds:
        for name, field in project.all_fields(one).items():
            type_ = spark_type(field.type, project, one.source, one, seen)
            if type_ is not None:
                found.setdefault(name, type_)
    return list(found.items())


def column_names(of: JavaClass, project: Project) -> list[str]:
    """Return the names of the columns of a class, in the order of :func:`schema_of`."""
    return [name for name, _ in _columns(of, project, (of.full_name,))]


def discriminator(of: JavaClass, project: Project) -> str:
    """Return the name of the column that holds the simple name of an event's class."""
    top = [one for one in project.lineage(of) if one.kind != "interface"][-1:]
    kinds = [*top, *project.subclasses(top[0])] if top else [of]
    taken = any("type" in one.fields for one in kinds)
    return "className" if taken else "type"


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    plain = name.isascii() and name.isidentifier() and name.upper() not in _WORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


_WORDS = frozenset({
    "ALL", "AND", "ANY", "AS", "ANTI", "BETWEEN", "BOTH", "CASE", "CAST", "CROSS", "CURRENT_DATE",
    "CURRENT_TIMESTAMP", "DISTINCT", "DIV", "ELSE", "END", "ESCAPE", "EXCEPT", "EXISTS", "FALSE",
    "FOR", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INTERSECT", "INTERVAL", "IS", "JOIN",
    "LATERAL", "LEADING", "LEFT", "LIKE", "MATCH", "MINUS", "NATURAL", "NOT", "NULL", "ON", "OR",
    "ORDER", "RIGHT", "RLIKE", "SELECT", "SEMI", "SET", "SOME", "TABLE", "THEN", "TRAILING",
    "TRUE", "UNION", "UNIQUE", "USING", "WHEN", "WHERE", "WITH",
})  # fmt: skip


def schema_of(name: str, source: Source | None, project: Project) -> str | None:
    """
    Return the columns of a class as DDL, in the order of its fields; None if it is unknown.

    The fields of its subclasses follow; then a column, :func:`discriminator`, holds the class.

    Examples
    --------
    >>> from pyflinkcep.migrate.java.source import parse_java
    >>> file = parse_java("class Order { String user; Double amount; java.util.List<Long> ids; }")
    >>> schema_of("Order", file, Project([file]))
    'user string, amount double, ids array<bigint>'
    """
    of = project.find(name, source)
    if of is None or of.kind == "enum":
        return None
    columns = _columns(of, project, (of.full_name,))
    return ", ".join(f"{quoted(column)} {type_}" for column, type_ in columns) or None


_WIDER = {
    "byte": ("short", "int", "long", "float", "double"),
    "short": ("int", "long", "float", "double"),
    "char": ("int", "long", "float", "double"),
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
}
_NUMBERS = ("Byte", "Short", "Integer", "Long", "Float", "Double", "BigDecimal", "BigInteger")
_ABOVE = {
    "String": ("CharSequence", "Comparable"),
    **dict.fromkeys(_NUMBERS, ("Number", "Comparable")),
    **dict.fromkeys(("ArrayList", "LinkedList"), ("List", "Collection", "Iterable")),
    **dict.fromkeys(("HashSet", "LinkedHashSet", "TreeSet"), ("Set", "Collection", "Iterable")),
    **dict.fromkeys(("List", "Set"), ("Collection", "Iterable")),
    **dict.fromkeys(("HashMap", "LinkedHashMap", "TreeMap"), ("Map",)),
    "Collection": ("Iterable",),
}
_PRIMITIVE = frozenset({*_WIDER, "double", "boolean"})


def chosen(methods: Sequence[Method], given: Sequence[JavaType], project: Project) -> Method | None:
    """
    Return the method that Java calls with arguments of some types; None if that is not known.

    Examples
    --------
    >>> from pyflinkcep.migrate.java.source import parse_java
    >>> project = Project([parse_java("class A { void f(int x) {} void f(Object x) {} }")])
    >>> methods = project.find("A").methods["f"]
    >>> str(chosen(methods, [JavaType("short")], project).parameters[0][1])
    'int'
    >>> str(chosen(methods, [JavaType("String")], project).parameters[0][1])
    'Object'
    """
    if len(methods) == 1:
        return methods[0]
    if any(len(m.parameters) != len(given) or m.spreads for m in methods):
        return None
    asked = [
        place for place in range(len(given)) if len({m.parameters[place][1] for m in methods}) > 1
    ]
    if any(given[place] == UNKNOWN for place in asked):
        return None
    for boxes in (False, True):
        able = [
            m
            for m in methods
            if all(_fits(given[p], m.parameters[p][1], project, boxes=boxes) for p in asked)
        ]
        if able:
            return _narrowest(able, asked, project)
    return None


def _narrowest(methods: list[Method], places: list[int], project: Project) -> Method | None:
    """Return the method whose parameters all others could take."""
    for one in methods:
        types = [one.parameters[place][1] for place in places]
        others = [[m.parameters[place][1] for place in places] for m in methods]
        if all(
            _fits(a, b, project, boxes=False)
            for other in others
            for a, b in zip(types, other, strict=True)
        ):
            return one
    return None


def _fits(given: JavaType, wanted: JavaType, project: Project, *, boxes: bool) -> bool:
    """Whether a value of a type can be given for a parameter, boxed or unboxed if need be."""
    if given.dims != wanted.dims:
        return wanted.name == "Object" and not wanted.dims
    if given.name == wanted.name:
        return True
    if given.dims:
        return False
    if given.name in _PRIMITIVE and wanted.name in _PRIMITIVE:
        return wanted.name in _WIDER.get(given.name, ())
    if (given.name in _PRIMITIVE) != (wanted.name in _PRIMITIVE):
        if not boxes or given.name == "null":
            return False
        if wanted.name in _PRIMITIVE:
            inner = unboxed(given)
            return inner != given and _fits(inner, wanted, project, boxes=False)
        box = _BOXES_TRIED[given.name]
        return wanted.name in (box, "Object") or wanted.name in _ABOVE.get(box, ())
    if given.name == "null" or wanted.name == "Object":
        return True
    if wanted.name in _ABOVE.get(given.name, ()):
        return True
    of = project.find(given.name)
    return of is not None and project.is_a(of, wanted.name)


_BOXES_TRIED = {
    "byte": "Byte", "short": "Short", "int": "Integer", "long": "Long", "float": "Float",
    "double": "Double", "char": "Character", "boolean": "Boolean",
}  # fmt: skip
