# SPDX-License-Identifier: Apache-2.0
"""The fixtures."""

from __future__ import annotations

from collections.abc import Callable

from pyflinkcep.testing import OperatorTestHarness
from pyflinkcep.testing.pytest_plugin import cepHarness
from tests.shorthand import parse

__all__ = ["cepHarness"]


def test_watermarks_by_hand(cepHarness: Callable[..., OperatorTestHarness]) -> None:
    """Nothing is matched before the watermark; timeouts and late events are collected."""
    harness = cepHarness(parse("a -> b within[5]"))
    harness.processElement("b", 2)
    harness.processElement("a", 1)
    before = list(harness.matches)
    harness.processWatermark(2)
    harness.processElement("late", 2)
    harness.processElement("a", 3)
    harness.processWatermark(9)

    assert (before, harness.matches, harness.timeouts, harness.lateData) == (
        [],
        [(None, 2, {"a": ["a"], "b": ["b"]})],
        [(None, 8, {"a": ["a"]})],
        [(None, "late")],
    )


def test_settings_go_to_the_harness(cepHarness: Callable[..., OperatorTestHarness]) -> None:
    """The harness's own settings can be given."""
    harness = cepHarness(parse("a"), lateDataOutput=False)
    harness.processWatermark(5)
    harness.processElement("a", 1)

    assert (harness.lateData, harness.numLateRecordsDropped) == ([], 1)
