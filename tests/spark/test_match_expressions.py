# SPDX-License-Identifier: Apache-2.0
"""SQL over earlier stages: the same matches as Python conditions give, on streams too."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, AfterMatchSkipStrategy, OutputTag, Pattern, keyBy
from pyflinkcep.testing import match
from tests.shorthand import ms
from tests.spark.streams import FileSource, run
from tests.spark.streams import failure as failed_query
from tests.spark.support import configured, ids, in_one_job, on
from tests.unit.tables.test_sql_of_columns import GUARDED, SOME_ZEROS

# --- the same as Python conditions


class Event(NamedTuple):
    """An event of the random streams; prices are quarters, so that sums are exact."""

    user: str
    ts: int
    id: int
    kind: str
    price: float | None
    qty: int | None


Stages = Callable[[str], list[Event]]


def prices(events: list[Event]) -> list[float]:
    """Return the prices that are not null."""
    return [e.price for e in events if e.price is not None]


def amounts(events: list[Event]) -> list[int]:
    """Return the quantities that are not null."""
    return [e.qty for e in events if e.qty is not None]


def above(value: float | None, other: float | None) -> bool:
    """Compare as SQL does: with null it is never true."""
    return value is not None and other is not None and value > other


def mean(values: list[float]) -> float | None:
    """Return the average, null of none."""
    return sum(values) / len(values) if values else None


def most(values: list[float]) -> float | None:
    """Return the maximum, null of none."""
    return max(values, default=None)


CONDITIONS: Mapping[str, Callable[[Event, Stages], bool]] = {
    "kind = 'a' and price > coalesce(avg(a.price), 0)": lambda e, of: (
        e.kind == "a" and above(e.price, mean(prices(of("a"))) or 0)
    ),
    "price > (sum(a.price) + coalesce(sum(up.price), 0)) / (count(a.price) + count(up.price))":
        lambda e, of: above(e.price, mean(prices(of("a")) + prices(of("up")))),
    "qty < 0.75 * last(up.qty)": lambda e, of: (
        of("up")[-1].qty is not None and above(0.75 * of("up")[-1].qty, e.qty)
    ),
    "kind = 'b' and price > max(a.price)": lambda e, of: (
        e.kind == "b" and above(e.price, most(prices(of("a"))))
    ),
    "price < last(b.price) and qty >= min(a.qty)": lambda e, of: (
        above(of("b")[-1].price, e.price)
        and e.qty is not None and bool(amounts(of("a"))) and e.qty >= min(amounts(of("a")))
    ),
    "kind <> 'a' and coalesce(sum(a.qty), 0) > 3": lambda e, of: (
        e.kind != "a" and sum(amounts(of("a"))) > 3
    ),
    "count(b) = 0 or price > last(b.price)": lambda e, of: (
        not of("b") or above(e.price, of("b")[-1].price)
    ),
    "sum(a.qty) > 4 or count_if(a.qty <= 1 and a.price > 1) > 1 or kind = 'c'": lambda e, of: (
        sum(amounts(of("a"))) > 4
        or sum(x.qty is not None and x.qty <= 1 and above(x.price, 1) for x in of("a")) > 1
        or e.kind == "c"
    ),
    "price > first(a.price) and count(b.*) = 2": lambda e, of: (
        above(e.price, of("a")[0].price) and len(of("b")) == 2
    ),
    "price > last(a.price)": lambda e, of: above(e.price, of("a")[-1].price),
    "not price > median(a.price * a.qty)": lambda e, of: (
        (seen := [x.price * x.qty for x in of("a") if None not in (x.price, x.qty)]) != []
        and e.price is not None and not e.price > median(seen)
    ),
    "last(`n 1`.qty) is null": lambda e, of: (
        not of("n 1") or of("n 1")[-1].qty is None
    ),
}  # fmt: skip


def python(sql: str) -> Any:
    """Return the Python condition that means the same."""
    function = CONDITIONS[sql]
    return lambda e, ctx: bool(function(e, lambda stage: list(ctx.getEventsForPattern(stage))))


A, B, C = "kind = 'a'", "kind = 'b'", "kind = 'c'"
PLAIN: Mapping[str, Callable[[Event], bool]] = {
    A: lambda e: e.kind == "a",
    B: lambda e: e.kind == "b",
    C: lambda e: e.kind == "c",
    "qty = 1": lambda e: e.qty == 1,
}
RISE, DROP = list(CONDITIONS)[1:3]
ENOUGH = list(CONDITIONS)[7]

Written = Callable[[str], Any]
Skip = AfterMatchSkipStrategy


def rise(c: Written, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
    """Return the pattern of prices above the average so far, then a drop of the quantity."""
    up = Pattern.begin("a", skip).where(c(A)).followedBy("up").where(c(RISE)).oneOrMore()
    return up.followedBy("b").where(c(DROP)).within(ms(30))


def branching(c: Written) -> Pattern:
    """Return a pattern in which every event may be taken or left."""
    b = Pattern.begin("a").where(c(A)).followedByAny("b")
    b = b.where(c("kind = 'b' and price > max(a.price)"))
    return (
        b.followedByAny("c").where(c("price < last(b.price) and qty >= min(a.qty)")).within(ms(12))
    )


def optional(c: Written) -> Pattern:
    """Return a pattern with stages that may be empty."""
    a = Pattern.begin("a").where(c(A)).times(1, 3)
    b = a.followedBy("b").where(c("kind <> 'a' and coalesce(sum(a.qty), 0) > 3")).optional()
    return b.next("c").where(c("count(b) = 0 or price > last(b.price)")).within(ms(15))


def loops(c: Written) -> Pattern:
    """Return a loop that looks at itself and combines, with an end that looks at it too."""
    a = Pattern.begin("a").where(c("kind = 'a' and price > coalesce(avg(a.price), 0)"))
    a = a.oneOrMore().allowCombinations().until(c(ENOUGH))
    return a.followedBy("b").where(c(B)).within(ms(15))


def alternatives(c: Written) -> Pattern:
    """Return a pattern with or_, and one of the stages after a NOT stage that looks back."""
    a = Pattern.begin("a").where(c(A)).oneOrMore().consecutive()
    n = a.notFollowedBy("n").where(c("not price > median(a.price * a.qty)"))
    return n.followedBy("b").where(c("qty = 1")).or_(c("price > last(a.price)")).within(ms(20))


def group(c: Written) -> Pattern:
    """Return a pattern in which a group repeats."""
    inner = Pattern.begin("a").where(c(A)).followedBy("b").where(c("price > last(a.price)"))
    outer = Pattern.begin(inner).times(2)
    return (
        outer.followedBy("c").where(c("price > first(a.price) and count(b.*) = 2")).within(ms(25))
    )


def quoted(c: Written) -> Pattern:
    """Return a pattern with a stage whose name is no identifier."""
    n = Pattern.begin("n 1").where(c(B)).oneOrMore()
    return n.next("c").where(c("last(`n 1`.qty) is null")).within(ms(10))


PATTERNS: Mapping[str, Callable[[Written], Pattern]] = {
    "rise": rise,
    "rise, no overlap": lambda c: rise(c, Skip.skipPastLastEvent()),
    "rise, to next": lambda c: rise(c, Skip.skipToNext()),
    "rise, to last up": lambda c: rise(c, Skip.skipToLast("up")),
    "branching": branching,
    "optional": optional,
    "loops": loops,
    "alternatives": alternatives,
    "group": group,
    "quoted": quoted,
}


def random_events(seed: int, users: int, each: int) -> list[Event]:
    """Return events of some users, nulls among them."""
    rng = random.Random(seed)
    return [
        Event(
            f"u{user}", ts, user * each + ts,
            rng.choice("aabbc"),
            rng.choice([None, *(q / 4 for q in range(4, 20))]),
            rng.choice([None, 1, 2, 3, 4]),
        )
        for user in range(users)
        for ts in range(1, each + 1)
    ]  # fmt: skip


def test_expressions_match_as_python_conditions_do(spark: SparkSession) -> None:
    """Loops, branches, groups, optional stages, until, or, skips: the same matches in order."""
    events = random_events(seed=1, users=12, each=40)
    frame = spark.createDataFrame(
        events, "user string, ts bigint, id int, kind string, price double, qty int"
    )
    expected = {
        name: [
            ids(found)
            for found in match(
                build(lambda text: PLAIN.get(text) or python(text)), events, "ts", "user"
            )
        ]
        for name, build in PATTERNS.items()
    }
    found = in_one_job(
        {
            name: on(frame, build(str), "user").select(ids, "text string")
            for name, build in PATTERNS.items()
        }
    )

    assert {name: sorted(texts) for name, texts in found.items()} == {
        name: sorted(texts) for name, texts in expected.items()
    }
    assert min(map(len, expected.values())) >= 3, {n: len(e) for n, e in expected.items()}


def test_large_batches_and_kept_events(spark: SparkSession) -> None:
    """Small Arrow batches, in which keys go on from one to the next, change no match."""
    events = random_events(seed=2, users=1, each=300)
    frame = spark.createDataFrame(
        events, "user string, ts bigint, id int, kind string, price double, qty int"
    )
    whole = on(frame, rise(str), "user").select(ids, "text string").collect()
    with configured(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"}):
        parts = on(frame, rise(str), "user").select(ids, "text string").collect()

    assert parts == whole
    assert len(whole) > 20


# --- what is seen of them


def test_what_is_kept_is_not_seen(spark: SparkSession) -> None:
    """Rows, matches as columns, and what runs before the shuffle have the events' columns only."""
    frame = spark.createDataFrame(
        [("u", 1, 1.0), ("u", 2, 2.0)], "user string, ts bigint, x double"
    )
    pattern = Pattern.begin("a").where("x = 1").next("b").where("ts > 1 and x * 2 > last(a.x)")
    stream = on(frame, pattern, "user")
    table = stream.toDF()
    rows = stream.select(lambda m: repr(m["b"][0]), "text string").collect()

    assert table.schema["b"].dataType.elementType.names == ["user", "ts", "x"]  # type: ignore[attr-defined]
    assert [row.b[0].asDict() for row in table.collect()] == [{"user": "u", "ts": 2, "x": 2.0}]
    assert [row.text for row in rows] == ["Row(user='u', ts=2, x=2.0)"]


