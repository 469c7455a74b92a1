# SPDX-License-Identifier: Apache-2.0
"""
Fixtures for pytest: feed a pattern by hand, event by event and watermark by watermark.

Enable them with ``pytest_plugins = ["pyflinkcep.testing.pytest_plugin"]`` in ``conftest.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyflinkcep.pattern import Pattern
from pyflinkcep.testing.harness import OperatorTestHarness


@pytest.fixture
def cepHarness() -> Callable[..., OperatorTestHarness]:
    """
    Return a function that makes a harness for a pattern, which collects timeouts and late events.

    It takes a pattern and the further arguments of
    :class:`~pyflinkcep.testing.OperatorTestHarness`::

        def test_a_login_that_never_succeeds(cepHarness):
            harness = cepHarness(pattern)
            harness.processElement({"user": "anna", "result": "failed"}, 1_000, key="anna")
            harness.processWatermark(400_000)
            assert [match for _, _, match in harness.timeouts] == [...]
    """

    def make(pattern: Pattern, **settings: Any) -> OperatorTestHarness:
        given: dict[str, Any] = {"timeoutHandling": True, "lateDataOutput": True, **settings}
        return OperatorTestHarness(pattern, **given)

    return make
