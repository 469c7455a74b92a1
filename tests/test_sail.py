# SPDX-License-Identifier: Apache-2.0
"""A sample of the tests of bounded jobs on Sail; ``python -m tests.sail`` runs all of them."""

import subprocess
import sys

import pytest

from tests.sail.__main__ import ROOT, WORKS

SAMPLE = (
    "tests/spark/test_sql.py::test_recorded_answers",
    "tests/spark/test_batch_conformance.py::test_recorded_cases_of_one_key",
    "tests/spark/test_batch_outputs.py",
    "tests/spark/test_queries.py",
    "tests/spark/test_many_conditions.py::test_bounded",
    "tests/sail/test_order.py",
)


def test_bounded_jobs_on_sail():
    """The recorded answers, outputs, queries, many conditions, and what depends on order."""
    tried = subprocess.run(
        [sys.executable, "-c", WORKS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tried.returncode:
        reasons = [line for line in tried.stderr.splitlines() if line.startswith("pyflinkcep.")]
        pytest.skip(*reasons[-1:])

    done = subprocess.run(
        [sys.executable, "-m", "tests.sail", *SAMPLE], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout[-3000:]
