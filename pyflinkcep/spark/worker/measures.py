# SPDX-License-Identifier: Apache-2.0
"""From matches to rows with the values of measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.leaf_columns import LeafColumn, LeafColumns
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.output import known_times
from pyflinkcep.matching.results import Found
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.worker.consumers import (
    MAIN,
    MatchTimes,
    Outputs,
    key_columns,
)

__all__ = ["ValueConsumer"]


@attrs.define(eq=False)
class ValueConsumer:
    """
    Returns the values that measures need from each match, after the key.

    Attributes
    ----------
    schema : StructType
        The key's columns, then one column for each of `leaves`.
    key_columns : sequence of str
        The key's columns among the events' columns.
    leaves : sequence of LeafColumn
        The values.
    times : MatchTimes
        The times of matches.
    ansi : bool
        Whether a sum out of range is an error.
    """

    schema: StructType
    key_columns: Sequence[str]
    leaves: Sequence[LeafColumn]
    times: MatchTimes
    ansi: bool
    schemas: dict[str, StructType] = attrs.field(init=False)
    wants_timeouts: bool = attrs.field(init=False, default=False)
    wants_reached: bool = attrs.field(init=False, default=False)
    shows_time: bool = attrs.field(init=False)
    by_windows: bool = attrs.field(init=False, default=True)
    most_events: int = attrs.field(init=False, default=MOST_EVENTS)

    def __attrs_post_init__(self) -> None:
        self.schemas = {MAIN: self.schema}
        self.shows_time = any(leaf.function == "rowtime" for leaf in self.leaves)

    def open(self, context: RuntimeContext) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows."""
        schema = arrow_schema(self.schema)
        if not len(found):
            return {MAIN: schema.empty_table()}
        columns: list[Any] = key_columns(found, events, self.key_columns)
        columns += LeafColumns(self.leaves, self.ansi).of(
            found, events, lambda: known_times(self.times.of(found, events), self.times.unit or 1)
        )
        cast = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
        return {MAIN: pa.table(cast, schema=schema)}
