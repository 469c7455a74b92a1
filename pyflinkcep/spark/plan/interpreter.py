# SPDX-License-Identifier: Apache-2.0
"""The Python that workers run: the driver's by default, or a chosen one with this package."""

from __future__ import annotations

import functools
import logging
import os
import shutil
import subprocess
import sys
from typing import Any

from pyflinkcep.errors import InputError
from pyflinkcep.spark.arrow.internals import set_worker_python, worker_python

__all__ = ["check_workers"]

_LOGGER = logging.getLogger("pyflinkcep")
_SECONDS = 60


def check_workers(session: Any) -> None:
    """
    Ensure that the workers of a local master can import this package.

    Workers run ``PYSPARK_PYTHON``, or the first ``python3`` on the path, which is neither the
    Python of an unactivated virtual environment nor that of a notebook's kernel. If the variable is
    unset, the session's workers run the driver's Python from now on.

    Parameters
    ----------
    session : SparkSession
        The session. Only local masters are checked: a cluster's workers have a Python of their own.

    Raises
    ------
    InputError
        If the chosen Python cannot import this package.
    """
    chosen = worker_python(session)
    if chosen is None or _is_drivers(chosen):
        return
    if "PYSPARK_PYTHON" not in os.environ:
        _LOGGER.info("workers run %s instead of %s", sys.executable, chosen)
        set_worker_python(session, sys.executable)
        return
    reason = _why_unfit(chosen)
    if reason:
        raise InputError(
            f"PYSPARK_PYTHON is {chosen}, which cannot import pyflinkcep: {reason}",
            f"set PYSPARK_PYTHON={sys.executable} before the session is created, "
            "or install pyflinkcep there",
        )


def _is_drivers(python: str) -> bool:
    """Whether a command runs the driver's Python; two environments may share an executable."""
    found = shutil.which(python)
    if found is None or not os.path.samefile(found, sys.executable):
        return False
    return os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable)


@functools.cache
def _why_unfit(python: str) -> str:
    """Return why a Python cannot import this package; empty if it can or cannot be run."""
    if shutil.which(python) is None:
        return "no such program"
    try:
        outcome = subprocess.run(
            [python, "-c", "import pyflinkcep.spark"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = outcome.stderr.strip().splitlines()
    return lines[-1] if outcome.returncode and lines else ""
