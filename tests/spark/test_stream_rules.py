# SPDX-License-Identifier: Apache-2.0
"""Many rules on a stream give what they give on a bounded DataFrame, also after a restart."""

from __future__ import annotations

import random
from base64 import b64encode
from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from pyflinkcep import CEP, Eql, Pattern, Time, matchMany, parse
from pyflinkcep.rules import Rule, SigmaCorrelation
from pyflinkcep.time import MIN_WATERMARK
from tests.property.test_rule_sets import ROWS, events_of, has_few_matches, named
from tests.property.test_rule_streams import RULES_ON_STREAMS, SCHEMA, with_ids
from tests.spark.streams import END, TAGGED, FileSource, Finished, failure, run, tagged_events
from tests.spark.support import configured

RISE = Pattern.begin("a").where("x < 3").followedBy("b").where("x > 1 + last(a.x)")
HIGH = {"type": "event_count", "rules": ["high"], "group-by": ["k"], "timespan": "1s"}
HIGH["condition"] = {"gte": 4}
LATER = {
    "type": "temporal",
    "rules": ["many", "d"],
    "timespan": "1s",
    "condition": "many and not d",
}
QUERY = """PATTERN SEQ(A a, B+ b[], ~(C c), D d)
  WHERE skip_till_next_match(a, b[], c, d) { [k] AND b[i].x >= b[i-1].x AND d.x > a.x }
  WITHIN 60 milliseconds"""
RULES: dict[str, Any] = {
    "counted": SigmaCorrelation(HIGH, {"high": "10 / (x + 1) < 1.5"}),
    "chained": SigmaCorrelation(LATER, {"many": HIGH, "high": "x > 6", "d": "kind = 'D' AND x = 8"}),
    "runs": Eql("sequence by k with maxspan=60ms [A where x > 2] [any where x < 7] with runs=2"),
    "other fields": Eql("sequence with maxspan=90ms [A where true] by k [B where x > 1] by o"),
    "each value": Eql("sequence by tags with maxspan=40ms [A where true] [B where true]"),
    "query": Rule("query", parse(QUERY), ("o",)),
    "missing": Eql("sequence by ?k with maxspan=25ms [A where true] [B where true] ![C where true]"),
    "single": Eql("D where x > 6"),
    "rise": Rule("rise", RISE.within(Time.milliseconds(50)), ("k",)),
    "of Spark": Rule("of Spark", Pattern.begin("a").where("10 / (x + 1) < 1.5").next("b"), ("o", "k")),
    "python": Rule("python", Pattern.begin("a").where(lambda e: e.x == 8), (), 7),
    "not": Rule(
        "not",
        Pattern.begin("a").where("kind = 'A'").notFollowedBy("b").where("kind = 'B'")
        .within(Time.milliseconds(9)),
        ("k",),
    ),
}  # fmt: skip


def found(events: DataFrame, rules: dict[str, Any]) -> DataFrame:
    """Return the matches of rules."""
    # Columns that are NOT NULL, as of literals, are some like any other.
    strict = {"origin": F.lit("here"), "strict": F.struct(F.col("id"), F.lit(1).alias("one"))}
    own = events.withColumns(strict)
    return CEP.patterns(own, rules, "time", "kind", keyGroups=8).toDF()


def _counted(matches: list[Any]) -> Counter[Any]:
    return Counter((m.rule, m.version, str(m.key), m.matchId, str(m.matchTimestamp), str(m.events))
                   for m in matches)  # fmt: skip


