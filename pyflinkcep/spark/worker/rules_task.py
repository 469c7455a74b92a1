# SPDX-License-Identifier: Apache-2.0
"""The tasks of many rules: which events they want, before the shuffle, and their matches after."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyflinkcep.eql import Eql
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.columns import HASH, Ints, in_one_piece, integers, plain_numbers, table_of
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.sorting import whole_keys
from pyflinkcep.rules.page_events import HOLDING
from pyflinkcep.rules.routes import RoutedRules, Sent
from pyflinkcep.rules.rule_pages import RulePages
from pyflinkcep.rules.stream_rules import StreamRules
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.worker.bucket_task import BucketPlan, BucketTask, Matching
from pyflinkcep.spark.worker.pack import Packets, PackTask
from pyflinkcep.spark.worker.runtime import (
    fewer_collections,
    large_tables,
    partition_number,
    running,
)

_AT_LEAST, _AT_MOST = MOST_EVENTS, 1 << 20
_ROW_BITS = 33  # of the numbers of a partition's rows
_SENT_BYTES = 16  # of what is sent with an event, about
_MOST_NUMBERS = 1 << 30  # of conditions that hold for events at once, if all do for all


@attrs.frozen(eq=False)
class SendingTask:
    """The work on one partition before the shuffle: a row for each place that wants an event."""

    rules: RoutedRules
    kept: Sequence[str]  # The columns of events that are sent

    def __reduce__(self) -> tuple[Any, ...]:
        return _sending_task, (pickle.dumps(self.rules.sending()), tuple(self.kept))

    def run(self, packets: Packets, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events that rules want, in packets."""
        position = partition_number() << _ROW_BITS
        with fewer_collections():
            for table in large_tables(batches, _at_once(len(self.rules.conditions))):
                sent = self.rules.sent(table)
                row_bytes = table.nbytes // table.num_rows + _SENT_BYTES
                for some in packets.portions(len(sent.rows), row_bytes):
                    buckets = packets.bucket_of(sent.targets[some])
                    order = np.argsort(buckets.astype(np.uint16), kind="stable") + some.start
                    yield packets.written(self._rows(table, sent, order), buckets, position)
                    position += len(order)

    def sent(self, table: pa.Table) -> pa.Table:
        """Return a row for each place that wants an event."""
        return self._rows(table, self.rules.sent(table), slice(None))

    def _rows(self, table: pa.Table, sent: Sent, order: Any) -> pa.Table:
        own = integers(sent.rows[order])
        rows = table.select(list(self.kept)).take(own)
        rows = rows.append_column(HASH, integers(sent.targets[order]))
        return rows.append_column(HOLDING, sent.holding(order))


def _sending_task(rules: bytes, kept: Sequence[str]) -> SendingTask:
    return SendingTask(_known_rules(rules), kept)


@lru_cache(maxsize=1)
def _known_rules(rules: bytes) -> RoutedRules:
    """Return rules, which a worker reads once for all of its tasks; they are only conditions."""
    return _read_rules(rules)


def _read_rules(rules: bytes) -> RoutedRules:
    """Read rules, whose very many objects are no garbage."""
    with fewer_collections():
        found: RoutedRules = pickle.loads(rules)
    return found


@attrs.frozen(eq=False, kw_only=True)
class RulesPackTask(PackTask):
    """The same on a stream, whose events are packed for buckets."""

    sending: SendingTask

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack Arrow batches, many at a time, into one row for each bucket with events."""
        at_once = _at_once(len(self.sending.rules.conditions))
        yield from super().run(
            batch for table in large_tables(batches, at_once) for batch in table.to_batches()
        )

    def _divide(self, table: pa.Table, times: Ints) -> tuple[pa.Table, Ints]:
        # Times of all: an event that several places want, or none, is late once.
        return self.sending.sent(table), times

    def _without_nulls(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        events, nulls = super()._without_nulls(table)
        for name in (HASH, HOLDING):
            nulls = nulls.append_column(
                name, pa.nulls(nulls.num_rows, self.schema.field(name).type)
            )
        return events, nulls


def _at_once(conditions: int) -> int:
    """Return how many events are asked at once, since each condition costs something each time."""
    return min(max(_MOST_NUMBERS // max(conditions, 1), _AT_LEAST), _AT_MOST)


@attrs.frozen(eq=False)
class RulesTask:
    """The work on one partition after the shuffle."""

    rules: RoutedRules
    layout: Layout  # Events are of one key if they were sent to one place
    columns: Sequence[str]  # Those of an event
    schema: StructType  # Of matches

    def __reduce__(self) -> tuple[Any, ...]:
        rest = (self.layout, self.columns, self.schema)
        rules = [own.rule.rule for own in self.rules.rules]
        if all(isinstance(own.definition, Eql) and own.select is None for own in rules):
            return _rules_task, (pickle.dumps(self.rules), *rest)
        return RulesTask, (self.rules, *rest)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of a partition; yield its matches."""
        schema = arrow_schema(self.schema)
        with running(self.layout.pattern):
            for events, _ in whole_keys(batches, self.layout):
                targets = plain_numbers(events.column(HASH))
                routes = targets >> 32
                bounds = [0, *(np.flatnonzero(np.diff(routes)) + 1).tolist(), len(routes)]
                for begin, end in pairwise(bounds):
                    own = events.slice(begin, end - begin)
                    found = self.rules.found(
                        own.select(list(self.columns)),
                        targets[begin:end],
                        in_one_piece(own.column(HOLDING)),
                    )
                    if len(found):
                        yield from table_of(found.toArrow().columns, schema).to_batches()


def _rules_task(rules: bytes, *rest: Any) -> RulesTask:
    return RulesTask(_known_arrived(rules), *rest)


@lru_cache(maxsize=1)
def _known_arrived(rules: bytes) -> RoutedRules:
    """Return rules of EQL alone, without functions, which a worker reads once for its tasks."""
    return _read_rules(rules)


@attrs.frozen(eq=False, kw_only=True)
class RulesMatching(Matching):
    """Rules on a stream; see :class:`BucketPlan`."""

    rules: StreamRules
    columns: Sequence[str]  # Those of an event
    schema: StructType  # Of matches
    counts_arrived = False

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        stack = ExitStack()
        schema = arrow_schema(self.schema)
        pages = RulePages(self.rules, self.columns, schema, context, stack)
        return BucketTask(plan, pages, opened=stack)
