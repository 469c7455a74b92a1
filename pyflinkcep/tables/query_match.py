# SPDX-License-Identifier: Apache-2.0
"""The events of a table as a query reads them: in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.queries import QueryPlan, by_last_event, last_event
from pyflinkcep.engines.table import EventTable, Numbers
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.matching.columns import Ints, integers
from pyflinkcep.matching.order import order_by
from pyflinkcep.matching.queries import coded, query_found
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.sase.attributes import (
    copied_attributes,
    is_computed,
    output_types,
    queried_attributes,
)
from pyflinkcep.sase.model import Query
from pyflinkcep.sase.types import check_types
from pyflinkcep.tables.event_list import check_attribute
from pyflinkcep.tables.events import Record
from pyflinkcep.tables.found_rows import FoundRows
from pyflinkcep.tables.matches import Matches
from pyflinkcep.tables.order import Keys, Times, ordered
from pyflinkcep.tables.records import records
from pyflinkcep.tables.typed_columns import is_exact, kind_of, numbers
from pyflinkcep.tables.values import Field


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

    @classmethod
    def of(
        cls,
        rows: pa.Table,
        timestamp: Field | None,
        type_: Any,
        query: Query,
        key: Sequence[str] = (),
    ) -> QueryRows | None:
        """
        Return the events of a table, those of each key by themselves.

        None if they can only be read one by one.
        """
        queried, named = queried_attributes(query), output_types(query)
        if not isinstance(type_, str) or any(map(is_computed, (*queried, *named))):
            return None
        for name in (*queried, *named, *copied_attributes(query), type_):
            check_attribute(name, rows.column_names)
        kinds = {name: _kind(rows.column(name)) for name in queried}
        types = rows.column(type_).type
        is_text = kind_of(types) is Kind.STRING
        if not is_text or None in kinds.values():
            return None
        known = {name: kind for name, kind in kinds.items() if kind is not None}
        outputs = {name: _kind(rows.column(name)) for name in named}
        every = {**{n: kind for n, kind in outputs.items() if kind is not None}, **known}
        if check_types(query, every):
            return None  # casts
        times = Times.of(rows, timestamp)
        order, in_time, parts = _partitioned(rows, times, query, key)
        taken = None if order is None else integers(order)
        names = rows.column(type_)
        table = EventTable(
            Numbers(np.ascontiguousarray(times.ms(order))),
            coded(names if taken is None else names.take(taken)),
            {name: _values(rows.column(name), kind, order) for name, kind in known.items()},
            known,
            None if parts is None else Numbers(parts),
        )
        return cls(query, rows, order, in_time, times, table, every)

    def found(self, plan: QueryPlan, is_sorted: bool) -> Iterator[Found]:
        """Yield matches; handles are places in the order of matching."""
        found = query_found(plan, self.table)
        return self._sorted(found) if is_sorted else found

    def _sorted(self, parts: Iterator[Found]) -> Iterator[Found]:
        """Yield matches in the order of a list, which does not tell how they were found."""
        matches = [match for part in parts for _, _, match in part.results()]
        if self.in_time is not None:
            in_time = self.in_time.tolist()
            keys = [
                by_last_event({name: [in_time[at] for at in own] for name, own in match.items()})
                for match in matches
            ]
        else:
            keys = [by_last_event(match) for match in matches]
        results = Results(self.query.variables, wants_timeouts=False)
        for place in sorted(range(len(matches)), key=keys.__getitem__):
            results.match(None, self.table.times[last_event(matches[place])], matches[place])
        yield results.take()

    def row_of(self, places: Any) -> Any:
        """Return the rows of places in the order of matching."""
        return places if self.order is None else self.order[places]

    def matches(self, plan: QueryPlan, is_sorted: bool) -> Matches[Any]:
        """Return the matches, which are made into dicts when they are looked at."""
        parts = [
            attrs.evolve(part, handles=self.row_of(part.handles))
            for part in self.found(plan, is_sorted)
        ]
        variables = self.query.variables
        nothing = Found.of(variables, [b""] * 5)
        found = Found.concat(parts) if parts else nothing
        rows = FoundRows(lambda: self.rows, found, nothing, variables, {}, self.times)
        return Matches.of(rows)

    def listed(
        self, plan: QueryPlan, is_sorted: bool
    ) -> Iterator[tuple[dict[str, list[int]], dict[str, list[Record]]]]:
        """Yield matches one by one: by places, and with their events."""
        for part in self.found(plan, is_sorted):
            events = self.events(part.handles)
            for _, _, match in part.results():
                yield match, {name: [events[at] for at in own] for name, own in match.items()}

    def events(self, places: Ints) -> dict[int, Record]:
        """Return the events at some places."""
        distinct = np.unique(places)
        return dict(zip(distinct.tolist(), records(self.rows, self.row_of(distinct)), strict=True))


def _partitioned(
    rows: pa.Table, times: Times, query: Query, key: Sequence[str]
) -> tuple[Any, Ints | None, Ints | None]:
    """Return the order of events by partition, their places in time, and the partition of each."""
    # Partitions are in the order of their first events in time, as those of a list are.
    order: Any = ordered(times, None)[0]
    names = list(dict.fromkeys((*key, *(() if query.is_global else query.equal))))
    if not names:
        return order, None, None
    own = rows.select(names)
    codes = Keys.of(own if order is None else own.take(integers(order)), names).codes
    assert codes is not None
    grouped = order_by([codes])
    own_parts = codes[grouped].astype(np.int64)
    return (grouped if order is None else order[grouped]), grouped, own_parts


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
