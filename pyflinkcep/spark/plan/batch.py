# SPDX-License-Identifier: Apache-2.0
"""Bounded jobs: shuffle by key; each worker sorts its partition and matches key by key."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.nfa import NFA
from pyflinkcep.operator import Comparator, PartialMatchLimit
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.columns import BITS, POSITION, quoted
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.conditions import bits_column
from pyflinkcep.spark.plan.expressions import match_values, value_columns
from pyflinkcep.spark.plan.prefilter import EventFilter
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import Consumer, output_schema

__all__ = ["batch_plan"]


def batch_plan(
    source: EventSource,
    pattern: Pattern,
    nfa: NFA,
    comparator: Comparator | None,
    consumer: Consumer,
    limit: PartialMatchLimit | None = None,
) -> DataFrame:
    """
    Plan a bounded job.

    Parameters
    ----------
    source : EventSource
        The events.
    pattern : Pattern
        The pattern; it is compiled again on the workers.
    nfa : NFA
        The pattern compiled on the driver, for its conditions.
    comparator : callable or None
        Orders events of equal time, which otherwise keep their order in the source.
    consumer : Consumer
        What becomes of the matches.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.

    Returns
    -------
    DataFrame
        The main output alone, or all outputs tagged; see :func:`output_schema`.
    """
    bits = bits_column(nfa)
    events = EventFilter.of(nfa, consumer, source.dataframe)
    source = events.before(source)
    values = match_values(nfa, source.dataframe)
    layout = source.layout(bits is not None, values=values)
    extra = {
        **source.key_hash(),
        **value_columns(values),
        POSITION: F.monotonically_increasing_id(),
    }
    if bits is not None:
        extra[BITS] = bits
    prepared = events.after(source, source.prepare(extra))
    signature = [F.col(quoted(name)) for name in layout.key_signature]
    shuffled = prepared.repartition(signature[0]) if signature else prepared.coalesce(1)
    task = BatchTask(pattern, layout, comparator, consumer, limit)
    return map_in_arrow(shuffled, task.run, output_schema(consumer), f"CEP: {layout.pattern}")
