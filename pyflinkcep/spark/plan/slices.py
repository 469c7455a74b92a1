# SPDX-License-Identifier: Apache-2.0
"""Cuts bounded input without a key into time slices, so that all cores work on it."""

from __future__ import annotations

import attrs
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType

from pyflinkcep.engines.compressed.matches import WINDOW_START, TimeWindows
from pyflinkcep.matching.columns import HASH, OWN, SLICE, WINDOW, quoted
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK

_SLICE_WINDOWS = 8
"""The length of a slice in windows; long, since events in two slices are shuffled twice."""


def slice_length(window: int) -> int:
    """Return the length of slices for a window, in milliseconds."""
    return _SLICE_WINDOWS * window


def sliced(
    prepared: Prepared, source: EventSource, length: int, before: int, after: int
) -> Prepared:
    """Assign each event to the slices in which a match may use it."""
    events = prepared.events
    time = milliseconds_of(source)
    first = F.when(time >= F.lit(MIN_WATERMARK + after), time - after).otherwise(time)
    last = F.when(time <= F.lit(MAX_WATERMARK - before), time + before).otherwise(time)
    slices = F.sequence(_floor(first, length), _floor(last, length))
    everything = [F.col(quoted(name)) for name in events.columns]
    cut = events.select(*everything, F.explode_outer(slices).alias(SLICE))
    owned = cut.withColumn(OWN, F.col(SLICE) == _floor(time, length))
    return Prepared(owned, attrs.evolve(prepared.layout, key_signature=(SLICE,)))


def _floor(milliseconds: Column, length: int) -> Column:
    return F.floor(milliseconds / F.lit(length)).cast("bigint")


def milliseconds_of(source: EventSource) -> Column:
    """Return the time of events in epoch milliseconds."""
    assert source.time_column is not None
    time = F.col(quoted(source.time_column))
    if source.time_unit is None:
        return time
    if isinstance(source.dataframe.schema[source.time_column].dataType, TimestampNTZType):
        # Not timestampdiff, which reads both times by the session's clock.
        day = F.unix_date(time.cast("date")).cast("bigint")
        minutes = (day * 24 + F.hour(time)) * 60 + F.minute(time)
        seconds = F.date_part(F.lit("SECOND"), time).cast("decimal(8,6)")
        return minutes * 60_000 + F.floor(seconds * 1000).cast("bigint")
    micros = f"unix_micros({quoted(source.time_column)})"
    return F.expr(f"({micros} - pmod({micros}, 1000L)) div 1000L")  # no double holds them all


def copied(windows: TimeWindows, prepared: Prepared, source: EventSource) -> Prepared:
    """
    Return each event once for every window that it is in.

    The start of the window, :data:`WINDOW`, is a part of the key.
    """
    events, layout = prepared.events, prepared.layout
    time, slide = milliseconds_of(source), F.lit(windows.slide)
    since = F.pmod(time, slide)  # the start of the last window
    reach = F.lit(windows.length - 1) - since
    earlier = reach - F.pmod(reach, slide)
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
