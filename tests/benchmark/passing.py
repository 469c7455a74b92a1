# SPDX-License-Identifier: Apache-2.0
"""Many keys that come and go on a stream: does time or memory grow with all keys ever seen?"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from tests.benchmark.events import PassingKeys, write_events
from tests.benchmark.measurement import Measurement
from tests.benchmark.memory import PeakMemory
from tests.benchmark.session import answer_columns
from tests.benchmark.stream import read_stream, start_query, stream_matches, trigger_seconds
from tests.benchmark.workloads import Workload

_ANSWER = "answer"
_BATCHES = 100
_SHARE = 5


def measure_passing(
    spark: SparkSession, source: PassingKeys, workload: Workload, cache: Path
) -> Measurement:
    """
    Run a stream of keys that come and go in a hundred micro-batches.

    Returns
    -------
    Measurement
        The details have the median time of a micro-batch in the second fifth of the run and in
        the last one, the peak memory of both halves, and the rows of state at the end.
    """
    events = read_stream(spark, write_events(source, cache, source.events // _BATCHES), 1)
    matches = stream_matches(events, workload, "columns").toDF()
    observed = matches.observe(_ANSWER, *answer_columns(matches))
    with tempfile.TemporaryDirectory() as checkpoint:
        with PeakMemory() as first:
            query = start_query(observed.writeStream.format("noop"), checkpoint)
            while query.isActive and len(query.recentProgress) < _BATCHES // 2:
                query.awaitTermination(1)
        with PeakMemory() as second:
            query.awaitTermination()
    progress = [dict(p) for p in query.recentProgress]
    answers = [p["observedMetrics"][_ANSWER] for p in progress if _ANSWER in p["observedMetrics"]]
    times = [trigger_seconds(p) for p in progress if p["numInputRows"]]
    part = len(times) // _SHARE
    return Measurement(
        engine="passing",
        workload=workload.name,
        variant="columns",
        source=source.name,
        events=source.events,
        keys=source.keys,
        seconds=sum(times),
        matches=sum(a["matches"] for a in answers),
        checksum=sum(a["checksum"] for a in answers),
        details={
            "early_s": statistics.median(times[part : 2 * part]),
            "late_s": statistics.median(times[-part:]),
            "early_mib": first.peaks,
            "late_mib": second.peaks,
            "state_rows": sum(o["numRowsTotal"] for o in progress[-1]["stateOperators"]),
        },
    )
