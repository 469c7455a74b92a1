# SPDX-License-Identifier: Apache-2.0
"""What a stream has to do with the matches of a pattern."""

from __future__ import annotations

import re

from pyflinkcep.migrate.chains.values import Code, Made, Stream, Tag, Value
from pyflinkcep.migrate.java.source import text_of
from pyflinkcep.migrate.translation import code_of

__all__ = ["RESULTS", "applied_by", "function_code", "result_before", "result_for_pattern"]

RESULTS = frozenset(["select", "flatSelect", "process"])
"""The calls that make rows of matches."""


def applied_by(stream: Stream) -> Stream | None:
    """Return where a pattern was applied, if a stream is that of its matches."""
    while stream.inputs and stream.call.method in _SETTINGS:
        stream = stream.inputs[0]
    return stream if stream.call.method == "pattern" else None


_SETTINGS = frozenset(["inProcessingTime", "inEventTime", "sideOutputLateData"])
_TYPE = re.compile(r"(\w+\.)*(TypeInformation|Types)\b")  # its package may stand before it


def result_before(stream: Stream) -> Stream | None:
    """Return the rows of matches that a stream is made of."""
    while stream.inputs:
        if stream.call.method in RESULTS and applied_by(stream.inputs[0]) is not None:
            return stream
        stream = stream.inputs[0]
    return None


def result_for_pattern(stream: Stream) -> Stream | None:
    """Return the rows of matches that a pattern is applied to with the time of the matches."""
    while stream.inputs:
        if stream.call.method in RESULTS and applied_by(stream.inputs[0]) is not None:
            return stream
        if stream.call.method.startswith("assign"):
            return None
        stream = stream.inputs[0]
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
