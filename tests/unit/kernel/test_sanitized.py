# SPDX-License-Identifier: Apache-2.0
"""The kernel touches no memory but its own, and computes nothing that C leaves undefined."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.sanitized.__main__ import OWN, SHARED
from tests.sanitized.build import ROOT, preloaded

pytestmark = pytest.mark.slow

_FILES = [
    "tests/sanitized/check_out_of_memory.py",
    "tests/unit/engines/flink/test_damaged_state.py",
    "tests/unit/engines/flink/test_same_as_plain.py",
]


def test_what_the_whole_run_checks_is_there() -> None:
    """A module of tests that was merged with another is not left out of the run."""
    assert [name for name in (*OWN, *SHARED) if not (ROOT / name).exists()] == []


@pytest.mark.skipif(preloaded() is None, reason="no C compiler with an address sanitizer")
def test_few_examples() -> None:
    """A few random patterns, and memory that runs out, are clean; more: -m tests.sanitized."""
    command = [sys.executable, "-m", "tests.sanitized", "--quick", *_FILES]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
