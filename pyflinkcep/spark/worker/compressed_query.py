# SPDX-License-Identifier: Apache-2.0
"""A task that returns a row for each event that completes matches of a query, without listing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import attrs
import pyarrow as pa

from pyflinkcep.engines.queries import compressed_matches
from pyflinkcep.engines.table import listed
from pyflinkcep.matching.query_table import QueryColumns
from pyflinkcep.sase.model import Query
from pyflinkcep.spark.matching.ending_rows import EndingRows
from pyflinkcep.spark.worker.query_task import keyed_tables
from pyflinkcep.spark.worker.runtime import running

__all__ = ["EndingsTask"]

_MOST_ROWS = 1024


@attrs.frozen(eq=False)
class EndingsTask:
    """
    The work on one partition of a bounded DataFrame.

    Attributes
    ----------
    query : Query
        The query.
    columns : QueryColumns
        What it reads from events.
    rows : EndingRows
        Summarizes the matches that an event completes.
    """

    query: Query
    columns: QueryColumns
    rows: EndingRows

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each event that completes matches."""
        with running(self.columns.layout.pattern):
            for events, sliced in keyed_tables(batches, self.columns):
                # A slice owns the matches that end in it, so that each event has one row.
                table = attrs.evolve(sliced, starts=None, ends=sliced.starts)
                asked = self.rows.asked(events, listed(table.keys or ()))
                found = asked(compressed_matches(self.query, table))
                endings = ((at, table.times[at], ending) for at, *ending in found)
                while part := list(islice(endings, _MOST_ROWS)):
                    yield from self.rows.table(events, part).to_batches()
