# SPDX-License-Identifier: Apache-2.0
"""Where events come from, with the settings that the Java code shows."""

from __future__ import annotations

import re

import attrs

from pyflinkcep.migrate.chains.constants import literal
from pyflinkcep.migrate.chains.lookup import inside, simple_name
from pyflinkcep.migrate.chains.values import Call, Code, Constant, Made, Stream, Value
from pyflinkcep.migrate.java.source import children, text_of

__all__ = ["Source", "source_of"]


@attrs.frozen
class Source:
    """
    Where events come from.

    Attributes
    ----------
    kind : str
        ``kafka``, ``socket``, ``text``, ``elements``, ``rate`` or ``unknown``.
    options : tuple of (str, str)
        Spark's options.
    bounded : bool
        Whether it ends.
    lines : bool
        Whether its elements are text.
    elements : tuple of Value
        Of elements: what they are.
    missing : tuple of str
        Settings that the code does not show.
    left : tuple of str
        The calls of a builder that have no counterpart here.
    """

    kind: str
    options: tuple[tuple[str, str], ...] = ()
    bounded: bool = False
    lines: bool = False
    elements: tuple[Value, ...] = ()
    missing: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


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
    if isinstance(first, Constant) and isinstance(first.value, tuple):
        values = tuple(v if isinstance(v, Value) else Constant(v) for v in first.value)
    return values


def _plain(call: Call, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, str(value.value))
        for name, value in zip(names, call.arguments, strict=False)
        if isinstance(value, Constant)
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
        values = [str(v.value) for v in call.arguments if isinstance(v, Constant)]
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
            options += _properties(call.code)
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
    missing = [name for name, value in options if value == _NOT_SHOWN]
    options = [pair for pair in options if pair[1] != _NOT_SHOWN]
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
    if isinstance(topic, Constant) and isinstance(topic.value, str):
        options.append(("subscribe", topic.value))
    options += _properties(made.code)
    schema = text_of(made.code.node)
    return _kafka(options, "SimpleStringSchema" in schema, False)


_NOT_SHOWN = "\0"


def _properties(code: Code) -> list[tuple[str, str]]:
    """Return what is set on properties in the method around."""
    around = code.node
    while around.parent is not None and around.type != "method_declaration":
        around = around.parent
    found = []
    for call in inside(around, "method_invocation"):
        if text_of(call.child_by_field_name("name")) not in ("setProperty", "put"):
            continue
        given = children(call.child_by_field_name("arguments"))
        held = [literal(one) or code.scope.find(text_of(one)) for one in given]
        known = [one.value if isinstance(one, Constant) else None for one in held]
        if len(known) == 2 and isinstance(known[0], str) and "." in known[0]:
            value = known[1] if isinstance(known[1], str) else _NOT_SHOWN
            found.append((f"kafka.{known[0]}", value))
    return found


def _by_text(call: Call) -> Source:
    text = text_of(call.code.node)
    if "Kafka" in text:
        return _kafka([], "SimpleStringSchema" in text, False)
    return Source("unknown")
