# SPDX-License-Identifier: Apache-2.0
"""What a local session on Sail sets before Sail starts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sail.test_recorded import pytestmark  # noqa: F401 - the same

PR_SET_THP_DISABLE = 41
PROGRAM = (  # a process begins with what its parent decided, such as one with a session on Sail
    f"import ctypes; ctypes.CDLL(None).prctl({PR_SET_THP_DISABLE}, 0, 0, 0, 0); "
    "from pyflinkcep import local; local.session('sail'); "
    "print(dict(line.split() for line in open('/proc/self/status') if 'THP' in line))"
)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them")
@pytest.mark.parametrize(("given", "expected"), [({}, "0"), ({"MIMALLOC_ALLOW_THP": "1"}, "1")])
def test_the_process_has_no_huge_pages_unless_asked_for(
    given: dict[str, str], expected: str
) -> None:
    """Sail's allocator decides for the process when it is loaded, by a variable of the user's."""
    others = {name: value for name, value in os.environ.items() if name != "MIMALLOC_ALLOW_THP"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=others | given,
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.strip() in ("{}", f"{{'THP_enabled:': '{expected}'}}")
