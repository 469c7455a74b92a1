# SPDX-License-Identifier: Apache-2.0
"""The input of a pattern: a DataFrame, with a key or without."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from pyflinkcep.errors import InvalidArgumentError, suggesting
from pyflinkcep.spark.cep_dataframe import CepDataFrame
from pyflinkcep.spark.plan.arguments import not_a_dataframe
from pyflinkcep.spark.plan.pipelines import check_analysable
from pyflinkcep.spark.plan.source import KeyedDataFrame

__all__ = ["keyBy", "keyed"]


@suggesting
def keyBy(
    dataframe: DataFrame, *columns: str | Column, partitioned: bool = False
) -> KeyedDataFrame:
    """
    Choose the key columns of events: matches never mix keys.

    Parameters
    ----------
    dataframe : DataFrame
        The events.
    *columns : str or Column
        At least one: column names, fields such as ``"user.id"``, or expressions. Any type
        that Spark can group by; on bounded input null is a key like any other.
    partitioned : bool
        For bounded input on Spark: whether all events of a key are already in one partition, as
        after ``df.repartition("user")`` or reading a file per user. Then events are not shuffled.
        A key in two partitions fails the job.

    Returns
    -------
    KeyedDataFrame
        The input of :meth:`CEP.pattern`.

    Raises
    ------
    InvalidArgumentError
        If there is no column, or the events are not a DataFrame.

    Examples
    --------
    >>> rows = [("ann", 1000, "fail"), ("ann", 2000, "ok"), ("bob", 2500, "fail")]
    >>> events = spark.createDataFrame(rows, "user string, ts bigint, result string")
    >>> failed = Pattern.begin("fail").where("result = 'fail'")
    >>> CEP.pattern(keyBy(events, "user"), failed)
    PatternStream(pattern: fail, input: bounded [user: string, ...], key: user)

    Notes
    -----
    Ports the role of Flink's ``DataStream.keyBy``.
    """
    if not columns:
        raise InvalidArgumentError("keyBy without columns", "name at least one column")
    for column in columns:
        if not isinstance(column, str | Column):
            raise InvalidArgumentError(
                f"keyBy: expected column names or Columns, got {column!r}",
                "write keyBy(df, 'user')",
            )
    if not isinstance(partitioned, bool):
        raise InvalidArgumentError(
            f"partitioned: expected True or False, got {partitioned!r}",
            "write keyBy(df, 'user', partitioned=True)",
        )
    return KeyedDataFrame(_checked(dataframe), tuple(columns), partitioned)


def keyed(input: DataFrame | KeyedDataFrame) -> KeyedDataFrame:
    """Return events with their key; a DataFrame has none."""
    return input if isinstance(input, KeyedDataFrame) else KeyedDataFrame(_checked(input), ())


def _checked(dataframe: DataFrame) -> DataFrame:
    """Return the DataFrame; refuse anything else, with a hint how to convert it."""
    if isinstance(dataframe, CepDataFrame):
        return dataframe.toDF()
    if isinstance(dataframe, DataFrame):
        check_analysable(dataframe)
        return dataframe
    raise not_a_dataframe(dataframe)
