# SPDX-License-Identifier: Apache-2.0
"""Warns of a pattern that is applied to one micro-batch after the other."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame

from pyflinkcep.spark.arrow.internals import analysed_plan, spark_context
from pyflinkcep.warned import MicroBatchWarning, Place

__all__ = ["check_micro_batch"]

_QUERY = "sql.streaming.queryId"
"""The local property that Spark sets in the thread of a streaming query."""


def check_micro_batch(dataframe: DataFrame, pattern: str) -> None:
    """
    Warn if a bounded DataFrame is a micro-batch, inside a function for ``foreachBatch``.

    Warns
    -----
    MicroBatchWarning
        If so; tables that are read there, whole, are none.
    """
    if dataframe.isStreaming or not _is_in_query(dataframe) or not _is_in_memory(dataframe):
        return
    Place.here().warn(
        f"pattern {pattern} inside foreachBatch finds no match that spans two micro-batches. "
        "Apply it to the stream, CEP.pattern(keyBy(stream, ...), pattern), and use foreachBatch on "
        "its result.",
        MicroBatchWarning,
    )


def _is_in_query(dataframe: DataFrame) -> bool:
    context = spark_context(dataframe.sparkSession)
    if context is not None:
        return context.getLocalProperty(_QUERY) is not None
    # over Spark Connect the function runs in a worker of its own
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return getattr(main, "name", "").endswith("foreach_batch_worker")


def _is_in_memory(dataframe: DataFrame) -> bool:
    """Whether some rows come from memory, as those of a micro-batch do."""
    plan = analysed_plan(dataframe)
    if plan is None:
        return True
    leaves = plan.collectLeaves()
    return any(leaves.apply(n).nodeName() == "LogicalRDD" for n in range(leaves.size()))
