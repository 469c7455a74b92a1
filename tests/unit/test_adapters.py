# SPDX-License-Identifier: Apache-2.0
"""Select, flatSelect and timeout functions as process functions."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pyarrow as pa
import pytest

from pyflinkcep import OutputTag
from pyflinkcep.errors import (
    CepRuntimeError,
    FunctionError,
    InvalidArgumentError,
    MissingConditionError,
)
from pyflinkcep.functions import (
    PatternFlatSelectFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichPatternSelectFunction,
    RuntimeContext,
    TimedOutPartialMatchHandler,
    as_process_function,
    collect_returned,
    flat_select_adapter,
    opened,
    select_adapter,
)

TAG = OutputTag("timeouts", "n int")
MATCH = {"a": [1, 2]}


class Rows(list[Any]):
    """A collector that keeps what it gets."""

    def collect(self, record: Any) -> None:
        """Keep."""
        self.append(record)


class Context:
    """A context at a time, with the side outputs it was given."""

    def __init__(self) -> None:
        self.side: list[tuple[str, Any]] = []

    def timestamp(self) -> int:
        """Return the time of the match."""
        return 77

    def currentProcessingTime(self) -> int:
        """Return the clock."""
        return 0

    def output(self, outputTag: OutputTag, value: Any) -> None:
        """Keep."""
        self.side.append((outputTag.name, value))


class Sum(PatternSelectFunction):
    """Adds up."""

    def select(self, pattern: Any) -> Any:
        """Return one row."""
        return (sum(pattern["a"]),)


class Each(PatternFlatSelectFunction):
    """Gives a row for each event."""

    def flatSelect(self, pattern: Any, out: Any) -> None:
        """Return rows."""
        for number in pattern["a"]:
            out.collect((number,))


class Late(PatternTimeoutFunction):
    """Gives the time of the timeout."""

    def timeout(self, pattern: Any, timeoutTimestamp: int) -> Any:
        """Return one row."""
        return (len(pattern["a"]), timeoutTimestamp)


def rows_of(function: PatternProcessFunction) -> list[Any]:
    """Show a match to a process function."""
    out = Rows()
    function.processMatch(MATCH, Context(), out)
    return list(out)


@pytest.mark.parametrize("function", [Sum(), lambda match: (sum(match["a"]),)])
def test_select_gives_one_row(function: Any) -> None:
    """A select function, or a function of the match, gives one row for a match."""
    assert rows_of(select_adapter(function)) == [(3,)]


def _each(match: Any, out: Any) -> None:
    Each().flatSelect(match, out)


@pytest.mark.parametrize("function", [Each(), _each])
def test_flat_select_gives_any_number_of_rows(function: Any) -> None:
    """A flatSelect function puts rows into the collector."""
    assert rows_of(flat_select_adapter(function)) == [(1,), (2,)]


@pytest.mark.parametrize("timeout", [Late(), lambda match, end: (len(match["a"]), end)])
def test_timeouts_go_to_the_side_output(timeout: Any) -> None:
    """A timeout function is given the end of the window; its row goes to the tag's output."""
    function = select_adapter(Sum(), TAG, timeout)
    context = Context()
    assert isinstance(function, TimedOutPartialMatchHandler)
    function.processTimedOutMatch(MATCH, context)

    assert (context.side, rows_of(function), function.outputTags) == (
        [("timeouts", (2, 77))],
        [(3,)],
        (TAG,),
    )


def test_flat_timeouts() -> None:
    """A flat timeout function may give several rows to the side output."""

    def timeout(match: Any, end: int, out: Any) -> None:
        for number in match["a"]:
            out.collect((number, end))

    function = flat_select_adapter(Each(), TAG, timeout)
    context = Context()
    assert isinstance(function, TimedOutPartialMatchHandler)
    function.processTimedOutMatch(MATCH, context)

    assert context.side == [("timeouts", (1, 77)), ("timeouts", (2, 77))]


def _yielding(match: Any, *rest: Any) -> Any:
    rest[-1].collect((0,))
    for number in match["a"]:
        yield (number,)


FLAT: dict[str, tuple[Any, list[Any]]] = {
    "list": (lambda match, out: [(n,) for n in match["a"]], [(1,), (2,)]),
    "map": (lambda match, out: map(str, match["a"]), ["1", "2"]),
    "generator": (_yielding, [(0,), (1,), (2,)]),
    "both": (lambda match, out: [out.collect((1,)), (3,)], [(1,), (3,)]),
    "collect in a list": (lambda match, out: [out.collect((n,)) for n in match["a"]], [(1,), (2,)]),
    "two calls": (lambda match, out: (out.collect((1,)), out.collect((2,))), [(1,), (2,)]),
    "nothing": (lambda match, out: [], []),
}


