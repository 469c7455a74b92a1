# SPDX-License-Identifier: Apache-2.0
"""The output of a clause on Spark, and its plan."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.pattern import Pattern
from pyflinkcep.spark.plan.watermark import StreamWatermark

__all__ = ["Matched"]


@attrs.frozen(eq=False)
class Matched:
    """
    The output of a clause.

    Attributes
    ----------
    frame : DataFrame
        The output.
    description : str
        The name of its jobs in Spark's UI.
    pattern : Pattern or None
        The pattern that the clause became, None for the standard's meaning.
    events : DataFrame or None
        The input of the pattern.
    keys : tuple of str
        Its partition columns.
    time : str or None
        Its time column.
    flush : callable or None
        For streams: returns the output of a final watermark, given the checkpoint and the operator
        id.
    behind : callable or None
        For streams: returns the output for a watermark that is some milliseconds further behind.
    held_ms : int or None, milliseconds
        For streams: how far behind the watermark the rows of a match can be; None if there is no
        bound.
    delay_ms : int, milliseconds
        For streams: the delay of the watermark.
    watermark : StreamWatermark or None
        For streams with the standard's meaning: which watermark is followed.
    """

    frame: DataFrame
    description: str
    pattern: Pattern | None = None
    events: DataFrame | None = None
    keys: tuple[str, ...] = ()
    time: str | None = None
    flush: Callable[[str, int], DataFrame] | None = None
    behind: Callable[[int], DataFrame] | None = None
    held_ms: int | None = None
    delay_ms: int = 0
    watermark: StreamWatermark | None = None
