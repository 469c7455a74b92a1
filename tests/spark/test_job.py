# SPDX-License-Identifier: Apache-2.0
"""A job is analysed once, however it runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyflinkcep import CEP, Pattern, keyBy
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.spark.plan import conditions
from pyflinkcep.spark.plan.conditions import analysed
from tests.spark.streams import FileSource


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_job_is_analysed_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stream: bool
) -> None:
    """The driver compiles a pattern once, and asks Spark once for the type of each expression."""
    files = FileSource(tmp_path / "in", "user string, ts bigint, name string")
    files.add([("k", 10, "a")])
    asked: Counter[str] = Counter()
    compile_ = NFACompiler.compile

    def compiled(*arguments: Any) -> Any:
        asked["compile"] += 1
        return compile_(*arguments)

    def counted(nfa: Any, conditions: Any, dataframe: DataFrame) -> Any:
        asked.update(str(column) for _, column in conditions)
        return analysed(nfa, conditions, dataframe)

    monkeypatch.setattr(NFACompiler, "compile", staticmethod(compiled))
    for module in (conditions, conditions):
        monkeypatch.setattr(module, "analysed", counted)
    events = files.stream(spark) if is_stream else files.bounded(spark)
    pattern = Pattern.begin("a").where("name = 'a'").next("b").where("ts > last(a.ts)")
    CEP.pattern(keyBy(events, "user"), pattern).inEventTime("time").toDF()

    assert len(asked) == 3
    assert set(asked.values()) == {1}
