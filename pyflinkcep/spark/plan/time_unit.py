# SPDX-License-Identifier: Apache-2.0
"""Warns on the driver of whole numbers that look like epoch seconds, without a job of its own."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import attrs
from pyspark import AccumulatorParam
from pyspark.sql import SparkSession

from pyflinkcep.matching.layout import Layout
from pyflinkcep.spark.arrow.internals import spark_context
from pyflinkcep.spark.worker.time_range import Range, TimeRange, merged
from pyflinkcep.time import wrong_unit
from pyflinkcep.warned import Place, TimeUnitWarning

__all__ = ["time_range"]


def time_range(session: SparkSession, layout: Layout) -> TimeRange | None:
    """
    Return what tells of the times of a job's events; None if they cannot be of a wrong unit.

    Spark adds up what tasks tell in an accumulator, on the driver. Over Spark Connect there is
    none: a worker writes the warning to its log.
    """
    if layout.time_column is None or layout.time_unit is not None:
        return None
    where = f"pattern {layout.pattern}, time column {layout.time_column!r}"
    context = spark_context(session)
    if context is None:
        return TimeRange(layout.time_column, _Logged(where))
    warned = _Warned(where, Place.here())
    return TimeRange(layout.time_column, context.accumulator(None, warned).add)


@attrs.frozen
class _Logged:
    """Warns on a worker."""

    where: str

    def __call__(self, times: Range) -> None:
        text = wrong_unit(*times, self.where)
        if text is not None:
            warnings.warn(text, TimeUnitWarning, stacklevel=2)


class _Merged(AccumulatorParam[Any]):
    """Adds up ranges of times."""

    def zero(self, value: Any) -> Any:
        return None

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
        return merged(value1, value2)


class _Warned(_Merged):
    """
    The same on the driver, where a task's range is added as soon as it has ended; warns once.

    Spark adds ranges in a thread of its own, so a filter that turns warnings into errors has no
    effect there.
    """

    def __init__(self, where: str, place: Place) -> None:
        self._where = where
        self._place = place
        self._is_told = False

    def addInPlace(self, value1: Any, value2: Any) -> Any:  # noqa: N802
        times = merged(value1, value2)
        text = None if times is None else wrong_unit(*times, self._where)
        if text is not None and not self._is_told:
            self._is_told = True
            with suppress(TimeUnitWarning):
                self._place.warn(text, TimeUnitWarning)
        return times

    def __reduce__(self) -> tuple[type[_Merged], tuple[()]]:
        return _Merged, ()
