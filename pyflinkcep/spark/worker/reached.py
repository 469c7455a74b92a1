# SPDX-License-Identifier: Apache-2.0
"""From stages that partial matches reached to output rows, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.results import REACHED, Found
from pyflinkcep.matching.retyping import retyped
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.worker.consumers import MAIN, MatchTimes, Outputs, key_columns

__all__ = ["ReachedConsumer"]


@attrs.define(eq=False)
class ReachedConsumer:
    """
    Makes a row of each stage that a partial match reached.

    Attributes
    ----------
    schemas : dict of str to StructType
        The main output: key, columns of the first event, stage, step, time, milliseconds since the
        event before and since the first.
    first_columns : sequence of str
        The columns taken from a partial match's first event, those of the key first.
    stages : sequence of str
        The stages that take events, in pattern order.
    times : MatchTimes
        The time column of events.
    """

    schemas: dict[str, StructType]
    first_columns: Sequence[str]
    stages: Sequence[str]
    times: MatchTimes
    wants_timeouts: bool = attrs.field(init=False, default=False)
    wants_reached: bool = attrs.field(init=False, default=True)
    shows_time: bool = attrs.field(init=False, default=True)

    def open(self, context: RuntimeContext) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows."""
        schema = arrow_schema(self.schemas[MAIN])
        found = found.only(found.kinds == REACHED)
        if not len(found):
            return {MAIN: schema.empty_table()}
        firsts, lasts = found.firsts, found.ends - 1
        taken = self.times.of_events(found, events)
        since_first = taken[lasts] - taken[firsts]
        numbers = np.asarray(
            [self.stages.index(name) if name in self.stages else -1 for name in found.stages]
        )[found.stage_of[lasts]]
        columns = [
            *key_columns(found, events, self.first_columns),
            pa.array(self.stages).take(pa.array(numbers)),
            pa.array(numbers + 1),
            self.times.column_of(taken[lasts]),
            pa.array(_since_previous(taken, firsts, lasts), mask=firsts == lasts),
            pa.array(since_first),
        ]
        made = [retyped(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return {MAIN: pa.table(made, schema=schema)}


def _since_previous(taken: Ints, firsts: Ints, lasts: Ints) -> Ints:
    """Return the time between the last event of each and the newest before it."""
    before = taken.copy()
    before[lasts] = np.iinfo(np.int64).min
    newest: Ints = np.maximum.reduceat(before, firsts)
    since: Ints = np.where(firsts == lasts, 0, taken[lasts] - newest)
    return since
