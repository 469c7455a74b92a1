# SPDX-License-Identifier: Apache-2.0
"""A row for each window with matches: counts and aggregates."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pyarrow as pa

from pyflinkcep.engines.compressed.windows import totals_by_window
from pyflinkcep.matching.columns import WINDOW
from pyflinkcep.spark.matching.ending_rows import Ask, Ending, TotalRows, event_values

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

    def asked(self, events: pa.Table, keys: Sequence[int] = ()) -> Ask:
        """Return the function that adds up what ends in each window, at one of these events."""
        measures = [
            (str(m.variable), event_values(events, m.attribute), m.function) for m in self.of_events
        ]
        return lambda found: totals_by_window(found.totals_by_event, measures, keys)

    def times(self, events: pa.Table, listed: Sequence[Ending]) -> list[pa.Array]:
        """Return the starts and the ends of windows."""
        starts = events.column(WINDOW).take(pa.array([at for at, _, _ in listed], pa.int64()))
        unit = self.time_unit or 1
        return [
            pa.array([(start + after) * unit for start in starts.to_pylist()], pa.int64())
            for after in (0, self.window_ms)
        ]
