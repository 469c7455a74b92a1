# SPDX-License-Identifier: Apache-2.0
"""Which statements around a clause Spark can run, and what else to write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.match_recognize.statement import Statement
from pyflinkcep.spark.plan.analysis import check_not_in_query_function, set_or_refuse
from pyflinkcep.spark.statements import check_kind, hint_for, run_sql

_QUERY = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES 1 AS one PATTERN (A)) AS m"


@pytest.mark.parametrize(
    ("head", "way_out"),
    [
        ("CREATE VIEW v AS", "CREATE TEMPORARY VIEW, or CREATE TABLE"),
        ("/* all */ create or replace view v (one) AS", "CREATE TEMPORARY VIEW, or CREATE TABLE"),
        ("CREATE OR REPLACE TEMPORARY FUNCTION f() RETURNS INT RETURN", "CREATE TEMPORARY VIEW"),
        ("CREATE FUNCTION f() RETURNS INT RETURN", "CREATE TEMPORARY VIEW"),
        ("CREATE OR REFRESH MATERIALIZED VIEW v AS", "@dp.materialized_view"),
        ("CREATE STREAMING TABLE v AS", "@dp.table"),
        ("CREATE FLOW f AS INSERT INTO v BY NAME", "@dp.append_flow"),
        ("BEGIN INSERT INTO t VALUES (1);", "the statement with MATCH_RECOGNIZE alone"),
    ],
)
def test_statements_whose_text_is_kept_are_refused(head: str, way_out: str) -> None:
    """Spark reads a kept text again, without MATCH_RECOGNIZE: the hint says what works."""
    with pytest.raises(NotSupportedError) as raised:
        check_kind(Statement(f"{head} {_QUERY}"))

    assert way_out in raised.value.hint


@pytest.mark.parametrize(
    "head",
    ["", "EXPLAIN", "CREATE TABLE view AS", "CREATE OR REPLACE GLOBAL TEMP VIEW v AS",
     "CREATE TEMPORARY VIEW function AS", "CACHE TABLE t2 AS", "INSERT INTO t2", "WITH v AS (SELECT 1)"],
)  # fmt: skip
def test_other_statements_are_left_to_spark(head: str) -> None:
    """What runs at once, or keeps a plan, may stand around a clause."""
    check_kind(Statement(f"{head} {_QUERY}"))


class _Session:
    """Records what Spark would be asked."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.conf = SimpleNamespace(
            get=lambda name, default: self.settings.get(name, default),
            set=self.settings.__setitem__,
            unset=self.settings.pop,
        )

    def sql(self, text: str, **frames: Any) -> Any:
        self.asked.append((text, frames, dict(self.settings)))
        return SimpleNamespace(schema=None)


def test_frames_are_handed_to_spark_by_name() -> None:
    """No view is made: Spark gets the DataFrames that a statement names, its braces doubled."""
    spark: Any = _Session()
    frames: Any = {"__cep_view_1": "one", "__cep_view_2": "two"}
    run_sql(spark, "SELECT '{}' FROM __cep_view_2 AS m", frames)
    run_sql(spark, "SELECT '{}'", frames)

    assert spark.asked == [
        ("SELECT '{{}}' FROM {__cep_view_2} AS m", {"__cep_view_2": "two"}, {}),
        ("SELECT '{}'", {}, {}),
    ]


def test_temporary_views_keep_plans() -> None:
    """A view's text would name a DataFrame that is gone; the setting is put back."""
    spark: Any = _Session()
    run_sql(spark, "CREATE TEMP VIEW v AS SELECT * FROM __cep_view_1", {})

    assert list(spark.asked[0][2].values()) == ["true"]
    assert spark.settings == {}


def test_what_pipelines_do_not_allow_is_named() -> None:
    """In a pipeline's file: the setting for its specification, and where to put the pattern."""

    def refuse(*_: str) -> None:
        where = "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE.SET_RUNTIME_CONF"
        raise PySparkException(errorClass=where, messageParameters={"method": "set"})

    spark: Any = SimpleNamespace(conf=SimpleNamespace(set=refuse))
    with pytest.raises(InputError, match="a pipeline's file cannot set it") as raised:
        set_or_refuse(spark, "spark.x", "y")
    assert "under configuration: spark.x: y" in raised.value.hint
    with pytest.raises(PySparkException) as mutation:
        refuse()
    assert "return its result from a function" in hint_for(Statement(_QUERY), mutation.value)

    analysis = PySparkException("no", errorClass="ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION")
    with pytest.raises(NotSupportedError, match="inside a pipeline's query function"):
        check_not_in_query_function(analysis)
    check_not_in_query_function(PySparkException("no", errorClass="ANOTHER"))
    check_not_in_query_function(ValueError())
