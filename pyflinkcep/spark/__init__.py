# SPDX-License-Identifier: Apache-2.0
"""
Patterns on Spark: the driver's plans and the workers' tasks.

Importing this package loads none of its modules: workers do not need those of the driver, and each
new worker imports anew.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

_NAMES = {
    "cep": ("CEP", "keyBy"),
    "cep_dataframe": ("CepDataFrame", "cepError"),
    "compressed": ("CompressedStream",),
    "eql_stream": ("EqlStream",),
    "pattern_stream": ("PatternStream",),
    "plan.source": ("KeyedDataFrame",),
    "query_stream": ("QueryStream",),
    "results": ("matchId",),
    "rule_stream": ("DynamicRuleStream", "RuleStream"),
    "recognize": ("matchRecognize",),  # Which tables in memory have too, without PySpark
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            if module != "recognize" or "pyspark" in sys.modules:
                import_module("pyflinkcep.spark.plan.engine").prepare_sessions()
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
