# SPDX-License-Identifier: Apache-2.0
"""Unbounded jobs: pack by bucket, match in a stateful operator, unpack into rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.matching.columns import BITS, HASH, quoted
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.marks import without_marks
from pyflinkcep.spark.plan.arrow_map import map_in_arrow
from pyflinkcep.spark.plan.counters import check_counters_name, counters_name
from pyflinkcep.spark.plan.flush import by_bucket, stored_state
from pyflinkcep.spark.plan.job import Job, Prepared
from pyflinkcep.spark.plan.observed import observed_columns
from pyflinkcep.spark.plan.partitions import hint_at_partitions
from pyflinkcep.spark.plan.rest import remember, rest_of_events
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.state_store import choose_state_store
from pyflinkcep.spark.plan.watermark import (
    GUARDED,
    StreamWatermark,
    delayed,
)
from pyflinkcep.spark.worker.bucket_task import BucketPlan, Matching
from pyflinkcep.spark.worker.bucket_worker import RESULTS
from pyflinkcep.spark.worker.consumers import Consumer, output_schema
from pyflinkcep.spark.worker.flush import FlushTask
from pyflinkcep.spark.worker.pack import BUCKET, PACKED, PackTask
from pyflinkcep.spark.worker.processor import CepProcessor
from pyflinkcep.spark.worker.unpack import NULLS, RowsTask, UnpackTask

__all__ = ["StreamJob", "StreamOutput", "watermark_of"]


@attrs.frozen(eq=False)
class StreamOutput:
    """
    The output of a job on an unbounded DataFrame.

    Attributes
    ----------
    unpack : UnpackTask or RowsTask
        Makes it from the operator's results.
    schema : StructType
        Its columns.
    held_back : HeldBack
        How far behind the watermark the times in it can be.
    sides : mapping of str to str
        The outputs for events left out, by their columns in the operator's output; without an
        output they are dropped and counted.
    what : str
        What its rows are, in the name of the job; empty for matches.
    """

    unpack: UnpackTask | RowsTask
    schema: StructType
    held_back: HeldBack
    sides: Mapping[str, str] = attrs.field(factory=dict)
    what: str = ""

    @classmethod
    def of_matches(
        cls,
        layout: Layout,
        stages: Sequence[str],
        consumer: Consumer,
        held_back: HeldBack,
        sides: Mapping[str, str],
    ) -> StreamOutput:
        """Return that of a consumer of matches, whose events are in `layout`."""
        unpack = UnpackTask(layout, stages, consumer, sides)
        return cls(unpack, output_schema(consumer), held_back, sides)

    @property
    def shows_events(self) -> bool:
        """Whether it may have events that no match needs."""
        return bool(set(self.sides) - {NULLS})


@attrs.frozen(eq=False)
class StreamJob:
    """
    A job on an unbounded DataFrame.

    Attributes
    ----------
    name : str
        Its name in Spark's UI and progress.
    output : StreamOutput
        Its output.
    events : DataFrame
        The events, prepared.
    plan : BucketPlan
        The settings of the operator.
    delay_ms : int, milliseconds
        The delay of the watermark that is handed on.
    is_named : bool
        Whether the user chose its name, which its counters then have.
    counters : str
        The name of its counters, if that of another job.
    """

    name: str
    output: StreamOutput
    events: DataFrame
    plan: BucketPlan
    delay_ms: int
    is_named: bool
    counters: str = ""

    @classmethod
    def of(
        cls,
        job: Job,
        prepared: Prepared,
        matching: Matching,
        fingerprint: dict[str, str],
        output: StreamOutput,
        unneeded: frozenset[int] = frozenset(),
    ) -> StreamJob:
        """
        Put together the job of a pattern, a query or a clause.

        Parameters
        ----------
        job : Job
            The events and the user's settings.
        prepared : Prepared
            The events with what the operator needs.
        matching : Matching
            What is matched.
        fingerprint : dict of str to str
            What must stay the same for stored state to be reused.
        output : StreamOutput
            What becomes of matches.
        unneeded : frozenset of int
            Events that no match needs, as bits of the conditions that Spark evaluated.

        Raises
        ------
        CepError
            If the stream has no watermark that the job could follow.
        """
        source, settings = job.source, job.settings
        watermark = watermark_of(source)
        plan = BucketPlan(
            matching=matching,
            layout=prepared.layout,
            schema=_packed_schema(prepared.events, prepared.layout),
            key_groups=settings.groups,
            processing_time=source.time_column is None,
            fingerprint=fingerprint,
            on_pattern_change=settings.on_pattern_change,
            dropped=frozenset() if output.shows_events else unneeded,
            delay_ms=watermark.delay_ms,
            is_downstream=watermark.is_downstream,
            allows_null_keys=settings.allows_null_keys,
            clock=watermark.clock,
            max_ahead_ms=settings.max_ahead_ms,
            drops_nulls=settings.drops_nulls,
        )
        name = f"{job.name} ({output.what})" if output.what else job.name
        is_named, delay_ms = source.name is not None, source.watermark_delay_ms
        return cls(name, output, prepared.events, plan, delay_ms, is_named)

    def behind(self, milliseconds: int) -> StreamJob:
        """
        Return the job with Spark's watermark further behind, for the operators that follow.

        The pattern itself goes on as before.

        Raises
        ------
        NotSupportedError
            If it has to follow Spark's watermark as it is.
        """
        if not milliseconds or self.plan.processing_time:
            return self
        plan = self.plan
        if plan.is_downstream:
            raise NotSupportedError(
                f"pattern {plan.layout.pattern}: its events come from another stateful operator, "
                "which follows the same watermark, so this cannot be held back for its matches",
                "use matchTimestamp of toDF(), in SQL MATCH_ROWTIME(), or write the events to a "
                "table and read that with readStream and withWatermark",
            )
        if plan.delay_ms is None:
            plan = attrs.evolve(plan, ahead_ms=plan.ahead_ms + milliseconds)
        return attrs.evolve(
            self,
            events=delayed(self.events, milliseconds),
            plan=plan,
            delay_ms=self.delay_ms + milliseconds,
            counters=self._counters(),
        )

    def run(self) -> DataFrame:
        """
        Run the job.

        Returns
        -------
        DataFrame
            The main output alone, or all outputs tagged. Its progress has the observed metrics of
            ``observed_columns`` under the name ``CEP: <pattern>``, with a number if another job of
            the session has that name.
        """
        choose_state_store(self.events.sparkSession)
        hint_at_partitions(self.events.sparkSession)
        plan, name, sides = self.plan, self.name, self.output.sides
        layout = plan.layout
        if plan.dropped and not layout.bit_columns:  # only the pack task needs to know
            layout = attrs.evolve(layout, bit_columns=(BITS,))
        task = attrs.evolve(
            self._packing(),
            layout=layout,
            dropped=plan.dropped,
            tells_latest=plan.delay_ms is not None,
            max_ahead_ms=plan.max_ahead_ms,
        )
        pack = f"{name} ({'pack' if plan.max_ahead_ms is None else GUARDED})"
        results = (
            map_in_arrow(self.events, task.run, PACKED, pack, layout)
            .groupBy(BUCKET)
            .transformWithStateInPandas(
                CepProcessor(plan, frozenset(sides)),
                RESULTS,
                "Append",
                "ProcessingTime" if plan.processing_time else "EventTime",
            )
        )
        stages = plan.matching.counted_stages
        columns = observed_columns(sides, stages, plan.max_ahead_ms is not None)
        observed = results.observe(self._counters(), *columns)
        result = self._unpacked(observed)
        remember(result, self.events, partial(_flushed, self.name, self.output, self.plan))
        return result

    def flush(self, checkpoint: str, operator_id: int) -> DataFrame:
        """
        Run the job that returns the results of a final watermark.

        What patterns before this one still hold passes through it.

        Parameters
        ----------
        checkpoint : str
            The stream's checkpoint; it is read, not changed.
        operator_id : int
            Which of the query's stateful operators the pattern is, counted from the sink.

        Returns
        -------
        DataFrame
            The outputs, as in :meth:`run`.

        Raises
        ------
        InputError
            If the checkpoint has no state of the pattern.
        NotSupportedError
            If another operator before the pattern may still hold rows.
        """
        plan, name, packed = self.plan, f"{self.name} (flush)", None
        arriving = rest_of_events(self.events, plan.layout.pattern, checkpoint, operator_id)
        state = stored_state(self.events.sparkSession, plan, checkpoint, operator_id)
        if arriving is not None:
            packed = map_in_arrow(arriving, self._packing().run, PACKED, f"{name} (pack)")
        rows = by_bucket(state, packed)
        return self._unpacked(map_in_arrow(rows, FlushTask(plan).run, RESULTS, name))

    def _packing(self) -> PackTask:
        """Return the work before the operator if no watermark depends on it."""
        plan = self.plan
        return PackTask(
            plan.layout,
            plan.schema,
            plan.key_groups,
            tells_latest=False,
            allows_null_keys=plan.allows_null_keys,
            drops_nulls=plan.drops_nulls,
        )

    def _counters(self) -> str:
        if self.counters:
            return self.counters
        if self.is_named:
            return check_counters_name(self.name, self.events)
        output = self.output
        return counters_name(self.name, self.events, self.plan, output.unpack, output.sides)

    def _unpacked(self, results: DataFrame) -> DataFrame:
        """Return the outputs from the operator's results."""
        schema = without_marks(self.output.schema)
        return map_in_arrow(results, self.output.unpack.run, schema, self.name)


