# SPDX-License-Identifier: Apache-2.0
"""A bounded job: sorted chunks of events in, what a matcher finds in them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa.relevance import KeyNeeds
from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.matching.columns import integers
from pyflinkcep.matching.event_store import EventStore, Reader, SortedEvents
from pyflinkcep.matching.layout import KeyText, Layout
from pyflinkcep.matching.matcher import PatternMatcher
from pyflinkcep.matching.order import Order
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Stretches


@attrs.define(eq=False)
class ChunkMatching:
    """Matches key by key, in chunks that never separate events of equal key and time."""

    layout: Layout  # The columns of the events
    reader: Reader  # Makes of events what conditions see
    rules: CepOperator  # Tells which events may begin a match
    matcher: PatternMatcher  # Finds the matches
    order: Order | None = None  # The order of events of equal time
    needs: KeyNeeds | None = None  # What a key needs to have a match, if only these are wanted
    store: EventStore | None = attrs.field(init=False, default=None)  # The events, by handle
    _last: pa.Table | None = attrs.field(init=False, default=None)  # The event before a chunk

    def found(self, chunks: Iterable[SortedEvents]) -> Iterator[Found]:
        """Yield what is found, as it comes; handles are the places of events in their order."""
        for events in chunks:
            yield from self._found(events)
            del events  # or they would stay in memory while the next ones are made
        yield self.matcher.finish(self._last_key)

    def _found(self, events: SortedEvents) -> Iterator[Found]:
        layout, chunk = self.layout, events.table
        if self.store is None:
            self.store = EventStore(self.reader, events.schema(layout.payload))
        base, times = self.store.add(events), layout.times_ms(chunk)
        stretches = Stretches.of(
            chunk, times, base, layout, self.rules, self.order, self.store, self.needs
        )
        continues = self._last is not None and not layout.is_other_key(self._last, chunk)
        key_before = self._last_key
        self._last = chunk.take(integers(np.array([chunk.num_rows - 1])))
        self.matcher.set_events(self.store)
        yield from self.matcher.run(stretches, continues, key_before)
        self.store.keep(self.matcher.live())

    @property
    def _last_key(self) -> KeyText | None:
        """The key of the event before the next chunk, for errors."""
        if self._last is None or not self.layout.key_columns:
            return None
        return KeyText(self.layout, self._last, 0)
