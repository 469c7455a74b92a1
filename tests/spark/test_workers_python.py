# SPDX-License-Identifier: Apache-2.0
"""The Python of the workers, looked at before a job starts."""

from __future__ import annotations

import os
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pyflinkcep import InputError
from pyflinkcep.spark.plan import engine
from tests.spark.support import a_then_b, on

_EVENTS = "SELECT * FROM VALUES (1L, 'u', 'a', 0D), (2L, 'u', 'b', 0D) AS t(ts, user, name, price)"


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make an environment in which nothing is installed."""
    folder: Path = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False)
    return str(folder / "bin" / "python")


@pytest.fixture
def workers(spark: SparkSession, empty_python: str) -> Iterator[SparkSession]:
    """Let the session's workers run the empty environment for a while."""
    context = spark.sparkContext
    before, context.pythonExec = context.pythonExec, empty_python
    yield spark
    context.pythonExec = before


def test_workers_run_the_drivers_python(
    workers: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nobody chose a Python for the workers of a local master, it is the driver's."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    result = on(workers.sql(_EVENTS), a_then_b()).toDF()

    assert workers.sparkContext.pythonExec == sys.executable
    assert result.count() == 1


def test_sessions_begin_with_the_drivers_python(
    workers: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local session has it from its start, before a DataFrame is made of a list; others not."""
    started: list[Any] = []
    begun: Any = SparkContext._do_init
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(engine, "watch_contexts", lambda *given: started.append(given))
    engine.prepare_sessions.__wrapped__()
    ((choose, chosen),) = started
    other = SimpleNamespace(master="yarn", _python_includes=[], pythonExec="python3")
    choose(workers.sparkContext)
    choose(other)
    with chosen():
        within = os.environ["PYSPARK_PYTHON"]

    assert begun.__wrapped__  # as it is since CEP was imported
    assert (workers.sparkContext.pythonExec, other.pythonExec) == (sys.executable, "python3")
    assert within == sys.executable
    assert "PYSPARK_PYTHON" not in os.environ


def test_a_chosen_python_of_another_version(
    workers: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark would refuse it in the workers, in many more words."""
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3.6\n")
    other.chmod(0o755)
    workers.sparkContext.pythonExec = str(other)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    with pytest.raises(InputError, match=r"which is Python 3\.6, and the driver.s is 3\."):
        on(workers.sql(_EVENTS), a_then_b()).toDF()


@pytest.mark.parametrize("python", ["", "/no/such/python"])
def test_a_chosen_python_without_the_package(
    workers: SparkSession, empty_python: str, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python that was chosen and cannot import the package is refused before the job starts."""
    chosen = python or empty_python
    workers.sparkContext.pythonExec = chosen
    monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir("/")
    with pytest.raises(InputError, match=f"PYSPARK_PYTHON is {chosen}, which cannot import") as no:
        on(workers.sql(_EVENTS), a_then_b()).toDF()

    assert f"set PYSPARK_PYTHON={sys.executable}" in (no.value.hint or "")
