# SPDX-License-Identifier: Apache-2.0
"""A local session for the samples, of Spark or else of Sail; in your own job, use the cluster's."""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyflinkcep import NotSupportedError, local


def reason(error: Exception) -> str:
    """Return what an error says, without the stack traces of Spark and of its workers."""
    text = str(error)
    raised = re.search(r"^(?:pyflinkcep\.errors\.\w+|: [\w.]+Exception): ", text, re.MULTILINE)
    if raised is not None:
        text = text[raised.end() :]
    return re.split(r"\n *SQLSTATE|\n\s*(?:at |== |JVM stacktrace)", text)[0].rstrip()


@contextmanager
def local_session() -> Iterator[Any]:
    """Yield a session of two cores and stop it at the end; leave the program if none can start."""
    settings = {"spark.ui.enabled": "false"}
    try:
        spark = local.session(cores=2, settings=settings)
    except NotSupportedError as error:
        sys.exit(f"{error.message}: {error.hint}")
    from pyspark.errors import PySparkAttributeError

    # What goes wrong is told by the exception alone.
    with suppress(PySparkAttributeError):  # Sail has none
        spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield spark
    finally:
        spark.stop()
