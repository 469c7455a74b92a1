# SPDX-License-Identifier: Apache-2.0
"""A clause with Flink's meaning on a DataFrame, analysed: a pattern's job, and its measures."""

from __future__ import annotations

from functools import partial

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.errors import CepError
from pyflinkcep.match_recognize.checks import check_time
from pyflinkcep.match_recognize.expressions import Expression
from pyflinkcep.match_recognize.flink import FlinkClause, read_flink_clause
from pyflinkcep.match_recognize.names import Names
from pyflinkcep.match_recognize.parser import window_ms
from pyflinkcep.match_recognize.tree import Clause
from pyflinkcep.matching.columns import quoted
from pyflinkcep.matching.leaf_columns import LeafColumn
from pyflinkcep.matching.standard_rows import leaf_column
from pyflinkcep.spark.arrow.internals import marks
from pyflinkcep.spark.plan.analysis import is_ansi
from pyflinkcep.spark.plan.clauses.measures import (
    ROW_COUNT,
    Arguments,
    Values,
    computed_late,
    measured,
    order_after_time,
    partition_keys,
    time_type,
    values_of,
)
from pyflinkcep.spark.plan.job import Job
from pyflinkcep.spark.plan.outputs import match_times
from pyflinkcep.spark.plan.patterns.explanation import explanation
from pyflinkcep.spark.plan.patterns.job import PatternJob
from pyflinkcep.spark.plan.patterns.prefilter import why_unfiltered
from pyflinkcep.spark.plan.settings import JobSettings, check_bounded
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob
from pyflinkcep.spark.worker.consumers import ValueConsumer


@attrs.frozen(eq=False)
class FlinkJob:
    """A clause on a DataFrame, analysed."""

    read: FlinkClause  # The clause
    matched: PatternJob  # Its pattern on the events
    keys: tuple[str, ...]  # The partition columns
    time: str  # The time column
    arguments: Arguments  # The columns that measures take values from
    values: Values  # What workers take from matches
    _leaves: tuple[LeafColumn, ...]

    @classmethod
    def analyse(
        cls, dataframe: DataFrame, clause: Clause, names: Names, settings: JobSettings
    ) -> FlinkJob:
        """Check a clause against its input."""
        check_time(clause, names, time_type(dataframe), is_stream=dataframe.isStreaming)
        time = clause.order[0].name.text
        within = window_ms(clause, names.source)
        read = read_flink_clause(clause, names, within)
        read = attrs.evolve(read, measures=computed_late(read.measures, dataframe))
        keys, order = tuple(clause.keys), order_after_time(clause)
        values = values_of(read.measures, names, dataframe, dataframe.schema[time].dataType)
        if not keys and not values:
            values = ROW_COUNT
        arguments = Arguments(dataframe)
        leaves = tuple(
            leaf_column(leaf, partial(arguments.column, cast=value.summed))
            for leaf, value in values.items()
        )
        own = [leaf.column for leaf in leaves if leaf.column and leaf.column in dataframe.columns]
        ordering = [] if order is None else order.names
        kept = dict.fromkeys([*keys, time, *ordering, *own, *arguments.computed])
        events = arguments.added_to(dataframe)
        by = partition_keys(dataframe, keys, is_stream=dataframe.isStreaming)
        nfa = NFACompiler.compile(read.pattern)
        if not dataframe.isStreaming:
            check_bounded(nfa.description, settings.limit, processing_time=False)
        source = EventSource.of(events, by, time, nfa.description)
        job = Job.of(attrs.evolve(source, kept=tuple(kept)), settings)
        try:
            matched = PatternJob.analyse(job, read.pattern, nfa, order)
        except CepError as refused:
            raise read.placed(refused) from refused
        return cls(read, matched, keys, time, arguments, values, leaves)

    @property
    def job(self) -> Job:
        """The rows and the user's settings."""
        return self.matched.job

    def run(self) -> DataFrame:
        """Return what workers take from the matches of bounded rows."""
        return self.matched.run(self._consumer())

    def stream(self) -> StreamJob:
        """Return the job on unbounded rows."""
        return self.matched.stream(self._consumer(), {}, self.arguments.sql)

    def explained(self, _statement: str) -> str:
        """Return how the pattern of the clause will run."""
        unfiltered = why_unfiltered(processing_time=False, limited=self.matched.limit is not None)
        return explanation(self.read.pattern, self._events, self.keys, self.time, unfiltered)

    @property
    def _events(self) -> DataFrame:
        return self.job.source.dataframe

    def _consumer(self) -> ValueConsumer:
        """Return the consumer that takes the key and the values from matches."""
        fields = [StructField(key, self._events.schema[key].dataType) for key in self.keys]
        fields += [StructField(value.name, value.type) for value in self.values.values()]
        leaves = [*(LeafColumn("first", None, key) for key in self.keys), *self._leaves]
        times = match_times(self.job.source, self.matched.nfa)
        return ValueConsumer(StructType(fields), [], leaves, times, is_ansi(self._events))

    def output(self, result: DataFrame) -> DataFrame:
        """Return the clause's output from that of the workers."""
        keys = [F.col(quoted(key)) for key in self.keys]
        read = self.read
        return measured(result, keys, read.measures, self.values, read.names, self._finish)

    def _finish(self, name: str, expression: Expression, column: Column) -> Column:
        """Let MATCH_ROWTIME() carry the stream's watermark."""
        leaf = expression.lone_leaf
        if not self._events.isStreaming or leaf is None or leaf.function != "rowtime":
            return column
        source, type_ = self.job.source, self._events.schema[self.time].dataType
        handed_on = {} if source.is_guarded else marks(type_, source.watermark_delay_ms)
        return column.alias(name, metadata=handed_on)
