# SPDX-License-Identifier: Apache-2.0
"""The classes of a project, looked up as Java does, and its types with Spark's for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from pyflinkcep.migrate.java.declarations import Field, JavaClass, JavaType, Method, class_of
from pyflinkcep.migrate.java.source import Source, assignments_in, comma_parts

_GETTERS = frozenset({"@Data", "@Value", "@Getter"})


_Name = tuple[str, str, JavaClass | None]  # with the file and the class where it is read


@attrs.define(eq=False)
class Project:
    """An index over the files of a project."""

    _at_first: Iterable[Source] = attrs.field(factory=tuple)
    sources: list[Source] = attrs.field(init=False, factory=list)  # The files
    _by_name: dict[str, list[JavaClass]] = attrs.field(init=False, factory=dict)
    _by_full_name: dict[str, JavaClass] = attrs.field(init=False, factory=dict)
    _top_of: dict[str, list[JavaClass]] = attrs.field(init=False, factory=dict)

    _found: dict[_Name, JavaClass | None] = attrs.field(init=False, factory=dict)
    _lower: dict[JavaClass, list[JavaClass]] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        for source in self._at_first:
            self.add(source)

    def add(self, source: Source) -> None:
        """Add a file."""
        self.sources.append(source)
        for node in source.root.named_children:
            found = class_of(node, source)
            self._lower = None
            self._found.clear()
            if found is not None:
                self._top_of.setdefault(source.file, []).append(found)
                self._add_class(found)

    def _add_class(self, found: JavaClass) -> None:
        self._by_name.setdefault(found.name, []).append(found)
        self._by_full_name[found.full_name] = found
        for inner in found.inner:
            self._add_class(inner)

    @property
    def classes(self) -> Iterator[JavaClass]:
        """All classes."""
        return (found for same in self._by_name.values() for found in same)

    def of_file(self, source: Source) -> list[JavaClass]:
        """Return the outermost classes of a file."""
        return self._top_of.get(source.file, [])

    # --- lookup

    def find(
        self, name: str, source: Source | None = None, within: JavaClass | None = None
    ) -> JavaClass | None:
        """Return the class that a name means."""
        key = (name, source.file if source is not None else "", within)
        if key not in self._found:
            self._found[key] = self._find(name, source, within)
        return self._found[key]

    def _find(self, name: str, source: Source | None, within: JavaClass | None) -> JavaClass | None:
        first, *rest = name.split(".")
        found = self._by_full_name.get(name) or self._simple(first, source, within)
        for part in rest if found is not None and found.full_name != name else ():
            if found is not None:
                found = next((inner for inner in found.inner if inner.name == part), None)
        if found is None and rest:
            return self._simple(rest[-1], source, within)
        return found

    def _simple(
        self, name: str, source: Source | None, within: JavaClass | None
    ) -> JavaClass | None:
        around = within
        while around is not None:
            for owner in self.lineage(around):
                if owner.name == name:
                    return owner
                for inner in owner.inner:
                    if inner.name == name:
                        return inner
            around = around.outer
        same = self._by_name.get(name, [])
        if source is None or len(same) < 2:
            return same[0] if same else None
        imported = self._by_full_name.get(source.imports.get(name, ""))
        if imported is not None:
            return imported
        packages = (source.package, *source.wildcards)
        return min(same, key=lambda one: (
            one.source is not source, one.source.package != source.package,
            one.source.package not in packages,
        ))  # fmt: skip

    def all_of_file(self, source: Source) -> Iterator[JavaClass]:
        """Yield the classes of a file, the outer ones first."""
        waiting = list(self.of_file(source))
        while waiting:
            yield (found := waiting.pop(0))
            waiting.extend(found.inner)

    def at(self, source: Source, line: int) -> JavaClass | None:
        """Return the innermost named class around a line of a file."""
        around = [
            one
            for one in self.all_of_file(source)
            if one.node.start_point[0] + 1 <= line <= one.node.end_point[0] + 1
        ]
        return around[-1] if around else None

    # --- hierarchies

    def lineage(self, of: JavaClass) -> Iterator[JavaClass]:
        """Yield a class and what it extends and implements, as far as the project has them."""
        seen: list[JavaClass] = []
        waiting = [of]
        while waiting:
            one = waiting.pop(0)
            if any(one is other for other in seen):
                continue
            seen.append(one)
            yield one
            above = [*([one.superclass] if one.superclass else []), *one.interfaces]
            for type_ in above:
                parents = self._by_name.get(type_.name, [])
                known = [p for p in parents if p is not one]
                if known:
                    waiting.append(min(known, key=lambda p: p.source.package != one.source.package))

    def is_a(self, of: JavaClass, name: str) -> bool:
        """Whether a class is, extends or implements one of a name, of the project or not."""
        for one in self.lineage(of):
            above = [*([one.superclass] if one.superclass else []), *one.interfaces]
            if one.name == name or any(type_.name == name for type_ in above):
                return True
        return False

    def subclasses(self, of: JavaClass) -> list[JavaClass]:
        """Return the classes that extend or implement one, in the order of the files."""
        if self._lower is None:
            self._lower = {}
            for one in self.classes:
                for parent in self.lineage(one):
                    if parent is not one:
                        self._lower.setdefault(parent, []).append(one)
        return self._lower.get(of, [])

    # --- members

    def all_fields(self, of: JavaClass | None) -> dict[str, Field]:
        """Return the fields of an object: those it inherits first."""
        if of is None:
            return {}
        found: dict[str, Field] = {}
        for one in reversed(list(self.lineage(of))):
            for name, field in one.fields.items():
                if "static" not in field.modifiers and "transient" not in field.modifiers:
                    found[name] = self._given(of, one, field)
        return found

    def _given(self, of: JavaClass, owner: JavaClass, field: Field) -> Field:
        """Return an inherited field, its type in place of a parameter of a generic class."""
        if owner is of or not owner.variables:
            return field
        arguments = self._arguments(of, owner)
        return attrs.evolve(field, type=filled(field.type, arguments)) if arguments else field

    def _arguments(self, of: JavaClass, owner: JavaClass) -> dict[str, JavaType]:
        """Return what a class gives for the type parameters of one above it."""
        given: dict[str, dict[str, JavaType]] = {of.full_name: {}}
        for one in self.lineage(of):
            own = given.get(one.full_name, {})
            for type_ in (*([one.superclass] if one.superclass else []), *one.interfaces):
                above = self.find(type_.name, one.source, one)
                if above is not None and above is not one:
                    arguments = [filled(argument, own) for argument in type_.args]
                    names = dict(zip(above.variables, arguments, strict=False))
                    given.setdefault(above.full_name, names)
        return given.get(owner.full_name, {})

    def field(self, of: JavaClass, name: str) -> Field | None:
        """Return a field of a class or of those that it extends."""
        owner = self.owner_of(of, name)
        return None if owner is None else self._given(of, owner, owner.fields[name])

    def owner_of(self, of: JavaClass, name: str) -> JavaClass | None:
        """Return the class that declares a field."""
        return next((one for one in self.lineage(of) if name in one.fields), None)

    def method(self, of: JavaClass, name: str, arguments: int) -> Method | None:
        """Return a method by its name and number of arguments: the first, if there are several."""
        found = self.overloads(of, name, arguments)
        return found[0] if found else None

    def overloads(self, of: JavaClass, name: str, arguments: int) -> list[Method]:
        """Return the methods that a call may mean, by name and number, without overridden ones."""
        declared = [m for one in self.lineage(of) for m in one.methods.get(name, [])]
        exact = [m for m in declared if len(m.parameters) == arguments and not m.spreads]
        found: dict[tuple[str, ...], Method] = {}
        for method in exact or [m for m in declared if m.takes(arguments)]:
            types = tuple(type_.name + "[]" * type_.dims for _, type_ in method.parameters)
            if types not in found or found[types].body is None:
                found[types] = method
        names = {one: {type_.name for _, type_ in one.parameters} for one in found.values()}
        own = [m for m in names if names[m].isdisjoint(m.owner.variables)]  # of no generic class
        return own or list(names)

    def constant_field(
        self, name: str, source: Source, within: JavaClass | None
    ) -> tuple[Field, JavaClass] | None:
        """Return the constant that a simple name means, and its class."""
        around = within
        while around is not None:
            owner = self.owner_of(around, name)
            if owner is not None:
                return owner.fields[name], owner
            around = around.outer
        imported_as = source.imports.get(name, "")
        places = [imported_as.rpartition(".")[0]] if imported_as else []
        for place in (*places, *source.wildcards):
            imported = self._by_full_name.get(place)
            owner = self.owner_of(imported, name) if imported is not None else None
            if owner is not None:
                return owner.fields[name], owner
        return None

    def getter(self, of: JavaClass, method: str) -> Field | None:
        """Return the field that a getter without a body in the project returns."""
        for one in self.lineage(of):
            if one.kind == "record" and method in one.fields:
                return one.fields[method]
            name = property_of(method)
            for field in one.fields.values():
                has = _GETTERS & (one.annotations | field.modifiers)
                is_bool = field.type == JavaType("boolean")
                names = {name, f"is{name[:1].upper()}{name[1:]}"} if is_bool else {name}
                if has and name and (field.name in names or field.name == method):
                    return self._given(of, one, field)
        return None


def filled(type_: JavaType, given: dict[str, JavaType]) -> JavaType:
    """Return a type with types in place of its variables."""
    found = given.get(type_.name)
    if found is not None:
        return attrs.evolve(found, dims=found.dims + type_.dims)
    return attrs.evolve(type_, args=tuple(filled(one, given) for one in type_.args))


def property_of(method: str) -> str:
    """Return the name of the property that a getter is for; empty if it is not named as one."""
    for prefix in ("get", "is"):
        rest = method[len(prefix) :]
        if method.startswith(prefix) and rest[:1].isupper():
            return rest if rest[1:2].isupper() else rest[0].lower() + rest[1:]
    return ""


def is_assigned(name: str, owner: JavaClass, project: Project) -> bool:
    """Whether code anywhere assigns a static field of a class."""
    for source in project.sources:
        inside = source is owner.source
        for found in assignments_in(source):
            if found == f"{owner.name}.{name}" or (inside and found == name):
                return True
    return False


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


def never_equal(a: JavaType, b: JavaType) -> bool:
    """Whether ``equals`` is false for all values, since they are of other classes of numbers."""
    return a.is_numeric and b.is_numeric and a.unboxed != b.unboxed


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
    """Return Spark's type for values of a Java type; None if it is unknown."""
    if type_.dims:
        inner = JavaType(type_.name, type_.args, type_.dims - 1)
        if inner == JavaType("byte"):
            return "binary"
        element = spark_type(inner, project, source, within, seen)
        return element and f"array<{element}>"
    name = type_.unboxed.name
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
    """
    of = project.find(name, source)
    if of is None or of.kind == "enum":
        return None
    columns = _columns(of, project, (of.full_name,))
    return ", ".join(f"{quoted(column)} {type_}" for column, type_ in columns) or None


def chosen(methods: Sequence[Method], given: Sequence[JavaType], project: Project) -> Method | None:
    """
    Return the method that Java calls with arguments of some types; None if that is not plain.

    It is plain if just one takes these very types, or classes of the project above them.
    """
    if len(methods) == 1:
        return methods[0]
    if any(len(m.parameters) != len(given) or m.spreads for m in methods):
        return None
    wanted = [[type_ for _, type_ in m.parameters] for m in methods]
    asked = [at for at in range(len(given)) if len({types[at] for types in wanted}) > 1]
    for takes in (_same, lambda a, b: _same(a, b) or _is_below(a, b, project)):
        able = [
            method
            for method, types in zip(methods, wanted, strict=True)
            if all(takes(given[at], types[at]) for at in asked)
        ]
        if able:
            return able[0] if len(able) == 1 else None
    return None


def _same(given: JavaType, wanted: JavaType) -> bool:
    return (given.name, given.dims) == (wanted.name, wanted.dims) and given.name != "?"


def _is_below(given: JavaType, wanted: JavaType, project: Project) -> bool:
    of = project.find(given.name)
    return of is not None and not given.dims + wanted.dims and project.is_a(of, wanted.name)


def struct_fields(type_: str) -> dict[str, str]:
    """Return the fields of a struct with their types."""
    parts = (part.partition(":") for part in comma_parts(type_[7:-1]))
    return {name.strip(): kind.strip() for name, _, kind in parts}


def columns_of(ddl: str) -> dict[str, str]:
    """Return the columns of a schema with their types."""
    found = {}
    for column in comma_parts(ddl):
        name, _, type_ = column[1:].partition("`") if column[0] == "`" else column.partition(" ")
        found[name] = type_.strip()
    return found
