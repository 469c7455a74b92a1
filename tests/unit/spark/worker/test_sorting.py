# SPDX-License-Identifier: Apache-2.0
"""Events come sorted out of a worker's sort, whatever fits in memory, and nothing is left behind."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pyflinkcep.errors import InputError
from pyflinkcep.matching import sorting
from pyflinkcep.matching.columns import HASH, POSITION
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.sorting import BUDGET_BYTES, cut_by_key, sorted_chunks

EARLY, LATE = -(10**15), 10**15  # microseconds: decades before and after 1970

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bigint": (pa.int64(), [-(2**63), -1, 0, 7, 2**63 - 1]),
    "tinyint": (pa.int8(), [-128, 0, 5]),
    "string": (pa.string(), ["", "a", "a\0", "ä", "b" * 50, "\U0001f600", "\uffff"]),
    "large string": (pa.large_string(), ["x", "y"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff"]),
    "boolean": (pa.bool_(), [False, True]),
    "decimal": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("7.25")]),
    "date": (pa.date32(), [-(10**8), 0, 20_000, 10**8]),
    "timestamp": (pa.timestamp("us", "UTC"), [-(10**18), 0, 10**15, 10**18]),
    "interval": (pa.duration("us"), [dt.timedelta(0), dt.timedelta(days=-3)]),
}
"""Types of keys and values of them, some of dates and times that Python does not know."""


def layout(signature: tuple[str, ...], time_unit: int | None = 1000) -> Layout:
    """Describe events with these columns as their key."""
    payload = (*signature, "at")
    return Layout("p", StructType(), payload, signature, signature, signature, "at", time_unit, ())


def events(keys: dict[str, pa.Array], times: pa.Array) -> pa.Table:
    """Return events with their positions, and something that tells them apart."""
    number = pa.array(range(len(times)), pa.int64())
    return pa.table({**keys, "at": times, "number": number, POSITION: number})


def arriving(table: pa.Table, random: Random, size: int) -> Iterator[pa.RecordBatch]:
    """Return events as they may come from a shuffle: in any order, in batches of a size."""
    order = random.sample(range(table.num_rows), table.num_rows)
    return iter(table.take(pa.array(order, pa.int64())).to_batches(size))


@st.composite
def keyed_events(draw: Any) -> tuple[pa.Table, tuple[str, ...]]:
    """Return events with a key of some types, nulls among them, and hashes that are often equal."""
    kinds = draw(st.lists(st.sampled_from(sorted(KEYS)), max_size=3))
    size = draw(st.integers(0, 60))
    columns, ids = {}, np.zeros(size, np.int64)
    for number, kind in enumerate(kinds):
        type_, values = KEYS[kind]
        chosen = draw(st.lists(st.integers(-1, len(values) - 1), min_size=size, max_size=size))
        given = [None if i < 0 else values[i] for i in chosen]
        columns[f"key{number}"] = _array(given, type_)
        ids = ids * 10 + np.asarray(chosen, np.int64) + 1
    if len(kinds) > 1 or (kinds and "int" not in kinds[0][-3:]):
        hashes = draw(st.sampled_from([1, 3, 10**9]))
        columns = {HASH: pa.array(ids * 7919 % hashes - 5), **columns}
    times = draw(
        st.lists(st.integers(-3000, 3000) | st.integers(EARLY, LATE), min_size=size, max_size=size)
    )
    return events(columns, pa.array(times, pa.timestamp("us", "UTC"))), tuple(columns)


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_date(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)


def keys_of(table: pa.Table, signature: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Return each event's key as Python values; dates and times as numbers."""
    columns = []
    for name in signature:
        column = table.column(name).combine_chunks()
        if pa.types.is_date(column.type):
            column = column.cast(pa.int32())
        columns.append(
            (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        )
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def by_definition(table: pa.Table, signature: tuple[str, ...]) -> dict[tuple[Any, ...], list[int]]:
    """Return each key's events in order of time and position, the simple way."""
    times = table.column("at").cast(pa.int64()).to_pylist()
    found: dict[tuple[Any, ...], list[int]] = {}
    keys = keys_of(table, signature)
    for number in sorted(range(table.num_rows), key=lambda number: (times[number], number)):
        found.setdefault(keys[number], []).append(number)
    return found


def by_key(chunks: list[pa.Table], signature: tuple[str, ...]) -> dict[tuple[Any, ...], list[int]]:
    """Return each key's events as they came; a key that comes twice is an error."""
    found: dict[tuple[Any, ...], list[int]] = {}
    last: Any = None
    for chunk in chunks:
        numbers = chunk.column("number").to_pylist()
        for key, number in zip(keys_of(chunk, signature), numbers, strict=True):
            assert key == last or key not in found, "the events of a key are not in a row"
            found.setdefault(key, []).append(number)
            last = key
    return found


budgets = st.sampled_from([1, 200, 1000, 5000, BUDGET_BYTES])


@given(keyed_events(), budgets, st.integers(1, 9), st.sampled_from([2, 4, 64]), st.randoms())
def test_each_key_comes_once_and_in_order(
    given: tuple[pa.Table, tuple[str, ...]], budget: int, size: int, blocks: int, random: Random
) -> None:
    """Whatever the key's type, whatever fits in memory, however events come."""
    table, signature = given
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "_BLOCKS", blocks)
        chunks = list(sorted_chunks(arriving(table, random, size), layout(signature), budget))
    ties = [
        set(zip(keys_of(c, signature), (layout(signature).times_ms(c)).tolist(), strict=True))
        for c in chunks
    ]

    assert by_key(chunks, signature) == by_definition(table, signature)
    assert all(chunk.num_rows and POSITION not in chunk.column_names for chunk in chunks)
    assert all(column.num_chunks == 1 for chunk in chunks for column in chunk.columns)
    assert sum(map(len, ties)) == len(set().union(*ties))


