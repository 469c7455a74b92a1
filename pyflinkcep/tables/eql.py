# SPDX-License-Identifier: Apache-2.0
"""The matches of EQL queries on events in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyflinkcep.eql import Eql
from pyflinkcep.errors import check_columns, suggesting
from pyflinkcep.tables.events import Table


@suggesting
def matchEql(
    query: str | Eql,
    events: Table | Iterable[dict[str, Any]],
    timestamp: str = "t",
    category: str = "type",
    tiebreaker: str | None = None,
) -> list[list[dict[str, Any] | None]]:
    """
    Return the matches of an EQL query on events in memory.

    Parameters
    ----------
    query : str or Eql
        The query: single events, or a sequence.
    events : iterable or table
        Dicts, columns by name, a pandas or polars DataFrame, an Arrow table, or the path of a file
        or folder of Parquet, CSV or JSON lines. ``process.name`` is the field of this name, or
        ``name`` within ``process``; a list of values is an array.
    timestamp : str
        The field of an event's time: epoch milliseconds, or a datetime (UTC if it has no zone).
    category : str
        The field of an event's category, which a query names before ``where``.
    tiebreaker : str, optional
        The field that orders events of equal time, those without a value last. Without it, and
        where it is equal, they keep the order given.

    Returns
    -------
    list of list
        The matches in order of their last event, each a list of events, None for a step of missing
        events; of a query about single events, lists of one event. Events are the dicts given, or
        rows of the table as dicts.

    Raises
    ------
    InvalidArgumentError
        If the query is wrong; the message says where.
    NotSupportedError
        If it has what is not supported, named.
    InputError
        If the events lack a field of the query, or an event has no usable time.

    Examples
    --------
    >>> events = [
    ...     {"t": 0, "type": "process", "name": "cmd.exe", "user": "ann"},
    ...     {"t": 5, "type": "network", "port": 4444, "user": "ann"},
    ... ]
    >>> query = 'sequence by user [process where name : "CMD.*"] [network where port > 1024]'
    >>> [[event["type"] for event in match] for match in matchEql(query, events)]
    [['process', 'network']]
    """
    check_columns("matchEql", timestamp=timestamp, category=category, tiebreaker=tiebreaker)
    read = query if isinstance(query, Eql) else Eql(query)
    from pyflinkcep.tables.eql_match import matches_of  # which loads Arrow

    return matches_of(read, events, timestamp, category, tiebreaker)
