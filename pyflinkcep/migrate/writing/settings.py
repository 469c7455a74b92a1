# SPDX-License-Identifier: Apache-2.0
"""Where events come from and results go, with the settings that the Java code shows."""

from __future__ import annotations

import re
from datetime import timedelta

import attrs

from pyflinkcep.migrate.chains.values import (
    Call,
    Code,
    Const,
    Made,
    Scope,
    Stream,
    Unknown,
    Value,
    duration,
)
from pyflinkcep.migrate.chains.walker import Walker
from pyflinkcep.migrate.java.constants import literal_of
from pyflinkcep.migrate.java.declarations import JavaClass
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, children, inside, line_of, simple_name, text_of
from pyflinkcep.migrate.writing.translation import code_of


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
    # What makes the generator of watermarks, of a class of the program.
    generator: Code | None = None
    left: tuple[str, ...] = ()  # The calls of a strategy that have no counterpart here


def times_of(call: Call, strategy: Value | None, project: Project) -> Times | None:
    """Return what a call or a strategy says about times; None if nothing."""
    if call.method == "assignAscendingTimestamps" and isinstance(strategy, Code):
        return Times(timedelta(0), strategy)
    if isinstance(strategy, Made):
        if strategy.type.startswith("WatermarkStrategy."):
            return _new_form(strategy)
        return Times(_first_duration(strategy.arguments), strategy.code)
    if isinstance(strategy, Code | Unknown):
        code = strategy if isinstance(strategy, Code) else strategy.code
        if code.node is not None and code.node.type == "object_creation_expression":
            return _old_form(code, project)
    return None


def _new_form(strategy: Made) -> Times:
    method = strategy.type.split(".", 1)[1]
    delay: timedelta | None = timedelta(0)
    if method == "forBoundedOutOfOrderness":
        delay = _first_duration(strategy.arguments)
    elif method not in ("forMonotonousTimestamps", "noWatermarks"):
        delay = None
    time = None
    given = strategy.arguments[0] if strategy.arguments else None
    generator = given if method == "forGenerator" and isinstance(given, Code) else None
    for call in strategy.calls:
        if call.method == "withTimestampAssigner" and call.arguments:
            given = call.arguments[0]
            time = given if isinstance(given, Code) else getattr(given, "code", None)
            time = _supplied(time) if isinstance(time, Code) else time
    known = ("withTimestampAssigner", *_OF_SOURCES)
    left = tuple(call.method for call in strategy.calls if call.method not in known)
    return Times(delay, time, method == "noWatermarks", generator=generator, left=left)


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


def _old_form(code: Code, project: Project) -> Times:
    """Return what an anonymous class of an old interface says."""
    kind = text_of(code.node.child_by_field_name("type"))
    arguments = [text_of(a) for a in children(code.node.child_by_field_name("arguments"))]
    delay: timedelta | None = timedelta(0)
    if "BoundedOutOfOrderness" in kind:
        delay = _written_duration(arguments[0]) if arguments else None
    elif "Ascending" not in kind:
        delay = lag(code, project)
    return Times(delay, code, clock=reads_clock(code.node))


def _first_duration(arguments: tuple[Value, ...]) -> timedelta | None:
    first = arguments[0] if arguments else None
    if isinstance(first, Const) and isinstance(first.value, timedelta):
        return first.value
    return None


def _written_duration(text: str) -> timedelta | None:
    name, _, rest = text.partition("(")
    amount = rest.rstrip(") ").replace("_", "").rstrip("lL")
    if not amount.isdigit():
        return None
    return duration(name.rsplit(".", 1)[-1], [int(amount)])


def strategy_of(code: Code, project: Project) -> tuple[Code | None, timedelta | None]:
    """Return the assigner of a class of watermark strategies, and how far it is behind."""
    declared = _class_made(code.node, code, project)
    if declared is None:
        return None, None
    scope = Scope(declared.source, declared)
    found: Code | None = None
    delay: timedelta | None = None
    for method in declared.methods.get("createTimestampAssigner", []):
        for returned in inside(method.body, "return_statement"):
            found = Code(children(returned)[0], declared.source, scope)
    for method in declared.methods.get("createWatermarkGenerator", []):
        delay = lag_of(Code(method.body, declared.source, scope), project)
    return found, delay


