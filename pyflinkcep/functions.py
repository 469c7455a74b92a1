# SPDX-License-Identifier: Apache-2.0
"""The functions of users: what they implement, their names in errors, life cycle, and adapters."""

from __future__ import annotations

import inspect
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from inspect import unwrap
from pathlib import PurePath
from typing import Any, Protocol

import attrs

from pyflinkcep.errors import (
    CepError,
    CepRuntimeError,
    FunctionError,
    InvalidArgumentError,
    MissingConditionError,
    NotSupportedError,
    nearest_names,
)


def function_name(function: Any) -> str:
    """
    Return the name, file and line of a function, or object with a method, for errors.

    Examples
    --------
    >>> function_name(len)
    'len'
    >>> function_name(function_name).split(":")[0]
    'function_name at functions.py'
    """
    if isinstance(function, partial):
        return f"partial of {function_name(function.func)}"
    own = function if hasattr(function, "__qualname__") else type(function)
    name = str(own.__qualname__).rsplit("<locals>.", 1)[-1]
    place = _place(own)
    if not place:
        return name
    return f"{'lambda' if name.endswith('<lambda>') else name} at {place}"


def _place(function: Any) -> str:
    """Return the file and line of a function, or of the first method of a class."""
    members = vars(function).values() if isinstance(function, type) else [function]
    codes = [getattr(unwrap(member), "__code__", None) for member in members]
    places = [(c.co_firstlineno, _file(c.co_filename)) for c in codes if c is not None]
    return "{1}:{0}".format(*min(places)) if places else ""


def _file(path: str) -> str:
    """Return the name of a file; of a notebook's cell the number, if this is its process."""
    name = PurePath(path).name
    if not (name.startswith("<ipython-input-") or "ipykernel" in path):
        return name
    cells: dict[str, int] = {}
    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        cells = getattr(getattr(shell, "compile", None), "_filename_map", cells)
    return f"cell [{cells[path]}]" if path in cells else "a notebook cell"


def no_such_column(name: str, columns: Sequence[str]) -> str:
    """
    Return the message for a name that is not a column.

    Examples
    --------
    >>> no_such_column("prise", ["id", "price"])
    "no column 'prise'; did you mean 'price'? The columns are ['id', 'price']"
    """
    near = nearest_names(name, columns, 3)
    meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    return f"no column {name!r}{meant} The columns are {list(columns)}"


class RuntimeContext:
    """
    What a rich function can know about its task.

    Parameters
    ----------
    taskName : str
        A name for the running pattern.
    indexOfThisSubtask : int, at least 0
        The number of the partition.

    Notes
    -----
    Ports ``CepRuntimeContext`` (Flink 2.3.0): as there, a pattern's functions cannot have state or
    accumulators.
    """

    def __init__(self, taskName: str = "CEP", indexOfThisSubtask: int = 0) -> None:
        self._taskName = taskName
        self._index = indexOfThisSubtask

    def getTaskName(self) -> str:
        """Return the name of the running pattern."""
        return self._taskName

    def getIndexOfThisSubtask(self) -> int:
        """Return the number of the partition, from 0."""
        return self._index

    def getState(self, *_: Any) -> Any:
        """Raise: state is not supported."""
        raise NotSupportedError("State is not supported.", "use the events of the match instead")

    getListState = getMapState = getReducingState = getAggregatingState = getState

    def addAccumulator(self, *_: Any) -> Any:
        """Raise: accumulators are not supported."""
        raise NotSupportedError("Accumulators are not supported.", "count on the resulting rows")

    getAccumulator = addAccumulator


