# SPDX-License-Identifier: Apache-2.0
"""A session on this machine: with Java, with Sail, or a refusal that names both."""

import subprocess
import sys
from pathlib import Path

import pytest

from pyflinkcep import NotSupportedError, local
from pyflinkcep.errors import InvalidArgumentError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def without_java(monkeypatch, tmp_path):
    """Hide Java."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_without_java_and_sail_both_ways_are_named(without_java, monkeypatch, engine):
    """What is missing, how to get Java, and what needs none."""
    monkeypatch.setitem(sys.modules, "pysail", None)

    with pytest.raises(NotSupportedError) as raised:
        local.session(engine)

    assert raised.value.message == "no Java on PATH, and Spark needs Java 17 or later"
    assert "openjdk-17" in raised.value.hint
    assert "pip install 'pyflinkcep[sail]', which needs no Java" in raised.value.hint


def test_sail_without_its_package(monkeypatch):
    """How to install it."""
    monkeypatch.setitem(sys.modules, "pysail", None)

    with pytest.raises(NotSupportedError, match="no pysail in this environment"):
        local.session("sail")


def test_an_old_java_is_none(tmp_path, monkeypatch):
    """A Java that Spark cannot use is reported with its version and place."""
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pysail", None)

    with pytest.raises(NotSupportedError) as raised:
        local.session()

    assert raised.value.message == f"Java 8 at {java}, and Spark needs Java 17 or later"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "flink"}, "engine: expected 'auto', 'spark' or 'sail'"),
        ({"cores": 0}, "expected a whole number of cores"),
        ({"cores": "2"}, "got cores='2'"),
    ],
)
def test_wrong_arguments(arguments, message):
    """They are refused before anything starts."""
    with pytest.raises(InvalidArgumentError, match=message):
        local.session(**arguments)


def test_nothing_is_imported_before_it_is_needed():
    """Neither Spark nor Sail is loaded with the module."""
    code = "import sys, pyflinkcep.local; print({'pysail', 'pyspark'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "set()"
