# SPDX-License-Identifier: Apache-2.0
"""The job around patterns: what is read, what becomes of matches, and where they go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from pyflinkcep.migrate.chains.flow import SAME_EVENTS, SINKS, STATEMENTS
from pyflinkcep.migrate.chains.values import Call, Code, Const, Made, Stream, Tag, Value, code_of
from pyflinkcep.migrate.check.flink import Checked, Selected, Site
from pyflinkcep.migrate.java.project import columns_of
from pyflinkcep.migrate.java.source import Node, children, enclosing, line_of, snake, text_of
from pyflinkcep.migrate.meaning.literals import constant as quoted
from pyflinkcep.migrate.meaning.translated import PART, Translated
from pyflinkcep.migrate.writing.inputs import EVENT_TIME, POSITION, InputWriter
from pyflinkcep.migrate.writing.module import WIDTH, Module, call, chain, literal, python_type
from pyflinkcep.migrate.writing.patterns import PatternWriter
from pyflinkcep.migrate.writing.settings import Settings, sink_of, source_of
from pyflinkcep.migrate.writing.tables import StatementWriter
from pyflinkcep.migrate.writing.translation import Translation, parameters

RESULTS = frozenset(["select", "flatSelect", "process"])
"""The calls that make rows of matches."""


def applied_by(stream: Stream) -> Stream | None:
    """Return where a pattern was applied, if a stream is that of its matches."""
    found = next(one for one in stream.back() if one.call.method not in _SETTINGS or not one.inputs)
    return found if found.call.method == "pattern" else None


def is_result(stream: Stream) -> bool:
    """Whether a stream is made of rows of matches."""
    made = stream.call.method in RESULTS and bool(stream.inputs)
    return made and applied_by(stream.inputs[0]) is not None


_SETTINGS = frozenset(["inProcessingTime", "inEventTime", "sideOutputLateData"])
_TYPE = re.compile(r"(\w+\.)*(TypeInformation|Types)\b")  # its package may stand before it


def result_before(stream: Stream, *, timed: bool = False) -> Stream | None:
    """Return the rows of matches that a stream is made of, unless it assigns times of its own."""
    for one in stream.back():
        if is_result(one):
            return one
        if timed and one.call.method.startswith("assign"):
            return None
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


def selected(
    call: Call,
    made: Sequence[Translated],
    tags: Sequence[Tag],
    constants: Mapping[str, str],
) -> Selected:
    """Return what is needed to compare the rows that a call makes of matches."""
    has_timeouts = len(made) > 1
    problem = ""
    if any(m.stub for m in made):
        problem = "not all of their functions are translated"
    elif any(m.captured for m in made):
        problem = "their functions depend on what is known at run time alone"
    elif has_timeouts and not tags:
        problem = "Either has no counterpart: timeouts are a side output"
    names = dict.fromkeys([*(t.name for t in tags), *(n for m in made for n, _ in m.output_tags)])
    first = next(iter(names), "")
    timed = (made[1].name or "", constants.get(first, "")) if has_timeouts else ("", "")
    columns = tuple(columns_of(made[0].output_type or "value string"))
    given = (call.code.node, call.code.source, call.method, made[0].name or "", *timed)
    return Selected(*given, columns, tuple(names), problem)


@attrs.frozen
class Result:
    """A function that matches, and the events that it is called with."""

    function: str
    events: Stream
    parameters: tuple[tuple[str, str], ...]


_PASSED = frozenset(["name", "uid", "setParallelism", "rebalance", "returns", "shuffle", "forward"])
_IN_ORDER = (
    "bounded events without a time are matched in their order: windows, which Flink measures by "
    "the clock, count their positions here"
)
_TYPED = {quoted(EVENT_TIME): f"{EVENT_TIME} timestamp", quoted(POSITION): f"{POSITION} bigint"}
_NO_TIME = (
    "no timestamps are assigned: Flink before 1.12 matches in processing time, as is written here; "
    "later versions wait for watermarks"
)


def _is_of_loop(node: Node) -> bool:
    """Whether an expression is the variable of a loop over several values."""
    loop: Node | None = node
    while (loop := enclosing(loop, "enhanced_for_statement")) is not None:
        if text_of(loop.child_by_field_name("name")) == text_of(node):
            return True
    return False


_PLAIN = SAME_EVENTS | {"map", "flatMap", "filter", "pattern", "getSideOutput"}
"""The calls on streams that have no effect of their own."""
_UNCHANGED = (SAME_EVENTS - {"filter", "union"}) | {"getSideOutput"}
_READ_AS = {
    "str": "",
    "int": ", type=int",
    "float": ", type=float",
    "bool": ", action=argparse.BooleanOptionalAction",
    "timedelta": ", type=lambda given: timedelta(seconds=float(given))",
    "AfterMatchSkipStrategy": (", type=lambda given: getattr(AfterMatchSkipStrategy, given)()"),
}
"""How a parameter of a type is read from the command line."""


@attrs.define(eq=False)
class JobWriter:
    """Writes the job of one method of Java: the functions that match, and what is done around."""

    module: Module
    translation: Translation
    patterns: PatternWriter
    streams: list[Stream]  # What the method does with streams, in order
    settings: list[Call]
    app: str
    gaps: list[Code] = attrs.field(factory=list)  # What the method does that is not followed
    # What is needed to compare its patterns with the originals.
    checked: list[Checked] = attrs.field(factory=list)
    statements: int = 0  # How many statements with MATCH_RECOGNIZE were written
    _lines: list[str] = attrs.field(factory=list)
    _variables: dict[Stream, str] = attrs.field(factory=dict)
    _bounded: dict[Stream, bool] = attrs.field(factory=dict)
    _given: dict[str, str] = attrs.field(factory=dict)  # The parameters of main
    _inputs: InputWriter = attrs.field(init=False)
    _statements: StatementWriter = attrs.field(init=False)
    _queries: int = 0
    # The functions, tags and variables whose rows are single texts.
    _plain: set[str] = attrs.field(factory=set)
    _chained: set[Stream] = attrs.field(factory=set)
    _timed: set[Stream] = attrs.field(factory=set)
    _written: dict[Stream, Result] = attrs.field(factory=dict)
    _tags: dict[str, str] = attrs.field(factory=dict)
    _codes: dict[int, Code] = attrs.field(factory=dict)
    # Of the result that is written.
    _row_name: str = "match"
    _pattern_name: str = "match"
    _event_columns: str | None = None
    _more_columns: str = ""
    _parameters: dict[str, str] = attrs.field(factory=dict)
    _selected: Selected | None = None

    def __attrs_post_init__(self) -> None:
        self._statements = StatementWriter(self.module)
        self._inputs = InputWriter(self.module, self.translation, self.settings, self._statements)

    def write(self) -> bool:
        """Write the functions of a job and ``main``; return whether there is anything to run."""
        ends = [s for s in self.streams if s.call.method in SINKS and self._of_pattern(s)]
        used = {i for s in self.streams for i in s.inputs}
        results = [s for s in self.streams if is_result(s)]
        loose = [s for s in results if s not in used]
        statements = [s for s in self.streams if s.call.method in STATEMENTS]
        self.statements = self._statements.write(statements, self._lines)
        self._queries += self.statements
        for stream in self.streams:
            if stream.call.method == "pattern":
                before = result_before(stream.inputs[0], timed=True)
                self._chained |= {before} if before is not None else set()
        given = [s for s in results if self._is_given(s)]
        for stream in given:
            self.result(stream)
        for stream in ends:
            if not self._is_given(stream):
                self._end(stream)
        for stream in loose:
            if not self._is_given(stream):
                self._variable(stream)
        handled = {applied_by(result.inputs[0]) for result in results}
        for stream in self.streams:
            if stream.call.method == "pattern" and stream not in handled:
                what = "what becomes of the matches could not be followed: write it"
                self.module.note(stream, what)
                if stream.pattern is not None:
                    self.patterns.write(stream.pattern)
        self._left_out(set(ends), used)
        self._gaps()
        if self._lines or self.statements:
            self._main()
        return bool(ends or loose or self.statements or given)

    def _left_out(self, ends: set[Stream], used: set[Stream]) -> None:
        """Note what is done with streams that nothing was written for."""
        for stream in self.streams:
            method, more = stream.call.method, f": {PART}"
            prints = method in ("print", "printToErr")
            if self._is_given(stream) and stream.inputs and not is_result(stream):
                after = result_before(stream.inputs[0]) is not None
                if stream in ends or (after and method not in {*SINKS, *_UNCHANGED, "pattern"}):
                    more = "" if prints else more
                    self.module.note(stream, f"{method}() of what is found is left out{more}")
            if stream in ends | used or not stream.inputs or method in _PLAIN | RESULTS:
                continue
            if prints:
                self.module.note(stream, f"{method}() of events without a pattern is left out")
            elif method not in STATEMENTS or any(self._of_pattern(i) for i in stream.inputs):
                self.module.note(stream, f"{method}() of a stream is left out{more}")

    def _gaps(self) -> None:
        """Write functions that raise for what is not followed, and call them first."""
        for code in {(one.source.file, one.node.start_byte): one for one in self.gaps}.values():
            self.patterns.marked.append(code)
            wanted = f"part_of_line_{line_of(code.node)}"
            name = self.module.stub(wanted, "", "None", f"do what {code.place} does", code)
            what = f"what is done with streams here is not followed: write {name}()"
            self.module.note(code, what)
            self._lines.insert(0, f"{name}()")

    def _is_given(self, stream: Stream) -> bool:
        """Whether a stream begins with one that the method is given."""
        return stream.source.call.method == "parameter"

    def _of_pattern(self, stream: Stream) -> bool:
        """Whether a pattern is somewhere before a stream."""
        waiting, seen = list(stream.inputs), set()
        while waiting:
            found = waiting.pop()
            if found.pattern is not None or found.call.method == "pattern":
                return True
            if found not in seen:
                seen.add(found)
                waiting.extend(found.inputs)
        return False

    # --- variables of main

    def _variable(self, stream: Stream) -> str:
        """Return the variable of ``main`` that holds a stream; make it once."""
        if stream not in self._variables:
            self._variables[stream] = self._make(stream)
        return self._variables[stream]

    def _make(self, stream: Stream) -> str:
        method = stream.call.method
        is_side = method == "getSideOutput" and self._is_of_result(stream)
        if not (is_result(stream) or is_side or (self._of_pattern(stream) and stream.inputs)):
            made = self._inputs.write(stream)
            self._bounded[stream] = made.bounded
            return self._assign(stream.name or made.name, "events", f"{made.function}(spark)")
        if is_result(stream):
            found = self.result(stream)
            before, *others = self._variable(found.events), *(n for n, _ in found.parameters)
            self._given.update(found.parameters)
            wanted, otherwise = stream.name or found.function.removeprefix("find_"), "found"
            value = f"{found.function}({', '.join([before, *others])})"
            is_plain = found.function in self._plain
        else:
            before, *others = [self._variable(one) for one in stream.inputs]
            if is_side:
                given = stream.call.arguments[0] if stream.call.arguments else None
                tag = self.tag(given) if given is not None else "TAG"
                wanted, otherwise = stream.name or snake(tag.lower()), "side"
                value = f"{before}.getSideOutput({tag})"
                is_plain = isinstance(given, Tag) and given.name in self._plain
            else:
                if method in SAME_EVENTS:
                    stream.event_type = stream.event_type or stream.inputs[0].event_type
                value = self._inputs.step(stream, before, others)
                wanted, otherwise = stream.name or f"{before}_{snake(method)}", "rows"
                is_plain = stream.event_type == "String"
        source = found.events if is_result(stream) else stream.inputs[0]
        self._bounded[stream] = self._bounded.get(source, False)
        if value == before:
            return before
        name = self._assign(wanted, otherwise, value)
        self._plain |= {name} if is_plain else set()
        return name

    def _is_of_result(self, stream: Stream) -> bool:
        """Whether a stream is a side output of matches, rather than of a function of rows."""
        before = list(stream.back())[1:]
        return any(
            is_result(one) and all(s.call.method in SAME_EVENTS for s in before[:at])
            for at, one in enumerate(before)
        )

    def _assign(self, wanted: str, otherwise: str, value: str) -> str:
        """Add a variable that holds a value; return its name."""
        name = snake(wanted or otherwise)
        taken = set(self._variables.values()) | {"spark"}
        while name in taken or self.module.has(name, name):
            name = f"{name}_rows"
        self._lines.append(f"{name} = {value}")
        return name

    # --- what becomes of results

    def _end(self, stream: Stream) -> None:
        name = self._variable(stream.inputs[0])
        sink = sink_of(stream)
        bounded = self._bounded.get(stream.inputs[0], False)
        missing = "".join(f" {option}" for option in sink.missing)
        if missing:
            self.module.note(stream, f"the code does not show these settings of the sink:{missing}")
        for left in sink.left:
            what = left if " " in left else f"{left}()"
            self.module.note(stream, f"{what} of the sink is left out: {PART}")
        if sink.kind == "unknown":
            self._unknown_sink(stream, name, sink, bounded)
        elif bounded and sink.kind == "console":
            self._lines.append(f"{name}.show(truncate=False)")
        else:
            self._lines.append(sink.writer(name, bounded=bounded, plain=name in self._plain))
            self._queries += not bounded

    def _unknown_sink(self, stream: Stream, name: str, sink: Settings, bounded: bool) -> None:
        code = stream.call.code
        what = " ".join(re.sub(r"[^\w.() ]", " ", sink.what).split()) or stream.call.method
        arguments = "_rows: DataFrame" if bounded else "_rows: DataFrame, _batch: int"
        todo = f"write rows as {what} does ({code.place})"
        function = self.module.stub(snake(f"write_{name}"), arguments, "None", todo, code)
        named = what if what.startswith("the ") else f"the sink {what}"
        self.module.note(stream, f"{named} has no counterpart: write {function}()")
        if bounded:
            self._lines.append(f"{function}({name})")
            return
        calls = [
            ("foreachBatch", [function]),
            ("option", ['"checkpointLocation"', quoted(f"checkpoints/{name}")]),
            ("start", []),
        ]
        self._lines.append(chain(f"{name}.writeStream", calls, "", 4))
        self._queries += 1

    # --- main

    def _main(self) -> None:
        if self._queries:
            self._lines.append("spark.streams.awaitAnyTermination()")
        given = "".join(f", {n}: {python_type(kind)}" for n, kind in self._given.items())
        name = self.module.name("main")
        self.module.define(
            f"{name}(spark: SparkSession{given}) -> None", "Run the job", self._lines
        )
        session = f"SparkSession.builder.appName({quoted(self.app)}).getOrCreate()"
        if not self._given:
            self.module.main(f"{name}({session})")
            return
        lines = ["parser = argparse.ArgumentParser()"]
        for parameter, kind in self._given.items():
            option = parameter.strip("_").replace("_", "-")
            read = python_type(kind)
            more = f', nargs="+", type={read[5:-1]}' if read.startswith("list[") else _READ_AS[read]
            lines.append(
                f'parser.add_argument("--{option}", dest="{parameter}"{more}, required=True)'
            )
        lines.append(f"{name}({session}, **vars(parser.parse_args()))")
        self.module.main(*lines)

    # --- the functions that match

    def result(self, stream: Stream) -> Result:
        """Write the function of the rows of matches, once."""
        if stream in self._written:
            return self._written[stream]
        line = list(stream.inputs[0].back())
        at = next(n for n, one in enumerate(line) if one.call.method == "pattern")
        changes, applied = [one.call for one in line[:at]][::-1], line[at]
        events = applied.inputs[0]
        keys: list[str] = []
        while events.call.method in _PASSED or events.call.method == "keyBy":
            if events.call.method == "keyBy" and not keys:
                keys = self._keys(events)
            events = events.inputs[0]
        before = result_before(events)
        if before is not None:
            self.result(before)  # its rows may have a time, which is used here
        declared = events.call.code.scope.types.get(events.name or "") or ""
        if events.call.method == "parameter" and declared.startswith("KeyedStream"):
            keys = keys or ['"TODO"']
            self.module.note(events, "the stream has a key that is chosen elsewhere: write it")
        link = applied.pattern
        pattern, needed = ("TODO", ()) if link is None else self.patterns.write(link)
        if link is None:
            self.module.note(applied, "the pattern given to CEP.pattern could not be followed")
            code = applied.call.code
            what = f"build the pattern of {code.place}"
            pattern = self.module.stub("unknown_pattern", "", "Pattern", what, code)
        self._pattern_name = pattern.removesuffix("_pattern")
        self._pattern_name = "matches" if self._pattern_name == "pattern" else self._pattern_name
        function = self.module.name(f"find_{snake(stream.name or self._pattern_name)}")
        given = ", ".join(name for name, _ in needed)
        arguments = ["events", f"{pattern}({given})"]
        if keys:
            arguments[0] = f"keyBy(events, {', '.join(keys)})"
        arguments += self._comparator(applied)
        bounded = source_of(events.source).bounded
        calls = self._time_calls(applied, changes, events, bounded=bounded)
        self._event_columns = self.translation.schema(applied.event_type, applied.call.code)
        self._more_columns = next((_TYPED.get(given[0], "") for _, given in calls if given), "")
        self._parameters = {}
        lines = [chain("CEP", [("pattern", arguments), *calls], "found = ", 4), self._rows(stream)]
        if link is not None and not needed:
            self._check(applied, events, pattern, keys)
        parameters = tuple({**dict(needed), **self._parameters}.items())
        typed = "".join(f", {name}: {python_type(kind)}" for name, kind in parameters)
        head = f"{function}(events: DataFrame{typed}) -> CepDataFrame"
        doc = f"Return {stream.name or 'the matches'} ({stream.call.code.place})"
        self.module.define(head, doc, lines)
        self._written[stream] = Result(function, events, parameters)
        return self._written[stream]

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
        time, scale = self._inputs.columns.get(events) or (None, 1)
        this = applied.call.code.scope.this if source is applied.call.code.source else None
        arguments = () if this is None else this.arguments
        values = tuple(v.value for v in arguments if isinstance(v, Const) and v.is_plain)
        is_known = this is not None and len(values) == len(arguments)
        site = Site(node, source, values if is_known else None)
        problem = "its key is computed" if len(plain) < len(keys) else ""
        if time is None and self._inputs.times.get(events) is not None:
            problem = "its time is computed"
        self.checked.append(
            Checked(pattern, site, kind, tuple(plain), time, schema, problem, self._selected, scale)
        )

    # --- keys, times, order

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
            self.module.notes.extend(selected.notes)
            if selected.sql is None:
                self.module.note(code, "the key is not translated: write its column")
                made.append('"TODO"')
            elif selected.sql.strip("`").isidentifier():
                made.append(quoted(selected.sql))
            else:
                made.append(f"F.expr({quoted(selected.sql)})")
        return made

    def _comparator(self, applied: Stream) -> list[str]:
        if len(applied.call.arguments) < 3:
            return []
        code = code_of(applied.call.arguments[2])
        if code is None:
            return []
        made = self.translation.comparator(code, applied.event_type)
        self.module.notes.extend(made.notes)
        return [self.module.translated(made)]

    def _time_calls(
        self, applied: Stream, changes: list[Call], events: Stream, *, bounded: bool
    ) -> list[tuple[str, list[str]]]:
        given = [
            c.arguments[0] for c in changes if c.method == "sideOutputLateData" and c.arguments
        ]
        tags = [self._make_tag(t.name, None) if isinstance(t, Tag) else self.tag(t) for t in given]
        late = [("sideOutputLateData", [tag]) for tag in tags]  # their rows are the events
        timed = events.call.method != "parameter"
        if timed and events not in self._inputs.times and result_before(events) is None:
            self._inputs.write(events)
        timed = timed and self._inputs.times.get(events) is not None
        result = result_before(events)
        settings = [text_of(c.code.node) for c in self._inputs.settings]
        call, note = ("inEventTime", [quoted(EVENT_TIME)]), ""
        if not timed and events.source.call.method in ("parameter", "elsewhere"):
            note = "the time column of the events is chosen elsewhere"
        elif not timed and bounded and (result is None or result not in self._timed):
            call, note = ("inEventTime", [quoted(POSITION)]), _IN_ORDER
        elif not timed and (result is None or result not in self._timed):
            processing = any(c.method == "inProcessingTime" for c in changes)
            processing = processing or any("ProcessingTime" in s for s in settings)
            call, note = ("inProcessingTime", []), "" if processing else _NO_TIME
        if note:
            self.module.note(applied.call.code, note)
        return [call, *late]

    # --- rows

    def _rows(self, stream: Stream) -> str:
        call = stream.call
        self._row_name = snake(stream.name or self._pattern_name).strip("_")
        events = stream.inputs[0].event_type
        tags = [a for a in call.arguments if isinstance(a, Tag)]
        functions = [code for a in call.arguments if (code := function_code(a)) is not None]
        kind, timeouts, before = call.method, [], []
        if kind != "process" and len(functions) > 1:
            timeout_kind = "flatTimeout" if kind == "flatSelect" else "timeout"
            timeouts = [self._function(functions[0], timeout_kind, events)]
        made = self._function(functions[-1] if functions else call.code, kind, events)
        stream.event_type = stream.event_type or (made.result if made.result != "?" else None)
        if timeouts:
            before = [self._timeout_tag(tags, timeouts[0], stream), self._defined(timeouts[0])]
        self._selected = selected(call, [made, *timeouts], tags, self._tags)
        return self._call(kind, before, made, stream)

    def _function(self, code: Code, kind: str, events: str | None) -> Translated:
        name = None if kind == "process" else f"{snake(kind)}_{self._row_name}"
        made = self.translation.function(code, kind, events, name)
        self._codes[id(made)] = code
        self.module.notes.extend(made.notes)
        for tag, ddl in made.output_tags:
            is_event = ddl is not None and ddl == self._event_columns
            is_event = is_event and made.rows_are("itself", tag)
            more = f", {self._more_columns}" if is_event and self._more_columns else ""
            self._make_tag(tag, ddl and f"{ddl}{more}")
        return made

    def _defined(self, made: Translated) -> str:
        if made.captured and not made.stub:
            needed, read = parameters(self._codes[id(made)], made)
            self._parameters.update(needed)
            is_class = made.python and f"class {made.name}" in made.python
            result = "PatternProcessFunction" if is_class else "Callable[..., Any]"
            return f"{self.module.factory(made, read, result)}({', '.join(read)})"
        name = self.module.translated(made)
        return f"{name}()" if made.python and f"class {made.name}" in made.python else name

    def _call(self, kind: str, before: list[str], made: Translated, stream: Stream) -> str:
        schema, function = self._schema(made, stream), self._defined(made)
        calls: list[tuple[str, list[str]]] = []
        if stream in self._chained and self._more_columns == _TYPED[quoted(EVENT_TIME)]:
            timed = self._with_time(function, made) if kind == "select" else None
            if timed is not None or self._are_events(made):
                calls.append(("withEventTime", [quoted(EVENT_TIME)]))
                self._timed.add(stream)
            if timed is not None:
                function, schema = timed, f'{schema} + ", {self._more_columns}"'
        return chain("found", [(kind, [*before, function, schema]), *calls], "return ", 4)

    def _are_events(self, made: Translated) -> bool:
        """Whether the rows are events as they are, with the columns that were added."""
        return made.output_type == self._event_columns and made.rows_are("itself")

    def _with_time(self, function: str, made: Translated) -> str | None:
        """Write a function that adds the time of a match to its row."""
        if not made.rows_are("tuple") and not made.rows_are("dict"):
            return None
        row = "(*row, time)" if made.rows_are("tuple") else f'{{**row, "{EVENT_TIME}": time}}'
        name = self.module.name(f"timed_{self._row_name}")
        events = "event for events in match.values() for event in events"
        times = f"time = max(event.{EVENT_TIME} for {events.removeprefix('event for ')})"
        lines = [times, f"row = {function}(match)", f"return {row}"]
        doc = "Return the row of a match with its time, that of its last event"
        self.module.define(f"{name}(match: Any) -> Any", doc, lines)
        return name

    def _schema(self, made: Translated, stream: Stream) -> str:
        ddl = made.output_type or self.translation.schema(stream.event_type, stream.call.code)
        kind = stream.event_type or "String"
        is_named = "<" not in kind and kind not in ("String", "Long", "Integer", "Double")
        name = snake(kind if is_named else self._row_name).upper().strip("_")
        if ddl == "value string":
            self._plain.add(f"find_{self._row_name}")
        if ddl is None:
            self.module.note(stream, f"the columns of the rows are not known: write {name}")
            ddl = "TODO string"
        if self._are_events(made) and self._more_columns:
            ddl, name = f"{ddl}, {self._more_columns}", f"{name}_ROW"
        return self.module.schema(name, ddl, "The columns of the result.")

    def _timeout_tag(self, tags: list[Tag], made: Translated, stream: Stream) -> str:
        if tags:
            return self.tag(tags[0], made.output_type)
        what = f"Either has no counterpart: timeouts are a side output: {PART}"
        self.module.note(stream, what)
        schema = quoted(made.output_type or "value string")
        return self.module.constant("TIMEOUTS", f'OutputTag("timeouts", {schema})')

    def tag(self, value: Value, ddl: str | None = None) -> str:
        """Return the constant of an output tag."""
        if not isinstance(value, Tag):
            code = code_of(value)
            label = text_of(code.node) if code is not None else "side"
            return self.module.constant(snake(label).upper(), f"OutputTag({quoted(label)})")
        return self._make_tag(value.name, ddl or self.translation.schema(value.type, value.code))

    def _make_tag(self, tag: str, ddl: str | None) -> str:
        if tag not in self._tags:
            if ddl == "value string":
                self._plain.add(tag)
            name = snake(tag).upper().strip("_")
            start = f"OutputTag({quoted(tag)}"
            value = f"{start}, {quoted(ddl)})" if ddl else f"{start})"
            if len(name) + len(value) + 3 > WIDTH and ddl:
                value = call("OutputTag", [quoted(tag), literal(ddl, 4)], 0)
            self._tags[tag] = self.module.constant(name, value)
        return self._tags[tag]
