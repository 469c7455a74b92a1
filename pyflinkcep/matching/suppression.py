# SPDX-License-Identifier: Apache-2.0
"""Alerts that are held back: of each key the first of a period, with the number of the others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.stored_state import damaged_state
from pyflinkcep.matching.columns import Ints, integers
from pyflinkcep.matching.latest import ranks_of
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import EventPages, KeptEvents, KeyEvents
from pyflinkcep.time import MAX_WATERMARK

SUPPRESSED = "suppressed"
"""The column with the number of alerts that were held back."""

MATCH_ID = "matchId"
"""The column that orders alerts of one time, if they have it."""


@attrs.frozen
class Suppression:
    """Which alerts of a key are shown."""

    # The rule, the only place where it is said: an alert that no window has opens one, which has
    # the alerts of the key from its time on until before `period` later.

    period: int  # In units of the times of alerts
    per_ms: int = 1  # How many of these units a millisecond has

    def windows(self, times: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield where the windows of a key's alerts, in order of time, begin and end."""
        begin = 0
        while begin < len(times):
            end = bisect_left(times, times[begin] + self.period, begin)
            yield begin, end
            begin = end

    def over(self, opened: int) -> int:
        """Return the watermark, epoch milliseconds, after which no alert of a window comes."""
        last = -(-(opened + self.period) // self.per_ms) - 1
        return min(last, MAX_WATERMARK - 1)  # an end of its own, which every window has

    def first(self, times: Ints, bounds: Ints) -> tuple[Ints, Ints]:
        """Return of sorted alerts, keys between `bounds`, the first ones and what they suppress."""
        rows, counts = list[int](), list[int]()
        own = times.tolist()
        for low, high in pairwise(bounds.tolist()):
            for begin, end in self.windows(own[low:high]):
                rows.append(low + begin)
                counts.append(end - begin - 1)
        return np.asarray(rows, np.int64), np.asarray(counts, np.int64)


def by_time(times: Ints, keys: Ints, ids: Callable[[], pa.ChunkedArray] | None) -> Ints:
    """Return the order of alerts by key, time and id; without ids, by place."""
    order: Ints = np.lexsort([times, keys])
    if ids is None or len(order) < 2:
        return order
    alike = (np.diff(times[order]) == 0) & (np.diff(keys[order]) == 0)
    return np.lexsort([ranks_of(ids()), times, keys]) if alike.any() else order


def with_counts(alerts: pa.Table, counts: Ints) -> pa.Table:
    """Return alerts with the number that each suppressed."""
    field = pa.field(SUPPRESSED, pa.int64(), nullable=False)
    return alerts.append_column(field, integers(counts))


@attrs.frozen(eq=False)
class SuppressedAlerts:
    """Suppresses alerts in columns."""

    suppression: Suppression
    layout: Layout  # Where their key and time are
    id: str  # The column that orders alerts of one time
    columns: Sequence[str]  # Those of an alert

    def shown(self, alerts: pa.Table, ends: Ints) -> pa.Table:
        """Return what is shown of alerts, all of several keys, given where those of each end."""
        bounds = np.r_[0, ends]
        keys = np.repeat(np.arange(len(ends)), np.diff(bounds))
        times = self.layout.times(alerts)
        order = by_time(times, keys, lambda: alerts.column(self.id))
        rows, counts = self.suppression.first(times[order], bounds)
        taken = alerts.select(list(self.columns)).take(integers(order[rows]))
        return with_counts(taken, counts)


class SuppressionPages(EventPages):
    """Suppresses alerts on a stream."""

    # A key's state is an open window: the alert that opened it, how many alerts were suppressed
    # since, and how many of these were told of. An alert is shown when its window opens, with the
    # number known then, and again when the window is over if it is more.

    what, version, width = "suppressed alerts", 1, 2

    def __init__(self, alerts: SuppressedAlerts) -> None:
        super().__init__()
        self._alerts = alerts

    def check(self, numbers: Ints, counts: Ints) -> None:
        """Refuse damaged state."""
        told, known = numbers[:, 0], numbers[:, 1]
        if (counts != 1).any() or (told < 0).any() or (told > known).any():
            raise damaged_state("a window of suppressed alerts")

    def matched(self, keys: KeyEvents) -> KeptEvents:
        """Collect what is shown; return the windows that are open."""
        alerts, bounds = self._alerts, keys.bounds
        suppression, layout = alerts.suppression, alerts.layout
        times = layout.times(self._store.take(keys.handles, [str(layout.time_column)]))
        owners = np.repeat(np.arange(len(keys.held)), np.diff(bounds))
        # The alert of an open window is before all that the watermark has reached since.
        order = by_time(
            times, owners, lambda: self._store.take(keys.handles, [alerts.id]).column(0)
        )
        in_order, places = times[order].tolist(), order.tolist()
        shown, shown_counts = list[int](), list[int]()
        goes_on = np.zeros(len(keys.held), bool)
        since, deadlines = np.zeros((2, len(keys.held)), np.int64)
        numbers = np.zeros((len(keys.held), self.width), np.int64)
        for key, (low, high) in enumerate(pairwise(bounds.tolist())):
            told, before = keys.numbers[key].tolist() if keys.is_known[key] else (-1, 0)
            own = in_order[low:high]
            for begin, end in suppression.windows(own):
                count = before + end - begin - 1
                over = suppression.over(own[begin])
                is_open = end == len(own) and over > keys.watermark
                if told < 0 or (count > told and not is_open):
                    shown.append(places[low + begin])
                    shown_counts.append(count)
                    told = count
                if is_open:
                    goes_on[key], since[key], deadlines[key] = True, places[low + begin], over
                    numbers[key] = told, count
                told, before = -1, 0
        if shown:
            rows = self._store.take(keys.handles[shown], alerts.columns)
            self._made.append(with_counts(rows, np.asarray(shown_counts, np.int64)))
        return KeptEvents(goes_on, since, deadlines, numbers, since + 1)
