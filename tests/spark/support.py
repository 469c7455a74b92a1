# SPDX-License-Identifier: Apache-2.0
"""What the tests on Spark share: small inputs, and many small results in one job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, CepError, Pattern, PatternStream, keyBy
from pyflinkcep.spark import cepError

QUICK_FOR_MANY_PLANS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
SCHEMA = "ts bigint, user string, name string, price double"


def events(spark: SparkSession, text: str, partitions: int = 1) -> DataFrame:
    """
    Give events written as ``u:a1 v:b2``: user, name and price.

    The times are 1, 2, 3 … or, written ``u:a1@5``, their own. Every user's events are in a row.
    """
    rows = []
    for position, word in enumerate(text.split(), 1):
        user, name, price, time = re.fullmatch(r"(\w+):(\w)(\d*)(?:@(\d+))?", word).groups()
        rows.append((int(time or position), user, name, float(price or 0)))
    if isinstance(spark, SparkSession):
        return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), SCHEMA)
    return spark.createDataFrame(rows, SCHEMA)


def columns(frame: DataFrame, **added: str) -> DataFrame:
    """Add columns given in SQL."""
    for name, expression in added.items():
        frame = frame.withColumn(name, F.expr(expression))
    return frame


def a_then_b(a: Any = "name = 'a'", b: Any = "name = 'b'") -> Pattern:
    """Return the pattern: a, directly after it b."""
    return Pattern.begin("a").where(a).next("b").where(b)


def on(
    frame: DataFrame, pattern: Pattern, *keys: Any, time: str = "ts", **more: Any
) -> PatternStream:
    """Apply a pattern, to a key where any columns are given."""
    return CEP.pattern(keyBy(frame, *keys) if keys else frame, pattern, **more).inEventTime(time)


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, Any]) -> Iterator[None]:
    """Set Spark SQL's settings for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, str(value))
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


def ids(match: Mapping[str, Any]) -> str:
    """Return a match as one text, ``a=1 b=2,3``, by the events' ids or else times."""
    return " ".join(
        f"{stage}=" + ",".join(str(getattr(e, "id", None) or e.ts) for e in found)
        for stage, found in match.items()
    )


def in_one_task(frame: DataFrame) -> DataFrame:
    """
    Return a DataFrame whose last stage is one task.

    Every task reads the plans of all parts of a union anew: of 18 patterns, a quarter of the time.
    """
    return frame.coalesce(1)


def in_one_job(results: Mapping[str, DataFrame]) -> dict[str, list[str]]:
    """Collect one text column of many DataFrames in a single job; rows in the order they come."""
    named = [
        frame.select(F.lit(name).alias("case"), F.col(frame.columns[0]).alias("text"))
        for name, frame in results.items()
    ]
    found: dict[str, list[str]] = {name: [] for name in results}
    with configured(named[0].sparkSession, QUICK_FOR_MANY_PLANS):
        rows = in_one_task(reduce(DataFrame.union, named)).collect()
    for name, text in rows:
        found[name].append(text)
    return found


def failure(frame: Any) -> str:
    """Return the message of the error that a job fails with, without the traceback around it."""
    with pytest.raises((PythonException, CepError)) as caught:
        frame.collect()
    error = cepError(caught.value)
    assert error is not None
    return f"{type(error).__name__}: {error}"
