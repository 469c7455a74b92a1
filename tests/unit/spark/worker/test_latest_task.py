# SPDX-License-Identifier: Apache-2.0
"""Sequences of EQL on a partition, in chunks, have the matches of events in memory."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from pyflinkcep import Eql, matchEql
from pyflinkcep.matching.columns import BITS, HASH, POSITION
from pyflinkcep.matching.latest import EVENTS, LatestEvents
from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.worker.consumers import MAIN, ColumnConsumer, MatchTimes
from pyflinkcep.spark.worker.latest_task import LatestTask

_EVENT = StructType().add("id", "long").add("user", "string").add("ts", "long")
_EVENT = _EVENT.add("type", "string").add("tie", "long")
_SCHEMA = pa.schema(
    {"id": pa.int64(), "user": pa.string(), "ts": pa.int64(), "type": pa.string(),
     "tie": pa.int64()}
)  # fmt: skip
_OUTPUT = StructType(
    [
        StructField("user", StringType()),
        StructField("matchTimestamp", LongType()),
        StructField(EVENTS, ArrayType(_EVENT, False), False),
    ]
)
_SIZE = 60


def _rows(seed: int) -> list[dict[str, Any]]:
    choose = random.Random(seed)
    times = sorted(choose.randrange(_SIZE) for _ in range(_SIZE))
    return [
        {"id": n, "user": choose.choice("abc"), "ts": at, "type": choose.choice("xyz"),
         "tie": choose.choice([None, 1, 2, 3])}
        for n, at in enumerate(times)
    ]  # fmt: skip


def _sent(query: str, rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """Return events as they come to a task, out of order, a few at a time."""
    steps = re.findall(r"\[(\w) where (\w+)", query)
    bits = [
        sum(
            1 << number
            for number, (type_, condition) in enumerate(steps)
            if row["type"] == type_ and (condition == "true" or row["tie"] == 3)
        )
        for row in rows
    ]
    table = pa.Table.from_pylist(rows, _SCHEMA)
    table = table.append_column(HASH, pa.array([ord(row["user"]) for row in rows]))
    table = table.append_column(BITS, pa.array(bits))
    table = table.append_column(POSITION, pa.array(range(_SIZE)))
    table = table.take(pa.array(random.Random(1).sample(range(_SIZE), _SIZE)))
    return [table.slice(at, 7).combine_chunks().to_batches()[0] for at in range(0, _SIZE, 7)]


@pytest.mark.parametrize("tie", [None, "tie"])
@pytest.mark.parametrize(
    "query",
    [
        "sequence by user with maxspan=10ms [x where true] [y where true] [z where true]",
        "sequence by user with maxspan=8ms [x where true] [y where true] ![z where true]",
        "sequence by user [x where true] with runs=2 [y where true] until [z where tie == 3]",
    ],
)
def test_chunks(query: str, tie: str | None) -> None:
    """However a partition is cut into chunks, each match comes once, the tie-breaker heeded."""
    layout = Layout(
        pattern="a sequence",
        schema=_EVENT,
        payload=tuple(_EVENT.fieldNames()),
        key_names=("user",),
        key_columns=("user",),
        key_signature=(HASH, "user"),
        time_column="ts",
        time_unit=None,
        bit_columns=(BITS,),
    )
    times = MatchTimes(None, "ts")
    consumer = ColumnConsumer({MAIN: _OUTPUT}, ["user"], [EVENTS], _EVENT.fieldNames(), times)
    eql = Eql(query)
    latest = partial(LatestEvents.of_query, eql.model, layout, tie)
    for seed in range(4):
        rows = _rows(seed)
        found = matchEql(eql, pa.Table.from_pylist(rows, _SCHEMA), "ts", tiebreaker=tie)
        expected = Counter(str([e["id"] for e in match if e is not None]) for match in found)
        assert expected
        for sort_bytes in (1 << 30, 3_000, 600):
            task = LatestTask(latest, consumer, sort_bytes)
            task = cloudpickle.loads(cloudpickle.dumps(task))  # type: ignore[no-untyped-call]
            batches = task.run(iter(_sent(query, rows)))
            matches = (match for batch in batches for match in batch.to_pylist())
            assert Counter(str([e["id"] for e in one[EVENTS]]) for one in matches) == expected
