# SPDX-License-Identifier: Apache-2.0
"""Where events come from and results go, with the settings that the Java code shows."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import attrs

from pyflinkcep.migrate.chains.values import Call, Code, Const, Made, Scope, Stream, Value, code_of
from pyflinkcep.migrate.chains.walker import Walker
from pyflinkcep.migrate.java.declarations import JavaClass
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, children, inside, line_of, simple_name, text_of
from pyflinkcep.migrate.meaning.literals import constant as quoted
from pyflinkcep.migrate.writing.module import chain, in_units
from pyflinkcep.migrate.writing.translation import class_made


@attrs.frozen
class Times:
    """The times of a stream."""

    # How far the watermark is behind; None if it is not known.
    delay: timedelta | None = timedelta(0)
    # The function that returns the time of an event, in epoch milliseconds.
    time: Code | None = None
    none: bool = False  # Whether there are no watermarks
    # Whether watermarks follow the clock of the machine, which is processing time.
    clock: bool = False
    left: tuple[str, ...] = ()  # The calls of a strategy that have no counterpart here


def times_of(call: Call, strategy: Value | None, project: Project) -> Times | None:
    """Return what a call or a strategy says about times; None if nothing."""
    if call.method == "assignAscendingTimestamps" and isinstance(strategy, Code):
        return Times(timedelta(0), strategy)
    if isinstance(strategy, Made):
        if strategy.type.startswith("WatermarkStrategy."):
            return _of_class(_new_form(strategy, project), project)
        return _of_class(Times(_duration(strategy.arguments), strategy.code), project)
    code = code_of(strategy)
    if code is None or code.node is None or not code.node.type.startswith("object_creation"):
        return None
    return _of_class(Times(_lag(code, project), code, clock=_reads_clock(code.node)), project)


def _new_form(strategy: Made, project: Project) -> Times:
    method = strategy.type.split(".", 1)[1]
    first = strategy.arguments[0] if strategy.arguments else None
    delay: timedelta | None = None
    if method == "forBoundedOutOfOrderness":
        delay = _duration(strategy.arguments)
    elif method in ("forMonotonousTimestamps", "noWatermarks"):
        delay = timedelta(0)
    elif method == "forGenerator" and isinstance(first, Code):
        delay = _generated(first, project)
    time = None
    for call in strategy.calls:
        if call.method == "withTimestampAssigner" and call.arguments:
            given = call.arguments[0]
            time = _supplied(given) if isinstance(given, Code) else getattr(given, "code", None)
    known = ("withTimestampAssigner", *_OF_SOURCES)
    left = tuple(call.method for call in strategy.calls if call.method not in known)
    return Times(delay, time, method == "noWatermarks", left=left)


_OF_SOURCES = ("withIdleness", "withWatermarkAlignment")
"""What a strategy says of the partitions of a source, which Spark settles itself."""


def _supplied(code: Code) -> Code:
    """Return the assigner that a supplier returns, if code is one."""
    found = [
        one
        for method in inside(code.node, "method_declaration")
        if text_of(method.child_by_field_name("name")) == "createTimestampAssigner"
        for one in inside(method, "return_statement")
    ]
    if len(found) == 1 and code.node.type == "object_creation_expression":
        return Code(children(found[0])[0], code.source, code.scope)
    body = code.node.child_by_field_name("body")
    if code.node.type == "lambda_expression" and body.type == "lambda_expression":
        return Code(body, code.source, code.scope)
    return code


def _of_class(times: Times, project: Project) -> Times:
    """Return times, with what the class of the program says that makes them."""
    declared = None if times.time is None else class_made(times.time, project)
    if declared is None:
        return times
    scope = Scope(declared.source, declared)
    clock = times.clock or _reads_clock(declared.node)
    for method in declared.methods.get("createTimestampAssigner", []):
        for returned in inside(method.body, "return_statement"):
            assigner = Code(children(returned)[0], declared.source, scope)
            times = attrs.evolve(times, time=assigner, delay=None)
    if times.delay is None:
        for method in declared.methods.get("createWatermarkGenerator", []):
            delay = _generated(Code(method.body, declared.source, scope), project)
            times = attrs.evolve(times, delay=delay)
    if times.delay is None:
        delay = _lag(Code(declared.node, declared.source, scope), project)
        times = attrs.evolve(times, delay=delay)
    return attrs.evolve(times, clock=clock)


def _duration(arguments: tuple[Value, ...]) -> timedelta | None:
    """Return the first argument, if it is a duration that is known."""
    first = arguments[0].value if arguments and isinstance(arguments[0], Const) else None
    return first if isinstance(first, timedelta) else None


def _walker(node: Node, code: Code, project: Project) -> tuple[Walker, Scope]:
    """Return what follows an expression inside of code."""
    owner = project.at(code.source, line_of(node)) or code.scope.owner
    for body in inside(code.node, "class_body"):
        if body.parent.type == "object_creation_expression":  # the fields of an anonymous class
            owner = JavaClass("", "class", code.source, body, owner)
    return Walker(project), Scope(code.source, owner, values=ChainMap(dict(code.scope.values)))


def _written(made: Node, code: Code, project: Project) -> timedelta | None:
    """Return the duration that is the first argument of a constructor."""
    walker, scope = _walker(made, code, project)
    return _duration(walker.arguments(made, scope))


def _generated(code: Code, project: Project) -> timedelta | None:
    """Return how far the generator of watermarks that code makes is behind."""
    for made in inside(code.node, "object_creation_expression"):
        name = simple_name(text_of(made.child_by_field_name("type")))
        if name == "AscendingTimestampsWatermarks":
            return timedelta(0)
        if name == "BoundedOutOfOrdernessWatermarks":
            return _written(made, code, project)
        declared = project.find(name, code.source)
        if declared is not None and not children(made.child_by_field_name("arguments")):
            scope = Scope(declared.source, declared)
            return _lag(Code(declared.node, declared.source, scope), project)
    return None


def _lag(code: Code, project: Project) -> timedelta | None:
    """Return what ``new Watermark(max - 5000)`` takes off, if that is known."""
    for made in inside(code.node, "object_creation_expression"):
        if not text_of(made.child_by_field_name("type")).endswith("Watermark"):
            continue
        given = children(made.child_by_field_name("arguments"))
        walker, scope = _walker(made, code, project)
        return _taken_off(given[0], walker, scope) if given else None
    node = code.node  # of a class that makes none itself
    above = text_of(node.child_by_field_name("superclass") or node.child_by_field_name("type"))
    if "Ascending" in above:
        return timedelta(0)
    if "BoundedOutOfOrderness" not in above:
        return None
    is_made = node.type.startswith("object_creation")
    calls = [node] if is_made else inside(node, "explicit_constructor_invocation")
    return next((_written(call, code, project) for call in calls), None)


def _taken_off(node: Node, walker: Walker, scope: Scope) -> timedelta | None:
    """Return how many milliseconds an expression takes off a time."""
    while node.type == "parenthesized_expression":
        node = children(node)[0]
    if node.type != "binary_expression":
        return timedelta(0) if node.type in _TIMES else None
    amount = walker.evaluate(node.child_by_field_name("right"), scope)
    rest = _taken_off(node.child_by_field_name("left"), walker, scope)
    sign = {"+": -1, "-": 1}.get(text_of(node.child_by_field_name("operator")))
    if sign is None or rest is None or not isinstance(amount, Const):
        return None
    whole = type(amount.value) is int
    return rest + timedelta(milliseconds=sign * amount.value) if whole else None


_TIMES = ("identifier", "field_access", "method_invocation")
_CLOCKS = ("currentTimeMillis", "nanoTime", "now", "currentProcessingTime", "millis")


def _reads_clock(node: Node) -> bool:
    """Whether watermarks are made of the clock of the machine."""
    return any(
        text_of(call.child_by_field_name("name")) in _CLOCKS
        for made in inside(node, "object_creation_expression")
        if text_of(made.child_by_field_name("type")).endswith("Watermark")
        for call in inside(made, "method_invocation")
    )


def delay_text(delay: timedelta) -> str:
    """Return a delay as ``withWatermark`` takes it."""
    unit, amount = in_units(delay)
    return f"{amount} {unit.removesuffix('s') if amount == 1 else unit}"


@attrs.frozen
class Settings:
    """Where events come from, or where a result goes."""

    # ``kafka``, ``socket``, ``text``, ``elements``, ``console``, ``csv`` or ``unknown``
    kind: str
    options: tuple[tuple[str, str], ...] = ()  # Spark's options
    missing: tuple[str, ...] = ()  # Settings that the code does not show
    left: tuple[str, ...] = ()  # The calls of a builder that have no counterpart here
    what: str = ""  # Of one that is unknown: its class
    bounded: bool = False  # Whether it ends
    lines: bool = False  # Whether its elements are text
    elements: tuple[Value, ...] = ()  # Of elements: what they are

    def reader(self, name: str) -> str:
        """Return the statement of Python that reads a source."""
        options = [*self.options, *((option, "TODO") for option in self.missing)]
        calls = [("format", [quoted(self.kind)])]
        calls += [("option", [quoted(o), quoted(value)]) for o, value in options if o != "path"]
        calls.append(("load", [quoted(value) for o, value in options if o == "path"]))
        return chain("spark.read" if self.bounded else "spark.readStream", calls, f"{name} = ", 4)

    def writer(self, name: str, *, bounded: bool, plain: bool = False) -> str:
        """Return the statement that writes rows to files, to Kafka or to the terminal."""
        kind, calls = self.kind, []
        if kind in ("kafka", "text") and not plain:
            calls.append(("select", ['F.to_json(F.struct("*")).alias("value")']))
        options = [*self.options, *((option, "TODO") for option in self.missing)]
        path = [quoted(value) for option, value in options if option == "path" and bounded]
        calls.append(("write.format" if bounded else "writeStream.format", [quoted(kind)]))
        if kind == "console":
            calls.append(("option", ['"truncate"', "False"]))
        calls += [("option", [quoted(o), quoted(v)]) for o, v in options if not path or o != "path"]
        if not bounded and kind != "console":
            calls.append(("option", ['"checkpointLocation"', quoted(f"checkpoints/{name}")]))
        return chain(name, [*calls, ("save", path) if bounded else ("start", [])], "", 4)


_BY_LINES = {
    "socketTextStream": ("socket", ("host", "port")), "readTextFile": ("text", ("path",)),
    "readFile": ("text", ("format", "path")),
}  # fmt: skip
"""The sources of lines, with the settings that are their arguments."""
_LISTED = frozenset(["fromElements", "fromData", "fromCollection", "fromParallelCollection"])


def source_of(stream: Stream) -> Settings:
    """Return what is known of a stream's source."""
    call = stream.call
    given = call.arguments[0] if call.arguments else None
    if call.method in _LISTED:
        values = given.value if isinstance(given, Const) else None
        listed = values if isinstance(values, tuple) else call.arguments
        elements = tuple(one if isinstance(one, Value) else Const(one) for one in listed)
        return Settings("elements", bounded=True, elements=elements)
    if call.method in _BY_LINES:
        kind, names = _BY_LINES[call.method]
        pairs = [pair for pair in zip(names, call.arguments, strict=False) if pair[0] != "format"]
        options = tuple((n, str(v.value)) for n, v in pairs if isinstance(v, Const))
        missing = tuple(name for name in names if name not in {"format", *dict(options)})
        return Settings(kind, options, missing, bounded=kind == "text", lines=True)
    text = text_of(call.code.node)
    if not isinstance(given, Made) and "Kafka" in text:
        return kafka([], lines="SimpleStringSchema" in text)
    if not isinstance(given, Made):
        return Settings("unknown", bounded=call.method in ("fromSequence", "generateSequence"))
    name = given.type.split(".", 1)[0]
    if "Kafka" in name:
        return _kafka_source(given)
    if name == "FileSource":
        texts = [text_of(code.node) for code in (given.code, *(c.code for c in given.calls))]
        bounded = not any(call.method == "monitorContinuously" for call in given.calls)
        return _files("text", texts, bounded=bounded, lines=True)
    return Settings("unknown", what=simple_name(given.type))


