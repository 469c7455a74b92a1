# SPDX-License-Identifier: Apache-2.0
"""Bad input that can be known before the job: refused with pattern, stage and column named."""

from __future__ import annotations

from typing import Any

import pandas
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession, types
from pyspark.sql import functions as F

from pyflinkcep import (
    CEP,
    InputError,
    InvalidArgumentError,
    MalformedPatternException,
    NotSupportedError,
    OutputTag,
    Pattern,
    PatternProcessFunction,
    keyBy,
)
from pyflinkcep.errors import MissingConditionError
from tests.spark.support import a_then_b, columns, configured, events, ids, on


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    """Return events of one user, a match among them."""
    return events(spark, "u:a u:b")


REFUSED: dict[str, tuple[Any, str, str]] = {
    "missing key": (
        lambda df: on(df, a_then_b(), "usr"),
        "key column 'usr' is not among the columns ['ts', 'user', 'name', 'price']",
        "did you mean 'user'?",
    ),
    "missing field": (
        lambda df: on(df, a_then_b(), "usr.id"),
        "key column 'usr' is not among the columns ['ts', 'user', 'name', 'price']",
        "did you mean 'user'?",
    ),
    "column without a type": (
        lambda df: on(columns(df, arr="array()"), a_then_b()),
        "column 'arr' is array<void>, which Spark cannot hand to Python",
        "cast it",
    ),
    "key without a type": (
        lambda df: on(df, a_then_b(), F.expr("array()")),
        "key column 'array()' is array<void>, which Spark cannot hand to Python",
        "cast it",
    ),
    "column of a Row's own": (
        lambda df: on(columns(df, __fields__="1"), a_then_b()),
        "a column is named '__fields__'",
        "rename it",
    ),
    "no field": (
        lambda df: on(df, a_then_b(), "user.id"),
        "key user.id cannot be computed: ",
        "the columns are",
    ),
    "aggregate key": (
        lambda df: on(df, a_then_b(), F.count("user")),
        "key Column<'count(user)'> cannot be computed: [MISSING_GROUP_BY]",
        "the columns are",
    ),
    "key of many rows": (
        lambda df: on(df, a_then_b(), F.explode(F.array("ts", "ts"))),
        "key Column<'explode(array(ts, ts))'> cannot be computed: [UNSUPPORTED_GENERATOR",
        "the columns are",
    ),
    "key of many columns": (
        lambda df: on(df, a_then_b(), F.col("*")),
        "key Column<'*'> is 4 columns",
        "name them one by one",
    ),
    "repeated key": (
        lambda df: on(df, a_then_b(), "user", "user"),
        "the key ['user', 'user'] names a column twice",
        "",
    ),
    "missing time": (
        lambda df: on(df, a_then_b(), time="tss"),
        "time column 'tss' is not among the columns",
        "did you mean 'ts'?",
    ),
    "time of another case": (
        lambda df: on(df, a_then_b(), time="TS"),
        "time column 'TS' is not spelled as in ['ts', 'user', 'name', 'price']",
        "",
    ),
    "no time": (lambda df: CEP.pattern(df, a_then_b()), "no column of event times", "inEventTime"),
    "time no name": (
        lambda df: on(df, a_then_b(), time=F.col("ts")),
        "inEventTime: expected a column's name",
        "",
    ),
    **{
        f"time of type {kind}": (
            lambda df, kind=kind: on(columns(df, at=f"cast(null as {kind})"), a_then_b(), time="at"),
            "time column 'at': expected timestamp, timestamp_ntz or bigint "
            "(epoch milliseconds)",
            "cast it",
        )
        for kind in ("int", "double", "string", "date", "boolean", "decimal(20,0)")
    },
    "columns there twice": (
        lambda df: on(df.withColumn("NAME", F.lit(1)).select("*", F.lit(1).alias("Name")), a_then_b()),
        "the columns",
        "an event's fields are found by name",
    ),
    "reserved name": (
        lambda df: on(columns(df, __cep_bits="1"), a_then_b()),
        "the column names ['__cep_bits'] begin with '__cep_'",
        "rename them",
    ),
    "type without Arrow": (
        lambda df: on(columns(df, span="interval '1' year"), a_then_b()),
        "column 'span' is interval year, which Spark cannot hand to Python",
        "drop the column",
    ),
    "condition on nothing": (
        lambda df: on(df, a_then_b(b="nam = 'b'")),
        "stage 'b': the condition \"nam = 'b'\" cannot be evaluated: [UNRESOLVED_COLUMN",
        "the columns are ['ts', 'user', 'name', 'price']",
    ),
    "Column that is none of the events": (
        lambda df: on(df, a_then_b(b=F.col("nam") > 1)),
        "stage 'b': the condition ",
        "the columns are ['ts', 'user', 'name', 'price']",
    ),
    "condition that is no SQL": (
        lambda df: on(df, a_then_b("name = ")),
        "stage 'a': the condition 'name = ' cannot be evaluated: ",
        "complete the condition",
    ),
    "condition of a wrong type": (
        lambda df: on(df, a_then_b(b=F.col("price") + 1)),
        "expected boolean, got double",
        "compare it with a value",
    ),
    "aggregate condition": (
        lambda df: on(df, a_then_b("any_value(name) > 'a'")),
        "stage 'a': the condition \"any_value(name) > 'a'\" cannot be evaluated: [MISSING_GROUP_BY]",
        "the columns are",
    ),
    "column of a stage": (
        lambda df: on(df, a_then_b(b="price > a.price")),
        "stage 'b': the condition 'price > a.price' cannot be evaluated: [UNRESOLVED_COLUMN",
        "'a' is a stage: name one of its events, for example last(a.column)",
    ),
    "unknown column of a stage": (
        lambda df: on(df, a_then_b(b="price > last(a.prize)")),
        "stage 'b': the condition 'price > last(a.prize)' cannot be evaluated: [UNRESOLVED_COLUMN",
        "the columns are",
    ),
    "array of a stage": (
        lambda df: on(columns(df, xs="array(price)"), a_then_b(b="last(a.xs) is null")),
        "stage 'b': the condition 'last(a.xs) is null': 'xs' is array<double>",
        "use a number",
    ),
    "collated string of a stage": (
        lambda df: on(columns(df, c="name collate UTF8_LCASE"), a_then_b(b="last(a.c) = 'A'")),
        "is string collate UTF8_LCASE",
        "use lower(",
    ),
    "types of a stage": (
        lambda df: on(df, a_then_b(b="last(a.name) > price")),
        "'last(a.name) > price' puts string and double together",
        "cast one of them",
    ),
    "number over a stage": (
        lambda df: on(df, a_then_b(b="avg(a.price)")),
        "stage 'b': the condition 'avg(a.price)': expected boolean, got double",
        "compare it with a value",
    ),
    "condition of many rows": (
        lambda df: on(df, a_then_b("explode(array(true))")),
        "stage 'a': the condition 'explode(array(true))' cannot be evaluated: [UNSUPPORTED_GEN",
        "the columns are",
    ),
    "subtype": (
        lambda df: on(df, Pattern.begin("s").subtype(int)),
        "stage 's': subtype(int) holds for no event on Spark, where events are Rows",
        "write a condition on a column",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_the_job(frame: DataFrame, case: str) -> None:
    """An InputError as soon as a result is asked for, with the pattern in it and a way out."""
    make, message, hint = REFUSED[case]
    with pytest.raises(InputError) as caught:
        make(frame).select(ids, "text string")

    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "pattern " in caught.value.message


def test_names_that_differ_in_case(spark: SparkSession, frame: DataFrame) -> None:
    """They are one name unless the session says that case matters."""
    both = frame.toDF("ts", "user", "name", "NAME")
    with configured(spark, {"spark.sql.caseSensitive": "true"}):
        found = on(both, a_then_b(), "user").select(lambda m: m["a"][0].NAME, "n double").collect()
    with pytest.raises(InputError, match=r"the columns \['name', 'NAME'\] appear twice"):
        on(both, a_then_b(), "user").toDF()

    assert found == [Row(n=0.0)]


def test_refused_patterns(frame: DataFrame) -> None:
    """Flink's refusals come before the job too."""
    endless = Pattern.begin("a").notFollowedBy("n")

    with pytest.raises(MalformedPatternException, match="NotFollowedBy is not supported"):
        on(frame, endless).toDF()
    with pytest.raises(
        NotSupportedError, match="pattern a ⇒ b: processing time is not available on a bounded"
    ):
        CEP.pattern(frame, a_then_b()).inProcessingTime().toDF()


class Undeclared(PatternProcessFunction):
    """Writes to a tag that it does not list."""

    def processMatch(self, match: Any, ctx: Any, out: Any) -> None:
        ctx.output(OutputTag("other"), (1,))


class WrongTags(Undeclared):
    """Lists what are no tags."""

    outputTags = ("x",)  # type: ignore[assignment]


class SameTags(Undeclared):
    """Lists two tags of one name."""

    outputTags = (OutputTag("x", "a int"), OutputTag("X", "b string"))


class TagWithoutSchema(Undeclared):
    """Lists a tag without a schema."""

    outputTags = (OutputTag("x"),)


def nothing() -> None:
    """Take no arguments."""


MAIN = OutputTag("main", "x int")
ARGUMENTS: dict[str, tuple[Any, type[Exception], str]] = {
    "no function": (lambda s: s.select(None, "x int"), MissingConditionError, r"select\(None\)"),
    "no callable": (lambda s: s.select("f", "x int"), InvalidArgumentError, "expected a Pattern"),
    "a class": (lambda s: s.process(Undeclared, "x int"), InvalidArgumentError, "expected a process"),
    "select(f())": (lambda s: s.select(nothing, "x int"), InvalidArgumentError, r"with \(match\)"),
    "flatSelect(f())": (
        lambda s: s.flatSelect(nothing, "x int"),
        InvalidArgumentError,
        r"with \(match, out\)",
    ),
    "process(f())": (
        lambda s: s.process(nothing, "x int"),
        InvalidArgumentError,
        r"with \(match, ctx, out\)",
    ),
    "timeout(f())": (
        lambda s: s.select(OutputTag("t", "x int"), nothing, ids, "x int"),
        InvalidArgumentError,
        r"with \(match, timestamp\)",
    ),
    "no schema": (lambda s: s.select(ids), InvalidArgumentError, r"takes \(function, schema\)"),
    "wrong schema": (
        lambda s: s.select(ids, "x nonsense"),
        InvalidArgumentError,
        "schema of the output is 'x nonsense'",
    ),
    "schema of nothing": (
        lambda s: s.select(ids, ""), InvalidArgumentError, "schema of the output has no columns",
    ),
    "schema with a name twice": (
        lambda s: s.select(ids, "x int, y int, x int"),
        InvalidArgumentError,
        "the schema of the output has two columns named 'x'",
    ),
    "schema with a name twice inside": (
        lambda s: s.select(ids, "x array<struct<y: int, y: int>>"),
        InvalidArgumentError,
        "two columns named 'y'",
    ),
    "schema of a type": (lambda s: s.select(ids, int), InvalidArgumentError, "schema of the output"),
    "tag named main": (lambda s: s.select(MAIN, lambda m, at: 1, ids, "x int"), InvalidArgumentError, "'main'"),
    "tag named Tag": (lambda s: s.toDF(OutputTag("Tag")), InvalidArgumentError, "named 'Tag'"),
    "tag named main in toDF": (lambda s: s.toDF(OutputTag("Main")), InvalidArgumentError, "'Main'"),
    "late tag named main": (
        lambda s: s.sideOutputLateData(OutputTag("main")).toDF(),
        InvalidArgumentError,
        "'main'",
    ),
    "no late tag": (lambda s: s.sideOutputLateData("x"), InvalidArgumentError, "expected an OutputTag"),
    "no tags": (lambda s: s.process(WrongTags(), "x int"), InvalidArgumentError, "expected an OutputTag"),
    "same tags": (lambda s: s.process(SameTags(), "x int"), InvalidArgumentError, "named 'X'"),
    "tag without schema": (
        lambda s: s.process(TagWithoutSchema(), "x int"),
        InvalidArgumentError,
        "schema of side output 'x': expected a DDL string or a StructType, got None",
    ),
    "unknown side output": (
        lambda s: s.select(ids, "x int").getSideOutput(OutputTag("x")),
        InputError,
        "no side output 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ARGUMENTS)
def test_wrong_arguments(frame: DataFrame, case: str) -> None:
    """Functions, schemas and tags that cannot be used are refused before the job, with a hint."""
    make, error, message = ARGUMENTS[case]
    with pytest.raises(error, match=message) as caught:
        make(on(frame, a_then_b(), "user"))

    assert caught.value.hint  # type: ignore[attr-defined]


def test_stages_named_as_key_columns(frame: DataFrame) -> None:
    """toDF() cannot have a stage's column beside the key's of the same name."""
    with pytest.raises(InputError, match=r"two columns named \['user'\]"):
        on(frame, Pattern.begin("User"), "user").toDF()


def test_no_pattern_no_events(frame: DataFrame) -> None:
    """CEP.pattern and keyBy say what they want."""
    for make in (
        lambda: CEP.pattern(frame, "a"),
        lambda: CEP.pattern([1], a_then_b()),
        lambda: CEP.pattern(frame, a_then_b(), "user"),
        lambda: keyBy(frame),
        lambda: keyBy(frame, 1),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            make()  # type: ignore[no-untyped-call]
        assert caught.value.hint
    with pytest.raises(MissingConditionError):
        CEP.pattern(frame, None)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(types, "GeometryType"), reason="Spark has geometries from 4.1 on")
def test_geometries_are_no_keys(spark: SparkSession, frame: DataFrame) -> None:
    """Spark cannot compare a geometry, which is refused while the key can be named."""
    with configured(spark, {"spark.sql.geospatial.enabled": "true"}):  # not by default in Spark 4.1
        places = columns(frame, g="st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')")
        with pytest.raises(InputError, match="key column 'g' is geometry"):
            on(places, a_then_b(), "g").toDF()


class Polars:
    """A frame of a library that need not be installed."""


Polars.__module__ = "polars.dataframe.frame"


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda df: pandas.DataFrame(), "got pandas.", "spark.createDataFrame(df)"),
        (lambda df: Polars(), "got polars.", "df.to_arrow()"),
        (lambda df: pa.table({"x": [1]}), "got pyarrow.", "spark.createDataFrame(table)"),
        (lambda df: df.groupBy("user"), "got pyspark.sql", "keyBy(df, 'user')"),
        (lambda df: [1], "got list", "pyflinkcep.testing.match(pattern, events)"),
        (lambda df: object(), "got object", "spark.createDataFrame("),
    ],
    ids=["pandas", "polars", "Arrow", "groupBy", "list", "object"],
)
def test_what_is_no_dataframe(frame: DataFrame, make: Any, message: str, hint: str) -> None:
    """Anything else in place of a DataFrame is refused, with the way to make a DataFrame of it."""
    for call in (lambda other: CEP.pattern(other, a_then_b()), lambda other: keyBy(other, "user")):
        with pytest.raises(InvalidArgumentError) as caught:
            call(make(frame))

        assert caught.value.message.startswith("expected a Spark DataFrame, got ")
        assert message in caught.value.message
        assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("more", [(), ("text string",)])
@pytest.mark.parametrize("method", ["select", "flatSelect"])
def test_the_old_form_with_timeouts(frame: DataFrame, method: str, more: tuple[str, ...]) -> None:
    """Flink's select(timeoutFunction, function) is recognised, and the new form shown."""
    stream = on(frame, a_then_b())
    with pytest.raises(InvalidArgumentError, match="Flink's old form") as caught:
        getattr(stream, method)(lambda m, at: None, lambda m: None, *more)

    assert f"write {method}(OutputTag(" in (caught.value.hint or "")
