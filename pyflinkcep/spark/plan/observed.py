# SPDX-License-Identifier: Apache-2.0
"""What a stream's progress says of a pattern: counters of its operator's output, added up."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from pyflinkcep.matching.columns import quoted
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
    metrics = {
        metric: _total("0" if side in sides else count)
        for side, (count, metric) in left_out.items()
    }
    metrics |= {
        "numNullRecordsDropped": _total("nullRecords"),
        "numPartialMatchesDropped": _total("droppedMatches"),
        "stateBytesRead": _total("stateBytesRead"),
        "stateBytesWritten": _total("stateBytesWritten"),
        **_counted(is_pattern=bool(stages)),
        **_by_stage(stages),
    }
    # As text: a call of a function of PySpark costs milliseconds, and there would be a hundred.
    return [F.expr(f"{sql} AS {quoted(name)}") for name, sql in metrics.items()]


def _counted(*, is_pattern: bool) -> dict[str, str]:
    found = {}
    for name in SUMS:
        if name.endswith("Nanos"):
            found[name.replace("Nanos", "Ms")] = f"round({_total(_number(name))} / 1e6D, 3)"
        else:
            found[name] = _total(_number(name))
    for name in EARLIEST:
        if is_pattern or name != "oldestPartialMatch":
            found[name] = f"min({_number(name)})"
    if is_pattern:
        found |= {name: _total(_number(name)) for name in PATTERN_SUMS}
        found[LARGEST] = f"coalesce(max({_number(LARGEST)}), 0L)"
    return found


def _by_stage(stages: Mapping[str, int]) -> dict[str, str]:
    """Return the partial matches by the stage of their last event."""
    counts = [
        f"{_total(f'get(counts, {STAGES + number})')} AS {quoted(stage)}"
        for stage, number in stages.items()
    ]
    return {"partialMatches": f"struct({', '.join(counts)})"} if counts else {}


def _number(name: str) -> str:
    return f"get(counts, {_NAMES.index(name)})"


def _total(number: str) -> str:
    return f"coalesce(sum({number}), 0L)"