def _files(kind: str, texts: list[str], **more: Any) -> Settings:
    """Return files whose path stands in one of some texts of Java."""
    path = next((found[1] for text in texts if (found := _PATH.search(text))), "")
    return _at(kind, path, **more)


def _at(kind: str, path: str, **more: Any) -> Settings:
    """Return files at a path; if it is empty, the code does not show it."""
    return Settings(kind, (("path", path),) if path else (), () if path else ("path",), **more)


_PATH = re.compile(r'\bPath\(\s*"([^"]+)"')
NOT_SHOWN = "\0"
"""The value of a setting that the code does not show."""
Options = list[tuple[str, str]]
_SETTERS = {
    "setBootstrapServers": "kafka.bootstrap.servers", "setTopics": "subscribe", "setTopic": "topic",
    "setGroupId": "kafka.group.id", "setTopicPattern": "subscribePattern",
}  # fmt: skip
_NEEDLESS = frozenset([
    "build", "setDeserializer", "setClientIdPrefix", "setValueOnlyDeserializer", "setBounded",
    "setTransactionalIdPrefix", "setProducerFactory",
])  # fmt: skip
"""What a builder is told that is read elsewhere, or that Spark settles itself."""


def _of_builder(made: Made) -> tuple[Options, list[str]]:
    """Return the options of a builder for Kafka, and its calls that have no counterpart here."""
    options: Options = []
    left: list[str] = []
    for call in made.calls:
        given = call.arguments[0] if call.arguments else None
        values = [str(v.value) for v in call.arguments if isinstance(v, Const)]
        written = text_of(call.code.node.child_by_field_name("arguments"))
        found: Options = []
        lost: list[str] = []
        if call.method in _SETTERS:
            found = [(_SETTERS[call.method], ",".join(values))] if values else []
        elif call.method == "setProperty":
            name = f"kafka.{values[0]}" if isinstance(given, Const) else "kafka.TODO"
            found = [(name, values[1] if len(values) == 2 else NOT_SHOWN)]
        elif call.method in ("setProperties", "setKafkaProducerConfig"):
            found, lost = _properties(call)
        elif call.method == "setStartingOffsets":
            words = [word for word in ("earliest", "latest") if f"{word}(" in written]
            found = [("startingOffsets", word) for word in words]
            lost = [] if words else [call.method]
        elif call.method == "setRecordSerializer" and isinstance(given, Made):
            found, lost = _of_builder(given)
            lost += [] if given.calls else [f"the serializer {simple_name(given.type)}"]
        elif call.method == "setValueSerializationSchema":
            plain = "SimpleStringSchema" in written or "Json" in written
            lost = [] if plain else [f"the schema {' '.join(written.split())[:60]}"]
        elif call.method in ("setDeliverGuarantee", "setDeliveryGuarantee"):
            exact = "EXACTLY_ONCE" in written
            lost = ["EXACTLY_ONCE (Spark writes at least once)"] if exact else []
        elif call.method not in _NEEDLESS:
            lost = [call.method]
        options, left = [*options, *found], [*left, *lost]
    return options, left


