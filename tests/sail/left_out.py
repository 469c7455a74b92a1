# SPDX-License-Identifier: Apache-2.0
"""The tests on Spark that say nothing about Sail, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

__all__ = ["leave_out"]

_STREAM = "streams are refused on Sail"
_JVM = "about Spark's JVM"

_LEFT_OUT = {
    "test_stream": _STREAM,
    "test_flush": _STREAM,
}
"""Why a test is left out, by a part of its id."""


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Skip the tests that say nothing about Sail."""
    for item in items:
        reasons = [reason for part, reason in _LEFT_OUT.items() if part in item.nodeid]
        if reasons:
            item.add_marker(pytest.mark.skip(reason=reasons[0]))
