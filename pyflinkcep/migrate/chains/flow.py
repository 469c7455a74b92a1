# SPDX-License-Identifier: Apache-2.0
"""The calls of Flink's stream API, as a graph of streams."""

from __future__ import annotations

from typing import Protocol

import attrs

from pyflinkcep.migrate.chains.values import Call, Code, Const, Link, Made, Stream, Unknown, Value
from pyflinkcep.migrate.java.declarations import JavaClass, type_arguments
from pyflinkcep.migrate.java.project import Project
from pyflinkcep.migrate.java.source import Node, Source, children, inside, simple_name, text_of


class Found(Protocol):
    """What a walker has found: streams, and what is set on the environment."""

    streams: list[Stream]
    settings: list[Call]


def added(walker: Found, stream: Stream) -> Stream:
    """Add a stream; return it."""
    walker.streams.append(stream)
    return stream


SOURCES = frozenset([
    "addSource", "fromSource", "fromElements", "fromData", "fromCollection", "readTextFile",
    "readFile", "socketTextStream", "fromSequence", "generateSequence", "fromParallelCollection",
])  # fmt: skip
"""The calls that make a stream."""

SINKS = frozenset([
    "print", "printToErr", "addSink", "sinkTo", "writeAsText", "writeAsCsv", "writeToSocket",
    "executeAndCollect", "writeUsingOutputFormat",
])  # fmt: skip
"""The calls that end a stream."""


STATEMENTS = frozenset(["executeSql", "sqlQuery", "sqlUpdate"])
"""The calls with SQL."""

SAME_EVENTS = frozenset([
    "filter", "keyBy", "assignTimestampsAndWatermarks", "assignTimestamps", "union", "name", "uid",
    "setParallelism", "setMaxParallelism", "rebalance", "rescale", "shuffle", "forward",
    "broadcast", "global", "startNewChain", "disableChaining", "slotSharingGroup", "returns",
    "inProcessingTime", "inEventTime", "sideOutputLateData", "setDescription", "setBufferTimeout",
    "setUidHash", "partitionCustom", "assignAscendingTimestamps",
])  # fmt: skip
"""The calls on a stream whose result has the same events."""

_STREAMS_ONLY = SAME_EVENTS & {"keyBy", "assignTimestampsAndWatermarks", "assignTimestamps"}


def called(walker: Found, stream: Stream, call: Call) -> Stream:
    """Return what a call on a stream returns."""
    others = tuple(a for a in call.arguments if isinstance(a, Stream))
    kind = stream.event_type if call.method in SAME_EVENTS else None
    pattern = stream.pattern if call.method in SAME_EVENTS else None
    return added(walker, Stream(call, (stream, *others), kind, pattern=pattern))


def cep_pattern(walker: Found, call: Call) -> Stream:
    """Return the stream of a pattern's matches."""
    first = call.arguments[0] if call.arguments else None
    source = first if isinstance(first, Stream) else elsewhere(walker, call.code)
    pattern = call.arguments[1] if len(call.arguments) > 1 else None
    link = pattern if isinstance(pattern, Link) else None
    if link is not None:
        link.event_type = link.event_type or source.event_type
        source.event_type = source.event_type or link.event_type
    return added(walker, Stream(call, (source,), source.event_type, pattern=link))


def built(walker: Found, value: Made, call: Call) -> Value | None:
    """Return what a call on an environment, or on a builder, returns."""
    is_flow = call.method in SOURCES | STATEMENTS
    if is_flow or any(isinstance(a, Stream) for a in call.arguments):
        return consumed(walker, value, call)
    if call.method in _STREAMS_ONLY and "." in value.type:
        return called(walker, elsewhere(walker, value.code), call)
    if value.type.startswith("StreamExecutionEnvironment"):
        walker.settings.append(call)
        return value if call.method == "getConfig" else None
    return attrs.evolve(value, calls=(*value.calls, call))


def consumed(walker: Found, value: Value, call: Call) -> Value | None:
    """Return what a call on something unknown returns, if that is about streams."""
    streams = tuple(a for a in call.arguments if isinstance(a, Stream))
    is_statement = call.method in STATEMENTS and bool(call.arguments)
    if call.method in SOURCES:
        made = Stream(call)
        first = call.arguments[0] if call.arguments else None
        if call.method in ("fromElements", "fromData", "fromCollection"):
            listed = first.value if isinstance(first, Const) else None
            elements = listed if isinstance(listed, tuple) else call.arguments
            types = {element.type if isinstance(element, Made) else None for element in elements}
            made.event_type = types.pop() if len(types) == 1 else None  # of several, the pattern's
    elif is_statement or streams:
        made = Stream(call, streams)
    elif call.method in _STREAMS_ONLY and isinstance(value, Unknown):
        return called(walker, elsewhere(walker, call.code), call)
    else:
        if call.method.startswith(("setStreamTime", "enableCheckpoint", "execute")):
            walker.settings.append(call)
        return None
    return added(walker, made)


def elsewhere(walker: Found, code: Code) -> Stream:
    """Return a stream of which nothing is known, such as one of a method not in the sources."""
    return added(walker, Stream(Call("elsewhere", (), code)))


_TEXTS = ("readTextFile", "socketTextStream")
_FUNCTIONS = ("map", "flatMap", "filter", "process", "keyBy")
_VARIABLES = ("T", "IN", "OUT", "R", "?", "K")