def kafka(
    options: Options,
    left: Sequence[str] = (),
    topic: tuple[str, ...] = ("subscribe", "subscribePattern"),
    **more: Any,
) -> Settings:
    """Return settings of Kafka, with what the code does not show of them."""
    shown = [pair for pair in options if pair[1] != NOT_SHOWN]
    missing = [name for name, value in options if value == NOT_SHOWN]
    given = {name for name, _ in options}
    missing += [names[0] for names in (("kafka.bootstrap.servers",), topic) if not given & {*names}]
    return Settings("kafka", tuple(shown), tuple(missing), tuple(dict.fromkeys(left)), **more)


def _kafka_source(made: Made) -> Settings:
    """Return the settings of a builder, or of the old consumer: topic, format, properties."""
    texts = [text_of(code.node) for code in (made.code, *(call.code for call in made.calls))]
    lines = any("SimpleStringSchema" in text for text in texts)
    if made.calls:
        bounded = any(call.method == "setBounded" for call in made.calls)
        return kafka(*_of_builder(made), lines=lines, bounded=bounded)
    topics = [a.value for a in made.arguments[:1] if isinstance(a, Const)]
    options, left = _properties(made)
    named = [("subscribe", topic) for topic in topics if isinstance(topic, str)]
    return kafka([*named, *options], left, lines=lines)


