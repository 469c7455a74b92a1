# SPDX-License-Identifier: Apache-2.0
"""A pattern on a DataFrame, analysed once for bounded and unbounded jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.conditions import ExpressionCondition
from pyflinkcep.engines.choice import AUTO, EVENT_LISTS, LATEST, Evaluation, chosen_for_pattern
from pyflinkcep.engines.compressed.matches import TimeWindows
from pyflinkcep.engines.compressed.patterns import refuse_incompressible
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.engines.latest.chain import LatestChain, refused
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.latest import LatestEvents
from pyflinkcep.matching.layout import taking_stages
from pyflinkcep.matching.matcher import Wanted
from pyflinkcep.matching.order import OrderColumns, TieOrder
from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.plan.conditions import (
    Asked,
    bit_columns,
    checked_conditions,
    compiled_expressions,
    field_columns,
    said_by,
)
from pyflinkcep.spark.plan.job import Job, Prepared, slice_length, sliced
from pyflinkcep.spark.plan.patterns.prefilter import EventFilter, bare_if_untaken, droppable_events
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import fingerprint
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import (
    ColumnConsumer,
    Consumer,
    FunctionConsumer,
    output_schema,
    wanted_by,
)
from pyflinkcep.spark.worker.endings import EndingRows, PatternEndingsTask, PatternListTask
from pyflinkcep.spark.worker.latest_task import LatestTask
from pyflinkcep.spark.worker.pack import RowsTask, UnpackTask
from pyflinkcep.spark.worker.pattern_task import ChainTask, PatternMatching

# The ways to use matches, by whether they need timeouts and whether they see their order.
_WAYS = {
    "toDF(), select() and flatSelect()": (False, False),
    "process()": (False, True),
    "timeouts, funnel() and reached()": (True, False),
}


@attrs.frozen(eq=False)
class PatternEvaluation:
    """The choice of an evaluation."""

    pattern: Pattern  # The pattern
    dataframe: DataFrame  # Its events
    comparator: TieOrder | None  # Orders events of equal time
    settings: JobSettings  # What the user requested

    def chosen(
        self,
        nfa: NFA,
        expressions: CompiledExpressions | None,
        observed: bool,
        sees_order: bool,
    ) -> Evaluation:
        """Return how matches are found."""
        obstacle = next((why for why, there in self._obstacles(nfa, observed) if there), "")
        return chosen_for_pattern(
            self.pattern, nfa, expressions, self.settings.evaluation, obstacle, sees_order
        )

    def explained(self) -> dict[str, Evaluation]:
        """Return how matches are found for each way to use them."""
        nfa = NFACompiler.compile(self.pattern)
        expressions = (
            None if self.dataframe.isStreaming else compiled_expressions(nfa, self.dataframe)
        )
        if self.settings.evaluation == LATEST:
            return {
                way: self.chosen(nfa, expressions, *seen)
                for way, seen in _WAYS.items()
                if not seen[0]
            }
        free = self
        if self.settings.evaluation == EVENT_LISTS:  # where that is refused, say why instead
            free = attrs.evolve(self, settings=attrs.evolve(self.settings, evaluation=AUTO))
            self.chosen(nfa, expressions, *_WAYS["toDF(), select() and flatSelect()"])
        return {way: free.chosen(nfa, expressions, *seen) for way, seen in _WAYS.items()}

    def _obstacles(self, nfa: NFA, observed: bool) -> Iterator[tuple[str, bool]]:
        """Yield reasons against all but the automaton, and whether each applies."""
        is_kept = self.dataframe.isStreaming and self.settings.evaluation != LATEST
        yield "a stream keeps partial matches in its state", is_kept
        yield "timeouts or a funnel are requested, which only the automaton has", observed
        yield "a comparator orders events of equal time", self.comparator is not None
        yield (
            "maxPartialMatches is set, a bound for the automaton",
            bool(self.settings.limit),
        )
        for atom in nfa.atoms:
            is_asked_here = bool(atom.bit) and not isinstance(atom.condition, ExpressionCondition)
            yield f"{atom.condition!r} of stage {atom.stage!r} is not SQL", is_asked_here


@attrs.frozen(eq=False)
class PatternJob:
    """A pattern on a DataFrame, analysed."""

    job: Job  # The events and the user's settings
    pattern: Pattern  # The pattern; it is compiled again on the workers
    nfa: NFA  # The compiled pattern
    asked: Asked  # The conditions that Spark evaluates
    expressions: CompiledExpressions | None  # The fields of the events that match expressions use
    # Orders events of equal time, which otherwise keep their order in the source.
    comparator: TieOrder | None

    @classmethod
    def analyse(
        cls, job: Job, pattern: Pattern, nfa: NFA, comparator: TieOrder | None
    ) -> PatternJob:
        """Check a pattern's conditions against its events."""
        expressions = compiled_expressions(nfa, job.source.dataframe)
        asked = checked_conditions(nfa, job.source.dataframe)
        return cls(job, pattern, nfa, asked, expressions, comparator)

    @property
    def source(self) -> EventSource:
        """The events."""
        return self.job.source

    @property
    def variables(self) -> Sequence[str]:
        """The stages that take events, in pattern order."""
        return taking_stages(self.pattern, self.nfa)

    @property
    def limit(self) -> PartialMatchLimit | None:
        """How many partial matches a key may have."""
        return self.job.settings.limit

    def run(self, consumer: Consumer) -> DataFrame:
        """Run the job on bounded events."""
        how = self._evaluated_by(consumer)
        uses_lists = how.name == EVENT_LISTS
        wanted = EventFilter.of(
            self.job, self.asked, self._droppable(consumer.shows_time and not consumer.by_windows)
        )
        prepared = wanted.after(self.prepared(wanted.before(), positions=True))
        if uses_lists and self._slice_ms is not None:
            prepared = sliced(prepared, self.source, self._slice_ms, 0, self.nfa.window_time - 1)
        if how.name not in (EVENT_LISTS, LATEST) and self.comparator is None:
            prepared = bare_if_untaken(prepared, self.nfa, wanted.droppable)
        layout = prepared.layout
        task: ChainTask | LatestTask | BatchTask
        if uses_lists:
            task = ChainTask(self.pattern, layout, consumer, evaluation=how.for_tables)
        elif how.name == LATEST:
            latest = partial(LatestEvents.of_pattern, self.pattern, layout)
            task = LatestTask(latest, consumer)
        else:
            task = BatchTask(self.pattern, layout, self.comparator, consumer, self.limit)
        return self.job.run(prepared, task.run, output_schema(consumer))

    def stream(
        self,
        consumer: Consumer,
        sides: Mapping[str, str],
        computed: Mapping[str, str] | None = None,
    ) -> StreamJob:
        """Return the job on unbounded events."""
        is_latest = self._evaluated_by(consumer).name == LATEST
        prepared = self.prepared(self.job)
        of_query = isinstance(consumer, ColumnConsumer) and consumer.times.is_last
        held_back = HeldBack.by_pattern(self.nfa, of_query=of_query)
        layout, stages = prepared.layout, list(self.nfa.stages)
        if is_latest:
            chain = LatestChain.of(self.pattern, self.nfa)
            if self.source.time_column is None:
                raise refused("processing time is not available: it needs that of events")
            held_back, stages = HeldBack.by_latest(chain.rule), chain.stages
        unpack = UnpackTask(layout, stages, consumer, sides)
        output = StreamOutput(unpack, output_schema(consumer), held_back, sides)
        order = str(self.comparator) if isinstance(self.comparator, OrderColumns) else ""
        facts = fingerprint(self.nfa, layout, self.job.settings.groups, order, computed)
        droppable = self._droppable(consumer.shows_time and not consumer.by_windows)
        matching = self._matching(droppable, wanted_by(consumer, self.limit))
        if is_latest:
            facts["evaluation"] = LATEST
            matching = attrs.evolve(matching, is_latest=True, counted_stages={})
        return StreamJob.of(self.job, prepared, matching, facts, output, droppable)

    # --- without listing

    def check_compressible(self) -> None:
        """Refuse a pattern whose partial matches cannot be merged."""
        refuse_incompressible(self.nfa)
        if self.source.time_column is None or self.comparator is not None:
            raise NotSupportedError(
                "compressed() needs event time and no comparator",
                "write inEventTime('column'): events of equal time keep their order",
            )

    def in_windows(self, windows: TimeWindows) -> PatternJob:
        """Refuse windows: streams keep the partial matches of patterns, not events."""
        raise NotSupportedError(
            "aggregate(window=...) is not available for a pattern",
            "write it as a query: parse('PATTERN SEQ(...)')",
        )

    def endings(self, rows: EndingRows) -> DataFrame:
        """Return a row for each bounded event that completes matches."""
        prepared = self.prepared(self.job, positions=True)
        task = PatternEndingsTask(self.pattern, prepared.layout, rows, tuple(self.variables))
        return self.job.run(prepared, task.run, rows.schema)

    def unpacked(self, consumer: Consumer, limit: int | None) -> DataFrame:
        """Return the rows of compressed matches, at most `limit` for each key."""
        prepared = self.prepared(self.job, positions=True)
        task = PatternListTask(self.pattern, prepared.layout, consumer, limit)
        return self.job.run(prepared, task.run, output_schema(consumer))

    def stream_of_endings(self, rows: EndingRows) -> StreamJob:
        """Return the job on unbounded events with a row for each event that completes matches."""
        prepared = self.prepared(self.job)
        layout = prepared.layout
        facts = fingerprint(self.nfa, layout, self.job.settings.groups)
        # Stored events keep their answers, since they are processed again.
        layout = attrs.evolve(layout, payload=(*layout.payload, *layout.bit_columns))
        droppable = self._droppable(shows_next=True)
        return StreamJob.of(
            self.job,
            attrs.evolve(prepared, layout=layout),
            self._matching(droppable, Wanted(limit=self.limit), rows),
            {**facts, "output": "all matches of an event"},
            StreamOutput(RowsTask(), rows.schema, HeldBack.by_pattern(self.nfa), what=rows.what),
            droppable,
        )

    def prepared(self, job: Job, *, positions: bool = False) -> Prepared:
        """Add what Spark computes from each event: conditions and fields."""
        events = job.source.dataframe
        bits = bit_columns(self.asked)
        # Bounded events gain nothing by it, and Spark's reader leaves out row groups for filters.
        said = said_by(self.asked, self.expressions, self.nfa) if job.is_stream else None
        return job.prepared(
            {**field_columns(self.expressions, events, self.nfa), **bits},
            bits=tuple(bits),
            expressions=self.expressions,
            positions=positions,
            has_order=self.comparator is not None,
            said=said,
        )

    # --- helpers

    @property
    def _slice_ms(self) -> int | None:
        """The length of the time slices for lists, so that all cores work; None without slices."""
        window = self.nfa.window_time
        return None if self.source.keys or window <= 0 else slice_length(window)

    def _evaluated_by(self, consumer: Consumer) -> Evaluation:
        """Return how matches are found."""
        how = PatternEvaluation(
            self.pattern, self.source.dataframe, self.comparator, self.job.settings
        )
        sees_order = isinstance(consumer, FunctionConsumer) and consumer.shows_time
        observed = consumer.wants_timeouts or consumer.wants_reached
        return how.chosen(self.nfa, self.expressions, observed, sees_order)

    def _droppable(self, shows_next: bool) -> frozenset[int]:
        """Return the events that no match needs, as bits of the conditions Spark evaluates."""
        in_processing_time = self.source.time_column is None
        return droppable_events(self.nfa, in_processing_time, self.limit is not None, shows_next)

    def _matching(
        self, droppable: frozenset[int], wanted: Wanted, rows: EndingRows | None = None
    ) -> PatternMatching:
        taking = {stage: self.nfa.stages.index(stage) for stage in self.variables}
        return PatternMatching(
            pattern=self.pattern,
            comparator=self.comparator,
            wanted=wanted,
            droppable=droppable,
            rows=rows,
            variables=tuple(self.variables),
            counted_stages=taking if rows is None else {},
        )
