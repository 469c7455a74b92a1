# SPDX-License-Identifier: Apache-2.0
"""A stream gives what the operator harness gives, and with its flush what batch gives."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep import CEP, AfterMatchSkipStrategy, OutputTag, Pattern, PatternStream, keyBy
from pyflinkcep.testing import OperatorTestHarness
from tests.conformance.bounded_cases import runs_on_spark, sql_condition
from tests.conformance.cases import Case, build_pattern, by_key, load, make_event, match_ids
from tests.conformance.covering import covering, features
from tests.spark.streams import FileSource, Finished, run, start
from tests.spark.support import configured, in_one_task
from tests.spark.test_batch_conformance import ROW, Everything

COLUMNS = "case string, key string, ts bigint, id int, name string, price double"
LATE = OutputTag("late")
Answer = dict[str, dict[Any, list[Any]]]


def everything(table: DataFrame, name: str, pattern: Pattern, keyed: bool = True) -> Any:
    """Apply a pattern to the events of a case; its matches, timeouts and late events as text."""
    stream = applied(table, name, pattern, keyed)
    return stream.sideOutputLateData(LATE).process(Everything(), ROW)


def applied(table: DataFrame, name: str, pattern: Pattern, keyed: bool = True) -> PatternStream:
    """Apply a pattern to the events of a case."""
    own = table.where(F.col("case") == name)
    stream = CEP.pattern(keyBy(own, "key") if keyed else own, pattern, keyGroups=2)
    return stream.inEventTime("time")


def in_one(results: dict[str, Any]) -> DataFrame:
    """Return all outputs of many results as one DataFrame of (case, tag, row, late)."""
    parts = [
        result.tagged().select(
            F.lit(name).alias("case"), "tag", F.coalesce("main", "timeouts").alias("row"), "late"
        )
        for name, result in results.items()
    ]
    return reduce(DataFrame.union, parts)


def answers(rows: list[Any], keyed: dict[str, bool]) -> dict[str, Answer]:
    """Return rows of :func:`in_one` as kind → key → results in order, by case."""
    found: dict[str, Any] = {name: {"main": [], "timeouts": [], "late": []} for name in keyed}
    for case, tag, row, late in rows:
        if tag == "late":
            found[case][tag].append((late.key if keyed[case] else None, late.id))
        else:
            found[case][tag].append((row.key, row.ts, json.loads(row.match)))
    return {
        case: {tag: by_key(group) for tag, group in groups.items()}
        for case, groups in found.items()
    }


def harness_answer(
    pattern: Pattern, keyed: bool, batches: list[list[dict[str, Any]]], watermarks: list[int]
) -> Answer:
    """Return what the operator gives for micro-batches, each under its watermark."""
    return _collected(fed(pattern, keyed, batches, watermarks))


def fed(
    pattern: Pattern, keyed: bool, batches: list[list[dict[str, Any]]], watermarks: list[int]
) -> OperatorTestHarness:
    """Return a harness that has seen micro-batches, each under its watermark."""
    harness = OperatorTestHarness(pattern, timeoutHandling=True, lateDataOutput=True)
    for number, watermark in enumerate(watermarks):
        harness.processWatermark(watermark)
        for row in batches[number] if number < len(batches) else ():
            harness.processElement(make_event(row), row["ts"], row["key"] if keyed else None)
    return harness


def _collected(harness: OperatorTestHarness) -> Answer:
    return {
        "main": by_key((key, ts, match_ids(m)) for key, ts, m in harness.matches),
        "timeouts": by_key((key, ts, match_ids(m)) for key, ts, m in harness.timeouts),
        "late": by_key((key, event.id) for key, event in harness.lateData),
    }


# --- recorded cases


def chosen_cases(count: int) -> list[Case]:
    """Return recorded cases whose patterns have different names in Spark's metrics."""
    cases = {
        build_pattern(case).describe(): case
        for case in load("operator_cases")
        if runs_on_spark(case) and case["expect"]["out"]
    }
    return covering(list(cases.values()), count)


