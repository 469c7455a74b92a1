# SPDX-License-Identifier: Apache-2.0
"""Which tests run in one process when the suite runs in several."""

from __future__ import annotations

import importlib
from contextlib import suppress
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ALSO_ON_SPARK = (
    "tests/migrate/test_runs.py",
    "tests/test_docs.py::test_manual_programs",
    "tests/test_samples.py",
)
"""What is not in ``tests/spark``, and needs its session."""

_WITH_STREAMS = tuple(
    f"tests/spark/test_{name}.py"
    for name in (
        "benchmark", "docstring_examples", "flush_chain", "flush_operator", "funnel", "handed_on",
        "limit", "many_conditions", "match_windows", "ported_jobs",
    )
)  # fmt: skip
"""The files of which streams take most of the time."""

_OWN_JVM = ("tests/spark/test_stream_cluster.py", "tests/spark/test_stream_crash.py")
"""The files whose streams run in JVMs of their own."""

_TOGETHER = {
    "tests/test_architecture.py": "trees",
    "tests/test_text_as_data.py": "trees",
}
"""The files that have most of their work in common: the package's syntax trees."""

_LONG = ("tests/test_tooling.py", "tests/test_docs.py", "tests/unit/kernel/test_sanitized.py")

_WITH_LONG = ("tests/unit/spark/", "tests/unit/tables/")
"""The folders of which some files take half a minute, and come late in the alphabet."""


def group(test: str) -> str:
    """Return what a test runs in one process with: all of its group, and by default of its file."""
    file = test.partition("::")[0]
    is_stream = file.startswith("tests/spark/test_stream") and file not in _OWN_JVM
    if is_stream or test.startswith((*ALSO_ON_SPARK, *_WITH_STREAMS)):
        return "streams"  # a JVM that runs no stream need not load and compile what streams need
    return "batch" if file.startswith("tests/spark/") else _TOGETHER.get(file, file)


def place(test: str) -> int:
    """Return when a test begins: what takes long does so early, so that no core idles at the end."""
    kind = group(test)
    if kind in ("streams", "batch"):
        return 0
    return 1 if kind in _LONG else 2 if kind.startswith(_WITH_LONG) else 3


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
