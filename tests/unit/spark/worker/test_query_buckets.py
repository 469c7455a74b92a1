# SPDX-License-Identifier: Apache-2.0
"""A query on a stream: the state of a bucket, batch after batch, gives what the whole gives."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructType

from pyflinkcep.engines.choice import OUTPUTS, chosen
from pyflinkcep.engines.queries import QueryPlan
from pyflinkcep.errors import PatternChangedError, StateFormatError
from pyflinkcep.expressions.program import Kind
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.queries import QueryColumns
from pyflinkcep.sase import parse
from pyflinkcep.sase.attributes import queried_attributes
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.state.bucket_state import COMMON
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import read_table
from pyflinkcep.spark.worker.bucket import Arrivals, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan
from pyflinkcep.spark.worker.pack import PackTask, pack_results, unpack_results
from pyflinkcep.spark.worker.query_task import QUERY, USABLE, QueryMatching
from pyflinkcep.testing import matchSase
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.property.test_sase_properties import events
from tests.property.test_streamed_queries import any_query
from tests.unit.spark.worker.buckets import SpyStorage

Rows = list[dict[str, Any]]


def event(id: int, ts: int, kind: str, x: int = 0) -> dict[str, Any]:
    return {"id": id, "ts": ts, "kind": kind, "k": 0, "x": x, "y": 0, "s": "p"}


def expected(query: Query, rows: Rows, output: str) -> Counter[str]:
    """The matches on a list, without those events that the watermark had passed."""
    bare = parse(repr(query))
    found = matchSase(bare, rows, "ts", "kind", output=output)
    variables = [part.variable for part in query.positive]
    return Counter(
        json.dumps(
            [match[variables[-1]][-1]["ts"], {v: [e["id"] for e in match[v]] for v in variables}]
        )
        for match in found
    )


def shown(query: Query) -> Query:
    """The query without what is done with its matches."""
    return attrs.evolve(query, having=None, columns=None)


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 3)
@given(
    any_query(),
    st.sampled_from(OUTPUTS),
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), max_size=8),
    st.randoms(use_true_random=False),
)
def test_a_bucket_gives_what_the_list_gives(
    query: Query, output: str, seed: int, sizes: list[tuple[int, int]], chance: Any
) -> None:
    """Whatever the query, the batches and the order of arrival; late events are left out."""
    query = shown(query)
    rows = events(seed, 16)
    arrivals = sorted(rows, key=lambda row: row["ts"] + chance.randrange(4))
    bucket, watermark, taken = QueryBucket(query, output=output), 0, []
    for size, step in [*sizes, (len(rows), 0)]:
        batch, arrivals = arrivals[:size], arrivals[size:]
        bucket.batch(batch, watermark)
        taken += [row for row in batch if row["ts"] > watermark]
        watermark += step
    bucket.close()
    assert sorted(bucket.late) == sorted({row["id"] for row in rows} - {r["id"] for r in taken})
    ordered = sorted(taken, key=lambda row: row["ts"])
    assert bucket.found == expected(query, ordered, output)
    assert bucket.storage.is_empty or bucket.storage.segments_kept == 0


def test_the_watermark_moves_within_the_batch() -> None:
    """A match is given out in the micro-batch that brings the watermark past its last event."""
    bucket = QueryBucket(parse("PATTERN SEQ(~C c, A a, B b) WITHIN 9"), delay_ms=2)
    rows = [event(n, n, t) for n, t in enumerate("XXXXAXXXB")]
    bucket.batch(rows[1:], 0)
    assert not bucket.found
    bucket.batch([{**rows[0], "id": 20, "ts": 10}], 0)
    assert list(bucket.found) == ['[8, {"a": [4], "b": [8]}]']


def test_events_leave_the_state_with_their_window() -> None:
    """What no match can use any more is forgotten, though no event comes."""
    bucket = QueryBucket(parse("PATTERN A;C^2;B WHERE a.x < b.x WITHIN 10"))
    row = event(1, 5, "A")
    bucket.batch([row], 0)
    bucket.batch([], 6)
    assert not bucket.storage.is_empty
    assert bucket.timer == 15
    bucket.batch([], 15)
    index = bucket.storage.read_index()
    assert index is None or bucket.storage.segments_kept == 0
    assert not bucket.storage.all_pages()
    assert bucket.timer is None


def test_strict_runs_hold_no_events_that_ended() -> None:
    """Without a window only events since the first live run began are kept."""
    bucket = QueryBucket(
        parse("PATTERN SEQ(A a, A+ b[], B c) WHERE strict_contiguity and b[i].x > b[i-1].x")
    )
    rows = [event(n, n, "AB"[n % 5 == 4], n % 3) for n in range(1, 200)]
    bucket.batch(rows, 0)
    bucket.batch([], 400)
    assert len(bucket.storage.read_index() or b"") < 6000


def test_another_query_is_refused_or_starts_anew() -> None:
    """A checkpoint of another query fails by name; a restart forgets what it held."""
    first = QueryBucket(parse("PATTERN A;C;B WITHIN 10"))
    row = event(1, 5, "A")
    first.batch([row, {**row, "id": 2, "ts": 8, "kind": "C"}], 0)
    first.batch([], 6)
    other = parse("PATTERN C;B WITHIN 10")
    with pytest.raises(PatternChangedError, match="query"):
        QueryBucket(other, storage=first.storage).batch([row], 6)
    second = QueryBucket(other, storage=first.storage, on_change="restart", watermark=6)
    second.batch([{**row, "id": 3, "ts": 9, "kind": "B"}], 6)
    second.close()
    assert list(second.found) == ['[9, {"c": [2], "b": [3]}]']


def test_damaged_or_newer_state_is_refused() -> None:
    """Damage is noticed by the checksum; a key's numbers of another version are named."""
    bucket = QueryBucket(parse("PATTERN SEQ(~C c, A a, B b) WITHIN 10"))
    row = event(1, 5, "A")
    bucket.batch([row], 0)
    bucket.batch([], 6)
    data = bucket.storage.read_index()
    assert data is not None
    for broken, why in (
        (data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
        (_newer(bucket), "format 7"),
    ):
        storage = bucket.storage.copy()
        storage.write_index(broken)
        with pytest.raises(StateFormatError, match=why):
            QueryBucket(bucket.query, storage=storage).close()


def _newer(bucket: QueryBucket) -> bytes | None:
    """The state with its only key's numbers in a version that is not there yet."""
    state = BucketWork(bucket.plan.task(RuntimeContext("test", 0)), bucket.storage).state
    page = state.read_page(COMMON)
    page.numbers = np.array([7, 0])
    state.write_page(COMMON, page)
    state.close(bucket.timer, 6)
    return bucket.storage.read_index()


# --- a bucket of a query's stream driven by hand: no session, no JVM, state in memory as bytes


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
