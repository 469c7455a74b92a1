# SPDX-License-Identifier: Apache-2.0
"""A sample of the tests of bounded jobs on Sail; ``python -m tests.sail`` runs all of them."""

import subprocess
import sys

import pytest

from tests.sail.__main__ import ROOT, WORKS

pytestmark = pytest.mark.slow

SAMPLE = (
    "tests/spark/test_sql.py::test_recorded_answers",
    "tests/spark/test_batch_conformance.py::test_recorded_cases_of_one_key",
    "tests/spark/test_batch_outputs.py",
    "tests/spark/test_queries.py",
    "tests/spark/test_many_conditions.py::test_bounded",
    "tests/sail/test_order.py",
)


COLLECTS = """
import sys, pytest
sys.modules["pyflinkcep.kernel._kernel"] = None
sys.exit(pytest.main(["-q", "--co", "-p", "no:cacheprovider", "tests/spark", "tests/sail"]))
"""


def test_a_tree_without_the_kernel_is_collected():
    """What ``make sail`` runs can be imported in a clone in which nothing was built."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECTS], cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout[-3000:]


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
