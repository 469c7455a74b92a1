# SPDX-License-Identifier: Apache-2.0
"""Conditions of stages, as SQL or as Python functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.migrate.conditions.columns import columns_read
from pyflinkcep.migrate.conditions.function import Function, function_of, reader_of
from pyflinkcep.migrate.conditions.stub import reason_of, stub
from pyflinkcep.migrate.java.declarations import JavaType, written_type
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source, line_of
from pyflinkcep.migrate.java.types import BOOLEAN, is_plain, unboxed
from pyflinkcep.migrate.meaning.bodies import folded_body, has_aggregates, helper_lines
from pyflinkcep.migrate.meaning.changes import checked_changes
from pyflinkcep.migrate.meaning.loops import streams_folded
from pyflinkcep.migrate.meaning.names import checked_names
from pyflinkcep.migrate.meaning.python import Python
from pyflinkcep.migrate.meaning.python_statements import Statements
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.scope import Findings, snake_case
from pyflinkcep.migrate.meaning.sql import Sql
from pyflinkcep.migrate.meaning.sql_parts import needs_text, sampled
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.tree import (
    Expression,
    Get,
    Return,
    Untranslatable,
    Var,
    parts,
)
from pyflinkcep.migrate.meaning.walked import expressions_of
from pyflinkcep.migrate.translated import Note, Translated
from pyflinkcep.pattern.coercion import as_condition

__all__ = ["columns_of", "event_value", "translate_condition", "translate_value"]

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

    Parameters
    ----------
    node : Node
        A lambda, anonymous or named class, method reference or call that makes a condition.
    source : Source
        Its file.
    project : Project
        The classes it may name.
    event_type : str, optional
        The class of events, if it does not say so itself.
    stages : sequence of str
        The names of stages.
    known : mapping of str to object, optional
        The values of captured variables.
    name : str
        The name of the function, if it becomes one.
    sql : bool
        Whether it may become SQL.

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
        text, notes = found
        imports = set(findings.imports)
        if needs_text(text):
            imports.add("from pyflinkcep.migrate.runtime import sql_text")
        return Translated(
            sql=text,
            imports=frozenset(imports),
            notes=notes,
            columns=columns,
            captured=tuple(findings.captured),
        )
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

    own = Findings()  # what SQL that turns out to be none asks for is not needed
    try:
        writer = Sql(note, python=Python(own).inside().write)
        text = writer.condition(streams_folded(written))
        as_condition(sampled(text), "", "")
    except (Untranslatable, CepError):
        return None
    findings.imports |= own.imports
    findings.captured |= own.captured
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
        text = writer.condition(written, exact=True) if boolean else writer.value(written)
        columns = columns_of((written,), event, reader)
        return Translated(sql=text, notes=tuple(findings.notes), columns=columns)
    except Exception as error:
        why = reason_of(error, node)
        return stub(node, source, why, findings, name, ("event",), "Any", project)
