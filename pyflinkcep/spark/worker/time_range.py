# SPDX-License-Identifier: Apache-2.0
"""Tells the driver between which times the events of a task lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.time import wrong_unit

__all__ = ["Range", "TimeRange", "merged"]

Range = tuple[int, int]
"""The earliest and the latest time, in epoch milliseconds."""


def merged(one: Range | None, other: Range | None) -> Range | None:
    """Return the range of two; None is the empty one."""
    if one is None or other is None:
        return other if one is None else one
    return min(one[0], other[0]), max(one[1], other[1])


@attrs.frozen(eq=False)
class TimeRange:
    """
    Reads the times of the batches that pass by, until they look like milliseconds.

    Attributes
    ----------
    column : str
        The column of times: whole numbers.
    tell : callable
        Receives the range of the times read.
    """

    column: str
    tell: Callable[[Range], Any]

    def seen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches; tell their range at the end."""
        times: Range | None = None
        is_open = True
        for batch in batches:
            if is_open and batch.num_rows:
                found = pc.min_max(batch.column(self.column)).as_py()
                if found["min"] is not None:
                    times = merged(times, (found["min"], found["max"]))
                    is_open = times is None or wrong_unit(*times, "") is not None
            yield batch
        if times is not None:
            self.tell(times)