def _properties(call: Call | Made) -> tuple[Options, list[str]]:
    """Return the properties that are the last argument of a call, and what else is done to them."""
    given = call.arguments[-1] if call.arguments else None
    is_known = isinstance(given, Made) and given.type == "Properties" and not given.arguments
    if not isinstance(given, Made) or not is_known or not given.state:  # or filled elsewhere
        written = children(call.code.node.child_by_field_name("arguments"))
        return [], [f"the properties {''.join(map(text_of, written[-1:]))[:60]}"]
    found, left = [], []
    for name, held in given.state.items():
        if name.endswith("()"):
            left.append(f"{name} of the properties")
        else:
            value = held.value if isinstance(held, Const) else None
            is_shown = isinstance(value, str | int)
            found.append((f"kafka.{name}", str(value) if is_shown else NOT_SHOWN))
    return found, left


def sink_of(stream: Stream) -> Settings:
    """Return what is known of a sink."""
    call = stream.call
    if call.method in ("print", "printToErr", "executeAndCollect"):
        return Settings("console")
    given = call.arguments[0] if call.arguments else None
    if call.method in ("writeAsText", "writeAsCsv"):
        kind = "text" if call.method == "writeAsText" else "csv"
        return _at(kind, str(given.value) if isinstance(given, Const) else "")
    made = given if isinstance(given, Made) else None
    code = code_of(given)
    text = text_of(code.node) if code is not None and code.node is not None else ""
    if made is not None and made.calls:
        text = text_of(made.calls[-1].code.node)
    if made is not None and made.type.startswith("KafkaSink"):
        return kafka(*_of_builder(made), ("topic",))
    if "KafkaProducer" in text.split("(", 1)[0]:
        return _producer(made)
    if "PrintSink" in text.split("(", 1)[0]:
        return Settings("console")
    if made is not None and made.type.startswith(("FileSink", "StreamingFileSink")):
        left = tuple(one.method for one in made.calls if one.method not in _OF_FILES)
        return _files("text", [text], left=left)
    if made is not None:
        return Settings("unknown", what=simple_name(made.type))
    if re.search(r"System\s*\.\s*(out|err)\s*\.\s*print", text) and text.startswith("new"):
        return Settings("console")  # an anonymous class that prints
    return Settings("unknown", what=_named(code, call))


