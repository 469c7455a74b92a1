# SPDX-License-Identifier: Apache-2.0
"""Sliding and tumbling windows, in each of which matches are totalled."""

from __future__ import annotations

from datetime import timedelta

import attrs
from pyspark.sql import functions as F

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.matching.columns import HASH, WINDOW, quoted
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.slices import milliseconds_of
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.time import duration_ms

__all__ = ["WINDOW_END", "WINDOW_START", "TimeWindows"]

WINDOW_START = "windowStart"
"""The output column with the start of a window."""

WINDOW_END = "windowEnd"
"""That with the end."""

_MOST = 1440
"""In how many windows an event may be, each with a copy of it: those of a day by minutes."""


@attrs.frozen
class TimeWindows:
    """
    Windows of one length that begin at regular times, one of them at the epoch.

    Attributes
    ----------
    length : int, milliseconds
        Their length; an event at the end is no longer in a window.
    slide : int, milliseconds
        The time from the start of one to the start of the next.
    """

    length: int
    slide: int

    @classmethod
    def of(cls, window: timedelta | str, slide: timedelta | str | None) -> TimeWindows:
        """
        Return windows as users describe them; one after another without a slide.

        Raises
        ------
        InvalidArgumentError
            If these are not durations, or leave out events, or are too many.
        """
        length = duration_ms(window, "window")
        step = length if slide is None else duration_ms(slide, "slide")
        if step > length:
            raise InvalidArgumentError(
                f"aggregate(window={window!r}, slide={slide!r}): events between windows would "
                "be in none",
                "pass a slide that is at most the window",
            )
        if length > step * _MOST:
            raise InvalidArgumentError(
                f"aggregate(window={window!r}, slide={slide!r}): expected at most {_MOST} windows "
                f"at a time, got {-(-length // step)}, each with a copy of its events",
                "pass a longer slide",
            )
        return cls(length, step)

    def __str__(self) -> str:
        return f"{self.length} ms every {self.slide} ms"

    def copied(self, prepared: Prepared, source: EventSource) -> Prepared:
        """
        Return each event once for every window that it is in.

        The start of the window, :data:`WINDOW`, is a part of the key.
        """
        events, layout = prepared.events, prepared.layout
        time, slide = milliseconds_of(source), F.lit(self.slide)
        since = F.pmod(time, slide)  # the start of the last window
        earlier = (F.lit(self.length - 1) - since) - F.pmod(F.lit(self.length - 1) - since, slide)
        starts = F.sequence(time - since - earlier, time - since, slide)
        own = [F.col(quoted(name)) for name in events.columns]
        copies = events.select(*own, F.explode_outer(starts.cast("array<bigint>")).alias(WINDOW))
        signature = [name for name in layout.key_signature if name != HASH]
        hashed = [name for name in layout.key_signature if name == HASH] or signature
        number = F.xxhash64(*(F.col(quoted(name)) for name in (*hashed, WINDOW)))
        keyed = attrs.evolve(
            layout,
            payload=(*layout.payload, WINDOW),
            key_names=(*layout.key_names, WINDOW_START),
            key_columns=(*layout.key_columns, WINDOW),
            key_signature=(HASH, *signature, WINDOW),
        )
        return Prepared(copies.withColumn(HASH, number), keyed)
