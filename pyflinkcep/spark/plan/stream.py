# SPDX-License-Identifier: Apache-2.0
"""Unbounded jobs: pack by bucket, match in a stateful operator, unpack into rows, and count."""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from itertools import count
from typing import Any, cast
from weakref import WeakKeyDictionary

import attrs
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.errors import CepError, InputError, InvalidArgumentError, NotSupportedError
from pyflinkcep.matching.columns import BITS, HASH, PREFIX, quoted
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.arrow.internals import (
    analysed_plan,
    arrow_schema,
    hadoop_path,
    is_local,
    is_of_matches,
    spark_context,
    without_marks,
)
from pyflinkcep.spark.plan.analysis import set_or_refuse
from pyflinkcep.spark.plan.file_scan import FileScan
from pyflinkcep.spark.plan.job import (
    SHUFFLE_PARTITIONS,
    Job,
    Prepared,
    map_in_arrow,
    shuffle_partitions,
)
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.watermark import (
    GUARDED,
    StreamWatermark,
    attach,
    attached,
    delayed,
    is_emitting,
    output_id,
    renumbered,
    replaced,
    streaming_nodes,
)
from pyflinkcep.spark.state.storage import INDEX, KINDS, PAGES, SEGMENTS
from pyflinkcep.spark.worker.bucket_task import BucketPlan, Matching
from pyflinkcep.spark.worker.bucket_worker import RESULTS, FlushTask
from pyflinkcep.spark.worker.live_rules_task import ToldTask
from pyflinkcep.spark.worker.pack import (
    AHEAD,
    ARRIVED,
    BUCKET,
    LATE,
    NULLS,
    PACKED,
    PackTask,
    RowsTask,
    UnpackTask,
)
from pyflinkcep.spark.worker.processor import CepProcessor
from pyflinkcep.spark.worker.progress import EARLIEST, LARGEST, PATTERN_SUMS, RECORDS, STAGES, SUMS

# Returns the output of a final watermark, given the events, the checkpoint and the number of the
# operator. It can be pickled.
Rest = Callable[[DataFrame, str, int], DataFrame]
_RESULT = "MapInArrow"
_LATEST = f"{PREFIX}latest"
# Operators with state that emit their rows at once, and hold none.
_PASSING = ("Deduplicate", "GlobalLimit")


def remember(result: DataFrame, events: DataFrame, rest: Rest) -> None:
    """
    Remember what returns the rest of a result of events, for patterns whose events it will be.

    A DataFrame derived from the result knows nothing of it but its plan, which therefore has it.
    """
    attach(result, events, cloudpickle.dumps(rest))  # type: ignore[no-untyped-call]


def rest_of_events(
    events: DataFrame, pattern: str, checkpoint: str, operator_id: int
) -> DataFrame | None:
    """Return the events that come when the patterns before a pattern end."""
    # None if there are none.
    plan = analysed_plan(events)
    if plan is None:
        if any(map(is_of_matches, events.schema.fields)):
            raise _refused(pattern, "a pattern over Spark Connect")
        return None
    before = _Before(pattern, events.sparkSession, operator_id)
    before.visit(plan)
    if not before.found:
        return None
    ends = {place: rest(checkpoint, number) for place, (rest, number) in before.found.items()}

    def ended(node: Any) -> Any:
        place = output_id(node)
        if place in ends and node.nodeName() == _RESULT:
            return renumbered(ends[place], node)
        if node.children().size() or place is None:
            return None
        schema = StructType.fromJson(json.loads(node.schema().json()))
        return renumbered(events.sparkSession.createDataFrame([], schema), node)

    return replaced(events, ended)


@attrs.define(eq=False)
class _Before:
    """Finds the results among the events of a pattern."""

    pattern: str  # The pattern
    session: Any  # The session
    number: int  # That of the last stateful operator seen; Spark counts from the sink
    # What returns the rest of each, by its place in the plan, and the number of its operator.
    found: dict[str, tuple[Callable[[str, int], DataFrame], int]] = attrs.field(factory=dict)

    def visit(self, node: Any, is_inside: bool = False, above: str = "") -> None:
        """Visit the operators from the sink on; those inside a result are only counted."""
        if not node.isStreaming():
            return
        name = node.nodeName()
        left = attached(node, self.session) if name == _RESULT and not is_inside else None
        if left is not None:
            if above:
                raise _refused(self.pattern, above)
            rest = partial(cloudpickle.loads(left[1]), left[0])  # see `remember`
            self.found[str(output_id(node))] = (rest, self.number + 1)
            is_inside = True
        elif is_emitting(node) or name.startswith(_PASSING):
            self.number += 1
            if not is_inside and not _passes(node):
                raise _refused(self.pattern, _article(name))
            above = _article(name)
        children = node.children()
        for at in range(children.size()):
            self.visit(children.apply(at), is_inside, above)


