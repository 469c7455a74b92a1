# SPDX-License-Identifier: Apache-2.0
"""What the jobs of patterns, queries and clauses have in common, and how events are cut."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs
import pyarrow as pa
from pyspark import AccumulatorParam
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampNTZType

from pyflinkcep.engines.compressed.matches import WINDOW_START, TimeWindows
from pyflinkcep.errors import NotSupportedError, Place, TimeUnitWarning
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.columns import HASH, OWN, POSITION, PREFIX, SLICE, WINDOW, quoted
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.progress import told_folder
from pyflinkcep.spark.arrow.internals import spark_context
from pyflinkcep.spark.plan.conditions import sql_column
from pyflinkcep.spark.plan.engine import SPARK, check_engine, engine_of
from pyflinkcep.spark.plan.file_scan import FileScan
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.computed_columns import FileEvents, SqlTexts
from pyflinkcep.spark.worker.progress import CountedTask
from pyflinkcep.spark.worker.runtime import Range, TimeRange, merged, prepare_worker
from pyflinkcep.spark.worker.seen_keys import KEYS, TARGET, CheckTask, SeenKeysTask
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK, wrong_unit


def time_range(session: SparkSession, layout: Layout) -> TimeRange | None:
    """Return what tells of the times of a job's events; None if they cannot be of a wrong unit."""
    # Spark adds up what tasks tell in an accumulator, on the driver. Over Spark Connect there is
    # none: a worker writes the warning to its log.
    if layout.time_column is None or layout.time_unit is not None:
        return None
    where = f"pattern {layout.pattern}, time column {layout.time_column!r}"
    context = spark_context(session)
    if context is None:
        return TimeRange(layout.time_column, _Logged(where))
    warned = _Warned(where, Place.here())
    return TimeRange(layout.time_column, context.accumulator(None, warned).add)


@attrs.frozen
class _Logged:
    """Warns on a worker."""

    where: str

    def __call__(self, times: Range) -> None:
        text = wrong_unit(*times, self.where)
        if text is not None:
            warnings.warn(text, TimeUnitWarning, stacklevel=2)


class _Merged(AccumulatorParam[Any]):
    """Adds up ranges of times."""

    def zero(self, value: Any) -> Any:
        return None

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        return merged(value1, value2)


class _Warned(_Merged):
    """The same on the driver, where a task's range is added as soon as it has ended; warns once."""

    # Spark adds ranges in a thread of its own, so a filter that turns warnings into errors has no
    # effect there.

    def __init__(self, where: str, place: Place) -> None:
        self._where = where
        self._place = place
        self._is_told = False

    def addInPlace(self, value1: Any, value2: Any) -> Any:
        times = merged(value1, value2)
        text = None if times is None else wrong_unit(*times, self._where)
        if text is not None and not self._is_told:
            self._is_told = True
            with suppress(TimeUnitWarning):
                self._place.warn(text, TimeUnitWarning)
        return times

    def __reduce__(self) -> tuple[type[_Merged], tuple[()]]:
        return _Merged, ()


ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(
    dataframe: DataFrame,
    function: ArrowFunction,
    schema: StructType,
    name: str,
    events: Layout | None = None,
    files: FileEvents | None = None,
) -> DataFrame:
    """Map a DataFrame's Arrow batches; those of events in files, if a row is a part of a file."""
    # PySpark 4.3 looks each column up by name as if it were a path, so a column named ``a.b`` is
    # not found. Such columns travel under another name.
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
        read = named if files is None else files.read(named)
        return function(read if times is None else times.seen(read))

    run.__name__ = run.__qualname__ = name
    if renamed:
        columns = zip(names, safe, strict=True)
        dataframe = dataframe.select(*(F.col(quoted(old)).alias(new) for old, new in columns))
    return dataframe.mapInArrow(run, schema)


SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


def shuffle_partitions(session: SparkSession) -> int:
    """Return into how many partitions a shuffle divides."""
    return int(str(session.conf.get(SHUFFLE_PARTITIONS, "200")))


def shuffled(events: DataFrame, layout: Layout) -> DataFrame:
    """Return prepared events with each key in one partition; all in one without a key."""
    if not layout.key_signature:
        return events.coalesce(1)
    return events.repartition(F.col(quoted(layout.key_signature[0])))


