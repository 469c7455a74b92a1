# SPDX-License-Identifier: Apache-2.0
"""
Patterns on Spark: the driver's plans and the workers' tasks.

Importing this package loads none of its modules: workers do not need those of the driver, and each
new worker imports anew.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyflinkcep.spark.cep import CEP, keyBy
    from pyflinkcep.spark.cep_dataframe import CepDataFrame, cepError
    from pyflinkcep.spark.compressed import CompressedStream
    from pyflinkcep.spark.pattern_stream import PatternStream
    from pyflinkcep.spark.plan.source import KeyedDataFrame
    from pyflinkcep.spark.progress import Progress
    from pyflinkcep.spark.query_stream import QueryStream
    from pyflinkcep.spark.recognize import matchRecognize

__all__ = [
    "CEP",
    "CepDataFrame",
    "CompressedStream",
    "KeyedDataFrame",
    "PatternStream",
    "Progress",
    "QueryStream",
    "cepError",
    "keyBy",
    "matchRecognize",
]

_MODULES = {
    "CEP": "cep",
    "CepDataFrame": "cep_dataframe",
    "CompressedStream": "compressed",
    "KeyedDataFrame": "plan.source",
    "PatternStream": "pattern_stream",
    "Progress": "progress",
    "QueryStream": "query_stream",
    "cepError": "cep_dataframe",
    "keyBy": "cep",
    "matchRecognize": "recognize",
}


# What tables in memory have as well, for which PySpark is not loaded.
_FOR_TABLES_TOO = frozenset({"matchRecognize"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        if name not in _FOR_TABLES_TOO or "pyspark" in sys.modules:
            import_module("pyflinkcep.spark.plan.engine").prepare_sessions()
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