def run_both(frames: list[DataFrame], folder: Path) -> list[Finished]:
    """Run two queries at once: half of the time is Spark's, to plan one operator after another."""
    given = [Finished() for _ in frames]
    queries = [
        start(frame, folder / f"checkpoint{number}", given[number])
        for number, frame in enumerate(frames)
    ]
    for query, finished in zip(queries, given, strict=True):
        query.awaitTermination()
        finished.progress = query.recentProgress
    return given


def test_recorded_cases_in_two_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Patterns of Flink's cases, many in a query, give the operator's answers in its order."""
    cases = chosen_cases(18)
    batches: list[list[dict[str, Any]]] = [[], []]
    for case in cases:
        rows = [
            {"case": case["id"], "price": 0, **row, "key": row["key"] if case["keyed"] else None}
            for row in case["items"]
            if "id" in row
        ]
        for position, row in enumerate(rows):
            batches[position * 2 // len(rows)].append(row)
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    source = FileSource(tmp_path / "source", COLUMNS)
    source.add(*([[row[name] for name in names] for row in batch] for batch in batches))
    keyed = {case["id"]: case["keyed"] for case in cases}

    small = {"spark.sql.shuffle.partitions": 1, "spark.sql.codegen.wholeStage": False}
    with configured(spark, small):
        table = source.stream(spark, delay_ms=6)
        results = {
            case["id"]: everything(table, case["id"], build_pattern(case, sql_condition), case["keyed"])
            for case in cases
        }  # fmt: skip
        halves = [dict(list(results.items())[half::2]) for half in (0, 1)]
        given = run_both([in_one(half) for half in halves], tmp_path)
    # Spark takes the events of a case out before it looks at their times.
    watermarks = {case: given[half].watermarks for half in (0, 1) for case in halves[half]}
    own = {
        case["id"]: [[row for row in batch if row["case"] == case["id"]] for batch in batches]
        for case in cases
    }
    expected = {
        case["id"]: harness_answer(
            build_pattern(case), case["keyed"], own[case["id"]], watermarks[case["id"]]
        )
        for case in cases
    }

    assert len(set().union(*map(features, cases))) >= 120
    assert {len(schedule) for schedule in watermarks.values()} == {3}
    assert answers(given[0].rows + given[1].rows, keyed) == expected
    for kind, least in (("main", 8), ("timeouts", 4), ("late", 4)):
        assert sum(map(bool, (answer[kind] for answer in expected.values()))) >= least


# --- micro-batches of any size, and the flush


def patterns() -> dict[str, Pattern]:
    """Return three patterns that use most of what there is, groups of several patterns too."""
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    return {
        "loop": Pattern.begin("a", skip).where("name = 'a'").followedBy("b").where(lambda e: e.name == "b")
        .oneOrMore().followedBy("c").where("name = 'c'").within(timedelta(milliseconds=40)),
        "rising": Pattern.begin("x").where("price > 1").followedByAny("y")
        .where(lambda e, ctx: e.price > next(iter(ctx.getEventsForPattern("x"))).price)
        .within(timedelta(milliseconds=20)),
        "absent": Pattern.begin("p").where(lambda e: e.name == "a").notFollowedBy("q").where("name = 'b'")
        .followedBy(Pattern.oneOf(
            Pattern.begin("r").where("name = 'a'"),
            Pattern.allOf(Pattern.begin("s").where("name = 'c'"), Pattern.begin("t").where("price = 2")),
        )),
    }  # fmt: skip


def disordered(seed: int, case: str, size: int) -> list[tuple[Any, ...]]:
    """Return events of three keys in random disorder of up to 12 ms, all times different."""
    choose = random.Random(f"{seed} {case}")
    times = sorted(range(100, 100 + 3 * size, 3), key=lambda ts: ts + choose.randrange(12))
    return [
        (case, f"k{choose.randrange(3)}", ts, number, choose.choice("abc"), choose.randrange(1, 5))
        for number, ts in enumerate(times)
    ]


def test_stream_and_flush_give_what_batch_gives(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the micro-batches, matches and timeouts are batch's, in order for each key."""
    source = FileSource(tmp_path / "source", COLUMNS)
    rows = {name: disordered(1, name, 60) for name in patterns()}
    per_file = [
        [row for own in rows.values() for row in own[at : at + 15]] for at in range(0, 60, 15)
    ]
    source.add(*per_file)

    def results(table: DataFrame) -> dict[str, Any]:
        return {name: everything(table, name, pattern) for name, pattern in patterns().items()}

    keyed = dict.fromkeys(rows, True)
    given, rests = {}, {}
    for files, partitions in ((1, 1), (3, 2)):
        with configured(spark, {"spark.sql.shuffle.partitions": partitions}):
            streamed = results(source.stream(spark, 12, files))
            given[files] = run(in_one(streamed), tmp_path / f"checkpoint{files}")
            flushed = {
                name: result.flush(str(tmp_path / f"checkpoint{files}"), number)
                for number, (name, result) in enumerate(streamed.items())
            }
            rests[files] = in_one_task(in_one(flushed)).collect()
    batch = in_one_task(in_one(results(source.bounded(spark)))).collect()

    expected = answers(batch, keyed)
    for files, finished in given.items():
        assert len(finished.batches) == -(-4 // files) + 1
        assert all(finished.batches[number] for number in list(finished.batches)[:-1])
        assert {row.case for row in rests[files]} == {"loop", "rising"}
        assert answers(finished.rows + rests[files], keyed) == expected
    assert {name: _count(answer) for name, answer in expected.items()} == {
        "loop": (6, 25), "rising": (16, 44), "absent": (27, 0),
    }  # fmt: skip


def _count(answer: Answer) -> tuple[int, int]:
    main, timeouts = (sum(map(len, answer[kind].values())) for kind in ("main", "timeouts"))
    return main, timeouts


def test_the_watermark_decides_what_is_given_when(spark: SparkSession, tmp_path: Path) -> None:
    """Until the flush a stream gives, and holds, what the operator does under its watermarks."""
    source = FileSource(tmp_path / "source", COLUMNS)
    names = [column.split()[0] for column in COLUMNS.split(", ")]
    rows = disordered(9, "loop", 60)
    batches = [
        [dict(zip(names, row, strict=True)) for row in rows[at : at + 20]] for at in (0, 20, 40)
    ]
    source.add(rows[:20], rows[20:40], rows[40:])

    with configured(spark, {"spark.sql.shuffle.partitions": 2}):
        result = everything(source.stream(spark, 0), "loop", patterns()["loop"])
        finished: Finished = run(in_one({"loop": result}), tmp_path / "checkpoint")
        stream = applied(source.stream(spark, 0), "loop", patterns()["loop"])
        waiting = stream.waiting(str(tmp_path / "checkpoint")).collect()

    harness = fed(_python_loop(), True, batches, finished.watermarks)
    expected = _collected(harness)
    assert sorted((row.key or "", row.what, row.events) for row in waiting) == _held(harness)
    assert [row.began for row in waiting] == sorted(row.began for row in waiting)
    assert {(row.after, row.waitsFor) for row in waiting} >= {("a", "b"), ("b", "b or c")}
    assert answers(finished.rows, {"loop": True})["loop"] == expected
    assert all(expected.values())


def _held(harness: OperatorTestHarness) -> list[tuple[str, str, int]]:
    """Return what a harness holds: key, what it is, and its number of events."""
    found, queued = [], 0
    for key, context in harness._operator.keys.items():
        nfa_state, accessor = context.state.nfa_state, context.state.buffer.get_accessor()
        queued += sum(map(len, context.queue.values()))
        kinds = {
            "partial match": nfa_state.partial_matches, "match held back": nfa_state.completed_matches
        }  # fmt: skip
        for what, states in kinds.items():
            for state in states:
                events = accessor.materialize_match(state.previous_node, state.version).values()
                found += [(key, what, sum(map(len, events)))] if state.previous_node else []
    return sorted([*found, *([("", "queued events", queued)] if queued else [])])


def _python_loop() -> Pattern:
    skip = AfterMatchSkipStrategy.skipPastLastEvent()
    return (
        Pattern.begin("a", skip).where(lambda e: e.name == "a").followedBy("b").where(lambda e: e.name == "b")
        .oneOrMore().followedBy("c").where(lambda e: e.name == "c").within(timedelta(milliseconds=40))
    )  # fmt: skip
