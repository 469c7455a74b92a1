# SPDX-License-Identifier: Apache-2.0
"""
Test patterns without Spark: :func:`match` for events in memory, :func:`trace` to see what became of
them, :func:`whyNot` to see why they do not match, :func:`funnel` to see how far they get, and
harnesses to feed by hand.

The pytest fixtures are in :mod:`pyflinkcep.testing.pytest_plugin`.
"""

from pyflinkcep.tables import Matches, Record, Timeout, match, matchRecognize, matchSase
from pyflinkcep.tables.reports import compare, funnel, trace, whyNot
from pyflinkcep.testing.assertions import assertMatches
from pyflinkcep.testing.harness import NFATestHarness, OperatorTestHarness
from pyflinkcep.traces.comparison import Comparison
from pyflinkcep.traces.difference import Difference
from pyflinkcep.traces.funnel import Funnel
from pyflinkcep.traces.result import Trace
from pyflinkcep.traces.why import WhyNot

__all__ = [
    "Comparison",
    "Difference",
    "Funnel",
    "Matches",
    "NFATestHarness",
    "OperatorTestHarness",
    "Record",
    "Timeout",
    "Trace",
    "WhyNot",
    "assertMatches",
    "compare",
    "funnel",
    "match",
    "matchRecognize",
    "matchSase",
    "trace",
    "whyNot",
]
