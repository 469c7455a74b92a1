# SPDX-License-Identifier: Apache-2.0
"""
Run the checks: ``python -m tests.sanitized [--quick] [--threads] [pytest's arguments]``.

With ``--threads`` the thread sanitizer watches what threads do without Python's lock.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.sanitized.build import ROOT, build, environment, preloaded

OWN = ["tests/sanitized/check_out_of_memory.py"]
_ENGINES = [
    f"tests/unit/engines/{name}.py"
    for name in (
        "compressed/test_pattern_counts", "flink/test_damaged_state", "flink/test_same_as_plain",
        "flink/test_own_ways", "flink/test_unbranched", "latest/test_machine", "lists/test_joins",
        "test_literals", "rows/test_search", "sequences/test_backtracking",
        "sequences/test_counts", "sequences/test_lists",
    )
]  # fmt: skip
_MANY = ("test_a_bound_is_reached_in_time", "test_a_long_loop_needs_no_stack")
"""The tests of hundreds of thousands of partial matches, which a quick run leaves to the whole one."""

THREADS = ["tests/unit/matching/test_threads.py", "tests/unit/tables/test_placing.py"]
_TABLES = ["tests/unit/tables/test_footers.py", "tests/unit/tables/test_pages.py"]
_OTHERS = ["tests/unit/matching/test_spark_hash.py", "tests/conformance/test_kernel.py"]
SHARED = ["tests/unit/kernel", *_ENGINES, *_TABLES, *THREADS, *_OTHERS]


def main(arguments: list[str]) -> int:
    """Build, check, and return pytest's exit status."""
    quick, of_threads = "--quick" in arguments, "--threads" in arguments
    others = [argument for argument in arguments if argument not in ("--quick", "--threads")]
    others = others or (THREADS if of_threads else [*OWN, *SHARED])
    preload = preloaded(of_threads)
    if preload is None:
        print("no C compiler with this sanitizer")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        chosen = environment(build(Path(folder), of_threads), preload)
        chosen["HYPOTHESIS_PROFILE"] = "few" if quick else "ci"
        chosen["FAILURES_APART"] = "30" if quick else "1"
        chosen["DAMAGED_STATES"] = "500" if quick else "20000"
        if quick:  # Python's own blocks are most, and each remembers who asked for it
            chosen["ASAN_OPTIONS"] += ":malloc_context_size=1"
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "tests.sanitized.plugin"]
        left_out = ("test_sanitized", *(_MANY if quick else ()))
        pytest += ["-p", "no:cacheprovider", "-k", " and ".join(f"not {name}" for name in left_out)]
        pytest += ["--capture=sys"]  # or else a report is lost with the process that it ends
        # It knows where memory is only if that is in the same place each time.
        if of_threads:  # and processes that are forked from it are not watched
            pytest = ["setarch", "-R", *pytest, "-n0"]
        return subprocess.run([*pytest, *others], cwd=ROOT, env=chosen).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
