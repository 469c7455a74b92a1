# SPDX-License-Identifier: Apache-2.0
"""Conditions of stages, as SQL or as Python functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.migrate.conditions.function import Function, function_of, reader_of
from pyflinkcep.migrate.java.declarations import JavaType, written_type
from pyflinkcep.migrate.java.project import BOOLEAN, UNKNOWN, Project, is_plain, spark_type, unboxed
from pyflinkcep.migrate.java.source import Node, Source, line_of, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.bodies import (
    checked_changes,
    folded_body,
    has_aggregates,
    helper_lines,
)
from pyflinkcep.migrate.meaning.python import Python, checked_names
from pyflinkcep.migrate.meaning.python_statements import Statements
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.reading import Findings, snake_case
from pyflinkcep.migrate.meaning.sql import Sql
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.translated import Note, Translated
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Expression,
    Get,
    Return,
    Untranslatable,
    Var,
    expressions_of,
    parts,
)
from pyflinkcep.pattern.coercion import as_condition

Columns = dict[str, str]


def columns_read(of: Iterable[Expression], project: Project, event: JavaType) -> Columns:
    """Return the columns of events that expressions read, fields inside as structs."""
    found: Columns = {}
    for part in (part for one in of for part in parts(one)):
        path: list[str | None] = []
        type_ = spark_type(part.type, project) or "string" if _is_step(part) else ""
        owner = part
        while isinstance(owner, Get | Call) and _is_step(owner):
            path.insert(0, owner.name if isinstance(owner, Get) else None)
            owner = owner.owner if isinstance(owner, Get) else owner.operands[0]
        is_event = isinstance(owner, Var) and owner.name == "event"
        if not path or not (is_event or (owner.type == event and event != UNKNOWN)):
            continue
        for name in reversed(path[1:]):
            type_ = f"array<{type_}>" if name is None else f"struct<{name}:{type_}>"
        if path[0] is not None:
            found = joined_columns(found, [(path[0], type_)])
    return found


def _is_step(of: Expression) -> bool:
    """Whether an expression is a field, or an element of an array, of another value."""
    return isinstance(of, Get) or (isinstance(of, Call) and of.operation is ops.JSON_ITEM)


def joined_columns(columns: Columns, more: Iterable[tuple[str, str]]) -> Columns:
    """
    Return columns with others: structs have the fields of both, and a known type wins.

    Examples
    --------
    >>> joined_columns({"a": "struct<x:int>"}, [("a", "struct<y:string>"), ("b", "int")])
    {'a': 'struct<x:int,y:string>', 'b': 'int'}
    """
    found = dict(columns)
    for name, type_ in more:
        found[name] = _joined(found.get(name, type_), type_)
    return found


def _joined(before: str, type_: str) -> str:
    """Return the type of a column that is read as values of two types."""
    if before.startswith("struct<") and type_.startswith("struct<"):
        inner = joined_columns(dict(_fields(before)), _fields(type_))
        return f"struct<{','.join(f'{n}:{t}' for n, t in inner.items())}>"
    if before.startswith("array<") and type_.startswith("array<"):
        return f"array<{_joined(before[6:-1], type_[6:-1])}>"
    return type_ if before == "string" or type_.startswith(("struct<", "array<")) else before


def _fields(struct: str) -> list[tuple[str, str]]:
    inner, depth, start = struct[7:-1], 0, 0
    found = []
    for at, char in enumerate(inner + ","):
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == "," and depth == 0:
            name, _, type_ = inner[start:at].partition(":")
            found.append((name, type_))
            start = at + 1
    return found


def stub(
    node: Node,
    source: Source,
    error: Untranslatable,
    findings: Findings,
    name: str,
    parameters: tuple[str, ...],
    result: str,
    project: Project,
) -> Translated:
    """Return a function that raises, with the Java, also that of a class or method it names."""
    note = Note(source.file, error.line or line_of(node), f"not translated: {error.what}")
    name = snake_case(name)
    raised = raising(source, error.what, node, declared_by(node, source, project))
    lines = [
        f"def {name}({', '.join(f'{one}: Any' for one in parameters)}) -> {result}:",
        '    """Write this in Python; the Java is below."""',
        *(f"    {line}" for line in raised),
    ]
    imports = ("from typing import Any", "from pyflinkcep.migrate.runtime import not_translated")
    return Translated(
        name=name,
        python="\n".join(lines) + "\n",
        imports=frozenset(imports),
        notes=(*findings.notes, note),
        stub=True,
    )


def raising(source: Source, why: str, node: Node, more: Node | None = None) -> list[str]:
    """Return the lines of a function that raises: why, and the Java that it stands for."""
    why = " ".join(why.split())
    where = f"{source.file.rsplit('/', 1)[-1]}:{line_of(node)}"
    java = [*java_comment(node), *(java_comment(more) if more is not None else ())]
    raised = f"raise not_translated({where!r}, {why!r})"
    return [*(f"# {line}".rstrip() for line in (why, *java)), raised]


def reason_of(error: Exception, node: Node) -> Untranslatable:
    """Return why something was not translated; Java that is broken may break its reader."""
    if isinstance(error, Untranslatable):
        return error
    if isinstance(error, RecursionError):
        return Untranslatable("nested too deeply", line_of(node))
    broken = "a syntax error" if node.has_error else f"it is not understood ({error!r})"
    return Untranslatable(broken, line_of(node))


def declared_by(node: Node, source: Source, project: Project) -> Node | None:
    """Return the class or method of the project that an expression names; None for others."""
    if node.type == "object_creation_expression":
        name = text_of(node.child_by_field_name("type")).split("<", 1)[0].rsplit(".", 1)[-1]
        declared = project.find(name, source)
        has_body = any(part.type == "class_body" for part in node.children)
        return None if declared is None or has_body else declared.node
    if node.type == "method_reference":
        owner = project.find(text_of(node.children[0]), source)
        methods = [] if owner is None else owner.methods.get(text_of(node.children[-1]), [])
        return methods[0].node if methods else None
    return None


def java_comment(node: Node) -> list[str]:
    """Return the lines of a node, without control characters."""
    lines = text_of(node).replace("\t", "    ").splitlines()
    indent = min((len(one) - len(one.lstrip()) for one in lines[1:] if one.strip()), default=0)
    dedented = [lines[0] if lines else "", *(line[indent:] for line in lines[1:])]
    return ["".join(c if c.isprintable() else "?" for c in line) for line in dedented]


_NOTHING: Mapping[str, Any] = {}
_CONTEXT = re.compile(r"(?<!\.)\bctx\b")
_NAMED = re.compile(r'getEventsForPattern\("([^"]*)"\)')


def translate_condition(
    node: Node,
    source: Source,
    project: Project,
    event_type: str | None = None,
    stages: Sequence[str] = (),
    known: Mapping[str, Any] = _NOTHING,
    name: str = "condition",
    *,
    sql: bool = True,
) -> Translated:
    """
    Translate the argument of ``where``, ``or`` or ``until``.

    Examples
    --------
    >>> from pyflinkcep.migrate.java.source import parse_java
    >>> java = "class E { int n; } class J { Object c = (E e) -> e.n > 3 && e.n < 9; }"
    >>> source = parse_java(java)
    >>> field = Project([source]).find("J").fields["c"]
    >>> translate_condition(field.value, source, Project([source])).sql
    'n > 3 AND n < 9'
    """
    findings = Findings(aggregates=True)
    try:
        function = function_of(node, source, project, ("filter",), findings, known)
        event = _event_type(function, event_type)
        reader = _prepared(function, event, findings, known)
        found = _translated(function, reader, findings, event, name, sql=sql)
        return _checked(found, node, source, stages)
    except Exception as error:
        why = reason_of(error, node)
        return stub(node, source, why, findings, name, ("event", "ctx"), "bool", project)


def _checked(found: Translated, node: Node, source: Source, stages: Sequence[str]) -> Translated:
    """Return a condition, with a note for each stage that it names and that there is not."""
    text = found.sql or found.python or ""
    named = _NAMED.findall(text) if stages else []
    missing = [name for name in dict.fromkeys(named) if name not in stages]
    notes = [Note(source.file, line_of(node), f"no stage is named {name!r}") for name in missing]
    return attrs.evolve(found, notes=(*found.notes, *notes))


def _event_type(function: Function, given: str | None) -> JavaType:
    written = function.parameters[0][1] if function.parameters else JavaType("?")
    type_ = written if written.name not in ("?", "T", "Object") else function.event_type
    above = function.project.find(type_.name, function.source)
    if above is not None and above.kind == "interface" and given:
        of = function.project.find(written_type(given).name, function.source)
        if of is not None and function.project.is_a(of, above.name):
            return written_type(given)
    if type_.name in ("?", "T", "Object") and given:
        type_ = written_type(given)
    return type_


def event_value(event: JavaType, name: str) -> Expression:
    """Return what a parameter for an event means: a plain value is its column ``value``."""
    variable = Var(name, event)
    return Get(variable, "value", event) if is_plain(event) else variable


def _prepared(
    function: Function, event: JavaType, findings: Findings, known: Mapping[str, Any]
) -> Reader:
    reader = reader_of(function, findings, known)
    reader.event_type = event
    names = [name for name, _ in function.parameters]
    if not names:
        raise Untranslatable("a condition without a parameter")
    reader.scope.values[names[0]] = event_value(event, "event")
    if len(names) > 1:
        reader.scope.values[names[1]] = Var("ctx", JavaType("Context"))
    reader.result_type = BOOLEAN
    return reader


def _translated(
    function: Function, reader: Reader, findings: Findings, event: JavaType, name: str, *, sql: bool
) -> Translated:
    written: Expression | None = None
    try:
        written = (
            folded_body(reader, function.body) if function.is_block else reader.read(function.body)
        )
    except Untranslatable:
        if not function.is_block:
            raise
    columns = columns_of((written,) if written is not None else (), event, reader)
    if written is not None and not sql and has_aggregates(written):
        written = None
    found = _sql(written, reader, findings, function) if written is not None and sql else None
    if found is not None:
        return Translated(sql=found[0], notes=found[1], columns=columns)
    return _function(function, reader, findings, written, name, columns)


def _sql(
    written: Expression, reader: Reader, findings: Findings, function: Function
) -> tuple[str, tuple[Note, ...]] | None:
    """Return SQL of the same meaning, and notes; None if there is none."""
    notes = list(findings.notes)
    file, line = reader.source.file, line_of(function.body)

    def note(what: str) -> None:
        if Note(file, line, what) not in notes:
            notes.append(Note(file, line, what))

    try:
        text = str(Sql(note).condition(written))
        as_condition(text, "", "")
    except (Untranslatable, CepError):
        return None
    return text, tuple(notes)


def _function(
    function: Function,
    reader: Reader,
    findings: Findings,
    written: Expression | None,
    name: str,
    columns: tuple[tuple[str, str], ...],
) -> Translated:
    python = Python(findings)
    name = snake_case(name)
    findings.aggregates = False
    if written is not None and not _is_long(written) and not has_aggregates(written):
        checked_changes(written)
        body = [f"return {python.condition(written)}"]
    else:
        statements = (
            read_block(reader, function.body)
            if function.is_block
            else (Return(reader.read(function.body)),)
        )
        checked_changes(statements)
        columns = columns or columns_of(expressions_of(statements), reader.event_type, reader)
        body = Statements(python, "bool").block(statements)
    body = [*helper_lines(reader), *body]
    names = ("event", "ctx") if any(_CONTEXT.search(line) for line in body) else ("event",)
    body = checked_names(body, names, findings)
    arguments = ", ".join(f"{one}: Any" for one in names)
    doc = function.doc or "Whether the event satisfies the condition."
    lines = [f"def {name}({arguments}) -> bool:", f'    """{doc}"""']
    findings.imports.add("from typing import Any")
    source = "\n".join([*lines, *(f"    {line}".rstrip() for line in body)]) + "\n"
    return Translated(
        name=name,
        python=source,
        imports=frozenset(findings.imports),
        notes=tuple(findings.notes),
        columns=columns,
        captured=tuple(findings.captured),
    )


def _is_long(of: Expression) -> bool:
    return sum(1 for _ in parts(of)) > 40


def columns_of(
    read: Iterable[Expression], event: JavaType, reader: Reader
) -> tuple[tuple[str, str], ...]:
    """Return the columns that code reads of events whose class is not in the sources."""
    if reader.class_of(event) is not None:
        return ()
    return tuple(columns_read(read, reader.scope.project, event).items())


def translate_value(
    node: Node,
    source: Source,
    project: Project,
    event_type: str | None = None,
    known: Mapping[str, Any] = _NOTHING,
    name: str = "value",
) -> Translated:
    """
    Translate a selector of one event, such as a key selector or timestamp assigner, to SQL.

    Parameters are those of :func:`translate_condition`; without SQL the result is a stub.
    """
    findings = Findings()
    methods = ("getKey", "extractTimestamp", "extractAscendingTimestamp", "map", "apply", "filter")
    try:
        function = function_of(node, source, project, methods, findings, known)
        event = _event_type(function, event_type)
        reader = _prepared(function, event, findings, known)
        reader.result_type = JavaType("?")
        written = (
            folded_body(reader, function.body) if function.is_block else reader.read(function.body)
        )
        writer = Sql(lambda what: findings.note(source.file, line_of(node), what))
        boolean = unboxed(written.type) == BOOLEAN
        text = str(writer.condition(written, True) if boolean else writer.value(written))
        columns = columns_of((written,), event, reader)
        return Translated(sql=text, notes=tuple(findings.notes), columns=columns)
    except Exception as error:
        why = reason_of(error, node)
        return stub(node, source, why, findings, name, ("event",), "Any", project)
