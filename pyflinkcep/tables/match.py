# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern on events in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload

import attrs
import numpy as np

from pyflinkcep.engines.choice import (
    EVENT_LISTS,
    LATEST,
    check_pattern_evaluation,
    chosen_for_pattern,
)
from pyflinkcep.engines.flink.nfa import NFA, EventMatch, Expressions, NFACompiler
from pyflinkcep.engines.flink.operator import (
    CepOperator,
    Input,
    KeyedCepOperator,
    PartialMatchLimit,
)
from pyflinkcep.engines.latest.chain import LatestChain
from pyflinkcep.engines.latest.columns import latest_rules
from pyflinkcep.engines.lists.chain import ChainEvents, PatternChain
from pyflinkcep.engines.queries import chain_frames
from pyflinkcep.errors import (
    EvaluationOfPattern,
    Field,
    InvalidArgumentError,
    KeyFields,
    NotSupportedError,
    OnTooManyPartialMatches,
    suggesting,
)
from pyflinkcep.expressions.evaluator import local_expressions
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.memory import check_memory
from pyflinkcep.matching.threads import usable_cores
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.events import EventT, Record, Table, Timeout
from pyflinkcep.tables.matches import Matches
from pyflinkcep.tables.rows import rows_of, table_of_dicts, table_or_rest
from pyflinkcep.tables.sql import (
    EventConditions,
    evaluated_here,
    expressions_over_stages,
    over_stages,
)
from pyflinkcep.tables.values import delay_ms, exact_times_of, grouping_key, key_getter, tie_order

if TYPE_CHECKING:
    from pyflinkcep.tables.spilling import Spilling


@attrs.frozen(eq=False)
class Run:
    """A pattern and events, ready to be matched one by one, or to be watched."""

    pattern: Pattern  # The pattern, with conditions that can be evaluated here
    nfa: NFA  # The same, compiled
    given: Input  # The events, with times and keys

    @classmethod
    def of(
        cls,
        pattern: Pattern,
        given: list[Any],
        timestamp: str | Callable[[Any], Any] | None,
        key: str | Sequence[str] | Callable[[Any], Any] | None,
        delay: timedelta | None,
    ) -> Run:
        """Compile a pattern for events, and read their times and keys."""
        exact = exact_times_of(given, timestamp)
        key_of = None if key is None else key_getter(key)
        arriving = Input(
            given,
            [time // 1000 for time in exact],
            [None if key_of is None else grouping_key(key_of(event)) for event in given],
            None if delay is None else delay_ms(delay),
            tie_order(given, exact),
        )
        return cls.compiled(pattern, arriving)

    @classmethod
    def compiled(cls, pattern: Pattern, given: Input) -> Run:
        """Compile a pattern for events whose times and keys are known."""
        here = evaluated_here(pattern, given.events)
        nfa = NFACompiler.compile(here, timeoutHandling=True)
        nfa.open(RuntimeContext())
        return cls(here, nfa, given)

    @property
    def expressions(self) -> Expressions | None:
        """The SQL over stages."""
        events = self.given.events
        return expressions_over_stages(self.nfa, events) if events else None

    def matches(
        self, limit: PartialMatchLimit | None = None, *, by_windows: bool = True
    ) -> Matches[Any]:
        """
        Return the matches as the automaton finds them.

        At the end windows end one after another, or all at once, as at a bounded job of Flink's.
        """
        found = Matches[Any]()
        rules = CepOperator(
            self.nfa, limit=limit, expressions=self.expressions, by_windows=by_windows
        )
        keyed = KeyedCepOperator(rules, _Results(found), self.given.order)
        self.given.feed(keyed, by_number=False)
        return found

    def by_latest(self) -> list[dict[str, list[Any]]]:
        """Return the matches of the latest runs, in order of their last events."""
        chain = LatestChain.of(self.pattern, self.nfa)
        events, times, tie = self.given.events, self.given.times, self.given.order
        order = sorted(range(len(times)), key=lambda at: (times[at], tie(events[at]) if tie else 0))
        ranked, ascending = [events[at] for at in order], [times[at] for at in order]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(self.given.keys))}
        keys = np.array([numbers[self.given.keys[at]] for at in order], np.int64)
        offers = chain.offers(EventConditions(self.nfa, ranked, ascending).where, keys)
        times_ms = np.array(ascending, np.int64)
        found = latest_rules([chain.rule]).process(times_ms, offers, is_last=True)
        matches = []
        for _, _, handles in found.listed():
            match: dict[str, list[Any]] = {}
            for stage, at in zip(chain.taking, handles, strict=True):
                match.setdefault(stage, []).append(ranked[at])
            matches.append(match)
        return matches

    def by_lists(self) -> Iterator[dict[str, list[Any]]]:
        """Yield the matches that lists find, in no particular order; refuse other patterns."""
        named = over_stages(self.nfa)
        events, times, keys = self.given.events, self.given.times, self.given.keys
        expressions, fields = local_expressions(named, events) if named else (None, lambda _: ())
        chosen_for_pattern(self.pattern, self.nfa, expressions, EVENT_LISTS)
        chain = PatternChain.of(self.pattern, self.nfa, expressions)
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        places = [numbers[key] for key in keys]
        tie = self.given.order or (lambda _: 0)
        order = sorted(range(len(times)), key=lambda at: (places[at], times[at], tie(events[at])))
        ranked = [events[at] for at in order]
        lists = ChainEvents(
            [times[at] for at in order],
            lambda atom: np.fromiter(map(atom.function, ranked), bool, len(ranked)),
            lambda number: [fields(event)[number] for event in ranked],
            [places[at] for at in order],
        )
        for frame in chain_frames(chain, lists) if ranked else ():
            columns = [frame.singles[stage].tolist() for stage in chain.stages]
            for row in zip(*columns, strict=True):
                yield {s: [ranked[at]] for s, at in zip(chain.stages, row, strict=True)}


