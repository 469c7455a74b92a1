# SPDX-License-Identifier: Apache-2.0
"""Many rules on a stream find what they find on all events at once, wherever batches end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyflinkcep import Eql, Pattern, SaseQuery, WithinType, matchMany
from pyflinkcep.rules import Rule, SigmaCorrelation
from pyflinkcep.rules.rule import Definition
from pyflinkcep.time import MIN_WATERMARK
from tests.property.test_rule_sets import DEFINITIONS, KEYS, ROWS, events_of, named
from tests.property.test_rule_sets import SCHEMA as OF_EVENTS
from tests.property.test_sase_properties import events
from tests.property.test_streamed_queries import any_query, counting_events
from tests.unit.spark.worker.rule_buckets import RuleBucket

_BERLIN = pa.field("at", pa.timestamp("us", "Europe/Berlin"))  # what the state has is in UTC
SCHEMA = OF_EVENTS.set(OF_EVENTS.get_field_index("at"), _BERLIN).append(
    pa.field("ids", pa.list_(pa.string()))
)
DELAY = 4


def _runs_on_streams(definition: Definition) -> bool:
    if isinstance(definition, Pattern):  # Flink sets no timers for the ends of gaps
        return definition.getWindowSize(WithinType.PREVIOUS_AND_CURRENT) is None
    return not (isinstance(definition, Eql) and definition.model.pipes)


BY_ARRAY = st.sampled_from(
    [
        Eql("sequence by ids [any where price > 1] [any where price < 4]"),
        Eql("sequence by ?ids, k [any where true] with runs=2 until [any where price == 5]"),
        Eql("sequence with maxspan=5s [any where true] by ids [any where true] by j"),
    ]
)
RULES_ON_STREAMS = st.tuples(DEFINITIONS.filter(_runs_on_streams) | BY_ARRAY, st.sampled_from(KEYS))
RULES = st.lists(RULES_ON_STREAMS, max_size=8)


def shown_ids(rows: list[dict[str, Any]]) -> Counter[str]:
    """Return matches without their times, which the clocks of other zones show."""

    def shown(row: dict[str, Any]) -> str:
        ids = {stage: [event["id"] for event in own] for stage, own in row["events"]}
        return f"{row['rule']} {row['matchTimestamp']} {row['matchId']} {[*row['key']]} {ids}"

    return Counter(map(shown, rows))


SPANS = st.sampled_from(["1s", "2s", "5s"])
FIELDS = st.sampled_from([["k"], ["j"], ["k", "j"], ["b"], [], ["own"]])
BOUNDS = st.sampled_from(
    [{"gte": 2}, {"gte": 3}, {"gt": 0}, {"lt": 3}, {"eq": 2}, {"gte": 1, "lte": 2}]
)
COUNTS = st.sampled_from([
    ("event_count", {}), ("value_count", {"field": "price"}), ("value_sum", {"field": "price"}),
    ("value_count", {"field": ["price", "j"]}), ("value_avg", {"field": "price"}),
])  # fmt: skip


@st.composite
def correlations(draw: st.DrawFn) -> SigmaCorrelation:
    """Draw a correlation of rules, and of correlations that come before it."""
    rules: dict[str, Any] = {"a": "name = 'a'", "b": "price > 1 AND name <> 'c'", "c": "price = 2"}
    for number in range(draw(st.integers(1, 3))):
        names = draw(st.lists(st.sampled_from([*rules]), min_size=1, max_size=3, unique=True))
        own: dict[str, Any] = {"rules": names, "group-by": draw(FIELDS), "timespan": draw(SPANS)}
        if own["group-by"] == ["own"]:
            own["aliases"] = {
                "own": {n: draw(st.sampled_from(["k", "number", "b"])) for n in names}
            }
        kind = draw(st.sampled_from(["count", "temporal", "temporal_ordered"]))
        if kind == "count":
            kind, fields = draw(COUNTS)
            own["condition"] = {**fields, **draw(BOUNDS)}
        elif kind == "temporal" and len(names) > 1:
            first, *_, last = names
            either = [None, {"gte": 1}, f"{first} and not {last}", f"{first} or {last}",
                      f"({first} or {last}) and not {last}"]  # fmt: skip
            own["condition"] = draw(st.sampled_from(either))
        rules[f"n{number}"] = {"type": kind, **own}
    return SigmaCorrelation(rules.popitem()[1], rules)


@given(RULES, ROWS, st.data())
def test_a_stream_finds_what_all_events_have(
    rules: list[tuple[Any, tuple[str, ...]]], rows: list[Any], data: st.DataObject
) -> None:
    """Rules of mixed kinds and keys find on a stream, out of order and in any batches, the same."""
    check_stream(named(rules), rows, 1, data)


@given(st.lists(correlations(), min_size=1, max_size=4), ROWS, st.data())
def test_correlations_find_what_all_events_have(
    rules: list[SigmaCorrelation], rows: list[Any], data: st.DataObject
) -> None:
    """Correlations, and those of their alerts, find on a stream what they find on all events."""
    check_stream([Rule(f"r{n}", one) for n, one in enumerate(rules)], rows, 500, data)


OF_QUERIES = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.int64()),
        ("kind", pa.string()),
        ("k", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("s", pa.string()),
    ]
)


@pytest.mark.slow
@given(
    st.lists(st.tuples(any_query(), st.sampled_from([(), ("k",), ("s",)])), min_size=1, max_size=4),
    st.integers(0, 10**6),
    st.data(),
)
def test_queries_find_what_all_events_have(
    drawn: list[tuple[SaseQuery, tuple[str, ...]]], seed: int, data: st.DataObject
) -> None:
    """Queries of all forms, also by numbers of events, find on a stream what all events have."""
    rules = [
        Rule(f"r{number}", counting_events(query, seed + number), key)
        for number, (query, key) in enumerate(drawn)
    ]
    check(rules, events(seed, 20), OF_QUERIES, ("ts", "kind"), DELAY, data)


def with_ids(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events with an array."""
    return [{**event, "ids": [event["j"], event["name"], event["j"]]} for event in events]


