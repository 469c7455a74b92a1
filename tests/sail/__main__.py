# SPDX-License-Identifier: Apache-2.0
"""
Run the tests of bounded jobs, and every recorded answer to them, on Sail.

``python -m tests.sail`` makes an environment in build/sail for this source tree, with what the
tests need and the kernel built in place, unless the one that runs it has all of that and versions
that work together, and tests there. Arguments go to pytest: ``python -m tests.sail FILE``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.own_environment import ROOT, python_that

WORKS = (
    "import pytest, hypothesis, polars, psutil, pyflinkcep.kernel._kernel; "
    "from pyflinkcep import local; local.session('sail').stop()"
)
"""What an environment can that runs these tests."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests; return the status of pytest."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYFLINKCEP_TEST_ENGINE": "sail"}
    python = python_that(WORKS, "sail", environment)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    tests = arguments or ["tests/spark", "tests/sail"]
    command = [python, "-m", "pytest", *options, *tests]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
