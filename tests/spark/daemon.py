# SPDX-License-Identifier: Apache-2.0
"""
PySpark's daemon with the imports of a worker done: its forks start in a tenth of the time.

Tests in one JVM use it; those with processes of their own run PySpark's as it is.
"""

import gc
import pkgutil
from importlib import import_module

import pandas  # noqa: F401
import pyarrow.compute
import pyarrow.ipc  # noqa: F401
from pyspark import daemon
from pyspark.sql.conversion import ArrowTableToRowsConversion  # noqa: F401
from pyspark.sql.pandas import serializers  # noqa: F401

from pyflinkcep.spark import worker

if __name__ == "__main__":
    for module in pkgutil.iter_modules(worker.__path__, f"{worker.__name__}."):
        import_module(module.name)
    gc.freeze()  # a worker collects garbage after each task
    daemon.manager()
