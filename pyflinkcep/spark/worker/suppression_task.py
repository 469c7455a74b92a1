# SPDX-License-Identifier: Apache-2.0
"""Tasks that suppress alerts: on a partition, and on a stream's buckets."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import table_of
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.matching.suppression import SuppressedAlerts, SuppressionPages
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.runtime import running


@attrs.frozen(eq=False)
class SuppressionTask:
    """The work on one partition."""

    alerts: SuppressedAlerts
    schema: StructType  # Of what is shown

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is shown of the alerts of a partition."""
        layout, schema = self.alerts.layout, arrow_schema(self.schema)
        with running(layout.pattern):
            for alerts, ends in whole_keys(batches, layout):
                shown = self.alerts.shown(alerts, ends)
                yield from table_of(shown.columns, schema).to_batches()


@attrs.frozen(eq=False, kw_only=True)
class SuppressionMatching(Matching):
    """Suppresses alerts on a stream; see :class:`BucketPlan`."""

    alerts: SuppressedAlerts

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        return BucketTask(plan, SuppressionPages(self.alerts))
