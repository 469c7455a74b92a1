# SPDX-License-Identifier: Apache-2.0
"""SQL with MATCH_RECOGNIZE: each clause becomes a DataFrame that Spark runs the statement over."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep.errors import CepError, InputError, NotSupportedError
from pyflinkcep.expressions.tokens import Token
from pyflinkcep.match_recognize.checks import check_clause, check_columns
from pyflinkcep.match_recognize.names import Names, spelled_alike, with_own_columns
from pyflinkcep.match_recognize.parser import parse_clause
from pyflinkcep.match_recognize.statement import (
    VIEW,
    Statement,
    Use,
    view_tokens,
    with_parameters,
    without_unused,
)
from pyflinkcep.match_recognize.tokens import Source, tokenize, with_names
from pyflinkcep.match_recognize.tree import Clause, Text
from pyflinkcep.spark.arrow.internals import analysed_plan
from pyflinkcep.spark.cep_dataframe import CepDataFrame, Result, changed
from pyflinkcep.spark.plan.analysis import (
    check_analysable,
    check_not_in_query_function,
    error_condition,
    first_line,
    has_quoted_names,
    is_case_sensitive,
    is_mutation,
)
from pyflinkcep.spark.plan.clauses.job import FlinkJob, StandardJob
from pyflinkcep.spark.plan.clauses.measures import argument_types
from pyflinkcep.spark.plan.conditions import sql_columns
from pyflinkcep.spark.plan.settings import JobSettings, check_session, check_text
from pyflinkcep.spark.plan.watermark import source_count, stateful_count
from pyflinkcep.spark.results import stream_result
from pyflinkcep.spark.worker.consumers import MAIN


@attrs.frozen
class SqlOptions:
    """The user's settings for a clause; see :meth:`pyflinkcep.CEP.sql`."""

    dialect: str  # The meaning of the clause
    settings: JobSettings  # With `evaluation` AUTOMATON
    args: Mapping[str, Any] | Sequence[Any] | None = None  # The values of parameters


def run_statement(spark: SparkSession, text: str, options: SqlOptions) -> CepDataFrame:
    """Plan a statement."""
    check_session(spark)
    check_text(text)
    text = with_parameters(text, options.args)
    statement = Statement(with_names(text) if has_quoted_names(spark) else text)
    check_kind(statement)
    frames: dict[str, DataFrame] = {}  # The outputs of clauses by their views
    while (use := statement.next_use()) is not None:
        frame = _queried(spark, use.query, statement, frames, use)
        if frames and (frame.isStreaming or list(frames.values())[-1].isStreaming):
            _check_chain(list(frames), use, frame, statement.source, options)
        own = attrs.evolve(options, settings=options.settings.numbered(len(frames) + 1))
        queries = "" if VIEW in use.queries else use.queries
        end = _matched(frame, use.clause, statement.source, use.alias, own, text, queries)
        view = f"{VIEW}{uuid.uuid4().hex}"
        frames[view] = end.toDF()
        statement.replaced(use, view)
    if not frames:
        raise statement.source.error(
            "no MATCH_RECOGNIZE ( in the statement", "for other statements use spark.sql",
            0, len(text),
        )  # fmt: skip
    main = _queried(spark, statement.text, statement, frames)
    if not main.isStreaming:
        return changed(end, lambda _: main)
    last = without_unused(statement.text)
    main = _queried(spark, last, statement, frames)
    _check_stream(main, view, frames[view], last, statement.source)
    return changed(end, lambda output: _queried(spark, last, statement, {view: output}))


def _check_chain(
    views: list[str], use: Use, frame: DataFrame, source: Source, options: SqlOptions
) -> None:
    """Refuse a further clause on a stream unless it reads the output of the one before."""
    plan = analysed_plan(frame)
    is_next = _views_in(use.query) == {views[-1]} and options.dialect == "flink"
    if is_next and plan is not None and stateful_count(plan) == len(views):
        return
    raise source.error(
        "a second MATCH_RECOGNIZE in a statement over a stream",
        "let it read the output of the first, with MATCH_ROWTIME() as its time, or write that to a "
        "table and match the table in a query of its own",
        *use.span,
        NotSupportedError,
    )


