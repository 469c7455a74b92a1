# SPDX-License-Identifier: Apache-2.0
"""Unbounded jobs: pack by bucket, match in a stateful operator, unpack into rows."""

from __future__ import annotations

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep.errors import InputError
from pyflinkcep.nfa import NFA, NFACompiler
from pyflinkcep.operator import Comparator, PartialMatchLimit
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.arrow.columns import BITS, HASH, quoted
from pyflinkcep.spark.arrow.rows import arrow_schema
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.conditions import bits_column
from pyflinkcep.spark.plan.expressions import match_values, value_columns
from pyflinkcep.spark.plan.prefilter import relevance_of, why_unfiltered
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.state.fingerprint import fingerprint
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.consumers import Consumer, output_schema
from pyflinkcep.spark.worker.pack import BUCKET, PACKED, PackTask
from pyflinkcep.spark.worker.processor import RESULTS, CepProcessor
from pyflinkcep.spark.worker.stream_worker import StreamPlan
from pyflinkcep.spark.worker.unpack import UnpackTask

__all__ = ["StreamSettings", "make_plan", "stream_plan", "unpacked"]

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@attrs.frozen
class StreamSettings:
    """
    What a user may set for a stream; see :meth:`pyflinkcep.CEP.pattern`.

    Attributes
    ----------
    key_groups : int
        The number of key groups.
    on_pattern_change : {"fail", "restart"}
        What to do with a checkpoint of another pattern.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    """

    key_groups: int = 128
    on_pattern_change: str = "fail"
    limit: PartialMatchLimit | None = None


def make_plan(
    source: EventSource,
    pattern: Pattern,
    nfa: NFA,
    comparator: Comparator | None,
    consumer: Consumer,
    settings: StreamSettings,
    late_output: str | None,
) -> tuple[StreamPlan, DataFrame]:
    """Give the settings of the operator, and the events with what it needs beside them."""
    bits = bits_column(nfa)
    values = match_values(nfa, source.dataframe)
    layout = source.layout(bits is not None, always_hash=True, values=values)
    extra = {**source.key_hash(always=True), **value_columns(values)}
    if bits is not None:
        extra[BITS] = bits
    prepared = source.prepare(extra)
    columns = list(dict.fromkeys([*layout.payload, *layout.key_signature, HASH]))
    if layout.has_bits:
        columns.append(BITS)
    processing_time, limited = source.time_column is None, settings.limit is not None
    droppable: frozenset[int] = frozenset()
    if not why_unfiltered(processing_time, limited, late_output=False):
        droppable = relevance_of(nfa, consumer.shows_time).droppable
    plan = StreamPlan(
        pattern=pattern,
        layout=layout,
        schema=_nullable(arrow_schema(prepared.select(*map(quoted, columns)).schema)),
        key_groups=KeyGroups(settings.key_groups),
        comparator=comparator,
        processing_time=processing_time,
        wants_timeouts=consumer.wants_timeouts,
        fingerprint=fingerprint(nfa, layout, settings.key_groups),
        on_pattern_change=settings.on_pattern_change,
        limit=settings.limit,
        droppable=droppable,
        dropped=droppable if late_output is None else frozenset(),
    )
    return plan, prepared


def stream_plan(
    plan: StreamPlan, prepared: DataFrame, consumer: Consumer, late_output: str | None
) -> DataFrame:
    """
    Plan an unbounded job.

    Parameters
    ----------
    plan : StreamPlan
        The settings of the operator.
    prepared : DataFrame
        The events.
    consumer : Consumer
        What becomes of the matches.
    late_output : str or None
        The output that late events go to; they are dropped and counted without one.

    Returns
    -------
    DataFrame
        The main output alone, or all outputs tagged. Its progress has the observed metrics
        ``numLateRecordsDropped``, ``numPartialMatchesDropped``, ``stateBytesRead`` and
        ``stateBytesWritten`` under the name ``CEP: <pattern>``.
    """
    choose_state_store(prepared.sparkSession)
    name = f"CEP: {plan.layout.pattern}"
    task = PackTask(plan.layout, plan.schema, plan.key_groups, plan.dropped)

    results = (
        map_in_arrow(prepared, task.run, PACKED, f"{name} (pack)")
        .groupBy(BUCKET)
        .transformWithStateInPandas(
            CepProcessor(plan, late_output is not None),
            RESULTS,
            "Append",
            "ProcessingTime" if plan.processing_time else "EventTime",
        )
    )
    dropped = F.sum("lateRecords") if late_output is None else F.sum(F.lit(0))
    observed = results.observe(
        name,
        F.coalesce(dropped, F.lit(0)).alias("numLateRecordsDropped"),
        F.coalesce(F.sum("droppedMatches"), F.lit(0)).alias("numPartialMatchesDropped"),
        F.coalesce(F.sum("stateBytesRead"), F.lit(0)).alias("stateBytesRead"),
        F.coalesce(F.sum("stateBytesWritten"), F.lit(0)).alias("stateBytesWritten"),
    )
    return unpacked(plan, observed, consumer, late_output)


def unpacked(
    plan: StreamPlan, results: DataFrame, consumer: Consumer, late_output: str | None
) -> DataFrame:
    """Give the outputs from what the operator gave."""
    unpack = UnpackTask(plan.layout, _stage_names(plan), consumer, late_output)

    name = f"CEP: {plan.layout.pattern}"
    return map_in_arrow(results, unpack.run, output_schema(consumer), name)


def choose_state_store(spark: SparkSession) -> None:
    """
    See to it that the session keeps state in RocksDB, which this operator needs.

    Raises
    ------
    InputError
        When the session was told to use another state store.
    """
    chosen = spark.conf.get(_PROVIDER)
    if chosen == _ROCKSDB:
        return
    if _PROVIDER in dict(spark.conf.getAll):
        raise InputError(
            f"the session's state store is {chosen}, patterns on streams need RocksDB",
            f"set {_PROVIDER} to {_ROCKSDB}, or leave it unset",
        )
    spark.conf.set(_PROVIDER, _ROCKSDB)


def _stage_names(plan: StreamPlan) -> list[str]:
    return list(NFACompiler.compile(plan.pattern, plan.wants_timeouts).stages)


def _nullable(schema: pa.Schema) -> pa.Schema:
    """Let every column be null: what Spark promises about a batch, Arrow need not check."""
    return pa.schema([field.with_nullable(True) for field in schema])