def lag_of(code: Code, project: Project) -> timedelta | None:
    """Return how far the generator of watermarks that code makes is behind."""
    for made in inside(code.node, "object_creation_expression"):
        name = simple_name(text_of(made.child_by_field_name("type")))
        given = children(made.child_by_field_name("arguments"))
        if name == "AscendingTimestampsWatermarks":
            return timedelta(0)
        if name == "BoundedOutOfOrdernessWatermarks":
            return _written_duration(text_of(given[0])) if given else None
        declared = _class_made(made, code, project)
        if declared is not None and not given:
            scope = Scope(declared.source, declared)
            return lag(Code(declared.node, declared.source, scope), project)
    return None


def _class_made(node: Node, code: Code, project: Project) -> JavaClass | None:
    if not node.type.startswith("object"):
        return None
    return project.find(simple_name(text_of(node.child_by_field_name("type"))), code.source)


def lag(code: Code, project: Project) -> timedelta | None:
    """Return what ``new Watermark(max - 5000)`` takes off, if that is known."""
    for made in inside(code.node, "object_creation_expression"):
        if not text_of(made.child_by_field_name("type")).endswith("Watermark"):
            continue
        given = children(made.child_by_field_name("arguments"))
        owner = project.at(code.source, line_of(made)) or code.scope.owner
        walker, scope = Walker(project), Scope(code.source, owner, values=code.scope.all())
        for field in inside(code.node, "field_declaration"):  # of an anonymous class
            for declarator in field.children_by_field_name("declarator"):
                first = declarator.child_by_field_name("value")
                name = text_of(declarator.child_by_field_name("name"))
                if first is not None and name not in scope.values:
                    scope.set(name, walker.evaluate(first, scope), text_of(field))
        return _taken_off(given[0], walker, scope) if given else None
    return _of_superclass(code.node)


def _of_superclass(node: Node) -> timedelta | None:
    """Return how far the watermarks of a class are behind that makes none itself."""
    above = text_of(node.child_by_field_name("superclass") or node.child_by_field_name("type"))
    if "Ascending" in above:
        return timedelta(0)
    if "BoundedOutOfOrderness" in above:
        for call in inside(node, "explicit_constructor_invocation"):
            given = children(call.child_by_field_name("arguments"))
            if given:
                return _written_duration(text_of(given[0]))
    return None


def _taken_off(node: Node, walker: Walker, scope: Scope) -> timedelta | None:
    """Return how many milliseconds an expression takes off a time."""
    while node.type == "parenthesized_expression":
        node = children(node)[0]
    if node.type != "binary_expression":
        return timedelta(0) if node.type in _TIMES else None
    sign = text_of(node.child_by_field_name("operator"))
    amount = walker.evaluate(node.child_by_field_name("right"), scope)
    rest = _taken_off(node.child_by_field_name("left"), walker, scope)
    if sign not in ("+", "-") or not isinstance(amount, Const) or rest is None:
        return None
    if type(amount.value) is not int:
        return None
    more = timedelta(milliseconds=amount.value)
    return rest + more if sign == "-" else rest - more


_TIMES = ("identifier", "field_access", "method_invocation")
_CLOCKS = ("currentTimeMillis", "nanoTime", "now", "currentProcessingTime", "millis")


def reads_clock(node: Node) -> bool:
    """Whether watermarks are made of the clock of the machine."""
    return any(
        text_of(call.child_by_field_name("name")) in _CLOCKS
        for made in inside(node, "object_creation_expression")
        if text_of(made.child_by_field_name("type")).endswith("Watermark")
        for call in inside(made, "method_invocation")
    )


def delay_text(delay: timedelta) -> str:
    """
    Return a delay as ``withWatermark`` takes it.

    Examples
    --------
    >>> delay_text(timedelta(minutes=2)), delay_text(timedelta(0))
    ('2 minutes', '0 seconds')
    """
    for unit in ("days", "hours", "minutes", "seconds"):
        size = timedelta(**{unit: 1})
        if delay and delay % size == timedelta(0):
            amount = delay // size
            return f"{amount} {unit if amount != 1 else unit[:-1]}"
    milliseconds = delay // timedelta(milliseconds=1)
    return f"{milliseconds} milliseconds" if milliseconds else "0 seconds"


