# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern on events in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar, overload

from pyflinkcep.choices import EvaluationOfPattern, OnTooManyPartialMatches
from pyflinkcep.engines.choice import EVENT_LISTS, check_pattern_evaluation
from pyflinkcep.engines.flink.operator.limit import PartialMatchLimit
from pyflinkcep.errors import InvalidArgumentError, NotSupportedError, suggesting
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.arrival import arrived
from pyflinkcep.tables.chain_match import chain_matches
from pyflinkcep.tables.events import Record, Table
from pyflinkcep.tables.matches import Matches, Timeout
from pyflinkcep.tables.rows import rows_of, table_of_dicts, table_or_rest
from pyflinkcep.tables.values import (
    delay_ms,
    exact_times_of,
    grouping_key,
    key_getter,
    tie_order,
)

__all__ = ["Matches", "Timeout", "match"]

EventT = TypeVar("EventT")


@overload
def match(
    pattern: Pattern,
    events: Table | Iterable[dict[str, Any]],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
    evaluation: EvaluationOfPattern = "auto",
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
) -> Matches[Record]: ...
@overload
def match(
    pattern: Pattern,
    events: Iterable[EventT],
    timestamp: str | Callable[[EventT], Any] | None = None,
    key: str | Sequence[str] | Callable[[EventT], Any] | None = None,
    delayThreshold: timedelta | None = None,
    evaluation: EvaluationOfPattern = "auto",
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
) -> Matches[EventT]: ...
@suggesting
def match(
    pattern: Pattern,
    events: Any,
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
    evaluation: EvaluationOfPattern = "auto",
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
) -> Matches[Any]:
    """
    Return the matches of a pattern on events in memory.

    Parameters
    ----------
    pattern : Pattern
        The pattern. SQL conditions are evaluated in Python by Spark's rules; Columns, and what
        Python cannot evaluate, by Spark if a session is running.
    events : iterable or table
        Objects, dicts, columns by name, a pandas or polars DataFrame, an Arrow table, or the path
        of a file or folder of Parquet. Tables are matched column by column. Rows and dicts have
        their fields as attributes too, as on Spark. Without `timestamp` they are in order, a
        millisecond apart.
    timestamp : str or callable, optional
        The field or function of an event's time: epoch milliseconds, or a datetime
        (UTC if it has no zone), of pandas or NumPy too.
    key : str, list of str or callable, optional
        The field, fields or function of an event's key; by default one key for all. Null and NaN
        are keys like any other.
    delayThreshold : timedelta, optional
        Let the events arrive in the order given, with a watermark this far (zero or more) behind
        the latest time, as on a stream: events behind it are late. By default events are first
        sorted by time, as on a bounded DataFrame, and nothing is late.
    evaluation : {"auto", "nfa", "eventLists"}
        How to find the matches. Event lists return the same ones in no particular order, without
        timeouts; ``auto`` keeps Flink's order, and so uses the automaton here.
    maxPartialMatches : int, at least 1, optional
        The most partial matches of a key.
    onTooManyPartialMatches : {"fail", "dropOldest"}
        The policy for a key with more: an error, or to drop those that began first.

    Returns
    -------
    Matches
        A sequence of dicts, stage name to events, stages in pattern order; matches key by key if
        the events were sorted. ``timeouts`` and ``late`` are attributes of it; those of a table
        have ``toArrow()``, ``toPandas()`` and ``toPolars()``.

    Warns
    -----
    TimeUnitWarning
        If the times are whole numbers that look like epoch seconds.

    Raises
    ------
    InvalidArgumentError
        If an argument is of the wrong kind.
    InputError
        If an event has no usable time or key.
    StateLimitError
        If a key has more partial matches than `maxPartialMatches`.
    NotSupportedError
        If a condition needs Spark and no session is running, or if event lists cannot evaluate the
        pattern, would have to return timeouts or late events, or are given a bound.

    Examples
    --------
    >>> pattern = Pattern.begin("low").where(lambda n: n < 3).next("high").where(lambda n: n > 7)
    >>> match(pattern, [5, 2, 9, 1, 8])
    [{'low': [2], 'high': [9]}, {'low': [1], 'high': [8]}]
    >>> soon = pattern.within(timedelta(milliseconds=1))
    >>> match(soon, [5, 2, 9]).timeouts
    [Timeout(match={'low': [2]}, timestamp=2)]
    """
    if not isinstance(pattern, Pattern):
        raise InvalidArgumentError(
            f"match: expected a Pattern, got {pattern!r}", "write match(pattern, events, ...)"
        )
    check_pattern_evaluation(evaluation)
    limit = PartialMatchLimit.of(maxPartialMatches, onTooManyPartialMatches)
    delay = None if delayThreshold is None else delay_ms(delayThreshold)
    if evaluation == EVENT_LISTS and limit is not None:
        raise NotSupportedError(
            'maxPartialMatches is not available with evaluation="eventLists", which keeps no '
            "partial matches",
            'leave it out, or write evaluation="nfa"',
        )
    table, rest = table_or_rest(events)
    if delay is None and evaluation != EVENT_LISTS:
        columns = _by_columns(pattern, rest, table, timestamp, key, limit)
        if columns is not None:
            return columns
    given = rows_of(rest)
    if evaluation == EVENT_LISTS:
        return _by_lists(pattern, given, timestamp, key, delay)
    exact = _exact_times(given, timestamp)
    key_of = (lambda _: None) if key is None else key_getter(key)
    keys = [grouping_key(key_of(event)) for event in given]
    order = tie_order(given, exact)
    results = arrived(pattern, given, [time // 1000 for time in exact], keys, delay, limit, order)
    found = Matches(match for _, match in results.matches)
    found._timeouts = [Timeout(match, time) for time, match in results.timeouts]
    found.late = results.late_events
    found.numPartialMatchesDropped = results.count_dropped
    return found


def _exact_times(
    given: Sequence[Any], timestamp: str | Callable[[Any], Any] | None
) -> Sequence[int]:
    """Return the times of events in epoch microseconds."""
    if timestamp is None:
        return range(0, 1000 * len(given), 1000)
    return exact_times_of(given, timestamp)


def _by_columns(
    pattern: Pattern,
    events: Any,
    table: Any,
    timestamp: str | Callable[[Any], Any] | None,
    key: str | Sequence[str] | Callable[[Any], Any] | None,
    limit: PartialMatchLimit | None,
) -> Matches[Any] | None:
    """Return the matches of events in columns, or of dicts that can be; None for other events."""
    columns = table_of_dicts(events) if table is None else table
    if columns is None:
        return None
    from pyflinkcep.tables.column_match import ColumnMatch

    analysed = ColumnMatch.of(pattern, columns, timestamp, key)
    return None if analysed is None else analysed.matches(limit, events if table is None else None)


def _by_lists(
    pattern: Pattern,
    given: Sequence[Any],
    timestamp: str | Callable[[Any], Any] | None,
    key: str | Sequence[str] | Callable[[Any], Any] | None,
    delay: int | None,
) -> Matches[Any]:
    if delay is not None:
        raise NotSupportedError(
            'delayThreshold is not available with evaluation="eventLists"', 'write evaluation="nfa"'
        )
    exact = _exact_times(given, timestamp)
    key_of = (lambda _: None) if key is None else key_getter(key)
    keys = [grouping_key(key_of(event)) for event in given]
    found = Matches(chain_matches(pattern, given, exact, keys))
    found._has_timeouts = False
    return found