class RichFunction:
    """
    A function with a life cycle.

    ``setRuntimeContext`` and ``open`` are called on the worker before the first event,
    ``close`` after the last.
    """

    _runtimeContext: RuntimeContext | None = None

    def setRuntimeContext(self, context: RuntimeContext) -> None:
        """Keep the context for :meth:`getRuntimeContext`."""
        self._runtimeContext = context

    def getRuntimeContext(self) -> RuntimeContext:
        """Return the context; raise CepRuntimeError before ``open``."""
        if self._runtimeContext is None:
            raise CepRuntimeError(
                "The runtime context has not been initialized.",
                "ask for it in open() or later, not in __init__",
            )
        return self._runtimeContext

    def open(self, context: RuntimeContext | None = None) -> None:
        """Prepare for work; nothing by default."""

    def close(self) -> None:
        """Release what ``open`` acquired; nothing by default."""


class RichFunctions(RichFunction):
    """User code made of several parts, to which it passes its life cycle."""

    def _parts(self) -> Sequence[object]:
        raise NotImplementedError

    def setRuntimeContext(self, context: RuntimeContext) -> None:
        """Pass the context to every part that needs one."""
        super().setRuntimeContext(context)
        for part in self._rich():
            part.setRuntimeContext(context)

    def open(self, context: RuntimeContext | None = None) -> None:
        """Open every part that has a life cycle."""
        for part in self._rich():
            part.open(context)

    def close(self) -> None:
        """Close every part that has a life cycle."""
        for part in self._rich():
            part.close()

    def _rich(self) -> Iterator[RichFunction]:
        return (part for part in self._parts() if isinstance(part, RichFunction))


class _Openable(Protocol):
    def open(self, context: RuntimeContext) -> None: ...

    def close(self) -> None: ...


@contextmanager
def opened(user_code: _Openable, context: RuntimeContext, what: str) -> Iterator[None]:
    """Open user code for the duration of a ``with``, and close it in any case."""
    try:
        user_code.open(context)
    except Exception as cause:
        with suppress(Exception):  # close what was opened; the first error is the one to report
            user_code.close()
        raise _failure(cause, f"{what} could not be opened") from cause
    try:
        yield
    finally:
        try:
            user_code.close()
        except Exception as cause:
            raise _failure(cause, f"{what} could not be closed") from cause


def _failure(cause: Exception, message: str) -> CepError:
    if isinstance(cause, CepError):
        return cause
    return CepRuntimeError(f"{message}. {type(cause).__name__}: {cause}")


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
    """
    Turn each match into one row.

    Examples
    --------
    >>> class Alert(PatternSelectFunction):
    ...     def select(self, match):
    ...         return match["ok"][0].user, len(match["fail"])
    """

    @abstractmethod
    def select(self, pattern: Match) -> Any:
        """Return the row for a match: a tuple, dict or Row of the output schema."""


class PatternFlatSelectFunction(ABC):
    """
    Turn each match into any number of rows.

    Examples
    --------
    >>> class Failures(PatternFlatSelectFunction):
    ...     def flatSelect(self, match, out):
    ...         for event in match["fail"]:
    ...             out.collect((event.user, event.ts))
    """

    @abstractmethod
    def flatSelect(self, pattern: Match, out: Collector) -> Iterable[Any] | None:
        """Put the rows for a match into `out`, or return or yield them."""


class PatternTimeoutFunction(ABC):
    """
    Turn each timed-out partial match into one row of a side output.

    Examples
    --------
    >>> class GaveUp(PatternTimeoutFunction):
    ...     def timeout(self, match, timeoutTimestamp):
    ...         return match["fail"][0].user, timeoutTimestamp
    """

    @abstractmethod
    def timeout(self, pattern: Match, timeoutTimestamp: int) -> Any:
        """Return the row; `timeoutTimestamp` is the end of the window in epoch milliseconds."""


class PatternFlatTimeoutFunction(ABC):
    """
    Turn each timed-out partial match into any number of rows of a side output.

    Examples
    --------
    >>> class Unanswered(PatternFlatTimeoutFunction):
    ...     def timeout(self, match, timeoutTimestamp, out):
    ...         for event in match["fail"]:
    ...             out.collect((event.user, timeoutTimestamp))
    """

    @abstractmethod
    def timeout(
        self, pattern: Match, timeoutTimestamp: int, out: Collector
    ) -> Iterable[Any] | None:
        """Put the rows into `out`, or return or yield them; the time is in epoch milliseconds."""