@attrs.frozen
class Source:
    """Where events come from."""

    kind: str  # ``kafka``, ``socket``, ``text``, ``elements``, ``rate`` or ``unknown``
    options: tuple[tuple[str, str], ...] = ()  # Spark's options
    bounded: bool = False  # Whether it ends
    lines: bool = False  # Whether its elements are text
    elements: tuple[Value, ...] = ()  # Of elements: what they are
    missing: tuple[str, ...] = ()  # Settings that the code does not show
    left: tuple[str, ...] = ()  # The calls of a builder that have no counterpart here


def source_of(stream: Stream) -> Source:
    """Return what is known of a stream's source."""
    call = stream.call
    if call.method in ("fromElements", "fromData", "fromCollection", "fromParallelCollection"):
        return Source("elements", bounded=True, elements=_elements(call))
    if call.method in ("fromSequence", "generateSequence"):
        return Source("sequence", bounded=True, options=_plain(call, ("from", "to")))
    if call.method == "socketTextStream":
        return _of_settings("socket", call, ("host", "port"), bounded=False)
    if call.method in ("readTextFile", "readFile"):
        names = ("path",) if call.method == "readTextFile" else ("format", "path")
        return _of_settings("text", call, names, bounded=True)
    given = call.arguments[0] if call.arguments else None
    if isinstance(given, Made):
        return _of_object(given)
    return _by_text(call)


def _elements(call: Call) -> tuple[Value, ...]:
    values = call.arguments
    first = values[0] if values else None
    if isinstance(first, Const) and isinstance(first.value, tuple):
        values = tuple(v if isinstance(v, Value) else Const(v) for v in first.value)
    return values


def _plain(call: Call, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, str(value.value))
        for name, value in zip(names, call.arguments, strict=False)
        if isinstance(value, Const)
    )


def _of_settings(kind: str, call: Call, names: tuple[str, ...], *, bounded: bool) -> Source:
    """Return a source of lines with the settings that the code shows."""
    options = tuple(pair for pair in _plain(call, names) if pair[0] != "format")
    shown = {name for name, _ in options}
    missing = tuple(name for name in names if name not in shown | {"format"})
    return Source(kind, options, bounded=bounded, lines=True, missing=missing)


def _of_object(made: Made) -> Source:
    name = made.type.split(".", 1)[0]
    if "Kafka" in name and made.calls:
        return _kafka_builder(made)
    if "Kafka" in name:
        return _kafka_consumer(made)
    if name == "FileSource":
        texts = [text_of(code.node) for code in (made.code, *(c.code for c in made.calls))]
        path = next((found for text in texts if (found := _PATH.search(text))), None)
        options = () if path is None else (("path", path[1]),)
        missing = () if options else ("path",)
        bounded = not any(call.method == "monitorContinuously" for call in made.calls)
        return Source("text", options, bounded=bounded, lines=True, missing=missing)
    return Source("unknown", options=(("class", simple_name(made.type)),))


_PATH = re.compile(r'\bPath\(\s*"([^"]+)"')


def _kafka_builder(made: Made) -> Source:
    options: list[tuple[str, str]] = []
    lines = False
    names = {"setBootstrapServers": "kafka.bootstrap.servers", "setTopics": "subscribe",
             "setGroupId": "kafka.group.id", "setTopicPattern": "subscribePattern"}  # fmt: skip
    bounded = False
    left: list[str] = []
    for call in made.calls:
        values = [str(v.value) for v in call.arguments if isinstance(v, Const)]
        if call.method in names and values:
            options.append((names[call.method], ",".join(values)))
        elif call.method == "setStartingOffsets":
            text = text_of(call.code.node)
            given = text.rsplit("setStartingOffsets", 1)[-1]
            words = [word for word in ("earliest", "latest") if f"{word}(" in given]
            options += [("startingOffsets", word) for word in words]
            left += [] if words else [call.method]
        elif call.method == "setProperty" and len(values) == 2:
            options.append((f"kafka.{values[0]}", values[1]))
        elif call.method == "setProperties":
            found, lost = properties(call.code, _last_argument(call.code.node))
            options += found
            left += lost
        elif call.method == "setValueOnlyDeserializer":
            lines = "SimpleStringSchema" in text_of(call.code.node)
        elif call.method == "setBounded":
            bounded = True
        elif call.method not in {*names, "build", "setDeserializer", "setClientIdPrefix"}:
            left.append(call.method)
    return _kafka(options, lines, bounded, tuple(dict.fromkeys(left)))


