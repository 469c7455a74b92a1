# SPDX-License-Identifier: Apache-2.0
"""The gates that one run of pytest covers: formatting, lint, types, and names that are there."""

from __future__ import annotations

import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

from tests.migrate.test_clean import written

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
FOLDERS = ["--no-cache", "pyflinkcep", "tests", "samples"]


def complaints(module: str, *arguments: object) -> str:
    """Return what a tool finds."""
    outcome = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return (outcome.stdout + outcome.stderr) * bool(outcome.returncode)


@pytest.mark.parametrize("arguments", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_ruff(arguments: list[str]) -> None:
    """Ruff finds nothing to complain about."""
    pytest.importorskip("ruff")

    assert complaints("ruff", *arguments, *FOLDERS) == ""


def test_types(tmp_path: Path) -> None:
    """Mypy finds nothing, neither in what it is told to check nor in a module that was migrated."""
    pytest.importorskip("mypy")
    configuration = ConfigParser()
    configuration.read(ROOT / "setup.cfg", encoding="utf-8")
    files = configuration["mypy"]["files"].split(", ")
    written(tmp_path)

    # One run knows Spark's types once; what has not changed since `make check` it need not read.
    assert complaints("mypy", *files, tmp_path / "out") == ""


@pytest.mark.parametrize("folder", ["benchmark", "matrix", "sinks", "state"])
def test_what_runs_by_hand_can_be_imported(folder: str) -> None:
    """What no other test loads names modules and functions that there are."""
    for path in sorted((ROOT / "tests" / folder).glob("*.py")):
        if path.stem != "__main__":
            import_module(f"tests.{folder}.{path.stem}")
