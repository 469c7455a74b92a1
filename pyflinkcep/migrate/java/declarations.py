# SPDX-License-Identifier: Apache-2.0
"""What Java declares: types, fields, methods and classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import attrs

from pyflinkcep.migrate.java.source import Node, Source, children, comma_parts, text_of

CLASSES = {
    "class_declaration": "class", "record_declaration": "record", "enum_declaration": "enum",
    "interface_declaration": "interface", "annotation_type_declaration": "annotation",
}  # fmt: skip
"""The nodes of declared classes, with what they declare."""


@attrs.frozen
class JavaType:
    """A type as written: its simple name, type arguments and dimensions of arrays."""

    name: str  # The simple name, such as ``int`` or ``List``
    args: tuple[JavaType, ...] = ()  # The type arguments
    dims: int = 0  # The number of dimensions of an array

    @property
    def unboxed(self) -> JavaType:
        """The primitive type in a boxed one; other types are themselves."""
        return JavaType(_BOXES[self.name]) if self.is_boxed else self

    @property
    def boxed(self) -> JavaType:
        """The type of objects around values of a primitive type; other types are themselves."""
        names = [box for box, name in _BOXES.items() if name == self.name and not self.dims]
        return JavaType(names[0]) if names else self

    @property
    def is_boxed(self) -> bool:
        """Whether values are objects around primitive ones."""
        return self.name in _BOXES and not self.dims

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers, boxed or not; a char is none here."""
        return self.unboxed.name in ("byte", "short", "int", "long") and not self.dims

    @property
    def is_floating(self) -> bool:
        """Whether values are floats or doubles, boxed or not."""
        return self.unboxed.name in ("float", "double") and not self.dims

    @property
    def is_numeric(self) -> bool:
        """Whether Java computes with the values."""
        return self.is_whole or self.is_floating or self.unboxed == JavaType("char")

    @property
    def is_plain(self) -> bool:
        """Whether events of the type are single values, which have the column ``value``."""
        plain = self.is_numeric or self.name in ("String", "boolean", "Boolean")
        return plain and not self.dims

    def __str__(self) -> str:
        args = f"<{', '.join(map(str, self.args))}>" if self.args else ""
        return self.name + args + "[]" * self.dims


BOOLEAN, INT, LONG = JavaType("boolean"), JavaType("int"), JavaType("long")
STRING, UNKNOWN = JavaType("String"), JavaType("?")
_BOXES = {
    "Integer": "int", "Long": "long", "Double": "double", "Float": "float", "Short": "short",
    "Byte": "byte", "Character": "char", "Boolean": "boolean",
}  # fmt: skip


def read_type(node: Node | None) -> JavaType:
    """Return the type that a node writes; ``var`` and what is missing are ``?``."""
    if node is None:
        return JavaType("?")
    match node.type:
        case "generic_type":
            name, *rest = children(node)
            args = [read_type(arg) for part in rest for arg in children(part)]
            return JavaType(read_type(name).name, tuple(args))
        case "array_type":
            inner = read_type(node.child_by_field_name("element"))
            dims = text_of(node.child_by_field_name("dimensions")).count("[")
            return JavaType(inner.name, inner.args, inner.dims + dims)
        case "scoped_type_identifier":
            return JavaType(text_of(node).rsplit(".", 1)[-1].strip())
        case "wildcard":
            bounds = children(node)
            return read_type(bounds[-1]) if bounds else JavaType("Object")
        case "annotated_type":
            return read_type(children(node)[-1])
    name = text_of(node)
    return JavaType("?" if name == "var" else name)


def written_type(text: str) -> JavaType:
    """Return a type from its text."""
    text = text.strip()
    dims = 0
    while text.endswith("[]"):
        text, dims = text[:-2].rstrip(), dims + 1
    name, _, inner = text.partition("<")
    parts = comma_parts(inner.rstrip().removesuffix(">"))
    return JavaType(name.strip().rsplit(".", 1)[-1], tuple(map(written_type, parts)), dims)


def type_arguments(name: str) -> list[str]:
    """Return the arguments of a generic type."""
    return [str(one) for one in written_type(name).args]


@attrs.frozen(eq=False)
class Field:
    """A field, or a component of a record."""

    name: str
    type: JavaType
    modifiers: frozenset[str]
    value: Node | None
    alias: str = ""  # Its name in JSON, if an annotation gives another one

    @property
    def is_constant(self) -> bool:
        """Whether its value never changes and is written in the class."""
        return self.value is not None and "final" in self.modifiers


@attrs.frozen(eq=False)
class Method:
    """A method or constructor."""

    name: str
    type: JavaType
    parameters: tuple[tuple[str, JavaType], ...]
    modifiers: frozenset[str]
    body: Node | None
    node: Node
    owner: JavaClass = attrs.field(repr=False)  # The class that declares it

    @property
    def spreads(self) -> bool:
        """Whether the last parameter takes any number of arguments."""
        parts = children(self.node.child_by_field_name("parameters"))
        return bool(parts) and parts[-1].type == "spread_parameter"

    def takes(self, count: int) -> bool:
        """Whether it can be called with a number of arguments."""
        return len(self.parameters) == count or (self.spreads and count >= len(self.parameters) - 1)


