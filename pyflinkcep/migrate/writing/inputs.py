# SPDX-License-Identifier: Apache-2.0
"""The functions that read events: sources, what is done with their records, times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import attrs

from pyflinkcep.migrate.chains.flow import SAME_EVENTS
from pyflinkcep.migrate.chains.values import Call, Code, Const, Made, Stream, Value, code_of
from pyflinkcep.migrate.chains.walker import Walker
from pyflinkcep.migrate.java.project import column_names, columns_of
from pyflinkcep.migrate.java.project import quoted as quoted_name
from pyflinkcep.migrate.java.source import line_of, simple_name, snake, text_of
from pyflinkcep.migrate.meaning.literals import constant
from pyflinkcep.migrate.meaning.literals import constant as quoted
from pyflinkcep.migrate.meaning.translated import PART, Translated
from pyflinkcep.migrate.meaning.tree import Untranslatable
from pyflinkcep.migrate.writing.module import Module, chain
from pyflinkcep.migrate.writing.settings import Settings, Times, delay_text, source_of, times_of
from pyflinkcep.migrate.writing.tables import StatementWriter, sql_literal, sql_of
from pyflinkcep.migrate.writing.translation import Translation


def rows_of(translation: Translation, elements: tuple[Value, ...]) -> list[str] | None:
    """Return elements as tuples, in the order of their class's fields; None if unknown."""
    with suppress(Untranslatable):
        return [
            _row(translation, one) if isinstance(one, Made) else f"({_plain(one)},)"
            for one in elements
        ] or None
    return None


def _value(translation: Translation, value: Value) -> str:
    """Return a field's value: a constant, a list of constants, or an object in the event."""
    match value:
        case Const(value=tuple(listed)):
            held = [part if isinstance(part, Value) else Const(part) for part in listed]
            return f"[{', '.join(_value(translation, part) for part in held)}]"
        case Made():
            return _row(translation, value)
    return _plain(value)


def _plain(value: Value) -> str:
    if isinstance(value, Const) and isinstance(value.value, _PLAIN):
        return constant(value.value)
    raise Untranslatable("what is known when the program runs")


def _row(translation: Translation, made: Made) -> str:
    project = translation.project
    declared = project.find(simple_name(made.type), made.code.source)
    given = None if declared is None else Walker(project).constructed(declared, made)
    if declared is None or given is None:
        raise Untranslatable("an object whose constructor is not known")
    other = {translation.discriminator(declared.name, made.code): Const(declared.name)}
    names, unset = column_names(declared, project), Const(None)
    values = [_value(translation, given.get(n) or other.get(n) or unset) for n in names]
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"


_PLAIN = (str, int, float, type(None))  # others hold what is not known before the program runs


_KINDS = {"map": "map", "flatMap": "flatMap", "process": "element"}
_WHOLE = re.compile(r"(?<!\w)event(?![\w.\[])")
_PARSED = re.compile(
    r"    return (?:row_of\()?json_object\(event\.value(?:, \{[^}]*\})?\)"
    r'(?:, (?:"\w+"(?:, )?)+\))?'
)


def _body(made: Translated) -> str:
    """Return the lines of a function after its docstring."""
    return (made.python or "").split('"""')[-1].strip("\n")


EVENT_TIME = "event_time"
POSITION = "position"
_TABLES = {"toDataStream", "toAppendStream"}
_TIMED = {"assignTimestamps", "assignTimestampsAndWatermarks", "assignAscendingTimestamps"}
_PASSED = (SAME_EVENTS | _TABLES) - {"filter", "union"} - _TIMED
_SCALED = re.compile(r"(\w+) \* (\d+)")
"""A column with seconds, and how many milliseconds one is."""
_VIEWS = f"make views of the tables that it reads: {PART}"
_JSON_CLASSES = ("JsonNode", "ObjectNode", "JSONObject", "JsonObject", "Row", "Map")
_JSON = ("readValue", "readTree", "ObjectNode", "parseObject", "JSONObject", "Gson", "Json")
"""What code says that reads JSON."""


