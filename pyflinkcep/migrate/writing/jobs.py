# SPDX-License-Identifier: Apache-2.0
"""The job around patterns: what is read, what is done with matches, and where they go."""

from __future__ import annotations

import re

import attrs

from pyflinkcep.migrate.chains.flow import SAME_EVENTS, SINKS, STATEMENTS
from pyflinkcep.migrate.chains.values import Call, Code, Stream, Tag
from pyflinkcep.migrate.check.flink import Checked
from pyflinkcep.migrate.java.source import line_of, snake
from pyflinkcep.migrate.jobs.sinks import Sink, sink_of
from pyflinkcep.migrate.meaning.python_calls import constant as quoted
from pyflinkcep.migrate.translated import Note
from pyflinkcep.migrate.translation import Translation, place
from pyflinkcep.migrate.writing.inputs import InputWriter
from pyflinkcep.migrate.writing.module import Module, chain, docstring, indented, python_type
from pyflinkcep.migrate.writing.patterns import PatternWriter
from pyflinkcep.migrate.writing.results import (
    RESULTS,
    ResultWriter,
    applied_by,
    result_before,
    result_for_pattern,
)
from pyflinkcep.migrate.writing.statements import StatementWriter

_PLAIN = SAME_EVENTS | {"map", "flatMap", "filter", "pattern", "getSideOutput"}
"""The calls on streams that have no effect of their own."""
_UNCHANGED = (SAME_EVENTS - {"filter", "union"}) | {"getSideOutput"}
_AS_JSON = 'F.to_json(F.struct("*")).alias("value")'


