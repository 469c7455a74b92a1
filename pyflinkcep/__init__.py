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
    from pyflinkcep import charts as charts
    from pyflinkcep.diagrams import diagram as diagram
    from pyflinkcep.eql import Eql as Eql
    from pyflinkcep.errors import CepError as CepError
    from pyflinkcep.errors import CepRuntimeError as CepRuntimeError
    from pyflinkcep.errors import ConditionError as ConditionError
    from pyflinkcep.errors import FunctionError as FunctionError
    from pyflinkcep.errors import InputError as InputError
    from pyflinkcep.errors import InvalidArgumentError as InvalidArgumentError
    from pyflinkcep.errors import MalformedPatternException as MalformedPatternException
    from pyflinkcep.errors import MicroBatchWarning as MicroBatchWarning
    from pyflinkcep.errors import MissingConditionError as MissingConditionError
    from pyflinkcep.errors import NotSupportedError as NotSupportedError
    from pyflinkcep.errors import OutOfMemoryError as OutOfMemoryError
    from pyflinkcep.errors import PatternChangedError as PatternChangedError
    from pyflinkcep.errors import SkipError as SkipError
    from pyflinkcep.errors import StateFormatError as StateFormatError
    from pyflinkcep.errors import StateLimitError as StateLimitError
    from pyflinkcep.errors import TimeUnitWarning as TimeUnitWarning
    from pyflinkcep.functions import EventComparator as EventComparator
    from pyflinkcep.functions import OutputTag as OutputTag
    from pyflinkcep.functions import PatternFlatSelectFunction as PatternFlatSelectFunction
    from pyflinkcep.functions import PatternFlatTimeoutFunction as PatternFlatTimeoutFunction
    from pyflinkcep.functions import PatternProcessFunction as PatternProcessFunction
    from pyflinkcep.functions import PatternSelectFunction as PatternSelectFunction
    from pyflinkcep.functions import PatternTimeoutFunction as PatternTimeoutFunction
    from pyflinkcep.functions import RichPatternFlatSelectFunction as RichPatternFlatSelectFunction
    from pyflinkcep.functions import RichPatternSelectFunction as RichPatternSelectFunction
    from pyflinkcep.functions import TimedOutPartialMatchHandler as TimedOutPartialMatchHandler
    from pyflinkcep.matching.progress import Progress as Progress
    from pyflinkcep.pattern import AfterMatchSkipStrategy as AfterMatchSkipStrategy
    from pyflinkcep.pattern import GroupPattern as GroupPattern
    from pyflinkcep.pattern import IterativeCondition as IterativeCondition
    from pyflinkcep.pattern import Pattern as Pattern
    from pyflinkcep.pattern import RichIterativeCondition as RichIterativeCondition
    from pyflinkcep.pattern import SimpleCondition as SimpleCondition
    from pyflinkcep.pattern import UnusedResultWarning as UnusedResultWarning
    from pyflinkcep.pattern import WithinType as WithinType
    from pyflinkcep.pattern import windowFunnel as windowFunnel
    from pyflinkcep.rules.rule_set import matchMany as matchMany
    from pyflinkcep.sase import SaseQuery as SaseQuery
    from pyflinkcep.sase import elements as elements
    from pyflinkcep.sase import parse as parse
    from pyflinkcep.sase import seq as seq
    from pyflinkcep.show import Diagram as Diagram
    from pyflinkcep.sigma import SigmaRules as SigmaRules
    from pyflinkcep.sigma import sigmaRules as sigmaRules
    from pyflinkcep.spark.cep import CEP as CEP
    from pyflinkcep.spark.cep import keyBy as keyBy
    from pyflinkcep.spark.cep_dataframe import CepDataFrame as CepDataFrame
    from pyflinkcep.spark.cep_dataframe import cepError as cepError
    from pyflinkcep.spark.compressed import CompressedStream as CompressedStream
    from pyflinkcep.spark.eql_stream import EqlStream as EqlStream
    from pyflinkcep.spark.pattern_stream import PatternStream as PatternStream
    from pyflinkcep.spark.plan.source import KeyedDataFrame as KeyedDataFrame
    from pyflinkcep.spark.query_stream import QueryStream as QueryStream
    from pyflinkcep.spark.recognize import matchRecognize as matchRecognize
    from pyflinkcep.spark.results import matchId as matchId
    from pyflinkcep.spark.rule_stream import DynamicRuleStream as DynamicRuleStream
    from pyflinkcep.spark.rule_stream import RuleStream as RuleStream
    from pyflinkcep.tables import match as match
    from pyflinkcep.tables import matchEql as matchEql
    from pyflinkcep.tables import matchSase as matchSase
    from pyflinkcep.tables import matchSigma as matchSigma
    from pyflinkcep.tables import suppress as suppress
    from pyflinkcep.tables import textTime as textTime
    from pyflinkcep.tables.reports import compare as compare
    from pyflinkcep.tables.reports import funnel as funnel
    from pyflinkcep.tables.reports import trace as trace
    from pyflinkcep.tables.reports import whyNot as whyNot
    from pyflinkcep.time import Time as Time

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
__all__ = sorted(["__version__", "charts", *_MODULES])
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
