# SPDX-License-Identifier: Apache-2.0
"""Functions of matches: select, flatSelect, process and those of timeouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from pyflinkcep.migrate.conditions.condition import (
    columns_of,
    event_value,
    raising,
    reason_of,
    stub,
)
from pyflinkcep.migrate.conditions.function import Function, function_of, javadoc, reader_of
from pyflinkcep.migrate.java.declarations import JavaType, written_type
from pyflinkcep.migrate.java.project import (
    INT,
    LONG,
    UNKNOWN,
    Project,
    column_names,
    is_plain,
    quoted,
    schema_of,
    spark_type,
)
from pyflinkcep.migrate.java.source import Node, Source, line_of, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.bodies import checked_changes, helper_lines
from pyflinkcep.migrate.meaning.literals import constant
from pyflinkcep.migrate.meaning.python import Python, checked_names, tag_constant
from pyflinkcep.migrate.meaning.python_statements import Statements
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.reading import Findings, snake_case
from pyflinkcep.migrate.meaning.statements import read_block
from pyflinkcep.migrate.meaning.translated import Note, Translated, TranslatedFunction
from pyflinkcep.migrate.meaning.tree import (
    Call,
    Choice,
    Const,
    Do,
    Expression,
    Get,
    Make,
    Return,
    Set,
    Statement,
    Untranslatable,
    Var,
    all_statements,
    expressions_of,
    parts,
)

_NOTHING: Mapping[str, Any] = {}


def translate_comparator(
    node: Node,
    source: Source,
    project: Project,
    event_type: str | None = None,
    known: Mapping[str, Any] = _NOTHING,
    name: str = "compare_events",
) -> Translated:
    """Translate an ``EventComparator`` to a function of two events that returns a number."""
    findings = Findings()
    try:
        function = function_of(node, source, project, ("compare",), findings, known)
        reader = reader_of(function, findings, known)
        given = JavaType(event_type) if event_type else UNKNOWN
        if len(function.parameters) != 2:
            raise Untranslatable("a comparator without two parameters")
        for (java, written), python in zip(function.parameters, ("first", "second"), strict=True):
            type_ = written if written.name not in ("?", "T") else given
            reader.scope.values[java] = Var(python, type_)
        reader.result_type = INT
        statements = (
            read_block(reader, function.body)
            if function.is_block
            else (Return(reader.read(function.body)),)
        )
        lines = Statements(Python(findings), "int").block(statements)
        lines = checked_names([*helper_lines(reader), *lines], ("first", "second"), findings)
    except Exception as error:
        why = reason_of(error, node)
        return stub(node, source, why, findings, name, ("first", "second"), "int", project)
    name = snake_case(name)
    doc = "Return a negative number if `first` comes before `second`, a positive one if after."
    head = [f"def {name}(first: Any, second: Any) -> int:", f'    """{doc}"""']
    text = "\n".join([*head, *(f"    {line}".rstrip() for line in lines)]) + "\n"
    return Translated(
        name=name,
        python=text,
        imports=frozenset({*findings.imports, "from typing import Any"}),
        notes=tuple(findings.notes),
    )


JSON_OBJECTS = ("JSONObject", "ObjectNode", "JsonObject")
"""Classes of JSON objects that programs fill."""


def ddl_of(type_: JavaType, project: Project, source: Source | None) -> str | None:
    """
    Return the columns of rows of a type as DDL; None if they are unknown.

    Examples
    --------
    >>> ddl_of(JavaType("Tuple2", (JavaType("String"), JavaType("Long"))), Project(), None)
    'f0 string, f1 bigint'
    >>> ddl_of(JavaType("String"), Project(), None)
    'value string'
    """
    if not type_.dims and project.find(type_.name, source) is not None:
        found = schema_of(type_.name, source, project)
        if found is not None:
            return found
    if type_.name in ("Object", "?", "null", "void"):
        return None
    single = spark_type(type_, project, source)
    if single is None:
        return None
    if type_.name.startswith("Tuple") and single.startswith("struct<"):
        parts = [spark_type(arg, project, source) for arg in type_.args]
        return ", ".join(f"f{place} {part}" for place, part in enumerate(parts))
    return f"value {single}"


def json_columns(
    statements: Iterable[Statement], project: Project, source: Source | None
) -> str | None:
    """Return the columns of the JSON objects that code fills, if all their names are constants."""
    found: dict[str, str] = {}
    for part in (part for one in expressions_of(statements) for part in parts(one)):
        if not isinstance(part, Call) or part.operation is not ops.PUT:
            continue
        owner, key, value = part.operands
        if owner.type.name not in JSON_OBJECTS:
            continue
        type_ = spark_type(value.type, project, source)
        if not isinstance(key, Const) or not isinstance(key.value, str) or type_ is None:
            return None
        if found.setdefault(key.value, type_) != type_:
            return None
    return ", ".join(f"{quoted(name)} {type_}" for name, type_ in found.items()) or None


def row_of(
    python: Python, value: Expression, type_: JavaType, project: Project, source: Source | None
) -> tuple[str, str]:
    """
    Return a result as a row, and what that is.

    It is a ``dict`` of a new object, a ``tuple``, or the object ``itself``; ``null`` is none.
    """
    if isinstance(value, Const) and value.value is None:
        return "None", "null"
    known = value.type if value.type.name not in ("?", "null", "Object") else type_
    if isinstance(value, Choice):
        known = value.yes.type if value.yes.type.name != "null" else value.no.type
    if isinstance(value, Make) and value.type.name.startswith("Tuple"):
        inner = ", ".join(python.write(field) for _, field in value.fields)
        return f"({inner},)" if len(value.fields) == 1 else f"({inner})", "tuple"
    of = project.find(known.name, source) if not known.dims else None
    is_object = (of is not None and of.kind != "enum") or isinstance(value, Make)
    is_new = isinstance(value, Make) or (isinstance(value, Var) and value.name in python.made)
    if of is not None and of.kind != "enum" and not is_new:
        names = ", ".join(map(constant, column_names(of, project)))
        return f"{python.use('row_of')}({python.write(value)}, {names})", "tuple"
    listed = _rows_of(python, value, known, project, source)
    if listed is not None:
        return f"({listed},)", "tuple"
    if is_object or known.name.startswith("Tuple") or known.name in ("?", "Row"):
        return python.write(value), "dict" if is_new else "itself"
    return f"({python.write(value)},)", "tuple"


def _rows_of(
    python: Python, value: Expression, type_: JavaType, project: Project, source: Source | None
) -> str | None:
    """Return a list of events, or a map of such lists, as rows; None for others."""
    is_map = type_.name in ("Map", "HashMap", "LinkedHashMap") and len(type_.args) == 2
    inner = type_.args[1] if is_map else type_
    if inner.name not in ("List", "ArrayList", "Collection", "Iterable") or not inner.args:
        return None
    of = project.find(inner.args[0].name, source)
    if of is None or of.kind == "enum" or (isinstance(value, Call) and value.operation is ops.LIST):
        return None
    names = ", ".join(map(constant, column_names(of, project)))
    rows = python.use("rows_of")
    if is_map:
        items = python.filled("a.items()", value)
        return f"{{name: {rows}(events, {names}) for name, events in {items}}}"
    return f"{rows}({python.write(value)}, {names})"


_METHODS = {
    "select": ("select",), "flatSelect": ("flatSelect",), "timeout": ("timeout",),
    "flatTimeout": ("timeout",), "process": ("processMatch",), "map": ("map", "apply"),
    "flatMap": ("flatMap",), "element": ("processElement",),
}  # fmt: skip
_PARAMETERS = {
    "select": ("match",), "flatSelect": ("match", "out"), "timeout": ("match", "timestamp"),
    "flatTimeout": ("match", "timestamp", "out"), "process": ("match", "ctx", "out"),
    "timedOut": ("match", "ctx"), "map": ("event",), "flatMap": ("event", "out"),
    "element": ("event", "ctx", "out"),
}  # fmt: skip
_TYPES = {"out": JavaType("Collector"), "timestamp": LONG, "ctx": JavaType("Context")}
_DOCS = {
    "select": "Return the row of a match.", "flatSelect": "Put the rows of a match into `out`.",
    "timeout": "Return the row of a partial match that timed out.",
    "flatTimeout": "Put the rows of a partial match that timed out into `out`.",
    "map": "Return the row that an event becomes.", "flatMap": "Put rows of an event into `out`.",
    "element": "Put rows of an event into `out`.", "process": "Handle a match.",
    "timedOut": "Handle a partial match that timed out.",
}  # fmt: skip


def translate_function(
    node: Node,
    source: Source,
    project: Project,
    kind: str,
    event_type: str | None = None,
    known: Mapping[str, Any] = _NOTHING,
    name: str | None = None,
) -> TranslatedFunction:
    """Translate a function of matches."""
    findings = Findings()
    translator = _Translator(node, source, project, findings, known, event_type)
    try:
        if kind == "process":
            return translator.process(name)
        return translator.function(kind, name or snake_case(kind))
    except Exception as error:
        why = reason_of(error, node)
        made = stub(node, source, why, findings, name or kind, _PARAMETERS[kind], "Any", project)
        ddl = translator.declared(kind)
        return TranslatedFunction(**attrs.asdict(made, recurse=False), output_type=ddl)


@attrs.define(eq=False)
class _Body:
    """A translated body."""

    lines: list[str]
    result: JavaType
    stub: bool = False
    ddl: str | None = None


@attrs.frozen(eq=False)
class _Translator:
    node: Node
    source: Source
    project: Project
    findings: Findings
    known: Mapping[str, Any]
    event_type: str | None
    columns: dict[str, str] = attrs.field(factory=dict)
    rows: list[tuple[str, str]] = attrs.field(factory=list)

    def _find(self, methods: tuple[str, ...]) -> Function:
        found = function_of(
            self.node, self.source, self.project, methods, self.findings, self.known
        )
        open_ = [name for name in found.variables if name not in found.types]
        events = found.type_arguments[0].name if found.type_arguments else ""
        if events in open_ and self.event_type:  # new Function<>()
            return found.of_types({events: written_type(self.event_type)})
        return found

    def _event(self, function: Function) -> JavaType:
        written = function.parameters[0][1] if function.parameters else UNKNOWN
        if len(written.args) == 2 and written.args[1].name != "?":
            return written.args[1].args[0] if written.args[1].args else written.args[1]
        if function.event_type.name not in ("?", "T"):
            return function.event_type
        return written_type(self.event_type) if self.event_type else UNKNOWN

    def _reader(self, function: Function, kind: str) -> Reader:
        reader = reader_of(function, self.findings, self.known)
        event = self._event(function)
        reader.event_type = event
        names = _PARAMETERS[kind]
        if kind in _OF_EVENT and function.parameters:
            return self._of_event(reader, function, names)
        if len(function.parameters) != len(names):
            raise Untranslatable(
                f"a function of {len(function.parameters)} parameters", line_of(self.node)
            )
        events = event if _has_one_each(function) else JavaType("List", (event,))
        match = JavaType("Map", (JavaType("String"), events))
        for (java, _), python in zip(function.parameters, names, strict=True):
            reader.scope.values[java] = Var(python, _TYPES.get(python, match))
        return reader

    def _of_event(self, reader: Reader, function: Function, names: tuple[str, ...]) -> Reader:
        """Return a reader of a function of one event, before the pattern or after it."""
        (first, written), *others = function.parameters
        known = written.name not in ("?", "T", "IN", "Object") or bool(written.dims)
        event = written if known else self._event(function)
        reader.event_type = event
        reader.scope.values[first] = event_value(event, names[0])
        for (java, _), python in zip(others, names[1:], strict=True):
            if python == "ctx" and uses(function.body, java):
                raise Untranslatable("the context of a process function", line_of(function.body))
            reader.scope.values[java] = Var(python, _TYPES[python])
        return reader

    def _result(self, function: Function, kind: str) -> JavaType:
        if kind in ("select", "timeout", "map"):
            result = function.result_type
        else:
            last = function.parameters[-1][1] if function.parameters else UNKNOWN
            result = last.args[0] if last.name == "Collector" and last.args else UNKNOWN
        if result.name in ("?", "R", "OUT", "T", "Object", "void") and not result.dims:
            args = function.type_arguments
            return args[1] if len(args) == 2 else UNKNOWN
        return result

    def declared(self, kind: str) -> str | None:
        """Return the schema of the declared type of the result; None if unknown."""
        try:
            result = self._result(self._find(_METHODS[kind]), kind)
            return ddl_of(result, self.project, self.source)
        except Exception:
            return None

    # --- functions

    def function(self, kind: str, name: str) -> TranslatedFunction:
        """Translate a function that is one function in Python too."""
        function = self._find(_METHODS[kind])
        body = self.body(function, kind)
        arguments = ", ".join(f"{one}: Any" for one in _PARAMETERS[kind])
        returns = "Any" if kind in ("select", "timeout", "map") else "None"
        if kind == "element":
            arguments = "event: Any, out: Any"
        doc = function.doc or _DOCS[kind]
        name = snake_case(name)
        self.findings.imports.add("from typing import Any")
        head = [f"def {name}({arguments}) -> {returns}:", f'    """{doc}"""']
        text = "\n".join([*head, *(f"    {line}".rstrip() for line in body.lines)]) + "\n"
        return self._made(name, text, body)

    def _made(
        self, name: str, text: str, body: _Body, *, timeouts: bool = False, stub: bool = False
    ) -> TranslatedFunction:
        return TranslatedFunction(
            name=name,
            python=text,
            imports=frozenset(self.findings.imports),
            notes=tuple(self.findings.notes),
            stub=stub,
            output_type=body.ddl or ddl_of(body.result, self.project, self.source),
            result=str(body.result),
            handles_timeouts=timeouts,
            output_tags=tuple(self.findings.tags.items()),
            captured=tuple(self.findings.captured),
            columns=tuple(self.columns.items()),
            rows=tuple(dict.fromkeys(self.rows)),
        )

    def body(self, function: Function, kind: str) -> _Body:
        """Return the translated body of a function."""
        reader = self._reader(function, kind)
        result = self._result(function, kind)
        returns = kind in ("select", "timeout", "map")
        reader.result_type = result if returns else UNKNOWN
        if function.is_block:
            statements = read_block(reader, function.body)
        elif returns:
            value = reader.argument(function.body, (result,))
            statements = (Return(reader.assigned(value, result)),)
        else:
            statements = (Do(reader.read(function.body)),)
        checked_changes(statements, ("match",))
        self.columns.update(columns_of(expressions_of(statements), reader.event_type, reader))
        if result == UNKNOWN or result.name == "Row":
            result = _inferred(statements, returns)
        python = Python(self.findings)
        before: list[str] = []
        if kind in _OF_EVENT and any(_changes_event(one) for one in all_statements(statements)):
            before = [f"event = {python.use('fields_of')}(event)"]
            python.made.add("event")
        elif kind not in _OF_EVENT and is_plain(reader.event_type):
            before = [f"match = {python.use('values_of')}(match)"]
        if kind not in _OF_EVENT and _has_one_each(function):
            before.append("match = {name: events[-1] for name, events in match.items()}")
            what = "a match has one event of each stage, as before Flink 1.3: here the last one"
            self.findings.note(self.source.file, line_of(function.body), what)
        write, ddl = self._row_writer(python, result), None
        if result.name in JSON_OBJECTS:
            ddl = json_columns(statements, self.project, self.source)
            write = python.write if ddl is not None else _as_json(python)
            ddl = ddl or "value string"
        lines = Statements(python, "row", write, self._output_writer(python))
        body = lines.block(statements)
        body = [*helper_lines(reader), *before, *body]
        body = checked_names(body, ("self", *_PARAMETERS[kind]), self.findings)
        return _Body(body, result, ddl=ddl)

    def _row_writer(self, python: Python, result: JavaType) -> Callable[[Expression], str]:
        def write(value: Expression) -> str:
            row, kind = row_of(python, value, result, self.project, self.source)
            self.rows.append(("", kind))
            return row

        return write

    def _output_writer(self, python: Python) -> Callable[[Call], str]:
        def write(call: Call) -> str:
            tag, value = call.operands
            if not isinstance(tag, Const) or tag.type.name != "OutputTag":
                raise Untranslatable("the output tag is not known here")
            type_ = tag.type.args[0] if tag.type.args else value.type
            self.findings.tags[str(tag.value)] = ddl_of(type_, self.project, self.source)
            row, kind = row_of(python, value, type_, self.project, self.source)
            self.rows.append((str(tag.value), kind))
            return f"ctx.output({python.write(tag)}, {row})"

        return write

    # --- process functions

    def process(self, name: str | None) -> TranslatedFunction:
        """Translate a process function to a class."""
        function = self._find(("processMatch",))
        name = name or function.class_name or "Results"
        body = self._method(function, "process")
        methods = [self._lines("processMatch", "process", body)]
        bases, timed_out = ["PatternProcessFunction"], self._timed_out()
        stubs = body.stub
        if timed_out is not None:
            handler = self._method(timed_out, "timedOut")
            methods.append(self._lines("processTimedOutMatch", "timedOut", handler))
            bases.append("TimedOutPartialMatchHandler")
            stubs = stubs or handler.stub
        tags = [tag_constant(tag) for tag in self.findings.tags]
        listed = [f"    outputTags = ({', '.join(tags)},)", ""] if tags else []
        doc = function.doc if function.class_name else javadoc(self.node)
        head = [f"class {name}({', '.join(bases)}):", f'    """{doc or "Handles matches."}"""', ""]
        text = "\n".join([*head, *listed, "\n\n".join(methods)]) + "\n"
        self.findings.imports |= {
            "from typing import Any",
            *(f"from pyflinkcep import {base}" for base in bases),
        }
        has_timeouts = timed_out is not None
        return self._made(name, text, body, timeouts=has_timeouts, stub=stubs)

    def _timed_out(self) -> Function | None:
        try:
            return self._find(("processTimedOutMatch",))
        except Untranslatable:
            return None

    def _method(self, function: Function, kind: str) -> _Body:
        try:
            return self.body(function, kind)
        except Exception as error:
            cause = reason_of(error, function.body)
            why, line = cause.what, cause.line or line_of(function.body)
            self.findings.notes.append(Note(self.source.file, line, f"not translated: {why}"))
            Python(self.findings).use("not_translated")
            lines = raising(self.source, why, function.body)
            return _Body(lines, self._result(function, kind), stub=True)

    @staticmethod
    def _lines(method: str, kind: str, body: _Body) -> str:
        arguments = ", ".join(["self", *(f"{one}: Any" for one in _PARAMETERS[kind])])
        head = [
            f"    def {method}({arguments}) -> None:",
            f'        """{_DOCS[kind]}"""',
        ]
        return "\n".join([*head, *(f"        {line}".rstrip() for line in body.lines)])


def _as_json(python: Python) -> Callable[[Expression], str]:
    """Return what writes an object as a row with its JSON."""
    return lambda value: f"({python.use('json_text')}({python.write(value)}),)"


def _changes_event(of: Statement) -> bool:
    """Whether a statement changes a field of the event, which is a copy here."""
    match of:
        case Set(target=Get(owner=Var(name="event"))):
            return True
    return False


def _has_one_each(function: Function) -> bool:
    """Whether a function is given one event of each stage, as before Flink 1.3."""
    args = function.parameters[0][1].args if function.parameters else ()
    return len(args) == 2 and not args[1].args and args[1].name not in ("?", "List", "Object")


_OF_EVENT = ("map", "flatMap", "element")


def uses(body: Node, name: str) -> bool:
    """Whether a body names a variable."""
    waiting = [body]
    while waiting:
        one = waiting.pop()
        if one.type == "identifier" and text_of(one) == name:
            return True
        waiting.extend(one.named_children)
    return False


def _inferred(statements: Iterable[Statement], returns: bool) -> JavaType:
    """Return the type of the rows that a function returns or collects."""
    found = _returned(statements) if returns else _collected(statements)
    known = [value.type for value in found if value.type.name not in ("?", "null")]
    return known[0] if known else UNKNOWN


def _returned(statements: Iterable[Statement]) -> list[Expression]:
    found = []
    for one in all_statements(statements):
        if isinstance(one, Return) and one.value is not None:
            found.append(one.value)
    return found


def _collected(statements: Iterable[Statement]) -> list[Expression]:
    calls = [value for value in expressions_of(statements) if isinstance(value, Call)]
    return [call.operands[1] for call in calls if call.operation is ops.COLLECT]
