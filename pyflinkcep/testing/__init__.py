# SPDX-License-Identifier: Apache-2.0
"""
Test patterns without Spark: :func:`match` for events in memory, :func:`trace` to see what became of
them, :func:`whyNot` to see why they do not match, :func:`funnel` to see how far they get, and
harnesses to feed by hand.

The pytest fixtures are in :mod:`pyflinkcep.testing.pytest_plugin`.
"""

from pyflinkcep.tables import (
    Matches,
    Record,
    Timeout,
    funnel,
    match,
    matchRecognize,
    matchSase,
    trace,
    whyNot,
)
from pyflinkcep.testing.assertions import assertMatches
from pyflinkcep.testing.harness import NFATestHarness, OperatorTestHarness
from pyflinkcep.traces.funnel import Funnel
from pyflinkcep.traces.result import Trace
from pyflinkcep.traces.why import WhyNot

__all__ = [
    "Funnel",
    "Matches",
    "NFATestHarness",
    "OperatorTestHarness",
    "Record",
    "Timeout",
    "Trace",
    "WhyNot",
    "assertMatches",
    "funnel",
    "match",
    "matchRecognize",
    "matchSase",
    "trace",
    "whyNot",
]