def _flushed(
    name: str,
    output: StreamOutput,
    plan: BucketPlan,
    events: DataFrame,
    checkpoint: str,
    operator_id: int,
) -> DataFrame:
    """Return what a job of these parts on events flushes."""
    job = StreamJob(name, output, events, plan, delay_ms=0, is_named=False)
    return job.flush(checkpoint, operator_id)


def _packed_schema(events: DataFrame, layout: Layout) -> pa.Schema:
    """Return the columns of prepared events that go to the operator."""
    own = dict.fromkeys([*layout.payload, *layout.key_signature, HASH])
    columns = [name for name in own if name not in layout.bit_columns]
    columns += layout.bit_columns
    return _nullable(arrow_schema(events.select(*map(quoted, columns)).schema))


def watermark_of(source: EventSource) -> StreamWatermark:
    """
    Return the watermark that a job follows; there is none in processing time.

    Raises
    ------
    InputError
        If the events are matches that may be behind it.
    NotSupportedError
        If events that are too far ahead are to move no watermark, but it is not the pattern's own.
    """
    if source.time_column is None:
        if source.is_guarded:
            raise NotSupportedError(
                f"pattern {source.pattern}: maxAhead needs event time",
                "leave it out: the clock is the time of all events",
            )
        return StreamWatermark(None)
    watermark = StreamWatermark.of(source.dataframe, source.time_column, source.pattern)
    if source.is_guarded and watermark.delay_ms is None:
        raise NotSupportedError(
            f"pattern {source.pattern}: maxAhead does not work with Spark's watermark, "
            f"which every event moves ({watermark.reason})",
            "filter such events before withWatermark instead, with "
            f'.where("{source.time_column} < now() + INTERVAL 1 HOUR")',
        )
    return watermark


def _nullable(schema: pa.Schema) -> pa.Schema:
    """Make every column nullable: Arrow need not check what Spark guarantees about a batch."""
    return pa.schema([field.with_nullable(True) for field in schema])
