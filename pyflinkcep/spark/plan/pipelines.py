# SPDX-License-Identifier: Apache-2.0
"""Declarative Pipelines: what Spark does not allow while they are defined, by name."""

from __future__ import annotations

from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep.errors import InputError, NotSupportedError
from pyflinkcep.spark.plan.analysis import is_about

_NO_ANALYSIS = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
_NO_MUTATION = "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE"


def check_not_in_query_function(cause: Exception) -> None:
    """Refuse work inside a pipeline's query function, where no plan can be analysed."""
    if not is_about(cause, _NO_ANALYSIS):
        return
    raise NotSupportedError(
        "a pattern cannot be planned inside a pipeline's query function, where Spark analyses no "
        "plan",
        "call pyflinkcep above the function, in the same file, on tables that are not the "
        "pipeline's own, and return its result from the function",
    ) from cause


def check_analysable(dataframe: DataFrame) -> None:
    """Refuse a DataFrame that its engine cannot analyse; other errors of it are for later."""
    if hasattr(dataframe, "_jdf"):  # a classic DataFrame has been analysed
        return
    try:
        dataframe.schema  # noqa: B018 - Spark Connect keeps it, so it is asked once
    except PySparkException as cause:
        check_not_in_query_function(cause)
        # Sail's errors have no condition; it says so of bounded DataFrames too.
        if isinstance(cause, UnsupportedOperationException) and "with watermark" in str(cause):
            raise NotSupportedError(
                "withWatermark needs an engine that runs streams",
                "leave it out and name the time with .inEventTime('ts'); streams need a session of "
                "Spark, such as pyflinkcep.local.session('spark')",
            ) from cause


def set_or_refuse(spark: SparkSession, name: str, value: str) -> None:
    """Set a setting of the session."""
    try:
        spark.conf.set(name, value)
    except PySparkException as cause:
        if not is_mutation(cause):
            raise
        raise InputError(
            f"{name} is not set, and a pipeline's file cannot set it",
            f"write into its specification, under configuration: {name}: {value}",
        ) from cause


def is_mutation(cause: Exception) -> bool:
    """Whether an error is about a change of the session in a pipeline's file."""
    return is_about(cause, _NO_MUTATION)