def watched(task: ArrowFunction, signature: Sequence[str]) -> ArrowFunction:
    """Return a task that tells how far it is, if that is wanted."""
    # The first column of the key's signature, if it has any, tells keys apart.
    folder = told_folder()
    return task if folder is None else CountedTask(task, folder, next(iter(signature), None)).run


@attrs.frozen(eq=False)
class Prepared:
    """The events with the additional columns that matching needs."""

    events: DataFrame  # The events
    layout: Layout  # Their columns
    files: FileScan | None = None  # The same, if workers can read them themselves

    def mapped(self, task: ArrowFunction, schema: StructType, name: str) -> DataFrame:
        """Hand the events to a task, as they come."""
        files = self.files
        if files is None:
            return map_in_arrow(self.events, task, schema, name, self.layout)
        return map_in_arrow(files.chunks, task, schema, name, self.layout, files.events)


@attrs.frozen(eq=False)
class Job:
    """A job on a DataFrame, whatever it matches: events, their key and time, settings and name."""

    # Every job takes the same path. A pattern, a query or a clause is analysed on its events: the
    # classes ``PatternJob``, ``QueryJob``, ``FlinkJob`` and ``StandardJob`` have one of these.
    # Their method ``run`` adds what Spark computes from each event (`prepared`), and hands the
    # events of each key to a task (`run`); ``stream`` does the same for unbounded events and puts a
    # `StreamJob` together.

    source: EventSource  # The events, without those that the settings drop
    settings: JobSettings  # The user's settings
    given: DataFrame  # The events as the user gave them
    name: str = attrs.field(init=False)  # Its name in Spark's UI and progress
    is_stream: bool = attrs.field(init=False)  # Whether its events are unbounded

    @name.default
    def _name(self) -> str:
        return self.source.job_name

    @is_stream.default
    def _is_stream(self) -> bool:
        return bool(self.source.dataframe.isStreaming)

    @classmethod
    def of(cls, source: EventSource, settings: JobSettings) -> Job:
        """Return the job on some events."""
        check_engine(source.dataframe)
        if settings.partitioned:
            _check_partitioned(source)
        return cls(settings.about(source), settings, source.dataframe)

    def where(self, condition: Column | str) -> Job:
        """Return the job on the events that satisfy a condition."""
        events = self.source.dataframe
        if isinstance(condition, str):
            condition = sql_column(condition, events)
        events = events.where(condition)
        return attrs.evolve(self, source=attrs.evolve(self.source, dataframe=events))

    def prepared(
        self,
        added: Mapping[str, Column],
        payload: Sequence[str] = (),
        bits: Sequence[str] = (),
        expressions: CompiledExpressions | None = None,
        always_hash: bool | None = None,
        *,
        positions: bool = False,
        has_order: bool = False,
        said: SqlTexts | None = None,
    ) -> Prepared:
        """Add what Spark computes from each event; workers may if `said` is all of it."""
        if always_hash is None:
            always_hash = self.is_stream or self.settings.partitioned
        layout = self.source.layout(bits, always_hash, expressions)
        if payload:
            layout = attrs.evolve(layout, payload=(*layout.payload, *payload))
        if has_order:
            layout = attrs.evolve(layout, has_order=True)
        if positions and layout.has_order:
            added = {**added, POSITION: F.monotonically_increasing_id()}
        events = self.source.prepare({**self.source.key_hash(always_hash), **added})
        files = None if said is None else FileScan.of(self.source, events, said)
        return Prepared(events, layout, files)

    def run(
        self,
        prepared: Prepared,
        task: ArrowFunction,
        schema: StructType,
        order: Sequence[Column] = (),
    ) -> DataFrame:
        """Hand the events of each key to a task; for bounded events."""
        layout, is_partitioned = prepared.layout, self.settings.partitioned
        events = prepared.events if is_partitioned else shuffled(prepared.events, layout)
        if order:
            events = events.sortWithinPartitions(*order)
        task = watched(task, layout.key_signature)
        if not is_partitioned:
            return map_in_arrow(events, task, schema, self.name, layout)
        seen = SeenKeysTask(task, layout.key_signature[0], schema)
        rows = map_in_arrow(events, seen.run, seen.schema, self.name, layout)
        rows = rows.repartition(F.col(TARGET)).sortWithinPartitions(F.col(KEYS).isNull())
        check = CheckTask(layout.pattern, schema)
        return map_in_arrow(rows, check.run, schema, f"{self.name} (check keys)")


