# SPDX-License-Identifier: Apache-2.0
"""The matches of a query on files that do not fit memory: some partitions after others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.choice import EVENT_LISTS
from pyflinkcep.engines.queries import QueryPlan
from pyflinkcep.matching.columns import Ints, integers
from pyflinkcep.matching.results import Found
from pyflinkcep.sase.model import EVENT_TIME, EVENT_TYPE, Query
from pyflinkcep.sase.returns import Returns
from pyflinkcep.tables.event_list import made_event
from pyflinkcep.tables.matches import Matches, OutputTable
from pyflinkcep.tables.order import Times
from pyflinkcep.tables.query_match import QueryRows, partition_names
from pyflinkcep.tables.row_sql import OnlyByRow
from pyflinkcep.tables.spilled_rows import (
    MOST_EVENTS,
    OutputPart,
    OutputWriter,
    Part,
    Results,
    Run,
    SpilledRows,
)
from pyflinkcep.tables.spilling import Spilling
from pyflinkcep.tables.values import Field

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

        def match(events: pa.Table, positions: Ints, run: Run[Part]) -> int:
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
                self.events.found(key, match, Part),
                Results([], Part),
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

        def match(events: pa.Table, positions: Ints, run: Run[OutputPart]) -> int:
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

        results = self.events.found(key, match, OutputPart)
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
        run: Run[OutputPart],
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
