# SPDX-License-Identifier: Apache-2.0
"""The pattern API: patterns, quantifiers, conditions and skip strategies, as pure data."""

from pyflinkcep.conditions import IterativeCondition, RichIterativeCondition, SimpleCondition
from pyflinkcep.errors import UnusedResultWarning
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.stage import Quantifier, Times, WithinType
from pyflinkcep.pattern.window_funnel import windowFunnel

__all__ = [
    "AfterMatchSkipStrategy",
    "GroupPattern",
    "IterativeCondition",
    "Pattern",
    "Quantifier",
    "RichIterativeCondition",
    "SimpleCondition",
    "Times",
    "UnusedResultWarning",
    "WithinType",
    "windowFunnel",
]
