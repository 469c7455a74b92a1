# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern on events in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar, overload

import attrs
import numpy as np

from pyflinkcep.engines.choice import EVENT_LISTS, check_pattern_evaluation, chosen_for_pattern
from pyflinkcep.engines.flink.nfa import NFA, EventMatch, NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator, PartialMatchLimit
from pyflinkcep.engines.lists.chain import ChainEvents, PatternChain
from pyflinkcep.engines.queries import chain_frames
from pyflinkcep.errors import (
    EvaluationOfPattern,
    InvalidArgumentError,
    NotSupportedError,
    OnTooManyPartialMatches,
    suggesting,
)
from pyflinkcep.expressions.evaluator import local_expressions
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.pattern import Pattern
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.tables.events import Record, Table, as_event
from pyflinkcep.tables.matches import Matches, Timeout
from pyflinkcep.tables.rows import rows_of, table_of_dicts, table_or_rest
from pyflinkcep.tables.sql import evaluated_here, expressions_over_stages, over_stages
from pyflinkcep.tables.values import delay_ms, exact_times_of, grouping_key, key_getter, tie_order
from pyflinkcep.time import MAX_WATERMARK


@attrs.define(eq=False)
class Arrived:
    """
    What became of events, in order of emission.

    Attributes
    ----------
    matches, timeouts : list of (int, dict)
        The matches and timeouts, each with its time in epoch milliseconds.
    late : list
        The events behind the watermark.
    count_dropped : int
        The number of partial matches dropped because a key had too many.
    """

    matches: list[tuple[int, EventMatch]] = attrs.field(factory=list)
    timeouts: list[tuple[int, EventMatch]] = attrs.field(factory=list)
    late_events: list[Any] = attrs.field(factory=list)
    count_dropped: int = 0

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a match."""
        self.matches.append((timestamp, match))

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a timed-out partial match."""
        self.timeouts.append((timestamp, match))

    def dropped(self, key: Any, count: int) -> None:
        """Receive how many partial matches were dropped because there were too many."""
        self.count_dropped += count

    def late(self, key: Any, event: Any) -> None:
        """Receive a late event."""
        self.late_events.append(event)


def arrived(
    pattern: Pattern,
    events: Sequence[Any],
    times: Sequence[int],
    keys: Sequence[Any],
    delay: int | None,
    limit: PartialMatchLimit | None,
    order: Callable[[Any], Any] | None = None,
) -> Arrived:
    """
    Match events in the order given.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    events : sequence
        The events.
    times : sequence of int, epoch milliseconds
        Their times.
    keys : sequence
        Their keys, hashable.
    delay : int, milliseconds, or None
        How far the watermark is behind the latest time; None if it only comes at the end.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    order : callable, optional
        A sort key for events of one millisecond; by default they keep the order given.
    """
    nfa = NFACompiler.compile(evaluated_here(pattern, events), timeoutHandling=True)
    nfa.open(RuntimeContext())
    found = Arrived()
    expressions = expressions_over_stages(nfa, events) if events else None
    rules = CepOperator(nfa, limit=limit, expressions=expressions)
    operator = KeyedCepOperator(rules, found, order)
    latest: int | None = None
    for event, time, key in zip(events, times, keys, strict=True):
        operator.process_element(key, event, time)
        latest = time if latest is None else max(latest, time)
        if delay is not None:
            operator.advance_watermark(latest - delay - 1)  # as in Flink: this time may still come
    operator.advance_watermark(MAX_WATERMARK)
    return found


def chain_matches(
    pattern: Pattern, given: Sequence[Any], exact: Sequence[int], keys: Sequence[Any]
) -> Iterator[dict[str, list[Any]]]:
    """
    Yield the matches of a pattern, in no particular order.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    given : sequence
        The events.
    exact : sequence of int, epoch microseconds
        Their times.
    keys : sequence
        Their keys.

    Raises
    ------
    NotSupportedError
        If the answer of lists could differ from the automaton's.
    """
    here = evaluated_here(pattern, given)
    nfa = NFACompiler.compile(here)
    expressions, fields = _expressions(nfa, given)
    chosen_for_pattern(here, nfa, expressions, EVENT_LISTS)
    chain = PatternChain.of(here, nfa, expressions)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    places = [numbers[key] for key in keys]
    times = [time // 1000 for time in exact]
    order = sorted(range(len(times)), key=lambda at: (places[at], exact[at]))
    events = [as_event(given[at]) for at in order]
    seen = _Seen(events, fields)
    lists = ChainEvents(
        [times[at] for at in order], seen.holding, seen.field, [places[at] for at in order]
    )
    for frame in chain_frames(chain, lists) if events else ():
        columns = [frame.singles[stage].tolist() for stage in chain.stages]
        for row in zip(*columns, strict=True):
            yield {s: [events[at]] for s, at in zip(chain.stages, row, strict=True)}


@attrs.frozen(eq=False)
class _Seen:
    """The conditions and fields of events."""

    events: Sequence[Any]
    fields: Callable[[Any], Sequence[Any]]

    def holding(self, atom: Atom) -> Any:
        """Return for each event whether a condition holds."""
        return np.fromiter(map(atom.function, self.events), bool, len(self.events))

    def field(self, number: int) -> list[Any]:
        """Return a field of each event."""
        return [self.fields(event)[number] for event in self.events]


def _expressions(
    nfa: NFA, given: Sequence[Any]
) -> tuple[CompiledExpressions | None, Callable[[Any], Sequence[Any]]]:
    named = over_stages(nfa)
    return local_expressions(named, given) if named else (None, lambda _: ())


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
        of a file or folder of Parquet, CSV or JSON lines. Tables are matched column by column.
        Rows and dicts have their fields as attributes too, as on Spark. Without `timestamp` they
        are in order, a millisecond apart.
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
