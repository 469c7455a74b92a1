# SPDX-License-Identifier: Apache-2.0
"""
Checks the types of all that is written for the programs here, strictly.

Run it with ``python -m tests.migrate.typed``; it takes half a minute, and is no test of the suite for that reason.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyflinkcep.migrate.migration import migrate, write


def main() -> int:
    """Translate the programs, and run mypy on the modules."""
    with TemporaryDirectory() as folder:
        programs = [str(Path(__file__).parent / name) for name in ("programs", "harder")]
        write(migrate(programs).report, Path(folder))
        command = [sys.executable, "-m", "mypy", "--strict", "."]
        return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
