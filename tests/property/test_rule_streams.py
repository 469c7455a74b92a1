# SPDX-License-Identifier: Apache-2.0
"""Many rules on a stream find what they find on all events at once, wherever batches end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyflinkcep import Eql, Pattern, SaseQuery, matchMany
from pyflinkcep.rules import Rule, SigmaCorrelation
from tests.property.test_rule_sets import DEFINITIONS, KEYS, ROWS
from tests.unit.spark.worker.rule_buckets import RuleBucket

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("t", pa.int64()),
        ("name", pa.string()),
        ("price", pa.int64()),
        ("number", pa.int64()),
        ("k", pa.int64()),
        ("j", pa.string()),
        ("ids", pa.list_(pa.string())),
    ]
)
DELAY = 4


def _runs_on_streams(definition: Pattern | SaseQuery | Eql | SigmaCorrelation) -> bool:
    if isinstance(definition, Eql):
        return not definition.model.pipes
    return isinstance(definition, Pattern)


BY_ARRAY = st.sampled_from(
    [
        Eql("sequence by ids [any where price > 1] [any where price < 4]"),
        Eql("sequence by ?ids, k [any where true] with runs=2 until [any where price == 5]"),
        Eql("sequence with maxspan=5s [any where true] by ids [any where true] by j"),
    ]
)
RULES = st.lists(
    st.tuples(DEFINITIONS.filter(_runs_on_streams) | BY_ARRAY, st.sampled_from(KEYS)), max_size=8
)


def _ids(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(
        f"{row['rule']} {row['key']} {row['matchTimestamp']} {row['matchId']} {row['events']}"
        for row in rows
    )


@given(RULES, ROWS, st.data())
@settings(max_examples=60)
def test_a_stream_finds_what_all_events_have(
    rules: list[tuple[Any, tuple[str, ...]]], rows: list[Any], data: st.DataObject
) -> None:
    """Rules of mixed kinds and keys find on a stream, out of order and in any batches, the same."""
    time, events = 0, list[dict[str, Any]]()
    for number, (name, price, step, k, j) in enumerate(rows):
        time += step
        events.append({"id": number, "t": time, "name": name, "price": price, "number": number,
                       "k": k, "j": j, "ids": [j, name, j]})  # fmt: skip
    late = data.draw(st.lists(st.integers(0, DELAY), min_size=len(rows), max_size=len(rows)))
    places = sorted(range(len(rows)), key=lambda at: events[at]["t"] + late[at])
    arriving = [events[at] for at in places]
    named = [
        Rule(f"r{number}", definition, () if isinstance(definition, Eql) else key)
        for number, (definition, key) in enumerate(rules)
    ]
    bucket = RuleBucket(named, SCHEMA, delay_ms=DELAY)
    while arriving:
        size = data.draw(st.integers(1, len(arriving)))
        bucket.batch(arriving[:size])
        arriving = arriving[size:]
    bucket.close()
    in_time = sorted((events[at] for at in places), key=lambda event: event["t"])
    table = pa.Table.from_pylist(in_time, SCHEMA)
    whole = matchMany(named, table, timestamp="t", type="name").toArrow().to_pylist()

    assert bucket.late_count == 0
    assert _ids(bucket.found) == _ids(whole)
