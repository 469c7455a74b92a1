# SPDX-License-Identifier: Apache-2.0
"""
Matches on events in memory: tables of Arrow, pandas and polars, files, and lists.

:func:`match` is for patterns, :func:`matchSase` for queries, :func:`matchRecognize` for SQL.
"""

from pyflinkcep.tables.events import Record, Timeout
from pyflinkcep.tables.match import match
from pyflinkcep.tables.matches import Matches, OutputTable
from pyflinkcep.tables.recognize import matchRecognize
from pyflinkcep.tables.sase import matchSase
from pyflinkcep.tables.text_time import textTime

__all__ = [
    "Matches",
    "OutputTable",
    "Record",
    "Timeout",
    "match",
    "matchRecognize",
    "matchSase",
    "textTime",
]