def many(count: int, keys: int = 1) -> pa.Table:
    """Return events of whole-number keys, five of each key at a time."""
    at = np.arange(count)
    key = pa.array(at % keys)
    return events({"key": key}, pa.array(at // keys // 5 * 1000, pa.timestamp("us")))


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 7, 2000])
def test_the_order_of_keys_does_not_depend_on_memory(keys: int) -> None:
    """A job that is run again gives the same, even if events come in another order."""
    table = many(2000, keys)
    orders = []
    for budget, seed in ((BUDGET_BYTES, 1), (16_000, 2), (2000, 3)):
        chunks = sorted_chunks(arriving(table, Random(seed), 100), layout(("key",)), budget)
        orders.append(pa.concat_tables(list(chunks)).column("number").to_pylist())

    assert orders[0] == orders[1] == orders[2]


def test_one_key_larger_than_the_budget_comes_in_chunks() -> None:
    """Chunks are of about half the budget, in the order of time, without splitting a time."""
    table, budget = many(30_000), 100_000
    chunks = list(sorted_chunks(arriving(table, Random(5), 500), layout(("key",)), budget))
    numbers = [chunk.column("number").to_pylist() for chunk in chunks]

    assert [number for chunk in numbers for number in chunk] == list(range(30_000))
    assert len(chunks) > 10
    assert max(chunk.nbytes for chunk in chunks) <= budget
    assert all(chunk[0] % 5 == 0 for chunk in numbers)


def test_events_of_one_moment_are_one_chunk_even_if_they_exceed_the_budget() -> None:
    """Ties are never split, for a comparator must see them all."""
    times = pa.array([0] * 10 + [1] * 1000 + [2] * 10, pa.timestamp("ms")).cast("timestamp[us]")
    table = events({"key": pa.array([1] * 1020)}, times)
    chunks = list(sorted_chunks(arriving(table, Random(6), 100), layout(("key",)), 1000))
    moments = [layout(("key",)).times_ms(chunk).tolist() for chunk in chunks]

    assert sum(1 in moment for moment in moments) == 1
    assert sum(map(len, moments)) == 1020