def check_stream(rules: list[Rule], rows: list[Any], step_ms: int, data: st.DataObject) -> None:
    """Make events of drawn rows, and compare the matches on them."""
    check(rules, with_ids(events_of(rows, step_ms)), SCHEMA, ("t", "name"), DELAY * step_ms, data)


def _followed(times: list[int], last: int | None, most: int) -> int:
    """Return the latest time that is reached by steps; the first time from the most events."""
    spans: list[list[int]] = []
    for time in sorted(times):
        if spans and time - spans[-1][-1] <= most:
            spans[-1].append(time)
        else:
            spans.append([time])
    if last is None:
        return max(spans, key=len)[-1]
    for time in sorted(times):
        last = max(last, time) if time - last <= most else last
    return last


def check(
    rules: list[Rule],
    rows: list[dict[str, Any]],
    schema: pa.Schema,
    names: tuple[str, str],
    delay_ms: int,
    data: st.DataObject,
) -> None:
    """Compare the matches on a stream, out of order and in any batches, with those of memory."""
    time, type_ = names
    late = data.draw(
        st.lists(st.sampled_from([*range(0, delay_ms + 1, delay_ms // DELAY), 3 * delay_ms]),
                 min_size=len(rows), max_size=len(rows))
    )  # fmt: skip
    places = sorted(range(len(rows)), key=lambda at: rows[at][time] + late[at])
    most = data.draw(st.sampled_from([None, 2 * delay_ms, 9 * delay_ms]))
    far = [0] if most is None else [0, 0, 0, 0, 0, 10**7]
    arriving = [
        {**rows[at], time: rows[at][time] + data.draw(st.sampled_from(far))} for at in places
    ]
    bucket = RuleBucket(rules, schema, time, type_, delay_ms, most)
    reached, in_time, late_count = MIN_WATERMARK, list[dict[str, Any]](), 0
    while arriving:
        size = data.draw(st.integers(1, len(arriving)))
        batch, arriving = arriving[:size], arriving[size:]
        bucket.batch(batch)
        times = [event[time] for event in batch]
        last = None if reached == MIN_WATERMARK else reached + delay_ms
        latest = max(times) if most is None else _followed(times, last, most)
        late_count += sum(event <= reached for event in times)
        in_time += (event for event in batch if reached < event[time] <= latest)
        reached = max(reached, latest - delay_ms)
    bucket.close()
    table = pa.Table.from_pylist(sorted(in_time, key=lambda event: event[time]), schema)
    whole = matchMany(rules, table, timestamp=time, type=type_).toArrow().to_pylist()

    assert bucket.late_count == late_count
    found, wanted = shown_ids(bucket.found), shown_ids(whole)
    assert found == wanted, f"more: {[*(found - wanted)]}, less: {[*(wanted - found)]}"
