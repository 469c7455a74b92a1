# SPDX-License-Identifier: Apache-2.0
"""What a stream's progress says of a pattern: counters of its operator's output, added up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from pyflinkcep.spark.worker.counted import EARLIEST, LARGEST, PATTERN_SUMS, STAGES, SUMS
from pyflinkcep.spark.worker.unpack import AHEAD, LATE

__all__ = ["observed_columns"]

_NAMES = (*SUMS, *PATTERN_SUMS, LARGEST, *EARLIEST)


def observed_columns(
    sides: Collection[str], stages: Mapping[str, int], is_guarded: bool
) -> list[Column]:
    """
    Return the observed metrics of a stream.

    Parameters
    ----------
    sides : collection of str
        The events left out that are returned, by their columns, and therefore not counted.
    stages : mapping of str to int
        The stages of a pattern that take events, and their numbers; empty if what is matched has no
        partial matches.
    is_guarded : bool
        Whether events may be too far ahead.
    """
    left_out = {LATE: ("lateRecords", "numLateRecordsDropped")}
    if is_guarded:
        left_out[AHEAD] = ("aheadRecords", "numAheadRecordsDropped")
    columns = [
        _total(F.lit(0) if side in sides else F.col(count)).alias(metric)
        for side, (count, metric) in left_out.items()
    ]
    columns += [
        _total(F.col("nullRecords")).alias("numNullRecordsDropped"),
        _total(F.col("droppedMatches")).alias("numPartialMatchesDropped"),
        _total(F.col("stateBytesRead")).alias("stateBytesRead"),
        _total(F.col("stateBytesWritten")).alias("stateBytesWritten"),
    ]
    return [*columns, *_counted(bool(stages)), *_by_stage(stages)]


def _counted(is_pattern: bool) -> Iterator[Column]:
    for name in SUMS:
        if name.endswith("Nanos"):
            milliseconds = _total(_number(name)) / F.lit(1e6)
            yield F.round(milliseconds, 3).alias(name.replace("Nanos", "Ms"))
        else:
            yield _total(_number(name)).alias(name)
    for name in EARLIEST:
        if is_pattern or name != "oldestPartialMatch":
            yield F.min(_number(name)).alias(name)
    if is_pattern:
        yield from (_total(_number(name)).alias(name) for name in PATTERN_SUMS)
        yield F.coalesce(F.max(_number(LARGEST)), F.lit(0)).alias(LARGEST)


def _by_stage(stages: Mapping[str, int]) -> Iterator[Column]:
    """Return the partial matches by the stage of their last event."""
    if stages:
        counts = [
            _total(F.get("counts", F.lit(STAGES + number))).alias(stage)
            for stage, number in stages.items()
        ]
        yield F.struct(*counts).alias("partialMatches")


def _number(name: str) -> Column:
    return F.get("counts", F.lit(_NAMES.index(name)))


def _total(column: Column) -> Column:
    return F.coalesce(F.sum(column), F.lit(0))
