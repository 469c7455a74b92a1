# SPDX-License-Identifier: Apache-2.0
"""What a stream has to do with the matches of a pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyflinkcep.migrate.chains.values import Call, Code, Constant, Made, Stream, Tag, Value
from pyflinkcep.migrate.check.rows import Selected, names_of
from pyflinkcep.migrate.java.source import text_of
from pyflinkcep.migrate.translated import TranslatedFunction
from pyflinkcep.migrate.translation import code_of

__all__ = [
    "RESULTS",
    "applied_by",
    "function_code",
    "plain_values",
    "result_before",
    "result_for_pattern",
    "selected",
    "split_time",
]

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


def plain_values(arguments: Sequence[Value]) -> tuple[object, ...] | None:
    """Return the arguments of a constructor, if all are numbers, texts or booleans."""
    values = [value.value if isinstance(value, Constant) else value for value in arguments]
    known = all(isinstance(value, bool | int | float | str) for value in values)
    return tuple(values) if known else None


def selected(
    call: Call,
    made: Sequence[TranslatedFunction],
    tags: Sequence[Tag],
    constants: Mapping[str, str],
) -> Selected:
    """
    Return what is needed to compare the rows that a call makes of matches.

    Parameters
    ----------
    call : Call
        The call of ``select``, ``flatSelect`` or ``process``.
    made : sequence of TranslatedFunction
        Its function, and the one for timeouts.
    tags : sequence of Tag
        The tags that it is given.
    constants : mapping of str to str
        The constants of tags by their names.
    """
    problem = "not all of their functions are translated" if any(m.stub for m in made) else ""
    if any(m.captured for m in made):
        problem = problem or "their functions depend on what is known at run time alone"
    if len(made) > 1 and not tags:
        problem = problem or "Either has no counterpart: timeouts are a side output"
    names = [tag.name for tag in tags]
    names += [name for m in made for name, _ in m.output_tags if name not in names]
    return Selected(
        call.code.node,
        call.code.source,
        call.method,
        made[0].name or "",
        timeout=(made[1].name or "") if len(made) > 1 else "",
        tag=constants.get(names[0], "") if len(made) > 1 and names else "",
        columns=names_of(made[0].output_type or "value string"),
        tags=tuple(names),
        problem=problem,
    )


def split_time(column: str) -> tuple[str | None, int]:
    """
    Return the column of a time, and how many milliseconds one of it is.

    Examples
    --------
    >>> split_time("seconds * 1000"), split_time("time"), split_time("")
    (('seconds', 1000), ('time', 1), (None, 1))
    """
    name, _, factor = column.partition(" * ")
    return name or None, int(factor or 1)
