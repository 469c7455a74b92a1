# SPDX-License-Identifier: Apache-2.0
"""The suite's processes share the tests out as they are meant to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from tests.distribution import Distribution, group, place

COLLECTED = [
    "tests/property/test_composed.py::test_a",
    "tests/spark/test_sql.py::test_b[x@y]",
    "tests/spark/test_stream_crash.py::test_c",
    "tests/spark/test_stream_sql.py::test_d",
    "tests/test_docs.py::test_manual_programs[e]",
    "tests/property/test_composed.py::test_f",
    "tests/spark/test_keys.py::test_h",
]


@attrs.define(eq=False)
class Process:
    """A process of tests that keeps what it is given."""

    given: list[str] = attrs.field(factory=list)
    shutting_down: bool = False
    gateway: Any = attrs.field(factory=lambda: SimpleNamespace(id=""))

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += [sorted(COLLECTED, key=place)[at] for at in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


def test_streams_are_in_one_process_and_other_jobs_in_another() -> None:
    """Manual and samples go with the streams; what takes long comes next, then files, whole."""
    option = SimpleNamespace(loadscopereorder=False, tx=["2*popen"])
    config: Any = SimpleNamespace(option=option, getvalue=lambda name: getattr(option, name))
    distribution, processes = Distribution(config), [Process(), Process()]
    for process in processes:
        distribution.add_node(process)
        distribution.add_node_collection(process, sorted(COLLECTED, key=place))
    distribution.schedule()

    assert [[test.split("/")[-1] for test in process.given] for process in processes] == [
        ["test_sql.py::test_b[x@y]", "test_stream_crash.py::test_c", "test_keys.py::test_h"],
        [
            "test_stream_sql.py::test_d",
            "test_docs.py::test_manual_programs[e]",
            "test_composed.py::test_a",
            "test_composed.py::test_f",
        ],
    ]


def test_every_test_on_spark_is_in_a_group(request: pytest.FixtureRequest) -> None:
    """Or else its process starts a JVM for it: `tests/distribution.py` lists the other files."""
    marked = [item.nodeid for item in request.session.items if item.get_closest_marker("spark")]

    apart = ("tests/sail/", "tests/sinks/")  # `make sail` and `make sinks` run these alone
    on_spark = [test for test in marked if not test.startswith(apart)]
    assert {group(test) for test in on_spark} <= {"streams", "batch"}
