# SPDX-License-Identifier: Apache-2.0
"""Many rules on a stream give what they give on a bounded DataFrame, also after a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, Eql, Pattern, Time, parse
from pyflinkcep.rules import Rule, SigmaCorrelation
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
    return CEP.patterns(events, rules, "time", "kind", keyGroups=8).toDF()


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