def _views_in(query: str) -> set[str]:
    """Return the clauses that a query reads."""
    return {token.text for token in view_tokens(without_unused(query))}


def _check_stream(
    main: DataFrame, view: str, output: DataFrame, query: str, source: Source
) -> None:
    """Refuse a statement that also reads another stream, whose rest no flush could return."""
    plan, of_clause = analysed_plan(main), analysed_plan(output)
    is_one = plan is None or source_count(plan) == source_count(of_clause)
    if is_one and _views_in(query) == {view}:
        return
    raise source.error(
        "a join or union with another stream in a statement with MATCH_RECOGNIZE",
        "make the clause's output a view of its own, and join that",
        0,
        len(source.text),
        NotSupportedError,
    )


def run_clause(dataframe: DataFrame, text: str, options: SqlOptions) -> CepDataFrame:
    """Plan a clause on a DataFrame."""
    check_analysable(dataframe)
    check_text(text)
    if isinstance(dataframe, CepDataFrame):
        dataframe = dataframe.toDF()
    text = with_parameters(text, options.args)
    source = Source(with_names(text) if has_quoted_names(dataframe.sparkSession) else text)
    clause = parse_clause(tokenize(source), source, len(text))
    return _matched(dataframe, clause, source, None, options, text)


def _matched(
    frame: DataFrame,
    clause: Clause,
    source: Source,
    alias: str | None,
    options: SqlOptions,
    text: str,
    queries: str = "",
) -> CepDataFrame:
    """Plan a clause of a statement or alone, whose text is given."""
    standard = options.dialect == "standard"
    sensitive = is_case_sensitive(frame)
    check_columns(frame.columns, clause, source, sensitive)
    if standard and not sensitive:
        clause = spelled_alike(clause)
    if standard:
        frame = _with_computed(frame, clause, source)
    names = Names.of(clause, source, frame.columns, alias, standard, sensitive, queries)
    check_clause(clause, names, sensitive)
    clause = with_own_columns(clause, names)
    kind = StandardJob if standard else FlinkJob
    job: StandardJob | FlinkJob = kind.analyse(frame, clause, names, options.settings)
    if job.job.is_stream:
        stream = job.stream()
        result = stream_result(stream, {MAIN: stream.output.schema})
    else:
        result = CepDataFrame(Result.of(job.run(), job.job.name))
    return changed(result, job.output, partial(job.explained, text))


def _with_computed(frame: DataFrame, clause: Clause, source: Source) -> DataFrame:
    """Return the input with the expressions of PARTITION BY and ORDER BY as columns."""
    computed = clause.computed()
    if not computed:
        return frame

    def error(one: Text) -> Callable[[str, str], CepError]:
        return lambda message, hint: source.error(message, hint, *one.span, InputError)

    argument_types(frame, {one.text: error(one) for one in computed})
    columns = sql_columns([one.text for one in computed], frame)
    named = (column.alias(one.text) for one, column in zip(computed, columns, strict=True))
    return frame.select("*", *named)


def _queried(
    spark: SparkSession,
    text: str,
    statement: Statement,
    frames: Mapping[str, DataFrame],
    use: Use | None = None,
) -> DataFrame:
    """Return the DataFrame of a query; name the position in the statement if Spark refuses it."""
    source = statement.source
    try:
        return run_sql(spark, text, frames)
    except CepError:
        raise
    except Exception as cause:
        check_not_in_query_function(cause)
        start, end = use.span if use is not None else (0, len(source.text))
        what = "the input of MATCH_RECOGNIZE" if use is not None else "the statement"
        raise source.error(
            f"Spark refuses {what}: {first_line(cause)}",
            hint_for(statement, cause),
            start,
            end,
            InputError,
        ) from cause