class RichPatternSelectFunction(RichFunction, PatternSelectFunction):
    """
    A :class:`PatternSelectFunction` with a life cycle.

    Examples
    --------
    >>> class Named(RichPatternSelectFunction):
    ...     def open(self, context=None):
    ...         self.names = {1: "ann"}  # read from a file, once for each task
    ...
    ...     def select(self, match):
    ...         return (self.names[match["a"][0].id],)
    """


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

    Examples
    --------
    >>> class Alerts(PatternProcessFunction):
    ...     def processMatch(self, match, ctx, out):
    ...         out.collect((match["ok"][0].user, ctx.timestamp()))
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
    """
    A mixin for :class:`PatternProcessFunction` that receives timed-out partial matches.

    Examples
    --------
    >>> gave_up = OutputTag("gave up", "user string")
    >>> class Both(PatternProcessFunction, TimedOutPartialMatchHandler):
    ...     outputTags = (gave_up,)
    ...
    ...     def processMatch(self, match, ctx, out):
    ...         out.collect((match["ok"][0].user,))
    ...
    ...     def processTimedOutMatch(self, match, ctx):
    ...         ctx.output(gave_up, (match["fail"][0].user,))
    """

    @abstractmethod
    def processTimedOutMatch(self, match: Match, ctx: ProcessContext) -> None:
        """Handle one timed-out partial match; results go to side outputs only."""


OnMatch = Callable[[Match, Collector], Any]
OnTimeout = Callable[[Match, int, Collector], Any]


def collect_returned(returned: Any, out: Collector, function: str) -> None:
    """
    Collect the rows that a function returned or yielded, after those that it put into `out`.

    A None among them is not a row, as in ``[out.collect(row) for row in rows]``; one row alone, a
    tuple, dict or Row, is refused.
    """
    if returned is None or (isinstance(returned, tuple) and not any(map(_is_given, returned))):
        return
    one_row = isinstance(returned, tuple | Mapping)
    if one_row or not isinstance(returned, Iterable) or _is_text_or_table(returned):
        what = "one row" if one_row else type(returned).__name__
        raise FunctionError(
            f"{function}: expected None or an iterable of rows, got {what}: {returned!r:.300}",
            "return a list of rows, yield each row, or write out.collect(row)",
        )
    for row in returned:
        if row is not None:
            out.collect(row)


def _is_given(value: object) -> bool:
    return value is not None


def _is_text_or_table(value: object) -> bool:
    """Whether iterating over a value would not give rows."""
    return isinstance(value, str | bytes | bytearray) or hasattr(value, "columns")


class FunctionAdapter(RichFunctions, PatternProcessFunction):
    """
    A process function around a select or flatSelect function.

    Ports ``PatternSelectAdapter`` and ``PatternFlatSelectAdapter`` (Flink 2.3.0).
    """

    def __init__(self, function: Any, on_match: OnMatch) -> None:
        self._functions = [function]
        self._on_match = on_match

    def _parts(self) -> Sequence[object]:
        return self._functions

    def processMatch(
        self, match: Match, ctx: ProcessContext, out: Collector
    ) -> Iterable[Any] | None:
        """Call the user's function; return what it returns besides the rows in `out`."""
        rows: Iterable[Any] | None = self._on_match(match, out)
        return rows

    def __repr__(self) -> str:
        return function_name(self._functions[0])


