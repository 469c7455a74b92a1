# SPDX-License-Identifier: Apache-2.0
"""Where the state of a pattern that is flushed is: its operator, its checkpoint."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from pyflinkcep import CEP, InputError, NotSupportedError, Pattern, keyBy
from pyflinkcep.spark.plan import stream
from pyflinkcep.spark.plan.patterns.diagnostics import Arrivals
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


def test_any_path_has_state(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Events, matches and checkpoints may be at paths with characters that a URI encodes.

    Spark's reader of state takes such a checkpoint by another name. Where workers are elsewhere,
    that is refused, for they would not see a link.
    """
    odd = tmp_path / "100% of a b #1 %20"
    odd.mkdir()
    files = FileSource(odd / "in", "user string, ts bigint, name string")
    files.add([("k", 10, "a"), ("k", 20, "b")], [("k", 900, "a"), ("k", 950, "b")])
    pattern = Pattern.begin("a").where("name = 'a'").next("b").where("name = 'b'")
    result = CEP.pattern(keyBy(files.stream(spark), "user"), pattern).select(
        lambda m: m["b"][0].ts, "at bigint"
    )
    assert [row.at for row in run(result, odd / "[1]?").rows] == [20]
    assert [row.at for row in result.flush(str(odd / "[1]?")).collect()] == [950]
    assert Arrivals.read(spark, str(odd / "[1]?")) is not None

    monkeypatch.setattr(stream, "spark_context", lambda _: SimpleNamespace(master="yarn"))
    with pytest.raises(NotSupportedError, match=r"looks for '.*/100%25%20of"):
        result.flush(str(odd / "[1]?"))