@pytest.mark.parametrize("case", FLAT)
def test_rows_that_a_function_returns_or_yields(case: str) -> None:
    """What flatSelect, timeout and process functions return or yield are rows, after collected."""
    function, expected = FLAT[case]
    found = []
    for made in (
        flat_select_adapter(function),
        as_process_function(lambda match, ctx, out: function(match, out)),
    ):
        out = Rows()
        collect_returned(made.processMatch(MATCH, Context(), out), out, "f")
        found.append(list(out))
    context = Context()
    timed = flat_select_adapter(Each(), TAG, lambda match, end, out: function(match, out))
    assert isinstance(timed, TimedOutPartialMatchHandler)
    timed.processTimedOutMatch(MATCH, context)

    assert found == [expected, expected]
    assert context.side == [("timeouts", row) for row in expected]


@pytest.mark.parametrize("returned", [("a", 1), {"n": 1}, "rows", 5, False, pa.table({"n": [1]})])
def test_what_is_neither_nothing_nor_rows(returned: Any) -> None:
    """A function that returns one row, a text, a number or a table is refused with a hint."""
    with pytest.raises(FunctionError, match=r"f: expected None or an iterable of rows") as caught:
        collect_returned(returned, Rows(), "f")

    assert "return a list of rows" in str(caught.value.hint)


def test_without_a_tag_there_is_no_timeout_handling() -> None:
    """Only a function that handles timeouts makes the automaton look for them."""
    assert not isinstance(select_adapter(Sum()), TimedOutPartialMatchHandler)


def test_process_functions() -> None:
    """A process function is used as it is, a function of (match, ctx, out) is wrapped."""

    def process(match: Any, ctx: Any, out: Any) -> None:
        out.collect((len(match), ctx.timestamp()))

    wrapped = as_process_function(process)

    assert (rows_of(wrapped), as_process_function(wrapped) is wrapped) == ([(1, 77)], True)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: select_adapter(None), MissingConditionError),
        (lambda: flat_select_adapter(Each(), TAG, None), MissingConditionError),
        (lambda: select_adapter(5), InvalidArgumentError),
        (lambda: select_adapter(Sum), InvalidArgumentError),
        (lambda: select_adapter(lambda: 1), InvalidArgumentError),
        (lambda: flat_select_adapter(lambda match: 1), InvalidArgumentError),
        (lambda: select_adapter(Sum(), TAG, lambda match: 1), InvalidArgumentError),
        (lambda: as_process_function("f"), InvalidArgumentError),
        (lambda: as_process_function(lambda match: 1), InvalidArgumentError),
    ],
)
def test_what_is_no_function_is_refused(make: Any, error: Any) -> None:
    """A missing function, a class, and a function of other arguments are refused with a hint."""
    with pytest.raises(error) as caught:
        make()

    assert caught.value.hint


class Rich(RichPatternSelectFunction):
    """Notes its life cycle, and may fail."""

    def __init__(self, fail_in: str = "") -> None:
        self.calls: list[str] = []
        self.fail_in = fail_in

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call == self.fail_in:
            raise OSError("no disk")

    def open(self, context: RuntimeContext | None = None) -> None:
        """Note."""
        self._note("open")

    def close(self) -> None:
        """Note."""
        self._note("close")

    def select(self, pattern: Any) -> Any:
        """Return the task's name."""
        return self.getRuntimeContext().getTaskName()


def test_rich_functions_are_opened_and_closed() -> None:
    """The adapter hands context, open and close on to the user's rich function."""
    rich, context = Rich(), RuntimeContext("task")
    adapter = select_adapter(rich)
    adapter.setRuntimeContext(context)
    with opened(adapter, context, "the function"):
        rows = rows_of(adapter)

    assert (rows, rich.calls) == (["task"], ["open", "close"])


@pytest.mark.parametrize(("call", "calls"), [("open", 2), ("close", 2)])
def test_a_failing_life_cycle_is_told(call: str, calls: int) -> None:
    """What fails in open or close is an error that keeps its cause; what was opened is closed."""
    rich = Rich(call)
    with (
        pytest.raises(CepRuntimeError, match="the function could not be") as caught,
        opened(select_adapter(rich), RuntimeContext(), "the function"),
    ):
        pass

    assert (type(caught.value.__cause__), len(rich.calls)) == (OSError, calls)


def test_adapters_are_named_after_the_function() -> None:
    """In errors and logs a wrapped function has its own name."""
    line = inspect.getsourcelines(Sum.select)[1]
    assert repr(select_adapter(Sum())) == f"Sum at test_adapters.py:{line}"
    assert re.fullmatch(r"_each at test_adapters\.py:\d+", repr(flat_select_adapter(_each)))
    assert re.fullmatch(r"lambda at test_adapters\.py:\d+", repr(select_adapter(lambda m: m)))


def test_a_function_of_other_arguments_is_named_by_its_line() -> None:
    """A function that cannot be called is named by file and line, not by its address."""
    with pytest.raises(InvalidArgumentError, match=r"^lambda at test_adapters.py:\d+ cannot be"):
        select_adapter(lambda: 1)
