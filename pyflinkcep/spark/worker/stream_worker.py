# SPDX-License-Identifier: Apache-2.0
"""What the workers of a stream need to know; made on the driver, finished on the workers."""

from __future__ import annotations

from contextlib import ExitStack

import attrs
import pyarrow as pa

from pyflinkcep.nfa import NFA, NFACompiler
from pyflinkcep.operator import CepOperator, PartialMatchLimit
from pyflinkcep.pattern import Pattern
from pyflinkcep.runtime import RuntimeContext, opened
from pyflinkcep.spark.arrow.layout import Layout
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.matching.choice import make_matcher
from pyflinkcep.spark.matching.order import TieOrder, as_order
from pyflinkcep.spark.state.bucket_state import StateShape
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.runtime import errors_in
from pyflinkcep.time import MIN_WATERMARK

__all__ = ["StreamPlan", "StreamTask"]


@attrs.frozen(eq=False)
class StreamPlan:
    """
    The settings of a stream's operator.

    Attributes
    ----------
    pattern : Pattern
        The pattern; compiled on each worker.
    layout : Layout
        Where things are in packed events.
    schema : pyarrow.Schema
        The columns of packed events.
    key_groups : KeyGroups
        The partition of the keys.
    comparator : callable or None
        Orders events of equal time.
    processing_time : bool
        Whether the clock counts.
    wants_timeouts : bool
        Whether timed-out partial matches are wanted.
    fingerprint : dict of str to str
        What stored state depends on.
    on_pattern_change : {"fail", "restart"}
        What to do with the state of another pattern.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    droppable, dropped : frozenset of int
        Events that matching can do without, and those of them that it does not get, by the bits
        of the conditions that Spark evaluated.
    delay_ms : int or None, milliseconds
        How far the watermark is behind the latest event of a micro-batch; None if it is Spark's.
    is_downstream : bool
        Whether the events come from another stateful operator, which follows Spark's watermark:
        then nothing is late but what is at or before the watermark that a bucket has reached.
    """

    pattern: Pattern
    layout: Layout
    schema: pa.Schema
    key_groups: KeyGroups
    comparator: TieOrder | None
    processing_time: bool
    wants_timeouts: bool
    fingerprint: dict[str, str]
    on_pattern_change: str
    limit: PartialMatchLimit | None = None
    droppable: frozenset[int] = frozenset()
    dropped: frozenset[int] = frozenset()
    delay_ms: int | None = None
    is_downstream: bool = False


class StreamTask:
    """
    A :class:`StreamPlan` ready to run on a worker.

    Parameters
    ----------
    plan : StreamPlan
        The settings.
    context : RuntimeContext
        What rich conditions get.

    Notes
    -----
    It holds nothing of any key; :class:`~pyflinkcep.spark.worker.bucket.BucketWork` does.
    """

    def __init__(self, plan: StreamPlan, context: RuntimeContext) -> None:
        self.layout = plan.layout
        self.schema = plan.schema
        self.key_groups = plan.key_groups
        self.processing_time = plan.processing_time
        self.wants_timeouts = plan.wants_timeouts
        self.fingerprint = plan.fingerprint
        self.on_pattern_change = plan.on_pattern_change
        self.droppable = plan.droppable
        self.dropped = plan.dropped
        self.is_downstream = plan.is_downstream
        self._delay_ms = plan.delay_ms
        self.order = as_order(plan.comparator)
        self.nfa: NFA = NFACompiler.compile(plan.pattern, plan.wants_timeouts)
        self._open = ExitStack()
        with errors_in(plan.layout.pattern):
            self._open.enter_context(opened(self.nfa, context, "a condition"))
        self.rules = CepOperator(self.nfa, None, plan.processing_time, plan.limit)
        self.matcher = make_matcher(
            self.nfa,
            plan.wants_timeouts,
            plan.limit,
            plan.layout.values,
            plan.processing_time,
            is_stream=True,
        )
        self.reader = RowReader(plan.layout.schema)
        self.event_schema = pa.schema([plan.schema.field(name) for name in plan.layout.payload])
        self.key_schema = pa.schema([plan.schema.field(name) for name in plan.layout.key_signature])
        self.shape = StateShape(
            plan.layout.pattern,
            plan.key_groups,
            plan.schema,
            self.event_schema,
            self.key_schema,
        )

    def watermark_of(self, latest: int) -> int:
        """Return the watermark that the latest event time of a micro-batch makes."""
        return (
            MIN_WATERMARK if self._delay_ms is None else max(latest - self._delay_ms, MIN_WATERMARK)
        )

    def close(self) -> None:
        """End the life of rich conditions."""
        self._open.close()
