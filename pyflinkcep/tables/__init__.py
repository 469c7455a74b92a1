# SPDX-License-Identifier: Apache-2.0
"""
Matches on events in memory: tables of Arrow, pandas and polars, files, and lists.

:func:`match` is for patterns, :func:`matchSase` and :func:`matchEql` for queries,
:func:`matchRecognize` for SQL, :func:`matchSigma` for correlations; :func:`suppress` shows the
first of alerts.
"""

from pyflinkcep.tables.eql import matchEql
from pyflinkcep.tables.events import Record, Timeout
from pyflinkcep.tables.match import match
from pyflinkcep.tables.matches import Matches, OutputTable
from pyflinkcep.tables.recognize import matchRecognize
from pyflinkcep.tables.sase import matchSase
from pyflinkcep.tables.sigma import matchSigma
from pyflinkcep.tables.suppression import suppress
from pyflinkcep.tables.text_time import textTime

__all__ = [
    "Matches",
    "OutputTable",
    "Record",
    "Timeout",
    "match",
    "matchEql",
    "matchRecognize",
    "matchSase",
    "matchSigma",
    "suppress",
    "textTime",
]
