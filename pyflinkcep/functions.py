# SPDX-License-Identifier: Apache-2.0
"""The interfaces for consuming matches: select and process functions, and side outputs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.runtime import RichFunction, function_name

Match = Mapping[str, Sequence[Any]]
"""Stage name to events: stages in pattern order, events in arrival order, empty stages absent."""


class Collector(Protocol):
    """Collects the results of a function."""

    def collect(self, record: Any) -> None:
        """Emit one record."""


class RowSchema(Protocol):
    """A ``StructType`` of Spark."""

    def fieldNames(self) -> list[str]:
        """Return the names of the columns."""


class EventComparator(ABC):
    """
    Orders events of equal time.

    A sort key of one event, or a plain function of two events, will do too.

    Notes
    -----
    Ports ``org.apache.flink.cep.EventComparator`` (Flink 2.3.0).

    Examples
    --------
    >>> class ByPrice(EventComparator):
    ...     def compare(self, first, second):
    ...         return first.price - second.price
    """

    @abstractmethod
    def compare(self, first: Any, second: Any) -> int:
        """Return a negative number if `first` comes before `second`, a positive one if after."""


def _check_name(_tag: OutputTag, _attribute: object, name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(
            f"OutputTag: expected a name, got {name!r}", "write OutputTag('late', 'user string')"
        )


def _check_schema(tag: OutputTag, _attribute: object, schema: Any) -> None:
    """Refuse text that cannot be DDL; Spark checks the rest when the tag is used."""
    if schema is None or hasattr(schema, "fieldNames"):
        return
    if not isinstance(schema, str):
        raise InvalidArgumentError(
            f"OutputTag({tag.name!r}): expected a schema, got {schema!r}",
            "write it as 'user string, amount double', or as a StructType",
        )
    flat, before = schema, ""
    while flat != before:
        flat, before = _NESTED.sub("_", flat), flat
    columns = flat.split(",")
    for column in columns:
        found = _COLUMN.fullmatch(column.strip())
        if found is None or (found["type"] is None and len(columns) > 1):
            raise InvalidArgumentError(
                f"OutputTag({tag.name!r}): expected columns with their types, got {column!r}",
                "write the schema as 'user string, amount double'",
            )


_NESTED = re.compile(r"'[^']*'|`[^`]*`|\([^()<>]*\)|<[^()<>]*>")
"""Parts that may contain commas: text, names, type arguments; innermost first."""
_COLUMN = re.compile(
    r"[\w-]+(?P<type>\s*:?\s*[a-z]\w*"
    r"(\s+(not|null|comment|collate|default|generated|with|without|day|hour|minute|second|year"
    r"|month|precision)\b.*)?)?",
    re.IGNORECASE | re.DOTALL,
)
"""A name with a type and options, or a type alone, after removing nested parts."""


@attrs.frozen
class OutputTag:
    """
    The name and schema of a side output.

    Attributes
    ----------
    name : str
        Unique among the outputs of one query.
    schema : str or StructType or None
        The rows' schema, as for PySpark's ``applyInPandas``. None for late data, whose
        rows are the events themselves.

    Raises
    ------
    InvalidArgumentError
        If the name is empty or not a string, or the schema is text that cannot be DDL.

    Notes
    -----
    Ports ``org.apache.flink.util.OutputTag``; the schema replaces Flink's type.

    Examples
    --------
    >>> OutputTag("timeouts", "user string, since timestamp").name
    'timeouts'
    """

    name: str = attrs.field(validator=_check_name)
    schema: str | RowSchema | None = attrs.field(default=None, eq=False, validator=_check_schema)


def check_tag(tag: object) -> None:
    """Refuse anything but an output tag."""
    if not isinstance(tag, OutputTag):
        raise InvalidArgumentError(
            f"expected an OutputTag with a name, got {tag!r}",
            "write OutputTag('name', 'column type, ...')",
        )


class PatternSelectFunction(ABC):
    """Turn each match into one row."""

    @abstractmethod
    def select(self, pattern: Match) -> Any:
        """Return the row for a match: a tuple, dict or Row of the output schema."""


class PatternFlatSelectFunction(ABC):
    """Turn each match into any number of rows."""

    @abstractmethod
    def flatSelect(self, pattern: Match, out: Collector) -> Iterable[Any] | None:
        """Put the rows for a match into `out`, or return or yield them."""


class PatternTimeoutFunction(ABC):
    """Turn each timed-out partial match into one row of a side output."""

    @abstractmethod
    def timeout(self, pattern: Match, timeoutTimestamp: int) -> Any:
        """Return the row; `timeoutTimestamp` is the end of the window in epoch milliseconds."""


class PatternFlatTimeoutFunction(ABC):
    """Turn each timed-out partial match into any number of rows of a side output."""

    @abstractmethod
    def timeout(
        self, pattern: Match, timeoutTimestamp: int, out: Collector
    ) -> Iterable[Any] | None:
        """Put the rows into `out`, or return or yield them; the time is in epoch milliseconds."""


class RichPatternSelectFunction(RichFunction, PatternSelectFunction):
    """A :class:`PatternSelectFunction` with a life cycle."""


class RichPatternFlatSelectFunction(RichFunction, PatternFlatSelectFunction):
    """A :class:`PatternFlatSelectFunction` with a life cycle."""


class ProcessContext(Protocol):
    """What a process function can read, and its access to side outputs."""

    def timestamp(self) -> int:
        """Return the time of the match or timeout, epoch milliseconds."""

    def currentProcessingTime(self) -> int:
        """Return the wall clock, epoch milliseconds."""

    def output(self, outputTag: OutputTag, value: Any) -> None:
        """Emit a row to a side output."""


class PatternProcessFunction(RichFunction, ABC):
    """
    The general consumer of matches: any number of rows, and side outputs.

    Mix in :class:`TimedOutPartialMatchHandler` to see timed-out partial matches too.

    Attributes
    ----------
    outputTags : sequence of OutputTag
        The side outputs that the function writes to, besides those passed to it. Spark must know
        their schemas before the job starts.

    Notes
    -----
    Ports ``org.apache.flink.cep.functions.PatternProcessFunction`` (Flink 2.3.0).
    Differs from Flink: the tags of ``ctx.output`` are declared in `outputTags`.
    """

    outputTags: Sequence[OutputTag] = ()

    @abstractmethod
    def processMatch(
        self, match: Match, ctx: ProcessContext, out: Collector
    ) -> Iterable[Any] | None:
        """Handle one match: put rows into `out`, or return or yield them."""

    def __repr__(self) -> str:
        return function_name(self)


class TimedOutPartialMatchHandler(ABC):
    """A mixin for :class:`PatternProcessFunction` that receives timed-out partial matches."""

    @abstractmethod
    def processTimedOutMatch(self, match: Match, ctx: ProcessContext) -> None:
        """Handle one timed-out partial match; results go to side outputs only."""
