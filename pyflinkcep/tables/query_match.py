# SPDX-License-Identifier: Apache-2.0
"""A query on a table, whose events it reads in columns; and on files that do not fit memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.choice import EVENT_LISTS, resolved
from pyflinkcep.engines.queries import QueryPlan
from pyflinkcep.engines.table import EventTable, Numbers
from pyflinkcep.errors import Field
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.matching.columns import Ints, integers
from pyflinkcep.matching.order import order_by
from pyflinkcep.matching.queries import coded, query_found
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.threads import cuts, results
from pyflinkcep.sase.attributes import (
    copied_attributes,
    is_computed,
    output_types,
    queried_attributes,
    references,
)
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query
from pyflinkcep.sase.returns import Returns
from pyflinkcep.sase.types import check_types
from pyflinkcep.tables.event_list import check_attribute, made_event
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.found_rows import (
    MOST_EVENTS,
    FoundRows,
    OutputWriter,
    Part,
    Results,
    Run,
    SpilledRows,
)
from pyflinkcep.tables.matches import Matches, OutputTable
from pyflinkcep.tables.order import Keys, Times, column_of, ordered
from pyflinkcep.tables.records import records
from pyflinkcep.tables.row_sql import OnlyByRow
from pyflinkcep.tables.spilling import Spilling
from pyflinkcep.tables.typed_columns import is_exact, kind_of, numbers


@attrs.frozen(eq=False)
class QueryRows:
    """A query on a table."""

    query: Query  # The query
    rows: pa.Table  # The events
    order: Any  # Their rows in the order of matching; None if they are in order
    in_time: Ints | None  # The place of each in the order of time; None if that is the same
    times: Times  # The times of events
    table: EventTable  # The columns that the query reads, in the order of matching
    # The kinds of the attributes in it, and in HAVING and RETURN, as far as they are known.
    kinds: Mapping[str, Kind]
    threads: int = 1  # On how many cores to match

    @classmethod
    def of(
        cls,
        rows: pa.Table,
        timestamp: Field | None,
        type_: Any,
        query: Query,
        key: Sequence[str] = (),
        threads: int = 1,
    ) -> QueryRows | None:
        """
        Return the events of a table, those of each key by themselves.

        None if they can only be read one by one.
        """
        kinds = query_kinds(rows, type_, query)
        if kinds is None:
            return None
        known, every = kinds
        times = Times.of(rows, timestamp)
        order, in_time, parts = _partitioned(rows, times, query, key)
        taken = None if order is None else integers(order)
        names = rows.column(type_)
        numbered = [name for name in known if name in _texts_of_keys(query, known)]
        own = {name: kind for name, kind in known.items() if name not in numbered}
        table = EventTable(
            Numbers(np.ascontiguousarray(times.ms(order))),
            coded(names if taken is None else names.take(taken)),
            {
                **{name: _values(rows.column(name), kind, order) for name, kind in own.items()},
                **{name: _codes(rows.column(name), order) for name in numbered},
            },
            own | dict.fromkeys(numbered, Kind.BIGINT),
            None if parts is None else Numbers(parts),
        )
        return cls(query, rows, order, in_time, times, table, every, threads)

    def found(self, plan: QueryPlan, is_sorted: bool) -> Found:
        """Return the matches; handles are places in the order of matching."""
        parts = results(self._shares(plan, is_sorted), self.threads)
        found = list(chain.from_iterable(parts))
        if not found:
            return Found.of(self.query.variables, [b""] * 5)
        every = Found.concat(found)
        if not is_sorted:
            return every
        places = every.handles if self.in_time is None else self.in_time[every.handles]
        return every.taken(_by_last_event(every, places))

    def _shares(self, plan: QueryPlan, is_sorted: bool) -> list[Callable[[], list[Found]]]:
        """Return the events in shares of whole partitions, as many as threads can make use of."""
        table = self.table
        how = resolved(plan.query, table, plan.evaluation, plan.output)
        plan, size = attrs.evolve(plan, evaluation=how), len(table.times)
        # The order in which lists are joined depends on all; composed queries go word by word.
        is_whole = (how == EVENT_LISTS or plan.query.is_composed) and not is_sorted
        has_texts = any(kind.type in (Type.TEXT, Type.DECIMAL) for kind in table.kinds.values())
        if table.keys is None or is_whole or has_texts:  # with these threads would take turns
            return [partial(_found, plan, table, 0)]
        keys = np.asarray(table.keys)
        begins = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]][:size])
        return [
            partial(_found, plan, table.between(begin, end), begin)
            for begin, end in pairwise(cuts(begins, size, self.threads))
        ]

    def row_of(self, places: Any) -> Any:
        """Return the rows of places in the order of matching."""
        return places if self.order is None else self.order[places]

    def matches(self, plan: QueryPlan, is_sorted: bool) -> Matches[Any]:
        """Return the matches, which are made into dicts when they are looked at."""
        found = self.found(plan, is_sorted)
        found = attrs.evolve(found, handles=self.row_of(found.handles))
        variables = self.query.variables
        nothing = Found.of(variables, [b""] * 5)
        rows = FoundRows(lambda: self.rows, found, nothing, variables, {}, self.times)
        return Matches.of(rows)

    def listed(
        self, plan: QueryPlan, is_sorted: bool
    ) -> Iterator[tuple[dict[str, list[int]], dict[str, list[Record]]]]:
        """Yield matches one by one: by places, and with their events."""
        for part in self.found(plan, is_sorted).parts(MOST_EVENTS):
            yield from self.listed_of(part)

    def listed_of(
        self, found: Found
    ) -> Iterator[tuple[dict[str, list[int]], dict[str, list[Record]]]]:
        """Yield some matches one by one."""
        events = self.events(found.handles)
        for _, _, match in found.results():
            yield match, {name: [events[at] for at in own] for name, own in match.items()}

    def ordering_rows(self, found: Found, is_sorted: bool) -> Any:
        """
        Return for each match the row by whose time it is ordered among those of all partitions.

        That is its last event if matches are sorted, and otherwise the first of its partition.
        """
        assert self.in_time is not None
        assert self.table.keys is not None
        if is_sorted:
            last = np.maximum.reduceat(self.in_time[found.handles], found.firsts)
            place_of = np.empty_like(self.in_time)
            place_of[self.in_time] = np.arange(len(place_of))
            return self.row_of(place_of[last])
        keys = np.asarray(self.table.keys)
        return self.row_of(np.searchsorted(keys, keys[found.handles[found.firsts]]))

    def events(self, places: Ints) -> dict[int, Record]:
        """Return the events at some places."""
        distinct = np.unique(places)
        return dict(zip(distinct.tolist(), records(self.rows, self.row_of(distinct)), strict=True))


def _found(plan: QueryPlan, table: EventTable, begin: int) -> list[Found]:
    """Return the matches of some partitions, by places among all events; theirs begin at one."""
    found = query_found(plan, table)
    return [attrs.evolve(part, handles=part.handles + begin) for part in found]


def _by_last_event(found: Found, places: Ints) -> Ints:
    """Return an order of matches that does not tell how they were found; see ``by_last_event``."""
    # A match as numbers: its last event, then the events of each variable with a 0 behind them.
    count, size = len(found), len(places)
    match_of = np.repeat(np.arange(count), found.ends - found.firsts)
    own = match_of * len(found.stages) + found.stage_of
    order = np.argsort(own, kind="stable")  # which takes no time where they are sorted
    changes = np.diff(own[order], prepend=-1) != 0
    slots = np.arange(size) + match_of + np.cumsum(changes)
    begins = slots[found.firsts] - 1
    ends = np.append(begins[1:], size + count + np.count_nonzero(changes))
    tokens = np.zeros(ends[-1], ">i8")
    tokens[slots] = places[order] + 1
    tokens[begins] = np.maximum.reduceat(places, found.firsts) + 1
    if (ends - begins == ends[0]).all():
        rows = tokens.astype(np.int64).reshape(count, -1).T
        return np.lexsort([row for row in rows[::-1] if row.any()])
    data, width = tokens.tobytes(), tokens.itemsize
    bounds = zip((begins * width).tolist(), (ends * width).tolist(), strict=True)
    keys = [data[begin:end] for begin, end in bounds]
    return np.array(sorted(range(count), key=keys.__getitem__), np.int64)


def query_kinds(
    rows: pa.Table, type_: Any, query: Query
) -> tuple[dict[str, Kind], dict[str, Kind]] | None:
    """
    Return the types of what conditions read, and of that with what HAVING and RETURN read.

    None if events can only be read one by one.
    """
    queried, named = queried_attributes(query), output_types(query)
    if not isinstance(type_, str) or any(map(is_computed, (*queried, *named))):
        return None
    for name in (*queried, *named, *copied_attributes(query), type_):
        check_attribute(name, rows.column_names)
    kinds = {name: _kind(rows.column(name)) for name in queried}
    is_text = kind_of(rows.column(type_).type) is Kind.STRING
    if not is_text or None in kinds.values():
        return None
    known = {name: kind for name, kind in kinds.items() if kind is not None}
    outputs = {name: _kind(rows.column(name)) for name in named}
    every = {**{n: kind for n, kind in outputs.items() if kind is not None}, **known}
    return None if check_types(query, every) else (known, every)  # casts


def _partitioned(
    rows: pa.Table, times: Times, query: Query, key: Sequence[str]
) -> tuple[Any, Ints | None, Ints | None]:
    """Return the order of events by partition, their places in time, and the partition of each."""
    # Partitions are in the order of their first events in time, as those of a list are.
    order: Any = ordered(times, None)[0]
    names = partition_names(query, key)
    if not names:
        return order, None, None
    own = pa.table({name: column_of(rows, name, "key") for name in names})
    codes = Keys.of(own if order is None else own.take(integers(order)), names).codes
    assert codes is not None
    grouped = order_by([codes])
    own_parts = codes[grouped].astype(np.int64)
    return (grouped if order is None else order[grouped]), grouped, own_parts


def partition_names(query: Query, key: Sequence[str]) -> list[str]:
    """Return the columns whose values all events of a match have in common."""
    return list(dict.fromkeys((*key, *(() if query.is_global else query.equal))))


def _texts_of_keys(query: Query, kinds: Mapping[str, Kind]) -> set[str]:
    """Return the texts that are only compared with those of other events of their partition."""
    read = {r.attribute for condition in query.conditions for r in references(condition)}
    read.update(name for name, _ in query.constants)
    return {name for name in query.equal if kinds.get(name) is Kind.STRING and name not in read}


def _codes(column: pa.ChunkedArray, order: Any) -> Sequence[Any]:
    """Return texts as numbers that tell them apart, in order, masked where they are NULL."""
    codes = Keys.of(pa.table({"": column}), "").codes
    assert codes is not None
    found = pa.array(codes.astype(np.int64), mask=column.is_null().to_numpy())
    return _values(pa.chunked_array([found]), Kind.BIGINT, order)


def _kind(column: pa.ChunkedArray) -> Kind | None:
    """Return the type of an attribute; None for one that is not read in columns."""
    kind = kind_of(column.type)
    if kind is not None and kind.is_decimal:
        return kind
    if kind is None or not is_exact(column) or _do_not_fit(column, kind):
        return None
    if kind is Kind.TIMESTAMP_NTZ:
        return Kind.TIMESTAMP  # of a clock in UTC
    return None if kind is Kind.INTERVAL else kind


def _do_not_fit(column: pa.ChunkedArray, kind: Kind) -> bool:
    """Whether a column has numbers that do not fit 64 bits."""
    return kind is not Kind.STRING and numbers(column, kind) is None


def _values(column: pa.ChunkedArray, kind: Kind, order: Any) -> Sequence[Any]:
    """Return an attribute in order, masked where it is NULL; texts and long decimals as a list."""
    if kind.type in (Type.TEXT, Type.DECIMAL):
        taken = column if order is None else column.take(integers(order))
        listed: list[Any] = taken.to_pylist()
        return listed
    own = numbers(column, kind)
    assert own is not None
    size = len(column)
    found = own.values(0, size) if order is None else own.taken(order)
    if found.nulls is False or not np.any(found.nulls):
        return found.data  # type: ignore[no-any-return]
    masked: Any = np.ma.MaskedArray(found.data, found.nulls)
    return masked  # type: ignore[no-any-return]


_POSITION_BITS = 53  # of a number that also has the microseconds of a time


@attrs.frozen(eq=False)
class SpilledQuery:
    """A query on files."""

    events: Spilling  # The events
    plan: QueryPlan  # The query, and how it is evaluated
    returns: Returns  # Its HAVING and RETURN
    timestamp: Field | None  # The time of events
    type: Any  # Their type
    is_sorted: bool  # Whether matches are sorted by their last events
    threads: int  # On how many cores to match

    @property
    def _query(self) -> Query:
        return self.plan.query

    def found(self) -> Matches[Any] | OutputTable:
        """Return what ``matchSase`` returns, which is on disk; refuse what needs all events."""
        key = partition_names(self._query, ())
        if not key:
            raise self.events.refused(
                "its query has one partition for all of them",
                "give it more memory, or partition them: WHERE [attribute], with "
                "partition_contiguity in place of strict_contiguity",
            )
        is_joined = self.plan.evaluation == EVENT_LISTS or self._query.is_composed
        if is_joined and not self.is_sorted:
            raise self.events.refused(
                "the order of these matches is one of all partitions",
                'give it more memory, or leave evaluation="auto" and output="all"',
            )
        if self._rows(self.events.nothing) is None:
            raise self._only_by_event()
        if self._query.columns is None and self._query.event is None:
            return self._matches(key)
        return self._output(key)

    def _rows(self, events: pa.Table) -> QueryRows | None:
        return QueryRows.of(events, self.timestamp, self.type, self._query, threads=self.threads)

    def _only_by_event(self) -> OnlyByRow:
        return OnlyByRow("the query has a condition, or a column, that is read event by event")

    def _matches(self, key: Sequence[str]) -> Matches[Any]:
        """Return matches with their events."""

        def match(events: pa.Table, positions: Ints, run: Run) -> int:
            rows, parts = self._found(events)
            for found in parts:
                kept = found
                if self._query.having is not None:
                    matches = (match for _, match in rows.listed_of(found))
                    kept = found.only(np.fromiter(map(self.returns.keeps, matches), bool))
                if len(kept):
                    own = attrs.evolve(kept, handles=rows.row_of(kept.handles))
                    places = self._places(rows, kept, positions)
                    run.add(Part.of(own, *places, lambda at: events.take(integers(at))))
            return _keys(rows)

        nothing = self.events.nothing
        return Matches.of(
            SpilledRows(
                self.events.found(key, match),
                Results([]),
                self._query.variables,
                self._query.variables,
                nothing.column_names,
                {},
                Times.of(nothing, self.timestamp),
                nothing.schema,
            )
        )

    def _output(self, key: Sequence[str]) -> OutputTable:
        """Return what the query makes of matches."""
        names = [] if self._query.event is None else [EVENT_TYPE, EVENT_TIME]
        names += [column.name for column in self._query.columns or ()]
        writer = OutputWriter(pa.schema([(name, pa.null()) for name in names]))

        def match(events: pa.Table, positions: Ints, run: Run) -> int:
            rows, parts = self._found(events)
            for found in parts:
                listed = list(rows.listed_of(found))
                kept = np.array([self.returns.keeps(match) for _, match in listed])
                own = [
                    made_event(self._query, rows.table, places) | self.returns.row(match)
                    for (places, match), is_kept in zip(listed, kept, strict=True)
                    if is_kept
                ]
                if own:
                    at = self._places(rows, found.only(kept), positions)
                    self._write(writer, run, own, at)
            return _keys(rows)

        results = self.events.found(key, match)
        return OutputTable.spilled(writer.output(results))

    def _found(self, events: pa.Table) -> tuple[QueryRows, Iterator[Found]]:
        """Return events as the query reads them, and its matches, some at a time."""
        rows = self._rows(events)
        if rows is None:
            raise self._only_by_event()
        return rows, rows.found(self.plan, self.is_sorted).parts(MOST_EVENTS)

    def _places(self, rows: QueryRows, found: Found, positions: Ints) -> tuple[Ints, Ints]:
        """Return the places of matches among those of all partitions: times, and what is finer."""
        at = rows.ordering_rows(found, self.is_sorted)
        ms = rows.times.ms(at)
        finer = rows.times.exact_at(at) - ms * min(rows.times.per_ms, 1_000)
        # Times that a function returns have microseconds in some files and not in others.
        return ms, finer << _POSITION_BITS | positions[at]

    def _write(
        self,
        writer: OutputWriter,
        run: Run,
        rows: Sequence[Mapping[str, Any]],
        places: tuple[Ints, Ints],
    ) -> None:
        """Write rows in columns of the types of their values."""
        try:
            columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
            writer.write(run, pa.table(columns), *places)
        except (pa.ArrowException, OverflowError, TypeError) as cause:
            raise self.events.refused(
                f"what the query returns has no types in columns: {cause}",
                "return values of one type in each column, or give it more memory",
            ) from cause


def _keys(rows: QueryRows) -> int:
    """Return how many partitions there are."""
    return len(np.unique(np.asarray(rows.table.keys)))
