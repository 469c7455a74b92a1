# SPDX-License-Identifier: Apache-2.0
"""
Run a small suite on every supported PySpark with every supported Python that can be found.

``python -m tests.matrix [FOLDER]`` makes a virtual environment for each pair in FOLDER (kept, so
that a second run is quick; build/matrix if not given) and writes the table of docs/versions.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "versions.md"
BEGIN, END = "<!-- matrix -->\n", "<!-- end of matrix -->\n"

PYTHONS = ("3.11", "3.12", "3.13")
SPARKS = ("4.0", "4.1", "4.2", "4.3")

SUITE = {
    "batch": ["tests/spark/test_batch_outputs.py::test_functions_of_every_kind"],
    "all outputs": [
        "tests/spark/test_batch_outputs.py::test_timeouts_have_a_side_output",
        "tests/spark/test_batch_outputs.py::test_all_outputs_of_one_run",
        "tests/spark/test_batch_outputs.py::test_stages_of_to_df",
    ],
    "stream": [
        "tests/spark/test_stream_parity.py::test_stream_and_flush_give_what_batch_gives",
        "tests/spark/test_stream_queries.py::test_late_events_are_counted_or_given",
    ],
    "restart": ["tests/spark/test_stream_queries.py::test_restarts_with_something_else"],
}


def main(folder: Path) -> None:
    """Run everything and write the table."""
    rows = []
    for python in PYTHONS:
        command = shutil.which(f"python{python}")
        for spark in SPARKS:
            if command is None:
                rows.append([python, spark, *["not run: no such Python here"], *[""] * 3])
            else:
                rows.append([python, *_run(command, spark, folder / f"{python}-{spark}")])
            print(" | ".join(rows[-1]), flush=True)
    _write(["Python", "PySpark", *SUITE], rows)


def _run(python: str, spark: str, environment: Path) -> list[str]:
    """Return the exact version of Spark, and the outcome of each part of the suite."""
    own = environment / "bin" / "python"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean["PATH"] = f"{environment / 'bin'}:{clean['PATH']}"
    if not own.exists():
        subprocess.run([python, "-m", "venv", environment], check=True)
    install = [own, "-m", "pip", "install", "-q", "-e", ".[test]", f"pyspark=={spark}.*"]
    subprocess.run(install, cwd=ROOT, env=clean, check=True)
    version = "import pyspark; print(pyspark.__version__)"
    exact = subprocess.run([own, "-c", version], env=clean, capture_output=True, text=True)
    found = [exact.stdout.strip()]
    for tests in SUITE.values():
        # A deprecation in another version of Spark is no failure here.
        command = [own, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider"]
        done = subprocess.run([*command, *tests], cwd=ROOT, env=clean, capture_output=True)
        found.append("yes" if done.returncode == 0 else "**fails**")
        if done.returncode:
            print(done.stdout.decode()[-3000:], file=sys.stderr)
    return found


def _write(head: list[str], rows: list[list[str]]) -> None:
    lines = [head, ["---"] * len(head), *rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "matrix")
