# SPDX-License-Identifier: Apache-2.0
"""The matches of a query on any iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, overload

import attrs

from pyflinkcep.choices import EvaluationOfQuery, Output
from pyflinkcep.engines.choice import (
    AUTO,
    Evaluation,
    alternatives,
    chosen,
    chosen_for_compressed,
)
from pyflinkcep.engines.compressed.counting import Total
from pyflinkcep.engines.compressed.matches import CompressedMatches, Measured, read_measure
from pyflinkcep.engines.compressed.windows import TimeWindows, windows_of
from pyflinkcep.engines.flink.operator.limit import PartialMatchLimit, compressed_with_limit
from pyflinkcep.engines.queries import (
    Compressed,
    MatchPositions,
    by_last_event,
    compressed_matches,
    last_event,
    query_matches,
)
from pyflinkcep.engines.sequences.limit import RunLimit
from pyflinkcep.engines.table import EventTable
from pyflinkcep.errors import InvalidArgumentError, suggesting
from pyflinkcep.expressions.evaluator import RowTypes
from pyflinkcep.expressions.sql_types import of_kind
from pyflinkcep.sase import parse
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query
from pyflinkcep.sase.returns import Returns
from pyflinkcep.tables.event_list import EventObjects, attribute_of
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.match_windows import window_totals
from pyflinkcep.tables.rows import table_or_rest

__all__ = ["matchSase"]


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
) -> Sequence[dict[str, Any]] | CompressedMatches:
    """
    Return the matches of a query on a list, or any other iterable, of events.

    Parameters
    ----------
    query : str or SaseQuery
        The query, or its text.
    events : iterable, mapping or table
        The events: dicts, objects with attributes, columns by name, a pandas or polars DataFrame
        or an Arrow table. Without `timestamp` they are in order, a millisecond apart.
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

    Returns
    -------
    list of dict, Matches or CompressedMatches
        Variable to events; with RETURN, column to value; with SLIDE, a row for each window with
        matches. Matches of a table without RETURN are
        :class:`Matches`, made into dicts when they are looked at.

    Raises
    ------
    InvalidArgumentError
        If the text is not a query, or arguments are incompatible.
    InputError
        If the events lack what the query names.
    StateLimitError
        If there are more partial matches than `maxPartialMatches`.
    NotSupportedError
        If the evaluation cannot answer the query, or keeps no partial matches to bound.

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
    if asked.before is not None:
        limited: Any = {"maxPartialMatches": maxPartialMatches}
        events = matchSase(asked.before, events, timestamp, type, evaluation, **limited)
        timestamp, type = EVENT_TIME, EVENT_TYPE
        asked = attrs.evolve(asked, before=None)
    limit = PartialMatchLimit.of(maxPartialMatches, "fail")
    if asked.totals is not None and compressed:
        raise InvalidArgumentError(
            "compressed=True with SLIDE, which totals compressed matches", "leave one of them out"
        )
    compressed = compressed or asked.totals is not None
    if compressed:
        _refuse_compressed(asked, output, limit)
    how = (
        chosen_for_compressed(asked, evaluation)
        if compressed
        else chosen(asked, evaluation, output, limit is not None)
    )
    runs = None if limit is None else RunLimit(limit.most)
    table, rest = table_or_rest(events)
    if table is not None and not compressed:
        is_sorted = _hides_choice(how, asked, evaluation, output)
        found = _by_columns(asked, table, timestamp, type, how, output, runs, is_sorted)
        if found is not None:
            return found
    objects = EventObjects.of(rest, timestamp, type, asked)
    if compressed:
        return _compressed(asked, objects)
    positions_of: Iterable[MatchPositions] = query_matches(
        asked, objects.table, how.for_tables, output, runs
    )
    if _hides_choice(how, asked, evaluation, output):
        positions_of = sorted(positions_of, key=by_last_event)
    returns = Returns(asked, attribute_of, _types(table, objects))
    matches = ((positions, objects.match(positions)) for positions in positions_of)
    return [
        {**_event(asked, objects.table, positions), **returns.row(match)}
        for positions, match in matches
        if returns.keeps(match)
    ]


