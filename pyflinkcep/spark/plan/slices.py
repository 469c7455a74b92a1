# SPDX-License-Identifier: Apache-2.0
"""Cuts bounded input without a key into time slices, so that all cores work on it."""

from __future__ import annotations

import attrs
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType

from pyflinkcep.matching.columns import OWN, SLICE, quoted
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK

__all__ = ["milliseconds_of", "slice_length", "sliced"]

_SLICE_WINDOWS = 8
"""The length of a slice in windows; long, since events in two slices are shuffled twice."""


def slice_length(window: int) -> int:
    """Return the length of slices for a window, in milliseconds."""
    return _SLICE_WINDOWS * window


def sliced(
    prepared: Prepared, source: EventSource, length: int, before: int, after: int
) -> Prepared:
    """
    Assign each event to the slices in which a match may use it.

    Parameters
    ----------
    prepared : Prepared
        The events.
    source : EventSource
        Where their time is.
    length : int, milliseconds
        The length of a slice.
    before, after : int, milliseconds
        How far before and after a slice its matches need events.

    Returns
    -------
    Prepared
        The events with :data:`SLICE`, which is their key, and :data:`OWN`.
    """
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
