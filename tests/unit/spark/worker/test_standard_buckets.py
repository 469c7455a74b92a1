# SPDX-License-Identifier: Apache-2.0
"""Clauses with the standard's meaning in buckets of a stream, driven by hand: no JVM."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from pyflinkcep.engines.rows.matching import PLACE
from pyflinkcep.engines.rows.plan import StandardClause
from pyflinkcep.errors import CepRuntimeError, SkipError, StateFormatError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.match_recognize.tree import Rows
from pyflinkcep.matching.columns import HASH, MATCHED, VALUE
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.matching.standard_rows import StandardRows
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.state.pages import Page
from pyflinkcep.spark.worker.bucket import Arrivals, BucketWork
from pyflinkcep.spark.worker.bucket_task import BucketPlan, PagesMatching
from pyflinkcep.spark.worker.standard import ClausePages
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK
from tests.unit.engines.rows.test_search import patterns
from tests.unit.match_recognize.lists import computed, condition_arguments, kind_of, reading
from tests.unit.spark.worker.buckets import SpyStorage

Row = dict[str, Any]

COLUMNS = [["id", "INT"], ["k", "STRING"], ["ts", "INT"], ["name", "STRING"], ["v", "DOUBLE"]]
SCHEMA = (
    StructType()
    .add("id", LongType())
    .add("k", StringType())
    .add("ts", LongType())
    .add("name", StringType())
    .add("v", DoubleType())
)
MEASURES = "MATCH_NUMBER() AS no, CLASSIFIER() AS c, COUNT(*) AS n, PREV(v) AS p, MIN(v) AS low"
CONDITIONS = (
    "@.name = 'a'", "@.name <> 'b'", "@.v > PREV(@.v)", "@.v > 2", "COUNT(@.v) < 3", "SUM(v) < 9",
    "FIRST(v) < @.v", "MATCH_NUMBER() < 3", "PREV(@.v, 2) IS NULL",
)  # fmt: skip
_MODES = ("ONE ROW", "ALL ROWS", "ALL ROWS", "ALL ROWS PER MATCH WITH UNMATCHED ROWS")
_TYPES = {"match_number": LongType(), "count": LongType(), "min": DoubleType(), "sum": LongType()}


def matching_of(rows: StandardRows) -> PagesMatching:
    """Return what is matched in buckets, rows of equal time by their ids, the greatest first."""
    order = OrderColumns.of([("id", True, None)])
    return PagesMatching(pages=partial(ClausePages, rows), order=order)


@attrs.define(eq=False)
class Bucket:
    """All keys of a clause's stream in one bucket; every call begins with the state as bytes."""

    sql: str  # the statement
    within: int  # the window, 0 for none
    found: Counter[tuple[Any, ...]] = attrs.field(factory=Counter)  # the output so far
    storage: SpyStorage = attrs.field(factory=SpyStorage)
    watermark: int = MIN_WATERMARK
    read: StandardClause = attrs.field(init=False)
    rows: StandardRows = attrs.field(init=False)
    plan: BucketPlan = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.read = reading({"sql": self.sql, "columns": COLUMNS})
        kinds = {sql: kind_of(sql, COLUMNS) for sql in condition_arguments(self.read)}
        matching = self.read.plan(kinds, False, self.within)
        one = matching.rows is Rows.ONE
        shown = ["k"] if one else ["k", "ts", "id", "name", "v"]
        output = StructType([SCHEMA[name] for name in shown])
        if matching.rows is Rows.WITH_UNMATCHED:
            output = output.add(MATCHED, LongType())
        for number, leaf in enumerate(matching.leaves):
            is_label = not leaf.argument or leaf.has_label
            plain = StringType() if is_label else DoubleType()
            output = output.add(f"leaf{number}", _TYPES.get(leaf.function, plain))
        conditions = {sql: f"{VALUE}{number}" for number, sql in enumerate(kinds)}
        self.rows = StandardRows(
            matching,
            arrow_schema(output),
            shown,
            conditions,
            {"v": "v", "id": "id"},
            "ts" if self.within else None,
            1,
        )
        columns = tuple(conditions.values())
        layout = Layout(
            pattern="a clause",
            schema=SCHEMA,
            payload=(*SCHEMA.fieldNames(), *columns),
            key_names=("k",),
            key_columns=("k",),
            key_signature=(HASH, "k"),
            time_column="ts",
            time_unit=None,
            bit_columns=(),
        )
        types = {VALUE + str(n): _arrow(kind.name) for n, kind in enumerate(kinds.values())}
        fields = [*arrow_schema(SCHEMA), *(pa.field(*f) for f in types.items())]
        self.plan = BucketPlan(
            matching=matching_of(self.rows),
            layout=layout,
            schema=pa.schema([*fields, pa.field(HASH, pa.int64())]),
            key_groups=KeyGroups(8),
            processing_time=False,
            fingerprint={"pattern": self.sql},
            on_pattern_change="fail",
            allows_null_keys=True,
        )

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """Return rows as events, with what conditions need."""
        columns = self.rows.conditions
        made = []
        for row in rows:
            values = {name: _machine(computed(sql, row)) for sql, name in columns.items()}
            made.append({**row, **values, HASH: zlib.crc32(repr(row["k"]).encode())})
        return pa.Table.from_pylist(made, self.plan.schema)

    def batch(self, rows: Sequence[Row], watermark: int) -> None:
        """Take in a micro-batch, and let time pass to a watermark before it."""
        self.watermark = max(self.watermark, watermark)
        latest = max((row["ts"] for row in rows), default=MIN_WATERMARK)
        self._run(Arrivals([self.table(rows)] if rows else [], latest))

    def close(self) -> None:
        """Let the input end."""
        self.watermark = MAX_WATERMARK
        self._run(Arrivals())

    def at_once(self, rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
        """Return the output of all rows of bounded input."""
        found: Counter[tuple[Any, ...]] = Counter()
        keys = [*{row["k"]: None for row in rows}]
        own = [[row for row in rows if row["k"] == key] for key in keys]
        for rows_of_key in own:
            rows_of_key.sort(key=lambda row: (row["ts"], -row["id"]))
        ends = np.cumsum([len(rows_of_key) for rows_of_key in own], dtype=np.int64)
        rows, output = self.table([row for own_rows in own for row in own_rows]), self.rows
        matches = output.found(
            rows,
            ends,
            output.plan.compiled(),
            np.zeros((len(keys), PLACE), np.int64),
            keys.__getitem__,
        )
        for batch in output.batches(rows, matches):
            found.update(zip(*batch.to_pydict().values(), strict=True))
        return found

    @property
    def held(self) -> int:
        """How many keys have something in the state."""
        work = BucketWork(self.plan.task(RuntimeContext("test", 0)), self.storage)
        return sum(len(work.state.read_page(page)) for page in work.index.pages)

    def _run(self, arrivals: Arrivals) -> None:
        task = self.plan.task(RuntimeContext("test", 0))
        work = BucketWork(task, self.storage)
        for output in work.run(arrivals, self.watermark):
            if output.found.rows is not None:
                self.found.update(zip(*output.found.rows.to_pydict().values(), strict=True))
        work.close(work.timer(self.watermark), self.watermark)


def _arrow(kind: str) -> pa.DataType:
    return {"STRING": pa.string(), "DOUBLE": pa.float64()}.get(kind, pa.int64())


def _machine(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _rows(rng: random.Random, size: int) -> list[Row]:
    ts, rows = 0, []
    for number in range(size):
        ts += rng.choice([0, 1, 1, 2])
        key, name = rng.choice(["x", "y", None]), rng.choice("aabc")
        v = rng.choice([1.0, 2.0, 3.0, 4.0])
        rows.append({"id": number, "k": key, "ts": ts, "name": name, "v": v})
    return rows


@st.composite
def statements(draw: Any) -> str:
    """Return a clause that a stream can decide."""
    pattern = draw(patterns()).replace("$", "^")
    defined = [
        f"{name} AS {draw(st.sampled_from(CONDITIONS)).replace('@', name)}"
        for name in "ABC"
        if draw(st.booleans())
    ]
    mode = draw(st.sampled_from(_MODES))
    mode = mode if "PER MATCH" in mode else f"{mode} PER MATCH"
    if "{-" in pattern:
        mode = "ALL ROWS PER MATCH"
    skip = draw(st.sampled_from(["PAST LAST ROW", "TO NEXT ROW", "TO LAST A"]))
    define = ", ".join(defined) or "A AS TRUE"
    return f"""SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, id DESC
        MEASURES {MEASURES} {mode} AFTER MATCH SKIP {skip}
        PATTERN (A? B? C? {pattern}) DEFINE {define}) AS m"""


@given(statements(), st.integers(0, 1 << 30), st.sampled_from([0, 0, 3, 6]))
def test_streams_give_what_bounded_input_gives(sql: str, seed: int, within: int) -> None:
    """Whatever the micro-batches, the disorder and the watermarks, the output is that at once."""
    rng = random.Random(seed)
    bucket, rows = Bucket(sql, within), _rows(rng, rng.randrange(14))
    try:
        expected = bucket.at_once(rows)
    except SkipError:
        return
    arriving = sorted(rows, key=lambda row: row["ts"] + rng.choice([0, 0, 2]))
    while arriving:
        size = rng.randint(1, 5)
        now, arriving = arriving[:size], arriving[size:]
        bucket.batch(now, bucket.watermark)
        bucket.batch([], min((row["ts"] for row in arriving), default=100) - 1)
    bucket.close()

    assert (bucket.found, sql) == (expected, sql)


def test_what_is_decided_comes_at_once_and_goes() -> None:
    """A match is given when no later row can change it, or its window ends; no row stays after."""
    head = "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n"
    names = zip("aab", (1, 2, 3), strict=True)
    rows = [{"id": t, "k": "x", "ts": t, "name": name, "v": 1.0} for name, t in names]

    def counts(pattern: str, within: int = 0) -> list[int]:
        bucket = Bucket(f"{head} PATTERN ({pattern}) DEFINE A AS name = 'a') AS m", within)
        given = []
        for row in rows:
            bucket.batch([row], row["ts"] - 1)
            bucket.batch([], row["ts"])
            given.append(bucket.found.total())
        for watermark in (5, 20):
            bucket.batch([], watermark)
            given.append(bucket.found.total())
        return [*given, bucket.held]

    assert counts("A+") == [0, 0, 1, 1, 1, 0]
    assert counts("A+?") == [1, 2, 2, 2, 2, 0]
    assert counts("A A B*") == [0, 0, 0, 0, 0, 1]
    assert counts("A A B*", within=4) == [0, 0, 0, 1, 1, 0]


def test_a_window_that_ends_after_time_ends_with_the_input() -> None:
    """Beyond 64 bits there is no watermark to wait for, so the end of the input decides."""
    text = (
        "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
        "MEASURES COUNT(*) AS n PATTERN (A A B*) DEFINE A AS name = 'a') AS m"
    )
    bucket, last = Bucket(text, within=99), MAX_WATERMARK - 9
    rows = [{"id": n, "k": "x", "ts": last + n, "name": "a", "v": 1.0} for n in range(2)]
    bucket.batch(rows, last - 1)
    bucket.batch([], last + 5)
    assert bucket.found.total() == 0
    bucket.close()
    assert bucket.found == bucket.at_once(rows)
    assert bucket.found.total() == 1


def test_a_sum_out_of_range_wraps_or_fails() -> None:
    """As Spark's own: without ANSI in two's complement, with it an error that names the sum."""
    bucket = Bucket(
        "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES SUM(id) AS s "
        "PATTERN (A A) DEFINE A AS TRUE) AS m",
        0,
    )
    rows = [{"id": (1 << 62) + t, "k": "x", "ts": t, "name": "a", "v": 1.0} for t in (1, 2)]

    assert list(bucket.at_once(rows)) == [("x", -(1 << 63) + 3)]
    bucket.rows = attrs.evolve(bucket.rows, plan=attrs.evolve(bucket.rows.plan, ansi=True))
    bucket.plan = attrs.evolve(bucket.plan, matching=matching_of(bucket.rows))
    with pytest.raises(CepRuntimeError, match="SUM of id overflows bigint"):
        bucket.at_once(rows)


def test_averages_are_of_doubles_in_measures_as_in_define() -> None:
    """Whole numbers are added as doubles, as by Spark: beyond 2**53 not exactly, without overflow."""
    bucket = Bucket(
        "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES AVG(A.id) AS m "
        f"PATTERN (A+ B) DEFINE B AS AVG(A.id) = {2.0**53 / 3} AND B.name = 'b') AS m",
        0,
    )
    rows = [
        {"id": n, "k": "x", "ts": t, "name": "a", "v": 1.0} for t, n in enumerate([2**53, 1, 1])
    ]
    rows.append({"id": 1, "k": "x", "ts": 3, "name": "b", "v": 1.0})

    assert list(bucket.at_once(rows)) == [("x", 2.0**53, 3)]
    large = [{**row, "id": (1 << 63) - 1} for row in rows]
    bucket = Bucket(
        "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES AVG(A.id) AS m "
        "PATTERN (A+ B) DEFINE B AS B.name = 'b') AS m",
        0,
    )
    assert list(bucket.at_once(large)) == [("x", 3 * 2.0**63, 3)]


def test_damaged_numbers_are_refused() -> None:
    """State of another format, or that leads nowhere, is refused by name."""
    sql = (
        "SELECT * FROM events MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A)) AS m"
    )
    matcher = ClausePages(Bucket(sql, 0).rows)
    for numbers in ([2, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, -1, 0, 0, 0], [1, 0, 0]):
        array = pa.array(numbers).to_numpy()
        one = array[:1] * 0
        page = Page(pa.table({}), one, one + len(numbers), one, array, pa.table({}))
        with pytest.raises(StateFormatError):
            matcher.run_page(None, _NO_ITEMS, page, 0, 0)  # type: ignore[arg-type]


class _NO_ITEMS:
    positions = starts = ends = pa.array([], pa.int64()).to_numpy()