_STORED_AS_PLAN = "spark.sql.legacy.storeAnalyzedPlanForView"
_DEFINES = re.compile(r"\s*(CREATE|ALTER|CACHE)\b", re.IGNORECASE)


def run_sql(spark: SparkSession, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the DataFrame of a statement, analysed; a command runs at once."""
    views = view_tokens(text) if frames else []
    used: dict[str, Any] = {token.text: frames[token.text] for token in views}
    if used:
        text = _as_format(text, views)
    if not _DEFINES.match(text):
        return _analysed(spark.sql(text, **used))
    with _views_as_plans(spark):
        return _analysed(spark.sql(text, **used))


def _as_format(text: str, views: Sequence[Token]) -> str:
    """Return a statement in the form in which Spark takes DataFrames by name."""
    pieces, at = [], 0
    for view in views:
        pieces += [_escaped(text[at : view.start]), f"{{{view.text}}}"]
        at = view.end
    return "".join(pieces) + _escaped(text[at:])


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _analysed(frame: DataFrame) -> DataFrame:
    frame.schema  # noqa: B018 - errors belong to the statement, not to its first use
    return frame


@contextmanager
def _views_as_plans(spark: SparkSession) -> Iterator[None]:
    """Store the plans of temporary views within a ``with``: as text they would name no table."""
    before = spark.conf.get(_STORED_AS_PLAN, None)
    spark.conf.set(_STORED_AS_PLAN, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_STORED_AS_PLAN)
        else:
            spark.conf.set(_STORED_AS_PLAN, before)


# --- what a statement is

_IN_A_PIPELINE = (
    "in a pipeline's Python file, give CEP.sql the SELECT, and return its result from a function "
    "with @dp."
)
# What to write instead of statements whose text Spark keeps for later.
_WAY_OUT = {
    "VIEW": "write CREATE TEMPORARY VIEW, or CREATE TABLE … AS SELECT … to store the rows",
    "FUNCTION": "write CREATE TEMPORARY VIEW … AS SELECT …, and read that instead",
    "MATERIALIZED": f"{_IN_A_PIPELINE}materialized_view",
    "STREAMING": f"{_IN_A_PIPELINE}table",
    "FLOW": f"{_IN_A_PIPELINE}append_flow",
    "BEGIN": "give CEP.sql the statement with MATCH_RECOGNIZE alone: it is planned before any "
    "other of the script runs",
}

_ADJECTIVES = ("OR", "REPLACE", "REFRESH", "GLOBAL", "TEMP", "TEMPORARY")
_NOT_DETERMINISTIC = "NON_DETERMINISTIC"


def check_kind(statement: Statement) -> None:
    """Refuse a statement whose text Spark keeps for later, when it cannot read it."""
    words = statement.first_words
    temporary = {"TEMP", "TEMPORARY"} & set(words[:5])
    what = next((word for word in words[1:] if word not in _ADJECTIVES), "")
    if words[:1] == ["BEGIN"]:
        what = "BEGIN"
    elif words[:1] != ["CREATE"] or (what == "VIEW" and temporary):
        return
    if what in _WAY_OUT:
        shown = "BEGIN … END" if what == "BEGIN" else f"CREATE {what}"
        raise statement.source.error(
            f"{shown} with MATCH_RECOGNIZE, which Spark's own SQL does not have",
            _WAY_OUT[what],
            0,
            len(statement.source.text),
            NotSupportedError,
        )


def hint_for(statement: Statement, cause: Exception) -> str:
    """Return what to write instead of a statement that Spark refuses."""
    if statement.first_words[:1] == ["ALTER"]:
        return _WAY_OUT["VIEW"]
    if is_mutation(cause):
        return f"{_IN_A_PIPELINE}materialized_view or @dp.temporary_view"
    if _NOT_DETERMINISTIC in error_condition(cause):
        return "write the matches to a table first, with CREATE TABLE … AS SELECT …, and use that"
    return "try it with a table instead of MATCH_RECOGNIZE ( … )"
