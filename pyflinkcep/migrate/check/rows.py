# SPDX-License-Identifier: Apache-2.0
"""The rows that functions make of matches, as the translation has them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from pyflinkcep.functions import (
    OutputTag,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
    as_process_function,
    collect_returned,
    flat_select_adapter,
    select_adapter,
)
from pyflinkcep.migrate.java.project import columns_of
from pyflinkcep.migrate.java.source import Node, Source

Events = Mapping[str, Sequence[Any]]
Timed = Sequence[tuple[Events, int]]


@attrs.frozen(eq=False)
class Selected:
    """What a program makes of matches, as ``select`` is called in Java and in Python."""

    node: Node  # The call in Java
    source: Source  # Its file
    kind: str  # ``select``, ``flatSelect`` or ``process``
    # The names in Python of the functions and of the tag for timeouts.
    function: str
    timeout: str = ""
    tag: str = ""
    columns: tuple[str, ...] = ()  # The columns of the rows
    tags: tuple[str, ...] = ()  # The names of the side outputs
    problem: str = ""  # Why the rows cannot be compared; empty if they can

    def adapter(self, module: Any) -> PatternProcessFunction:
        """Return the translated function of matches."""
        function = getattr(module, self.function)
        function = function() if isinstance(function, type) else function
        if self.kind == "process":
            return as_process_function(function)
        wrap = select_adapter if self.kind == "select" else flat_select_adapter
        if not self.timeout:
            return wrap(function)
        return wrap(function, getattr(module, self.tag), getattr(module, self.timeout))


@attrs.define
class _Output:
    """Collects rows, and those of side outputs, as objects with their columns."""

    columns: tuple[str, ...]
    rows: list[dict[str, Any]] = attrs.field(factory=list)
    now: int = 0

    def collect(self, record: Any) -> None:
        """Take a row."""
        self.rows.append({"row": _named(record, self.columns)})

    def output(self, tag: OutputTag, value: Any) -> None:
        """Take a row of a side output."""
        columns = names_of(tag.schema) if isinstance(tag.schema, str) else ()
        self.rows.append({"row": _named(value, columns), "tag": tag.name})

    def timestamp(self) -> int:
        """Return the time of the match."""
        return self.now

    def currentProcessingTime(self) -> int:  # noqa: N802
        """Return the wall clock."""
        return time.time_ns() // 1_000_000


def names_of(ddl: str) -> tuple[str, ...]:
    """
    Return the columns of a schema.

    Examples
    --------
    >>> names_of("a string, `b c` struct<d:int,e:int>")
    ('a', 'b c')
    """
    names = []
    for column in columns_of(ddl):
        quoted = column.startswith("`")
        names.append(column.split("`")[1] if quoted else column.split(" ", 1)[0])
    return tuple(names)


def _named(record: Any, columns: tuple[str, ...]) -> Any:
    """Return a row as an object with its columns."""
    if isinstance(record, Mapping):
        return record
    if hasattr(record, "asDict"):
        return record.asDict(recursive=True)
    values = record if isinstance(record, tuple) else (record,)
    return dict(zip(columns, values, strict=False))


def translated_rows(
    selected: Selected, module: Any, matches: Timed, timeouts: Timed
) -> list[dict[str, Any]]:
    """Return the rows that the translated functions make."""
    function = selected.adapter(module)
    out = _Output(selected.columns)
    function.open(None)
    for match, now in matches:
        out.now = now
        collect_returned(function.processMatch(match, out, out), out, repr(function))
    if isinstance(function, TimedOutPartialMatchHandler):
        for match, now in timeouts:
            out.now = now
            function.processTimedOutMatch(match, out)
    function.close()
    return out.rows
