# SPDX-License-Identifier: Apache-2.0
"""Which watermark a stream follows where its plan cannot be seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark.sql.types import StructField, StructType, TimestampType

from pyflinkcep.spark.arrow.internals import marks
from pyflinkcep.spark.plan.watermark import StreamWatermark


def test_matches_as_events_over_spark_connect() -> None:
    """Matches come after the watermark of the micro-batch before, which makes none of them late."""
    at = StructField("at", TimestampType())
    of_matches = StructField("at", TimestampType(), metadata=marks(TimestampType(), 1000))
    for field, is_downstream in ((at, False), (of_matches, True)):
        frame: Any = SimpleNamespace(schema=StructType([field]))
        found = StreamWatermark._of(None, frame, "at")
        assert (found.delay_ms, found.is_downstream) == (None, is_downstream)
