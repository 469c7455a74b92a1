# SPDX-License-Identifier: Apache-2.0
"""The matches of a query on any iterable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, overload

import attrs

from pyflinkcep.engines.choice import OUTPUTS, chosen, chosen_for_compressed, hides_choice
from pyflinkcep.engines.compressed.counting import NOTHING, MeasuredValues, Total
from pyflinkcep.engines.compressed.matches import (
    COUNT,
    WINDOW_END,
    WINDOW_START,
    Measured,
    TimeWindows,
    check_names,
    listing,
    read_measure,
    refuse_outside,
    totals_by_window,
    windows_of,
)
from pyflinkcep.engines.flink.operator import PartialMatchLimit, compressed_with_limit
from pyflinkcep.engines.queries import QueryPlan, UnlistedMatches, compressed_matches
from pyflinkcep.engines.sequences.runs import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import (
    EvaluationOfQuery,
    InvalidArgumentError,
    NotSupportedError,
    Output,
    check_choice,
    suggesting,
)
from pyflinkcep.expressions.evaluator import UNTYPED, RowTypes
from pyflinkcep.expressions.program import Kind
from pyflinkcep.expressions.sql_types import of_kind
from pyflinkcep.matching.memory import check_memory
from pyflinkcep.matching.threads import usable_cores
from pyflinkcep.sase import parse
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query
from pyflinkcep.sase.returns import Returns
from pyflinkcep.sase.types import with_exact_literals
from pyflinkcep.tables.event_list import EventObjects, attribute_of, holds_decimals, made_event
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.matches import ListedMatches, OutputTable
from pyflinkcep.tables.rows import rows_of, table_or_rest
from pyflinkcep.tables.values import grouping_key

if TYPE_CHECKING:
    from pyflinkcep.tables.spilling import Spilling

Window = tuple[int, tuple[Any, ...]]
"""The start of a window, and what its events have in common, as Spark groups by it."""


def _events_by_window(
    times: Sequence[int], columns: Sequence[Sequence[Any]], windows: TimeWindows
) -> dict[Window, list[int]]:
    """Return the positions of the events of each window, windows in order of time."""
    found: dict[Window, list[int]] = {}
    for at, time in enumerate(times):
        group = tuple(grouping_key(column[at]) for column in columns)
        for start in windows.starts(time):
            found.setdefault((start, group), []).append(at)
    return dict(sorted(found.items(), key=lambda item: item[0][0]))


def _copied(table: EventTable, positions: Sequence[int], keys: Sequence[int]) -> EventTable:
    """Return a table of copies of events, each of a key."""
    return attrs.evolve(
        table,
        times=[table.times[at] for at in positions],
        types=[table.types[at] for at in positions],
        columns={n: [v[at] for at in positions] for n, v in table.columns.items()},
        keys=keys,
    )


def _taken(values: Sequence[Any] | None, positions: Sequence[int]) -> list[Any] | None:
    return None if values is None else [values[at] for at in positions]


@overload
def matchSase(
    query: str | Query,
    events: Table,
    timestamp: str | Callable[[Any], Any] | None = None,
    type: str | Callable[[Any], Any] = "type",
    evaluation: EvaluationOfQuery = "auto",
    output: Output = "all",
    compressed: Literal[False] = False,
    maxPartialMatches: int | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> Sequence[dict[str, Any]]: ...


@overload
def matchSase(
    query: str | Query,
    events: Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    type: str | Callable[[Any], Any] = "type",
    evaluation: EvaluationOfQuery = "auto",
    output: Output = "all",
    compressed: Literal[False] = False,
    maxPartialMatches: int | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> list[dict[str, Any]]: ...


@overload
def matchSase(
    query: str | Query,
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    type: str | Callable[[Any], Any] = "type",
    evaluation: EvaluationOfQuery = "auto",
    output: Output = "all",
    *,
    compressed: Literal[True],
    maxPartialMatches: None = None,
    threads: int | None = None,
    memory: None = None,
) -> CompressedMatches: ...


@suggesting
def matchSase(
    query: str | Query,
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    type: str | Callable[[Any], Any] = "type",
    evaluation: EvaluationOfQuery = "auto",
    output: Output = "all",
    compressed: bool = False,
    maxPartialMatches: int | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> Sequence[dict[str, Any]] | CompressedMatches:
    """
    Return the matches of a query on a list, or any other iterable, of events.

    Parameters
    ----------
    query : str or SaseQuery
        The query, or its text.
    events : iterable, mapping or table
        The events: dicts, objects with attributes, columns by name, a pandas or polars DataFrame,
        an Arrow table, or the path of a file or folder. Without `timestamp` they are in order, a
        millisecond apart.
    timestamp : str or callable, optional
        The attribute or function of an event's time: epoch milliseconds, or a datetime
        (UTC if it has no zone). Events are first sorted by time.
    type : str or callable
        The attribute or function of an event's type.
    evaluation : {"auto", "nfa", "backtracking", "eventLists"}
        How to find the matches; they are the same.
    output : {"all", "onePerStart", "nonOverlapping"}
        All matches; the first of those that begin with the same event; or non-overlapping matches,
        in each partition.
    compressed : bool
        Whether to return the matches without listing them; for ``output="all"``.
    maxPartialMatches : int, at least 1, optional
        The most partial matches of a query of ``SEQ``, an error beyond; equal ones that are merged
        count once.
    threads : int, at least 1, optional
        On how many cores partitions of large tables are matched at most, by default all that the
        process may use. Conditions on texts or decimals keep to one.
    memory : int, bytes from 1, or str, optional
        How much memory files may take, as for :func:`match`. The events of each partition, and the
        matches of some partitions, have to fit.

    Returns
    -------
    list of dict, Matches or CompressedMatches
        Variable to events, which notebooks show as a table; with RETURN, column to value; with
        SLIDE, a row for each window with matches. Matches of a table without RETURN are
        :class:`Matches`, made into dicts when they are looked at; with RETURN, of files larger than
        memory, rows are :class:`OutputTable`.

    Raises
    ------
    InvalidArgumentError
        If the text is not a query, or arguments are incompatible.
    InputError
        If the events lack what the query names.
    StateLimitError
        If there are more partial matches than `maxPartialMatches`.
    NotSupportedError
        If the evaluation cannot answer the query, or keeps no partial matches to bound. If `memory`
        is given for events that are not in files, or too small for a query that has all of them in
        memory: without `[attribute]`, with THEN, or matches that are joined or not listed.

    Examples
    --------
    >>> trades = [{"type": "Stock", "price": p} for p in (100, 120, 90)]
    >>> query = "PATTERN SEQ(Stock a, Stock b) WHERE skip_till_any_match AND b.price > a.price"
    >>> matchSase(query + " RETURN a.price, b.price AS later", trades)
    [{'a_price': 100, 'later': 120}]
    >>> matchSase(query, trades, compressed=True).count()
    1
    """
    asked = parse(query) if isinstance(query, str) else query
    if not isinstance(asked, Query):
        raise InvalidArgumentError(
            f"expected a query or its text, got {query!r}", "pass the result of parse(...)"
        )
    check_memory(memory, is_file=isinstance(events, str | os.PathLike))
    is_of_events = asked.before is not None
    if asked.before is not None:
        limited: Any = {"maxPartialMatches": maxPartialMatches, "threads": threads}
        events = matchSase(asked.before, events, timestamp, type, evaluation, **limited)
        timestamp, type = EVENT_TIME, EVENT_TYPE
        asked = attrs.evolve(asked, before=None)
    check_choice("compressed", compressed, (False, True))
    check_choice("output", output, OUTPUTS)
    limit = PartialMatchLimit.of(maxPartialMatches, "fail")
    count = usable_cores(threads)
    if asked.totals is not None and compressed:
        raise InvalidArgumentError(
            "compressed=True with SLIDE, which totals compressed matches", "leave one of them out"
        )
    compressed = compressed or asked.totals is not None
    if compressed:
        _refuse_compressed(asked, output, limit)
    if memory is not None and (compressed or is_of_events):
        raise NotSupportedError(
            f"memory={memory!r} with matches that are not listed, or with THEN",
            "leave it out: such queries have all events in memory",
        )
    how = (
        chosen_for_compressed(asked, evaluation)
        if compressed
        else chosen(asked, evaluation, output, limit is not None)
    )
    runs = None if limit is None else RunLimit(limit.most)
    spilled = None
    if isinstance(events, str | os.PathLike) and not compressed and not is_of_events:
        spilled = _spilling(events, memory)
    table, rest = table_or_rest(events) if spilled is None else (spilled.nothing, ())
    declared = _decimals(table)
    rest = rest if table is not None else rows_of(rest)
    has_decimals = partial(holds_decimals, rest) if table is None else declared.types.__contains__
    asked = with_exact_literals(asked, has_decimals)
    plan = QueryPlan(asked, how.for_tables, output, runs)
    is_sorted = hides_choice(asked, evaluation, output)
    if spilled is not None:
        rows_on_disk = _spilled(spilled, plan, table, timestamp, type, is_sorted, count)
        if rows_on_disk is not None:
            return rows_on_disk
        table, rest = table_or_rest(events)
    given = None
    if table is not None and not compressed:
        from pyflinkcep.tables.query_match import QueryRows  # which loads Arrow

        given = QueryRows.of(table, timestamp, type, asked, threads=count)
    has_events = asked.columns is None and asked.event is None
    if given is not None and has_events and asked.having is None:
        own = given.matches(plan, is_sorted)
        return own.knowing(timestamp, asked.key or None)
    objects = given or EventObjects.of(rest, timestamp, type, asked, declared)
    if isinstance(objects, EventObjects) and compressed:
        return _compressed(asked, objects)
    returns = Returns(asked, attribute_of, _types(table, objects.kinds))
    rows = [
        made_event(asked, objects.table, positions) | returns.row(match)
        for positions, match in objects.listed(plan, is_sorted)
        if returns.keeps(match)
    ]
    return ListedMatches(rows).knowing(timestamp, asked.key or None) if has_events else rows


def _spilling(path: str | os.PathLike[str], memory: int | str | None) -> Spilling | None:
    """Return the events of files that do not fit memory; None if they do."""
    from pyflinkcep.tables.spilling import Spilling  # which loads Arrow

    events = Spilling.of(path, memory)
    return None if events.fits else events


def _spilled(
    events: Spilling,
    plan: QueryPlan,
    table: Any,
    timestamp: Any,
    type_: Any,
    is_sorted: bool,
    threads: int,
) -> Sequence[dict[str, Any]] | None:
    """Return the matches on files that do not fit memory; None if all have to be in memory."""
    from pyflinkcep.tables.query_match import SpilledQuery
    from pyflinkcep.tables.row_sql import OnlyByRow

    returns = Returns(plan.query, attribute_of, _types(table, {}))
    job = SpilledQuery(events, plan, returns, timestamp, type_, is_sorted, threads)
    try:
        found = job.found()
        if isinstance(found, OutputTable):
            return found
        return found.knowing(timestamp, plan.query.key or None)
    except (NotSupportedError, OnlyByRow) as cause:
        if events.memory is None:
            return None
        if isinstance(cause, NotSupportedError):
            raise
        hint = "compare attributes as they are, or give it more memory"
        raise events.refused(str(cause), hint) from cause


def _decimals(table: Any) -> RowTypes:
    """Return the types of a table's columns that hold decimals."""
    if table is None:
        return UNTYPED
    from pyflinkcep.tables.typed_columns import row_types

    types = row_types(table.schema).types
    return RowTypes({name: own for name, own in types.items() if own and own.name == "decimal"})


