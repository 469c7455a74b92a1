# SPDX-License-Identifier: Apache-2.0
"""A session on this machine: Spark's own, or one of Sail, which needs no Java."""

from __future__ import annotations

import atexit
import functools
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError, check_choice, suggesting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LocalEngine", "session"]

LocalEngine = Literal["auto", "spark", "sail"]

_LOGGER = logging.getLogger("pyflinkcep")
_BATCH_ROWS = "65536"
"""How many rows Sail hands on at a time: with its own 8,192, bounded jobs take a tenth longer."""
_INSTALL_SAIL = "pip install 'pyflinkcep[sail]', which needs no Java"
_INSTALL_JAVA = (
    "install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17; Windows: winget install Microsoft.OpenJDK.17) "
    "and put its bin folder on PATH, or set JAVA_HOME"
)


@suggesting
def session(
    engine: LocalEngine = "auto",
    cores: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """
    Return a session on this machine, with Java or without.

    Parameters
    ----------
    engine : {"auto", "spark", "sail"}
        ``"spark"`` needs Java 17 or later, ``"sail"`` the extra ``pyflinkcep[sail]`` and no Java;
        it runs bounded jobs, in this process. ``"auto"`` is Spark if there is such a Java, and
        otherwise Sail, with a line in the log.
    cores : int, optional
        The number of cores to use; all by default. Of Sail, only the first session's is used.
    settings : dict of str to str, optional
        Settings of the session, such as ``{"spark.sql.session.timeZone": "UTC"}``.

    Returns
    -------
    SparkSession
        The session of this process, a new one if there is none.

    Raises
    ------
    InvalidArgumentError
        If the arguments are wrong.
    NotSupportedError
        If neither Java nor Sail is installed, or PySpark is one that Sail does not know.

    Examples
    --------
    >>> from pyflinkcep import local
    >>> spark = local.session("sail")  # doctest: +SKIP
    """
    hint = 'use "auto", "spark" for Spark with Java, or "sail"'
    check_choice("engine", engine, ("auto", "spark", "sail"), hint)
    if cores is not None and (isinstance(cores, bool) or not isinstance(cores, int) or cores < 1):
        raise InvalidArgumentError(
            f"expected a whole number of cores, at least 1, got cores={cores!r}",
            "leave it out to use all cores",
        )
    if settings is not None and not isinstance(settings, Mapping):
        raise InvalidArgumentError(
            f"expected settings by name, got {settings!r}",
            'write settings={"spark.sql.session.timeZone": "UTC"}',
        )
    problem = None if engine == "sail" else _java_problem()
    if engine != "sail" and problem is None:
        return _spark(cores, settings or {})
    if engine == "spark" or find_spec("pysail") is None:
        what = problem or "no pysail in this environment"
        ways = f"{_INSTALL_JAVA}; or {_INSTALL_SAIL}" if problem else _INSTALL_SAIL
        raise NotSupportedError(what, ways)
    if problem is not None:
        _LOGGER.warning("%s: this session runs on Sail, bounded jobs only", problem)
    return _sail(cores, settings or {})


def _java_problem() -> str | None:
    """Return in one line why Spark would not start; None if nothing is missing."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        return f"no Java {where}, and Spark needs Java 17 or later"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    if version is None or int(version[1]) < 17:
        found = version[1] if version else "of no known version"
        return f"Java {found} at {java}, and Spark needs Java 17 or later"
    return None


# --- Spark


def _spark(cores: int | None, settings: Mapping[str, str]) -> SparkSession:
    """Return a session of Spark; without the line of progress, and with one task for each core."""
    from pyspark.sql import SparkSession

    count = cores or os.cpu_count() or 1
    builder = (
        SparkSession.Builder()
        .master(f"local[{count}]")
        .appName("pyflinkcep")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(count))
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# --- Sail


def _sail(cores: int | None, settings: Mapping[str, str]) -> SparkSession:
    """Return a session of the server of this process."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    chosen = {
        "RUST_LOG": "error",  # what goes wrong is told by the exception alone
        "SAIL_EXECUTION__BATCH_SIZE": _BATCH_ROWS,
        # Else most of a first job's time is spent on clearing large pages, of which little is used.
        "MIMALLOC_ALLOW_THP": "0",
    }
    if cores is not None:
        chosen["SAIL_EXECUTION__DEFAULT_PARALLELISM"] = str(cores)
    with _default_environment(chosen):
        address = _sail_server()
    found = SparkSession.Builder().remote(address).getOrCreate()
    try:
        found.version  # noqa: B018 - which Sail refuses if it does not know this PySpark
    except PySparkException as cause:
        found.stop()
        if "unsupported PySpark version" not in str(cause):
            raise
        import pyspark

        raise NotSupportedError(
            f"this release of Sail does not know PySpark {pyspark.__version__}",
            "pip install 'pyflinkcep[sail]' installs versions that work together; see "
            "docs/engines.md",
        ) from cause
    for name, value in settings.items():
        found.conf.set(name, value)
    return found


@functools.cache
def _sail_server() -> str:
    """Start the server, which lives as long as this process; return its address."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer()
    server.start()
    atexit.register(server.stop)
    host, port = server.listening_address
    return f"sc://{host}:{port}"


@contextmanager
def _default_environment(chosen: Mapping[str, str]) -> Iterator[None]:
    """Set variables within a ``with``, unless the user has set them."""
    missing = {name: value for name, value in chosen.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]
