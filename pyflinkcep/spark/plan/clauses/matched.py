# SPDX-License-Identifier: Apache-2.0
"""What a clause became on Spark."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.pattern import Pattern

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
        What Spark's UI shows for its jobs.
    pattern : Pattern or None
        The pattern that the clause became, None for the standard's meaning.
    events : DataFrame or None
        The input of the pattern.
    keys : tuple of str
        Its partition columns.
    time : str or None
        Its time column.
    flush : callable or None
        For streams: the output of a final watermark, on (checkpoint, operator id, the bounded
        input that comes before it or None).
    watermark : str
        For streams with the standard's meaning: which watermark decides.
    """

    frame: DataFrame
    description: str
    pattern: Pattern | None = None
    events: DataFrame | None = None
    keys: tuple[str, ...] = ()
    time: str | None = None
    flush: Callable[[str, int, DataFrame | None], DataFrame] | None = None
    watermark: str = ""
