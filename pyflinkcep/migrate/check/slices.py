# SPDX-License-Identifier: Apache-2.0
"""What of a program of Java a pattern needs: its files without the job around it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from pyflinkcep.migrate.java.declarations import Field, JavaClass, JavaType
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import (
    Node,
    Source,
    children,
    enclosing,
    inside,
    parse_java,
    text_of,
)

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


_STREAMS = frozenset(
    [
        "StreamExecutionEnvironment",
        "DataStream",
        "DataStreamSource",
        "KeyedStream",
        "PatternStream",
        "SingleOutputStreamOperator",
        "StreamTableEnvironment",
        "TableEnvironment",
        "Table",
        "SourceFunction",
        "SinkFunction",
        "RichSourceFunction",
        "RichSinkFunction",
        "CEP",
        "ParameterTool",
    ]
)


@attrs.frozen(eq=False)
class Rows:
    """What a program makes of matches."""

    node: Node  # The call of ``select``, ``flatSelect`` or ``process``
    source: Source  # Its file
    event: str  # The type of the events


@attrs.frozen(eq=False)
class Site:
    """Where a program makes a pattern."""

    # The expression, such as the second argument of ``CEP.pattern``; or a method or a field.
    node: Node
    source: Source  # Its file
    # The arguments of the constructor of the object whose method makes it; None if unknown.
    given: tuple[object, ...] | None = None
    rows: Rows | None = None  # What is made of its matches


@attrs.define(eq=False)
class Sliced:
    """The files to compile."""

    # Their names, with the folders of packages, and their texts.
    files: dict[str, str] = attrs.field(factory=dict)
    # For each site the class and the method that returns its pattern.
    calls: list[tuple[str, str]] = attrs.field(factory=list)
    # For each site the class and the method that makes rows of matches.
    rows: list[tuple[str, str] | None] = attrs.field(factory=list)


@attrs.define(eq=False)
class Jars:
    """The classes in a folder of jars."""

    names: frozenset[str]
    packages: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> Jars:
        """Read the names of the classes in all jars of a folder."""
        names: set[str] = set()
        for jar in sorted(folder.glob("*.jar")):
            with zipfile.ZipFile(jar) as archive:
                names |= {
                    name[:-6].replace("/", ".").replace("$", ".")
                    for name in archive.namelist()
                    if name.endswith(".class")
                }
        return cls(frozenset(names), frozenset(name.rpartition(".")[0] for name in names))

    def has(self, name: str) -> bool:
        """Whether there is a class, or a member of one."""
        owner = name.rpartition(".")[0]
        return name.startswith(("java.", "javax.")) or name in self.names or owner in self.names


def sliced(project: Project, sites: Sequence[Site], jars: Jars) -> Sliced:
    """Return what is to be compiled for some patterns."""
    made = Sliced()
    added: dict[str, list[tuple[JavaClass, str]]] = {}
    waiting: list[Source] = []
    for number, site in enumerate(sites):
        owner = _owner(project, site.source, site.node)
        name = f"pyflinkcepPattern{number}"
        added.setdefault(site.source.file, []).append((owner, _method(site, name)))
        made.calls.append((binary_name(owner), name))
        waiting.append(site.source)
        made.rows.append(None)
        if site.rows is not None:
            source = site.rows.source
            owner = _owner(project, source, site.rows.node)
            name = f"pyflinkcepRows{number}"
            added.setdefault(source.file, []).append((owner, _rows_method(site.rows, name)))
            made.rows[-1] = (binary_name(owner), name)
            waiting.append(source)
    reach = _reached(project, added)
    done: set[str] = set()
    while waiting:
        source = waiting.pop()
        if source.file in done:
            continue
        done.add(source.file)
        text = _file(project, source, added.get(source.file, []), jars, reach)
        folder = source.package.replace(".", "/")
        stem = Path(source.file).name
        made.files[f"{folder}/{stem}" if folder else stem] = text
        waiting += _named(project, source, text)
    return made


def _reached(project: Project, added: dict[str, list[tuple[JavaClass, str]]]) -> Reach:
    """Return the names of what patterns lead to, over methods, fields and classes."""
    owners: set[int] = set()
    waiting: list[str] = []
    for owner, method in (pair for pairs in added.values() for pair in pairs):
        around: JavaClass | None = owner
        while around is not None:
            owners.add(id(around))
            around = around.outer
        parsed = parse_java(f"class X {{ {method} }}").root
        waiting += [text_of(n) for n in inside(parsed, "identifier", "type_identifier")]
    members: dict[str, list[Node]] = {}
    for one in project.classes:
        if id(one) not in owners:
            members.setdefault(one.name, []).append(one.node)
            continue
        waiting += [text_of(n) for n in _always(one)]
        for name, methods in one.methods.items():
            members.setdefault(name, []).extend(method.node for method in methods)
        for name, field in one.fields.items():
            if field.value is not None:
                members.setdefault(name, []).append(field.value.parent.parent)
    names: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            for node in members.get(name, ()):
                waiting += [text_of(n) for n in inside(node, "identifier", "type_identifier")]
    return Reach(names, owners)


def _always(declared: JavaClass) -> Iterator[Node]:
    """Yield the names in what is kept of a class in any case: its header and constructors."""
    parts = [part for part in declared.node.children if part.type.startswith("super")]
    parts += [method.node for method in declared.methods.get(declared.name, [])]
    for part in parts:
        yield from inside(part, "identifier", "type_identifier")


def binary_name(owner: JavaClass) -> str:
    """Return the name of a class as ``Class.forName`` takes it."""
    if owner.outer is not None:
        return f"{binary_name(owner.outer)}${owner.name}"
    return f"{owner.source.package}.{owner.name}" if owner.source.package else owner.name


def _owner(project: Project, source: Source, node: Node) -> JavaClass:
    around = enclosing(node, *CLASSES)
    waiting = list(project.of_file(source))
    while waiting:
        found = waiting.pop()
        if around is not None and found.node.start_byte == around.start_byte:
            return found
        waiting.extend(found.inner)
    raise LookupError("the class around a pattern")


# --- the method that returns a pattern


def _method(site: Site, name: str) -> str:
    """Return a method with the statements that a pattern depends on."""
    if site.node.type in ("method_declaration", "variable_declarator"):
        called = text_of(site.node.child_by_field_name("name"))
        static = _is_static(site.node)
        body = f"return {called}{'()' if site.node.type == 'method_declaration' else ''};"
    else:
        method = enclosing(site.node, "method_declaration", "constructor_declaration")
        static = method is None or _is_static(method)
        statements = [] if method is None else _needed(method, site.node)
        body = "\n".join([*statements, f"return {text_of(site.node)};"])
    modifier = "static " if static else ""
    return (
        f'@SuppressWarnings("all") public {modifier}'
        f"org.apache.flink.cep.pattern.Pattern<?, ?> {name}() throws Exception {{\n{body}\n}}\n"
    )


def _rows_method(rows: Rows, name: str) -> str:
    """Return a method that makes rows of a stream of matches."""
    method = enclosing(rows.node, "method_declaration", "constructor_declaration")
    modifier = "static " if method is None or _is_static(method) else ""
    arguments = rows.node.child_by_field_name("arguments")
    called = text_of(rows.node.child_by_field_name("name"))
    statements = [] if method is None else _needed(method, arguments)
    types = rows.node.child_by_field_name("type_arguments")
    written = "" if types is None else text_of(types)
    body = "\n".join(
        [*statements, f"return pyflinkcepFound.{written}{called}{text_of(arguments)};"]
    )
    streams = "org.apache.flink.streaming.api.datastream"
    return (
        f'@SuppressWarnings("all") public {modifier}{streams}.SingleOutputStreamOperator<?> {name}('
        f"org.apache.flink.cep.PatternStream<{rows.event}> pyflinkcepFound) throws Exception "
        f"{{\n{body}\n}}\n"
    )


def _is_static(node: Node) -> bool:
    declared = node if node.type == "method_declaration" else node.parent
    modifiers = next((c for c in declared.children if c.type == "modifiers"), None)
    return modifiers is not None and "static" in text_of(modifiers).split()


def _needed(method: Node, site: Node) -> list[str]:
    """Return the statements before a place that what stands there depends on."""
    wanted = _free(site)
    body = method.child_by_field_name("body")
    before = [s for s in _flat(body, site) if s.start_byte < site.start_byte]
    gone = _of_streams(before)
    kept: list[Node] = []
    for statement in reversed(before):
        names = _free(statement)
        types = {text_of(name) for name in inside(statement, "type_identifier")}
        if statement.type == "local_variable_declaration":
            declared = {
                text_of(d.child_by_field_name("name"))
                for d in statement.children_by_field_name("declarator")
            }
            if not declared & wanted:
                continue
        elif not names & wanted or statement.type in ("return_statement", "throw_statement"):
            continue
        if (names | types) & (_STREAMS | gone):
            continue
        kept.insert(0, statement)
        wanted |= names
    return [text_of(statement) for statement in kept]


def _free(node: Node) -> set[str]:
    """Return the variables and classes around that code names: no parameters, methods or fields."""
    bound = {
        text_of(name)
        for part in inside(node, "lambda_expression", "class_body")
        for name in _bound(part)
    }
    names = set()
    for name in inside(node, "identifier"):
        member = {"method_invocation": "name", "field_access": "field"}.get(name.parent.type, "")
        named = name.parent.child_by_field_name(member) if member else None
        owner = name.parent.child_by_field_name("object") if named is not None else None
        if named is None or named.id != name.id or owner is None:
            names.add(text_of(name))
    return names - bound


def _bound(node: Node) -> Iterator[Node]:
    """Yield the names that a lambda or a class declares."""
    given = node.child_by_field_name("parameters")
    if given is not None and given.type == "identifier":
        yield given
    for part in inside(node, "inferred_parameters"):
        yield from children(part)
    for part in inside(node, "formal_parameter", "variable_declarator", "enhanced_for_statement"):
        name = part.child_by_field_name("name")
        if name is not None:
            yield name


def _of_streams(statements: Sequence[Node]) -> set[str]:
    """Return the variables that hold streams, or what is made of them: these are left out."""
    found: set[str] = set()
    for statement in statements:
        if statement.type != "local_variable_declaration":
            continue
        used = _free(statement) | {text_of(name) for name in inside(statement, "type_identifier")}
        if used & (_STREAMS | found):
            names = (d.child_by_field_name("name") for d in children(statement))
            found |= {text_of(name) for name in names if name is not None}
    return found


def _flat(body: Node, site: Node) -> list[Node]:
    """Return the statements of a block, and of the blocks that a place is in."""
    found: list[Node] = []
    for statement in children(body):
        holds = statement.start_byte <= site.start_byte < statement.end_byte
        inner = [b for b in children(statement) if b.type == "block"] if holds else []
        if inner:
            for block in inner:
                found += _flat(block, site)
        elif not holds:
            found.append(statement)
    return found


# --- files


def _file(
    project: Project,
    source: Source,
    added: list[tuple[JavaClass, str]],
    jars: Jars,
    reach: Reach,
) -> str:
    edits: list[tuple[int, int, str]] = []
    banned = set(_STREAMS)
    for node in children(source.root):
        if node.type == "import_declaration" and not _resolves(project, node, jars):
            edits.append((node.start_byte, node.end_byte, ""))
            banned.add(text_of(node).rstrip("; ").rsplit(".", 1)[-1])
    shims = banned & {"Time"}
    banned -= {"*", "Time"} | GENERATED
    for declared in project.of_file(source):
        cut_members(declared, banned, edits, reach)
    for owner, method in added:
        end = owner.node.child_by_field_name("body").end_byte - 1
        edits.append((end, end, method))
    before = b" " * source.root.start_byte  # a file may begin with blank lines
    text = _edited(before + bytes(source.root.text), edits)
    if shims:
        text = _with_import(text, "import pyflinkcep.check.Time;")
    return text


def _with_import(text: str, statement: str) -> str:
    lines = text.split("\n")
    at = next((n for n, line in enumerate(lines) if line.startswith("package ")), -1) + 1
    return "\n".join([*lines[:at], statement, *lines[at:]])


def _resolves(project: Project, node: Node, jars: Jars) -> bool:
    words = text_of(node).removeprefix("import").strip().rstrip(";").strip()
    name = words.removeprefix("static ").strip()
    if name.endswith(".*"):
        package = name[:-2]
        known = {one.source.package for one in project.classes}
        return (
            package.startswith(("java.", "javax."))
            or package in jars.packages
            or package in jars.names
            or package in known
            or project.find(package) is not None
        )
    found = project.find(name)
    if found is not None and found.full_name == name:
        return True
    owner = name.rpartition(".")[0]
    return jars.has(name) or (words.startswith("static ") and project.find(owner) is not None)


def _edited(data: bytes, edits: list[tuple[int, int, str]]) -> str:
    """Return a file with parts replaced; a part inside another one that goes is gone."""
    made, at = [], 0
    for start, end, text in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start < at:
            continue
        made += [data[at:start].decode("utf-8", "replace"), text]
        at = end
    return "".join([*made, data[at:].decode("utf-8", "replace")])


def _named(project: Project, source: Source, text: str) -> list[Source]:
    root = parse_java(text).root
    names = {text_of(n) for n in inside(root, "type_identifier", "identifier")}
    found = {}
    for name in sorted(names):
        if name[:1].isupper():
            declared = project.find(name, source)
            if declared is not None:
                found[declared.source.file] = declared.source
    return list(found.values())
