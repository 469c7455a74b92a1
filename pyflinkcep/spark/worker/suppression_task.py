# SPDX-License-Identifier: Apache-2.0
"""The task that suppresses alerts of a partition."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.matching.columns import table_of
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.matching.suppression import SuppressedAlerts
from pyflinkcep.spark.arrow.internals import arrow_schema
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
