# SPDX-License-Identifier: Apache-2.0
"""MATCH_RECOGNIZE on streams: late rows, watermarks, restarts, changed clauses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, matchRecognize
from pyflinkcep.errors import CepError
from tests.spark.logins import CLAUSE, logins
from tests.spark.streams import FileSource, failure, run

pytestmark = pytest.mark.usefixtures("one_task")

TEXT = f"""WITH seen AS (SELECT * FROM logins WHERE ts > 0)
    SELECT *, fails * 2 AS twice FROM seen MATCH_RECOGNIZE ({CLAUSE}) AS m WHERE fails > 1"""


@pytest.fixture
def source(tmp_path: Path) -> FileSource:
    """Return some logins; a null user is a user."""
    return logins(tmp_path)


def plain(rows: Any) -> list[tuple[Any, ...]]:
    """Return rows as tuples, sorted."""
    return sorted(map(tuple, rows), key=repr)


def test_a_restarted_stream_and_its_flush_give_the_bounded_rows(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Two runs from one checkpoint, then flush: the bounded rows, but for a late row, counted."""
    checkpoint = tmp_path / "checkpoint"
    source.stream(spark).createOrReplaceTempView("logins")
    first = run(CEP.sql(spark, TEXT), checkpoint)
    source.add([("v", 12_000, "fail"), ("v", 12_500, "fail")], [("v", 13_000, "ok")])
    source.bounded(spark).createOrReplaceTempView("logins")
    expected = plain(CEP.sql(spark, TEXT).collect())
    source.add([("u", 2500, "fail"), ("v", 14_000, "fail")])

    source.stream(spark).createOrReplaceTempView("logins")
    result = CEP.sql(spark, TEXT)
    second = run(result, checkpoint)
    rest = result.flush(str(checkpoint)).collect()

    assert plain([*first.rows, *second.rows, *rest]) == expected
    assert len(expected) == 4
    assert first.rows
    assert second.rows
    assert sum(second.metrics("numLateRecordsDropped")) == 1