def test_large_events_are_counted_in_bytes() -> None:
    """Where some keys' events are a thousand times as large, chunks still keep to the budget."""
    at = np.arange(4000)
    text = pa.array(["x" * (5000 if number % 4000 > 3600 else 5) for number in at])
    table = many(4000).append_column("text", text)
    chunks = list(sorted_chunks(arriving(table, Random(7), 20), layout(("key",)), 300_000))

    assert sum(chunk.num_rows for chunk in chunks) == 4000
    assert max(chunk.nbytes for chunk in chunks) <= 300_000


@pytest.mark.parametrize("budget", [1, BUDGET_BYTES])
@pytest.mark.parametrize("type_", [pa.int8(), pa.int64()])
def test_no_key_is_a_key(type_: pa.DataType, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events with a null key are together, and not with those of key 0."""
    monkeypatch.setattr(sorting, "_BLOCKS", 2)
    keys = pa.array([0, None, -1] * 20, type_)
    table = events({"key": keys}, pa.array(range(60), pa.timestamp("ms")).cast("timestamp[us]"))
    chunks = list(sorted_chunks(arriving(table, Random(8), 7), layout(("key",)), budget))

    assert by_key(chunks, ("key",)) == by_definition(table, ("key",))


def test_times_in_milliseconds() -> None:
    """A bigint time is in milliseconds, and any of them."""
    times = pa.array([2**63 - 1, 0, -(2**63), 5, -1])
    table = events({}, times)
    chunks = sorted_chunks(iter(table.to_batches(2)), layout((), None), 1)

    assert [n for chunk in chunks for n in chunk.column("number").to_pylist()] == [2, 4, 1, 3, 0]


@pytest.mark.parametrize("budget", [1, BUDGET_BYTES])
def test_events_of_one_time_without_an_order_are_refused(budget: int) -> None:
    """Where positions do not follow the source, equal times of one key have no order; others do."""
    unknown = attrs.evolve(layout(("k",)), has_order=False)
    keys, hours = pa.array([1, 2, 1, 2]), pa.array([0, 0, 3, 3], pa.int64())
    table = events({"k": keys}, hours)

    assert sum(len(t) for t in sorted_chunks(table.to_batches(), unknown, budget)) == 4
    again = pa.concat_tables([table, table.slice(2, 1)])
    assert sum(len(t) for t in sorted_chunks(again.to_batches(), layout(("k",)), budget)) == 5
    with pytest.raises(InputError, match=r"two events at one time.*at key {'k': 1}"):
        list(sorted_chunks(again.to_batches(), unknown, budget))
    with pytest.raises(InputError, match=r"two events at one time.*at key \(none\)"):
        list(sorted_chunks(table.to_batches(), attrs.evolve(layout(()), has_order=False), budget))


def test_no_events() -> None:
    """Nothing, and empty batches, give nothing."""
    empty = many(0).to_batches() or [pa.RecordBatch.from_pylist([], schema=many(0).schema)]

    assert list(sorted_chunks(iter([]), layout(("key",)))) == []
    assert list(sorted_chunks(iter(empty), layout(("key",)), 1)) == []


# --- what is left behind


def test_nothing_is_written_that_fits(tmp_path: Path) -> None:
    """Within the budget there are no files."""
    chunks = sorted_chunks(iter(many(100).to_batches(10)), layout(("key",)), folder=str(tmp_path))

    assert next(chunks).num_rows == 100
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["all", "close", "forget"])
def test_files_are_gone_in_the_end(tmp_path: Path, end: str) -> None:
    """Whether a consumer wants all events, or stops early."""
    chunks = sorted_chunks(
        iter(many(1000).to_batches(50)), layout(("key",)), 1000, folder=str(tmp_path)
    )
    next(chunks)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    if end == "all":
        list(chunks)
    elif end == "close":
        chunks.close()
    else:
        del chunks

    assert len(files) >= 20
    assert list(tmp_path.iterdir()) == []


def failing(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return batches, then fail."""
    yield from batches
    raise OSError("the shuffle is lost")


def test_files_are_gone_after_a_failure(tmp_path: Path) -> None:
    """Whether the input fails or an event has no time."""
    batches = many(1000).to_batches(50)
    untimed = events({"key": pa.array([3])}, pa.array([None], pa.timestamp("us"))).to_batches()
    with pytest.raises(OSError, match="is lost"):
        list(sorted_chunks(failing(batches), layout(("key",)), 1000, folder=str(tmp_path)))
    with pytest.raises(InputError, match=r"null event time in column 'at' at key \{'key': 3\}"):
        list(sorted_chunks([*batches, *untimed], layout(("key",)), 1000, folder=str(tmp_path)))

    assert list(tmp_path.iterdir()) == []


def test_files_are_in_a_local_directory_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of those that Spark names and that are there."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/gone,{tmp_path}")
    chunks = sorted_chunks(iter(many(1000).to_batches(50)), layout(("key",)), 1000)
    next(chunks)

    assert [path.name[:11] for path in tmp_path.iterdir()] == ["pyflinkcep-"]
    chunks.close()
    assert list(tmp_path.iterdir()) == []