def _types(table: Any, kinds: Mapping[str, Kind]) -> RowTypes:
    """Return the types of attributes: those of a table's columns, or the widest of their kinds."""
    if table is None:
        return RowTypes({name: of_kind(kind) for name, kind in kinds.items()})
    from pyflinkcep.tables.typed_columns import row_types

    return row_types(table.schema)


def _compressed(query: Query, objects: EventObjects) -> CompressedMatches | list[dict[str, Any]]:
    """Return the matches without listing them, or their totals by window."""
    found = CompressedMatches(query, objects)
    if query.totals is None:
        return found
    measures = [read_measure(text, query.variables) for text in query.totals.aggregates]
    return found.of_windows(windows_of(query), measures)


def _refuse_compressed(query: Query, output: str, limit: PartialMatchLimit | None) -> None:
    if output != "all":
        raise InvalidArgumentError(f'compressed matches with output="{output}"', 'use output="all"')
    if query.having is not None:
        raise InvalidArgumentError(
            "compressed matches with HAVING", "leave it out and filter what unpack() returns"
        )
    if limit is not None:
        raise compressed_with_limit()


@attrs.frozen(eq=False, repr=False, slots=False)
class CompressedMatches:
    """
    The matches of a query or a pattern on a list, compressed.

    Nothing is listed: work and memory grow with the events and the states of the query, not
    with the number of matches.
    """

    _query: Query
    _objects: EventObjects

    @cached_property
    def _found(self) -> UnlistedMatches:
        return compressed_matches(self._query, self._objects.table)

    def count(self) -> int:
        """Return the number of matches, exactly, however large."""
        return self._found.totals(())[0]

    @overload
    def aggregate(self, *texts: str, window: None = None, slide: None = None) -> dict[str, Any]: ...

    @overload
    def aggregate(
        self, *texts: str, window: timedelta | str, slide: timedelta | str | None = None
    ) -> list[dict[str, Any]]: ...

    def aggregate(
        self,
        *texts: str,
        window: timedelta | str | None = None,
        slide: timedelta | str | None = None,
    ) -> dict[str, Any] | list[dict[str, Any]]:
        """
        Return aggregates over the events of variables in all matches, or in those of each window.

        Examples
        --------
        >>> from pyflinkcep.testing import matchSase
        >>> events = [{"type": t, "ts": n} for n, t in enumerate("ABABB")]
        >>> found = matchSase("PATTERN SEQ(A a, B b)", events, "ts", compressed=True)
        >>> found.aggregate("count(*)"), found.aggregate(window="4 milliseconds")
        ({'count(*)': 5}, [{'windowStart': 0, 'windowEnd': 4, 'count': 3}])
        """
        wanted = [read_measure(text, self._query.variables) for text in texts]
        windows = TimeWindows.of(window, slide)
        if windows is None:
            check_names((), wanted)
            return self._row(wanted, *self._found.totals(self._columns(wanted)))
        return self.of_windows(windows, wanted)

    def of_windows(self, windows: TimeWindows, wanted: Sequence[Measured]) -> list[dict[str, Any]]:
        """Return the rows of windows."""
        check_names([*self._query.key, WINDOW_START, WINDOW_END, COUNT], wanted)
        return [
            {**window, COUNT: count, **self._row(wanted, count, totals)}
            for window, count, totals in self._window_totals(windows, wanted)
        ]

    def _row(
        self, wanted: Sequence[Measured], count: int, totals: Sequence[Total]
    ) -> dict[str, Any]:
        found = iter(totals)
        return {
            w.name: w.result(count, NOTHING if w.variable is None else next(found)) for w in wanted
        }

    def unpack(self, limit: int | None = None) -> list[dict[str, list[Any]]]:
        """Enumerate matches lazily."""
        if limit is not None and limit < 0:
            raise InvalidArgumentError(f"unpack(limit={limit})", "pass 0 or more, or no limit")
        return list(islice(iter(self), limit))

    def __iter__(self) -> Iterator[dict[str, list[Any]]]:
        return (self._objects.match(found) for found in self._found.matches())

    def _columns(self, wanted: Iterable[Measured]) -> list[MeasuredValues]:
        """Return what aggregates over events read, not those over matches alone."""
        return [
            (one.variable, self._objects.measured(one), one.function)
            for one in wanted
            if one.variable is not None
        ]

    def _window_totals(
        self, windows: TimeWindows, wanted: Sequence[Measured]
    ) -> Iterator[tuple[dict[str, Any], int, Sequence[Total]]]:
        """Yield for each window with matches its columns, their number and the totals."""
        query, objects = self._query, self._objects
        refuse_outside(query)
        columns = [objects.values(name) for name in query.key]
        every = _events_by_window(objects.table.times, columns, windows)
        positions = list(chain.from_iterable(every.values()))
        numbers = [number for number, own in enumerate(every.values()) for _ in own]
        plain = query if query.totals is None else listing(query)
        found = compressed_matches(plain, _copied(objects.table, positions, numbers))
        values = [(name, _taken(own, positions), how) for name, own, how in self._columns(wanted)]
        ended = totals_by_window(found.totals_by_event, values, numbers)
        groups = [(start, own[0]) for (start, _), own in every.items()]
        for at, count, totals in sorted(ended, key=lambda one: numbers[one[0]]):
            start, first = groups[numbers[at]]
            group = {name: own[first] for name, own in zip(query.key, columns, strict=True)}
            times = {WINDOW_START: start, WINDOW_END: start + windows.length}
            yield {**group, **times}, count, totals
