# SPDX-License-Identifier: Apache-2.0
"""A virtual environment for tests that need more than the suite: below build, made when missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python_that(works: str, name: str, environment: Mapping[str, str]) -> str:
    """
    Return a Python that runs the program `works`: the running one, or that of build/`name`.

    The latter is made if need be, for this source tree, with its extras ``test`` and `name`.
    """
    folder = ROOT / "build" / name
    own = str(folder / "bin" / "python")
    for python in (sys.executable, own):
        if Path(python).exists() and _runs(python, works, environment):
            return python
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    # In place, so that the kernel of this tree is what the tests import.
    install = [own, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e"]
    subprocess.run([*install, f"{ROOT}[test,{name}]"], check=True)
    return own


def _runs(python: str, program: str, environment: Mapping[str, str]) -> bool:
    done = subprocess.run([python, "-c", program], env=environment, capture_output=True)
    return not done.returncode
