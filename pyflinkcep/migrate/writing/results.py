# SPDX-License-Identifier: Apache-2.0
"""The functions that match: key, pattern, time, and what becomes of matches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from pyflinkcep.migrate.chains.values import Call, Code, Const, Made, Stream, Tag, Value
from pyflinkcep.migrate.check.flink import Checked
from pyflinkcep.migrate.check.rows import Selected, names_of
from pyflinkcep.migrate.check.slices import Site
from pyflinkcep.migrate.java.source import Node, children, enclosing, line_of, snake, text_of
from pyflinkcep.migrate.jobs.sources import source_of
from pyflinkcep.migrate.meaning.python_calls import constant as quoted
from pyflinkcep.migrate.translated import Note, TranslatedFunction
from pyflinkcep.migrate.translation import Translation, code_of, parameters, place
from pyflinkcep.migrate.writing.inputs import EVENT_TIME, POSITION, InputWriter
from pyflinkcep.migrate.writing.module import (
    WIDTH,
    Module,
    call,
    chain,
    docstring,
    indented,
    literal,
    python_type,
)
from pyflinkcep.migrate.writing.patterns import PatternWriter

RESULTS = frozenset(["select", "flatSelect", "process"])
"""The calls that make rows of matches."""


def applied_by(stream: Stream) -> Stream | None:
    """Return where a pattern was applied, if a stream is that of its matches."""
    while stream.inputs and stream.call.method in _SETTINGS:
        stream = stream.inputs[0]
    return stream if stream.call.method == "pattern" else None


_SETTINGS = frozenset(["inProcessingTime", "inEventTime", "sideOutputLateData"])
_TYPE = re.compile(r"(\w+\.)*(TypeInformation|Types)\b")  # its package may stand before it


def result_before(stream: Stream) -> Stream | None:
    """Return the rows of matches that a stream is made of."""
    while stream.inputs:
        if stream.call.method in RESULTS and applied_by(stream.inputs[0]) is not None:
            return stream
        stream = stream.inputs[0]
    return None


def result_for_pattern(stream: Stream) -> Stream | None:
    """Return the rows of matches that a pattern is applied to with the time of the matches."""
    while stream.inputs:
        if stream.call.method in RESULTS and applied_by(stream.inputs[0]) is not None:
            return stream
        if stream.call.method.startswith("assign"):
            return None
        stream = stream.inputs[0]
    return None


def function_code(value: Value) -> Code | None:
    """Return the Java of a function of matches; None for tags, types and others."""
    if isinstance(value, Tag):
        return None
    code = code_of(value)
    if code is None or code.node is None:
        return None
    is_type = _TYPE.match(text_of(code.node)) is not None or (
        isinstance(value, Made)
        and value.type.split(".")[0].endswith(("TypeInfo", "TypeInformation", "TypeHint", "Types"))
    )
    return None if is_type else code


def plain_values(arguments: Sequence[Value]) -> tuple[object, ...] | None:
    """Return the arguments of a constructor, if all are numbers, texts or booleans."""
    values = [value.value if isinstance(value, Const) else value for value in arguments]
    known = all(isinstance(value, bool | int | float | str) for value in values)
    return tuple(values) if known else None


def selected(
    call: Call,
    made: Sequence[TranslatedFunction],
    tags: Sequence[Tag],
    constants: Mapping[str, str],
) -> Selected:
    """Return what is needed to compare the rows that a call makes of matches."""
    problem = "not all of their functions are translated" if any(m.stub for m in made) else ""
    if any(m.captured for m in made):
        problem = problem or "their functions depend on what is known at run time alone"
    if len(made) > 1 and not tags:
        problem = problem or "Either has no counterpart: timeouts are a side output"
    names = [tag.name for tag in tags]
    names += [name for m in made for name, _ in m.output_tags if name not in names]
    return Selected(
        call.code.node,
        call.code.source,
        call.method,
        made[0].name or "",
        timeout=(made[1].name or "") if len(made) > 1 else "",
        tag=constants.get(names[0], "") if len(made) > 1 and names else "",
        columns=names_of(made[0].output_type or "value string"),
        tags=tuple(names),
        problem=problem,
    )


def split_time(column: str) -> tuple[str | None, int]:
    """
    Return the column of a time, and how many milliseconds one of it is.

    Examples
    --------
    >>> split_time("seconds * 1000"), split_time("time"), split_time("")
    (('seconds', 1000), ('time', 1), (None, 1))
    """
    name, _, factor = column.partition(" * ")
    return name or None, int(factor or 1)


@attrs.frozen
class Result:
    """A function that matches, and the events that it is called with."""

    function: str
    events: Stream
    parameters: tuple[tuple[str, str], ...]


@attrs.define(eq=False)
class ResultWriter:
    """Writes functions that apply a pattern to events."""

    module: Module
    translation: Translation
    notes: list[Note]
    patterns: PatternWriter
    inputs: InputWriter
    checked: list[Checked] = attrs.field(factory=list)
    chained: set[int] = attrs.field(factory=set)
    _timed: set[int] = attrs.field(factory=set)
    _written: dict[int, Result] = attrs.field(factory=dict)
    plain: set[str] = attrs.field(factory=set)
    _row_name: str = "match"
    _pattern_name: str = "match"
    _event_columns: str | None = None
    _more_columns: str = ""
    _parameters: dict[str, str] = attrs.field(factory=dict)
    _codes: dict[int, Code] = attrs.field(factory=dict)
    _selected: Selected | None = None

    def write(self, stream: Stream) -> Result:
        """Write the function of the rows of matches, once."""
        if id(stream) in self._written:
            return self._written[id(stream)]
        changes, applied = self._back(stream.inputs[0])
        events = applied.inputs[0]
        keys: list[str] = []
        while events.call.method in _PASSED or events.call.method == "keyBy":
            if events.call.method == "keyBy" and not keys:
                keys = self._keys(events)
            events = events.inputs[0]
        before = result_before(events)
        if before is not None:
            self.write(before)  # its rows may have a time, which is used here
        if events.call.method == "parameter" and self._is_keyed(events):
            keys = keys or ['"TODO"']
            self._note(events.call.code, "the stream has a key that is chosen elsewhere: write it")
        self.module.use(
            "from pyspark.sql import DataFrame", "from pyflinkcep import CEP, CepDataFrame"
        )
        link = applied.pattern
        pattern, needed = ("TODO", ()) if link is None else self.patterns.write(link)
        if link is None:
            self._note(applied.call.code, "the pattern given to CEP.pattern could not be followed")
            pattern = self._no_pattern(applied)
        self._pattern_name = pattern.removesuffix("_pattern")
        self._pattern_name = "matches" if self._pattern_name == "pattern" else self._pattern_name
        function = self.module.name(f"find_{snake(stream.name or self._pattern_name)}")
        given = ", ".join(name for name, _ in needed)
        arguments = ["events", f"{pattern}({given})"]
        if keys:
            self.module.use("from pyflinkcep import keyBy")
            arguments[0] = f"keyBy(events, {', '.join(keys)})"
        arguments += self._comparator(applied)
        bounded = self._bounded(events)
        calls = self._time_calls(applied, changes, events, bounded=bounded)
        self._event_columns = self.translation.schema(applied.event_type, applied.call.code)
        self._more_columns = next((_TYPED.get(given[0], "") for _, given in calls if given), "")
        self._parameters = {}
        lines = [
            chain("CEP", [("pattern", arguments), *calls], "found = ", 4),
            self._rows(stream),
        ]
        if link is not None and not needed:
            self._check(applied, events, pattern, keys)
        where = place(stream.call.code)
        body = indented(
            "\n".join([docstring(f"Return {stream.name or 'the matches'} ({where})"), *lines])
        )
        parameters = tuple({**dict(needed), **self._parameters}.items())
        typed = "".join(f", {name}: {python_type(kind)}" for name, kind in parameters)
        self.module.function(f"def {function}(events: DataFrame{typed}) -> CepDataFrame:\n{body}")
        self._written[id(stream)] = Result(function, events, parameters)
        return self._written[id(stream)]

    def _check(self, applied: Stream, events: Stream, pattern: str, keys: list[str]) -> None:
        """Remember what is needed to compare a pattern with the original."""
        node = children(applied.call.code.node.child_by_field_name("arguments"))[1]
        source = applied.call.code.source
        link = applied.pattern
        if link is not None and _is_of_loop(node):  # each of several patterns, by its own method
            node = enclosing(link.begun.node, "method_declaration") or node
            source = link.begun.source
        kind = applied.event_type
        plain = [key.strip('"`') for key in keys if key.startswith('"') and "TODO" not in key]
        schema = self.translation.schema(kind, applied.call.code)
        column = self.inputs.columns.get(id(events), "")
        time, scale = split_time(column)
        this = applied.call.code.scope.object() if source is applied.call.code.source else None
        site = Site(node, source, None if this is None else plain_values(this.arguments))
        problem = "its key is computed" if len(plain) < len(keys) else ""
        if time is None and self.inputs.times.get(id(events)) is not None:
            problem = "its time is computed"
        self.checked.append(
            Checked(pattern, site, kind, tuple(plain), time, schema, problem, self._selected, scale)
        )

    def _no_pattern(self, applied: Stream) -> str:
        name = self.module.name("unknown_pattern")
        self.module.use("from pyflinkcep import Pattern")
        where = place(applied.call.code)
        text = text_of(applied.call.code.node).replace("\n", " ")[:60]
        body = [docstring(f"TODO: build the pattern of {where}"), f"# {text}"]
        body.append(f'raise NotImplementedError("{where} is not translated")')
        self.module.function(f"def {name}() -> Pattern:\n" + indented("\n".join(body)))
        return name

    def _back(self, stream: Stream) -> tuple[list[Call], Stream]:
        """Return the calls on a stream of a pattern, and where it was applied."""
        changes: list[Call] = []
        while stream.call.method != "pattern" and stream.inputs:
            changes.append(stream.call)
            stream = stream.inputs[0]
        return changes[::-1], stream

    def _bounded(self, events: Stream) -> bool:
        while events.inputs:
            events = events.inputs[0]
        return source_of(events).bounded

    # --- keys, times, order

    def _is_keyed(self, events: Stream) -> bool:
        declared = events.call.code.scope.type_of(events.name or "")
        return declared is not None and declared.startswith("KeyedStream")

    def _keys(self, stream: Stream) -> list[str]:
        made = []
        for value in stream.call.arguments:
            constant = getattr(value, "value", None)
            if isinstance(constant, str | int):  # a number is the place of a field in a tuple
                made.append(quoted(constant if isinstance(constant, str) else f"f{constant}"))
                continue
            code = code_of(value)
            if code is None or (isinstance(value, Made) and code.node is None):
                continue
            selected = self.translation.value(code, stream.inputs[0].event_type)
            self.notes.extend(selected.notes)
            if selected.sql is None:
                self._note(code, "the key is not translated: write its column")
                made.append('"TODO"')
            elif selected.sql.strip("`").isidentifier():
                made.append(quoted(selected.sql))
            else:
                self.module.use("from pyspark.sql import functions as F")
                made.append(f"F.expr({quoted(selected.sql)})")
        return made

    def _comparator(self, applied: Stream) -> list[str]:
        if len(applied.call.arguments) < 3:
            return []
        code = code_of(applied.call.arguments[2])
        if code is None:
            return []
        made = self.translation.comparator(code, applied.event_type)
        self.notes.extend(made.notes)
        return [self.module.define(made)]

    def _time_calls(
        self, applied: Stream, changes: list[Call], events: Stream, *, bounded: bool
    ) -> list[tuple[str, list[str]]]:
        calls: list[tuple[str, list[str]]] = []
        timed = events.call.method != "parameter" and self._times(events)
        if not timed and self.inputs.source_method(events) in ("parameter", "elsewhere"):
            self._note(applied.call.code, "the time column of the events is chosen elsewhere")
            return [("inEventTime", [quoted(EVENT_TIME)]), *self._late(changes)]
        result = result_before(events)
        if result is not None and id(result) in self._timed:
            return [("inEventTime", [quoted(EVENT_TIME)]), *self._late(changes)]
        processing = any(c.method == "inProcessingTime" for c in changes)
        settings = [text_of(c.code.node) for c in self.inputs.settings]
        processing = processing or any("ProcessingTime" in s for s in settings)
        if timed:
            calls.append(("inEventTime", [quoted(EVENT_TIME)]))
        elif not bounded:
            calls.append(("inProcessingTime", []))
            if not processing:
                self._note(applied.call.code, _NO_TIME)
        else:
            calls.append(("inEventTime", [quoted(POSITION)]))
            self._note(applied.call.code, _IN_ORDER)
        return [*calls, *self._late(changes)]

    def _late(self, changes: list[Call]) -> list[tuple[str, list[str]]]:
        return [
            ("sideOutputLateData", [self.late_tag(change.arguments[0])])
            for change in changes
            if change.method == "sideOutputLateData" and change.arguments
        ]

    def _times(self, events: Stream) -> bool:
        """Whether events have a column with their time."""
        if id(events) not in self.inputs.times and result_before(events) is None:
            self.inputs.write(events)
        return self.inputs.times.get(id(events)) is not None

    # --- rows

    def _rows(self, stream: Stream) -> str:
        call = stream.call
        self._row_name = snake(stream.name or self._pattern_name).strip("_")
        events = stream.inputs[0].event_type
        tags = [a for a in call.arguments if isinstance(a, Tag)]
        functions = [code for a in call.arguments if (code := function_code(a)) is not None]
        kind = call.method
        if kind == "process" or len(functions) < 2:
            made = self._function(functions[-1] if functions else call.code, kind, events)
            stream.event_type = stream.event_type or (made.result if made.result != "?" else None)
            self._selected = selected(call, [made], tags, self._tags)
            return self._call(kind, [], made, stream)
        timeout_kind = "flatTimeout" if kind == "flatSelect" else "timeout"
        timeout = self._function(functions[0], timeout_kind, events)
        made = self._function(functions[-1], kind, events)
        stream.event_type = stream.event_type or (made.result if made.result != "?" else None)
        tag = self._timeout_tag(tags, timeout, stream)
        self._selected = selected(call, [made, timeout], tags, self._tags)
        return self._call(kind, [tag, self._defined(timeout)], made, stream)

    def _function(self, code: Code, kind: str, events: str | None) -> TranslatedFunction:
        name = None if kind == "process" else f"{snake(kind)}_{self._row_name}"
        made = self.translation.function(code, kind, events, name)
        self._codes[id(made)] = code
        self.notes.extend(made.notes)
        for tag, ddl in made.output_tags:
            is_event = ddl is not None and ddl == self._event_columns
            is_event = is_event and made.rows_are("itself", tag)
            more = f", {self._more_columns}" if is_event and self._more_columns else ""
            self._make_tag(tag, ddl and f"{ddl}{more}")
        return made

    def _defined(self, made: TranslatedFunction) -> str:
        if made.captured and not made.stub:
            needed, read = parameters(self._codes[id(made)], made)
            self._parameters.update(needed)
            is_class = made.python and f"class {made.name}" in made.python
            result = "PatternProcessFunction" if is_class else "Callable[..., Any]"
            return f"{self.module.factory(made, read, result)}({', '.join(read)})"
        name = self.module.define(made)
        return f"{name}()" if made.python and f"class {made.name}" in made.python else name

    def _call(self, kind: str, before: list[str], made: TranslatedFunction, stream: Stream) -> str:
        schema, function = self._schema(made, stream), self._defined(made)
        calls: list[tuple[str, list[str]]] = []
        if id(stream) in self.chained and self._more_columns == _TYPED[quoted(EVENT_TIME)]:
            timed = self._with_time(function, made) if kind == "select" else None
            if timed is not None or self._are_events(made):
                calls.append(("withEventTime", [quoted(EVENT_TIME)]))
                self._timed.add(id(stream))
            if timed is not None:
                function, schema = timed, f'{schema} + ", {self._more_columns}"'
        return chain("found", [(kind, [*before, function, schema]), *calls], "return ", 4)

    def _are_events(self, made: TranslatedFunction) -> bool:
        """Whether the rows are events as they are, with the columns that were added."""
        return made.output_type == self._event_columns and made.rows_are("itself")

    def _with_time(self, function: str, made: TranslatedFunction) -> str | None:
        """Write a function that adds the time of a match to its row."""
        if not made.rows_are("tuple") and not made.rows_are("dict"):
            return None
        row = "(*row, time)" if made.rows_are("tuple") else f'{{**row, "{EVENT_TIME}": time}}'
        name = self.module.name(f"timed_{self._row_name}")
        events = "event for events in match.values() for event in events"
        body = indented(
            f'"""Return the row of a match with its time, that of its last event."""\n'
            f"time = max(event.{EVENT_TIME} for {events.removeprefix('event for ')})\n"
            f"row = {function}(match)\n"
            f"return {row}"
        )
        self.module.function(f"def {name}(match: Any) -> Any:\n{body}")
        return name

    def _schema(self, made: TranslatedFunction, stream: Stream) -> str:
        ddl = made.output_type or self.translation.schema(stream.event_type, stream.call.code)
        kind = stream.event_type or "String"
        is_named = "<" not in kind and kind not in ("String", "Long", "Integer", "Double")
        name = snake(kind if is_named else self._row_name).upper().strip("_")
        if ddl == "value string":
            self.plain.add(f"find_{self._row_name}")
        if ddl is None:
            self._note(stream.call.code, f"the columns of the rows are not known: write {name}")
            ddl = "TODO string"
        if self._are_events(made) and self._more_columns:
            ddl, name = f"{ddl}, {self._more_columns}", f"{name}_ROW"
        return self.module.constant(name, literal(ddl, len(name) + 3), "The columns of the result.")

    def _timeout_tag(self, tags: list[Tag], made: TranslatedFunction, stream: Stream) -> str:
        if tags:
            return self.tag(tags[0], made.output_type)
        self._note(
            stream.call.code,
            "Either has no counterpart: timeouts are a side output: write that part of the job",
        )
        self.module.use("from pyflinkcep import OutputTag")
        schema = quoted(made.output_type or "value string")
        return self.module.constant("TIMEOUTS", f'OutputTag("timeouts", {schema})')

    def tag(self, value: Value, ddl: str | None = None) -> str:
        """Return the constant of an output tag."""
        self.module.use("from pyflinkcep import OutputTag")
        if not isinstance(value, Tag):
            code = code_of(value)
            label = text_of(code.node) if code is not None else "side"
            return self.module.constant(snake(label).upper(), f"OutputTag({quoted(label)})")
        return self._make_tag(value.name, ddl or self.translation.schema(value.type, value.code))

    def late_tag(self, value: Value) -> str:
        """Return the constant of the tag of late data, whose rows are the events."""
        return self._make_tag(value.name, None) if isinstance(value, Tag) else self.tag(value)

    def _make_tag(self, tag: str, ddl: str | None) -> str:
        self.module.use("from pyflinkcep import OutputTag")
        if tag not in self._tags:
            if ddl == "value string":
                self.plain.add(tag)
            name = snake(tag).upper().strip("_")
            start = f"OutputTag({quoted(tag)}"
            value = f"{start}, {quoted(ddl)})" if ddl else f"{start})"
            if len(name) + len(value) + 3 > WIDTH and ddl:
                value = call("OutputTag", [quoted(tag), literal(ddl, 4)], 0)
            self._tags[tag] = self.module.constant(name, value)
        return self._tags[tag]

    _tags: dict[str, str] = attrs.field(factory=dict)

    def _note(self, code: Code, what: str) -> None:
        self.notes.append(Note(code.source.file, line_of(code.node), what))


_PASSED = frozenset(["name", "uid", "setParallelism", "rebalance", "returns", "shuffle", "forward"])
_IN_ORDER = (
    "bounded events without a time are matched in their order: windows, which Flink measures by "
    "the clock, count their positions here"
)
_TYPED = {
    quoted(EVENT_TIME): f"{EVENT_TIME} timestamp",
    quoted(POSITION): f"{POSITION} bigint",
}
_NO_TIME = (
    "no timestamps are assigned: Flink before 1.12 matches in processing time, as is written here; "
    "later versions wait for watermarks"
)


def _is_of_loop(node: Node) -> bool:
    """Whether an expression is the variable of a loop over several values."""
    loop = enclosing(node, "enhanced_for_statement")
    while loop is not None:
        if text_of(loop.child_by_field_name("name")) == text_of(node):
            return True
        loop = enclosing(loop, "enhanced_for_statement")
    return False
