# SPDX-License-Identifier: Apache-2.0
"""A worker's task on one partition, without a JVM: many random partitions, cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from pyflinkcep import (
    FunctionError,
    Pattern,
    PatternProcessFunction,
    RichPatternSelectFunction,
    TimedOutPartialMatchHandler,
)
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import InputError
from pyflinkcep.functions import select_adapter
from pyflinkcep.matching.columns import BITS, HASH, POSITION, WHOLE
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.sorting import BUDGET_BYTES
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.worker import seen_keys
from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import MAIN, FunctionConsumer
from pyflinkcep.spark.worker.seen_keys import KEYS, TARGET, CheckTask, SeenKeysTask
from pyflinkcep.testing import OperatorTestHarness
from tests.property.strategies import Event, PatternSpec, patterns, timed_events

pytestmark = pytest.mark.usefixtures("each_path")

FIELDS = "key bigint, ts bigint, name string, number int, price int"
ARROW = pa.schema(
    [("key", pa.int64()), ("ts", pa.int64()), ("name", pa.string()),
     ("number", pa.int32()), ("price", pa.int32())]
)  # fmt: skip


class Recording:
    """A consumer that keeps what it is given as (key, time, match), and makes no rows."""

    def __init__(self) -> None:
        self.schemas = {"main": schema_of("x int")}
        self.wants_timeouts = True
        self.wants_reached = False
        self.by_windows = False
        self.most_events = MOST_EVENTS
        self.matches: list[Any] = []
        self.timeouts: list[Any] = []
        self.most_held = 0

    def open(self, context: Any) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def consume(self, found: Found, events: EventStore) -> dict[str, pa.Table]:
        """Keep the results."""
        for is_match, timestamp, match in found.results():
            rows = {stage: events.rows(handles) for stage, handles in match.items()}
            key = next(iter(rows.values()))[0].key
            numbers = {stage: [row.number for row in taken] for stage, taken in rows.items()}
            (self.matches if is_match else self.timeouts).append((key, timestamp, numbers))
        return {"main": pa.table({"x": pa.array([], pa.int32())})}


def schema_of(ddl: str) -> StructType:
    names = {"bigint": "long", "int": "integer"}
    schema = StructType()
    for field in ddl.split(", "):
        name, kind = field.split(" ")
        schema.add(name, names.get(kind, kind))
    return schema


def layout(pattern: str = "p", keyed: bool = True) -> Layout:
    """Describe the input of these tests."""
    key = ("key",) if keyed else ()
    return Layout(pattern, schema_of(FIELDS), tuple(ARROW.names), key, key, key, "ts", None, ())


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows as an Arrow table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(ARROW)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, ARROW, strict=True)], ARROW)


def batches(
    rows: list[tuple[Any, ...]], size: int, order: list[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Return rows as Arrow batches of a size, with their positions, in an order of arrival."""
    events = table(rows).append_column(POSITION, pa.array(range(len(rows)), pa.int64()))
    return iter(
        (events if order is None else events.take(pa.array(order, pa.int64()))).to_batches(size)
    )


def by_price(event: Any) -> int:
    """Order events by price."""
    return int(event.price)


def descending(one: Any, other: Any) -> int:
    """Order events by price, the highest first; as Java's comparators do."""
    return int(other.price - one.price)


class ByName:
    """A comparator object, as Flink's is."""

    def compare(self, one: Any, other: Any) -> int:
        """Compare the names."""
        return (one.name > other.name) - (one.name < other.name)


keyed_events = st.lists(timed_events(), min_size=1, max_size=3)
comparators = st.sampled_from([None, by_price, descending, ByName()])


budgets = st.sampled_from([1, 100, 300, BUDGET_BYTES])


