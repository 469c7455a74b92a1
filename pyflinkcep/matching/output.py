# SPDX-License-Identifier: Apache-2.0
"""Matches as columns: their times, and a list of events for each stage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.pieces import integers, structs
from pyflinkcep.matching.results import Found
from pyflinkcep.time import MAX_WATERMARK

__all__ = [
    "MATCH_TIME",
    "known_times",
    "stage_column",
]

MATCH_TIME = "matchTimestamp"
"""The column of ``toDF()`` with the time of a match."""


def known_times(times: Ints, unit: int) -> pa.Array:
    """Return times in units of a millisecond; MAX_WATERMARK, which is not a timestamp, as null."""
    at_the_end = times == MAX_WATERMARK
    if not at_the_end.any():
        return integers(times * unit)
    return pa.array(np.where(at_the_end, 0, times) * unit, mask=at_the_end)


def stage_column(found: Found, stage: str, take: Callable[[Ints], pa.Table]) -> pa.ListArray:
    """
    Return the events of a stage as a list of structs for each match.

    Parameters
    ----------
    found : Found
        The matches.
    stage : str
        The stage.
    take : callable
        Returns the events of handles.
    """
    begins, handles = found.of_stage(stage)
    own = structs(take(handles))
    type_ = pa.list_(pa.field("element", own.type, nullable=False))
    return pa.ListArray.from_arrays(integers(begins.astype(np.int32)), own, type=type_)
