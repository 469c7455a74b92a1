# SPDX-License-Identifier: Apache-2.0
"""Adapts select, flatSelect and timeout functions to process functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyflinkcep.errors import FunctionError, InvalidArgumentError, MissingConditionError
from pyflinkcep.functions import (
    Collector,
    Match,
    OutputTag,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    ProcessContext,
    TimedOutPartialMatchHandler,
)
from pyflinkcep.runtime import RichFunction, RuntimeContext, function_name

OnMatch = Callable[[Match, Collector], Any]
OnTimeout = Callable[[Match, int, Collector], Any]


def collect_returned(returned: Any, out: Collector, function: str) -> None:
    """
    Collect the rows that a function returned or yielded, after those that it put into `out`.

    Parameters
    ----------
    returned : object
        None, or an iterable of rows; a None among them is not a row, as in
        ``[out.collect(row) for row in rows]``.
    out : Collector
        What they are put into.
    function : str
        The function's name, for errors.

    Raises
    ------
    FunctionError
        If it is neither, or is one row: a tuple, dict or Row.
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


class FunctionAdapter(PatternProcessFunction):
    """
    A process function around a select or flatSelect function.

    Parameters
    ----------
    function : object
        The user's function, for its life cycle and its name.
    on_match : callable
        Calls it for a match.

    Notes
    -----
    Ports ``PatternSelectAdapter`` and ``PatternFlatSelectAdapter`` (Flink 2.3.0).
    """

    def __init__(self, function: Any, on_match: OnMatch) -> None:
        self._functions = [function]
        self._on_match = on_match

    def setRuntimeContext(self, context: RuntimeContext) -> None:
        """Pass the context to the user's functions."""
        super().setRuntimeContext(context)
        for function in self._functions:
            if isinstance(function, RichFunction):
                function.setRuntimeContext(context)

    def open(self, context: RuntimeContext | None = None) -> None:
        """Open the user's functions."""
        for function in self._functions:
            if isinstance(function, RichFunction):
                function.open(context)

    def close(self) -> None:
        """Close the user's functions."""
        for function in self._functions:
            if isinstance(function, RichFunction):
                function.close()

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

    Notes
    -----
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
    """
    Wrap a select function, and a timeout function if a tag is given.

    Parameters
    ----------
    function : PatternSelectFunction or callable
        Returns a row for a match.
    tag : OutputTag, optional
        The side output for the timeout function's rows.
    timeout_function : PatternTimeoutFunction or callable, optional
        Returns a row for (partial match, timeout in epoch milliseconds).
    """
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
