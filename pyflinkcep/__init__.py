# SPDX-License-Identifier: Apache-2.0
"""Flink CEP's patterns on PySpark."""

from pyflinkcep.errors import CepError, MalformedPatternException
from pyflinkcep.functions import OutputTag
from pyflinkcep.pattern import (
    AfterMatchSkipStrategy,
    GroupPattern,
    IterativeCondition,
    Pattern,
    RichIterativeCondition,
    SimpleCondition,
    WithinType,
)
from pyflinkcep.time import Time

__all__ = [
    "AfterMatchSkipStrategy",
    "CepError",
    "GroupPattern",
    "IterativeCondition",
    "MalformedPatternException",
    "OutputTag",
    "Pattern",
    "RichIterativeCondition",
    "SimpleCondition",
    "Time",
    "WithinType",
]
