# SPDX-License-Identifier: Apache-2.0
"""What the jobs of patterns, queries and clauses have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.columns import POSITION
from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.plan.arrow_map import ArrowFunction, map_in_arrow
from pyflinkcep.spark.plan.engine import SPARK, check_engine, engine_of
from pyflinkcep.spark.plan.portable.sql import sql_column
from pyflinkcep.spark.plan.progress import watched
from pyflinkcep.spark.plan.settings import StreamSettings
from pyflinkcep.spark.plan.shuffle import shuffled
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.worker.partitioned import KEYS, TARGET, CheckTask, SeenKeysTask

__all__ = ["Job", "Prepared"]


@attrs.frozen(eq=False)
class Prepared:
    """
    The events with the additional columns that matching needs.

    Attributes
    ----------
    events : DataFrame
        The events.
    layout : Layout
        Their columns.
    """

    events: DataFrame
    layout: Layout


@attrs.frozen(eq=False)
class Job:
    """
    A job on a DataFrame, whatever it matches: events, their key and time, settings and name.

    Every job takes the same path. A pattern, a query or a clause is analysed on its events: the
    classes ``PatternJob``, ``QueryJob``, ``FlinkJob`` and ``StandardJob`` have one of these. Their
    method ``run`` adds what Spark computes from each event (:meth:`prepared`), and hands the events
    of each key to a task (:meth:`run`); ``stream`` does the same for unbounded events and puts a
    :class:`~pyflinkcep.spark.plan.stream.StreamJob` together.

    Attributes
    ----------
    source : EventSource
        The events, without those that the settings drop.
    settings : StreamSettings
        The user's settings.
    given : DataFrame
        The events as the user gave them.
    name : str
        Its name in Spark's UI and progress.
    is_stream : bool
        Whether its events are unbounded.
    """

    source: EventSource
    settings: StreamSettings
    given: DataFrame
    name: str = attrs.field(init=False)
    is_stream: bool = attrs.field(init=False)

    @name.default
    def _name(self) -> str:
        return self.source.job_name

    @is_stream.default
    def _is_stream(self) -> bool:
        return bool(self.source.dataframe.isStreaming)

    @classmethod
    def of(cls, source: EventSource, settings: StreamSettings) -> Job:
        """
        Return the job on some events.

        Raises
        ------
        InputError
            If the workers cannot import this package.
        NotSupportedError
            If the session's engine is unfit, or the events cannot stay where they are.
        """
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
    ) -> Prepared:
        """
        Add what Spark computes from each event.

        Parameters
        ----------
        added : mapping of str to Column
            The columns to add; the key's hash is added too.
        payload : sequence of str
            Those of them that are kept with an event.
        bits : sequence of str
            Those of them with the answers to conditions.
        expressions : CompiledExpressions, optional
            The match expressions; the columns of their fields are kept with an event.
        always_hash : bool, optional
            Whether the key's hash is needed even if the key is a whole number itself; by default on
            a stream.
        positions : bool
            Whether to number the events, which orders those of one key and time. Where the engine
            has no such order they are not numbered: two of them are an error there.
        has_order : bool
            Whether the user orders such events.
        """
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
        return Prepared(events, layout)

    def run(
        self,
        prepared: Prepared,
        task: ArrowFunction,
        schema: StructType,
        order: Sequence[Column] = (),
    ) -> DataFrame:
        """
        Hand the events of each key to a task; for bounded events.

        Parameters
        ----------
        prepared : Prepared
            The events.
        task : callable
            From the Arrow batches of a partition to batches of `schema`.
        schema : StructType
            The schema of the result.
        order : sequence of Column
            The order of a partition's events; by default the task sorts them.
        """
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
