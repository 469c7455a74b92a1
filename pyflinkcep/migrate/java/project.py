# SPDX-License-Identifier: Apache-2.0
"""The classes of a project, looked up as Java does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import attrs

from pyflinkcep.migrate.java.declarations import Field, JavaClass, JavaType, Method, class_of
from pyflinkcep.migrate.java.source import Node, Source, children, text_of

_GETTERS = frozenset({"@Data", "@Value", "@Getter"})


@attrs.define(eq=False)
class Project:
    """
    An index over the files of a project.

    Examples
    --------
    >>> from pyflinkcep.migrate.java.source import parse_java
    >>> project = Project([parse_java("class A { int x; } class B extends A { String y; }")])
    >>> [str(field.type) for field in project.all_fields(project.find("B")).values()]
    ['int', 'String']
    """

    _sources: Iterable[Source] = attrs.field(factory=tuple)
    _by_name: dict[str, list[JavaClass]] = attrs.field(init=False, factory=dict)
    _by_full_name: dict[str, JavaClass] = attrs.field(init=False, factory=dict)
    _top_of: dict[str, list[JavaClass]] = attrs.field(init=False, factory=dict)
    _all: list[Source] = attrs.field(init=False, factory=list)

    _found: dict[tuple[str, str, int], JavaClass | None] = attrs.field(init=False, factory=dict)
    _lower: dict[int, list[JavaClass]] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        for source in self._sources:
            self.add(source)

    def add(self, source: Source) -> None:
        """Add a file."""
        self._all.append(source)
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
    def sources(self) -> list[Source]:
        """The files."""
        return list(self._all)

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
        key = (name, source.file if source is not None else "", id(within))
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
        return min(
            same,
            key=lambda one: (
                one.source is not source,
                one.source.package != source.package,
                one.source.package not in packages,
            ),
        )

    def at(self, source: Source, line: int) -> JavaClass | None:
        """Return the innermost named class around a line of a file."""
        found: JavaClass | None = None
        inside = self.of_file(source)
        while inside:
            around = [
                one
                for one in inside
                if one.node.start_point[0] + 1 <= line <= one.node.end_point[0] + 1
            ]
            if not around:
                break
            found, inside = around[0], around[0].inner
        return found

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
                        self._lower.setdefault(id(parent), []).append(one)
        return self._lower.get(id(of), [])

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
        own = [m for m in found.values() if not self._is_generic(m)]
        return own or list(found.values())

    @staticmethod
    def _is_generic(method: Method) -> bool:
        """Whether a method takes values of a parameter of its class, as what overrides it names."""
        owner = method.owner
        return owner is not None and any(t.name in owner.variables for _, t in method.parameters)

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
                names = {name, "is" + capitalized(name)} if is_bool else {name}
                if has and name and (field.name in names or field.name == method):
                    return self._given(of, one, field)
        return None


def filled(type_: JavaType, given: dict[str, JavaType]) -> JavaType:
    """Return a type with types in place of its variables."""
    found = given.get(type_.name)
    if found is not None:
        return attrs.evolve(found, dims=found.dims + type_.dims)
    return attrs.evolve(type_, args=tuple(filled(one, given) for one in type_.args))


def capitalized(name: str) -> str:
    """Return a name with a first letter in upper case."""
    return name[:1].upper() + name[1:]


def property_of(method: str) -> str:
    """
    Return the name of the property that a getter is for; empty if it is not named as one.

    Examples
    --------
    >>> property_of("getUserId"), property_of("isHot"), property_of("URL"), property_of("getURL")
    ('userId', 'hot', '', 'URL')
    """
    for prefix in ("get", "is"):
        rest = method[len(prefix) :]
        if method.startswith(prefix) and rest[:1].isupper():
            return rest if rest[1:2].isupper() else rest[0].lower() + rest[1:]
    return ""


def written_in(node: Node, *, whole: bool = False) -> set[str]:
    """Return the names of variables and fields that code assigns, or changes an element of."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        waiting.extend(one.named_children)
        target = None
        if one.type == "assignment_expression":
            target = one.child_by_field_name("left")
        elif one.type == "update_expression":
            target = children(one)[0]
        while target is not None and target.type == "array_access":
            target = target.child_by_field_name("array")
        if target is not None:
            name = text_of(target).removeprefix("this.")
            found.add(name if whole else name.split(".", 1)[0])
    return found


def set_by_this(body: Node) -> set[str]:
    """Return the fields that code assigns as ``this.name``."""
    return set(re.findall(r"\bthis\.(\w+)\s*(?:[-+*/%&|^]|<<|>>>?)?=(?!=)", text_of(body)))


_FUNCTIONS = ("lambda_expression",)
_DECLARING = frozenset({
    "variable_declarator", "enhanced_for_statement", "catch_formal_parameter", "formal_parameter",
    "spread_parameter", "instanceof_expression", *_FUNCTIONS,
})  # fmt: skip


@lru_cache(maxsize=4096)
def declared_in(body: Node) -> frozenset[str]:
    """Return the variables that a body declares."""
    found: set[str] = set()
    waiting = [body]
    while waiting:
        one = waiting.pop()
        waiting.extend(one.named_children)
        if one.type not in _DECLARING:
            continue
        name = one.child_by_field_name("parameters" if one.type in _FUNCTIONS else "name")
        if name is not None and name.type == "inferred_parameters":
            found |= {text_of(part) for part in name.named_children}
        elif name is not None and name.type == "identifier":
            found.add(text_of(name))
    return frozenset(found)


@lru_cache(maxsize=4096)
def called_in(source: Source) -> frozenset[str]:
    """Return the names of the methods that a file calls or refers to."""
    found: set[str] = set()
    waiting = [source.root]
    while waiting:
        one = waiting.pop()
        waiting.extend(one.named_children)
        if one.type in ("method_invocation", "method_reference"):
            found.add(text_of(one.child_by_field_name("name") or one.children[-1]))
    return frozenset(found)


def is_assigned(name: str, owner: JavaClass, project: Project) -> bool:
    """Whether code anywhere assigns a static field of a class."""
    for source in project.sources:
        inside = source is owner.source
        for found in _assignments(source):
            if found == f"{owner.name}.{name}" or (inside and found == name):
                return True
    return False


@lru_cache(maxsize=4096)
def _assignments(source: Source) -> frozenset[str]:
    """Return what the methods of a file assign that is no variable of theirs."""
    found: set[str] = set()
    waiting = [source.root]
    while waiting:
        one = waiting.pop()
        if one.type not in _BODIES:
            waiting.extend(one.named_children)
            continue
        found |= written_in(one, whole=True) - declared_in(one)
    return frozenset(found)


_BODIES = ("method_declaration", "constructor_declaration", "static_initializer")
