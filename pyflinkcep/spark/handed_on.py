# SPDX-License-Identifier: Apache-2.0
"""The watermark that the rows of a result carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

import attrs
from pyspark.sql import DataFrame

from pyflinkcep.time import to_milliseconds

__all__ = ["HandedOn"]


@attrs.frozen(eq=False)
class HandedOn:
    """
    The watermark that a stream's result hands on with its rows.

    Attributes
    ----------
    behind : callable
        Returns the job, with all outputs, for a watermark that is some milliseconds further behind.
    delay_ms : int, milliseconds
        The delay of the watermark.
    held_ms : int or None, milliseconds
        How far behind the watermark the events of a row can be; None if there is no bound.
    lags : mapping of str to int or None, milliseconds
        The columns of which that is known better.
    event_time : str or None
        The column of the main output that carries the watermark.
    behind_ms : int, milliseconds
        How far the watermark was put behind for it.
    is_guarded : bool
        Whether events too far ahead, which Spark's watermark follows, are left out: then it must
        not be handed on.
    """

    behind: Callable[[int], DataFrame]
    delay_ms: int
    held_ms: int | None
    lags: Mapping[str, int | None] = attrs.field(factory=dict)
    event_time: str | None = None
    behind_ms: int = 0
    is_guarded: bool = False

    def lag(self, column: str, given: timedelta | None) -> int | None:
        """Return how far behind the watermark a column can be; None if there is no bound."""
        if given is not None:
            return to_milliseconds(given, "withEventTime")
        return self.lags.get(column, self.held_ms)
