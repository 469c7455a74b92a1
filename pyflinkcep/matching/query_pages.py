# SPDX-License-Identifier: Apache-2.0
"""A query on a stream: the events of keys, read and written as pages."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from pyflinkcep.engines.flink.stored_state import damaged_state
from pyflinkcep.engines.queries import last_event
from pyflinkcep.engines.streamed_queries import Kept, Portion, StreamedQuery
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.matcher import NO_DEADLINE, EventPages, KeptEvents, KeyEvents
from pyflinkcep.matching.queries import QueryColumns
from pyflinkcep.matching.results import Found, Results


class QueryPages(EventPages):
    """Processes the events of pages' keys with a query; subclasses define the results."""

    # The number of a key is how many of its events, at the front, are decided and kept only because
    # others refer to them.

    what, version, width = "a query", 1, 1

    def __init__(self, streamed: StreamedQuery, columns: QueryColumns) -> None:
        super().__init__()
        self._streamed = streamed
        self._columns = columns

    def check(self, numbers: Ints, counts: Ints) -> None:
        """Refuse damaged state."""
        decided = numbers[:, 0]
        if ((decided < 0) | (decided > counts)).any():
            raise damaged_state("a key has fewer events than decided ones")

    def matched(self, keys: KeyEvents) -> KeptEvents:
        """Collect what the events add; return what to keep."""
        begins, ends = keys.bounds[:-1], keys.bounds[1:]
        portion = Portion(
            self._columns.table(
                self._store.take(keys.handles, self._columns.names),
                np.repeat(np.arange(len(begins)), ends - begins),
            ),
            keys.bounds.tolist(),
            (begins + keys.held).tolist(),
            (begins + keys.numbers[:, 0]).tolist(),
            keys.watermark,
        )
        kept = self.find(portion, keys.handles)
        since = np.asarray(kept.since, np.int64)
        deadlines = [NO_DEADLINE if at is None else at for at in kept.deadlines]
        decided = np.minimum(np.asarray(kept.free, np.int64), ends) - since
        return KeptEvents(
            since < ends, since, np.asarray(deadlines, np.int64), decided.reshape(-1, 1)
        )

    @abstractmethod
    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect what a portion adds; return what to keep."""


class QueryMatcher(QueryPages):
    """Finds the matches of a query; see :class:`QueryPages`."""

    def __init__(self, streamed: StreamedQuery, columns: QueryColumns) -> None:
        super().__init__(streamed, columns)
        self._results = Results(streamed.query.variables, wants_timeouts=False)

    def find(self, portion: Portion, handles: Ints) -> Kept:
        """Collect the matches that a portion adds."""
        matches, kept = self._streamed.matches(portion)
        taken = handles.tolist()
        for match in matches:
            events = {name: [taken[at] for at in own] for name, own in match.items()}
            self._results.match(None, portion.table.times[last_event(match)], events)
        return kept

    def take(self) -> Found:
        """Return the matches so far, and clear them."""
        return self._results.take()
