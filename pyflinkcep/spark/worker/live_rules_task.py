# SPDX-License-Identifier: Apache-2.0
"""Rules that change, in a stream's operator and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import Ints, table_of
from pyflinkcep.rules.live_rules import LiveRules, RuleBasis, checked, live_rules, sending_of
from pyflinkcep.rules.rule_lives import RuleLives, StoredLives
from pyflinkcep.rules.rule_pages import RulePages
from pyflinkcep.rules.rules_in_force import RuleChange, RuleProblem
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.state.bucket_state import BucketState
from pyflinkcep.spark.state.pages import read_table
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.consumers import MAIN, tagged
from pyflinkcep.spark.worker.noted_log import NotedLog
from pyflinkcep.spark.worker.pack import TOLD, PackTask, parts_of
from pyflinkcep.spark.worker.rules_task import RulesPackTask, SendingTask
from pyflinkcep.time import MIN_WATERMARK

TOLD_SCHEMA = StructType(
    [
        StructField("publication", LongType(), False),
        StructField("rule", StringType()),
        StructField("version", LongType()),
        StructField("change", StringType()),
        StructField("problem", StringType()),
        StructField("hint", StringType()),
    ]
)
"""What became of a change of a rule."""


@attrs.frozen(eq=False, kw_only=True)
class LivePackTask(PackTask):
    """The work on one partition of a stream's events, of those that rules of a log may want."""

    basis: RuleBasis
    kept: Sequence[str]  # The columns of events
    log: NotedLog | None  # None if workers may not be able to read it

    @classmethod
    def of(cls, task: PackTask, **own: Any) -> LivePackTask:
        """Return the work of a job that sends events in this way."""
        return cls(**_fields_of(task), **own)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack Arrow batches; without the log all events, whose conditions buckets ask then."""
        known = None if self.log is None else self.log.needed(self.key_groups.bucket_count)
        rules = self.basis.sending if known is None else sending_of(self.basis, known)
        sending = SendingTask(rules, self.kept)
        yield from _LiveRulesPackTask(**_fields_of(self), sending=sending).run(batches)


def _fields_of(task: PackTask) -> dict[str, Any]:
    return {one.name: getattr(task, one.name) for one in attrs.fields(PackTask)}


class _LiveRulesPackTask(RulesPackTask):
    """The same of events as buckets see them, with conditions of rules that change."""

    def _divide(self, table: pa.Table, times: Ints) -> tuple[pa.Table, Ints]:
        names = self.sending.kept
        schema = pa.schema([self.schema.field(name) for name in names])
        events = table_of(table.select(list(names)).columns, schema)
        return super()._divide(events, times)


@attrs.frozen(eq=False, kw_only=True)
class LiveMatching(Matching):
    """Rules that change; see :class:`BucketPlan`."""

    basis: RuleBasis
    columns: Sequence[str]  # Those of an event
    schema: StructType  # Of matches
    log: NotedLog | None = None  # See `LivePackTask`
    counts_arrived = False

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        stack = ExitStack()
        none = live_rules(self.basis, ()).stream
        pages = RulePages(none, self.columns, arrow_schema(self.schema), context, stack)
        return BucketTask(
            plan, pages, arriving=_Changing(self.basis, pages, plan, self.log), opened=stack
        )


@attrs.frozen(eq=False)
class _Changing:
    """Applies publications; see ``Arriving``."""

    basis: RuleBasis
    pages: RulePages
    plan: BucketPlan
    log: NotedLog | None

    def __call__(
        self,
        state: BucketState,
        reached: int,
        tables: Sequence[pa.Table],
        publications: Mapping[int, str],
    ) -> tuple[Sequence[pa.Table], pa.Table | None]:
        """Return the events that rules want, and what became of publications."""
        stored, told = StoredLives.of(state.read_rules()), None
        delay = _longer(stored.delay_ms, self.plan.delay_ms)
        # Of a stream that starts again with a shorter delay, events of the longer one still wait.
        is_longer = stored.data is not None and delay != stored.delay_ms
        if publications or is_longer or any(life.is_over(reached) for life in stored.lives):
            latest = self._latest(state, reached, delay) if publications else reached
            given = tuple(sorted(publications.items()))
            stored, told = _changed(self.basis, stored, given, reached, latest, delay)
            assert stored.data is not None
            state.write_rules(stored.data)
        if self.log is not None:
            self.log.note(state.bucket, stored.data)
        rules: LiveRules = live_rules(self.basis, stored.lives)
        self.pages.use(rules.stream)
        if not tables:
            return tables, told
        arrived = pa.concat_tables(tables)
        return [table_of(rules.arrived(arrived).columns, self.plan.schema)], told

    def _latest(self, state: BucketState, reached: int, delay: int | None) -> int:
        """Return a time that no event in the queue is after: the same for buckets, if possible."""
        if delay is not None:  # no event that waits is later than that, in any bucket
            return reached + delay if reached > MIN_WATERMARK else reached
        times = [
            int(self.plan.layout.times_ms(state.read_segment(number)).max())
            for number in state.index.segments
        ]
        return max(times, default=reached)


def _longer(known: int | None, delay: int | None) -> int | None:
    return None if known is None or delay is None else max(known, delay)


@lru_cache(maxsize=16)
def _changed(
    basis: RuleBasis,
    stored: StoredLives,
    publications: tuple[tuple[int, str], ...],
    reached: int,
    latest: int,
    delay: int | None,
) -> tuple[StoredLives, pa.Table | None]:
    """Return the rules after publications, and what became of these: the same in most buckets."""
    told: list[pa.Table | None] = []

    def change(lives: RuleLives) -> None:
        lives.retire(reached)
        lives.delay_ms = delay
        given = dict(publications)
        told.append(_table(*lives.apply(given, lambda one: checked(basis, one), lambda: latest)))

    return stored.changed(change), told[0]


def _table(applied: Sequence[RuleChange], problems: Sequence[RuleProblem]) -> pa.Table | None:
    names = TOLD_SCHEMA.fieldNames()
    rows: list[tuple[object, ...]] = [
        (one.number, one.name, one.version, one.change, None, None) for one in applied
    ]
    rows += [(one.number, one.rule, None, None, one.problem, one.hint) for one in problems]
    if not rows:
        return None
    listed = [dict(zip(names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(listed, arrow_schema(TOLD_SCHEMA))


@attrs.frozen(eq=False)
class ToldTask:
    """The work after the operator: matches, and what became of publications, with tags."""

    name: str  # The output with the latter
    schema: StructType  # Of all outputs

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        schema = arrow_schema(self.schema)
        for batch in batches:
            rows = parts_of(batch)
            for name, output in (("events", MAIN), (TOLD, self.name)):
                for table in (read_table(row[name]) for row in rows if row[name] is not None):
                    yield from (tagged(output, part, schema) for part in table.to_batches())