def test_matches_of_which_no_column_is_read(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """A match is a row even if its measures read nothing, in both dialects."""
    clause = "ORDER BY time MEASURES 1 AS one PATTERN (F O) DEFINE F AS result = 'fail'"
    first, second = (
        matchRecognize(source.stream(spark), f"{clause}, O AS result = 'ok'", dialect=dialect)
        for dialect in ("flink", "standard")
    )

    assert len(run(first.union(second.toDF()), tmp_path / "checkpoint").rows) == 4


STANDARD = """
    PARTITION BY user ORDER BY time, ts DESC
    MEASURES MATCH_NUMBER() AS no, CLASSIFIER() AS label, PREV(ts) AS before, FINAL COUNT(*) AS size
    ALL ROWS PER MATCH WITH UNMATCHED ROWS
    PATTERN (^ A? | F+ O?) WITHIN INTERVAL '5' SECOND
    DEFINE A AS result = 'ok', F AS result = 'fail', O AS result = 'ok'
"""


def test_the_standards_meaning_on_a_stream(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """What is decided comes at once, two runs and flush give the bounded rows; late rows count."""
    checkpoint = tmp_path / "checkpoint"

    def result(clause: str = STANDARD, **more: Any) -> Any:
        return matchRecognize(source.stream(spark), clause, dialect="standard", **more)

    first = run(result(), checkpoint)
    source.add([("v", 12_000, "fail"), ("u", 12_500, "ok")], [("v", 13_000, "ok")])
    bounded = matchRecognize(source.bounded(spark), STANDARD, dialect="standard")
    expected = plain(bounded.collect())
    source.add([("u", 2500, "fail")])
    changed = STANDARD.replace("F+ O?", "F+ O")
    refused = failure(result(changed), checkpoint)
    last = result()
    second = run(last, checkpoint)
    rest = last.flush(str(checkpoint)).collect()

    assert plain([*first.rows, *second.rows, *rest]) == expected
    assert len(expected) == 14
    assert [len(first.rows), len(second.rows), len(rest)] == [8, 4, 2]
    assert sum(second.metrics("numLateRecordsDropped")) == 1
    assert "PatternChangedError: the checkpoint holds" in refused
    assert "pattern: '((^ A?) | (F+ O?))' is now '((^ A?) | (F+ O))'" in refused


def test_functions_of_several_rows_on_a_stream(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """Python computes on a stream what Spark's windows compute of bounded input."""
    clause = """PARTITION BY user ORDER BY time
        MEASURES FIRST(ts) AS first, ARRAY_AGG(ts) AS all, COUNT(*) AS n
        PATTERN (F+ O) DEFINE F AS upper(result || PREV(F.result, 0)) = 'FAILFAIL',
        O AS round((O.ts - PREV(O.ts)) / 1000, 1) >= 1.0 AND stddev(F.ts) >= 0
        AND count(DISTINCT F.result) = 1"""
    bounded = matchRecognize(source.bounded(spark), clause, dialect="standard").collect()
    stream = matchRecognize(source.stream(spark), clause, dialect="standard")
    streamed = run(stream, tmp_path / "checkpoint")
    rest = stream.flush(str(tmp_path / "checkpoint")).collect()

    assert plain([*streamed.rows, *rest]) == plain(bounded)
    assert streamed.rows
    assert [row.n for row in bounded] == [3, 3, 3]


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("ORDER BY time PATTERN (A $) MEASURES", "$ on a stream"),
        ("ORDER BY time PATTERN (A) DEFINE A AS ts < NEXT(ts) MEASURES", "DEFINE A: NEXT on a stream"),
        ("ORDER BY time PATTERN (A) MEASURES NEXT(A.ts)", "measure x: NEXT on a stream"),
        ("ORDER BY time PATTERN (A) MEASURES stddev(A.ts)", "measure x: STDDEV on a stream, where"),
        ("ORDER BY result PATTERN (A) MEASURES", "ORDER BY must begin with the event time"),
        ("ORDER BY time DESC PATTERN (A) MEASURES", "ORDER BY must begin with the event time"),
        ("PATTERN (A) MEASURES", "ORDER BY must begin with the event time"),
    ],
)  # fmt: skip
def test_what_the_end_of_a_stream_would_decide_is_refused(
    spark: SparkSession, source: FileSource, clause: str, message: str
) -> None:
    """What cannot be decided in time is refused when it is planned, with its place and a hint."""
    head, _, rest = clause.partition("PATTERN")
    pattern, _, measure = rest.partition(" MEASURES")
    pattern, _, define = pattern.partition(" DEFINE ")
    text = f"{head} MEASURES {measure or 'COUNT(*)'} AS x PATTERN{pattern} DEFINE " + (
        define or "A AS TRUE"
    )

    with pytest.raises(CepError) as raised:
        matchRecognize(source.stream(spark), text, dialect="standard")

    assert message in raised.value.message
    assert "line 1, column" in raised.value.message
    assert raised.value.hint


def test_a_windowed_count_of_alerts_uses_the_rowtime(
    spark: SparkSession, source: FileSource, tmp_path: Path
) -> None:
    """MATCH_ROWTIME() carries the watermark: windows over it close in append mode."""
    matches = matchRecognize(source.stream(spark), CLAUSE)
    matches.createOrReplaceTempView("alerts")
    counts = spark.sql(
        "SELECT window(mrt, '2 seconds').start AS s, count(*) AS n FROM alerts "
        "GROUP BY window(mrt, '2 seconds')"
    )

    found = run(counts, tmp_path / "checkpoint")

    assert [row.n for row in found.rows] == [1, 1]


def test_other_times_than_the_rowtime(spark: SparkSession, source: FileSource) -> None:
    """Of a clause and of a statement, the watermark is put behind by the window, or refused."""
    clause = CLAUSE.replace("O.ts AS at", "F.time AS at")
    text = "SELECT at, mrt FROM logins MATCH_RECOGNIZE ({}) AS m"
    source.stream(spark).createOrReplaceTempView("logins")
    endless = CEP.sql(spark, text.format(clause.replace("WITHIN INTERVAL '1' MINUTE", "")))

    for result in (
        CEP.sql(spark, text.format(clause)),
        matchRecognize(source.stream(spark), clause),
    ):
        delays = [
            result.withEventTime(name).schema[name].metadata["spark.watermarkDelayMs"]
            for name in ("mrt", "at")
        ]
        assert delays == [5, 60_005]
    assert endless.withEventTime("mrt").columns == ["at", "mrt"]
    with pytest.raises(CepError, match="a match may last forever"):
        endless.withEventTime("at")


def test_a_clause_over_a_clause(spark: SparkSession, tmp_path: Path) -> None:
    """What the first clause still holds at the end goes through the second: the bounded rows."""
    inner = """(SELECT * FROM numbers MATCH_RECOGNIZE (PARTITION BY k ORDER BY time
        MEASURES A.id AS a, MATCH_ROWTIME() AS at PATTERN (A B) DEFINE B AS B.id > A.id) AS t)"""
    text = f"""SELECT *, y - x AS gap FROM {inner} MATCH_RECOGNIZE (ORDER BY at
        MEASURES X.a AS x, Y.a AS y AFTER MATCH SKIP PAST LAST ROW PATTERN (X Y)
        DEFINE Y AS Y.a > X.a) AS u"""
    source = FileSource(tmp_path / "in", "k string, ts bigint, id int")
    source.add(
        [("u", 1000, 1), ("v", 1500, 5), ("u", 2000, 2)],
        [("v", 3000, 6), (None, 3500, 1), ("u", 4000, 3)],
        [(None, 9000, 9), ("v", 9500, 7), ("u", 10_000, 4), ("u", 10_001, 5)],
    )
    source.bounded(spark).createOrReplaceTempView("numbers")
    expected = plain(CEP.sql(spark, text).collect())
    source.stream(spark).createOrReplaceTempView("numbers")

    result = CEP.sql(spark, text)
    rows = run(result, tmp_path / "checkpoint").rows
    rest = result.flush(str(tmp_path / "checkpoint")).collect()
    distinct = text.replace("SELECT * FROM numbers", "SELECT DISTINCT * FROM numbers")
    with pytest.raises(CepError, match="a second MATCH_RECOGNIZE in a statement over a stream"):
        CEP.sql(spark, distinct)
    for more in ("JOIN numbers ON m.a = numbers.id", "UNION ALL SELECT k, id, time FROM numbers"):
        with pytest.raises(CepError, match="a join or union with another stream"):
            CEP.sql(spark, f"SELECT m.* FROM {inner} AS m {more}")

    assert plain([*rows, *rest]) == expected
    assert len(expected) == 3
    assert rest


def test_a_changed_clause_is_refused_or_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """What stored rows depend on is named; another order restarts, other measures may not."""
    source, checkpoint = FileSource(tmp_path / "in", "ts bigint, id int"), tmp_path / "checkpoint"
    source.add([(1000, 3), (1000, 1)], [(1000, 2), (5000, 9)])

    def result(order: str = "id DESC", a: str = "FIRST(A.id * 2)", **more: Any) -> Any:
        clause = f"""ORDER BY time, {order} MEASURES {a} AS a, B.id AS b
            PATTERN (A B) DEFINE A AS id > 0"""
        return matchRecognize(source.stream(spark, delay_ms=1000), clause, **more)

    first = run(result(), checkpoint)
    source.add([(5000, 8), (5000, 7), (6000, 6)])
    refused = [
        failure(result("id"), checkpoint),
        failure(result(a="FIRST(A.id * 3)"), checkpoint),
        failure(result(a="FIRST(A.id * 3)", onPatternChange="restart"), checkpoint),
    ]
    again = result("id", "FIRST(A.id * 2) + 0 * B.id", onPatternChange="restart")
    second = run(again, checkpoint)
    rest = again.flush(str(checkpoint)).collect()

    assert plain(first.rows) == [(4, 1), (6, 2)]
    assert all(text.startswith("PatternChangedError: the checkpoint holds ") for text in refused)
    assert [said in text for said, text in zip(
        ["order: 'id DESC NULLS LAST' is now 'id ASC NULLS FIRST'", "computed columns:", "computed columns:"],
        refused, strict=True,
    )] == [True] * 3  # fmt: skip
    assert plain([*second.rows, *rest]) == [(14, 8), (16, 9), (18, 6)]


def test_explain_of_a_stream(
    spark: SparkSession, source: FileSource, capsys: pytest.CaptureFixture[str]
) -> None:
    """explain() of a clause on a stream says which watermark it follows."""
    matchRecognize(source.stream(spark), CLAUSE).explain()

    shown = capsys.readouterr().out
    assert "CEP: F{2,} ⇒ O" in shown
    assert "5 ms behind the latest event" in shown