@attrs.frozen
class Input:
    """A function that reads events."""

    name: str
    function: str
    bounded: bool


@attrs.define(eq=False)
class InputWriter:
    """Writes functions that read events."""

    module: Module
    translation: Translation
    settings: list[Call]
    statements: StatementWriter
    # What is known of the times of each stream.
    times: dict[Stream, Times | None] = attrs.field(factory=dict)
    # For each stream the column with its time, and how many milliseconds one of it is.
    columns: dict[Stream, tuple[str, int] | None] = attrs.field(factory=dict)
    _written: dict[Stream, Input] = attrs.field(factory=dict)

    def write(self, stream: Stream) -> Input:
        """Write the function that reads a stream, once."""
        given, stream = stream, self._base(stream)
        if stream is not given:
            made = self.write(stream)
            self.times[given] = self.times.get(stream)
            self.columns[given] = self.columns.get(stream)
            return made
        if stream in self._written:
            return self._written[stream]
        wanted = next((found.name for found in stream.back() if found.name), "events")
        function = self.module.name(snake(f"read_{snake(wanted)}"))
        lines: list[str] = []
        bounded = self._steps(stream, lines)
        if bounded and self.times.get(stream) is None:
            position = [quoted(POSITION), "F.monotonically_increasing_id()"]
            lines.append(chain("events", [("withColumn", position)], "events = ", 4))
        last = lines[-1] if lines else ""
        if last.startswith("events = ") and "\nevents = " not in last:
            lines[-1] = f"return {last.removeprefix('events = ')}"
        else:
            lines.append("return events")
        doc = f"Read {wanted} ({stream.call.code.place})"
        self.module.define(f"{function}(spark: SparkSession) -> DataFrame", doc, lines)
        self._written[stream] = Input(wanted, function, bounded)
        return self._written[stream]

    def schema(self, type_: str | None, code: Code) -> str:
        """Return the constant with the schema of a class."""
        ddl = self.translation.schema(type_, code)
        kind = simple_name(type_ or "event")
        name = snake("json" if kind in _JSON_CLASSES else kind).upper().strip("_")
        if ddl is None:
            whose = type_ or "the events"
            self.module.note(code, f"the fields of {whose} are not known: write {name}")
            ddl = "TODO string"
        return self.module.schema(name, ddl, f"The fields of {type_}.")

    # --- the steps from the source to the events

    def _base(self, stream: Stream) -> Stream:
        while stream.call.method in _PASSED and stream.inputs:
            stream = stream.inputs[0]
        return stream

    def _steps(self, stream: Stream, lines: list[str]) -> bool:
        """Add the statements that make ``events``; return whether they end."""
        if stream.call.method == "union":
            made = [self.write(part) for part in stream.inputs]
            parts = [f"{part.function}(spark)" for part in made]
            calls = [("unionByName", [part]) for part in parts[1:]]
            lines.append(chain(parts[0], calls, "events = ", 4))
            self.times[stream] = self.times.get(self._base(stream.inputs[0]))
            return all(part.bounded for part in made)
        if not stream.inputs:
            return self._source(stream, lines)
        bounded = self._steps(stream.inputs[0], lines)
        self.times[stream] = self.times.get(stream.inputs[0])
        if stream.call.method in SAME_EVENTS:
            stream.event_type = stream.event_type or stream.inputs[0].event_type
        self.columns[stream] = self.columns.get(stream.inputs[0])
        method = stream.call.method
        if method in _TIMED:
            given = stream.call.arguments[0] if stream.call.arguments else None
            found = times_of(stream.call, given, self.translation.project)
            self._time(stream, found, lines, bounded)
        elif method not in _PASSED:
            value = self.step(stream, "events")
            lines += [] if value == "events" else [f"events = {value}"]
        return bounded

    def step(self, stream: Stream, before: str, others: Sequence[str] | None = None) -> str:
        """Return what a call makes of rows."""
        method, call = stream.call.method, stream.call
        if method in _PASSED:
            return before
        if others is None:
            others = [f"{self.write(one).function}(spark)" for one in stream.inputs[1:]]
        if method == "union":
            return "".join([before, *(f".unionByName({other})" for other in others)])
        code = code_of(call.arguments[0]) if call.arguments else None
        times = self.times.get(stream.inputs[0])
        kept = [EVENT_TIME] if times is not None and not times.none else []
        made: str | None = None
        noted = len(self.module.notes)
        if method in ("map", "flatMap", "filter", "process") and code is not None:
            made = self.applied(stream, code, before, kept)
        is_json = code is not None and any(word in text_of(code.node) for word in _JSON)
        if made is None and method == "map" and code is not None and is_json:
            del self.module.notes[noted:]  # why its own text was not translated
            self.module.note(code, "the records are taken for JSON of the event's fields")
            made = self._from_json(stream, before, 'F.col("value")')
        if made is not None and method != "filter":
            self.columns[stream] = None  # the column of the time may be another one
        return made or self._marked(stream, before, others)

    def _marked(self, stream: Stream, before: str, others: Sequence[str]) -> str:
        """Return the call of a function that remains to be written."""
        code = stream.call.code
        given = "".join(f", _other_{n}: DataFrame" for n in range(1, len(others) + 1))
        wanted = snake(f"{stream.call.method}_{stream.name or 'events'}")
        name = self.module.stub(
            wanted, f"_rows: DataFrame{given}", "DataFrame", f"do what {code.place} does", code,
            code.node.child_by_field_name("arguments"),
        )  # fmt: skip
        is_choice = stream.call.method == "choose"
        what = "one of two streams" if is_choice else f"{stream.call.method}() of a stream"
        self.module.note(code, f"{what}: write {name}()")
        return f"{name}({', '.join([before, *others])})"

    # --- functions of events

    def applied(self, stream: Stream, code: Code, before: str, kept: list[str]) -> str | None:
        """Return what a function makes of rows; None if it is not translated."""
        method = stream.call.method
        if method == "filter":
            return self._filtered(stream, code, before)
        name = snake(f"{method}_{stream.name or 'events'}")
        kind, event = _KINDS[method], stream.inputs[0].event_type
        made = self.translation.function(code, kind, event, name)
        if event is None and _WHOLE.search(_body(made)):
            return None  # it is not known whether that is a text or an object
        is_map = made.output_type is not None and made.output_type.startswith("value map<")
        if made.stub or made.captured or made.output_tags or made.output_type is None or is_map:
            why = [note.what for note in made.notes if note.what.startswith("not translated")]
            self.module.notes += [code.note(what) for what in why]
            return None
        self.module.notes.extend(made.notes)
        stream.event_type = stream.event_type or made.result
        if re.fullmatch(r"    return (event|row_of\(event(, \"\w+\")+\))", _body(made)):
            return before  # it returns what it was given
        schema = self._row_schema(stream, made)
        if kind == "map" and _PARSED.fullmatch(_body(made)):
            aliases = self.translation.aliases(stream.event_type, code)
            return self.from_json(before, 'F.col("value")', schema, made.output_type, aliases)
        function = self.module.translated(made)
        others = [quoted(name) for name in kept]
        if kind == "map":
            row = f'F.udf({function}, {schema}, useArrow=False)(F.struct("*")).alias("row")'
            selected = [("select", [row, *others]), ("select", ['"row.*"', *others])]
            return chain(before, selected, "", 4)
        type_ = f'f"array<struct<{{{schema}}}>>"'
        rows = f'F.inline(F.udf(collected({function}), {type_}, useArrow=False)(F.struct("*")))'
        return chain(before, [("select", [*others, rows])], "", 4)

    def _filtered(self, stream: Stream, code: Code, before: str) -> str | None:
        name = snake(f"keeps_{stream.name or 'event'}")
        made = self.translation.condition(code, stream.inputs[0].event_type, (), name)
        if made.stub or made.captured:
            return None
        self.module.notes.extend(made.notes)
        if made.sql is not None:
            return f"{before}.where({quoted(made.sql)})"
        function = self.module.translated(made)
        kept = f'F.udf({function}, "boolean", useArrow=False)(F.struct("*"))'
        return chain(before, [("where", [kept])], "", 4)

    def _row_schema(self, stream: Stream, made: Translated) -> str:
        ddl = made.output_type or ""
        kind = stream.event_type or "row"
        plain = ddl.startswith("value ") or "<" in kind or not kind.isidentifier()
        wanted = stream.name or stream.call.method if plain else kind
        name = snake(wanted).upper().strip("_")
        where = f"{stream.call.method}() in line {line_of(stream.call.code.node)}"
        comment = f"The columns after {where}." if plain else f"The fields of {kind}."
        return self.module.schema(name, ddl, comment)

    def from_json(
        self, before: str, text: str, schema: str, ddl: str | None, aliases: dict[str, str]
    ) -> str:
        """Return rows with the fields that a text of JSON has."""
        if not aliases or ddl is None:
            values = f'F.from_json({text}, {schema}).alias("event")'
            return chain(before, [("select", [values]), ("select", ['"event.*"'])], "", 4)
        other = {column: alias for alias, column in aliases.items()}
        fields = columns_of(ddl)
        inside = ", ".join(
            f"{other.get(name, quoted_name(name))} {fields[name]}" for name in fields
        )
        name = f"{schema}_JSON"
        json = self.module.schema(name, inside, "Its names in JSON.")
        columns = [
            f"F.col({quoted('event.' + other[name])}).alias({quoted(name)})"
            if name in other
            else quoted(f"event.{name}")
            for name in fields
        ]
        values = f'F.from_json({text}, {json}).alias("event")'
        return chain(before, [("select", [values]), ("select", columns)], "", 4)

    # --- sources

    def _source(self, stream: Stream, lines: list[str]) -> bool:
        sql = sql_of(stream) if stream.call.method == "sqlQuery" else None
        if sql is not None:
            return self._queried(stream, sql, lines)
        source = source_of(stream)
        code = stream.call.code
        self.times[stream] = None
        for left in source.left:
            what = left if " " in left else f"{left}()"
            self.module.note(code, f"{what} of the source is left out: {PART}")
        if source.missing:
            self.module.note(code, f"the code does not show: {', '.join(source.missing)}")
        if source.kind == "elements":
            self._elements(stream, source, lines)
        elif source.kind in ("kafka", "socket", "text"):
            self._read(stream, source, lines)
        else:
            lines.append(f"events = {self._unknown_source(stream, source)}(spark)")
        if stream.call.method == "fromSource" and len(stream.call.arguments) > 1:
            found = times_of(stream.call, stream.call.arguments[1], self.translation.project)
            self._time(stream, found, lines, source.bounded)
        return source.bounded

    def _queried(self, stream: Stream, sql: str, lines: list[str]) -> bool:
        """Add a query in SQL, over views of the tables that it reads."""
        self.times[stream] = None
        name = snake(f"{stream.name or 'events'}_sql").upper()
        lines += self.statements.views(sql)
        lines.append(f"events = spark.sql({self.module.constant(name, sql_literal(sql))})")
        columns, _, tables = re.sub(r"\s+", " ", sql).partition(" FROM ")
        table = self.statements.tables.get(tables.split(" ")[0].strip('`"').lower())
        if table is None:
            self.module.note(stream, _VIEWS)
        elif table.watermark is not None and re.search(rf"\*|\b{table.watermark[0]}\b", columns):
            self.times[stream] = Times(None, None)
            column = [quoted(EVENT_TIME), f"F.col({quoted(table.watermark[0])})"]
            lines.append(chain("events", [("withColumn", column)], "events = ", 4))
        return False

    def _unknown_source(self, stream: Stream, source: Settings) -> str:
        """Write a function that remains to be written, for a source without a counterpart."""
        code = stream.call.code
        written = " ".join(text_of(code.node).split())
        what = source.what or (
            written if len(written) < 60 else f"{stream.call.method}() in line {line_of(code.node)}"
        )
        schema = self.schema(stream.event_type, code)
        self.module.note(code, f"the source {what} has no counterpart: write it")
        return self.module.stub(
            f"{snake(stream.name or 'events')}_source", "_spark: SparkSession", "DataFrame",
            f"return rows of {schema}, as {code.place} does", code,
            code.node.child_by_field_name("arguments")
            or code.node.child_by_field_name("parameters"),
        )  # fmt: skip

    def _elements(self, stream: Stream, source: Settings, lines: list[str]) -> None:
        rows = rows_of(self.translation, source.elements)
        schema = self.schema(stream.event_type, stream.call.code)
        if rows is None:
            self.module.note(stream.call.code, "the elements are not constants: write them as rows")
            rows = ["# TODO: the rows"]
        body = "".join(f"    {row}{'' if row.startswith('#') else ','}\n" for row in rows)
        lines.append(f"rows: list[tuple[object, ...]] = [\n{body}]")
        lines.append(f"events = spark.createDataFrame(rows, {schema})")

    def _read(self, stream: Stream, source: Settings, lines: list[str]) -> None:
        if source.kind != "kafka":
            lines.append(source.reader("events"))
            return
        lines.append(source.reader("records"))
        if source.lines:
            lines.append('events = records.select(F.col("value").cast("string"))')
            return
        self.module.note(stream.call.code, "the records are taken for JSON of the event's fields")
        lines.append('text = F.col("value").cast("string")')
        lines.append(f"events = {self._from_json(stream, 'records', 'text')}")

    def _from_json(self, stream: Stream, before: str, text: str) -> str:
        code = stream.call.code
        schema = self.schema(stream.event_type, code)
        ddl = self.translation.schema(stream.event_type, code)
        aliases = self.translation.aliases(stream.event_type, code)
        return self.from_json(before, text, schema, ddl, aliases)

    # --- times

    def _time(self, stream: Stream, times: Times | None, lines: list[str], bounded: bool) -> None:
        code = stream.call.code
        self.times[stream] = times
        if times is None:
            self.module.note(code, "the watermark strategy is not known: write withWatermark")
            times = self.times[stream] = Times(None, None)
        for left in times.left:
            what = f"{left}() of the watermark strategy is left out"
            self.module.note(code, f"{what}: {PART}")
        if times.clock:
            self.times[stream] = None
            self.module.note(code, "watermarks follow the clock: this is processing time")
            return
        if times.none and (times.time is None or not bounded):
            self.times[stream] = None  # no watermark will come
            return
        column = self._time_column(stream, times)
        calls = [("withColumn", [quoted(EVENT_TIME), column])]
        delay = times.delay
        if delay is None:
            what = "how far the watermark is behind is not known: '0 seconds' is assumed"
            self.module.note(code, f"{what}: {PART}")
        if not bounded:
            text = delay_text(delay) if delay is not None else "0 seconds"
            calls.append(("withWatermark", [quoted(EVENT_TIME), quoted(text)]))
        lines.append(chain("events", calls, "events = ", 4))

    def _time_column(self, stream: Stream, times: Times) -> str:
        if times.time is None:
            what = "no time is assigned, which is that of the source's record"
            self.module.note(stream.call.code, f"{what}: write it as a column")
            return 'F.col("TODO")'
        made = self.translation.value(times.time, stream.event_type)
        if made.sql is None:
            made = self.translation.returned(times.time, stream.event_type) or made
        moment = self.translation.moment(times.time, stream.event_type)
        if made.sql is None and moment is not None:
            self.columns[stream] = moment.strip("`"), 1
            return f'F.col({quoted(moment)}).cast("timestamp")'
        self.module.notes.extend(made.notes)
        if made.sql is None:
            what = "the time of an event is not translated: write it as a column"
            self.module.note(times.time, what)
            return 'F.col("TODO")'
        if made.sql.strip("`").isidentifier():
            self.columns[stream] = made.sql.strip("`"), 1
            return f"F.timestamp_millis({quoted(made.sql)})"
        scaled = _SCALED.fullmatch(made.sql)
        if scaled is not None:
            self.columns[stream] = scaled[1], int(scaled[2])
        return f"F.expr({quoted(f'timestamp_millis({made.sql})')})"
