# SPDX-License-Identifier: Apache-2.0
"""The Python that workers run: the driver's by default, or a chosen one with this package."""

from __future__ import annotations

import functools
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyflinkcep.errors import InputError
from pyflinkcep.spark.arrow.internals import (
    local_server_python,
    set_worker_python,
    spark_context,
    watch_contexts,
    worker_python,
)

__all__ = ["check_workers", "prepare_sessions"]

_LOGGER = logging.getLogger("pyflinkcep")
_SECONDS = 60
_VARIABLE = "PYSPARK_PYTHON"
_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
_PROBE = "import pyflinkcep.spark, sys; print('%d.%d' % sys.version_info[:2])"


@functools.cache
def prepare_sessions() -> None:
    """
    Let the workers of local sessions run the driver's Python, from the start of a session.

    Workers run ``PYSPARK_PYTHON``, or the first ``python3`` on the path, which is neither the
    Python of an unactivated virtual environment nor that of a notebook's kernel. A DataFrame made
    of a list, or a local Spark Connect server, has taken it before a pattern is applied. Nothing
    changes if the variable is set, or on a cluster.
    """
    watch_contexts(_choose, _chosen)


def check_workers(session: Any) -> None:
    """
    Ensure that the workers of a local master can import this package.

    If ``PYSPARK_PYTHON`` is unset, the session's workers run the driver's Python from now on.

    Parameters
    ----------
    session : SparkSession
        The session. Only local masters are checked: a cluster's workers have a Python of their own.

    Raises
    ------
    InputError
        If the workers' Python cannot import this package, or is of another version.
    """
    context = spark_context(session)
    chosen = worker_python(context)
    of_server = local_server_python(session) if context is None else None
    chosen = of_server or chosen
    if (
        chosen is None
        or _is_drivers(chosen)
        or (context is not None and _replaced(context, chosen))
    ):
        return
    reason = _why_unfit(chosen)
    if reason:
        hint = "" if of_server is None else "import pyflinkcep before the session is created, or "
        what = "PYSPARK_PYTHON" if _VARIABLE in os.environ else "the Python of the workers"
        raise InputError(
            f"{what} is {chosen}, which {reason}",
            f"{hint}set PYSPARK_PYTHON={sys.executable} before the session is created, "
            "or install pyflinkcep there",
        )


def _choose(context: Any) -> None:
    """Let the workers of a local master run the driver's Python, unless another is chosen."""
    python = worker_python(context)
    if python is not None and not _is_drivers(python):
        _replaced(context, python)


def _replaced(context: Any, python: str) -> bool:
    """Let workers run the driver's Python; return False if the user has chosen another."""
    if _VARIABLE in os.environ:
        return False
    _LOGGER.info("workers run %s instead of %s", sys.executable, python)
    set_worker_python(context, sys.executable)
    return True


@contextmanager
def _chosen() -> Iterator[None]:
    """Set the variable to the driver's Python within a ``with``, unless it is set."""
    if _VARIABLE in os.environ:
        yield
        return
    os.environ[_VARIABLE] = sys.executable
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _is_drivers(python: str) -> bool:
    """Whether a command runs the driver's Python; two environments may share an executable."""
    found = shutil.which(python)
    if found is None or not os.path.samefile(found, sys.executable):
        return False
    return os.path.dirname(os.path.abspath(found)) == os.path.dirname(sys.executable)


@functools.cache
def _why_unfit(python: str) -> str:
    """Return why a Python cannot do the driver's work; empty if it can or cannot be run."""
    if shutil.which(python) is None:
        return "cannot import pyflinkcep: no such program"
    try:
        outcome = subprocess.run(
            [python, "-c", _PROBE], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = outcome.stderr.strip().splitlines()
    if outcome.returncode:
        return f"cannot import pyflinkcep: {lines[-1]}" if lines else ""
    version = outcome.stdout.strip()
    return "" if version == _VERSION else f"is Python {version}, and the driver's is {_VERSION}"
