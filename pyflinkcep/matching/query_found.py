# SPDX-License-Identifier: Apache-2.0
"""The matches of a query on a table of events, as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pyflinkcep.engines.by_data import resolved
from pyflinkcep.engines.choice import EVENT_LISTS
from pyflinkcep.engines.compressed.arrays import MatchArrays
from pyflinkcep.engines.queries import last_event, list_frames, match_arrays, query_matches
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.query_table import found_of_arrays, found_of_columns
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.sase.model import Query

__all__ = ["query_found"]


def query_found(
    query: Query,
    table: EventTable,
    evaluation: str,
    output: str,
    limit: int | None = None,
    runs: RunLimit | None = None,
) -> Iterator[Found]:
    """
    Yield the matches of a query, many at a time; a handle is a position in the table.

    Parameters
    ----------
    query : Query
        The query.
    table : EventTable
        The events.
    evaluation : str
        How matches are found; "auto" if the events decide.
    output : str
        Which of them are requested.
    limit : int, optional
        The most matches; further ones are not even enumerated.
    runs : RunLimit, optional
        A bound on the runs of a key.
    """
    how = resolved(query, table, evaluation, output)
    arrays = match_arrays(query, table, how, output, runs)
    if arrays is not None:
        yield from _listed(query, arrays, table, limit)
        return
    variables = query.variables
    is_plain = how == EVENT_LISTS and limit is None and not query.is_composed
    if is_plain and not any(part.repeats for part in query.positive):
        for frame in list_frames(query, table, output):
            columns = [frame.singles[name] for name in variables]
            yield from found_of_columns(variables, columns, table.times).parts(MOST_EVENTS)
        return
    results = Results(variables, wants_timeouts=False)
    for match in islice(query_matches(query, table, how, output, runs), limit):
        results.match(None, table.times[last_event(match)], match)
        if results.events >= MOST_EVENTS:
            yield results.take()
    if len(results):
        yield results.take()


def _listed(
    query: Query, arrays: Iterator[MatchArrays], table: EventTable, limit: int | None
) -> Iterator[Found]:
    """Yield matches that are arrays already."""
    left = limit
    for part in arrays:
        matches = part if left is None else part.first(left)
        yield from found_of_arrays(query.variables, matches, table.times).parts(MOST_EVENTS)
        if left is not None:
            left -= len(matches)
            if not left:
                return
