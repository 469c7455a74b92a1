# SPDX-License-Identifier: Apache-2.0
"""
Run a small suite on every supported PySpark with every supported Python that can be found.

``python -m tests.matrix`` builds the wheel once, installs it in a fresh virtual environment for
each pair, and runs the suite there on nothing but the wheel. It writes the table of
docs/versions.md. Name cells to run only these and keep the other rows: ``3.12-4.2 3.13-4.2``.
The environments are kept in build/matrix, so that a second run is quick.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.sail.__main__ import WORKS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "matrix"
PAGE = ROOT / "docs" / "versions.md"
BEGIN, END = "<!-- matrix -->\n", "<!-- end of matrix -->\n"

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SPARKS = ("4.0", "4.1", "4.2", "4.3")
TOOLS = ("hypothesis>=6.100", "psutil>=6", "pysail>=0.7.2", "pytest>=8", "pyspark[connect]")

SUITE = {
    "kernel": ["tests/unit/engines/flink/test_same_as_plain.py"],
    "batch": ["tests/spark/test_batch_outputs.py::test_functions_of_every_kind"],
    "all outputs": [
        "tests/spark/test_batch_outputs.py::test_timeouts_have_a_side_output",
        "tests/spark/test_batch_outputs.py::test_all_outputs_of_one_run",
        "tests/spark/test_batch_outputs.py::test_stages_of_to_df",
    ],
    "stream": [
        "tests/spark/test_stream_parity.py::test_stream_and_flush_give_what_batch_gives",
        "tests/spark/test_stream_queries.py::test_late_events_are_counted_or_given",
        "tests/spark/test_stream_watermark.py",
    ],
    "restart": ["tests/spark/test_stream_queries.py::test_restarts_with_something_else"],
    "queries": [
        "tests/spark/test_chains.py",
        "tests/spark/test_queries.py",
        "tests/spark/test_stream_sase.py::test_stream_and_flush_give_what_the_bounded_job_gives",
        "tests/spark/test_stream_sql.py::test_a_restarted_stream_and_its_flush_give_the_bounded_rows",
    ],
}
SAIL = ["tests/sail/test_order.py", "tests/spark/test_queries.py", "tests/spark/test_sql.py"]
"""What runs on Sail, if it knows the PySpark."""


def main(cells: Sequence[str]) -> None:
    """Run the cells, all if none is named, and write the table."""
    pairs = [(python, spark) for python in PYTHONS for spark in SPARKS]
    unknown = set(cells) - {f"{python}-{spark}" for python, spark in pairs}
    if unknown:
        sys.exit(f"no such cell: {', '.join(sorted(unknown))}")
    wheel = _wheel()
    shutil.rmtree(FOLDER / "suite", ignore_errors=True)
    shutil.copytree(ROOT / "tests", FOLDER / "suite" / "tests")
    shutil.copy(ROOT / "setup.cfg", FOLDER / "suite")
    for python, spark in pairs:
        if not cells or f"{python}-{spark}" in cells:
            row = _run(python, spark, wheel)
            print(" | ".join(row), flush=True)
            _write(row)


def _wheel() -> Path:
    """Build the wheel of this source tree."""
    folder = FOLDER / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT]
    subprocess.run(build, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _run(python: str, spark: str, wheel: Path) -> list[str]:
    """Return the exact versions, and the outcome of each part of the suite."""
    command = _interpreter(python)
    if command is None:
        return [python, spark, "not run: no such Python here", *[""] * len(SUITE)]
    environment = FOLDER / f"{python}-{spark}"
    own = str(environment / "bin" / "python")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean["PATH"] = f"{environment / 'bin'}:{clean['PATH']}"
    clean["HYPOTHESIS_PROFILE"] = "few"
    if not Path(own).exists():
        subprocess.run([command, "-m", "venv", environment], check=True)
    install = [own, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    again = ["--force-reinstall", "--no-deps", wheel]
    subprocess.run([*install, *TOOLS, f"pyspark=={spark}.*", wheel], env=clean, check=True)
    subprocess.run([*install, *again], env=clean, check=True)
    version = "import platform, pyspark; print(platform.python_version(), pyspark.__version__)"
    exact = subprocess.run([own, "-c", version], env=clean, capture_output=True, text=True)
    passed = [_passes(own, clean, tests) for tests in SUITE.values()]
    outcomes = ["yes" if good else "**fails**" for good in passed]
    return [*exact.stdout.split(), *outcomes, _on_sail(own, clean)]


def _on_sail(python: str, environment: dict[str, str]) -> str:
    """Return the outcome on Sail; it may refuse the PySpark."""
    tried = subprocess.run([python, "-c", WORKS], env=environment, capture_output=True, text=True)
    if tried.returncode and "does not know PySpark" in tried.stderr:
        return "no"
    environment = {**environment, "PYFLINKCEP_TEST_ENGINE": "sail"}
    return "yes" if _passes(python, environment, SAIL, may_skip=True) else "**fails**"


def _interpreter(python: str) -> str | None:
    """Return the command of a Python that works; a version manager's may only say no."""
    for folder in os.environ["PATH"].split(os.pathsep):
        command = Path(folder) / f"python{python}"
        if command.exists():
            found = subprocess.run([command, "-V"], capture_output=True, text=True)
            if found.returncode == 0:
                return str(command)
    return None


def _passes(
    python: str, environment: dict[str, str], tests: Iterable[str], may_skip: bool = False
) -> bool:
    """
    Whether tests pass, with warnings as errors as in the whole suite, and none is skipped unless it may.

    But that PySpark 4.0 leaves the sockets of ``collect`` to the garbage collector is only shown.
    """
    sockets = "default:unclosed <socket:ResourceWarning"
    options = ["-q", "-rs", "-p", "no:cacheprovider", "-W", sockets]
    command = [python, "-m", "pytest", *options, *tests]
    suite = FOLDER / "suite"
    done = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True)
    good = done.returncode == 0 and (may_skip or " skipped" not in done.stdout)
    if not good:
        print(done.stdout[-6000:], file=sys.stderr)
    return good


def _write(row: Sequence[str]) -> None:
    """Put a row into the table of the page, in the place of the one for the same versions."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    table, after = rest.split(END)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    rows = [*(old for old in rows if _cell(old) != _cell(row)), list(row)]
    rows.sort(key=_cell)
    head = ["Python", "PySpark", *SUITE, "Sail"]
    lines = "".join(f"| {' | '.join(line)} |\n" for line in [head, ["---"] * len(head), *rows])
    PAGE.write_text(before + BEGIN + lines + END + after, encoding="utf-8")


def _cell(row: Sequence[str]) -> tuple[str, ...]:
    """Return the cell of the matrix that a row is of: minor versions without patches."""
    return tuple(".".join(version.split(".")[:2]) for version in row[:2])


if __name__ == "__main__":
    main(sys.argv[1:])
