# SPDX-License-Identifier: Apache-2.0
"""A row for each window with matches: counts and aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.compressed.counting import combined
from pyflinkcep.engines.compressed.payloads import Ended
from pyflinkcep.engines.compressed.sums import Exact
from pyflinkcep.matching.columns import WINDOW
from pyflinkcep.matching.keys import changes
from pyflinkcep.spark.matching.ending_rows import Ask, Counted, Ending, TotalRows, event_values

__all__ = ["WindowRows"]


@attrs.frozen(eq=False)
class WindowRows(TotalRows):
    """
    Rows of counts of matches and aggregates over them, by key and window.

    The schema has the key, the window's start and end, and what :class:`TotalRows` adds.

    Attributes
    ----------
    window_ms : int, milliseconds
        The length of the windows.
    """

    window_ms: int

    @property
    def what(self) -> str:
        """Totals of windows."""
        return "windows"

    def asked(self, events: pa.Table) -> Ask:
        """Return the function that adds up what ends in each window, at one of these events."""
        exact = [self._exact(events, m.attribute, m.function) for m in self.of_events]
        measures = [
            (str(m.variable), own.values, m.function)
            for m, own in zip(self.of_events, exact, strict=True)
        ]
        begins = changes([events.column(name) for name in (*self.key_columns, WINDOW)])
        windows = np.r_[0, np.cumsum(begins)].tolist()

        def asked(found: Counted) -> Iterator[Ended]:
            sums: dict[int, Ended] = {}
            for at, count, totals in found.totals_by_event(measures):
                _, counted, before = sums.get(windows[at], (at, 0, None))
                own = totals if before is None else tuple(map(combined, before, totals))
                sums[windows[at]] = at, counted + count, own
            for at, count, totals in sums.values():
                yield at, count, tuple(map(Exact.total, exact, totals))

        return asked

    @staticmethod
    def _exact(events: pa.Table, attribute: str | None, function: str) -> Exact:
        """Return values whose sums are rounded at the end only; those of a spread are already."""
        values = event_values(events, attribute)
        return Exact(values) if function == "stddev" else Exact.of(values)

    def times(self, events: pa.Table, listed: Sequence[Ending]) -> list[pa.Array]:
        """Return the starts and the ends of windows."""
        starts = events.column(WINDOW).take(pa.array([at for at, _, _ in listed], pa.int64()))
        unit = self.time_unit or 1
        return [
            pa.array([(start + after) * unit for start in starts.to_pylist()], pa.int64())
            for after in (0, self.window_ms)
        ]
