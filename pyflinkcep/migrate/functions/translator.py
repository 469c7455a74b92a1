# SPDX-License-Identifier: Apache-2.0
"""Translates functions of events and matches: conditions, selectors, select, process and others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import attrs

from pyflinkcep.errors import CepError
from pyflinkcep.migrate.functions.finding import Finder, Function, first_sentence
from pyflinkcep.migrate.java.declarations import BOOLEAN, INT, LONG, UNKNOWN, JavaType, written_type
from pyflinkcep.migrate.java.project import (
    Project,
    column_names,
    quoted,
    schema_of,
    spark_type,
    struct_fields,
)
from pyflinkcep.migrate.java.source import Node, Source, inside, line_of, snake_case, text_of
from pyflinkcep.migrate.meaning import operations as ops
from pyflinkcep.migrate.meaning.literals import constant
from pyflinkcep.migrate.meaning.python import Python, Statements, checked_names, tag_constant
from pyflinkcep.migrate.meaning.reader import Reader
from pyflinkcep.migrate.meaning.reading import Findings
from pyflinkcep.migrate.meaning.sql import Sql
from pyflinkcep.migrate.meaning.statements import (
    checked_changes,
    folded_body,
    has_aggregates,
    helper_lines,
    read_block,
)
from pyflinkcep.migrate.meaning.translated import Note, Translated
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
    calls_in,
    expressions_of,
    parts,
)
from pyflinkcep.pattern.coercion import as_condition


@attrs.frozen
class Kind:
    """A kind of function: as Java has it, and as Python does."""

    methods: tuple[str, ...]  # The methods of Java
    parameters: tuple[str, ...]  # What Python is given
    doc: str
    returns: str = "Any"

    @property
    def of_match(self) -> bool:
        """Whether it is given a match."""
        return self.parameters[0] == "match"


_KINDS = {
    "condition": Kind(
        ("filter",), ("event", "ctx"), "Whether the event satisfies the condition.", "bool"
    ),
    "value": Kind(
        ("getKey", "extractTimestamp", "extractAscendingTimestamp", "map", "apply", "filter"),
        ("event",), "Return a value of the event.",
    ),
    "compare": Kind(
        ("compare",), ("first", "second"),
        "Return a negative number if `first` comes before `second`, a positive one if after.",
        "int",
    ),
    "select": Kind(("select",), ("match",), "Return the row of a match."),
    "flatSelect": Kind(
        ("flatSelect",), ("match", "out"), "Put the rows of a match into `out`.", "None"
    ),
    "timeout": Kind(
        ("timeout",), ("match", "timestamp"), "Return the row of a partial match that timed out."
    ),
    "flatTimeout": Kind(
        ("timeout",), ("match", "timestamp", "out"),
        "Put the rows of a partial match that timed out into `out`.", "None",
    ),
    "process": Kind(("processMatch",), ("match", "ctx", "out"), "Handle a match.", "None"),
    "timedOut": Kind(
        ("processTimedOutMatch",), ("match", "ctx"),
        "Handle a partial match that timed out.", "None",
    ),
    "map": Kind(("map", "apply"), ("event",), "Return the row that an event becomes."),
    "flatMap": Kind(("flatMap",), ("event", "out"), "Put rows of an event into `out`.", "None"),
    "element": Kind(
        ("processElement",), ("event", "out"), "Put rows of an event into `out`.", "None"
    ),
}  # fmt: skip
_TYPES = {"out": JavaType("Collector"), "timestamp": LONG, "ctx": JavaType("Context")}
_OPEN = ("?", "T", "IN", "Object")
"""Types that say nothing of events."""
_CONTEXT = re.compile(r"(?<!\.)\bctx\b")
_NAMED = re.compile(r'getEventsForPattern\("([^"]*)"\)')


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


@attrs.define(eq=False)
class _Body:
    """A translated body."""

    lines: list[str]
    result: JavaType
    stub: bool = False
    ddl: str | None = None


@attrs.frozen(eq=False)
class Translator:
    """Translates a function that Java passes, once; what it cannot translate is a stub."""

    node: Node
    source: Source
    project: Project
    event_type: str | None = None
    known: Mapping[str, Expression] = attrs.field(factory=dict)  # What variables around stand for
    _findings: Findings = attrs.field(init=False, factory=Findings)
    _columns: dict[str, str] = attrs.field(init=False, factory=dict)
    _rows: list[tuple[str, str]] = attrs.field(init=False, factory=list)

    def condition(
        self, name: str = "condition", stages: Sequence[str] = (), *, sql: bool = True
    ) -> Translated:
        """Translate the argument of ``where``, ``or`` or ``until``."""
        self._findings.aggregates = True
        try:
            found = self._condition(name, sql=sql)
        except Exception as error:
            return self._stub("condition", name, error)
        named = _NAMED.findall(found.sql or found.python or "") if stages else []
        missing = [name for name in dict.fromkeys(named) if name not in stages]
        line = line_of(self.node)
        notes = [Note(self.source.file, line, f"no stage is named {name!r}") for name in missing]
        return attrs.evolve(found, notes=(*found.notes, *notes))

    def value(self) -> Translated:
        """Translate a selector of one event, a key or a time, to SQL; a stub if it has none."""
        try:
            return self._value()
        except Exception as error:
            return self._stub("value", "value", error)

    def function(self, kind: str, name: str | None = None) -> Translated:
        """Translate a function of matches or events, or of two events to compare."""
        try:
            if kind == "process":
                return self._process(name)
            return self._function(kind, name or snake_case(kind))
        except Exception as error:
            made = self._stub(kind, name or kind, error)
            return attrs.evolve(made, output_type=self._declared(kind))

    def _stub(self, kind: str, name: str, error: Exception) -> Translated:
        """Return a function that raises, with the Java, also that of a class or method it names."""
        why = reason_of(error, self.node)
        line = why.line or line_of(self.node)
        note = Note(self.source.file, line, f"not translated: {why.what}")
        declared = declared_by(self.node, self.source, self.project)
        lines = raising(self.source, why.what, self.node, declared)
        doc = "Write this in Python; the Java is below."
        python = _written(kind, name, doc, lines, _KINDS[kind].parameters)
        imports = (_ANY, "from pyflinkcep.migrate.runtime import not_translated")
        notes = (*self._findings.notes, note)
        return Translated(None, snake_case(name), python, frozenset(imports), notes, stub=True)

    def _find(self, kind: str) -> Function:
        finder = Finder(self.project, _KINDS[kind].methods, self._findings, self.known)
        found = finder.of(self.node, self.source)
        open_ = [name for name in found.variables if name not in found.scope.types]
        events = found.type_arguments[0].name if found.type_arguments else ""
        if events in open_ and self.event_type:  # new Function<>()
            return found.of_types({events: written_type(self.event_type)})
        return found

    def _event(self, function: Function, kind: str) -> JavaType:
        """Return the class of events."""
        type_ = function.parameters[0][1] if function.parameters else UNKNOWN
        if _KINDS[kind].of_match:  # Map<String, List<E>>
            type_ = type_.args[1] if len(type_.args) == 2 else UNKNOWN
            type_ = type_.args[0] if type_.args else type_
        if type_.name in _OPEN and not type_.dims:
            type_ = function.event_type
        if not self.event_type:
            return type_
        given = written_type(self.event_type)
        above = self.project.find(type_.name, function.scope.source)
        of = self.project.find(given.name, function.scope.source)
        if above is not None and above.kind == "interface" and of is not None:
            return given if self.project.is_a(of, above.name) else type_
        return given if type_.name in _OPEN and not type_.dims else type_

    def _reader(self, function: Function, kind: str) -> Reader:
        """Return a reader in which the parameters of Java are those of Python."""
        seen = {name: value for name, value in self.known.items() if name not in function.hidden}
        fields = {**seen, **function.scope.fields}
        reader = Reader(attrs.evolve(function.scope, fields=fields), self._findings)
        event = reader.event_type = self._event(function, kind)
        given, names = function.parameters, _KINDS[kind].parameters
        if kind == "element":
            names = ("event", "ctx", "out")
            names_read = map(text_of, inside(function.body, "identifier"))
            if len(given) > 1 and given[1][0] in names_read:
                raise Untranslatable("the context of a process function", line_of(function.body))
        if kind in ("condition", "value") and given:
            names, given = names[: len(given)], given[: len(names)]
        if len(given) != len(names):
            raise Untranslatable(f"a function of {len(given)} parameters", line_of(self.node))
        events = event if _has_one_each(function) else JavaType("List", (event,))
        match = JavaType("Map", (JavaType("String"), events))
        for (java, _), python in zip(given, names, strict=True):
            if python == "event":
                variable = Var(python, event)
                value = Get(variable, "value", event) if event.is_plain else variable
                reader.scope.values[java] = value
            elif kind == "compare":
                reader.scope.values[java] = Var(python, event)
            else:
                reader.scope.values[java] = Var(python, _TYPES.get(python, match))
        return reader

    def _result(self, function: Function, kind: str) -> JavaType:
        fixed = {"bool": BOOLEAN, "int": INT}.get(_KINDS[kind].returns)
        if fixed is not None:
            return fixed
        if _KINDS[kind].returns == "Any":
            result = function.result_type
        else:
            last = function.parameters[-1][1] if function.parameters else UNKNOWN
            result = last.args[0] if last.name == "Collector" and last.args else UNKNOWN
        if result.name in ("?", "R", "OUT", "T", "Object", "void") and not result.dims:
            args = function.type_arguments
            return args[1] if len(args) == 2 else UNKNOWN
        return result

    def _declared(self, kind: str) -> str | None:
        """Return the schema of the declared type of the result; None if unknown."""
        try:
            return ddl_of(self._result(self._find(kind), kind), self.project, self.source)
        except Exception:
            return None

    # --- conditions and values of events

    def _condition(self, name: str, *, sql: bool) -> Translated:
        """Translate a condition to SQL if that means the same, and otherwise to a function."""
        function = self._find("condition")
        reader = self._reader(function, "condition")
        reader.result_type = BOOLEAN
        try:
            written: Expression | None = _expression(reader, function)
        except Untranslatable:
            if not function.is_block:
                raise
            written = None
        if written is not None:
            self._read((written,), reader)
            found = self._sql(written, line_of(function.body)) if sql else None
            if found is not None:
                return found
        self._findings.aggregates = False
        short = written is not None and sum(1 for _ in parts(written)) <= 40
        if written is None or not short or has_aggregates(written):
            return self._function("condition", name)
        body = self._written_body(function, reader, "condition", (Return(written),), BOOLEAN)
        return self._made(name, _written("condition", name, function.doc, body.lines), body)

    def _sql(self, written: Expression, line: int) -> Translated | None:
        """Return SQL of the same meaning, and notes; None if there is none."""
        findings = Findings(list(self._findings.notes))
        try:
            writer = Sql(lambda what: findings.note(self.source.file, line, what))
            text = str(writer.condition(written))
            as_condition(text, "", "")
        except (Untranslatable, CepError):
            return None
        return Translated(text, notes=tuple(findings.notes), columns=tuple(self._columns.items()))

    def _value(self) -> Translated:
        """Translate a selector of an event to SQL."""
        function = self._find("value")
        reader = self._reader(function, "value")
        written = _expression(reader, function)
        file, line = self.source.file, line_of(self.node)
        writer = Sql(lambda what: self._findings.note(file, line, what))
        is_test = written.type.unboxed == BOOLEAN
        text = str(writer.condition(written, True) if is_test else writer.value(written))
        self._read((written,), reader)
        notes, columns = tuple(self._findings.notes), tuple(self._columns.items())
        return Translated(text, notes=notes, columns=columns)

    # --- functions

    def _function(self, kind: str, name: str) -> Translated:
        """Translate a function that is one function in Python too."""
        function = self._find(kind)
        body = self._body(function, kind)
        return self._made(name, _written(kind, name, function.doc, body.lines), body)

    def _read(self, values: Iterable[Expression], reader: Reader) -> None:
        """Remember the columns that code reads of events whose class is not in the sources."""
        if reader.class_of(reader.event_type) is None:
            self._columns.update(columns_read(values, self.project, reader.event_type))

    def _made(self, name: str, text: str, body: _Body, *, stub: bool = False) -> Translated:
        return Translated(
            name=name,
            python=text,
            imports=frozenset(self._findings.imports),
            notes=tuple(self._findings.notes),
            stub=stub,
            output_type=body.ddl or ddl_of(body.result, self.project, self.source),
            result=str(body.result),
            output_tags=tuple(self._findings.tags.items()),
            captured=tuple(self._findings.captured),
            columns=tuple(self._columns.items()),
            rows=tuple(dict.fromkeys(self._rows)),
        )

    def _body(self, function: Function, kind: str) -> _Body:
        """Return the translated body of a function."""
        reader = self._reader(function, kind)
        result = self._result(function, kind)
        returns = _KINDS[kind].returns != "None"
        reader.result_type = result if returns else UNKNOWN
        if function.is_block:
            statements = read_block(reader, function.body)
        elif returns:
            value = reader.argument(function.body, (result,))
            statements = (Return(reader.assigned(value, result)),)
        else:
            statements = (Do(reader.read(function.body)),)
        self._read(expressions_of(statements), reader)
        if result == UNKNOWN or result.name == "Row":
            result = _inferred(statements, returns)
        return self._written_body(function, reader, kind, statements, result)

    def _written_body(
        self,
        function: Function,
        reader: Reader,
        kind: str,
        statements: tuple[Statement, ...],
        result: JavaType,
    ) -> _Body:
        checked_changes(statements)
        python = Python(self._findings)
        before: list[str] = []
        of_match = _KINDS[kind].of_match
        changes = any(map(_changes_event, all_statements(statements)))
        if kind in ("map", "flatMap", "element") and changes:
            before = [f"event = {python.use('fields_of')}(event)"]
            python.made.add("event")
        elif of_match and reader.event_type.is_plain:
            before = [f"match = {python.use('values_of')}(match)"]
        if of_match and _has_one_each(function):
            before.append("match = {name: events[-1] for name, events in match.items()}")
            what = "a match has one event of each stage, as before Flink 1.3: here the last one"
            self._findings.note(self.source.file, line_of(function.body), what)
        write: Callable[[Expression], str] = partial(self._row, python, result)
        ddl = None
        if result.name in JSON_OBJECTS:
            ddl = json_columns(statements, self.project, self.source)
            write = python.write
            if ddl is None:  # a row with the object's JSON
                write = lambda value: f"({python.filled('json_text(a)', value)},)"  # noqa: E731
            ddl = ddl or "value string"
        given = {"bool": "bool", "int": "int"}.get(_KINDS[kind].returns, "row")
        output = partial(self._output, python)
        lines = Statements(python, given, write, output).block(statements)
        lines = [*helper_lines(reader), *before, *lines]
        checked_names(lines, ("self", *_KINDS[kind].parameters), self._findings)
        self._findings.imports.add(_ANY)
        return _Body(lines, result, ddl=ddl)

    def _row(self, python: Python, type_: JavaType, value: Expression, tag: str = "") -> str:
        """Return a row of an output, and remember what it is."""
        row, kind = row_of(python, value, type_, self.project, self.source)
        self._rows.append((tag, kind))
        return row

    def _output(self, python: Python, call: Call) -> str:
        tag, value = call.operands
        if not isinstance(tag, Const) or tag.type.name != "OutputTag":
            raise Untranslatable("the output tag is not known here")
        type_ = tag.type.args[0] if tag.type.args else value.type
        self._findings.tags[str(tag.value)] = ddl_of(type_, self.project, self.source)
        row = self._row(python, type_, value, str(tag.value))
        return f"ctx.output({python.write(tag)}, {row})"

    # --- process functions

    def _process(self, name: str | None) -> Translated:
        """Translate a process function to a class."""
        function = self._find("process")
        name = name or function.class_name or "Results"
        body = self._method(function, "process")
        methods, bases, stubs = [_method("process", body)], ["PatternProcessFunction"], body.stub
        timed_out: Function | None = None
        with suppress(Untranslatable):
            timed_out = self._find("timedOut")
        if timed_out is not None:
            handler = self._method(timed_out, "timedOut")
            methods.append(_method("timedOut", handler))
            bases.append("TimedOutPartialMatchHandler")
            stubs = stubs or handler.stub
        tags = [tag_constant(tag) for tag in self._findings.tags]
        listed = [f"    outputTags = ({', '.join(tags)},)", ""] if tags else []
        doc = function.doc if function.class_name else first_sentence(self.node)
        head = [f"class {name}({', '.join(bases)}):", f'    """{doc or "Handles matches."}"""', ""]
        text = "\n".join([*head, *listed, "\n\n".join(methods)]) + "\n"
        self._findings.imports |= {_ANY, *(f"from pyflinkcep import {base}" for base in bases)}
        return self._made(name, text, body, stub=stubs)

    def _method(self, function: Function, kind: str) -> _Body:
        try:
            return self._body(function, kind)
        except Exception as error:
            cause = reason_of(error, function.body)
            why, line = cause.what, cause.line or line_of(function.body)
            self._findings.notes.append(Note(self.source.file, line, f"not translated: {why}"))
            Python(self._findings).use("not_translated")
            lines = raising(self.source, why, function.body)
            return _Body(lines, self._result(function, kind), stub=True)


_ANY = "from typing import Any"


def _written(
    kind: str, name: str, doc: str, lines: list[str], parameters: tuple[str, ...] = ()
) -> str:
    """Return a function of Python; a condition has no second parameter that it does not read."""
    given = _KINDS[kind].parameters
    if kind == "condition" and not any(_CONTEXT.search(line) for line in lines):
        given = given[:1]
    arguments = ", ".join(f"{one}: Any" for one in parameters or given)
    head = f"def {snake_case(name)}({arguments}) -> {_KINDS[kind].returns}:"
    return "\n".join([head, *_indented(f'"""{doc or _KINDS[kind].doc}"""', *lines)]) + "\n"


def _method(kind: str, body: _Body) -> str:
    arguments = ", ".join(["self", *(f"{one}: Any" for one in _KINDS[kind].parameters)])
    head = f"def {_KINDS[kind].methods[0]}({arguments}) -> None:"
    lines = [head, *_indented(f'"""{_KINDS[kind].doc}"""', *body.lines)]
    return "\n".join(_indented(*lines))


def _indented(*lines: str) -> list[str]:
    return [f"    {line}".rstrip() for line in lines]


def _expression(reader: Reader, function: Function) -> Expression:
    """Return the body of a function as one expression."""
    if function.is_block:
        return folded_body(reader, function.body)
    return reader.read(function.body)


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


def _inferred(statements: Iterable[Statement], returns: bool) -> JavaType:
    """Return the type of the rows that a function returns or collects."""
    if returns:
        found = [one.value for one in all_statements(statements) if isinstance(one, Return)]
    else:
        calls = calls_in(statements)
        found = [call.operands[1] for call in calls if call.operation is ops.COLLECT]
    known = [one.type for one in found if one is not None and one.type.name not in ("?", "null")]
    return known[0] if known else UNKNOWN


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
    """Return columns with others: structs have the fields of both, and a known type wins."""
    found = dict(columns)
    for name, type_ in more:
        found[name] = _joined(found.get(name, type_), type_)
    return found


def _joined(before: str, type_: str) -> str:
    """Return the type of a column that is read as values of two types."""
    if before.startswith("struct<") and type_.startswith("struct<"):
        inner = joined_columns(struct_fields(before), struct_fields(type_).items())
        return f"struct<{','.join(f'{n}:{t}' for n, t in inner.items())}>"
    if before.startswith("array<") and type_.startswith("array<"):
        return f"array<{_joined(before[6:-1], type_[6:-1])}>"
    return type_ if before == "string" or type_.startswith(("struct<", "array<")) else before


JSON_OBJECTS = ("JSONObject", "ObjectNode", "JsonObject")
"""Classes of JSON objects that programs fill."""


def ddl_of(type_: JavaType, project: Project, source: Source | None) -> str | None:
    """Return the columns of rows of a type as DDL; None if they are unknown."""
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
    for put in (one for one in calls_in(statements) if one.operation is ops.PUT):
        owner, key, value = put.operands
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
