# SPDX-License-Identifier: Apache-2.0
"""The rows of stages reached, of a partition, with the kernel and without."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep.spark.worker.batch import BatchTask
from pyflinkcep.spark.worker.consumers import MAIN, FirstTimes, MatchTimes, ReachedConsumer
from pyflinkcep.testing import funnel
from pyflinkcep.traces.funnel import funnel_steps
from tests.property.strategies import Event, PatternSpec, patterns, timed_events
from tests.unit.spark.worker.test_batch_task import batches, budgets, layout, schema_of

pytestmark = pytest.mark.usefixtures("each_path")

SCHEMA = (
    "key bigint, number int, stage string, step int, at bigint, previous bigint, first bigint, "
    "began boolean, new boolean"
)


@given(patterns(), st.lists(timed_events(), min_size=1, max_size=3), budgets, st.randoms())
def test_a_partition_reaches_what_a_funnel_counts(
    spec: PatternSpec, keys: list[list[tuple[Event, int]]], sort_bytes: int, random: Random
) -> None:
    """Whatever the pattern, and however chunks cut keys: stages, groups and times are the same."""
    rows = [
        (key, ts, event.name, event.number, event.price)
        for key, timed in enumerate(keys)
        for event, ts in timed
    ]
    pattern = spec.build()
    steps = funnel_steps(pattern)
    names, times = [step.stage for step in steps], MatchTimes(None, "ts")
    consumer = ReachedConsumer({MAIN: schema_of(SCHEMA)}, ["key", "number"], names, times, 1)
    task = BatchTask(pattern, layout(), None, consumer, sort_bytes=sort_bytes)
    arrival = random.sample(range(len(rows)), len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyflinkcep.matching.sorting._BLOCKS", 2)  # few events a chunk
        found = [row for batch in task.run(batches(rows, 3, arrival)) for row in _rows(batch)]

    events = [dict(zip(("key", "ts", "name", "number", "price"), row, strict=True)) for row in rows]
    counted = funnel(pattern, events, "ts", "key", by="number", quantiles=(0, 1))
    expected = [tuple(row.values())[:5] + tuple(row.values())[-2:] for row in counted.rows]
    assert _counted(found) == {(row[0], row[2]): row[3:] for row in expected if row[4]}
    assert all(row["at"] - row["first"] in {row[1] for row in rows} for row in found)
    new = Counter((row["number"], row["step"]) for row in found if row["new"])
    assert new == {at: numbers[0] for at, numbers in _counted(found).items()}
    began = Counter(row["number"] for row in found if row["began"])
    keys = {(row["number"], row["key"]) for row in found}
    assert began == Counter(number for number, _ in keys)
    assert all(row["stage"] == names[row["step"] - 1] for row in found)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, 0.0, -0.0, float("nan")]),
            st.sampled_from([None, 1.0, 0.0, -0.0, float("nan")]),
            st.integers(0, 2),
            st.booleans(),
        )
    )
)
def test_first_times(rows: list[tuple[Any, ...]]) -> None:
    """
    Null, NaN, either zero and structs are keys and groups, however the rows of a key are cut.

    NaN, and the zeros, are one key and one group, inside of structs and lists too.
    """
    groups = pa.struct([("x", pa.list_(pa.float64()))])
    rows.sort(key=lambda row: repr(_key(row)))
    firsts, found, seen = FirstTimes(1), [], set()
    parts: list[list[tuple[Any, ...]]] = [[]]
    for row in rows:
        parts[-1].append(row)
        if row[3]:
            parts.append([])
    for part in filter(None, parts):
        key = pa.chunked_array([pa.array([row[0] for row in part], pa.float64())])
        values = [None if row[1] is None else {"x": [row[1]]} for row in part]
        group = pa.chunked_array([pa.array(values, groups)])
        flags = firsts.of([key, group], np.asarray([row[2] for row in part]))
        found += list(zip(*(flag.tolist() for flag in flags), strict=True))

    for row, flags in zip(rows, found, strict=True):
        group_ = _one(row[1])
        places = [(_key(row), group_), (_key(row), group_, row[2])]
        assert flags == tuple(place not in seen for place in places)
        seen.update(places)


def test_first_times_of_many_groups() -> None:
    """However many values the columns of a group have, rows that differ in one are of two groups."""
    size = 4095
    key = pa.chunked_array([np.zeros(size + 1, int)])
    groups = [pa.chunked_array([np.r_[np.arange(size), at]]) for at in (16, 0, 0, 0, 0, 0)]
    flags = FirstTimes(1).of([key, *groups], np.zeros(size + 1, int))

    assert all(flag.all() for flag in flags)


def _key(row: tuple[Any, ...]) -> str:
    return _one(row[0])


def _one(value: float | None) -> str:
    return repr(None if value is None else value + 0.0)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def _counted(rows: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return keys, partial matches and the shortest and longest time by group and step."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["number"], row["step"]].append(row)
    return {at: _numbers(own) for at, own in groups.items()}


def _numbers(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    since = [row["previous"] for row in rows if row["previous"] is not None]
    times = min(since, default=None), max(since, default=None)
    return len({row["key"] for row in rows}), len(rows), *times