def _kafka(
    options: list[tuple[str, str]], lines: bool, bounded: bool, left: tuple[str, ...] = ()
) -> Source:
    missing = [name for name, value in options if value == NOT_SHOWN]
    options = [pair for pair in options if pair[1] != NOT_SHOWN]
    given = {name for name, _ in options} | set(missing)
    if "kafka.bootstrap.servers" not in given:
        missing.append("kafka.bootstrap.servers")
    if not given & {"subscribe", "subscribePattern"}:
        missing.append("subscribe")
    return Source("kafka", tuple(options), bounded, lines, missing=tuple(missing), left=left)


def _kafka_consumer(made: Made) -> Source:
    """Return the settings of the old consumer: topic, format, properties."""
    options: list[tuple[str, str]] = []
    topic = made.arguments[0] if made.arguments else None
    if isinstance(topic, Const) and isinstance(topic.value, str):
        options.append(("subscribe", topic.value))
    found, left = properties(made.code, _last_argument(made.code.node))
    schema = text_of(made.code.node)
    return _kafka([*options, *found], "SimpleStringSchema" in schema, False, tuple(left))


NOT_SHOWN = "\0"


def _last_argument(node: Node) -> Node | None:
    given = children(node.child_by_field_name("arguments"))
    return given[-1] if given else None


def properties(code: Code, given: Node | None) -> tuple[list[tuple[str, str]], list[str]]:
    """Return Spark's options for properties of Kafka, and what is done with them beside that."""
    around = code.node
    while around.parent is not None and around.type != "method_declaration":
        around = around.parent
    name = "" if given is None else text_of(given)
    made = [
        one.child_by_field_name("value")
        for one in inside(around, "variable_declarator")
        if text_of(one.child_by_field_name("name")) == name
    ]
    found, left = [], [] if _is_empty(made) else [f"the properties {name[:60]}"]
    for call in inside(around, "method_invocation"):
        owner, method = (
            call.child_by_field_name("object"),
            text_of(call.child_by_field_name("name")),
        )
        if owner is None or text_of(owner) != name or method.startswith(_READING):
            continue
        arguments = children(call.child_by_field_name("arguments"))
        held = [literal_of(one) or code.scope.find(text_of(one)) for one in arguments]
        known = [one.value if isinstance(one, Const) else None for one in held]
        if method in ("setProperty", "put") and len(known) == 2 and isinstance(known[0], str):
            value = str(known[1]) if isinstance(known[1], str | int) else NOT_SHOWN
            found.append((f"kafka.{known[0]}", value))
        else:
            left.append(f"{method}() of the properties")
    return found, left


_READING = ("get", "contains", "isEmpty", "size", "stringPropertyNames", "list")


def _is_empty(made: list[Node | None]) -> bool:
    """Whether a variable is declared once, with ``new Properties()``."""
    first = made[0] if len(made) == 1 else None
    if first is None or first.type != "object_creation_expression":
        return False
    return not children(first.child_by_field_name("arguments"))


def _by_text(call: Call) -> Source:
    text = text_of(call.code.node)
    if "Kafka" in text:
        return _kafka([], "SimpleStringSchema" in text, False)
    return Source("unknown")


@attrs.frozen
class Sink:
    """Where a result goes."""

    kind: str  # ``console``, ``kafka``, ``text`` or ``unknown``
    options: tuple[tuple[str, str], ...] = ()  # Spark's options
    what: str = ""  # Of one that is unknown: its class
    missing: tuple[str, ...] = ()  # Settings that the code does not show
    left: tuple[str, ...] = ()  # The calls of a builder that have no counterpart here


def sink_of(stream: Stream) -> Sink:
    """Return what is known of a sink."""
    call = stream.call
    if call.method in ("print", "printToErr", "executeAndCollect"):
        return Sink("console")
    given = call.arguments[0] if call.arguments else None
    if call.method in ("writeAsText", "writeAsCsv"):
        path = str(given.value) if isinstance(given, Const) else ""
        kind = "text" if call.method == "writeAsText" else "csv"
        return Sink(kind, (("path", path),) if path else (), missing=() if path else ("path",))
    made = given if isinstance(given, Made) else None
    code = code_of(given)
    text = text_of(code.node) if code is not None and code.node is not None else ""
    if made is not None and made.calls:
        text = text_of(made.calls[-1].code.node)
    if made is not None and made.type.startswith("KafkaSink"):
        return _kafka_sink(made)
    if "KafkaProducer" in text.split("(", 1)[0]:
        return _producer(made)
    if "PrintSink" in text.split("(", 1)[0]:
        return Sink("console")
    if made is not None and made.type.startswith(("FileSink", "StreamingFileSink")):
        found = re.search(r'Path\(\s*"([^"]+)"', text)
        path = found[1] if found else ""
        left = tuple(one.method for one in made.calls if one.method not in _OF_FILES)
        missing = () if path else ("path",)
        return Sink("text", (("path", path),) if path else (), missing=missing, left=left)
    if made is not None:
        return Sink("unknown", what=simple_name(made.type))
    if re.search(r"System\s*\.\s*(out|err)\s*\.\s*print", text) and text.startswith("new"):
        return Sink("console")  # an anonymous class that prints
    return Sink("unknown", what=_named(code, call))


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
_OF_KAFKA = ("build", "setTransactionalIdPrefix", "setProducerFactory")


