# SPDX-License-Identifier: Apache-2.0
"""Runs patterns on a real Flink: what of a program they need, compiled without the job around."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from pyflinkcep.errors import InputError
from pyflinkcep.migrate.java.declarations import (
    CLASSES,
    JavaClass,
    JavaType,
    modifiers_of,
    written_type,
)
from pyflinkcep.migrate.java.project import Project, discriminator
from pyflinkcep.migrate.java.source import (
    Node,
    Source,
    children,
    declared_in,
    enclosing,
    inside,
    parse_java,
    text_of,
)
from pyflinkcep.migrate.meaning.translated import PART, Note

GENERATED = frozenset([
    "Data", "Getter", "Setter", "Value", "AllArgsConstructor", "NoArgsConstructor", "Builder",
    "RequiredArgsConstructor", "ToString", "EqualsAndHashCode", "Slf4j", "Log4j2", "With",
])  # fmt: skip
"""The annotations of Lombok."""


@attrs.frozen
class Reach:
    """The names that patterns lead to, and the classes of whose members only those are needed."""

    names: set[str]
    owners: set[JavaClass]


def names_in(*nodes: Node) -> set[str]:
    """Return the names of variables, members and classes in code."""
    return {text_of(n) for node in nodes for n in inside(node, "identifier", "type_identifier")}


def cut_members(declared: JavaClass, banned: set[str], edits: Edits, reach: Reach) -> None:
    """Leave out what of a class is about streams, and write what Lombok generates."""
    node = declared.node
    generated = _without_annotations([node], banned | GENERATED, edits)
    body = node.child_by_field_name("body")
    if generated & GENERATED:
        edits.append((body.end_byte - 1, body.end_byte - 1, _generated(declared, generated)))
    inner = {one.node.start_byte: one for one in declared.inner}
    is_owner = declared in reach.owners
    for member in children(body):
        below = inner.get(member.start_byte)
        gone = False
        if below is not None:
            unused = is_owner and below not in reach.owners and below.name not in reach.names
            gone = bool(names_in(*_header(member)) & banned) or unused
            if not gone:
                cut_members(below, banned, edits, reach)
        elif member.type == "field_declaration" and is_owner and _is_static(member):
            gone = not declared_names(member) & reach.names
        elif member.type == "method_declaration" and is_owner and not _header(node):
            gone = text_of(member.child_by_field_name("name")) not in reach.names
        if below is None and member.type in _MEMBERS:
            kept = [part for part in children(member) if part.type != "modifiers"]
            _without_annotations([member], banned | GENERATED, edits)
            gone = gone or bool(names_in(*kept, *_annotations(member, banned)) & banned)
        if gone:
            edits.append((member.start_byte, member.end_byte, ""))


def declared_names(node: Node) -> set[str]:
    """Return the variables that a declaration of fields or variables declares."""
    parts = node.children_by_field_name("declarator")
    return {text_of(part.child_by_field_name("name")) for part in parts}


_MEMBERS = (
    "method_declaration", "field_declaration", "static_initializer", "constructor_declaration",
)  # fmt: skip


def _annotations(member: Node, but: set[str]) -> list[Node]:
    """Return the annotations of a member, without some."""
    found = [one for part in children(member) if part.type == "modifiers" for one in children(part)]
    return [one for one in found if text_of(one.child_by_field_name("name")) not in but]


def _without_annotations(members: list[Node], names: set[str], edits: Edits) -> set[str]:
    """Leave out annotations that are in no jar; return their names."""
    gone = [one for member in members for one in _annotations(member, set())]
    gone = [one for one in gone if text_of(one.child_by_field_name("name")) in names]
    edits += [(one.start_byte, one.end_byte, "") for one in gone]
    return {text_of(one.child_by_field_name("name")) for one in gone}


def _header(member: Node) -> list[Node]:
    """Return what a class extends and implements."""
    return [part for part in children(member) if part.type in ("superclass", "super_interfaces")]


def _generated(declared: JavaClass, annotations: set[str]) -> str:
    fields = [f for f in declared.fields.values() if "static" not in f.modifiers]
    written = {  # as the program writes it, since a type may have its package
        name: text_of(member.child_by_field_name("type"))
        for member in children(declared.node.child_by_field_name("body"))
        if member.type == "field_declaration"
        for name in declared_names(member)
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
    if annotations & {"Slf4j", "Log4j2"}:
        lines.append(
            "private static final org.slf4j.Logger log = "
            f'org.slf4j.LoggerFactory.getLogger("{declared.name}");'
        )
    return "\n".join(lines) + "\n"


_STREAMS = frozenset([
    "StreamExecutionEnvironment", "DataStream", "DataStreamSource", "KeyedStream", "PatternStream",
    "SingleOutputStreamOperator", "StreamTableEnvironment", "TableEnvironment", "Table",
    "SourceFunction", "SinkFunction", "RichSourceFunction", "RichSinkFunction", "CEP",
    "ParameterTool",
])  # fmt: skip
Edits = list[tuple[int, int, str]]


@attrs.frozen(eq=False)
class Site:
    """Where a program makes a pattern."""

    # The expression, such as the second argument of ``CEP.pattern``; or a method or a field.
    node: Node
    source: Source  # Its file
    # The arguments of the constructor of the object whose method makes it; None if unknown.
    given: tuple[object, ...] | None = None
    selected: Selected | None = None  # What is made of its matches
    event_type: str = "Object"  # The class of its events


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
        selected = site.selected
        if selected is not None:
            owner = _owner(project, selected.source, selected.node)
            name = f"pyflinkcepRows{number}"
            method = _rows_method(site, selected.node, name)
            added.setdefault(selected.source.file, []).append((owner, method))
            made.rows[-1] = (binary_name(owner), name)
            waiting.append(selected.source)
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
    owners: set[JavaClass] = set()
    waiting: list[str] = []
    for owner, method in (pair for pairs in added.values() for pair in pairs):
        around: JavaClass | None = owner
        while around is not None:
            owners.add(around)
            around = around.outer
        waiting += names_in(parse_java(f"class X {{ {method} }}").root)
    members: dict[str, list[Node]] = {}
    for one in project.classes:
        if one not in owners:
            members.setdefault(one.name, []).append(one.node)
            continue
        waiting += names_in(*_header(one.node), *(m.node for m in one.methods.get(one.name, [])))
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
            waiting += names_in(*members.get(name, ()))
    return Reach(names, owners)


def binary_name(owner: JavaClass) -> str:
    """Return the name of a class as ``Class.forName`` takes it."""
    if owner.outer is not None:
        return f"{binary_name(owner.outer)}${owner.name}"
    return f"{owner.source.package}.{owner.name}" if owner.source.package else owner.name


def _owner(project: Project, source: Source, node: Node) -> JavaClass:
    around = enclosing(node, *CLASSES)
    for found in project.all_of_file(source):
        if around is not None and found.node.start_byte == around.start_byte:
            return found
    raise LookupError("the class around a pattern")


# --- the method that returns a pattern


_STREAM = "org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator<?>"
_PATTERN = "org.apache.flink.cep.pattern.Pattern<?, ?>"


def _method(site: Site, name: str) -> str:
    """Return a method with the statements that a pattern depends on."""
    if site.node.type in ("method_declaration", "variable_declarator"):
        called = text_of(site.node.child_by_field_name("name"))
        brackets = "()" if site.node.type == "method_declaration" else ""
        return _returning(_PATTERN, f"{name}()", None, site.node, f"{called}{brackets}")
    return _returning(_PATTERN, f"{name}()", site.node, _around(site.node), text_of(site.node))


def _rows_method(site: Site, node: Node, name: str) -> str:
    """Return a method that makes rows of a stream of matches, as a call does."""
    arguments = node.child_by_field_name("arguments")
    parts = [text_of(node.child_by_field_name(part)) for part in ("type_arguments", "name")]
    value = f"pyflinkcepFound.{parts[0]}{parts[1]}{text_of(arguments)}"
    given = f"org.apache.flink.cep.PatternStream<{site.event_type}> pyflinkcepFound"
    return _returning(_STREAM, f"{name}({given})", arguments, _around(node), value)


def _around(node: Node) -> Node | None:
    return enclosing(node, "method_declaration", "constructor_declaration")


def _returning(kind: str, head: str, site: Node, member: Node | None, value: str) -> str:
    """Return a method that returns a value, after the statements that a place depends on."""
    static = "static " if member is None or _is_static(member) else ""
    needed = [] if member is None or site is None else _needed(member, site)
    body = "\n".join([*needed, f"return {value};"])
    return (
        f'@SuppressWarnings("all") public {static}{kind} {head} throws Exception {{\n{body}\n}}\n'
    )


def _is_static(node: Node) -> bool:
    is_member = node.type in ("method_declaration", "field_declaration")
    return "static" in modifiers_of(node if is_member else node.parent)


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
            if not declared_names(statement) & wanted:
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
    inner = inside(node, "lambda_expression", "class_body")
    bound = {name for part in inner for name in declared_in(part)}
    names = set()
    for name in inside(node, "identifier"):
        member = {"method_invocation": "name", "field_access": "field"}.get(name.parent.type, "")
        named = name.parent.child_by_field_name(member) if member else None
        owner = name.parent.child_by_field_name("object") if named is not None else None
        if named is None or named.id != name.id or owner is None:
            names.add(text_of(name))
    return names - bound


def _of_streams(statements: Sequence[Node]) -> set[str]:
    """Return the variables that hold streams, or what is made of them: these are left out."""
    found: set[str] = set()
    for statement in statements:
        if statement.type != "local_variable_declaration":
            continue
        used = _free(statement) | {text_of(name) for name in inside(statement, "type_identifier")}
        if used & (_STREAMS | found):
            found |= declared_names(statement)
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
    project: Project, source: Source, added: list[tuple[JavaClass, str]], jars: Jars, reach: Reach
) -> str:
    edits: Edits = []
    banned = set(_STREAMS)
    for node in children(source.root):
        if node.type == "import_declaration" and not _resolves(project, node, jars):
            edits.append((node.start_byte, node.end_byte, ""))
            banned.add(text_of(node).rstrip("; ").rsplit(".", 1)[-1])
    shims = "Time" in banned
    banned -= {"*", "Time"} | GENERATED
    for declared in project.of_file(source):
        cut_members(declared, banned, edits, reach)
    for owner, method in added:
        end = owner.node.child_by_field_name("body").end_byte - 1
        edits.append((end, end, method))
    before = b" " * source.root.start_byte  # a file may begin with blank lines
    lines = _edited(before + bytes(source.root.text), edits).split("\n")
    if shims:
        at = next((n for n, line in enumerate(lines) if line.startswith("package ")), -1) + 1
        lines.insert(at, "import pyflinkcep.check.Time;")
    return "\n".join(lines)


def _resolves(project: Project, node: Node, jars: Jars) -> bool:
    words = text_of(node).removeprefix("import").strip().rstrip(";").strip()
    name = words.removeprefix("static ").strip()
    if name.endswith(".*"):
        package = name[:-2]
        known = {*jars.packages, *jars.names, *(one.source.package for one in project.classes)}
        is_java = package.startswith(("java.", "javax."))
        return is_java or package in known or project.find(package) is not None
    found = project.find(name)
    if jars.has(name) or (found is not None and found.full_name == name):
        return True
    return words.startswith("static ") and project.find(name.rpartition(".")[0]) is not None


def _edited(data: bytes, edits: Edits) -> str:
    """Return a file with parts replaced; a part inside another one that goes is gone."""
    made, at = [], 0
    for start, end, text in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start < at:
            continue
        made += [data[at:start].decode("utf-8", "replace"), text]
        at = end
    return "".join([*made, data[at:].decode("utf-8", "replace")])


def _named(project: Project, source: Source, text: str) -> list[Source]:
    found = {}
    for name in sorted(names_in(parse_java(text).root)):
        if name[:1].isupper():
            declared = project.find(name, source)
            if declared is not None:
                found[declared.source.file] = declared.source
    return list(found.values())


Event = dict[str, Any]


@attrs.frozen(eq=False)
class Selected:
    """What a program makes of matches, as ``select`` is called in Java and in Python."""

    node: Node  # The call in Java
    source: Source  # Its file
    kind: str  # ``select``, ``flatSelect`` or ``process``
    # The names in Python of the functions and of the tag for timeouts.
    function: str
    timeout: str = ""
    tag: str = ""
    columns: tuple[str, ...] = ()  # The columns of the rows
    tags: tuple[str, ...] = ()  # The names of the side outputs
    problem: str = ""  # Why the rows cannot be compared; empty if they can


class CompileError(InputError):
    """If what a pattern needs does not compile against the jars."""


@attrs.frozen(eq=False)
class Checked:
    """A pattern that was translated, and what is needed to run the original."""

    name: str  # The function of Python that returns it
    site: Site  # Where Java makes it
    event_type: str | None  # The class of its events
    keys: tuple[str, ...] = ()  # The columns of the key
    # The column with the time of an event; None for the order in which they are given.
    time: str | None = None
    schema: str | None = None  # The columns of the events as DDL
    problem: str = ""  # Why it cannot be compared; empty if it can
    selected: Selected | None = None  # What the program makes of matches
    scale: int = 1  # How many milliseconds one of the column `time` is


@attrs.define(eq=False)
class Written:
    """What became of a file."""

    file: str  # The file of Java
    module: str | None = None  # The name of the Python module; None if there was nothing to write
    text: str = ""  # The module
    patterns: list[str] = attrs.field(factory=list)  # The functions of its patterns
    statements: int = 0  # How many statements with MATCH_RECOGNIZE there are
    # How many conditions, and functions of matches, there are.
    conditions: int = 0
    functions: int = 0
    sql: int = 0  # How many conditions became SQL
    stubs: int = 0  # How many of both remain to be written
    # What is needed to compare its patterns with the originals.
    checked: list[Checked] = attrs.field(factory=list)
    notes: list[Note] = attrs.field(factory=list)  # What to look at
    errors: list[Note] = attrs.field(factory=list)  # What is wrong with the file

    @property
    def number(self) -> int:
        """How many patterns, and statements with a clause, there are."""
        return len(self.patterns) + self.statements

    @property
    def remaining(self) -> int:
        """How many places of the module remain to be written."""
        parts = ("what becomes of the matches", PART)
        noted = sum(any(part in note.what for part in parts) for note in self.notes)
        return self.text.count("TODO") + self.text.count("raise not_translated(") + noted


@attrs.frozen
class Answer:
    """What Flink answered for one pattern."""

    events: list[Event] = attrs.field(factory=list)  # The events as the program holds them
    # Rows with ``match``, stages with their events; of timeouts also ``timestamp``.
    matches: list[dict[str, Any]] = attrs.field(factory=list)
    timeouts: list[dict[str, Any]] = attrs.field(factory=list)
    error: str | None = None  # What went wrong, in one line
    # The ``row`` of each match or timeout, with the ``tag`` of a side output; None without any.
    rows: list[dict[str, Any]] | None = None
    no_rows: str = ""  # Why there are none


def run_on_flink(
    project: Project, patterns: Sequence[Checked], events: Mapping[str, Sequence[Event]], jars: Path
) -> dict[str, Answer]:
    """Return Flink's answers for the patterns of a file, by their names."""
    for tool in ("javac", "java"):
        if shutil.which(tool) is None:
            raise InputError(f"--check needs {tool}", "install a JDK and put its bin on PATH")
    if not any(jars.glob("flink-cep*.jar")):
        raise InputError(f"no flink-cep*.jar in {jars}", "pass the folder of Flink's jars")
    sites = []
    for one in patterns:
        made_of = one.selected if one.selected and not one.selected.problem else None
        kind = one.event_type or "Object"
        sites.append(attrs.evolve(one.site, selected=made_of, event_type=kind))
    classpath = ":".join(str(jar.resolve()) for jar in sorted(jars.glob("*.jar")))
    with TemporaryDirectory() as folder:
        here = Path(folder)
        made, reason = _compiled(here, project, sites, Jars.of(jars), classpath)
        plan = {
            "patterns": [
                _planned(project, one, made, number) for number, one in enumerate(patterns)
            ],
            "events": {name: list(rows) for name, rows in events.items()},
        }
        (here / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        answers = _run(here, classpath)
    return {
        name: attrs.evolve(answer, no_rows=answer.no_rows or reason)
        for name, answer in answers.items()
    }


def _compiled(
    folder: Path, project: Project, sites: Sequence[Site], jars: Jars, classpath: str
) -> tuple[Sliced, str]:
    """Compile the program's parts; without the rows, and with the reason, if those do not."""
    made = sliced(project, sites, jars)
    try:
        _compile(folder, made.files, classpath)
    except CompileError as error:
        if not any(made.rows):
            raise
        made = sliced(project, [attrs.evolve(site, selected=None) for site in sites], jars)
        _compile(folder, made.files, classpath)
        return made, error.message
    return made, ""


def _compile(folder: Path, files: Mapping[str, str], classpath: str) -> None:
    own = Path(__file__).parent
    sources = dict(files)
    for name in ("Runner.java", "Time.java"):
        sources[f"pyflinkcep/check/{name}"] = (own / name).read_text(encoding="utf-8")
    for name, text in sources.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    paths = [str(folder / "src" / name) for name in sources]
    command = ["javac", "-nowarn", "-encoding", "UTF-8", "-d", str(folder / "classes")]
    done = subprocess.run(
        [*command, "-cp", classpath, *paths], capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error:" in line]
        first = (lines or done.stderr.splitlines() or ["javac failed"])[0]
        raise CompileError(
            f"what the pattern needs does not compile: {first.replace(str(folder / 'src'), '')}",
            "pass the jars of the Flink that it is written for, and of the other libraries it uses",
        )


_PLAIN = frozenset(
    f"java.lang.{name}"
    for name in ("String", "Integer", "Long", "Double", "Float", "Boolean", "Short", "Byte")
)
"""What the fields of a tuple may be."""


def _planned(project: Project, one: Checked, made: Sliced, number: int) -> dict[str, Any]:
    call, rows = made.calls[number], made.rows[number]
    kinds: dict[str, str] = {}
    event, column = "java.lang.Object", ""
    declared = None
    type_ = written_type(one.event_type or "?")
    arguments = [f"java.lang.{given.name}" for given in type_.args]
    if one.event_type is not None:
        declared = project.find(one.event_type, one.site.source)
        if one.event_type in ("String", "Long", "Double", "Integer"):
            event = f"java.lang.{one.event_type}"
        elif type_.name.startswith("Tuple") and set(arguments) <= _PLAIN:
            event = f"org.apache.flink.api.java.tuple.{type_.name}"
        elif type_.name == "Row":
            event = "org.apache.flink.types.Row"
        elif type_.name in ("JsonNode", "ObjectNode"):
            event = one.site.source.imports.get(type_.name, event)
    if declared is not None:
        event = binary_name(declared)
        below = project.subclasses(declared)
        if below:
            column = discriminator(declared, project)
            kinds = {kind.name: binary_name(kind) for kind in [declared, *below]}
    return {
        "name": one.name,
        "owner": call[0],
        "method": call[1],
        "given": one.site.given,
        "rows": None if rows is None else {"owner": rows[0], "method": rows[1]},
        "tags": [] if one.selected is None else list(one.selected.tags),
        "event": event,
        "arguments": arguments if "tuple" in event else [],
        "kinds": kinds,
        "discriminator": column,
        "keys": list(one.keys),
        "time": one.time or "",
        "scale": one.scale,
    }


def _run(folder: Path, classpath: str) -> dict[str, Answer]:
    opened = [
        f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
        for package in ("lang", "util", "util.concurrent", "time", "io", "net", "math", "text")
    ]
    command = ["java", *opened, "-Xmx1g", "-Dlog4j2.level=OFF", "-Dlog4j2.disableJmx=true"]
    done = subprocess.run(
        [*command, "-cp", f"{classpath}:{folder / 'classes'}", "pyflinkcep.check.Runner",
         str(folder / "plan.json")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            name, no_rows = row.pop("name"), row.pop("noRows", "")
            found[name] = Answer(**row, no_rows=no_rows)
    if not found:
        first = (done.stderr.strip().splitlines() or ["no output"])[0]
        raise InputError(f"Flink did not run: {first}", "check the jars given by --flink-jars")
    return found