# --- what is held


def made(count: int, keys: int) -> Iterator[pa.RecordBatch]:
    """Return batches that are made when they are asked for, in Arrow's memory."""
    for start in range(0, count, 10_000):
        at = np.arange(start, start + 10_000) * 7919 % count
        table = events({"key": pa.array(at % keys)}, pa.array(at, pa.timestamp("us")))
        batches = table.take(pa.array(range(10_000))).to_batches()
        del table, at
        yield batches.pop()


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    """Return a fresh account of Arrow's memory."""
    usual = pa.default_memory_pool()
    fresh = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(fresh)
    yield fresh
    pa.set_memory_pool(usual)


@pytest.mark.slow
@pytest.mark.parametrize("count", [400_000, 1_000_000])
def test_memory_does_not_grow_with_the_events_of_a_key(pool: pa.MemoryPool, count: int) -> None:
    """Some budgets are held, however many runs there are."""
    budget = 3_000_000
    total = 0
    for chunk in sorted_chunks(made(count, 1), layout(("key",)), budget):
        total += chunk.num_rows
        del chunk

    assert total == count
    assert budget < pool.max_memory() < 2.5 * budget


def test_one_sorted_copy_is_held(pool: pa.MemoryPool) -> None:
    """While a chunk is at work the unsorted events are gone."""
    chunks = sorted_chunks(made(500_000, 100), layout(("key",)))
    chunk = next(chunks)

    assert chunk.num_rows == 500_000
    assert pool.bytes_allocated() < 1.1 * chunk.nbytes
    assert pool.max_memory() < 4 * chunk.nbytes
    chunks.close()


@given(st.lists(st.integers(0, 5), max_size=20), st.lists(st.integers(0, 20), max_size=4))
def test_keys_are_whole(numbers: list[int], cuts: list[int]) -> None:
    """Tables are cut where the key changes; all keys of a last one, or an only one, come at once."""
    keys = sorted(numbers)
    table = pa.table({"key": pa.array(keys, pa.int64()), "at": pa.array(range(len(keys)))})
    bounds = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    tables = [table.slice(begin, end - begin) for begin, end in pairwise(bounds)]
    found = list(cut_by_key(tables, layout(("key",))))

    own = [events.column("key").to_pylist() for events, _ in found]
    assert [*chain.from_iterable(own)] == keys
    assert len(found) <= sum(1 for one in tables if one.num_rows)
    for values, (_, ends) in zip(own, found, strict=True):
        assert ends.tolist() == [
            n for n in range(1, len(values) + 1) if values[n - 1] not in values[n:]
        ]
    assert all(one[-1] != two[0] for one, two in pairwise(own))
