# SPDX-License-Identifier: Apache-2.0
"""Which of a query's stateful operators a pattern is, when it is flushed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, InputError, Pattern, keyBy
from tests.spark.streams import FileSource, run


def test_operators_count_from_the_sink(spark: SparkSession, tmp_path: Path) -> None:
    """A pattern after an operator that drops duplicates is operator 0: that one is operator 1."""
    files = FileSource(tmp_path / "in", "user string, ts bigint, name string")
    files.add([("k", 10, "a"), ("k", 20, "b"), ("k", 20, "b")], [("k", 900, "a")])
    events = files.stream(spark).dropDuplicatesWithinWatermark(["user", "ts", "name"])
    pattern = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'")
    result = CEP.pattern(keyBy(events, "user"), pattern).select(lambda m: m["b"][0].ts, "at bigint")
    finished = run(result, tmp_path / "checkpoint")
    rest = result.flush(str(tmp_path / "checkpoint"), operatorId=0).collect()

    assert [row.at for row in [*finished.rows, *rest]] == [20]
    with pytest.raises(InputError, match="no state of it in the checkpoint"):
        result.flush(str(tmp_path / "checkpoint"), operatorId=1)
