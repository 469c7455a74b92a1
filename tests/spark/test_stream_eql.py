# SPDX-License-Identifier: Apache-2.0
"""EQL sequences on streams give what they give on bounded DataFrames, also after a restart."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, OutputTag
from tests.spark.streams import END, TAGGED, FileSource, Finished, failure, run, tagged_events
from tests.spark.support import configured, in_one_task

QUERIES = [
    # runs, until, and an event that ends one run and begins another
    "sequence by k with maxspan=60ms [A where x > 2] [any where x < 7] with runs=2 until [D where true]",
    # other fields at other steps, which may be the same key
    "sequence with maxspan=90ms [A where true] by k [B where x > 1] by o [any where x > 3] by k",
    # each value of an array
    "sequence by tags with maxspan=40ms [A where true] [B where true]",
    # missing events before, between and after, which wait for the watermark
    "sequence by ?k with maxspan=30ms ![D where true] [A where true] ![C where x > 4] [B where true]",
    "sequence by ?k with maxspan=25ms [A where true] [B where true] ![C where true]",
    # neither key nor maxspan
    "sequence [A where x == 0] [B where x == 1] [C where true]",
]


def found(events: DataFrame) -> DataFrame:
    """Return the matches of all queries as texts."""
    parts = []
    for number, query in enumerate(QUERIES):
        matches = CEP.eql(events, query, "time", "kind", "x", keyGroups=8, name=f"q{number}").toDF()
        ids = F.to_json(F.transform("events", lambda event: event.id))
        parts.append(matches.select(F.concat(F.lit(f"{number} "), ids).alias("found")))
    return reduce(DataFrame.union, parts)


@pytest.mark.spark
def test_a_stream_gives_the_bounded_matches(spark: SparkSession, tmp_path: Path) -> None:
    """Events out of order in micro-batches, with a restart, give the bounded job's matches."""
    source, checkpoint = FileSource(tmp_path / "in", TAGGED), tmp_path / "checkpoint"
    given = tagged_events(tied=True)
    finished = Finished()
    with configured(spark, {"spark.sql.shuffle.partitions": "1"}):
        for files in ([given[:80]], [given[80:160], [*given[160:], END]]):
            source.add(*files)
            run(found(source.stream(spark, delay_ms=10)), checkpoint, finished)
        bounded = in_one_task(found(source.bounded(spark).coalesce(1)))
        expected = Counter(row.found for row in bounded.collect())
    assert Counter(row.found for row in finished.rows) == expected
    assert {text[0] for text in expected} == set("012345")


@pytest.mark.spark
def test_late_events_and_events_without_time(spark: SparkSession, tmp_path: Path) -> None:
    """Late events go to their side output, one for each key; those without a time are dropped."""
    source = FileSource(tmp_path / "in", TAGGED)
    source.add(
        [(1, 1000, "A", "p", "p", 1, []), (2, 1100, "Z", "q", "q", 1, None)],
        [(3, 900, "A", "p", "p", 1, ["p"]), (4, 950, "Z", "p", "p", 1, None)],
        [(5, None, "B", "p", "p", 1, []), (6, 1110, "B", "p", "p", 1, []), END],
    )
    events, late = source.stream(spark, delay_ms=10), OutputTag("late")
    query = "sequence by k [A where true] [B where true]"
    stream = CEP.eql(events, query, "time", "kind", keyGroups=4, onNullKey="drop")
    result = stream.sideOutputLateData(late).toDF()
    assert result.getSideOutput(late).columns == events.columns
    finished = run(stream.toDF(), tmp_path / "checkpoint")
    assert [[e.id for e in row.events] for row in finished.rows] == [[1, 6]]
    assert sum(finished.metrics("numLateRecordsDropped")) == 2
    assert sum(finished.metrics("numNullRecordsDropped")) == 1
    tagged = run(result.getSideOutput(late), tmp_path / "tagged")
    assert sorted(row.id for row in tagged.rows) == [3, 4]


@pytest.mark.spark
def test_another_query(spark: SparkSession, tmp_path: Path) -> None:
    """A checkpoint of another query is refused, one with other spaces and comments is not."""
    source, checkpoint = FileSource(tmp_path / "in", TAGGED), tmp_path / "checkpoint"
    source.add(tagged_events(tied=True)[:40])
    events = source.stream(spark, delay_ms=10)

    def of(query: str) -> Any:
        return CEP.eql(events, query, "time", "kind", keyGroups=4, name="rule").toDF()

    run(of("sequence by k [A where x > 2] [B where true]"), checkpoint)
    source.add(tagged_events(tied=True)[40:80])
    run(of("sequence by k // as before\n [A where x>2]\n [B where true]"), checkpoint)
    source.add(tagged_events(tied=True)[80:120])
    assert "PatternChangedError" in failure(
        of("sequence by k [A where x > 3] [B where true]"), checkpoint
    )
