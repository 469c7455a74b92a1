# SPDX-License-Identifier: Apache-2.0
"""Matches as rows of a table: as dicts of records, and as columns of lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.errors import InputError
from pyflinkcep.matching.columns import in_one_piece, integers
from pyflinkcep.matching.results import (
    MATCH_TIME,
    Found,
    Result,
    SharedPrefixes,
    known_times,
    stage_column,
)
from pyflinkcep.tables.events import Timeout, as_event
from pyflinkcep.tables.order import PER_MS, Times
from pyflinkcep.tables.records import records

_MOST_EVENTS = 1 << 17  # of the matches that become columns together


@attrs.frozen(eq=False)
class FoundRows:
    """Matches that are not dicts yet."""

    whole: Callable[[], pa.Table]  # Returns the events, with all of their columns
    # The matches and timeouts; handles are rows.
    found: Found | SharedPrefixes
    timed_out: Found
    stages: Sequence[str]  # The stages that can take events, in pattern order
    keys: Mapping[str, pa.ChunkedArray]  # The columns of the key, by name
    times: Times  # The times of events
    # The events, if the table was made of them; what was found consists of their values.
    given: Sequence[dict[str, Any]] | None = None

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.found)

    def made(self, begin: int, end: int) -> list[dict[str, list[Any]]]:
        """Return some of them as dicts."""
        return [match for _, _, match in self._results(self.found.between(begin, end))]

    def timeouts(self) -> list[Timeout[Any]]:
        """Return the partial matches that timed out."""
        return [Timeout(match, time) for _, time, match in self._results(self.timed_out)]

    def _results(self, found: Found) -> Iterator[Result]:
        rows, places = np.unique(found.handles, return_inverse=True)
        given = self.given
        if given is None:
            events: list[Any] = records(self.whole(), rows)
        else:
            events = [as_event(given[row]) for row in rows.tolist()]
        return found.results([events[place] for place in places.tolist()])

    def tables(self) -> Iterator[pa.Table]:
        """Yield the matches in columns, some at a time."""
        if not len(self):
            yield self.arrow()
        for part in self.found.parts(_MOST_EVENTS):
            yield attrs.evolve(self, found=part).arrow()

    def arrow(self) -> pa.Table:
        """Return the matches in columns."""
        found = self.found.between(0, len(self))
        names = [*self.keys, MATCH_TIME, *self.stages]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(
                f"toArrow() would have two columns named {repeated}",
                "rename the stage or the key column",
            )
        table, first = self.whole(), integers(found.handles[found.firsts])
        columns = [in_one_piece(column.take(first)) for column in self.keys.values()]
        columns.append(match_times(found, self.times))
        columns += [
            stage_column(found, stage, lambda rows: table.take(integers(rows)))
            for stage in self.stages
        ]
        fields = [
            pa.field(name, column.type, nullable=name not in self.stages)
            for name, column in zip(names, columns, strict=True)
        ]
        return pa.table(columns, schema=pa.schema(fields))


def match_times(found: Found, times: Times) -> pa.Array:
    """Return the times of matches, in the type of the times of events."""
    if not pa.types.is_timestamp(times.type):
        return integers(found.times)
    return known_times(found.times, PER_MS[times.type.unit]).cast(times.type)
