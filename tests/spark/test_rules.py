# SPDX-License-Identifier: Apache-2.0
"""Many rules on Spark in one pass: the matches of memory, conditions of Spark's own, and refusals."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, Eql, Pattern, matchMany, parse
from pyflinkcep.rules import Rule
from tests.spark.support import configured

SCHEMA = (
    "at bigint, type string, user string, host string, n int, x double, tags array<string>, "
    "`a.b` string"
)


def _frame(spark: SparkSession, seed: int, count: int = 400) -> DataFrame:
    rng = random.Random(seed)
    users = [None, "u1", "u2", "u3"]
    rows = [
        (
            number * 1000 // 3,
            rng.choice("abc"),
            rng.choice(users),
            rng.choice(["h1", "h2"]),
            rng.randrange(10),
            rng.choice([0.5, -0.0, 0.0, None]),
            rng.choice([None, ["u1"], ["u2", "u1", "u2"], []]),
            rng.choice(users),
        )
        for number in range(count)
    ]
    return spark.createDataFrame(rows, SCHEMA)


def _low(key: str | None = None) -> Rule:
    pattern = Pattern.begin("low").where("n < 3").followedBy("high").where("n > 7")
    return Rule("", pattern, () if key is None else (key,))


RULES: dict[str, Any] = {
    "user": _low("user"),
    "host": Rule(
        "",
        Pattern.begin("a")
        .where("type = 'a'")
        .next("b")
        .where(lambda event: event.n > 5)
        .followedBy("c")
        .where("n > last(a.n)"),
        ("host",),
    ),
    "several": Rule("", Pattern.begin("a").where("n > 5").next("b").where("n > 5"), ("x", "host")),
    "of Spark": Rule("", Pattern.begin("a").where("n + 1 > 8").next("b").where("n < 5"), ("x",)),
    "dots": _low("a.b"),
    "lists": _low("tags"),
    "no key": _low(),
    "never": Rule("", Pattern.begin("a").where("n > 99").next("b").where("n > 98"), ("user",)),
    "sequence": Eql("sequence by user [a where n > 2] [b where n < 9] [c where true]"),
    "other fields": Eql("sequence [a where n > 2] by user [b where n < 9] by a.b"),
    "arrays": Eql("sequence by tags, host [a where n > 2] [b where n < 9]"),
    "array or not": Eql("sequence [a where n > 2] by user [b where n < 9] by tags"),
    "missing": Eql(
        "sequence by ?user, host with maxspan=5s [a where n > 2] ![c where n > 8] [b where n < 9]"
    ),
    "until": Eql("sequence by user [a where true] [b where true] until [c where n > 5]"),
    "first": Eql("sequence by host [a where n > 2] [b where n < 9] | head 3"),
    "single": Eql('a where n > 8 and tags : "U*"'),
    "query": parse("PATTERN SEQ(a x, b y) WHERE [host] AND x.n > y.n WITHIN 3 seconds"),
    "runs": Rule(
        "",
        parse("PATTERN SEQ(a x, b+ y[], c z) WHERE skip_till_any_match AND x.n > z.n WITHIN 2 s"),
        ("user",),
    ),
    "strict": parse("PATTERN SEQ(a x, b y) WHERE strict_contiguity AND [user]"),
}


@pytest.mark.parametrize("seed", [1, 2])
def test_the_matches_of_memory(spark: SparkSession, seed: int) -> None:
    """Rules of all languages with random keys have the matches, and ids, that they have in memory."""
    frame = _frame(spark, seed).repartition(3, "n").sortWithinPartitions("at")
    rng = random.Random(seed)
    rules = dict(rng.sample(sorted(RULES.items()), len(RULES)))
    with configured(spark, {"spark.sql.shuffle.partitions": "3"}):
        rows = CEP.patterns(frame, rules, timestamp="at").toDF().toArrow().to_pylist()
    memory = matchMany(rules, frame.toArrow().sort_by("at"), timestamp="at").toArrow().to_pylist()

    assert sorted(rows, key=str) == sorted(memory, key=str)
    assert {row["rule"] for row in rows} == {*RULES} - {"never"}
