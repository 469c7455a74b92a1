# SPDX-License-Identifier: Apache-2.0
"""The context of user code, and the functions that consume matches."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyflinkcep import OutputTag, Time, local
from pyflinkcep.errors import (
    CepRuntimeError,
    ConditionError,
    InvalidArgumentError,
    NotSupportedError,
)
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
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK, to_milliseconds, wrong_unit


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


# --- what errors say, and what they learn on their way to the user


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            ConditionError("boom", "fix it", stage="a", key="'k'", timestamp_ms=5),
            "boom (stage 'a', key 'k', event time 5 ms)\n\nHint: fix it",
        ),
        (ConditionError("boom"), "boom"),
        (ConditionError("boom", stage="a"), "boom (stage 'a')"),
        (ConditionError("boom", timestamp_ms=0), "boom (event time 0 ms)"),
    ],
)
def test_known_facts_are_in_the_text(error: CepRuntimeError, text: str) -> None:
    """Stage, key and time, for the class may get lost; a time of 0 is known."""
    assert str(error) == text


def test_the_key_is_filled_in_on_the_way() -> None:
    """``at_key`` gives the same error with the key, and keeps type, facts and cause."""
    error = ConditionError("boom", "fix it", stage="a", timestamp_ms=5)
    error.__cause__ = KeyError("x")
    found = error.at_key(("u", 1))

    assert (type(found), found.key, found.stage, found.timestamp_ms, found.__cause__) == (
        ConditionError,
        "('u', 1)",
        "a",
        5,
        error.__cause__,
    )


def test_the_time_is_filled_in_on_the_way() -> None:
    """``at_time`` gives the same error with the event's time."""
    assert ConditionError("boom").at_time(9).timestamp_ms == 9


def test_facts_that_are_known_stay() -> None:
    """The place nearest to the failure knows best."""
    error = ConditionError("boom", key="'first'", timestamp_ms=1)

    assert (error.at_key("second"), error.at_time(2)) == (error, error)


def test_the_pattern_is_filled_in_on_the_way() -> None:
    """``in_pattern`` puts the pattern first among the facts."""
    error = ConditionError("boom", stage="a").in_pattern("a → b").in_pattern("other")

    assert str(error) == "boom (pattern a → b, stage 'a')"


# --- durations and the ends of time


@pytest.mark.parametrize(
    ("duration", "milliseconds"),
    [
        (Time.milliseconds(7), 7),
        (Time.seconds(2), 2_000),
        (Time.minutes(2), 120_000),
        (Time.hours(1), 3_600_000),
        (Time.days(1), 86_400_000),
        (timedelta(microseconds=1999), 1),
        (timedelta(microseconds=-1), -1),
        (timedelta(days=36500), 3_153_600_000_000),
    ],
)
def test_milliseconds(duration: timedelta, milliseconds: int) -> None:
    """A duration counts in whole milliseconds, rounded down."""
    assert to_milliseconds(duration, "x") == milliseconds


@pytest.mark.parametrize("duration", [10, 1.5, "10 s", None])
def test_other_types_are_refused(duration: Any) -> None:
    """A number has no unit, so only a timedelta will do."""
    with pytest.raises(InvalidArgumentError, match="within: expected a timedelta") as caught:
        to_milliseconds(duration, "within")

    assert caught.value.hint


@pytest.mark.parametrize("microseconds", [1, 999])
def test_less_than_a_millisecond_is_refused(microseconds: int) -> None:
    """A window too short to measure is refused: rounded down it would mean no window at all."""
    with pytest.raises(InvalidArgumentError, match="within: expected at least a millisecond"):
        to_milliseconds(timedelta(microseconds=microseconds), "within")


def test_the_ends_of_time_are_those_of_java() -> None:
    """The first and last watermarks are the ends of a 64-bit integer."""
    assert (MIN_WATERMARK, MAX_WATERMARK) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("earliest", "latest", "unit"),
    [
        (1_700_000_000, 1_700_000_050, "epoch seconds"),
        (10**8, 2_678_399_999, "epoch seconds"),
        (1_700_000_000_000_000, 1_700_000_000_000_001, "epoch microseconds"),
        (1_700_000_000_000_000_000, 1_700_000_000_000_000_001, "epoch nanoseconds"),
        (0, 1_700_000_000, None),
        (1, 99_999, None),
        (1_700_000_000, 2_678_400_000, None),
        (1_700_000_000, 1_700_000_000_000, None),
        (1_700_000_000_000, 1_800_000_000_000, None),
        (MIN_WATERMARK + 1, MAX_WATERMARK, None),
        (MAX_WATERMARK, MAX_WATERMARK, None),
    ],
)
def test_units_that_look_wrong(earliest: int, latest: int, unit: str | None) -> None:
    """Times of which all are in January 1970, or all after the year 5000, are of another unit."""
    text = wrong_unit(earliest, latest, "ts")

    assert (text is None) == (unit is None)
    assert unit is None or f"look like {unit}" in str(text)


# --- a session on this machine: with Java, with Sail, or a refusal that names both


ROOT = Path(__file__).parents[2]


@pytest.fixture
def without_java(monkeypatch, tmp_path):
    """Hide Java."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_without_java_and_sail_both_ways_are_named(without_java, monkeypatch, engine):
    """What is missing, how to get Java, and what needs none."""
    monkeypatch.setitem(sys.modules, "pysail", None)

    with pytest.raises(NotSupportedError) as raised:
        local.session(engine)

    assert raised.value.message == "no Java on PATH, and Spark needs Java 17 or later"
    assert "openjdk-17" in raised.value.hint
    assert "pip install 'pyflinkcep[sail]', which needs no Java" in raised.value.hint


def test_sail_without_its_package(monkeypatch):
    """How to install it."""
    monkeypatch.setitem(sys.modules, "pysail", None)

    with pytest.raises(NotSupportedError, match="no pysail in this environment"):
        local.session("sail")


def test_an_old_java_is_none(tmp_path, monkeypatch):
    """A Java that Spark cannot use is reported with its version and place."""
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pysail", None)

    with pytest.raises(NotSupportedError) as raised:
        local.session()

    assert raised.value.message == f"Java 8 at {java}, and Spark needs Java 17 or later"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "flink"}, "engine: expected 'auto', 'spark' or 'sail'"),
        ({"cores": 0}, "expected a whole number of cores"),
        ({"cores": "2"}, "got cores='2'"),
    ],
)
def test_wrong_arguments(arguments, message):
    """They are refused before anything starts."""
    with pytest.raises(InvalidArgumentError, match=message):
        local.session(**arguments)


def test_nothing_is_imported_before_it_is_needed():
    """Neither Spark nor Sail is loaded with the module."""
    code = "import sys, pyflinkcep.local; print({'pysail', 'pyspark'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "set()"
