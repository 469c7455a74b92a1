# SPDX-License-Identifier: Apache-2.0
"""A local Spark session for the samples; in your own job, use the cluster's."""

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INSTALL_JAVA = (
    "install it (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17; Windows: winget install Microsoft.OpenJDK.17) "
    "and put its bin folder on PATH, or set JAVA_HOME"
)


def java_problem() -> str | None:
    """Return in one line why Spark would not start; None if nothing is missing."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        return f"no Java {where}, and Spark needs Java 17 or later: {INSTALL_JAVA}"
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', answer)
    if version is None or int(version[1]) < 17:
        found = version[1] if version else "of no known version"
        return f"Java {found} at {java}, and Spark needs Java 17 or later: {INSTALL_JAVA}"
    return None


def reason(error: Exception) -> str:
    """Return what an error says, without the stack traces of Spark and of its workers."""
    text = str(error)
    raised = re.search(r"^(?:pyflinkcep\.errors\.\w+|: [\w.]+Exception): ", text, re.MULTILINE)
    if raised is not None:
        text = text[raised.end() :]
    return re.split(r"\n *SQLSTATE|\n\s*(?:at |== |JVM stacktrace)", text)[0].rstrip()


@contextmanager
def local_session() -> Iterator[Any]:
    """Yield a session of two cores and stop it at the end; leave the program without Java."""
    problem = java_problem()
    if problem is not None:
        sys.exit(problem)
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("pyflinkcep samples")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.shuffle.partitions", 2)
        .getOrCreate()
    )
    # What goes wrong is told by the exception alone.
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield spark
    finally:
        spark.stop()
