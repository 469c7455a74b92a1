# SPDX-License-Identifier: Apache-2.0
"""The calls of Flink's stream API, as a graph of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from pyflinkcep.migrate.chains.values import (
    Call,
    Constant,
    Link,
    Made,
    Stream,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from pyflinkcep.migrate.chains.expressions import Expressions

__all__ = [
    "SAME_EVENTS",
    "SINKS",
    "SOURCES",
    "STATEMENTS",
    "built",
    "called",
    "cep_pattern",
    "consumed",
    "made_elsewhere",
]

SOURCES = frozenset(
    [
        "addSource",
        "fromSource",
        "fromElements",
        "fromData",
        "fromCollection",
        "readTextFile",
        "readFile",
        "socketTextStream",
        "fromSequence",
        "generateSequence",
        "fromParallelCollection",
    ]
)
"""The calls that make a stream."""

SINKS = frozenset(
    [
        "print",
        "printToErr",
        "addSink",
        "sinkTo",
        "writeAsText",
        "writeAsCsv",
        "writeToSocket",
        "executeAndCollect",
        "writeUsingOutputFormat",
    ]
)
"""The calls that end a stream."""


STATEMENTS = frozenset(["executeSql", "sqlQuery", "sqlUpdate"])
"""The calls with SQL."""

SAME_EVENTS = frozenset(
    [
        "filter",
        "keyBy",
        "assignTimestampsAndWatermarks",
        "assignTimestamps",
        "union",
        "name",
        "uid",
        "setParallelism",
        "setMaxParallelism",
        "rebalance",
        "rescale",
        "shuffle",
        "forward",
        "broadcast",
        "global",
        "startNewChain",
        "disableChaining",
        "slotSharingGroup",
        "returns",
        "inProcessingTime",
        "inEventTime",
        "sideOutputLateData",
        "setDescription",
        "setBufferTimeout",
        "setUidHash",
        "partitionCustom",
        "assignAscendingTimestamps",
    ]
)
"""The calls on a stream whose result has the same events."""

_STREAMS_ONLY = SAME_EVENTS & {"keyBy", "assignTimestampsAndWatermarks", "assignTimestamps"}


def called(walker: Expressions, stream: Stream, call: Call) -> Stream:
    """Return what a call on a stream returns."""
    others = tuple(a for a in call.arguments if isinstance(a, Stream))
    kind = stream.event_type if call.method in SAME_EVENTS else None
    made = Stream(call, (stream, *others), kind)
    if call.method in SAME_EVENTS:
        made.pattern = stream.pattern
    walker.streams.append(made)
    return made


def cep_pattern(walker: Expressions, call: Call) -> Stream:
    """Return the stream of a pattern's matches."""
    first = call.arguments[0] if call.arguments else None
    source = first if isinstance(first, Stream) else _given(walker, call)
    pattern = call.arguments[1] if len(call.arguments) > 1 else None
    link = pattern if isinstance(pattern, Link) else None
    if link is not None:
        link.event_type = link.event_type or source.event_type
        source.event_type = source.event_type or link.event_type
    made = Stream(call, (source,), source.event_type, pattern=link)
    walker.streams.append(made)
    return made


def built(walker: Expressions, value: Made, call: Call) -> Value | None:
    """Return what a call on an environment, or on a builder, returns."""
    if call.method in SOURCES:
        return _source(walker, call)
    if call.method in STATEMENTS or any(isinstance(a, Stream) for a in call.arguments):
        return consumed(walker, value, call)
    if call.method in _STREAMS_ONLY and "." in value.type:
        return called(walker, made_elsewhere(walker, value), call)
    if value.type.startswith("StreamExecutionEnvironment"):
        walker.settings.append(call)
        return value if call.method == "getConfig" else None
    return attrs.evolve(value, calls=(*value.calls, call))


def consumed(walker: Expressions, value: Value, call: Call) -> Value | None:
    """Return what a call on something unknown returns, if that is about streams."""
    if call.method in SOURCES:
        return _source(walker, call)
    streams = tuple(a for a in call.arguments if isinstance(a, Stream))
    if (call.method in STATEMENTS and call.arguments) or streams:
        made = Stream(call, streams)
    elif call.method in _STREAMS_ONLY and isinstance(value, Unknown):
        return called(walker, _given(walker, call), call)
    else:
        if call.method.startswith(("setStreamTime", "enableCheckpoint")):
            walker.settings.append(call)
        return None
    walker.streams.append(made)
    return made


def _source(walker: Expressions, call: Call) -> Stream:
    made = Stream(call)
    first = call.arguments[0] if call.arguments else None
    if call.method in ("fromElements", "fromData", "fromCollection"):
        listed = first.value if isinstance(first, Constant) else None
        elements = listed if isinstance(listed, tuple) else call.arguments
        types = {element.type if isinstance(element, Made) else None for element in elements}
        made.event_type = types.pop() if len(types) == 1 else None  # of several, the pattern's
    walker.streams.append(made)
    return made


def made_elsewhere(walker: Expressions, value: Made) -> Stream:
    """Return the stream that a method returns which is not in the sources."""
    made = Stream(Call("elsewhere", (), value.code))
    walker.streams.append(made)
    return made


def _given(walker: Expressions, call: Call) -> Stream:
    """Return a stream of which nothing is known."""
    made = Stream(Call("elsewhere", (), call.code))
    walker.streams.append(made)
    return made
