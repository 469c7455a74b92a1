# SPDX-License-Identifier: Apache-2.0
"""
Flink CEP's pattern API on PySpark, with Flink's matches.

Importing this package loads nothing but its version: names are loaded on first use, and pyspark
with ``CEP``, ``keyBy`` and everything else that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pyflinkcep import charts
    from pyflinkcep.diagrams import diagram
    from pyflinkcep.eql import Eql
    from pyflinkcep.errors import (
        CepError,
        CepRuntimeError,
        ConditionError,
        FunctionError,
        InputError,
        InvalidArgumentError,
        MalformedPatternException,
        MicroBatchWarning,
        MissingConditionError,
        NotSupportedError,
        OutOfMemoryError,
        PatternChangedError,
        SkipError,
        StateFormatError,
        StateLimitError,
        TimeUnitWarning,
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
    from pyflinkcep.matching.progress import Progress
    from pyflinkcep.pattern import (
        AfterMatchSkipStrategy,
        GroupPattern,
        IterativeCondition,
        Pattern,
        RichIterativeCondition,
        SimpleCondition,
        UnusedResultWarning,
        WithinType,
        windowFunnel,
    )
    from pyflinkcep.rules.rule_set import matchMany
    from pyflinkcep.sase import SaseQuery, elements, parse, seq
    from pyflinkcep.show import Diagram
    from pyflinkcep.sigma import SigmaRules, sigmaRules
    from pyflinkcep.spark.cep import CEP, keyBy
    from pyflinkcep.spark.cep_dataframe import CepDataFrame, cepError
    from pyflinkcep.spark.compressed import CompressedStream
    from pyflinkcep.spark.eql_stream import EqlStream
    from pyflinkcep.spark.pattern_stream import PatternStream
    from pyflinkcep.spark.plan.source import KeyedDataFrame
    from pyflinkcep.spark.query_stream import QueryStream
    from pyflinkcep.spark.recognize import matchRecognize
    from pyflinkcep.spark.results import matchId
    from pyflinkcep.spark.rule_stream import DynamicRuleStream, RuleStream
    from pyflinkcep.tables import match, matchEql, matchSase, matchSigma, suppress, textTime
    from pyflinkcep.tables.reports import compare, funnel, trace, whyNot
    from pyflinkcep.time import Time

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "CepDataFrame",
    "CepError",
    "CepRuntimeError",
    "CompressedStream",
    "ConditionError",
    "Diagram",
    "DynamicRuleStream",
    "Eql",
    "EqlStream",
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
    "Progress",
    "QueryStream",
    "RichIterativeCondition",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "RuleStream",
    "SaseQuery",
    "SigmaRules",
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
    "charts",
    "compare",
    "diagram",
    "elements",
    "funnel",
    "keyBy",
    "match",
    "matchEql",
    "matchId",
    "matchMany",
    "matchRecognize",
    "matchSase",
    "matchSigma",
    "parse",
    "seq",
    "sigmaRules",
    "suppress",
    "textTime",
    "trace",
    "whyNot",
    "windowFunnel",
]

_NAMES = {
    "diagrams": ("diagram",),
    "eql": ("Eql",),
    "errors": ("CepError", "CepRuntimeError", "ConditionError", "FunctionError", "InputError",
        "InvalidArgumentError", "MalformedPatternException", "MicroBatchWarning",
        "MissingConditionError", "NotSupportedError", "OutOfMemoryError",
        "PatternChangedError", "SkipError", "StateFormatError", "StateLimitError",
        "TimeUnitWarning"),
    "functions": ("EventComparator", "OutputTag", "PatternFlatSelectFunction",
        "PatternFlatTimeoutFunction", "PatternProcessFunction", "PatternSelectFunction",
        "PatternTimeoutFunction", "RichPatternFlatSelectFunction",
        "RichPatternSelectFunction", "TimedOutPartialMatchHandler"),
    "matching.progress": ("Progress",),
    "pattern": ("AfterMatchSkipStrategy", "GroupPattern", "IterativeCondition", "Pattern",
        "RichIterativeCondition", "SimpleCondition", "UnusedResultWarning", "WithinType",
        "windowFunnel"),
    "rules.rule_set": ("matchMany",),
    "sase": ("SaseQuery", "elements", "parse", "seq"),
    "show": ("Diagram",),
    "sigma": ("SigmaRules", "sigmaRules"),
    "spark": ("CEP", "CepDataFrame", "CompressedStream", "DynamicRuleStream", "EqlStream",
        "KeyedDataFrame", "PatternStream", "QueryStream", "RuleStream", "cepError", "keyBy",
        "matchId", "matchRecognize"),
    "tables": ("match", "matchEql", "matchSase", "matchSigma", "suppress", "textTime"),
    "tables.reports": ("compare", "funnel", "trace", "whyNot"),
    "time": ("Time",),
}  # fmt: skip
"""Where names are, which load when they are asked for: workers do not need what users write."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES["automaton_diagram"] = "engines.flink.nfa.automaton_diagram"
_MODULES["pattern_from_json"] = "rules.pattern_reader"
_MODULES["pattern_to_json"] = "rules.pattern_writer"
"""For patterns, which stand below what draws, reads and writes them."""

_SUBMODULES = frozenset({*_NAMES, "charts", "conditions", "local", "testing"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