def _types(table: Any, objects: EventObjects) -> RowTypes:
    """Return the types of attributes: those of a table's columns, or the widest of their kinds."""
    if table is None:
        return RowTypes({name: of_kind(kind) for name, kind in objects.kinds.items()})
    from pyflinkcep.tables.typed_columns import row_types

    return row_types(table.schema)


def _compressed(query: Query, objects: EventObjects) -> CompressedMatches | list[dict[str, Any]]:
    """Return the matches without listing them, or their totals by window."""
    found = CompressedMatches(_Pieces(query, objects))
    if query.totals is None:
        return found
    measures = [read_measure(text, query.variables) for text in query.totals.aggregates]
    return found.of_windows(windows_of(query), measures)


def _hides_choice(how: Evaluation, query: Query, evaluation: str, output: str) -> bool:
    """Whether matches are sorted, so that their order does not tell how they were found."""
    return bool(how.candidates) or (evaluation == AUTO and bool(alternatives(query, output)))


def _by_columns(
    query: Query,
    table: Any,
    timestamp: str | Callable[[Any], Any] | None,
    type_: str | Callable[[Any], Any],
    how: Evaluation,
    output: str,
    runs: RunLimit | None,
    is_sorted: bool,
) -> Sequence[dict[str, Any]] | None:
    """Return the matches on a table; None if its events can only be read one by one."""
    from pyflinkcep.tables.query_match import QueryRows
    from pyflinkcep.tables.typed_columns import row_types

    rows = QueryRows.of(table, timestamp, type_, query)
    if rows is None:
        return None
    if query.columns is None and query.having is None and query.event is None:
        return rows.matches(how, output, runs, is_sorted)
    returns = Returns(query, attribute_of, row_types(table.schema))
    return [
        {**_event(query, rows.table, positions), **returns.row(match)}
        for positions, match in rows.listed(how, output, runs, is_sorted)
        if returns.keeps(match)
    ]


def _event(query: Query, table: EventTable, match: MatchPositions) -> dict[str, Any]:
    """Return the type and the time of the event that a match becomes, if it becomes one."""
    if query.event is None:
        return {}
    return {EVENT_TYPE: query.event, EVENT_TIME: table.times[last_event(match)]}


def _refuse_compressed(query: Query, output: str, limit: PartialMatchLimit | None) -> None:
    if output != "all":
        raise InvalidArgumentError(f'compressed matches with output="{output}"', 'use output="all"')
    if query.having is not None:
        raise InvalidArgumentError(
            "compressed matches with HAVING", "leave it out and filter what unpack() returns"
        )
    if limit is not None:
        raise compressed_with_limit()


@attrs.frozen(eq=False, slots=False)
class _Pieces:
    """The compressed matches in terms of the user's events."""

    query: Query
    objects: EventObjects

    @cached_property
    def found(self) -> Compressed:
        return compressed_matches(self.query, self.objects.table)

    @property
    def variables(self) -> Sequence[str]:
        return self.query.variables

    @property
    def groups(self) -> Sequence[str]:
        return self.query.key

    def matches(self) -> Iterator[dict[str, list[Any]]]:
        return (self.objects.match(found) for found in self.found.matches())

    def totals(self, measures: Sequence[Measured]) -> tuple[int, tuple[Total, ...]]:
        columns = [(str(m.variable), self.objects.measured(m), m.function) for m in measures]
        return self.found.totals(columns)

    def window_totals(
        self, windows: TimeWindows, measures: Sequence[Measured]
    ) -> Iterator[tuple[dict[str, Any], int, Sequence[Total]]]:
        return window_totals(self.query, self.objects, windows, measures)
