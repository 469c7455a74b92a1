# SPDX-License-Identifier: Apache-2.0
"""What a stream's progress says of a pattern: counters of its operator's output, added up."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.matching.columns import quoted
from pyflinkcep.spark.arrow.internals import analysed_plan
from pyflinkcep.spark.plan.watermark import streaming_nodes
from pyflinkcep.spark.worker.progress import EARLIEST, LARGEST, PATTERN_SUMS, STAGES, SUMS
from pyflinkcep.spark.worker.unpack import AHEAD, LATE

_pickler: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]

_named: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()
"""The owner of each name in a session. On the driver only: it is unknown beforehand whether two
results will meet in one query, and Spark refuses a query with two counters of one name."""


def counters_name(name: str, events: DataFrame, *settings: object) -> str:
    """Return a name for a job's counters that is unique in the session."""
    taken = _taken(events)
    named = _named.setdefault(events.sparkSession, {})
    digest = hashlib.sha256(_pickler.dumps(settings))
    digest.update(str(events.semanticHash()).encode())
    job = digest.hexdigest()
    names = (f"{name} ({number})" if number > 1 else name for number in count(1))
    found = next(free for free in names if free not in taken and named.get(free, job) == job)
    named[found] = job
    return found


def check_counters_name(name: str, events: DataFrame) -> str:
    """Return the name that a user chose for a job's counters."""
    if name in _taken(events):
        raise InvalidArgumentError(
            f"two patterns of a query are named {name!r}",
            "give each a name of its own: Spark finds counters by name",
        )
    return name


def _taken(events: DataFrame) -> set[str]:
    """Return the names of the counters of jobs below."""
    below = analysed_plan(events)
    nodes = () if below is None else streaming_nodes(below)
    return {node.name() for node in nodes if node.nodeName() == "CollectMetrics"}


_NAMES = (*SUMS, *PATTERN_SUMS, LARGEST, *EARLIEST)


def observed_columns(
    sides: Collection[str], stages: Mapping[str, int], is_guarded: bool
) -> list[Column]:
    """Return the observed metrics of a stream."""
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