@attrs.define(eq=False)
class JobWriter:
    """Writes the job of one method of Java."""

    module: Module
    translation: Translation
    patterns: PatternWriter
    streams: list[Stream]  # What the method does with streams, in order
    settings: list[Call]
    app: str
    gaps: list[Code] = attrs.field(factory=list)  # What the method does that is not followed
    notes: list[Note] = attrs.field(factory=list)  # What to look at
    # What is needed to compare its patterns with the originals.
    checked: list[Checked] = attrs.field(factory=list)
    _lines: list[str] = attrs.field(factory=list)
    _variables: dict[int, str] = attrs.field(factory=dict)
    _bounded: dict[int, bool] = attrs.field(factory=dict)
    _parameters: dict[str, str] = attrs.field(factory=dict)
    _inputs: InputWriter = attrs.field(init=False)
    _statements: StatementWriter = attrs.field(init=False)
    _results: ResultWriter = attrs.field(init=False)
    statements: int = 0  # How many statements with MATCH_RECOGNIZE were written
    _plain: set[str] = attrs.field(factory=set)
    _queries: int = 0

    def __attrs_post_init__(self) -> None:
        shared = (self.module, self.translation, self.notes)
        self._statements = StatementWriter(self.module, self.notes)
        self._inputs = InputWriter(*shared, self.settings, self._statements)
        self._results = ResultWriter(*shared, self.patterns, self._inputs, self.checked)

    def write(self) -> bool:
        """Write the functions of a job and ``main``; return whether there is anything to run."""
        ends = [s for s in self.streams if s.call.method in SINKS and self._of_pattern(s)]
        used = {id(i) for s in self.streams for i in s.inputs}
        loose = [s for s in self.streams if self._is_result(s) and id(s) not in used]
        statements = [s for s in self.streams if s.call.method in STATEMENTS]
        written = self._statements.write(statements, self._lines)
        self.statements = written
        for stream in self.streams:
            if stream.call.method == "pattern":
                before = result_for_pattern(stream.inputs[0])
                self._results.chained |= {id(before)} if before is not None else set()
        given = [s for s in self.streams if self._is_result(s) and self._is_given(s)]
        for stream in given:
            self._results.write(stream)
        self._given_steps()
        for stream in [*ends, *loose]:
            if self._is_given(stream):
                if stream in ends:
                    self._given_end(stream)
                continue
            if stream in ends:
                self._end(stream)
            else:
                self._variable(stream)
        self._unused()
        self._left_out({id(stream) for stream in ends}, used)
        self._gaps()
        if self._lines or written:
            self._main()
        return bool(ends or loose or written or given)

    def _unused(self) -> None:
        """Write the patterns of which the matches go where they cannot be followed."""
        results = [s for s in self.streams if self._is_result(s)]
        handled = {id(applied_by(result.inputs[0])) for result in results}
        for stream in self.streams:
            if stream.call.method == "pattern" and id(stream) not in handled:
                self._note(stream, "what becomes of the matches could not be followed: write it")
                if stream.pattern is not None:
                    self.patterns.write(stream.pattern)

    def _left_out(self, ends: set[int], used: set[int]) -> None:
        """Note what is done with streams at an end that nothing was written for."""
        for stream in self.streams:
            method = stream.call.method
            if id(stream) in ends | used or not stream.inputs or method in _PLAIN | RESULTS:
                continue
            if method in ("print", "printToErr"):
                self._note(stream, f"{method}() of events without a pattern is left out")
            elif method not in STATEMENTS or any(self._of_pattern(i) for i in stream.inputs):
                what = f"{method}() of a stream is left out: write that part of the job"
                self._note(stream, what)

    def _gaps(self) -> None:
        """Write functions that raise for what is not followed, and call them first."""
        for code in {(one.source.file, one.node.start_byte): one for one in self.gaps}.values():
            lines = [docstring(f"TODO: do what {place(code)} does"), *self.patterns.left(code)]
            name = self.module.name(f"part_of_line_{line_of(code.node)}")
            body = indented("\n".join(lines))
            self.module.function(f"def {name}() -> None:\n{body}")
            what = f"what is done with streams here is not followed: write {name}()"
            self.notes.append(Note(code.source.file, line_of(code.node), what))
            self._lines.insert(0, f"{name}()")

    def _given_steps(self) -> None:
        """Note what is done with the results of a stream that the method is given."""
        for stream in self.streams:
            method = stream.call.method
            after = stream.inputs and result_before(stream.inputs[0]) is not None
            if not after or not self._is_given(stream) or self._is_result(stream):
                continue
            if method not in {*SINKS, *_UNCHANGED, "pattern"}:
                what = f"{method}() of what is found is left out"
                self._note(stream, f"{what}: write that part of the job")

    def _given_end(self, stream: Stream) -> None:
        """Note where results of a stream go that the method is given."""
        method = stream.call.method
        more = "" if method in ("print", "printToErr") else ": write that part of the job"
        self._note(stream, f"{method}() of what is found is left out{more}")

    def _is_given(self, stream: Stream) -> bool:
        """Whether a stream begins with one that the method is given."""
        while stream.inputs:
            stream = stream.inputs[0]
        return stream.call.method == "parameter"

    def _is_result(self, stream: Stream) -> bool:
        if stream.call.method not in RESULTS or not stream.inputs:
            return False
        return applied_by(stream.inputs[0]) is not None

    def _of_pattern(self, stream: Stream) -> bool:
        """Whether a pattern is somewhere before a stream."""
        waiting, seen = list(stream.inputs), set()
        while waiting:
            found = waiting.pop()
            if found.pattern is not None or found.call.method == "pattern":
                return True
            if id(found) not in seen:
                seen.add(id(found))
                waiting.extend(found.inputs)
        return False

    # --- variables of main

    def _variable(self, stream: Stream) -> str:
        """Return the variable of ``main`` that holds a stream; make it once."""
        if id(stream) in self._variables:
            return self._variables[id(stream)]
        name = self._make(stream)
        self._variables[id(stream)] = name
        return name

    def _make(self, stream: Stream) -> str:
        if self._is_result(stream):
            return self._result(stream)
        method = stream.call.method
        if method == "getSideOutput" and self._is_of_result(stream):
            return self._side_output(stream)
        if self._of_pattern(stream) and stream.inputs:
            return self._after(stream)
        return self._input(stream)

    def _is_of_result(self, stream: Stream) -> bool:
        """Whether a stream is a side output of matches, rather than of a function of rows."""
        of = stream.inputs[0] if stream.inputs else stream
        while of.inputs and of.call.method in SAME_EVENTS and not self._is_result(of):
            of = of.inputs[0]
        return self._is_result(of)

    def _input(self, stream: Stream) -> str:
        made = self._inputs.write(stream)
        name = self._local(stream.name or made.name, "events")
        self._assign(name, f"{made.function}(spark)")
        self._bounded[id(stream)] = made.bounded
        return name

    def _result(self, stream: Stream) -> str:
        made = self._results.write(stream)
        before = self._variable(made.events)
        self._bounded[id(stream)] = self._bounded.get(id(made.events), False)
        wanted = stream.name or made.function.removeprefix("find_")
        name = self._local(wanted, "found")
        if made.function in self._results.plain:
            self._plain.add(name)
        self._parameters.update(made.parameters)
        arguments = ", ".join([before, *(name for name, _ in made.parameters)])
        self._assign(name, f"{made.function}({arguments})")
        return name

    def _side_output(self, stream: Stream) -> str:
        before = self._variable(stream.inputs[0])
        self._bounded[id(stream)] = self._bounded.get(id(stream.inputs[0]), False)
        tag = self._results.tag(stream.call.arguments[0]) if stream.call.arguments else "TAG"
        name = self._local(stream.name or snake(tag.lower()), "side")
        self._assign(name, f"{before}.getSideOutput({tag})")
        given = stream.call.arguments[0] if stream.call.arguments else None
        if isinstance(given, Tag) and given.name in self._results.plain:
            self._plain.add(name)
        return name

    def _after(self, stream: Stream) -> str:
        """Return a stream that is made of results by a call other than a pattern's."""
        before, *others = [self._variable(one) for one in stream.inputs]
        self._bounded[id(stream)] = self._bounded.get(id(stream.inputs[0]), False)
        if stream.call.method in SAME_EVENTS:
            stream.event_type = stream.event_type or stream.inputs[0].event_type
        made = self._inputs.step(stream, before, others)
        if made == before:
            return before
        name = self._local(stream.name or f"{before}_{snake(stream.call.method)}", "rows")
        self._assign(name, made)
        if stream.event_type == "String" and "NotImplemented" not in made:
            self._plain.add(name)
        return name

    def _local(self, wanted: str, otherwise: str) -> str:
        name = snake(wanted or otherwise)
        taken = set(self._variables.values()) | {"spark"}
        while name in taken or self.module.has(name, name):
            name = f"{name}_rows"
        return name

    def _assign(self, name: str, value: str) -> None:
        if not value.startswith(f"{name} ="):
            self._lines.append(f"{name} = {value}")

    # --- what becomes of results

    def _end(self, stream: Stream) -> None:
        name = self._variable(stream.inputs[0])
        sink = sink_of(stream)
        bounded = self._bounded.get(id(stream.inputs[0]), False)
        missing = "".join(f" {option}" for option in sink.missing)
        if missing:
            self._note(stream, f"the code does not show these settings of the sink:{missing}")
        for left in sink.left:
            what = left if " " in left else f"{left}()"
            self._note(stream, f"{what} of the sink is left out: write that part of the job")
        if sink.kind == "unknown":
            self._unknown_sink(stream, name, sink, bounded)
        elif bounded:
            self._write_bounded(name, sink)
        else:
            self._write_stream(name, sink)

    def _write_bounded(self, name: str, sink: Sink) -> None:
        if sink.kind == "console":
            self._lines.append(f"{name}.show(truncate=False)")
            return
        rows, kind = self._rows(name, sink)
        if kind == "kafka":
            options = [*sink.options, *((option, "TODO") for option in sink.missing)]
            calls = [("write.format", [quoted(kind)])]
            calls += [("option", [quoted(option), quoted(value)]) for option, value in options]
            self._lines.append(chain(rows, [*calls, ("save", [])], "", 4))
            return
        path = dict(sink.options).get("path", "TODO")
        self._lines.append(f"{rows}.write.format({quoted(kind)}).save({quoted(path)})")

    def _rows(self, name: str, sink: Sink) -> tuple[str, str]:
        if sink.kind == "console":
            return name, "console"
        if sink.kind == "csv" or name in self._plain:
            return name, sink.kind
        self.module.use("from pyspark.sql import functions as F")
        return f"{name}.select({_AS_JSON})", sink.kind

    def _write_stream(self, name: str, sink: Sink) -> None:
        rows, kind = self._rows(name, sink)
        calls = [("writeStream.format", [quoted(kind)])]
        if rows != name:
            calls.insert(0, ("select", [_AS_JSON]))
        if kind == "console":
            calls.append(("option", ['"truncate"', "False"]))
        options = [*sink.options, *((option, "TODO") for option in sink.missing)]
        calls += [("option", [quoted(option), quoted(value)]) for option, value in options]
        if kind != "console":
            place = f"checkpoints/{name}"
            calls.append(("option", ['"checkpointLocation"', quoted(place)]))
        calls.append(("start", []))
        self._lines.append(chain(name, calls, "", 4))
        self._queries += 1

    def _unknown_sink(self, stream: Stream, name: str, sink: Sink, bounded: bool) -> None:
        code = stream.call.code
        function = self.module.name(snake(f"write_{name}"))
        self.module.use("from pyspark.sql import DataFrame")
        what = " ".join(re.sub(r"[^\w.() ]", " ", sink.what).split()) or stream.call.method
        where = place(code)
        arguments = "_rows: DataFrame" if bounded else "_rows: DataFrame, _batch: int"
        body = docstring(f"TODO: write rows as {what} does ({where})")
        message = quoted(f"{where}: write the rows as {what} does")
        refused = f"raise NotImplementedError({message})"
        text = indented(f"{body}\n{refused}")
        self.module.function(f"def {function}({arguments}) -> None:\n{text}")
        named = what if what.startswith("the ") else f"the sink {what}"
        self._note(stream, f"{named} has no counterpart: write {function}()")
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
        self.module.use("from pyspark.sql import SparkSession")
        given = "".join(f", {n}: {python_type(kind)}" for n, kind in self._parameters.items())
        body = "\n".join([docstring("Run the job"), *self._lines])
        name = self.module.name("main")
        self.module.function(f"def {name}(spark: SparkSession{given}) -> None:\n{indented(body)}")
        session = f"SparkSession.builder.appName({quoted(self.app)}).getOrCreate()"
        if not self._parameters:
            self.module.main(f'if __name__ == "__main__":\n    {name}({session})')
            return
        self.module.use("import argparse")
        lines = ["parser = argparse.ArgumentParser()"]
        for parameter, kind in self._parameters.items():
            option = parameter.strip("_").replace("_", "-")
            read = python_type(kind)
            kinds = {
                "str": "",
                "bool": ", action=argparse.BooleanOptionalAction, required=True",
                "int": ", type=int, required=True",
                "AfterMatchSkipStrategy": (
                    ", type=lambda given: getattr(AfterMatchSkipStrategy, given)(), required=True"
                ),
                "timedelta": ", type=lambda given: timedelta(seconds=float(given)), required=True",
            }
            more = kinds.get(read, ", type=float, required=True")
            if read == "str":
                more = ", required=True"
            elif read.startswith("list["):
                more = f', nargs="+", type={read[5:-1]}, required=True'
            lines.append(f'parser.add_argument("--{option}", dest="{parameter}"{more})')
        lines.append(f"{name}({session}, **vars(parser.parse_args()))")
        self.module.main('if __name__ == "__main__":\n' + indented("\n".join(lines)))

    def _note(self, stream: Stream, what: str) -> None:
        code = stream.call.code
        self.notes.append(Note(code.source.file, line_of(code.node), what))
