# SPDX-License-Identifier: Apache-2.0
"""Runs statements over the DataFrames that replace clauses, without views of our own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.tokens import Token
from pyflinkcep.match_recognize.statement import Statement, view_tokens
from pyflinkcep.spark.plan.analysis import error_condition, is_mutation

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
_WAY_OUT = {
    "VIEW": "write CREATE TEMPORARY VIEW, or CREATE TABLE … AS SELECT … to store the rows",
    "FUNCTION": "write CREATE TEMPORARY VIEW … AS SELECT …, and read that instead",
    "MATERIALIZED": f"{_IN_A_PIPELINE}materialized_view",
    "STREAMING": f"{_IN_A_PIPELINE}table",
    "FLOW": f"{_IN_A_PIPELINE}append_flow",
    "BEGIN": "give CEP.sql the statement with MATCH_RECOGNIZE alone: it is planned before any "
    "other of the script runs",
}
"""What to write instead of statements whose text Spark keeps for later."""

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