def _check_partitioned(source: EventSource) -> None:
    """Refuse to leave events in their partitions if that means nothing."""
    what, hint = "keyBy(…, partitioned=True)", "leave it out"
    if source.dataframe.isStreaming:
        raise NotSupportedError(
            f"{what} is not available on a stream, whose state is kept by key", hint
        )
    engine = engine_of(source.dataframe.sparkSession)
    if engine is not SPARK:
        raise NotSupportedError(
            f"{what} is not available on {engine.name}, which deals partitions out anew", hint
        )


# The length of a slice in windows; long, since events in two slices are shuffled twice.
_SLICE_WINDOWS = 8


def slice_length(window: int) -> int:
    """Return the length of slices for a window, in milliseconds."""
    return _SLICE_WINDOWS * window


def sliced(
    prepared: Prepared, source: EventSource, length: int, before: int, after: int
) -> Prepared:
    """Assign each event to the slices in which a match may use it."""
    events = prepared.events
    time = milliseconds_of(source)
    first = F.when(time >= F.lit(MIN_WATERMARK + after), time - after).otherwise(time)
    last = F.when(time <= F.lit(MAX_WATERMARK - before), time + before).otherwise(time)
    slices = F.sequence(_floor(first, length), _floor(last, length))
    everything = [F.col(quoted(name)) for name in events.columns]
    cut = events.select(*everything, F.explode_outer(slices).alias(SLICE))
    owned = cut.withColumn(OWN, F.col(SLICE) == _floor(time, length))
    return Prepared(owned, attrs.evolve(prepared.layout, key_signature=(SLICE,)))


def _floor(milliseconds: Column, length: int) -> Column:
    return F.floor(milliseconds / F.lit(length)).cast("bigint")


def milliseconds_of(source: EventSource) -> Column:
    """Return the time of events in epoch milliseconds."""
    assert source.time_column is not None
    time = F.col(quoted(source.time_column))
    if source.time_unit is None:
        return time
    if isinstance(source.dataframe.schema[source.time_column].dataType, TimestampNTZType):
        # Not timestampdiff, which reads both times by the session's clock.
        day = F.unix_date(time.cast("date")).cast("bigint")
        minutes = (day * 24 + F.hour(time)) * 60 + F.minute(time)
        seconds = F.date_part(F.lit("SECOND"), time).cast("decimal(8,6)")
        return minutes * 60_000 + F.floor(seconds * 1000).cast("bigint")
    micros = f"unix_micros({quoted(source.time_column)})"
    return F.expr(f"({micros} - pmod({micros}, 1000L)) div 1000L")  # no double holds them all


def copied(windows: TimeWindows, prepared: Prepared, source: EventSource) -> Prepared:
    """Return each event once for every window that it is in."""
    # The start of the window, `WINDOW`, is a part of the key.
    events, layout = prepared.events, prepared.layout
    time, slide = milliseconds_of(source), F.lit(windows.slide)
    since = F.pmod(time, slide)  # the start of the last window
    reach = F.lit(windows.length - 1) - since
    earlier = reach - F.pmod(reach, slide)
    starts = F.sequence(time - since - earlier, time - since, slide)
    own = [F.col(quoted(name)) for name in events.columns]
    copies = events.select(*own, F.explode_outer(starts.cast("array<bigint>")).alias(WINDOW))
    signature = [name for name in layout.key_signature if name != HASH]
    hashed = [name for name in layout.key_signature if name == HASH] or signature
    number = F.xxhash64(*(F.col(quoted(name)) for name in (*hashed, WINDOW)))
    keyed = attrs.evolve(
        layout,
        payload=(*layout.payload, WINDOW),
        key_names=(*layout.key_names, WINDOW_START),
        key_columns=(*layout.key_columns, WINDOW),
        key_signature=(HASH, *signature, WINDOW),
    )
    return Prepared(copies.withColumn(HASH, number), keyed)
