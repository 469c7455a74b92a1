# SPDX-License-Identifier: Apache-2.0
"""Where results go, with the settings that the Java code shows."""

from __future__ import annotations

import re

import attrs

from pyflinkcep.migrate.chains.lookup import simple_name
from pyflinkcep.migrate.chains.values import Call, Code, Constant, Made, Stream
from pyflinkcep.migrate.java.source import line_of, text_of
from pyflinkcep.migrate.translation import code_of


@attrs.frozen
class Sink:
    """Where a result goes."""

    kind: str  # ``console``, ``kafka``, ``text`` or ``unknown``
    options: tuple[tuple[str, str], ...] = ()  # Spark's options
    what: str = ""  # Of one that is unknown: its class
    missing: tuple[str, ...] = ()  # Settings that the code does not show


def sink_of(stream: Stream) -> Sink:
    """Return what is known of a sink."""
    call = stream.call
    if call.method in ("print", "printToErr", "executeAndCollect"):
        return Sink("console")
    given = call.arguments[0] if call.arguments else None
    if call.method in ("writeAsText", "writeAsCsv"):
        path = str(given.value) if isinstance(given, Constant) else ""
        kind = "text" if call.method == "writeAsText" else "csv"
        return Sink(kind, (("path", path),) if path else (), missing=() if path else ("path",))
    made = given if isinstance(given, Made) else None
    code = code_of(given)
    text = text_of(code.node) if code is not None and code.node is not None else ""
    if made is not None and made.calls:
        text = text_of(made.calls[-1].code.node)
    if made is not None and made.type.startswith("KafkaSink"):
        return _kafka(text)
    if "KafkaProducer" in text.split("(", 1)[0]:
        return _producer(made)
    if "PrintSink" in text.split("(", 1)[0]:
        return Sink("console")
    if made is not None and made.type.startswith(("FileSink", "StreamingFileSink")):
        found = re.search(r'Path\(\s*"([^"]+)"', text)
        path = found[1] if found else ""
        return Sink("text", (("path", path),) if path else (), missing=() if path else ("path",))
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


def _kafka(text: str) -> Sink:
    options = []
    for method, name in (("setBootstrapServers", "kafka.bootstrap.servers"), ("setTopic", "topic")):
        found = re.search(rf'{method}\(\s*"([^"]*)"', text)
        if found:
            options.append((name, found[1]))
    return _complete(options)


def _producer(made: Made | None) -> Sink:
    options = []
    values = [] if made is None else [a.value for a in made.arguments if isinstance(a, Constant)]
    texts = [value for value in values if isinstance(value, str)]
    servers = [value for value in texts if ":" in value]
    topics = [value for value in texts if ":" not in value]
    options += [("kafka.bootstrap.servers", value) for value in servers[:1]]
    options += [("topic", value) for value in topics[:1]]
    return _complete(options)


def _complete(options: list[tuple[str, str]]) -> Sink:
    given = {name for name, _ in options}
    needed = ("kafka.bootstrap.servers", "topic")
    return Sink("kafka", tuple(options), missing=tuple(n for n in needed if n not in given))