def _kafka_sink(made: Made) -> Sink:
    """Return the settings of a builder, and of the one of its serializer."""
    options: list[tuple[str, str]] = []
    left: list[str] = []
    for call in made.calls:
        given = call.arguments[0] if call.arguments else None
        values = [str(v.value) for v in call.arguments if isinstance(v, Const)]
        if call.method == "setBootstrapServers":
            options += [("kafka.bootstrap.servers", value) for value in values]
        elif call.method == "setProperty":
            options += _property(call, values)
        elif call.method == "setKafkaProducerConfig":
            written = children(call.code.node.child_by_field_name("arguments"))
            found, lost = properties(call.code, written[-1] if written else None)
            options += found
            left += lost
        elif call.method == "setRecordSerializer" and isinstance(given, Made):
            found, lost = _serialized(given)
            options += found
            left += lost
        elif call.method in ("setDeliverGuarantee", "setDeliveryGuarantee"):
            exact = "EXACTLY_ONCE" in text_of(call.code.node.child_by_field_name("arguments"))
            left += ["EXACTLY_ONCE (Spark writes at least once)"] if exact else []
        elif call.method not in _OF_KAFKA:
            left.append(call.method)
    return _complete(options, left)


def _property(call: Call, values: list[str]) -> list[tuple[str, str]]:
    """Return a setting as an option; its value is to be written if the code does not show it."""
    first = call.arguments[0] if call.arguments else None
    if not isinstance(first, Const):
        return [("kafka.TODO", NOT_SHOWN)]
    return [(f"kafka.{first.value}", values[1] if len(values) == 2 else NOT_SHOWN)]


def _serialized(made: Made) -> tuple[list[tuple[str, str]], list[str]]:
    """Return what a serializer of records says: their topic, and how they become bytes."""
    options: list[tuple[str, str]] = []
    left: list[str] = []
    for call in made.calls:
        first = call.arguments[0] if call.arguments else None
        if call.method == "setTopic":
            options += [("topic", str(first.value))] if isinstance(first, Const) else []
        elif call.method == "setValueSerializationSchema":
            written = text_of(call.code.node.child_by_field_name("arguments"))
            plain = "SimpleStringSchema" in written or "Json" in written
            left += [] if plain else [f"the schema {' '.join(written.split())[:60]}"]
        elif call.method != "build":
            left.append(call.method)
    if not made.calls:  # a class of the program
        left.append(f"the serializer {simple_name(made.type)}")
    return options, left


def _producer(made: Made | None) -> Sink:
    options: list[tuple[str, str]] = []
    left: list[str] = []
    values = [] if made is None else [a.value for a in made.arguments if isinstance(a, Const)]
    texts = [value for value in values if isinstance(value, str)]
    servers = [value for value in texts if ":" in value]
    topics = [value for value in texts if ":" not in value]
    options += [("kafka.bootstrap.servers", value) for value in servers[:1]]
    options += [("topic", value) for value in topics[:1]]
    given = [] if made is None else children(made.code.node.child_by_field_name("arguments"))
    if made is not None and len(given) > 2 and not servers:
        found, left = properties(made.code, given[2])
        options += found
    return _complete(options, left)


def _complete(options: list[tuple[str, str]], left: list[str]) -> Sink:
    shown = [pair for pair in options if pair[1] != NOT_SHOWN]
    missing = [name for name, value in options if value == NOT_SHOWN]
    needed = ("kafka.bootstrap.servers", "topic")
    missing += [name for name in needed if name not in dict(options)]
    return Sink("kafka", tuple(shown), missing=tuple(missing), left=tuple(dict.fromkeys(left)))
