# SPDX-License-Identifier: Apache-2.0
"""Which tests run in one process when the suite runs in several."""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ALSO_ON_SPARK = ("tests/migrate/test_runs.py", "tests/test_docs.py", "tests/test_samples.py")
"""The files that are not in ``tests/spark``, and have tests that need its session."""

_WITH_STREAMS = tuple(
    f"tests/spark/test_{name}.py"
    for name in (
        "benchmark", "docstring_examples", "flush_chain", "flush_operator", "funnel", "handed_on",
        "limit", "many_conditions", "match_windows", "ported_jobs",
    )
)  # fmt: skip
"""The files of which streams take most of the time."""

_OWN_JVM = ("tests/spark/test_stream_cluster.py", "tests/spark/test_stream_crash.py")
_LONG = (*_OWN_JVM, "tests/unit/kernel/test_sanitized.py", "tests/test_tooling.py")


def group(test: str) -> str:
    """Return what a test runs in one process with: all of its group, and by default of its file."""
    file = test.partition("::")[0]
    if file in _OWN_JVM:
        return file  # whichever process is free may wait for them
    if file.startswith("tests/spark/test_stream") or file in (*ALSO_ON_SPARK, *_WITH_STREAMS):
        return "streams"  # a JVM that runs no stream need not load and compile what streams need
    return "batch" if file.startswith("tests/spark/") else file


def place(test: str) -> int:
    """Return when a test begins: what takes long does so early, so that no core idles at the end."""
    kind = group(test)
    return 0 if kind in ("streams", "batch") else 1 if kind in _LONG else 2


def compile_part(number: int, of: int) -> None:
    """
    Import a part of the modules of tests, which pytest then compiles, for all processes.

    Others do so with the other parts meanwhile, and each finds most of them done when it collects.
    """
    root = Path(__file__).parent.parent
    for path in sorted((root / "tests").rglob("test_*.py"))[number::of]:
        with suppress(Exception, pytest.skip.Exception):  # which the collection will tell
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


class Distribution(LoadScopeScheduling):
    """
    Gives each process one kind of tests on Spark, whose JVM is soon quick at it, then files.

    It goes by the names of tests: what xdist makes of the markers of groups is lost in pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