@given(patterns(), keyed_events, st.integers(1, 5), comparators, budgets, st.randoms())
def test_a_partition_gives_what_the_operator_gives(
    spec: PatternSpec,
    keys: list[list[tuple[Event, int]]],
    size: int,
    comparator: Any,
    sort_bytes: int,
    random: Random,
) -> None:
    """Whatever the pattern and the comparator, however events come and chunks cut keys."""
    rows = [
        (key, ts, event.name, event.number, event.price)
        for key, timed in enumerate(keys)
        for event, ts in timed
    ]
    recording = Recording()
    task = BatchTask(spec.build(), layout(), comparator, recording, sort_bytes=sort_bytes)
    arrival = random.sample(range(len(rows)), len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyflinkcep.matching.sorting._BLOCKS", 2)  # few events a chunk
        list(task.run(batches(rows, size, arrival)))
    matches, timeouts = [], []
    for key, timed in enumerate(keys):  # as in batch, one key after another
        harness = OperatorTestHarness(spec.build(), True, comparator=comparator)
        for event, ts in timed:
            harness.processElement(event, ts, key)
        harness.close()
        matches += [(key, ts, _numbers(match)) for key, ts, match in harness.matches]
        timeouts += [(key, ts, _numbers(match)) for key, ts, match in harness.timeouts]

    assert recording.matches == matches
    assert recording.timeouts == timeouts


def _numbers(match: Any) -> dict[str, list[int]]:
    return {stage: [event.number for event in found] for stage, found in match.items()}


# --- what a worker holds


class Watched(EventStore):
    """An event store that notes the most events it held from older chunks, and how many came."""

    most = 0
    chunks = 0

    def keep(self, handles: Any) -> None:
        """Note how many are kept."""
        kept = set(handles)
        Watched.most = max(Watched.most, len(kept))
        Watched.chunks += 1
        super().keep(kept)


def many_rows(count: int) -> list[tuple[Any, ...]]:
    """Return events of one key: an ``a`` every hundredth, else ``c``."""
    return [(1, at, "a" if at % 100 == 0 else "c", at, 0) for at in range(count)]


@pytest.mark.parametrize("comparator", [None, by_price])
def test_only_live_events_outlast_their_chunk(
    comparator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of older chunks a worker holds the events of partial matches and nothing else."""
    monkeypatch.setattr("pyflinkcep.matching.matcher.EventStore", Watched)
    monkeypatch.setattr(Watched, "most", 0)
    monkeypatch.setattr(Watched, "chunks", 0)
    waiting = Pattern.begin("a").where(_is_a).followedBy("b").where(lambda e: e.name == "b")
    waiting = waiting.within(timedelta(milliseconds=150))
    recording = Recording()
    task = BatchTask(waiting, layout(), comparator, recording, sort_bytes=20_000)
    list(task.run(batches(many_rows(5000), 50)))

    assert (len(recording.matches), len(recording.timeouts)) == (0, 50)
    assert Watched.chunks > 10
    assert 1 <= Watched.most <= 3


def _is_a(event: Any) -> bool:
    return bool(event.name == "a")


def test_timers_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window opened at every event leaves nothing behind when it is over."""
    monkeypatch.setenv("PYFLINKCEP_KERNEL", "0")  # the kernel sets none for bounded jobs
    states = []
    new_key = CepOperator.new_key
    monkeypatch.setattr(
        CepOperator, "new_key", lambda self: states.append(new_key(self)) or states[-1]
    )
    pattern = Pattern.begin("a").next("b").where(_is_a).within(timedelta(milliseconds=3))
    list(BatchTask(pattern, layout(), None, Recording()).run(batches(many_rows(1000), 50)))

    assert [len(state.timers) for state in states] == [0]


def test_a_row_is_made_once_however_many_matches_hold_it() -> None:
    """An event in several matches is one object, as in Flink."""
    store = EventStore(RowReader(schema_of(FIELDS)), ARROW)
    base = store.add(table(many_rows(3)))
    first, second, again = store.rows([base, base + 1, base])

    assert first is again
    assert (first.number, second.number) == (0, 1)


def test_an_event_that_was_not_kept_is_never_taken_for_another() -> None:
    """A handle whose event is gone is an error of ours, not some other event."""
    store = EventStore(RowReader(schema_of(FIELDS)), ARROW)
    base = store.add(table(many_rows(3)))
    store.keep([base + 1])

    assert store.take([base + 1]).column("number").to_pylist() == [1]
    with pytest.raises(AssertionError, match="not kept"):
        store.take([base])


@pytest.mark.slow
def test_results_become_rows_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk with very many matches makes the rows of some events at a time, and soon."""
    portions, waiting, matches = [], [], []
    to_parts = Found.parts

    def parts(self: Found, most_events: int) -> Iterator[Found]:
        waiting.append(len(self.handles))
        return to_parts(self, most_events)

    class Counting(Recording):
        def consume(self, found: Found, events: EventStore) -> dict[str, pa.Table]:
            portions.append(len(found.handles))
            matches.append(len(found))
            return {"main": pa.table({"x": pa.array([], pa.int32())})}

    monkeypatch.setattr(Found, "parts", parts)
    monkeypatch.setattr("pyflinkcep.matching.matcher.MOST_EVENTS", 4096)
    counting = Counting()
    counting.most_events = 4096
    pattern = Pattern.begin("x").next("y")
    list(BatchTask(pattern, layout(), None, counting).run(batches(many_rows(50_000), 9000)))

    assert sum(matches) * 2 == sum(portions)
    assert sum(matches) > 40_000
    assert max(portions) <= 4096
    assert max(waiting) <= 2 * 16384 + 4096


@pytest.mark.parametrize("at", [99, 100, 101])
def test_a_comparator_sees_all_ties_however_many(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are matched in portions, and none of them ends between equal times."""
    monkeypatch.setattr("pyflinkcep.matching.matcher._EVENTS_AT_ONCE", at)
    rows = [(1, number // 150, "x", number, -number) for number in range(450)]
    pattern = Pattern.begin("first").next("second")
    recording = Recording()
    list(BatchTask(pattern, layout(), by_price, recording).run(batches(rows, 60)))
    found = [match["first"][0] for _, _, match in recording.matches]

    assert found == [*range(149, -1, -1), *range(299, 149, -1), *range(449, 300, -1)]


def test_old_and_new_events_are_taken_in_any_order() -> None:
    """Whether an event was kept or is of the newest batch makes no difference to who asks."""
    store = EventStore(RowReader(schema_of(FIELDS)), ARROW)
    base = store.add(table(many_rows(6)))
    store.keep([base + 4, base + 1])
    later = store.add(table(many_rows(3)))
    wanted = [later + 2, base + 4, later, base + 1, base + 4]

    assert store.take(wanted).column("number").to_pylist() == [2, 4, 0, 1, 4]
    assert [row.number for row in store.rows(wanted)] == [2, 4, 0, 1, 4]
    assert store.take([]).num_rows == 0


def test_rows_of_a_large_batch_are_not_all_held() -> None:
    """A row that was not asked for in a long time is made again."""
    store = EventStore(RowReader(schema_of(FIELDS)), ARROW)
    base = store.add(table(many_rows(70_000)))
    row = store.row(base)

    assert store.row(base) is row
    assert [store.row(base + at).number for at in range(0, 70_000, 256)][-1] == 69_888
    assert store.row(base) is not row
    assert store.row(base) == row


def test_the_life_of_functions() -> None:
    """Functions are opened before the first event and closed after the last, and on failure."""
    calls: list[str] = []

    class Select(RichPatternSelectFunction):
        def open(self, context: Any = None) -> None:
            calls.append(f"open {context.getTaskName()} {context.getIndexOfThisSubtask()}")

        def close(self) -> None:
            calls.append("close")

        def select(self, pattern: Any) -> Any:
            assert self.getRuntimeContext().getTaskName() == "CEP: p"
            calls.append("select")
            return 1 // pattern["x"][0].price

    consumer = FunctionConsumer(
        select_adapter(Select()), {MAIN: schema_of("x int")}, {"key": "key"}
    )
    task = BatchTask(Pattern.begin("x"), layout(), None, consumer)
    found = pa.Table.from_batches(task.run(batches([(1, 1, "a", 1, 1)], 1)))
    with pytest.raises(Exception, match="ZeroDivisionError") as caught:
        list(task.run(batches([(7, 5, "a", 1, 0)], 1)))

    assert found.column("x").to_pylist() == [1]
    assert calls == ["open CEP: p 0", "select", "close"] * 2
    assert str(caught.value).endswith("(pattern p, key {'key': 7}, event time 5 ms)")


class _Returning(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Yields the rows of matches, and wrongly those of timeouts."""

    def processMatch(self, match: Any, ctx: Any, out: Any) -> Any:
        out.collect((0,))
        yield (match["x"][0].price,)

    def processTimedOutMatch(self, match: Any, ctx: Any) -> Any:
        yield (1,)


def test_rows_that_process_functions_return() -> None:
    """Rows that processMatch yields are taken; for those of a timeout there is no output."""
    consumer = FunctionConsumer(_Returning(), {MAIN: schema_of("x int")}, {"key": "key"})
    one = BatchTask(Pattern.begin("x"), layout(), None, consumer)
    found = pa.Table.from_batches(one.run(batches([(1, 1, "a", 1, 4)], 1)))
    pattern = Pattern.begin("x").next("y").within(timedelta(milliseconds=5))
    two = BatchTask(pattern, layout(), None, consumer)
    with pytest.raises(FunctionError, match="processTimedOutMatch returned generator"):
        list(two.run(batches([(7, 5, "a", 1, 0), (7, 50, "b", 1, 0)], 1)))

    assert found.column("x").to_pylist() == [0, 4]


# --- tasks on partitions tell which keys they have seen, and one that sees all of it compares


ROWS = StructType(
    [StructField("n", LongType(), False), StructField("a", ArrayType(StringType(), False))]
)


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return a row for each event, whatever its key."""
    for batch in batches:
        rows = [{"n": 2 * hash_, "a": ["x"]} for hash_ in batch.column(HASH).to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, seen_keys.arrow_schema(ROWS))


def told(*partitions: Sequence[Sequence[int]]) -> pa.Table:
    """Return what tasks on partitions tell, each given the keys of its batches."""
    task = SeenKeysTask(doubled, HASH, ROWS)
    batches = []
    for partition in partitions:
        given = (pa.RecordBatch.from_pydict({HASH: pa.array(b, pa.int64())}) for b in partition)
        batches += task.run(given)
    return pa.Table.from_batches(batches)


def checked(table: pa.Table, target: int, size: int = 3) -> list[int]:
    """Return the rows that a checking task passes on: its own, keys first."""
    own = table.filter(pa.compute.equal(table.column(TARGET), target))
    is_key = own.column(KEYS).is_valid()
    arriving = pa.concat_tables([own.filter(is_key), own.filter(pa.compute.invert(is_key))])
    found = CheckTask("a ⇒ b", ROWS).run(iter(arriving.to_batches(size)))
    return [n for batch in found for n in batch.column("n").to_pylist()]


@pytest.mark.parametrize("most_fresh", [0, 1 << 16])
def test_each_key_in_one_partition(monkeypatch: pytest.MonkeyPatch, most_fresh: int) -> None:
    """All rows come, with their types, whichever task checks them; empty partitions are fine."""
    monkeypatch.setattr(seen_keys, "_MOST_FRESH", most_fresh)
    table = told([[1, 1, 5], [5, 1]], [], [[-7], [], [8, 8, 8, 9]])
    rows = [n for target in range(8) for n in checked(table, target)]

    assert sorted(rows) == [-14, 2, 2, 2, 10, 10, 16, 16, 16, 18]
    assert table.filter(table.column(KEYS).is_valid()).num_rows == 3 * 8


@pytest.mark.parametrize("target", range(8))
@pytest.mark.parametrize("size", [1, 100])
def test_a_key_in_two_partitions_fails_every_task(target: int, size: int) -> None:
    """No task passes a row on, whether or not its rows are of that key."""
    table = told([[1, 5]], [[2], [3, 5]])

    with pytest.raises(InputError, match="a key has events in two partitions"):
        checked(table, target, size)


# --- most columns of an event in a list of one struct, which is missing if no stage takes it


PATTERN = Pattern.begin("x").where("name = 'a'").next("y").where("name = 'b'")
NESTED = ("name", "number", "price")
NESTED_ROWS = [
    (at % 3, at // 2, "aabcb"[at * 7 % 5], at, None if at % 4 else at) for at in range(400)
]


def answered(given: Iterator[pa.RecordBatch], nests: bool) -> Iterator[pa.RecordBatch]:
    """Add the answers to the conditions; nest the columns of events that a stage can take."""
    for batch in given:
        names = batch.column("name").to_pylist()
        bits = [{"a": 1, "b": 2}.get(name, 0) for name in names]
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if nests:
            fields = [columns.pop(name) for name in NESTED]
            structs = pa.StructArray.from_arrays(fields, names=["0", "1", "2"]).to_pylist()
            lists = [[one] if bit else None for one, bit in zip(structs, bits, strict=True)]
            type_ = pa.struct([("0", pa.string()), ("1", pa.int32()), ("2", pa.int32())])
            columns[WHOLE] = pa.array(lists, pa.list_(type_))
        yield pa.RecordBatch.from_pydict({**columns, BITS: pa.array(bits, pa.int64())})


def found(where: Layout, nests: bool, sort_bytes: int) -> list[Any]:
    """Return a row for each match."""

    def select(match: Any) -> tuple[Any, ...]:
        x, y = match["x"][0], match["y"][0]
        return x.key, x.name, x.number, x.price, y.name, y.number, y.price

    fields = "key bigint, a string, b int, c int, d string, e int, f int"
    consumer = FunctionConsumer(select_adapter(select), {MAIN: schema_of(fields)})
    task = BatchTask(PATTERN, where, None, consumer, sort_bytes=sort_bytes)
    given = answered(batches(NESTED_ROWS, 30), nests)
    return pa.Table.from_batches(list(task.run(given))).to_pylist()


@pytest.mark.parametrize("sort_bytes", [1, 2000, BUDGET_BYTES])
def test_nested_columns_reach_functions_as_the_others(sort_bytes: int) -> None:
    """Sorted in memory or on disk, matches have the values that they have in columns."""
    plain = attrs.evolve(layout(), bit_columns=(BITS,))
    nested = attrs.evolve(plain, nested=NESTED)
    expected = found(plain, nests=False, sort_bytes=BUDGET_BYTES)

    assert len(expected) > 30
    assert found(nested, nests=True, sort_bytes=sort_bytes) == expected
