# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of what faces Spark are there, run, and print what they show."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import pyflinkcep
from pyflinkcep import (
    CEP,
    CepDataFrame,
    CompressedStream,
    DynamicRuleStream,
    EqlStream,
    PatternStream,
    QueryStream,
    RuleStream,
)
from pyflinkcep.sase import parse
from tests.spark.support import QUICK_FOR_MANY_PLANS, configured

_SHOWN = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_FIRST = ("keyBy", "CEP.pattern", "QueryStream", "EqlStream", "RuleStream", "CompressedStream")
"""Whose examples make what the others use, as the docstrings say."""
_LIKE_ANY_DATAFRAME = {"cache", "explain", "persist", "toDF", "unpersist", "withWatermark"}


def test_what_faces_spark_has_examples() -> None:
    """Every public method and function that a newcomer calls shows how, and what it returns."""
    classes = (
        CEP,
        PatternStream,
        QueryStream,
        EqlStream,
        RuleStream,
        DynamicRuleStream,
        CompressedStream,
        CepDataFrame,
    )
    without = [
        f"{cls.__name__}.{name}"
        for cls in classes
        for name, method in _methods(cls)
        if ">>> " not in (inspect.getdoc(method) or "")
    ]
    functions = (pyflinkcep.keyBy, pyflinkcep.matchId, pyflinkcep.matchRecognize)

    assert without == []
    assert [f.__name__ for f in functions if ">>> " not in (f.__doc__ or "")] == []


def test_examples(spark: SparkSession, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """All examples of the modules that pytest's own collection leaves out, in one namespace."""
    ignored = map(Path, pytestconfig.getoption("ignore") or ())
    left_out = [path.stem for path in ignored if path.suffix == ".py"]
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=_SHOWN)
    found = [
        test
        for name in left_out
        for test in finder.find(importlib.import_module(f"pyflinkcep.spark.{name}"), name)
        if test.examples
    ]
    names: dict[str, Any] = {name: getattr(pyflinkcep, name) for name in pyflinkcep.__all__}
    names.update(
        __name__="__main__", F=F, parse=parse, spark=spark, stream=_stream(spark, tmp_path)
    )
    names.update(checkpoint=str(tmp_path / "checkpoint"), table=str(tmp_path / "table"))

    printed: list[str] = []
    with configured(spark, QUICK_FOR_MANY_PLANS):
        for test in sorted(found, key=_place):
            test.globs = names
            runner.run(test, out=printed.append, clear_globs=False)

    assert "".join(printed) == ""
    assert len(found) > 25


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods that a class or one of ours above it defines."""
    for base in cls.__mro__:
        if base.__module__.startswith("pyflinkcep."):
            for name, member in vars(base).items():
                method = member.__func__ if isinstance(member, staticmethod) else member
                is_like_any = cls is CepDataFrame and name in _LIKE_ANY_DATAFRAME
                if inspect.isfunction(method) and not name.startswith("_") and not is_like_any:
                    yield name, method


def _place(test: doctest.DocTest) -> int:
    name = test.name.partition(".")[2]
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _stream(spark: SparkSession, folder: Path) -> Any:
    """Return the events of the examples as a stream, with a later one that moves the watermark."""
    lines = "(1, 'ann', 'fail'), (2, 'ann', 'ok'), (3, 'bob', 'fail'), (4, 'bob', 'ok')"
    rows = spark.sql(f"SELECT * FROM VALUES {lines} AS t(s, user, result)")
    events = rows.selectExpr("user", "timestamp_seconds(s) AS ts", "result").coalesce(1)
    events.write.json(str(folder / "events"))
    stream = spark.readStream.schema(events.schema).json(str(folder / "events"))
    return stream.withWatermark("ts", "1 second")