def _passes(node: Any) -> bool:
    """Whether an operator with state holds no row that would come at the end."""
    if node.nodeName() == "Join":
        return str(node.joinType().sql()) in ("INNER", "LEFT SEMI")
    return bool(node.nodeName().startswith(_PASSING))


def _article(name: str) -> str:
    return f"the operator {name} of Spark"


def _refused(pattern: str, what: str) -> CepError:
    return NotSupportedError(
        f"pattern {pattern}: flush cannot return the rows that {what} before it may still hold",
        "write its rows to a table, and run the pattern on that as a query of its own",
    )


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def choose_state_store(spark: SparkSession) -> None:
    """Ensure that the session keeps state in RocksDB, which this operator needs."""
    chosen = spark.conf.get(_PROVIDER)
    if chosen == _ROCKSDB:
        return
    if _PROVIDER in dict(spark.conf.getAll):
        raise InputError(
            f"expected the state store RocksDB for patterns on streams, got {chosen}",
            f"set {_PROVIDER} to {_ROCKSDB}, or leave it unset",
        )
    set_or_refuse(spark, _PROVIDER, _ROCKSDB)


_LOGGER = logging.getLogger("pyflinkcep")
_FEW = 4  # How many tasks for each core are few
_hinted: set[str] = set()  # The applications that were told: once is enough


def hint_at_partitions(session: SparkSession) -> None:
    """Log a warning, once, if a stream on a local master has many tasks for each core."""
    context = spark_context(session)
    if not is_local(context):
        return
    partitions, cores = shuffle_partitions(session), context.defaultParallelism
    if partitions <= _FEW * cores or context.applicationId in _hinted:
        return
    _hinted.add(context.applicationId)
    _LOGGER.warning(
        "each micro-batch of the stream takes %d tasks with state on %d cores: on one machine, set "
        "%s to %d before the first start. A checkpoint keeps the number that it began with.",
        partitions, cores, SHUFFLE_PARTITIONS, cores,
    )  # fmt: skip


def stored_state(
    spark: SparkSession, plan: BucketPlan, checkpoint: str, operator_id: int
) -> DataFrame:
    """Read the state of a stream that has stopped."""
    if not isinstance(checkpoint, str) or not isinstance(operator_id, int):
        raise InvalidArgumentError(
            f"expected the path of a checkpoint, and a number, got {checkpoint!r} and "
            f"{operator_id!r}",
            "pass '/path/of/checkpointLocation'",
        )
    group, page = F.col("user_map_key.group"), F.col("user_map_key.page")
    number, none = F.col("user_map_key.number"), F.lit(0)
    reader = spark.read.format("statestore").option("path", _readable(spark, checkpoint))
    reader = reader.option("operatorId", operator_id)

    def rows(variable: str, first: Column, second: Column, value: str) -> DataFrame:
        return (
            reader.option("stateVarName", variable)
            .load()
            .select(
                F.col(f"key.{BUCKET}").alias(BUCKET),
                F.lit(KINDS[variable]).alias("kind"),
                first.cast("bigint").alias("first"),
                second.cast("bigint").alias("second"),
                F.col(f"{value}.data").alias("data"),
            )
        )

    try:
        state = (
            rows(INDEX, none, none, "value")
            .unionAll(rows(PAGES, group, page, "user_map_value"))
            .unionAll(rows(SEGMENTS, number, none, "user_map_value"))
        )
    except Exception as cause:
        raise InputError(
            f"pattern {plan.layout.pattern}: no state of it in the checkpoint {checkpoint!r}: "
            f"{str(cause).splitlines()[0]}",
            "pass the checkpointLocation of a stopped query with this pattern; "
            "operatorId says which of several stateful operators the pattern is, counted from the "
            "sink",
        ) from cause
    return state


def by_bucket(state: DataFrame, packed: DataFrame | None) -> DataFrame:
    """Return rows of state and any packed events, grouped by bucket."""
    if packed is not None:
        events = packed.where("data IS NOT NULL").select(
            F.col(BUCKET),
            F.lit(ARRIVED).alias("kind"),
            F.col("partition").cast("bigint").alias("first"),
            F.col("position").cast("bigint").alias("second"),
            F.col("data"),
        )
        state = state.unionAll(events)
    return state.repartition(BUCKET).sortWithinPartitions(BUCKET, "kind", "first", "second")