def test_explain_tells_how_they_run(spark: SparkSession, capsys: Any) -> None:
    """The part that Spark answers is listed apart from the one that is kept per partial match."""
    frame = spark.createDataFrame([], "ts bigint, type int, price double")
    pattern = Pattern.begin("up").where("type = 1 and price > avg(up.price)").oneOrMore()
    on(frame, pattern.within(ms(5))).explain()
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    assert "up type = 1 in Spark, before Python sees the event" in said
    assert "up price > avg(up.price) per partial match, incrementally" in said


# --- streams


def test_streams_go_on_in_the_middle_of_a_match(spark: SparkSession, tmp_path: Path) -> None:
    """Restarts, and every micro-batch, find accumulators anew; another expression is refused."""
    source = FileSource(tmp_path / "source")
    rng = random.Random(3)
    rows = [
        (user, ts, rng.choice("aabbc"), rng.randrange(1, 9))
        for ts in range(1, 61)
        for user in "uvw"
    ]
    source.add(rows[:40], rows[40:75])
    checkpoint = tmp_path / "checkpoint"
    late = OutputTag("late")

    def result(table: DataFrame, rises: str = "id > avg(up.id) and id > sum(a.id)") -> Any:
        a = Pattern.begin("a").where("name = 'a'").times(1, 2)
        up = a.followedBy("up").where(f"coalesce({rises}, true)").oneOrMore()
        pattern = up.followedBy("b").where("name = 'c' and id < last(up.id)").within(ms(25))
        stream = CEP.pattern(keyBy(table, "user"), pattern).inEventTime("time")
        return stream.sideOutputLateData(late).select(ids, "text string")

    with configured(spark, {"spark.sql.shuffle.partitions": 1}):
        finished = run(result(source.stream(spark)), checkpoint)
        first = len(finished.rows)
        source.add(rows[75:120], rows[120:])
        changed = failed_query(result(source.stream(spark), "id > max(up.id)"), checkpoint)
        stream = result(source.stream(spark))
        run(stream, checkpoint, finished)
        rest = stream.flush(str(checkpoint)).collect()
        batch = result(source.bounded(spark)).collect()

    assert changed.startswith("PatternChangedError: ")
    assert "match expression" in changed
    assert sorted(finished.rows + rest) == sorted(batch)
    assert 0 < first < len(finished.rows) < len(batch)


@pytest.mark.parametrize("number", range(len(GUARDED)))
def test_conditions_of_a_stage_guard_each_other(spark: SparkSession, number: int) -> None:
    """The second condition is not asked of events for which the first decides."""
    rows = SOME_ZEROS.to_pylist()
    frame = spark.createDataFrame(rows, "t bigint, k string, v bigint, s string")
    pattern, expected = GUARDED[number]

    matches = CEP.pattern(frame, pattern).inEventTime("t")

    assert [
        row.t for row in matches.select(lambda m: (m["a"][0].t,), "t bigint").collect()
    ] == expected