class TimeoutFunctionAdapter(FunctionAdapter, TimedOutPartialMatchHandler):
    """
    The same with a timeout function, whose rows go to a side output.

    Ports ``PatternTimeoutSelectAdapter`` and ``PatternTimeoutFlatSelectAdapter`` (Flink 2.3.0).
    """

    def __init__(
        self,
        function: Any,
        on_match: OnMatch,
        timeout_function: Any,
        on_timeout: OnTimeout,
        tag: OutputTag,
    ) -> None:
        super().__init__(function, on_match)
        self._functions.append(timeout_function)
        self._on_timeout = on_timeout
        self._tag = tag
        self.outputTags = (tag,)

    def processTimedOutMatch(self, match: Match, ctx: ProcessContext) -> None:
        """Call the user's timeout function."""
        out = _SideCollector(ctx, self._tag)
        returned = self._on_timeout(match, ctx.timestamp(), out)
        collect_returned(returned, out, function_name(self._functions[-1]))


class _SideCollector:
    def __init__(self, ctx: ProcessContext, tag: OutputTag) -> None:
        self._ctx = ctx
        self._tag = tag

    def collect(self, record: Any) -> None:
        self._ctx.output(self._tag, record)


def select_adapter(
    function: Any, tag: OutputTag | None = None, timeout_function: Any = None
) -> PatternProcessFunction:
    """Wrap a select function, and a timeout function if a tag is given."""
    select = _method(function, PatternSelectFunction, "select", "(match)")

    def on_match(match: Match, out: Collector) -> None:
        out.collect(select(match))

    if tag is None:
        return FunctionAdapter(function, on_match)
    timeout = _method(timeout_function, PatternTimeoutFunction, "timeout", "(match, timestamp)")

    def on_timeout(match: Match, timestamp: int, out: Collector) -> None:
        out.collect(timeout(match, timestamp))

    return TimeoutFunctionAdapter(function, on_match, timeout_function, on_timeout, tag)


def flat_select_adapter(
    function: Any, tag: OutputTag | None = None, timeout_function: Any = None
) -> PatternProcessFunction:
    """Wrap a flatSelect function, and a flat timeout function if a tag is given."""
    flat_select = _method(function, PatternFlatSelectFunction, "flatSelect", "(match, out)")
    if tag is None:
        return FunctionAdapter(function, flat_select)
    timeout = _method(
        timeout_function, PatternFlatTimeoutFunction, "timeout", "(match, timestamp, out)"
    )
    return TimeoutFunctionAdapter(function, flat_select, timeout_function, timeout, tag)


def as_process_function(function: Any) -> PatternProcessFunction:
    """Return a process function unchanged, and wrap a callable of (match, ctx, out)."""
    if isinstance(function, PatternProcessFunction):
        return function
    if callable(function) and not isinstance(function, type):
        check_arguments(function, "(match, ctx, out)")
        return _CallableProcessFunction(function)
    raise InvalidArgumentError(
        f"expected a process function, got {function!r}",
        "pass a PatternProcessFunction object or a function of (match, ctx, out)",
    )


class _CallableProcessFunction(PatternProcessFunction):
    def __init__(
        self, function: Callable[[Match, ProcessContext, Collector], Iterable[Any] | None]
    ) -> None:
        self._function = function

    def processMatch(
        self, match: Match, ctx: ProcessContext, out: Collector
    ) -> Iterable[Any] | None:
        return self._function(match, ctx, out)

    def __repr__(self) -> str:
        return function_name(self._function)


def _method(function: Any, kind: type, name: str, arguments: str) -> Callable[..., Any]:
    if function is None:
        raise MissingConditionError(f"{name}(None)", f"pass a {kind.__name__} or a function")
    if isinstance(function, kind):
        method: Callable[..., Any] = getattr(function, name)
        return method
    if callable(function) and not isinstance(function, type):
        check_arguments(function, arguments)
        return function  # type: ignore[no-any-return]
    raise InvalidArgumentError(
        f"expected a {kind.__name__}, got {function!r}",
        "pass an object of that class, or a function",
    )


def check_arguments(function: Callable[..., Any], arguments: str, what: str = "") -> None:
    """Refuse a function with other arguments; builtins without a signature are accepted."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments.split(","))
    except TypeError as cause:
        raise InvalidArgumentError(
            f"{what}{function_name(function)} cannot be called with {arguments}: {cause}",
            f"write a function of {arguments}",
        ) from cause
