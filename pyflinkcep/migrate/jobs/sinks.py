# SPDX-License-Identifier: Apache-2.0
"""Where results go, with the settings that the Java code shows."""

from __future__ import annotations

import re

import attrs

from pyflinkcep.migrate.chains.values import Call, Code, Const, Made, Stream
from pyflinkcep.migrate.java.source import children, line_of, simple_name, text_of
from pyflinkcep.migrate.jobs.sources import NOT_SHOWN, properties
from pyflinkcep.migrate.translation import code_of


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
        return _kafka(made)
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


def _kafka(made: Made) -> Sink:
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
