# SPDX-License-Identifier: Apache-2.0
"""The gates that one run of pytest covers: formatting, lint and types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
FOLDERS = ["--no-cache", "pyflinkcep", "tests", "samples"]


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("ruff", ["check", *FOLDERS]), ("ruff", ["format", "--check", *FOLDERS]), ("mypy", [])],
    ids=["lint", "format", "types"],
)
def test_gate(module: str, arguments: list[str]) -> None:
    """The tool finds nothing to complain about."""
    pytest.importorskip(module)
    outcome = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (outcome.returncode, (outcome.stdout + outcome.stderr) * bool(outcome.returncode)) == (
        0,
        "",
    )
