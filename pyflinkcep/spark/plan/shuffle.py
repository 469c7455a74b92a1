# SPDX-License-Identifier: Apache-2.0
"""The shuffle of bounded jobs: the events of a key meet in one partition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pyflinkcep.matching.columns import quoted
from pyflinkcep.matching.layout import Layout

__all__ = ["shuffled"]


def shuffled(events: DataFrame, layout: Layout) -> DataFrame:
    """Return prepared events with each key in one partition; all in one without a key."""
    if not layout.key_signature:
        return events.coalesce(1)
    return events.repartition(F.col(quoted(layout.key_signature[0])))
