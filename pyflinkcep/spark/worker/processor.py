# SPDX-License-Identifier: Apache-2.0
"""The stateful operator that Spark calls; its work is in ``bucket_worker.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pyflinkcep.errors import PatternChangedError
from pyflinkcep.spark.state.storage import SparkStorage, is_planning, keys_with_timers

if TYPE_CHECKING:
    import pandas as pd

    from pyflinkcep.spark.worker.bucket_task import BucketPlan
    from pyflinkcep.spark.worker.bucket_worker import BucketWorker


def quiet_planning() -> None:
    """Silence what PySpark prints while a stateful query is planned."""
    # For the first micro-batch Spark starts a worker only for the driver, which prints every step
    # to the driver's console. In any other process this does nothing.
    main = sys.modules["__main__"]
    if getattr(main.__spec__, "name", "").endswith("transform_with_state_driver_worker"):
        vars(main)["print"] = lambda *_, **__: None


_pickler: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]


class CepProcessor(StatefulProcessor):
    """Hands each bucket's events and timers to a ``BucketWorker``."""

    # Before the first micro-batch of a query Spark starts a Python process only to learn the state
    # variables, and waits for it. To spare it importing the whole library, the plan travels as
    # bytes, and the worker is imported when there is work.

    def __init__(self, plan: BucketPlan, sides: frozenset[str]) -> None:
        self._settings: bytes = _pickler.dumps((plan, sides))
        self._key_groups = plan.key_groups.count
        self._buckets = frozenset(plan.key_groups.bucket_ids())
        self._worker: BucketWorker | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        quiet_planning()
        vars(self).update(state)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables; refuse the state of more buckets than now configured."""
        self._handle = handle
        self._storage = SparkStorage(handle)
        self._with_state = frozenset[int]()
        if not is_planning(handle):
            self._with_state = frozenset(key[0] for key in keys_with_timers(handle))
            self._refuse_other_buckets()

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Process a bucket's new events."""
        yield self._opened(key).take(key, rows, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        """Advance time for a bucket."""
        yield self._opened(key).wake(key, timerValues)

    def close(self) -> None:
        """End a task."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _refuse_other_buckets(self) -> None:
        """Refuse a checkpoint of more key groups before the micro-batch is committed."""
        # No events reach buckets that no longer exist, so nothing of them would be read until a
        # timer expires. Existing buckets compare fingerprints.
        if not self._with_state <= self._buckets:
            raise PatternChangedError(
                f"the checkpoint holds the state of more key groups than {self._key_groups}",
                "keep the keyGroups that the checkpoint began with, or start a new checkpoint",
            )

    def _opened(self, key: Any) -> BucketWorker:
        """Return the worker for a bucket; each one with state has a timer."""
        self._storage.has_state = int(key[0]) in self._with_state
        if self._worker is None:
            from pyflinkcep.spark.worker.bucket_worker import BucketWorker

            plan, sides = _pickler.loads(self._settings)
            self._worker = BucketWorker(plan, sides, self._handle, self._storage)
        return self._worker
