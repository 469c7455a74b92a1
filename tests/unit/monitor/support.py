# SPDX-License-Identifier: Apache-2.0
"""Queries that told of some micro-batches, made by hand."""

from __future__ import annotations

from typing import Any

from pyflinkcep.show.query_history import History

BAD = "<script>document.title = 'broken'</script>"


def progress(number: int, run: str = "run-1", **more: Any) -> dict[str, Any]:
    """Return the progress of a micro-batch, as Spark writes it."""
    row = {
        "numLateRecordsDropped": number % 3,
        "numNullRecordsDropped": 0,
        "numPartialMatchesDropped": 0,
        "stateBytesRead": 1_000 * number,
        "stateBytesWritten": 1_500 * number,
        "numMatches": 2 + number % 5,
        "numKeys": 10 + number,
        "numEventsHeld": 30 + 2 * number,
        "numEventsQueued": 7,
        "unpackingMs": 1.5,
        "numBuckets": 16,
        "matchingMs": 40.0 + number,
        "stateMs": 20.0,
        "oldestQueuedEvent": 1_700_000_000_000 + 1_000 * number,
        "watermark": 1_699_999_920_000 + 1_000 * number,
        "numMatchesHeldBack": 1,
        "endedByWindow": number % 4,
        "endedBySkipStrategy": 1,
        "endedByContiguity": 0,
        "endedByUntil": 0,
        "endedByNotStage": 2,
        "largestKey": 4,
        "oldestPartialMatch": 1_699_999_900_000,
        "partialMatches": {"fail": 10 + number, BAD: 3},
        **more,
    }
    return {
        "id": "id-1",
        "runId": run,
        "name": f"logins {BAD}",
        "timestamp": f"2023-11-14T22:{13 + number // 60:02d}:{number % 60:02d}.000Z",
        "batchId": number,
        "batchDuration": 900,
        "numInputRows": 1_000 + 10 * number,
        "observedMetrics": {f"CEP: a & {BAD}": row, "my own": {"rows": 3}},
    }


def told(batches: int = 20) -> History:
    """Return the history of a query after some micro-batches."""
    history = History(most=15)
    history.started("run-1", f"logins {BAD}")
    for number in range(batches):
        history.progressed(progress(number))
    return history
