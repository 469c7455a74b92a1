# SPDX-License-Identifier: Apache-2.0
"""``DataFrame.mapInArrow`` for columns of any name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.matching.columns import PREFIX, quoted
from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.plan.time_unit import time_range
from pyflinkcep.spark.worker.runtime import prepare_worker

__all__ = ["ArrowFunction", "map_in_arrow"]

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(
    dataframe: DataFrame,
    function: ArrowFunction,
    schema: StructType,
    name: str,
    events: Layout | None = None,
) -> DataFrame:
    """
    Map a DataFrame's Arrow batches.

    Parameters
    ----------
    dataframe : DataFrame
        The input.
    function : callable
        From the batches of a partition to batches of `schema`.
    schema : StructType
        The schema of the result.
    name : str
        The function's name in the plan and in Spark's UI.
    events : Layout, optional
        If the input is the user's events: where their times are, of which the user is warned if
        they look like epoch seconds.

    Notes
    -----
    PySpark 4.3 looks each column up by name as if it were a path, so a column named ``a.b`` is not
    found. Such columns travel under another name.
    """
    names = dataframe.columns
    safe = [
        f"{PREFIX}column{position}" if set(name) & set(".`*") else name
        for position, name in enumerate(names)
    ]
    renamed = safe != names
    times = None if events is None else time_range(dataframe.sparkSession, events)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        named = (batch.rename_columns(names) if renamed else batch for batch in batches)
        return function(named if times is None else times.seen(named))

    run.__name__ = run.__qualname__ = name
    if renamed:
        columns = zip(names, safe, strict=True)
        dataframe = dataframe.select(*(F.col(quoted(old)).alias(new) for old, new in columns))
    return dataframe.mapInArrow(run, schema)
