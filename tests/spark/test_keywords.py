# SPDX-License-Identifier: Apache-2.0
"""Every argument of every public function is used, or refused by name: none is ignored."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep import (
    CEP,
    AfterMatchSkipStrategy,
    CepDataFrame,
    CompressedStream,
    Eql,
    OutputTag,
    Pattern,
    PatternStream,
    QueryStream,
    SaseQuery,
    compare,
    diagram,
    elements,
    keyBy,
    matchEql,
    matchId,
    matchMany,
    matchRecognize,
    matchSigma,
    parse,
    seq,
    sigmaRules,
    textTime,
    windowFunnel,
)
from pyflinkcep.charts import durations_chart, funnel_chart, timeline_chart
from pyflinkcep.errors import CepError, NotSupportedError
from pyflinkcep.rules import Rule, SigmaCorrelation, checkRules, readRules
from pyflinkcep.testing import (
    NFATestHarness,
    OperatorTestHarness,
    assertMatches,
    funnel,
    match,
    matchSase,
    trace,
    whyNot,
)

pytestmark = pytest.mark.spark

PATTERN = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'")
QUERY = parse("PATTERN SEQ(a x, b y) WITHIN 5")
EVENT = {"name": "a", "type": "a", "ts": 1, "user": "u"}
SIGMA = """
title: a
name: a
logsource: {category: test}
detection: {selection: {name: a}, condition: selection}
"""
COUNTED = {"type": "event_count", "rules": ["a"], "timespan": "1m", "condition": {"gte": 1}}
CLAUSE = "ORDER BY ts MEASURES A.name AS n PATTERN (A B) DEFINE A AS A.name = 'a'"
OWN_OF_SPARK = {"toDF", "persist", "cache", "unpersist", "withWatermark", "explain"}
"""Methods of a CepDataFrame that hand their arguments to Spark."""


class Wrong:
    """Nothing that any argument could be."""

    def __repr__(self) -> str:
        return "wrong"


Call = tuple[Callable[..., Any], Mapping[str, Any]]
"""A function with arguments that it takes."""


def methods(owner: Any, **given: Mapping[str, Any]) -> Iterator[tuple[str, Call]]:
    """Yield the public methods of an object, with arguments for those that need some."""
    for name, _ in inspect.getmembers(type(owner), inspect.isfunction):
        if not name.startswith(("_", "get")) and (
            not isinstance(owner, CepDataFrame) or name in vars(CepDataFrame)
        ):
            yield f"{type(owner).__name__}.{name}", (getattr(owner, name), given.get(name, {}))


def calls(spark: SparkSession, rules: Path) -> dict[str, Call]:
    """Return the public functions, each with arguments that it takes."""
    frame = spark.createDataFrame(
        [("u", 1, "a", "a")], "user string, ts bigint, name string, type string"
    )
    frame.createOrReplaceTempView("keyword_events")
    timed = frame.withColumn("at", F.timestamp_millis("ts"))
    timed.createOrReplaceTempView("keyword_times")
    keyed = keyBy(frame, "user")
    stream = CEP.pattern(keyed, PATTERN).inEventTime("ts")
    query = CEP.pattern(keyed, QUERY).inEventTime("ts")
    sigma = sigmaRules([SIGMA], {"test": "true"})
    row = {"function": lambda m: (1,), "schema": "n int"}
    rows = {**row, "function": lambda m, out: None}
    tags = {"outputTag": OutputTag("t", "n int"), "timeoutFunction": lambda m, at: (1,)}
    process = {**row, "function": lambda m, ctx, out: None}
    on_match = {"select": row, "flatSelect": rows, "process": process}
    on_match["waiting"] = {"checkpointLocation": "there"}
    on_match["sideOutputLateData"] = {"lateDataOutputTag": OutputTag("late")}
    sql = f"SELECT * FROM keyword_times MATCH_RECOGNIZE ({CLAUSE.replace('ts', 'at')}) AS m"
    found: dict[str, Call] = {
        "CEP.pattern of a pattern": (CEP.pattern, {"input": keyed, "pattern": PATTERN}),
        "CEP.pattern of a query": (CEP.pattern, {"input": keyed, "pattern": QUERY}),
        "CEP.sql": (CEP.sql, {"spark": spark, "text": sql}),
        "CEP.sase": (CEP.sase, {"spark": spark, "text": f"FROM keyword_events {QUERY}"}),
        "matchRecognize": (matchRecognize, {"df": timed, "clause": CLAUSE.replace("ts", "at")}),
        "keyBy": (keyBy, {"dataframe": frame, "columns": "user"}),
        "match": (match, {"pattern": PATTERN, "events": [EVENT]}),
        "trace": (trace, {"pattern": PATTERN, "events": [EVENT]}),
        "whyNot": (whyNot, {"pattern": PATTERN, "events": [EVENT]}),
        "funnel": (funnel, {"pattern": PATTERN, "events": [EVENT]}),
        "windowFunnel": (windowFunnel, {"window": timedelta(1), "conditions": {"a": "n = 1"}}),
        "funnel_chart": (funnel_chart, {"rows": []}),
        "timeline_chart": (timeline_chart, {"matches": [], "time": "ts"}),
        "durations_chart": (durations_chart, {"matches": [], "time": "ts"}),
        "diagram": (diagram, {"pattern": PATTERN}),
        "matchSase": (matchSase, {"query": QUERY, "events": [EVENT]}),
        "matchEql": (matchEql, {"query": "any where true", "events": [EVENT], "timestamp": "ts"}),
        "Eql": (Eql, {"text": "any where true"}),
        "matchMany": (matchMany, {"rules": {"a": PATTERN}, "events": [EVENT]}),
        "matchSigma": (
            matchSigma,
            {"correlation": COUNTED, "events": [EVENT], "rules": {"a": "name = 'a'"}},
        ),
        "matchSigma of rules": (matchSigma, {"correlation": sigma, "events": [EVENT]}),
        "sigmaRules": (sigmaRules, {"source": [SIGMA], "logsources": {"test": "true"}}),
        "CEP.sigma": (CEP.sigma, {"input": frame, "rules": sigma}),
        "SigmaCorrelation": (
            SigmaCorrelation,
            {"correlation": COUNTED, "rules": {"a": "name = 'a'"}},
        ),
        "Rule": (Rule, {"name": "a", "definition": PATTERN}),
        "readRules": (readRules, {"path": rules}),
        "checkRules": (checkRules, {"path": rules}),
        "compare": (compare, {"pattern": PATTERN, "events": [EVENT]}),
        "textTime": (textTime, {"field": "at"}),
        "matchId": (matchId, {"columns": "a"}),
        "CEP.patterns": (CEP.patterns, {"input": frame, "rules": {"a": PATTERN}}),
        "CEP.eql": (CEP.eql, {"input": frame, "query": "any where true"}),
        "assertMatches": (assertMatches, {"actual": [{"a": [1]}], "expected": [{"a": [1]}]}),
        "OperatorTestHarness": (OperatorTestHarness, {"pattern": PATTERN}),
        "NFATestHarness": (NFATestHarness, {"pattern": PATTERN}),
        "OutputTag": (OutputTag, {"name": "a"}),
        "parse": (parse, {"text": str(QUERY)}),
        "seq": (seq, {"components": "A a"}),
        "elements": (elements, {"parts": "A"}),
    }
    found["PatternStream.select, timeouts"] = (stream.select, {**row, **tags})
    found |= methods(stream, **on_match)
    found |= methods(query, **on_match)
    found |= methods(stream.compressed(), aggregate={"texts": "count(a)"})
    found |= methods(
        stream.toDF(OutputTag("t")),
        getSideOutput={"tag": OutputTag("t")},
        flush={"checkpointLocation": "there"},
        withEventTime={"column": "matchTimestamp"},
    )
    found |= methods(
        QUERY,
        where={"condition": "y.n > 1"},
        within={"window": 5},
        same={"attributes": "k"},
        returns={"columns": "x.n"},
        strategy={"name": "skip_till_any_match", "variables": "x"},
        component={"variable": "x"},
        place={"variable": "x"},
        strategy_of={"variable": "x"},
    )
    one = Pattern.begin("a").oneOrMore()
    found |= methods(
        Pattern.begin("a"),
        begin={"name": "a"},
        fromJson={"document": Pattern.begin("a").toJson()},
        where={"condition": "n > 1"},
        or_={"condition": "n > 1"},
        subtype={"subtypeClass": dict},
        within={"windowTime": timedelta(1)},
        next={"name": "b"},
        followedBy={"name": "b"},
        followedByAny={"name": "b"},
        notNext={"name": "b"},
        notFollowedBy={"name": "b"},
        timesOrMore={"times": 2},
        times={"from_": 2},
    )
    found["Pattern.until"] = (one.until, {"untilCondition": "n > 1"})
    for name in ("skipToFirst", "skipToLast"):
        found[name] = (getattr(AfterMatchSkipStrategy, name), {"patternName": "a"})
    return found


INTERNAL = {
    "Pattern.stages", "Pattern.describe", "Pattern.with_conditions",
    "SaseQuery.component", "SaseQuery.place", "SaseQuery.strategy_of",
}  # fmt: skip
"""Methods that this package alone calls."""


def arguments(name: str, call: Call) -> Iterator[tuple[str, dict[str, Any] | None, list[Any]]]:
    """Yield each argument of a function, and the call that has a wrong one."""
    function, given = call
    parameters = inspect.signature(function).parameters
    listed = {n for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL}
    plain = {n: value for n, value in given.items() if n not in listed}
    fixed = [given[n] for n in listed if n in given]
    for argument, parameter in parameters.items():
        if parameter.annotation in ("bool", bool) or isinstance(parameter.default, bool):
            continue
        names = [n for n, p in parameters.items() if n not in listed and p.kind != p.KEYWORD_ONLY]
        if argument in listed:
            yield argument, None, [*(plain[n] for n in names if n in plain), Wrong()]
        elif parameter.kind is parameter.KEYWORD_ONLY and listed:
            yield argument, {argument: Wrong()}, [plain[n] for n in names] + fixed
        elif parameter.kind is parameter.POSITIONAL_ONLY or listed:
            yield argument, None, [Wrong() if n == argument else plain[n] for n in names] + fixed
        else:
            yield argument, {**plain, argument: Wrong()}, []


def test_no_argument_is_ignored(spark: SparkSession, tmp_path: Path) -> None:
    """A wrong value for any argument is an error with a hint; an ignored one would be none."""
    ignored = []
    for name, call in calls(spark, tmp_path).items():
        if name in INTERNAL or name.rsplit(".", 1)[-1] in OWN_OF_SPARK - {"toDF"}:
            continue
        if name == "CepDataFrame.toDF":
            continue
        for argument, keywords, positional in arguments(name, call):
            try:
                call[0](*positional, **(keywords or {}))
            except CepError as error:
                if not error.hint:
                    ignored.append(f"{name}({argument}): no hint")
            except Exception as error:
                ignored.append(f"{name}({argument}): {type(error).__name__}: {error}")
            else:
                ignored.append(f"{name}({argument})")

    assert ignored == [], "\n".join(ignored)


def test_the_other_kinds_keywords(spark: SparkSession) -> None:
    """A query refuses by name what is for patterns, and a pattern what is for queries."""
    frame = spark.range(1)
    for what, pattern, keywords in (
        ("a query", QUERY, {"orderBy": ["id"]}),
        ("a query", QUERY, {"comparator": len}),
        ("a query", QUERY, {"onTooManyPartialMatches": "dropOldest"}),
        ("a pattern", PATTERN, {"type": "id"}),
        ("a pattern", PATTERN, {"output": "onePerStart"}),
    ):
        with pytest.raises(
            NotSupportedError, match=f"{what} does not support {next(iter(keywords))}"
        ) as error:
            CEP.pattern(frame, pattern, **keywords)  # type: ignore[call-overload]
        assert error.value.hint
    with pytest.raises(CepError, match="without maxPartialMatches"):
        CEP.pattern(frame, PATTERN, onTooManyPartialMatches="dropOldest")


def test_what_notebooks_show(spark: SparkSession) -> None:
    """A pattern or query on a DataFrame shows what it is, as text and as a table; no job runs."""
    frame = spark.createDataFrame([("u", 1, "a")], "user string, ts bigint, name string")
    stream = CEP.pattern(keyBy(frame, "user"), PATTERN).inEventTime("ts")
    query = CEP.pattern(frame, QUERY, type="name")

    assert repr(stream) == (
        "PatternStream(pattern: a ⇒ b, input: bounded [user: string, ts: bigint, name: string], "
        "key: user, time: ts)"
    )
    assert "<code>a ⇒ b</code>" in stream._repr_html_()
    script = "<script>alert(1)</script>"
    hostile = CEP.pattern(keyBy(frame.withColumnRenamed("user", script), script), PATTERN)
    assert "<script" not in hostile._repr_html_()
    assert repr(query).startswith("QueryStream(pattern: PATTERN SEQ(a x, b y) WITHIN 5 ms, input: ")
    assert "<caption>QueryStream</caption>" in query._repr_html_()
    assert list(inspect.signature(PatternStream.select).parameters) == [
        "self", "function", "schema", "outputTag", "timeoutFunction",
    ]  # fmt: skip


def test_everything_public_is_in_the_package() -> None:
    """What users name in annotations, and every error, is in the package's ``__all__``."""
    import pyflinkcep
    from pyflinkcep import errors, sase

    kinds = (errors.CepError, Warning)
    classes = {n for n, c in vars(errors).items() if isinstance(c, type) and issubclass(c, kinds)}
    wanted = {*classes, *sase.__all__}
    wanted |= {c.__name__ for c in (CompressedStream, PatternStream, QueryStream, SaseQuery)}

    assert wanted <= set(pyflinkcep.__all__)
    assert all(getattr(pyflinkcep, name) is not None for name in pyflinkcep.__all__)
