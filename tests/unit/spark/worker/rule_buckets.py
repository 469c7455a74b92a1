# SPDX-License-Identifier: Apache-2.0
"""Rules on a stream driven by hand: no session, no JVM, state in memory as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark import cloudpickle as pickle
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH
from pyflinkcep.matching.layout import Layout
from pyflinkcep.rules import Rule
from pyflinkcep.rules.page_events import HOLDING
from pyflinkcep.rules.routes import RoutedRules
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.rules.wanting_rule import shared_events
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import read_table
from pyflinkcep.spark.worker.bucket import Arrivals, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask
from pyflinkcep.spark.worker.pack import PackTask, read_spans
from pyflinkcep.spark.worker.rules_task import RulesMatching, RulesPackTask, SendingTask
from pyflinkcep.tables.typed_columns import widest
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.unit.spark.worker.buckets import SpyStorage


@attrs.define(eq=False)
class RuleBucket:
    """All places of a stream in one bucket; every micro-batch begins with the state as bytes."""

    rules: Sequence[Rule]
    schema: pa.Schema  # Of events
    timestamp: str = "t"
    type: str = "name"
    delay_ms: int = 0
    max_ahead_ms: int | None = None
    is_dynamic: bool = False  # Whether other rules may go on from its state
    storage: SpyStorage = attrs.field(factory=SpyStorage)
    found: list[dict[str, Any]] = attrs.field(factory=list)  # The rows of matches so far
    late_count: int = 0
    sent_count: int = 0  # How many events went through the shuffle
    plan: BucketPlan = attrs.field(init=False)
    pack: PackTask = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        probe = shared_events(self.rules, widest(self.schema), self.timestamp, self.type, "UTC")
        rules = StreamRules.of(RoutedRules.of(self.rules, probe, "UTC"), probe)
        own = from_arrow_schema(self.schema)
        lists = ArrayType(own, True)
        matches = StructType(
            [
                StructField("rule", StringType(), False),
                StructField("version", LongType(), False),
                StructField("key", MapType(StringType(), StringType(), True), False),
                StructField("matchId", StringType(), False),
                StructField("matchTimestamp", LongType(), True),
                StructField("events", MapType(StringType(), lists, True), False),
            ]
        )
        layout = Layout(
            pattern="rules",
            schema=own,
            payload=tuple(self.schema.names),
            key_names=(),
            key_columns=(),
            key_signature=(HASH,),
            time_column=self.timestamp,
            time_unit=None,
            bit_columns=(),
        )
        sent = [StructField(HASH, LongType()), StructField(HOLDING, ArrayType(LongType(), False))]
        schema = arrow_schema(StructType([*own.fields, *sent]))
        schema = pa.schema([field.with_nullable(True) for field in schema])
        groups = KeyGroups(8)
        self.plan = BucketPlan(
            matching=RulesMatching(
                rules=rules.arrived(), columns=self.schema.names, schema=matches
            ),
            layout=layout,
            schema=schema,
            key_groups=groups,
            processing_time=False,
            fingerprint={} if self.is_dynamic else {"rules": rules.digest},
            on_pattern_change="fail",
            delay_ms=self.delay_ms,
            max_ahead_ms=self.max_ahead_ms,
            allows_null_keys=True,
        )
        self.pack = RulesPackTask(
            layout,
            schema,
            groups,
            allows_null_keys=True,
            max_ahead_ms=self.max_ahead_ms,
            sending=SendingTask(rules.routed, self.schema.names),
        )

    def batch(self, rows: Sequence[dict[str, Any]]) -> None:
        """Take in a micro-batch."""
        table = pa.Table.from_pylist(list(rows), self.schema)
        packed = [
            row
            for batch in pickle.loads(pickle.dumps(self.pack)).run(iter(table.to_batches(7)))
            for row in batch.to_pylist()
        ]
        tables = [read_table(row["data"]) for row in packed if row["data"] is not None]
        self.sent_count += sum(own.num_rows for own in tables)
        dropped = [row["dropped"] for row in packed if row["dropped"] is not None]
        latest = max((row["latest"] for row in packed), default=MIN_WATERMARK)
        spans = [read_spans(row["spans"]) for row in packed if row["spans"] is not None]
        self._run(Arrivals(tables, latest, dropped, spans), MIN_WATERMARK)

    def close(self) -> None:
        """Return the final watermark, as a flush does."""
        self._run(Arrivals(), MAX_WATERMARK)

    def task(self) -> BucketTask:
        """Return its work as a worker gets it."""
        plan: BucketPlan = pickle.loads(pickle.dumps(self.plan))
        return plan.task(RuntimeContext("test", 0))

    def _run(self, arrivals: Arrivals, now: int) -> None:
        task = self.task()
        work = BucketWork(task, self.storage)
        for output in work.run(arrivals, now):
            if output.found.rows is not None:
                self.found += output.found.rows.to_pylist()
            self.late_count += output.late_count
        work.close(work.timer(now), now)
        task.close()