def share_types(streams: list[Stream], project: Project) -> None:
    """Let streams of the same events have the same type, wherever it is written."""
    for stream in streams:
        if not stream.inputs:
            stream.event_type = stream.event_type or _of_source(stream, project)
        elif stream.call.method in _FUNCTIONS and stream.call.arguments:
            before, after = _of_function(stream.call.arguments[0], project)
            first = stream.inputs[0]
            if first.pattern is None:
                first.event_type = first.event_type or before
            if stream.call.method not in ("filter", "keyBy"):
                stream.event_type = stream.event_type or after
    for stream in reversed(streams):
        if _has_same(stream) and stream.event_type is not None:
            for one in stream.inputs[:1]:
                one.event_type = one.event_type or stream.event_type
        if stream.pattern is not None and stream.inputs:
            kind = stream.inputs[0].event_type or stream.pattern.event_type
            stream.inputs[0].event_type = kind
    for stream in streams:
        if _has_same(stream) and stream.inputs:
            stream.event_type = stream.event_type or stream.inputs[0].event_type
        if stream.pattern is not None and stream.inputs:
            stream.pattern.event_type = stream.pattern.event_type or stream.inputs[0].event_type


def _has_same(stream: Stream) -> bool:
    """Whether a stream has the events of the one before: a map may return what it is given, too."""
    if stream.call.method != "map" or not stream.call.arguments:
        return stream.call.method in SAME_EVENTS
    code = stream.call.arguments[0]
    node = code.node if isinstance(code, Code) else None
    if node is None or node.type != "lambda_expression":
        return False
    given = text_of(node.child_by_field_name("parameters")).strip("() ")
    body = node.child_by_field_name("body")
    returned = [children(one) for one in inside(body, "return_statement")]
    results = [text_of(one[0]) for one in returned if one] or [text_of(body)]
    return all(result == given for result in results)


def _of_source(stream: Stream, project: Project) -> str | None:
    """Return the type of what a source reads."""
    if stream.call.method in _TEXTS:
        return "String"
    made = stream.call.arguments[0] if stream.call.arguments else None
    if not isinstance(made, Made):
        return None
    if made.type.startswith("FileSource"):
        codes = (made.code, *(call.code for call in made.calls))
        return "String" if any("TextLine" in text_of(code.node) for code in codes) else None
    where = made.code.source
    written = _known(type_arguments(made.type), project, where)
    node = made.code.node  # ``KafkaSource.<Event>builder()`` or ``new Source<Event>()``
    given = node.child_by_field_name("type_arguments") or node.child_by_field_name("type")
    written = written or _known(type_arguments(text_of(given)), project, where)
    if written:
        return written[0]
    for code in (made.code, *(call.code for call in made.calls)):
        for node in inside(code.node, "object_creation_expression"):
            name = simple_name(text_of(node.child_by_field_name("type")))
            if name == "SimpleStringSchema":
                return "String"
            declared = project.find(name, code.source)
            above = None if declared is None else _above(declared)
            if above:
                return above[0]
    return None


def _known(types: list[str], project: Project, source: Source) -> list[str]:
    named = types and types[0] and not _is_variable(types[0], project, source)
    return types if named else []


def _is_variable(name: str, project: Project, source: Source) -> bool:
    """Whether a name is that of a type variable, of which no class has the name."""
    return name in _VARIABLES and project.find(name, source) is None


def _above(declared: JavaClass) -> list[str]:
    """Return the type arguments that a class gives to what it extends or implements."""
    above = [*([declared.superclass] if declared.superclass else []), *declared.interfaces]
    return next(([str(one) for one in type_.args] for type_ in above if type_.args), [])


def _of_function(value: Value, project: Project) -> tuple[str | None, str | None]:
    """Return the types of what a function is given, and of what it returns."""
    code = value.code if isinstance(value, Made | Unknown) else value
    if not isinstance(code, Code) or code.node is None:
        return None, None
    node, source = code.node, code.source
    types: list[str] = []
    if node.type == "object_creation_expression":
        written = text_of(node.child_by_field_name("type"))
        declared = project.find(simple_name(written), source)
        types = _known(type_arguments(written), project, source) or (
            [] if declared is None else _above(declared)
        )
        if simple_name(written).startswith(("KeyedProcess", "Broadcast", "CoProcess")):
            types = types[1:]
    elif node.type == "lambda_expression":
        types = _of_lambda(node)
    elif node.type == "method_reference":
        types = _of_reference(node, source, project)
    types = ["" if _is_variable(one, project, source) else one for one in types]
    return (types[0] or None) if types else None, (types[1] or None) if len(types) > 1 else None


def _of_lambda(node: Node) -> list[str]:
    parts = children(node.child_by_field_name("parameters"))
    types = [part.child_by_field_name("type") for part in parts]
    if not types or any(one is None for one in types):
        return []
    first, *others = [text_of(one) for one in types]
    return [first, *(type_arguments(others[-1])[:1] if others else [])]


def _of_reference(node: Node, source: Source, project: Project) -> list[str]:
    owner = project.find(text_of(node.children[0]), source)
    method = None if owner is None else project.method(owner, text_of(node.children[-1]), 1)
    if method is None or "static" not in method.modifiers:
        return []
    return [str(method.parameters[0][1]), str(method.type)]
