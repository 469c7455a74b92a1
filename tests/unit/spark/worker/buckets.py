# SPDX-License-Identifier: Apache-2.0
"""A bucket of a stream driven by hand: no session, no JVM, state in memory as bytes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import BooleanType, DoubleType, IntegerType, LongType, StringType, StructType

from pyflinkcep import Pattern
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.nfa.analysis import Relevance
from pyflinkcep.engines.flink.nfa.atoms import known_bits, words
from pyflinkcep.engines.flink.stored_state import unpack
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH, spark_atoms
from pyflinkcep.matching.layout import Layout, bit_names
from pyflinkcep.matching.matcher import Wanted
from pyflinkcep.matching.results import Found
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.state.bucket_state import BucketIndex
from pyflinkcep.spark.state.fingerprint import fingerprint
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import Page, read_table, unseal
from pyflinkcep.spark.state.storage import INDEX, PAGES, SEGMENTS, MemoryStorage, PageId
from pyflinkcep.spark.worker.bucket import Arrivals, BucketOutput, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask
from pyflinkcep.spark.worker.pack import (
    PackTask,
    pack_results,
    read_spans,
    read_times,
    unpack_results,
)
from pyflinkcep.spark.worker.pattern_task import PatternMatching
from pyflinkcep.spark.worker.progress import (
    EARLIEST,
    LARGEST,
    PATTERN_SUMS,
    STAGES,
    SUMS,
    numbers_of,
)
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.conformance.cases import Spec, holds, is_iterative, match_ids, python_condition

SCHEMA = (
    StructType()
    .add("key", StringType())
    .add("ts", LongType())
    .add("id", IntegerType())
    .add("name", StringType())
    .add("price", DoubleType())
    .add("sub", BooleanType())
)

_COUNTERS = (*SUMS, *PATTERN_SUMS, LARGEST, *EARLIEST)

Result = tuple[str | None, int, list[list[Any]]]
"""(key, time in epoch milliseconds, stages with the events' ids)."""


def pushed_down(spec: Spec) -> Any:
    """Return a condition as a text, in place of SQL, where one event is enough."""
    return python_condition(spec) if is_iterative(spec) else json.dumps(spec)


def name_is(name: str) -> str:
    """Return the condition, as a text, that an event has a name."""
    return json.dumps(["name", name])


class SpyStorage(MemoryStorage):
    """State in memory that knows what was read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.pages_read: list[PageId] = []
        self.pages_written: list[PageId] = []

    def read_pages(self, pages: Sequence[PageId]) -> Sequence[bytes | None]:
        """Return pages."""
        self.pages_read += pages
        return super().read_pages(pages)

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace or delete a page."""
        self.pages_written.append(page)
        super().write_page(page, data)

    def all_pages(self) -> dict[PageId, bytes]:
        """Return the pages that are kept apart from the index."""
        return {
            (key[0], key[1]): data for (name, key), data in self.values.items() if name == PAGES
        }

    def all_segments(self) -> dict[int, bytes]:
        """Return the segments of the queue that are kept apart from the index."""
        return {key[0]: data for (name, key), data in self.values.items() if name == SEGMENTS}

    def copy(self) -> SpyStorage:
        """Return another storage with the same state."""
        other = SpyStorage()
        other.values = dict(self.values)
        return other

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept at all."""
        return not self.values

    @property
    def segments_kept(self) -> int:
        """The number of segments of the queue."""
        index = self.values.get((INDEX, ()))
        return 0 if index is None else len(unpack(unseal(index))[0]["segments"])


@attrs.define(eq=False)
class Bucket:
    """All keys of a stream, in one bucket; every call begins with the state as bytes."""

    pattern: Pattern  # the pattern; its SQL conditions are texts made by :func:`pushed_down`
    timeouts_wanted: bool = True
    keyed: bool = True
    comparator: Callable[..., Any] | None = None
    processing_time: bool = False
    key_groups: int = 8
    on_change: str = "fail"
    hash_of: Callable[[str | None], int] = lambda key: zlib.crc32((key or "").encode())
    storage: SpyStorage = attrs.field(factory=SpyStorage)
    watermark: int = MIN_WATERMARK
    timer: int | None = None
    matches: list[Result] = attrs.field(factory=list)  # the results so far
    timeouts: list[Result] = attrs.field(factory=list)
    late: list[tuple[str | None, int]] = attrs.field(factory=list)  # the late events so far
    # Whether events that matching can do without are dropped, as before a stream's shuffle.
    filtered: bool = False
    shows_time: bool = True  # whether it can do so only where the times of matches stay the same
    # How far the watermark is behind the latest event of a batch; None: only what batch() is given.
    delay_ms: int | None = None
    is_downstream: bool = False
    # How many events were dropped, late or too far ahead, dropped ones among them.
    dropped_count: int = 0
    max_ahead_ms: int | None = None  # how far an event may be ahead of the others
    # The events that were further ahead.
    ahead: list[tuple[str | None, int]] = attrs.field(factory=list)
    late_count: int = 0
    ahead_count: int = 0
    # The counters of each run, without times, and the partial matches by stage.
    told: list[dict[str, Any]] = attrs.field(factory=list)
    task: BucketTask = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        nfa = NFACompiler.compile(self.pattern, self.timeouts_wanted)
        bits = bit_names(spark_atoms(nfa))
        layout = Layout(
            pattern=nfa.description,
            schema=SCHEMA,
            payload=tuple(SCHEMA.fieldNames()),
            key_names=("key",) if self.keyed else (),
            key_columns=("key",) if self.keyed else (),
            key_signature=(HASH, "key") if self.keyed else (HASH,),
            time_column=None if self.processing_time else "ts",
            time_unit=None,
            bit_columns=bits,
        )
        schema = arrow_schema(SCHEMA).append(pa.field(HASH, pa.int64()))
        for name in bits:
            schema = schema.append(pa.field(name, pa.int64()))
        droppable = Relevance.of(nfa, known_bits(nfa.atoms), self.shows_time).droppable
        matching = PatternMatching(
            pattern=self.pattern,
            comparator=self.comparator,
            wanted=Wanted(self.timeouts_wanted),
            droppable=droppable,
        )
        plan = BucketPlan(
            matching=matching,
            layout=layout,
            schema=schema,
            key_groups=KeyGroups(self.key_groups),
            processing_time=self.processing_time,
            fingerprint=fingerprint(nfa, layout, self.key_groups),
            on_pattern_change=self.on_change,
            dropped=droppable if self.filtered else frozenset(),
            delay_ms=self.delay_ms,
            is_downstream=self.is_downstream,
            max_ahead_ms=self.max_ahead_ms,
        )
        self.task = matching.task(plan, RuntimeContext("test", 0))

    def events(self, rows: Iterable[dict[str, Any]]) -> pa.Table:
        """Return rows of ``key, ts, id, name, price`` as packed events."""
        atoms = spark_atoms(self.task.rules.nfa)
        table: dict[str, list[Any]] = {field.name: [] for field in self.task.plan.schema}
        for row in rows:
            event = {"key": None, "price": 0.0, "sub": False, **row}
            event[HASH] = self.hash_of(event["key"]) if self.keyed else 0
            asked = Row(**event)
            bits = sum(
                atom.bit for atom in atoms if holds(json.loads(atom.condition.expression), asked)
            )
            names = self.task.plan.layout.bit_columns
            event |= dict(zip(names, words(bits, len(names)), strict=True))
            for name, values in table.items():
                values.append(event[name])
        return pa.table(table, self.task.plan.schema)

    def batch(self, rows: Sequence[dict[str, Any]], watermark: int | None = None) -> None:
        """Take in a micro-batch; the watermark or clock is what it was unless given."""
        if watermark is not None:
            self.watermark = max(self.watermark, watermark)
        if rows:
            self._run(self._packed(self.events(rows)))
        elif self.timer is not None and self.timer <= self.watermark:
            self._run(Arrivals())

    def _packed(self, table: pa.Table) -> Arrivals:
        """Return events as they come out of the shuffle; count those that do not."""
        task = self.task
        pack = PackTask(
            task.plan.layout,
            task.plan.schema,
            task.plan.key_groups,
            task.plan.dropped,
            max_ahead_ms=self.max_ahead_ms,
        )
        rows = [row for packed in pack.run(iter(table.to_batches(3))) for row in packed.to_pylist()]
        dropped = [row["dropped"] for row in rows if row["dropped"] is not None]
        self.dropped_count += sum(len(read_times(times)) for times in dropped)
        tables = [read_table(row["data"]) for row in rows if row["data"] is not None]
        spans = [read_spans(row["spans"]) for row in rows if row["spans"] is not None]
        return Arrivals(tables, max(row["latest"] for row in rows), dropped, spans)

    def close(self) -> None:
        """Return the final watermark, as a flush does."""
        self.watermark = MAX_WATERMARK
        self._run(Arrivals())

    def index(self) -> BucketIndex:
        """Return the table of contents of the state."""
        return BucketWork(self.task, self.storage).index

    def pages(self) -> dict[PageId, Page]:
        """Return the pages of the state."""
        state = BucketWork(self.task, self.storage).state
        return {page: state.read_page(page) for page in state.index.pages}

    def _run(self, arrivals: Arrivals) -> None:
        work = BucketWork(self.task, self.storage)
        outputs = work.run(arrivals, self.watermark)
        self.timer = work.timer(self.watermark)
        work.close(self.timer, self.watermark)
        for output in outputs:
            self._take(output)
        found = Found.concat([output.found for output in outputs])
        numbers = numbers_of(found, work.state, work.reached)
        stages = dict(zip(self.task.rules.nfa.stages, numbers[STAGES:], strict=False))
        self.told.append(dict(zip(_COUNTERS, numbers, strict=False)) | stages)

    def _take(self, output: BucketOutput) -> None:
        self.late_count += output.late_count
        self.ahead_count += output.ahead_count
        if output.ahead is not None:
            self.ahead += [(row["key"], row["id"]) for row in output.ahead.to_pylist()]
        stages = self.task.rules.nfa.stages
        packed = pack_results(output.found, output.events)
        found, table = unpack_results(*packed, stages, 0)
        reader = RowReader(SCHEMA)
        rows = reader.rows(table)
        for is_match, timestamp, handles in found.results():
            match = {stage: [rows[handle] for handle in taken] for stage, taken in handles.items()}
            key = next(iter(match.values()))[0].key
            (self.matches if is_match else self.timeouts).append((key, timestamp, match_ids(match)))
        if output.late is not None:
            self.late += [(row["key"], row["id"]) for row in output.late.to_pylist()]


def named(name: str) -> Any:
    """Return a Python condition for the name of an event."""
    return lambda event: event.name == name


def a_to_b(condition: Any = name_is, window_ms: int | None = 20) -> Pattern:
    """Return the pattern: a, some time after it b."""
    pattern = Pattern.begin("a").where(condition("a")).followedBy("b").where(condition("b"))
    return pattern if window_ms is None else pattern.within(timedelta(milliseconds=window_ms))


def event(key: str, ts: int, name: str, id: int | None = None) -> dict[str, Any]:
    """Return an event; its id is its time unless given."""
    return {"key": key, "ts": ts, "name": name, "id": ts if id is None else id}
