# SPDX-License-Identifier: Apache-2.0
"""Chains of followedByAny on bounded DataFrames: by ordered lists as by the automaton."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, NotSupportedError, OutputTag, Pattern, keyBy
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.matching.sorting import sorted_chunks
from pyflinkcep.spark.plan import job as jobs
from pyflinkcep.spark.worker import pattern_task
from tests.shorthand import ms
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

SCHEMA = "id int, user string, ts timestamp, name string, price double, day date"

PATTERN = (
    Pattern.begin("a")
    .where("name = 'a'")
    .followedByAny("b")
    .where("name = 'b' AND price > 0.5D * last(a.price) OR day > first(a.day)")
    .notFollowedBy("x")
    .where("name = 'x'")
    .followedByAny("c")
    .where("name IN ('a', 'c') AND name >= last(a.name) AND price < 1.5D * max(b.price)")
    .within(ms(14))
)


def frame(spark: SparkSession) -> DataFrame:
    """Events of four users, some of them at one time, with NULLs."""
    choose = random.Random(4)
    rows = []
    for number in range(120):
        user = f"u{choose.randrange(4)}"
        at = datetime.fromtimestamp((1000 + number // 3) / 1000, UTC)
        name, price = choose.choice("abcx"), choose.choice([None, 1.0, 2.0, 3.0])
        day = date(2024, 1, choose.randint(1, 4))
        rows.append((number, None if user == "u0" else user, at, name, price, day))
    return spark.createDataFrame(rows, SCHEMA).repartition(3)


def ids(rows: list[Any]) -> Counter[str]:
    stages = ("a", "b", "c")
    return Counter(
        str((row.matchTimestamp, [[e.id for e in row[stage]] for stage in stages])) for row in rows
    )


@pytest.mark.spark
@pytest.mark.parametrize("keyed", [True, False])
def test_the_same_rows(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, keyed: bool) -> None:
    """Keyed, and without a key in slices of one window, rows are those of the automaton."""
    monkeypatch.setattr(jobs, "_SLICE_WINDOWS", 1)
    with configured(spark, QUICK_FOR_MANY_PLANS):
        events = frame(spark).cache()
        given = keyBy(events, "user") if keyed else events
        found = {
            how: CEP.pattern(given, PATTERN, evaluation=how).inEventTime("ts")
            for how in ("nfa", "eventLists", "auto")
        }
        rows = {how: stream.toDF().collect() for how, stream in found.items()}
        assert ids(rows["eventLists"]) == ids(rows["nfa"]) == ids(rows["auto"])
        assert len(rows["nfa"]) > 20
        selected = found["auto"].select(lambda m: m["a"][0].id + m["c"][0].id, "total int")
        assert sorted(row.total for row in selected.collect()) == sorted(
            row.a[0].id + row.c[0].id for row in rows["nfa"]
        )


@pytest.mark.spark
def test_slices_of_times_without_a_zone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timestamp_ntz is in its slice whatever hour the session's clocks skip."""
    monkeypatch.setattr(jobs, "_SLICE_WINDOWS", 1)
    zone = {"spark.sql.session.timeZone": "America/New_York"}
    with configured(spark, QUICK_FOR_MANY_PLANS | zone):
        rows = spark.range(12).selectExpr(
            "id", "timestamp_ntz'2024-03-10 02:30:00.0005' + make_dt_interval(0, 0, 5 * id) AS ts"
        )
        pair = Pattern.begin("a").followedByAny("b").within(timedelta(minutes=9))
        found = {
            how: CEP.pattern(rows, pair, evaluation=how).inEventTime("ts").toDF()
            for how in ("nfa", "eventLists")
        }
        pairs = {how: frame.selectExpr("a[0].id", "b[0].id") for how, frame in found.items()}

        assert sorted(pairs["eventLists"].collect()) == [(n, n + 1) for n in range(11)]
        assert sorted(pairs["nfa"].collect()) == [(n, n + 1) for n in range(11)]


@pytest.mark.spark
def test_explained(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """explain() says for what lists are taken and why not for the rest; refusals say why too."""
    events = spark.createDataFrame([], SCHEMA)
    CEP.pattern(events, PATTERN).explain()
    printed = capsys.readouterr().out
    assert "evaluation for toDF(), select() and flatSelect(): eventLists (single" in printed
    assert "evaluation for process(): nfa (the order of matches can be seen)" in printed
    CEP.pattern(events, PATTERN.followedBy("d")).explain()
    assert "evaluation: nfa (stage 'd' is not joined by followedByAny)" in capsys.readouterr().out
    asked = CEP.pattern(events, PATTERN, evaluation="eventLists").inEventTime("ts")
    with pytest.raises(NotSupportedError, match="timeouts or a funnel are requested"):
        asked.toDF(OutputTag("late"))
    lazy = PATTERN.where(lambda e: True)
    with pytest.raises(NotSupportedError, match="of stage 'c' is not SQL"):
        CEP.pattern(events, lazy, evaluation="eventLists").inEventTime("ts").toDF()
    with pytest.raises(NotSupportedError, match="orders events of equal time"):
        CEP.pattern(events, PATTERN, orderBy=["id"], evaluation="eventLists").inEventTime(
            "ts"
        ).toDF()
    with pytest.raises(InvalidArgumentError, match="'backtracking'"):
        CEP.pattern(events, PATTERN, evaluation="backtracking")


@pytest.mark.spark
def test_chunks(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition sorted in many chunks gives each match once, with the chunk of its end."""
    events = frame(spark)
    stream = CEP.pattern(keyBy(events, "user"), PATTERN, evaluation="eventLists").inEventTime("ts")
    tasks: list[Any] = []
    monkeypatch.setattr(
        "pyflinkcep.spark.plan.job.map_in_arrow",
        lambda shuffled, run, *_: tasks.append((shuffled, run.__self__)) or shuffled,
    )
    stream.toDF()
    shuffled, task = tasks[0]
    batches = shuffled.coalesce(1).toArrow().to_batches()
    sizes: list[int] = []

    def counted(*arguments: Any) -> Any:
        for chunk in sorted_chunks(*arguments):
            sizes.append(chunk.num_rows)
            yield chunk

    monkeypatch.setattr(pattern_task, "sorted_chunks", counted)

    def rows(sort_bytes: int) -> Counter[str]:
        sizes.clear()
        single = pattern_task.ChainTask(task.pattern, task.layout, task.consumer, sort_bytes)
        found = [row for batch in single.run(iter(small)) for row in batch.to_pylist()]
        return Counter(
            str([[e["id"] for e in row[stage]] for stage in ("a", "b", "c")]) for row in found
        )

    small = [part.slice(at, 5) for part in batches for at in range(0, part.num_rows, 5)]
    whole = rows(1 << 30)
    assert len(sizes) == 1
    assert whole
    assert rows(2000) == whole
    assert len(sizes) > 3
