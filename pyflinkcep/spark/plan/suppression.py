# SPDX-License-Identifier: Apache-2.0
"""Alerts to suppress on a DataFrame, analysed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, MapType, StructField, StructType

from pyflinkcep.errors import InputError
from pyflinkcep.matching.columns import PREFIX, quoted
from pyflinkcep.matching.held_back import HeldBack
from pyflinkcep.matching.suppression import (
    MATCH_ID,
    SUPPRESSED,
    SuppressedAlerts,
    Suppression,
    SuppressionPages,
)
from pyflinkcep.spark.plan.job import Job, Prepared
from pyflinkcep.spark.plan.settings import JobSettings
from pyflinkcep.spark.plan.source import EventSource
from pyflinkcep.spark.plan.stream import StreamJob, StreamOutput
from pyflinkcep.spark.state.fingerprint import layout_facts
from pyflinkcep.spark.worker.bucket_task import PagesMatching
from pyflinkcep.spark.worker.pack import RowsTask
from pyflinkcep.spark.worker.suppression_task import SuppressionTask

_ID = f"{PREFIX}id"


@attrs.frozen(eq=False)
class SuppressionJob:
    """Alerts as events, with the key by which they are suppressed."""

    job: Job
    period_ms: int
    id: Column  # What orders alerts of one time, if they have no column for that

    @classmethod
    def analyse(
        cls,
        alerts: DataFrame,
        keys: Sequence[str | Column],
        time_column: str,
        period_ms: int,
        id_: Column,
        settings: JobSettings,
    ) -> SuppressionJob:
        """Check alerts."""
        if SUPPRESSED in alerts.columns:
            raise InputError(
                f"suppress: the alerts have a column {SUPPRESSED!r}",
                "rename it: the number of alerts that are suppressed has this name",
            )
        own = [_comparable(alerts, key) for key in keys]
        source = EventSource.of(alerts, own, time_column, "suppress")
        return cls(Job.of(source, settings), period_ms, id_)

    @property
    def schema(self) -> StructType:
        """The columns of what is shown."""
        own = self.job.source.dataframe.schema.fields
        return StructType([*own, StructField(SUPPRESSED, LongType(), False)])

    def run(self) -> DataFrame:
        """Run the job on bounded alerts."""
        prepared = self._prepared()
        task = SuppressionTask(self._alerts(prepared), self.schema)
        return self.job.run(prepared, task.run, self.schema)

    def stream(self) -> StreamJob:
        """Return the job on unbounded alerts."""
        prepared = self._prepared()
        matching = PagesMatching(pages=partial(SuppressionPages, self._alerts(prepared)))
        # The period may change: it is no part of the state.
        facts = layout_facts(prepared.layout, self.job.settings.groups)
        held_back = HeldBack(None, self.period_ms)
        output = StreamOutput(RowsTask(), self.schema, held_back)
        return StreamJob.of(self.job, prepared, matching, facts, output)

    def _prepared(self) -> Prepared:
        added = {} if MATCH_ID in self.job.source.event_columns else {_ID: self.id}
        return self.job.prepared(added, [*added], has_order=True)

    def _alerts(self, prepared: Prepared) -> SuppressedAlerts:
        source, layout = self.job.source, prepared.layout
        per_ms = 1 if layout.time_unit is None else layout.time_unit
        own = source.event_columns
        id_ = MATCH_ID if MATCH_ID in own else _ID
        return SuppressedAlerts(Suppression(self.period_ms * per_ms, per_ms), layout, id_, own)


def _comparable(alerts: DataFrame, key: str | Column) -> str | Column:
    """Return a key; in place of a map its entries, which can be compared."""
    if not isinstance(key, str) or key not in alerts.columns:
        return key
    if not isinstance(alerts.schema[key].dataType, MapType):
        return key
    return F.array_sort(F.map_entries(F.col(quoted(key)))).alias(key)
