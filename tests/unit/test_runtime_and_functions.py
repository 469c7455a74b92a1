# SPDX-License-Identifier: Apache-2.0
"""The context of user code, and the functions that consume matches."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pyflinkcep import OutputTag
from pyflinkcep.errors import CepRuntimeError, InvalidArgumentError, NotSupportedError
from pyflinkcep.functions import (
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichFunction,
    RichPatternFlatSelectFunction,
    RichPatternSelectFunction,
    RuntimeContext,
    TimedOutPartialMatchHandler,
    function_name,
)


def test_the_context_knows_the_task() -> None:
    """A function may ask for the task's name and the partition's number."""
    context = RuntimeContext("fraud", 3)

    assert (context.getTaskName(), context.getIndexOfThisSubtask()) == ("fraud", 3)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("getState", "State is not supported."),
        ("getListState", "State is not supported."),
        ("getMapState", "State is not supported."),
        ("getReducingState", "State is not supported."),
        ("getAggregatingState", "State is not supported."),
        ("addAccumulator", "Accumulators are not supported."),
        ("getAccumulator", "Accumulators are not supported."),
    ],
)
def test_state_and_accumulators_are_refused(method: str, message: str) -> None:
    """As in Flink a pattern's functions have neither state nor accumulators."""
    with pytest.raises(NotSupportedError) as caught:
        getattr(RuntimeContext(), method)("name")

    assert (caught.value.message, bool(caught.value.hint)) == (message, True)


def test_a_rich_function_gets_its_context() -> None:
    """Before the context is set, asking for it is an error; ``open`` and ``close`` may stay empty."""
    function, context = RichFunction(), RuntimeContext()
    with pytest.raises(CepRuntimeError, match="has not been initialized"):
        function.getRuntimeContext()
    function.setRuntimeContext(context)
    function.open(context)
    function.close()

    assert function.getRuntimeContext() is context


@pytest.mark.parametrize(
    "abstract",
    [
        PatternSelectFunction,
        PatternFlatSelectFunction,
        PatternTimeoutFunction,
        PatternFlatTimeoutFunction,
        PatternProcessFunction,
        TimedOutPartialMatchHandler,
        RichPatternSelectFunction,
        RichPatternFlatSelectFunction,
    ],
)
def test_functions_must_be_written(abstract: Any) -> None:
    """A function class without its method cannot be made."""
    with pytest.raises(TypeError, match="abstract"):
        abstract()


def test_rich_variants_have_a_life_cycle() -> None:
    """The rich function classes and the process function can be opened."""
    rich = [RichPatternSelectFunction, RichPatternFlatSelectFunction, PatternProcessFunction]

    assert [issubclass(cls, RichFunction) for cls in rich] == [True] * 3


def test_tags_are_known_by_name() -> None:
    """Two tags of one name are the same output, whatever schema object they carry."""
    tag = OutputTag("late", "a int")

    assert (tag == OutputTag("late"), tag == OutputTag("other", "a int"), hash(tag)) == (
        True,
        False,
        hash(OutputTag("late")),
    )


def test_tags_pickle() -> None:
    """A tag travels to workers with its schema."""
    copy = pickle.loads(pickle.dumps(OutputTag("late", "a int")))

    assert (copy, copy.schema) == (OutputTag("late"), "a int")


def test_a_process_function_declares_no_side_outputs_by_default() -> None:
    """``outputTags`` is empty unless a subclass sets it."""
    assert PatternProcessFunction.outputTags == ()


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "a int",
        "user string, amount decimal(10, 2) NOT NULL COMMENT 'x, y'",
        "a: int, `b c` array<struct<x: int, y: map<string, int>>>",
        "int",
        "struct<a: int, b: string>",
        "since interval day to second, at timestamp without time zone, s string collate UTF8_LCASE",
        "d double precision, v varchar(3), t timestamp_ntz",
    ],
)
def test_schemas_of_output_tags(schema: str | None) -> None:
    """A tag takes whatever Spark reads as a schema."""
    assert OutputTag("late", schema).schema == schema


@pytest.mark.parametrize(
    "schema", ["foo bar baz", "a int b int", "a int, b", "a int, , b int", "", "a int;"]
)
def test_text_that_is_not_a_schema(schema: str) -> None:
    """Text that cannot be DDL is refused where the tag is made."""
    with pytest.raises(InvalidArgumentError, match="expected columns with their types") as caught:
        OutputTag("late", schema)

    assert caught.value.hint


def test_what_is_no_schema() -> None:
    """So is what is neither text nor a type of Spark's."""
    with pytest.raises(InvalidArgumentError, match=r"OutputTag\('x'\): expected a schema, got 42"):
        OutputTag("x", 42)


@pytest.mark.parametrize("name", ["", None, 3])
def test_output_tags_have_a_name(name: Any) -> None:
    """A tag without a name is refused where it is made."""
    with pytest.raises(InvalidArgumentError, match="OutputTag: expected a name"):
        OutputTag(name)


def test_functions_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function is named by its notebook's cell where the notebook runs, elsewhere as one's."""
    names: dict[str, Any] = {}
    path = "/tmp/ipykernel_77/123.py"
    exec(compile("\nfound = lambda e: e", path, "exec"), names)
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={path: 5}))

    assert function_name(names["found"]) == "lambda at a notebook cell:2"
    monkeypatch.setitem(
        sys.modules,
        "IPython",
        SimpleNamespace(get_ipython=lambda: shell),  # type: ignore[arg-type]
    )
    assert function_name(names["found"]) == "lambda at cell [5]:2"
