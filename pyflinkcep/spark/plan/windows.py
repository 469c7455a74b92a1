# SPDX-License-Identifier: Apache-2.0
"""Events copied into each of the windows in which matches are totalled."""

from __future__ import annotations

import attrs
from pyspark.sql import functions as F

from pyflinkcep.engines.compressed.windows import WINDOW_START, TimeWindows
from pyflinkcep.matching.columns import HASH, WINDOW, quoted
from pyflinkcep.spark.plan.job import Prepared
from pyflinkcep.spark.plan.slices import milliseconds_of
from pyflinkcep.spark.plan.source import EventSource

__all__ = ["copied"]


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