@attrs.frozen(eq=False)
class _Results:
    """Receives what becomes of events."""

    found: Matches[Any]

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        self.found.add(match)

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        self.found.timeouts.append(Timeout(match, timestamp))

    def dropped(self, key: Any, count: int) -> None:
        self.found.numPartialMatchesDropped += count

    def late(self, key: Any, event: Any) -> None:
        self.found.late.append(event)


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
    threads: int | None = None,
    memory: int | str | None = None,
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
    threads: int | None = None,
    memory: int | str | None = None,
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
    threads: int | None = None,
    memory: int | str | None = None,
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
        of a file or folder of Parquet, CSV or JSON lines, or such paths by a pattern of names
        (``"day=*/*.parquet"``). Tables are matched column by column.
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
    evaluation : {"auto", "nfa", "eventLists", "latest"}
        How to find the matches. Event lists return the same ones in no particular order, without
        timeouts; ``auto`` keeps Flink's order, and so uses the automaton here. ``latest``, for
        chains by ``followedBy``, has matches of its own, in order of their last events: those of
        the latest partial match at each stage.
    maxPartialMatches : int, at least 1, optional
        The most partial matches of a key.
    onTooManyPartialMatches : {"fail", "dropOldest"}
        The policy for a key with more: an error, or to drop those that began first.
    threads : int, at least 1, optional
        On how many cores keys of large tables are matched at most, by default all that the process
        may use. Conditions that are functions, and texts compared over stages, keep to one.
    memory : int, bytes from 1, or str, optional
        How much memory a match of files may take: bytes, or a text such as ``"2GB"`` or
        ``"512 MiB"``; by default a quarter of the machine's. Events that need more are dealt to
        temporary files, by key, and matched one file after another. The answers are the same.

    Returns
    -------
    Matches
        A sequence of dicts, stage name to events, stages in pattern order; matches key by key if
        the events were sorted. ``timeouts`` and ``late`` are attributes of it; those of a table
        have ``toArrow()``, ``toBatches()``, ``toPandas()``, ``toParquet(path)`` and
        ``toPolars()``.

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
        pattern, would have to return timeouts or late events, or are given a bound. If `memory` is
        given for events that are not in files, with `delayThreshold` or another evaluation, or for
        a condition that can only be evaluated event by event by Spark.

    Examples
    --------
    >>> pattern = Pattern.begin("low").where(lambda n: n < 3).next("high").where(lambda n: n > 7)
    >>> match(pattern, [5, 2, 9, 1, 8])
    [{'low': [2], 'high': [9]}, {'low': [1], 'high': [8]}]
    >>> soon = pattern.within(timedelta(milliseconds=1))
    >>> match(soon, [5, 2, 9]).timeouts
    [Timeout(match={'low': [2]}, timestamp=2)]

    Of files of any size, a part at a time:

    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> folder = tempfile.TemporaryDirectory()
    >>> pq.write_table(pa.table({"n": [5, 2, 9]}), f"{folder.name}/events.parquet")
    >>> pattern = Pattern.begin("low").where("n < 3").next("high").where("n > 7")
    >>> found = match(pattern, f"{folder.name}/*.parquet", memory="2GB")
    >>> [batch.num_rows for batch in found.toBatches()]
    [1]
    >>> folder.cleanup()
    """
    if not isinstance(pattern, Pattern):
        raise InvalidArgumentError(
            f"match: expected a Pattern, got {pattern!r}", "write match(pattern, events, ...)"
        )
    check_pattern_evaluation(evaluation)
    limit = PartialMatchLimit.of(maxPartialMatches, onTooManyPartialMatches)
    count = usable_cores(threads)
    if delayThreshold is not None:
        delay_ms(delayThreshold)
    by_automaton = evaluation not in (EVENT_LISTS, LATEST)
    if not by_automaton and limit is not None:
        kept = "one for each stage" if evaluation == LATEST else "no partial matches"
        raise NotSupportedError(
            f'maxPartialMatches is not available with evaluation="{evaluation}", '
            f"which keeps {kept}",
            'leave it out, or write evaluation="nfa"',
        )
    by_columns = delayThreshold is None and by_automaton
    is_path = isinstance(events, str | os.PathLike)
    in_time = "files, matched in the order of time"
    check_memory(memory, is_file=by_columns and is_path, what=in_time)
    if by_columns and is_path:
        from pyflinkcep.tables.spilling import Spilling  # which loads Arrow
        from pyflinkcep.tables.stored import StoredEvents

        own = Spilling.of(events, memory)
        spilled = _spilled(pattern, own, timestamp, key, limit, count)
        if spilled is not None:
            return spilled.knowing(timestamp, key)
        stored = StoredEvents.of_pattern(events, pattern, timestamp, key, files=own.files)
        on_needed = stored.analysed(pattern, timestamp, key)
        if on_needed is not None:
            return on_needed.matches(limit, count, whole=stored.whole).knowing(timestamp, key)
        events = stored.whole()
    table, rest = table_or_rest(events)
    if by_columns:
        columns = table_of_dicts(rest) if table is None else table
        if columns is not None:
            from pyflinkcep.tables.column_match import ColumnMatch  # which loads Arrow
            from pyflinkcep.tables.row_sql import OnlyByRow

            with suppress(OnlyByRow):
                analysed = ColumnMatch.analysed(pattern, columns, timestamp, key)
                found = analysed.matches(limit, count, rest if table is None else None)
                return found.knowing(timestamp, key)
    given = rows_of(rest)
    if not by_automaton and delayThreshold is not None:
        raise NotSupportedError(
            f'delayThreshold is not available with evaluation="{evaluation}"',
            'write evaluation="nfa"',
        )
    run = Run.of(pattern, given, timestamp, key, delayThreshold)
    if by_automaton:
        return run.matches(limit).knowing(timestamp, key)
    found = Matches(run.by_lists() if evaluation == EVENT_LISTS else run.by_latest())
    found._has_timeouts = False
    return found.knowing(timestamp, key)


def _spilled(
    pattern: Pattern,
    events: Spilling,
    timestamp: Field | None,
    key: KeyFields | None,
    limit: PartialMatchLimit | None,
    threads: int,
) -> Matches[Any] | None:
    """Return the matches on files that do not fit memory; None if they do."""
    from pyflinkcep.tables.row_sql import OnlyByRow
    from pyflinkcep.tables.spilled_match import SpilledMatch

    if events.fits:
        return None
    try:
        return Matches.of(*SpilledMatch(pattern, events, timestamp, key, limit, threads).rows())
    except OnlyByRow as cause:
        if events.memory is None:
            return None
        raise events.refused(
            "the pattern has a condition that can only be evaluated event by event",
            "write its conditions as SQL that match knows, or as functions of the event",
        ) from cause
