# SPDX-License-Identifier: Apache-2.0
"""A bucket of a query's stream driven by hand: no session, no JVM, state in memory as bytes."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructType

from pyflinkcep.engines.choice import chosen
from pyflinkcep.engines.queries import QueryPlan
from pyflinkcep.expressions.program import Kind
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.queries import QueryColumns
from pyflinkcep.sase.attributes import queried_attributes
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.state.checksums import read_table
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.bucket import Arrivals, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan
from pyflinkcep.spark.worker.pack import PackTask, pack_results, unpack_results
from pyflinkcep.spark.worker.query_task import QUERY, USABLE, QueryMatching
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.unit.spark.worker.buckets import SpyStorage

SCHEMA = (
    StructType()
    .add("id", LongType())
    .add("ts", LongType())
    .add("kind", StringType())
    .add("k", LongType())
    .add("x", LongType())
    .add("y", LongType())
    .add("s", StringType())
)
KINDS = {"k": Kind.BIGINT, "x": Kind.BIGINT, "y": Kind.BIGINT, "s": Kind.STRING}


@attrs.define(eq=False)
class QueryBucket:
    """All keys of a query's stream, in one bucket; every call begins with the state as bytes."""

    query: Query  # the query; its ``[attr]`` are the key
    evaluation: str = "auto"
    output: str = "all"
    on_change: str = "fail"
    delay_ms: int | None = None
    storage: SpyStorage = attrs.field(factory=SpyStorage)
    watermark: int = MIN_WATERMARK
    timer: int | None = None
    # The matches so far, as JSON of variable to ids.
    found: Counter[str] = attrs.field(factory=Counter)
    late: list[int] = attrs.field(factory=list)  # the ids of late events so far
    plan: BucketPlan = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        keys = () if self.query.is_global else self.query.equal
        layout = Layout(
            pattern="a query",
            schema=SCHEMA,
            payload=tuple(SCHEMA.fieldNames()),
            key_names=keys,
            key_columns=keys,
            key_signature=(HASH, *keys),
            time_column="ts",
            time_unit=None,
            bit_columns=(),
        )
        kinds = {name: KINDS[name] for name in queried_attributes(self.query)}
        how = chosen(self.query, self.evaluation, self.output).name
        matching = QueryMatching(
            plan=QueryPlan(self.query, how, self.output),
            columns=QueryColumns(layout, "kind", kinds),
        )
        self.plan = BucketPlan(
            matching=matching,
            layout=layout,
            schema=arrow_schema(SCHEMA).append(pa.field(HASH, pa.int64())),
            key_groups=KeyGroups(8),
            processing_time=False,
            fingerprint={QUERY: repr(self.query), USABLE: "all", "output": self.output},
            on_pattern_change=self.on_change,
            delay_ms=self.delay_ms,
            allows_null_keys=True,
        )

    def batch(self, rows: Sequence[dict[str, Any]], watermark: int) -> None:
        """Take in a micro-batch; Spark's watermark is what it was, or more."""
        self.watermark = max(self.watermark, watermark)
        if rows:
            plan = self.plan
            pack = PackTask(plan.layout, plan.schema, plan.key_groups, allows_null_keys=True)
            batches = iter(self.events(rows).to_batches(3))
            packed = [row for batch in pack.run(batches) for row in batch.to_pylist()]
            tables = [read_table(row["data"]) for row in packed if row["data"] is not None]
            self._run(Arrivals(tables, max(row["latest"] for row in packed)))
        elif self.timer is not None and self.timer <= self.watermark:
            self._run(Arrivals())

    def events(self, rows: Sequence[dict[str, Any]]) -> pa.Table:
        """Return rows as packed events."""
        keys = self.plan.layout.key_columns
        hashed = [
            {**row, HASH: zlib.crc32(json.dumps([row[key] for key in keys]).encode())}
            for row in rows
        ]
        return pa.Table.from_pylist(hashed, self.plan.schema)

    def close(self) -> None:
        """Return the final watermark, as a flush does."""
        self.watermark = MAX_WATERMARK
        self._run(Arrivals())

    def _run(self, arrivals: Arrivals) -> None:
        task = self.plan.task(RuntimeContext("test", 0))
        work = BucketWork(task, self.storage)
        outputs = work.run(arrivals, self.watermark)
        self.timer = work.timer(self.watermark)
        work.close(self.timer, self.watermark)
        variables = [part.variable for part in self.query.positive]
        for output in outputs:
            if output.late is not None:
                self.late += output.late.column("id").to_pylist()
            found, table = unpack_results(*pack_results(output.found, output.events), variables, 0)
            ids = table.column("id").to_pylist()
            taken = [ids[handle] for handle in found.handles.tolist()]
            for _, time, match in found.results(taken):
                own = {name: match[name] for name in variables}
                self.found[json.dumps([time, own])] += 1