@pytest.mark.spark
def test_a_stream_gives_the_bounded_matches(spark: SparkSession, tmp_path: Path) -> None:
    """Events out of order in many micro-batches, with restarts, give the bounded job's matches."""
    source, checkpoint = FileSource(tmp_path / "in", TAGGED), tmp_path / "checkpoint"
    given, finished = tagged_events(tied=False), Finished()
    with configured(spark, {"spark.sql.shuffle.partitions": "1"}):
        for begin in (0, 120):
            part = given[begin : begin + 120]
            source.add(part[:60], part[60:])
            if begin:
                source.add([END])
            run(found(source.stream(spark, delay_ms=10), RULES), checkpoint, finished)
        bounded = found(source.bounded(spark).coalesce(1), RULES).collect()
        source.add([END])
        fewer = {name: RULES[name] for name in RULES if name != "rise"}
        refused = failure(found(source.stream(spark, delay_ms=10), fewer), checkpoint)
    assert _counted(finished.rows) == _counted(bounded)
    assert "use the same rules as when the checkpoint was created" in refused
    assert {match.rule for match in bounded} == {*RULES}


OF_EVENTS = from_arrow_schema(SCHEMA.set(1, SCHEMA.field("t").with_name("ts")))
DELAY = 4  # milliseconds
FEW_MATCHES = RULES_ON_STREAMS.filter(lambda drawn: has_few_matches(drawn[0]))
"""Rules on streams, without those whose matches, which are collected, fill the driver's memory."""


def _rows(drawn: list[Any]) -> list[tuple[Any, ...]]:
    """Return events as JSON can say them."""
    return [tuple(map(_as_json, event.values())) for event in with_ids(events_of(drawn))]


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return f"{value}" if isinstance(value, date | Decimal) else value


def _in_time(batches: list[list[tuple[Any, ...]]], reached: int) -> tuple[set[int], int]:
    """Return the events of micro-batches that are not late, and the watermark after them."""
    found = set[int]()
    for batch in batches:
        found |= {row[0] for row in batch if row[1] > reached}
        reached = max(reached, *(row[1] - DELAY for row in batch))
    return found, reached


@pytest.mark.spark
@settings(
    max_examples=2, phases=[Phase.generate], deadline=None, suppress_health_check=[*HealthCheck]
)
@given(data=st.data())
def test_random_rules_of_all_kinds(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Random rules find in micro-batches, after a restart too, what all events in time have."""
    rules = named(data.draw(st.lists(FEW_MATCHES, min_size=30, max_size=40)))
    drawn = data.draw(st.lists(ROWS, min_size=8, max_size=8))
    if sum(map(len, drawn)) < 4:
        return  # the first that is drawn, which is the least
    choose = random.Random(data.draw(st.integers(0, 10**6)))
    rows = sorted(
        _rows([row for own in drawn for row in own]),
        key=lambda row: row[1] + choose.choice([0, 0, 1, DELAY, 2 * DELAY]),
    )
    cuts = sorted(choose.sample(range(1, len(rows)), 3))
    batches = [rows[i:j] for i, j in pairwise([0, *cuts, len(rows)])]
    folder = tmp_path_factory.mktemp("random")
    source, finished, checkpoint = FileSource(folder / "in", OF_EVENTS), Finished(), folder / "c"
    bounded = FileSource(folder / "in time", OF_EVENTS)
    zones = ("Europe/Berlin", "America/New_York")
    reached = MIN_WATERMARK
    for zone, part in zip(zones, (batches[:2], batches[2:]), strict=True):
        own = {"spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": zone}
        source.add(*part)
        known, reached = _in_time(part, reached)
        bounded.add([row for batch in part for row in batch if row[0] in known])
        if zone == zones[-1]:
            source.add([(10**6, 10**9, *[None] * (len(rows[0]) - 2))])  # ends what waits
        with configured(spark, own):
            stream = CEP.patterns(source.stream(spark, DELAY), rules, "time", "name", keyGroups=8)
            run(stream.toDF(), checkpoint, finished)
    with configured(spark, own):
        table = bounded.bounded(spark).toArrow()
    arrived = [row[0] for row in rows]  # in this order, whatever that of files
    order = np.argsort(list(map(arrived.index, table["id"].to_pylist())))
    memory = matchMany(rules, table.take(order), timestamp="time", type="name")
    found = Counter(f"{row.rule} {row.matchId}" for row in finished.rows)
    assert found
    assert found == Counter(f"{one.rule} {one.matchId}" for one in memory)