def _readable(spark: SparkSession, checkpoint: str) -> str:
    """Return a path at which Spark finds the state of a checkpoint."""
    # Spark's reader of state looks for ``a%20b`` where the folder is ``a b``; it is shown a link.
    path = hadoop_path(spark, checkpoint)
    if path.getRawPath() == path.getPath():
        return checkpoint
    if path.getScheme() == "file" and is_local(spark_context(spark)):
        return _link(path.getPath())
    raise NotSupportedError(
        f"flush() cannot read the checkpoint {checkpoint!r}: Spark's reader of state looks for "
        f"{path.getRawPath()!r}",
        "pass a symbolic link to it that all workers can see, at a path without spaces, '%' and "
        "such characters",
    )


@cache
def _link(folder: str) -> str:
    """Return a link to a folder, at a path of letters and digits; it goes when Python ends."""
    parent = tempfile.mkdtemp(prefix="pyflinkcep-")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    link = os.path.join(parent, "checkpoint")
    os.symlink(folder, link)
    return link


@attrs.frozen(eq=False)
class StreamOutput:
    """The output of a job on an unbounded DataFrame."""

    unpack: UnpackTask | RowsTask | ToldTask  # Makes it from the operator's results
    schema: StructType  # Its columns
    held_back: HeldBack  # How far behind the watermark the times in it can be
    # The outputs for events left out, by their parts of the operator's output; without an output
    # they are dropped and counted.
    sides: Mapping[str, str] = attrs.field(factory=dict)
    what: str = ""  # What its rows are, in the name of the job; empty for matches

    @property
    def shows_events(self) -> bool:
        """Whether it may have events that no match needs."""
        return bool(set(self.sides) - {NULLS})


