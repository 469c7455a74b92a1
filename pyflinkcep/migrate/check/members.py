# SPDX-License-Identifier: Apache-2.0
"""The members of a class that a pattern needs, and those that Lombok would write."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from pyflinkcep.migrate.chains.lookup import inside
from pyflinkcep.migrate.java.declarations import Field, JavaClass, JavaType
from pyflinkcep.migrate.java.source import Node, children, text_of

__all__ = ["CLASSES", "GENERATED", "Reach", "cut_members"]

GENERATED = frozenset(
    [
        "Data",
        "Getter",
        "Setter",
        "Value",
        "AllArgsConstructor",
        "NoArgsConstructor",
        "Builder",
        "RequiredArgsConstructor",
        "ToString",
        "EqualsAndHashCode",
        "Slf4j",
        "Log4j2",
        "With",
    ]
)
"""The annotations of Lombok."""

CLASSES = ("class_declaration", "record_declaration", "enum_declaration", "interface_declaration")
"""The nodes of declared classes."""


@attrs.frozen
class Reach:
    """The names that patterns lead to, and the classes of whose members only those are needed."""

    names: set[str]
    owners: set[int]


def cut_members(
    declared: JavaClass, banned: set[str], edits: list[tuple[int, int, str]], reach: Reach
) -> None:
    """Leave out what of a class is about streams, and write what Lombok generates."""
    node = declared.node
    modifiers = next((c for c in node.children if c.type == "modifiers"), None)
    generated: set[str] = set()
    for annotation in [] if modifiers is None else children(modifiers):
        name = text_of(annotation.child_by_field_name("name"))
        if name in GENERATED or name in banned:
            generated.add(name)
            edits.append((annotation.start_byte, annotation.end_byte, ""))
    body = node.child_by_field_name("body")
    if generated & GENERATED:
        edits.append((body.end_byte - 1, body.end_byte - 1, _generated(declared, generated)))
    kept = {inner.node.start_byte: inner for inner in declared.inner}
    for member in children(body):
        if member.type in CLASSES and member.start_byte in kept:
            header = {text_of(n) for n in _header(member)}
            inner = kept[member.start_byte]
            unused = id(declared) in reach.owners and id(inner) not in reach.owners
            if header & banned or (unused and inner.name not in reach.names):
                edits.append((member.start_byte, member.end_byte, ""))
            else:
                cut_members(inner, banned, edits, reach)
            continue
        if member.type not in ("method_declaration", "field_declaration", "static_initializer",
                               "constructor_declaration"):  # fmt: skip
            continue
        names = _names_of(member, banned, edits)
        called = text_of(member.child_by_field_name("name"))
        if member.type == "field_declaration" and id(declared) in reach.owners:
            held = {text_of(d.child_by_field_name("name")) for d in declarators(member)}
            if not held & reach.names and "static" in _modifiers(member):
                edits.append((member.start_byte, member.end_byte, ""))
                continue
        unused = (
            member.type == "method_declaration"
            and id(declared) in reach.owners
            and not list(_header(declared.node))
            and called not in reach.names
        )
        if names & banned or unused:
            edits.append((member.start_byte, member.end_byte, ""))


def declarators(field: Node) -> list[Node]:
    """Return the variables that a field declaration declares."""
    return list(field.children_by_field_name("declarator"))


def _modifiers(member: Node) -> list[str]:
    found = next((part for part in member.children if part.type == "modifiers"), None)
    return [] if found is None else text_of(found).split()


def _names_of(member: Node, banned: set[str], edits: list[tuple[int, int, str]]) -> set[str]:
    """Return the names in a member; leave out its annotations that are in no jar."""
    left_out = [
        annotation
        for modifiers in children(member)
        if modifiers.type == "modifiers"
        for annotation in children(modifiers)
        if text_of(annotation.child_by_field_name("name")) in banned | GENERATED
    ]
    edits += [(one.start_byte, one.end_byte, "") for one in left_out]
    return {
        text_of(name)
        for name in inside(member, "type_identifier", "identifier")
        if not any(one.start_byte <= name.start_byte < one.end_byte for one in left_out)
    }


def _header(member: Node) -> Iterable[Node]:
    for part in children(member):
        if part.type in ("superclass", "super_interfaces"):
            yield from inside(part, "type_identifier")


def _generated(declared: JavaClass, annotations: set[str]) -> str:
    fields = [f for f in declared.fields.values() if "static" not in f.modifiers]
    written = {  # as the program writes it, since a type may have its package
        text_of(d.child_by_field_name("name")): text_of(member.child_by_field_name("type"))
        for member in children(declared.node.child_by_field_name("body"))
        if member.type == "field_declaration"
        for d in declarators(member)
    }
    fields = [attrs.evolve(f, type=JavaType(written.get(f.name, str(f.type)))) for f in fields]
    lines = []
    for field in fields:
        capital = field.name[:1].upper() + field.name[1:]
        prefix = "is" if str(field.type) == "boolean" else "get"
        lines.append(f"public {field.type} {prefix}{capital}() {{ return {field.name}; }}")
        if "final" not in field.modifiers and "Value" not in annotations:
            lines.append(
                f"public void set{capital}({field.type} {field.name}) "
                f"{{ this.{field.name} = {field.name}; }}"
            )
    if declared.name not in declared.methods:
        lines.append(f"public {declared.name}() {{}}")
        if fields and annotations & {"AllArgsConstructor", "Value", "Builder"}:
            parameters = ", ".join(f"{field.type} {field.name}" for field in fields)
            body = " ".join(f"this.{field.name} = {field.name};" for field in fields)
            lines.append(f"public {declared.name}({parameters}) {{ {body} }}")
    if "Builder" in annotations:
        lines += _builder(declared.name, fields)
    if annotations & {"Slf4j", "Log4j2"}:
        lines.append(
            "private static final org.slf4j.Logger log = "
            f'org.slf4j.LoggerFactory.getLogger("{declared.name}");'
        )
    return "\n".join(lines) + "\n"


def _builder(name: str, fields: list[Field]) -> list[str]:
    """Return the builder that Lombok would write."""
    kind = f"{name}Builder"
    held = " ".join(f"private {field.type} {field.name};" for field in fields)
    setters = " ".join(
        f"public {kind} {field.name}({field.type} value) {{ {field.name} = value; return this; }}"
        for field in fields
    )
    given = ", ".join(field.name for field in fields)
    return [
        f"public static {kind} builder() {{ return new {kind}(); }}",
        f"public static class {kind} {{ {held} {setters} "
        f"public {name} build() {{ return new {name}({given}); }} }}",
    ]
