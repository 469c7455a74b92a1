# SPDX-License-Identifier: Apache-2.0
"""The matches of a query on a table of events, as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.choice import EVENT_LISTS, resolved
from pyflinkcep.engines.compressed.counting import MatchArrays
from pyflinkcep.engines.queries import (
    QueryPlan,
    last_event,
    list_frames,
    match_arrays,
    query_matches,
)
from pyflinkcep.engines.table import Coded, EventTable, Numbers
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.matching.columns import Ints, doubles
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.sase.model import Query


@attrs.frozen(eq=False)
class QueryColumns:
    """The columns that a query reads from events."""

    layout: Layout  # The columns of the events
    type_column: str  # The column that holds an event's type
    kinds: Mapping[str, Kind]  # The types of the attributes that conditions read
    # The columns of the attributes that Spark computed.
    computed: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns read."""
        time = self.layout.time_column
        attributes = (self.computed.get(name, name) for name in self.kinds)
        return list(dict.fromkeys([str(time), self.type_column, *attributes]))

    def table(
        self, events: pa.Table, keys: Ints, starts: Sequence[bool] | None = None
    ) -> EventTable:
        """Return events as a query sees them."""
        return EventTable(
            Numbers(self.layout.times_ms(events)),
            coded(events.column(self.type_column)),
            {
                name: _column(events.column(self.computed.get(name, name)), kind)
                for name, kind in self.kinds.items()
            },
            self.kinds,
            Numbers(keys),
            starts,
        )


def coded(types: pa.ChunkedArray) -> Coded:
    """Return types as codes; the last name is None."""
    whole = types.combine_chunks().dictionary_encode()
    names = whole.dictionary.to_pylist()
    own = whole.indices
    codes = (own.fill_null(len(names)) if own.null_count else own).to_numpy()
    return Coded(codes, [*names, None])


def _column(column: pa.ChunkedArray, kind: Kind) -> Any:
    """Return a column as an array, masked where it is null; texts and long decimals as a list."""
    if kind.type in (Type.TEXT, Type.DECIMAL):
        return column.to_pylist()
    wanted = pa.float64() if kind.type == Type.FLOAT else pa.int64()
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_decimal(column.type):
        column = doubles(column)
    column = column.cast(wanted, safe=False)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    data = column.fill_null(0).to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(data, nulls) if nulls.any() else data


def found_of_columns(
    variables: Sequence[str], columns: Sequence[Ints], times: Sequence[int] | Ints
) -> Found:
    """Return matches of single events, given as a column of positions for each variable."""
    size, width = len(columns[0]), len(columns)
    positions = np.stack(columns, axis=1).reshape(-1)
    ends = np.arange(1, size + 1, dtype=np.int64) * width
    components = np.tile(np.arange(width, dtype=np.int32), size)
    return found_of_arrays(variables, MatchArrays(positions, ends, components), times)


def found_of_arrays(
    variables: Sequence[str], matches: MatchArrays, times: Sequence[int] | Ints
) -> Found:
    """Return matches that are arrays already."""
    kinds, lasts = np.ones(len(matches), np.uint8), matches.positions[matches.ends - 1]
    at = np.asarray(times, np.int64)[lasts]
    return Found(variables, kinds, at, matches.ends, matches.components, matches.positions)


def query_found(plan: QueryPlan, table: EventTable, limit: int | None = None) -> Iterator[Found]:
    """Yield the matches of a query, many at a time; a handle is a position in the table."""
    # Those beyond `limit` are not even enumerated.
    query, output = plan.query, plan.output
    how = resolved(query, table, plan.evaluation, output)
    arrays = match_arrays(query, table, how, output, plan.runs)
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
    for match in islice(query_matches(query, table, how, output, plan.runs), limit):
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