@attrs.define(eq=False, slots=False)
class JavaClass:
    """A class, record, enum or interface; members are read when first asked for."""

    name: str
    kind: str
    source: Source
    node: Node
    outer: JavaClass | None = None
    inner: list[JavaClass] = attrs.field(factory=list)  # The classes declared inside

    @property
    def is_anonymous(self) -> bool:
        """Whether it is the body of a new object, which extends or implements what it is of."""
        return bool(self.node.type == "class_body")

    @property
    def full_name(self) -> str:
        """The name with packages and enclosing classes."""
        before = self.outer.full_name if self.outer else self.source.package
        return f"{before}.{self.name}" if before else self.name

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The fields by name, in order."""
        found: dict[str, Field] = {}
        for name, type_ in _parameters(self.node) if self.kind == "record" else ():
            found[name] = Field(name, type_, frozenset({"private", "final"}), None)
        for node in _members(self.node, "field_declaration", "constant_declaration"):
            found.update((field.name, field) for field in _fields_of(node, self.kind))
        return found

    @cached_property
    def methods(self) -> dict[str, list[Method]]:
        """The methods by name; constructors have the name of the class."""
        found: dict[str, list[Method]] = {}
        for node in _members(self.node, "method_declaration", "constructor_declaration"):
            method = method_of(node, self)
            found.setdefault(method.name, []).append(method)
        return found

    @cached_property
    def constants(self) -> dict[str, Node]:
        """The constants of an enum, in order."""
        members = _members(self.node, "enum_constant")
        return {text_of(node.child_by_field_name("name")): node for node in members}

    @property
    def blocks(self) -> list[Node]:
        """The blocks that run when an object is made."""
        return list(_members(self.node, "block"))

    @property
    def annotations(self) -> frozenset[str]:
        """The simple names of its annotations."""
        return modifiers_of(self.node)

    @property
    def superclass(self) -> JavaType | None:
        """The type it extends."""
        if self.is_anonymous:
            return read_type(self.node.parent.child_by_field_name("type"))
        node = self.node.child_by_field_name("superclass")
        return read_type(children(node)[0]) if node is not None and children(node) else None

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of its type parameters."""
        parts = children(self.node.child_by_field_name("type_parameters"))
        return tuple(text_of(children(part)[0]) for part in parts if children(part))

    @property
    def interfaces(self) -> tuple[JavaType, ...]:
        """The types it implements."""
        groups = children(self.node.child_by_field_name("interfaces"))
        return tuple(read_type(part) for group in groups for part in children(group))


def class_of(node: Node, source: Source, outer: JavaClass | None = None) -> JavaClass | None:
    """Return the class that a node declares, with those inside; None for other nodes."""
    kind = CLASSES.get(node.type)
    name = node.child_by_field_name("name") if kind else None
    if kind is None or name is None:
        return None
    found = JavaClass(text_of(name), kind, source, node, outer)
    for member in _members(node, *CLASSES):
        inner = class_of(member, source, found)
        if inner is not None:
            found.inner.append(inner)
    return found


def _members(node: Node, *types: str) -> Iterator[Node]:
    """Yield the members of a class that are of some types."""
    for member in children(node if node.type == "class_body" else node.child_by_field_name("body")):
        if member.type == "enum_body_declarations":
            yield from (one for one in children(member) if one.type in types)
        elif member.type in types:
            yield member


def modifiers_of(node: Node) -> frozenset[str]:
    """Return the modifiers of a declaration, with the names of its annotations after an ``@``."""
    found = next((part for part in node.children if part.type == "modifiers"), None)
    if found is None:
        return frozenset()
    words = set()
    for part in found.children:
        if part.type in ("marker_annotation", "annotation"):
            words.add("@" + text_of(part.child_by_field_name("name")).rsplit(".", 1)[-1])
        else:
            words.add(text_of(part))
    return frozenset(words)


def _fields_of(node: Node, kind: str) -> Iterator[Field]:
    type_, modifiers = read_type(node.child_by_field_name("type")), modifiers_of(node)
    if kind == "interface":
        modifiers |= {"static", "final", "public"}
    for part in node.children_by_field_name("declarator"):
        name = text_of(part.child_by_field_name("name"))
        dims = part.child_by_field_name("dimensions")
        more = text_of(dims).count("[") if dims is not None else 0
        value = part.child_by_field_name("value")
        held = attrs.evolve(type_, dims=type_.dims + more)
        yield Field(name, held, modifiers, value, _alias(node))


_ALIAS = re.compile(
    r'@(?:JsonProperty|SerializedName|JSONField)\(\s*(?:(?:value|name)\s*=\s*)?"([^"]+)"'
)


def _alias(node: Node) -> str:
    """Return the name of a field in JSON; empty if it is the field's own."""
    found = next((part for part in node.children if part.type == "modifiers"), None)
    match = None if found is None else _ALIAS.search(text_of(found))
    return match[1] if match is not None else ""


def _parameters(node: Node) -> Iterator[tuple[str, JavaType]]:
    for part in children(node.child_by_field_name("parameters")):
        name = part.child_by_field_name("name")
        if part.type == "formal_parameter" and name is not None:
            yield text_of(name), read_type(part.child_by_field_name("type"))
        elif part.type == "spread_parameter":
            type_, *_, declarator = [one for one in children(part) if one.type != "modifiers"]
            held = read_type(type_)
            named = declarator.child_by_field_name("name") or declarator
            yield text_of(named), attrs.evolve(held, dims=held.dims + 1)


def method_of(node: Node, owner: JavaClass) -> Method:
    """Return the method that a node declares."""
    name, type_, body = (node.child_by_field_name(part) for part in ("name", "type", "body"))
    given = (tuple(_parameters(node)), modifiers_of(node), body, node, owner)
    return Method(text_of(name), read_type(type_), *given)
