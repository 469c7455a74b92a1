# SPDX-License-Identifier: Apache-2.0
"""The functions that match: key, pattern, time, and what becomes of matches."""

from __future__ import annotations

import attrs

from pyflinkcep.migrate.chains.lookup import snake
from pyflinkcep.migrate.chains.values import Call, Code, Made, Stream, Tag, Value
from pyflinkcep.migrate.check.flink import Checked
from pyflinkcep.migrate.check.slices import Site
from pyflinkcep.migrate.java.source import children, line_of, text_of
from pyflinkcep.migrate.translated import Note, TranslatedFunction
from pyflinkcep.migrate.translation import Translation, code_of, place
from pyflinkcep.migrate.writing.inputs import EVENT_TIME, POSITION, InputWriter, literal
from pyflinkcep.migrate.writing.module import Module
from pyflinkcep.migrate.writing.patterns import PatternWriter, python_type
from pyflinkcep.migrate.writing.text import WIDTH, call, chain, docstring, indented, quoted

__all__ = ["RESULTS", "Result", "ResultWriter"]

RESULTS = frozenset(["select", "flatSelect", "process"])
"""The calls that make rows of matches."""


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
    _written: dict[int, Result] = attrs.field(factory=dict)
    _row_name: str = "match"

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
        if events.call.method == "parameter" and self._is_keyed(events):
            keys = keys or ['"TODO"']
            self._note(events.call.code, "the stream has a key that is chosen elsewhere: write it")
        self.module.use(
            "from pyspark.sql import DataFrame", "from pyflinkcep import CEP, CepDataFrame"
        )
        link = applied.pattern
        pattern, parameters = ("TODO", ()) if link is None else self.patterns.write(link)
        if link is None:
            self._note(applied.call.code, "the pattern given to CEP.pattern could not be followed")
            pattern = self._no_pattern(applied)
        function = self.module.name(self._function_name(stream, pattern))
        given = ", ".join(name for name, _ in parameters)
        arguments = ["events", f"{pattern}({given})"]
        if keys:
            self.module.use("from pyflinkcep import keyBy")
            arguments[0] = f"keyBy(events, {', '.join(keys)})"
        arguments += self._comparator(applied)
        bounded = self._bounded(events)
        calls = self._time_calls(applied, changes, events, bounded=bounded)
        lines = [
            chain("CEP", [("pattern", arguments), *calls], "found = ", 4),
            self._rows(stream),
        ]
        if link is not None and not parameters:
            self._check(applied, events, pattern, keys)
        where = place(stream.call.code)
        body = indented(
            "\n".join([docstring(f"Return {stream.name or 'the matches'} ({where})"), *lines])
        )
        typed = "".join(f", {name}: {python_type(kind)}" for name, kind in parameters)
        self.module.function(f"def {function}(events: DataFrame{typed}) -> CepDataFrame:\n{body}")
        self._written[id(stream)] = Result(function, events, parameters)
        return self._written[id(stream)]

    def _check(self, applied: Stream, events: Stream, pattern: str, keys: list[str]) -> None:
        """Remember what is needed to compare a pattern with the original."""
        node = children(applied.call.code.node.child_by_field_name("arguments"))[1]
        kind = applied.event_type
        plain = [key.strip('"`') for key in keys if key.startswith('"') and "TODO" not in key]
        schema = self.translation.schema(kind, applied.call.code)
        time = self.inputs.columns.get(id(events))
        site = Site(node, applied.call.code.source)
        self.checked.append(Checked(pattern, site, kind, tuple(plain), time, schema))

    def _function_name(self, stream: Stream, pattern: str) -> str:
        base = stream.name or pattern.removesuffix("_pattern")
        return f"find_{snake(base)}"

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
        from pyflinkcep.migrate.jobs.sources import source_of

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
            if isinstance(constant, str | int):
                made.append(quoted(str(constant)))
                continue
            code = code_of(value)
            if code is None or (isinstance(value, Made) and code.node is None):
                continue
            selected = self.translation.value(code, stream.inputs[0].event_type)
            self.notes.extend(selected.notes)
            if selected.sql is None:
                self._note(code, "the key is not translated: write its column")
                made.append('"TODO"')
            elif selected.sql.isidentifier():
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
        if events.call.method == "parameter":
            self._note(applied.call.code, "the time column of the events is chosen elsewhere")
            return [("inEventTime", [quoted(EVENT_TIME)]), *self._late(changes)]
        timed = self._times(events)
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
            ("sideOutputLateData", [self.tag(change.arguments[0])])
            for change in changes
            if change.method == "sideOutputLateData" and change.arguments
        ]

    def _times(self, events: Stream) -> bool:
        """Whether events have a column with their time."""
        if id(events) not in self.inputs.times and not _after_match(events):
            self.inputs.write(events)
        return self.inputs.times.get(id(events)) is not None

    # --- rows

    def _rows(self, stream: Stream) -> str:
        call = stream.call
        self._row_name = snake(stream.name or "match").strip("_")
        events = stream.inputs[0].event_type
        tags = [a for a in call.arguments if isinstance(a, Tag)]
        functions = [code for a in call.arguments if (code := _function(a)) is not None]
        kind = call.method
        if kind == "process" or len(functions) < 2:
            made = self._function(functions[-1] if functions else call.code, kind, events)
            return self._call(kind, [], made, stream)
        timeout_kind = "flatTimeout" if kind == "flatSelect" else "timeout"
        timeout = self._function(functions[0], timeout_kind, events)
        made = self._function(functions[-1], kind, events)
        tag = self._timeout_tag(tags, timeout, stream)
        return self._call(kind, [tag, self._defined(timeout)], made, stream)

    def _function(self, code: Code, kind: str, events: str | None) -> TranslatedFunction:
        name = None if kind == "process" else f"{snake(kind)}_{self._row_name}"
        made = self.translation.function(code, kind, events, name)
        self.notes.extend(made.notes)
        for tag, ddl in made.output_tags:
            self._make_tag(tag, ddl)
        return made

    def _defined(self, made: TranslatedFunction) -> str:
        name = self.module.define(made)
        return f"{name}()" if made.python and f"class {made.name}" in made.python else name

    def _call(self, kind: str, before: list[str], made: TranslatedFunction, stream: Stream) -> str:
        schema = self._schema(made, stream)
        return chain("found", [(kind, [*before, self._defined(made), schema])], "return ", 4)

    def _schema(self, made: TranslatedFunction, stream: Stream) -> str:
        ddl = made.output_type or self.translation.schema(stream.event_type, stream.call.code)
        name = snake(stream.event_type or stream.name or "row").upper().strip("_")
        name = (
            name
            if stream.event_type not in ("String", None)
            else f"{snake(stream.name or 'row')}".upper()
        )
        if ddl is None:
            self._note(stream.call.code, f"the columns of the rows are not known: write {name}")
            ddl = "TODO string"
        return self.module.constant(name, literal(ddl, len(name) + 3), "The columns of the result.")

    def _timeout_tag(self, tags: list[Tag], made: TranslatedFunction, stream: Stream) -> str:
        if tags:
            return self.tag(tags[0], made.output_type)
        self._note(
            stream.call.code, "select() without a tag: timeouts are a side output of its own"
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

    def _make_tag(self, tag: str, ddl: str | None) -> str:
        self.module.use("from pyflinkcep import OutputTag")
        if tag not in self._tags:
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
_NO_TIME = (
    "no timestamps are assigned: Flink before 1.12 matches in processing time, as is written here; "
    "later versions wait for watermarks"
)


def _after_match(stream: Stream) -> bool:
    while stream.inputs:
        if stream.call.method in RESULTS:
            return True
        stream = stream.inputs[0]
    return False


def _function(value: Value) -> Code | None:
    if isinstance(value, Tag):
        return None
    code = code_of(value)
    if code is None or code.node is None:
        return None
    text = text_of(code.node)
    is_type = text.startswith(("TypeInformation", "Types.", "TypeInformation.of")) or (
        isinstance(value, Made)
        and value.type.split(".")[0].endswith(("TypeInfo", "TypeInformation", "TypeHint", "Types"))
    )
    return None if is_type else code
