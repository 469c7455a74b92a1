# SPDX-License-Identifier: Apache-2.0
"""
Run the tests of bounded jobs, and every recorded answer to them, on Sail.

``python -m tests.sail`` makes an environment in build/sail with this source tree and the extra
``sail``, unless the one that runs it has versions that work together, and tests there. Arguments
go to pytest: ``python -m tests.sail tests/spark/test_sql.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "sail"
TOOLS = ("hypothesis>=6.100", "polars>=1", "psutil>=6", "pytest>=8")
WORKS = "from pyflinkcep import local; local.session('sail').stop()"


def main(arguments: Sequence[str]) -> int:
    """Run the tests; return the status of pytest."""
    python = sys.executable
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYFLINKCEP_TEST_ENGINE": "sail"}
    if subprocess.run([python, "-c", WORKS], env=environment, capture_output=True).returncode:
        python = str(FOLDER / "bin" / "python")
        if not Path(python).exists():
            subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, *TOOLS, f"{ROOT}[sail]"], check=True)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    tests = arguments or ["tests/spark", "tests/sail"]
    command = [python, "-m", "pytest", *options, *tests]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
