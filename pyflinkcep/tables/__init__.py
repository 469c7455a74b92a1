# SPDX-License-Identifier: Apache-2.0
"""
Matches on events in memory: tables of Arrow, pandas and polars, files of Parquet, and lists.

:func:`match` is for patterns, :func:`matchSase` for queries.
"""

from pyflinkcep.tables.events import Record
from pyflinkcep.tables.match import match
from pyflinkcep.tables.matches import Matches, Timeout
from pyflinkcep.tables.sase import matchSase

__all__ = ["Matches", "Record", "Timeout", "match", "matchSase"]