def _named(code: Code | None, call: Call) -> str:
    """Return what a sink is called in Java, in few words."""
    node = None if code is None else code.node
    if node is not None and node.type == "object_creation_expression":
        kind = simple_name(text_of(node.child_by_field_name("type")))
        return f"the anonymous {kind}"
    if node is not None and node.type in ("identifier", "field_access", "method_invocation"):
        return " ".join(text_of(node).split())[:60]
    given = text_of(call.code.node.child_by_field_name("arguments")).strip("()")
    plain = given.isidentifier()
    return given if plain else f"{call.method}() in line {line_of(call.code.node)}"


_OF_FILES = ("build", "withRollingPolicy", "withBucketCheckInterval", "withOutputFileConfig")


def _producer(made: Made | None) -> Settings:
    """Return the settings of the old producer: servers and topic, or topic and properties."""
    values = [] if made is None else [a.value for a in made.arguments if isinstance(a, Const)]
    texts = [value for value in values if isinstance(value, str)]
    servers = [("kafka.bootstrap.servers", value) for value in texts if ":" in value][:1]
    options = [*servers, *[("topic", value) for value in texts if ":" not in value][:1]]
    if made is None or len(made.arguments) < 3 or servers:
        return kafka(options, (), ("topic",))
    found, left = _properties(attrs.evolve(made, arguments=made.arguments[:3]))
    return kafka([*options, *found], left, ("topic",))