@attrs.frozen(eq=False)
class StreamJob:
    """A job on an unbounded DataFrame."""

    name: str  # Its name in Spark's UI and progress
    output: StreamOutput  # Its output
    events: DataFrame  # The events, prepared
    plan: BucketPlan  # The settings of the operator
    delay_ms: int  # The delay of the watermark that is handed on
    is_named: bool  # Whether the user chose its name, which its counters then have
    counters: str = ""  # The name of its counters, if that of another job
    # Makes of the work before the operator that of a job that sends events in its own way.
    sending: Callable[[PackTask], PackTask] | None = None
    published: DataFrame | None = None  # Publications of rules, as packed rows
    files: FileScan | None = None  # The events, if workers read them themselves

    @classmethod
    def of(
        cls,
        job: Job,
        prepared: Prepared,
        matching: Matching,
        fingerprint: dict[str, str],
        output: StreamOutput,
        unneeded: frozenset[int] = frozenset(),
        sending: Callable[[PackTask], PackTask] | None = None,
        sent: pa.Schema | None = None,
        unsaid: Mapping[str, str] | None = None,
    ) -> StreamJob:
        """Put together the job of a pattern, a query, a clause or rules."""
        source, settings = job.source, job.settings
        watermark = watermark_of(source)
        schema = sent or _packed_schema(prepared.events, prepared.layout)
        plan = BucketPlan(
            matching=matching,
            layout=prepared.layout,
            # Arrow need not check what Spark guarantees about a batch.
            schema=pa.schema([field.with_nullable(True) for field in schema]),
            key_groups=settings.groups,
            processing_time=source.time_column is None,
            fingerprint=fingerprint,
            unsaid=unsaid or {},
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
        files = None if watermark.delay_ms is None else prepared.files
        return cls(
            name, output, prepared.events, plan, delay_ms, is_named, sending=sending, files=files
        )

    def behind(self, milliseconds: int) -> StreamJob:
        """Return the job with Spark's watermark further behind, for the operators that follow."""
        # The pattern itself goes on as before.
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
        """Run the job."""
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
        packed = self._packed(task, pack)
        results = (
            (packed if self.published is None else packed.unionAll(self.published))
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
        alone = attrs.evolve(self, events=cast(DataFrame, None), published=None, files=None)
        rest = partial(_flushed, alone)
        remember(result, self.events, rest)
        return result

    def _packed(self, task: PackTask, name: str) -> DataFrame:
        """Return the events by bucket, as packed rows."""
        packed = Prepared(self.events, task.layout, self.files).mapped(task.run, PACKED, name)
        if self.files is None:
            return packed
        # The events' own times are seen by workers only. Spark's watermark is never before 1970.
        latest = F.timestamp_millis(F.greatest(F.col("latest"), F.lit(0)))
        timed = packed.withColumn(_LATEST, latest)
        timed = timed.withWatermark(_LATEST, f"{self.delay_ms} milliseconds")
        return timed.select(*PACKED.fieldNames())

    def flush(self, checkpoint: str, operator_id: int) -> DataFrame:
        """Run the job that returns the results of a final watermark."""
        # What patterns before this one still hold passes through it.
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
        task = PackTask(
            plan.layout,
            plan.schema,
            plan.key_groups,
            tells_latest=False,
            allows_null_keys=plan.allows_null_keys,
            drops_nulls=plan.drops_nulls,
        )
        return task if self.sending is None else self.sending(task)

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


def _flushed(job: StreamJob, events: DataFrame, checkpoint: str, operator_id: int) -> DataFrame:
    """Return what a job flushes, given its events, which it is pickled without."""
    return attrs.evolve(job, events=events).flush(checkpoint, operator_id)


def _packed_schema(events: DataFrame, layout: Layout) -> pa.Schema:
    """Return the columns of prepared events that go to the operator."""
    own = dict.fromkeys([*layout.payload, *layout.key_signature, HASH])
    columns = [name for name in own if name not in layout.bit_columns]
    columns += layout.bit_columns
    return arrow_schema(events.select(*map(quoted, columns)).schema)


def watermark_of(source: EventSource) -> StreamWatermark:
    """Return the watermark that a job follows; there is none in processing time."""
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


_pickler: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]

# The owner of each name in a session. On the driver only: it is unknown beforehand whether two
# results will meet in one query, and Spark refuses a query with two counters of one name.
_named: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()


def counters_name(name: str, events: DataFrame, *settings: object) -> str:
    """Return a name for a job's counters that is unique in the session."""
    taken = _taken(events)
    named = _named.setdefault(events.sparkSession, {})
    digest = hashlib.sha256(_pickler.dumps(settings))
    digest.update(str(events.semanticHash()).encode())
    job = digest.hexdigest()
    names = (f"{name} ({number})" if number > 1 else name for number in count(1))
    found = next(free for free in names if free not in taken and named.get(free, job) == job)
    named[found] = job
    return found


def check_counters_name(name: str, events: DataFrame) -> str:
    """Return the name that a user chose for a job's counters."""
    if name in _taken(events):
        raise InvalidArgumentError(
            f"two patterns of a query are named {name!r}",
            "give each a name of its own: Spark finds counters by name",
        )
    return name


def _taken(events: DataFrame) -> set[str]:
    """Return the names of the counters of jobs below."""
    below = analysed_plan(events)
    nodes = () if below is None else streaming_nodes(below)
    return {node.name() for node in nodes if node.nodeName() == "CollectMetrics"}


_NAMES = (*RECORDS, *SUMS, *PATTERN_SUMS, LARGEST, *EARLIEST)


def observed_columns(
    sides: Collection[str], stages: Mapping[str, int], is_guarded: bool
) -> list[Column]:
    """Return the observed metrics of a stream."""
    left_out = {LATE: ("lateRecords", "numLateRecordsDropped")}
    if is_guarded:
        left_out[AHEAD] = ("aheadRecords", "numAheadRecordsDropped")
    metrics = {
        metric: _total("0" if side in sides else _number(count))
        for side, (count, metric) in left_out.items()
    }
    metrics |= {
        "numNullRecordsDropped": _total(_number("nullRecords")),
        "numPartialMatchesDropped": _total(_number("droppedMatches")),
        "stateBytesRead": _total(_number("stateBytesRead")),
        "stateBytesWritten": _total(_number("stateBytesWritten")),
        **_counted(is_pattern=bool(stages)),
        **_by_stage(stages),
    }
    # As text: a call of a function of PySpark costs milliseconds, and there would be a hundred.
    return [F.expr(f"{sql} AS {quoted(name)}") for name, sql in metrics.items()]


def _counted(*, is_pattern: bool) -> dict[str, str]:
    found = {}
    for name in SUMS:
        if name.endswith("Nanos"):
            found[name.replace("Nanos", "Ms")] = f"round({_total(_number(name))} / 1e6D, 3)"
        else:
            found[name] = _total(_number(name))
    for name in EARLIEST:
        if is_pattern or name != "oldestPartialMatch":
            found[name] = f"min({_number(name)})"
    if is_pattern:
        found |= {name: _total(_number(name)) for name in PATTERN_SUMS}
        found[LARGEST] = f"coalesce(max({_number(LARGEST)}), 0L)"
    return found


def _by_stage(stages: Mapping[str, int]) -> dict[str, str]:
    """Return the partial matches by the stage of their last event."""
    counts = [
        f"{_total(f'get(counts, {len(RECORDS) + STAGES + number})')} AS {quoted(stage)}"
        for stage, number in stages.items()
    ]
    return {"partialMatches": f"struct({', '.join(counts)})"} if counts else {}


def _number(name: str) -> str:
    return f"get(counts, {_NAMES.index(name)})"


def _total(number: str) -> str:
    return f"coalesce(sum({number}), 0L)"
