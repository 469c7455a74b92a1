# SPDX-License-Identifier: Apache-2.0
"""
Type checkers accept what users write, and refuse what they mistype: the marked lines.

mypy does so with the package, in ``tests/test_tooling.py``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def _output(*command: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout[-3000:] + done.stderr[-3000:] if done.returncode else ""


def test_pyright() -> None:
    """Pyright, with the same marks, reports neither."""
    pytest.importorskip("basedpyright")

    assert _output("basedpyright", "--project", "tests/typing/pyrightconfig.json") == (0, "")
