# SPDX-License-Identifier: Apache-2.0
"""
Flink CEP's pattern API on PySpark, with Flink's matches.

Importing this package does not import pyspark: ``CEP``, ``keyBy`` and everything else that needs it
are loaded on first use, as is ``diagram``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyflinkcep._version import __version__
from pyflinkcep.errors import (
    CepError,
    CepRuntimeError,
    ConditionError,
    FunctionError,
    InputError,
    InvalidArgumentError,
    MalformedPatternException,
    MissingConditionError,
    NotSupportedError,
    OutOfMemoryError,
    PatternChangedError,
    SkipError,
    StateFormatError,
    StateLimitError,
)
from pyflinkcep.functions import (
    EventComparator,
    OutputTag,
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichPatternFlatSelectFunction,
    RichPatternSelectFunction,
    TimedOutPartialMatchHandler,
)
from pyflinkcep.pattern import (
    AfterMatchSkipStrategy,
    GroupPattern,
    IterativeCondition,
    Pattern,
    RichIterativeCondition,
    SimpleCondition,
    UnusedResultWarning,
    WithinType,
)
from pyflinkcep.sase import SaseQuery, elements, parse, seq
from pyflinkcep.show import Diagram
from pyflinkcep.time import Time
from pyflinkcep.warned import MicroBatchWarning, TimeUnitWarning

if TYPE_CHECKING:
    from pyflinkcep.diagrams import diagram
    from pyflinkcep.spark import (
        CEP,
        CepDataFrame,
        CompressedStream,
        KeyedDataFrame,
        PatternStream,
        QueryStream,
        cepError,
        keyBy,
        matchRecognize,
    )

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "CepDataFrame",
    "CepError",
    "CepRuntimeError",
    "CompressedStream",
    "ConditionError",
    "Diagram",
    "EventComparator",
    "FunctionError",
    "GroupPattern",
    "InputError",
    "InvalidArgumentError",
    "IterativeCondition",
    "KeyedDataFrame",
    "MalformedPatternException",
    "MicroBatchWarning",
    "MissingConditionError",
    "NotSupportedError",
    "OutOfMemoryError",
    "OutputTag",
    "Pattern",
    "PatternChangedError",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternStream",
    "PatternTimeoutFunction",
    "QueryStream",
    "RichIterativeCondition",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "SaseQuery",
    "SimpleCondition",
    "SkipError",
    "StateFormatError",
    "StateLimitError",
    "Time",
    "TimeUnitWarning",
    "TimedOutPartialMatchHandler",
    "UnusedResultWarning",
    "WithinType",
    "__version__",
    "cepError",
    "diagram",
    "elements",
    "keyBy",
    "matchRecognize",
    "parse",
    "seq",
]

_ON_SPARK = frozenset(
    [
        "CEP",
        "CepDataFrame",
        "CompressedStream",
        "KeyedDataFrame",
        "PatternStream",
        "QueryStream",
        "cepError",
        "keyBy",
        "matchRecognize",
    ]
)


def __getattr__(name: str) -> Any:
    if name in _ON_SPARK:
        return getattr(import_module("pyflinkcep.spark"), name)
    if name == "diagram":
        return import_module("pyflinkcep.diagrams").diagram
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
