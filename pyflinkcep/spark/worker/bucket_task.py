# SPDX-License-Identifier: Apache-2.0
"""The settings of the work on buckets, of a pattern, a query or a clause."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs
import pyarrow as pa

from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import PageMatcher
from pyflinkcep.matching.order import Order
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.state.bucket_state import StateShape
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.spark.worker.wall_clock import WallClock
from pyflinkcep.time import MIN_WATERMARK

__all__ = ["BucketPlan", "BucketTask", "Matching"]


class Matching(ABC):
    """
    What is matched in buckets: a pattern, a query or a clause, with settings of its own.

    Attributes
    ----------
    counted_stages : mapping of str to int
        The stages that take events, and their numbers, if its matcher counts partial matches.
    """

    counted_stages: Mapping[str, int] = MappingProxyType({})

    @abstractmethod
    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return a plan with this ready to run on a worker; `context` is for rich conditions."""


@attrs.frozen(eq=False, kw_only=True)
class BucketPlan:
    """
    The settings of a stream's operator, made on the driver.

    Attributes
    ----------
    matching : Matching
        What is matched; all other settings are those of any stream.
    layout : Layout
        The layout of packed events.
    schema : pyarrow.Schema
        The columns of packed events.
    key_groups : KeyGroups
        The partition of the keys.
    processing_time : bool
        Whether the job runs in processing time.
    fingerprint : dict of str to str
        The settings that stored state depends on.
    on_pattern_change : {"fail", "restart"}
        The policy for the state of another pattern.
    dropped : frozenset of int
        Events withheld from matching, as bits of the conditions that Spark evaluated.
    delay_ms : int or None, milliseconds
        How far the watermark is behind the latest event of a micro-batch; None for Spark's.
    is_downstream : bool
        Whether the events come from another stateful operator, which follows Spark's watermark:
        then only events at or before the watermark that a bucket has reached are late.
    allows_null_keys : bool
        Whether all columns of a key may be null.
    clock : WallClock or None
        Reads Spark's watermark as the events' time, if that is a ``timestamp_ntz``.
    ahead_ms : int, milliseconds
        How far the watermark is ahead of Spark's, put behind for the operators that follow.
    max_ahead_ms : int or None, milliseconds
        How far an event may be ahead of the others; None for any distance.
    drops_nulls : bool
        Whether events without key or time are counted and passed by; else they are refused.
    """

    matching: Matching
    layout: Layout
    schema: pa.Schema
    key_groups: KeyGroups
    processing_time: bool
    fingerprint: dict[str, str]
    on_pattern_change: str
    dropped: frozenset[int] = frozenset()
    delay_ms: int | None = None
    is_downstream: bool = False
    allows_null_keys: bool = False
    clock: WallClock | None = None
    ahead_ms: int = 0
    max_ahead_ms: int | None = None
    drops_nulls: bool = False

    def task(self, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run on a worker; `context` is for rich conditions."""
        return self.matching.task(self, context)


class BucketTask(ABC):
    """
    A :class:`BucketPlan` ready to run on a worker.

    Parameters
    ----------
    plan : BucketPlan
        The settings.

    Attributes
    ----------
    matcher : PageMatcher
        Matches the events of keys.
    rules : CepOperator or None
        Tells whether a key's events may begin a match; None if unknown.
    order : callable, OrderColumns or None
        The order of events of equal time.

    Notes
    -----
    It holds no state of any key; :class:`~pyflinkcep.spark.worker.bucket.BucketWork` does.
    """

    matcher: PageMatcher
    rules: CepOperator | None = None
    order: Order | None = None

    def __init__(self, plan: BucketPlan) -> None:
        self.layout = plan.layout
        self.schema = plan.schema
        self.key_groups = plan.key_groups
        self.processing_time = plan.processing_time
        self.fingerprint = plan.fingerprint
        self.on_pattern_change = plan.on_pattern_change
        self.dropped = plan.dropped
        self.is_downstream = plan.is_downstream
        self.max_ahead_ms = plan.max_ahead_ms
        self._delay_ms = plan.delay_ms
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
        """Return the watermark for the latest event time of a micro-batch."""
        return (
            MIN_WATERMARK if self._delay_ms is None else max(latest - self._delay_ms, MIN_WATERMARK)
        )

    def latest_at(self, watermark: int) -> int:
        """Return the latest event time behind which a watermark is."""
        return watermark + (self._delay_ms or 0)

    @abstractmethod
    def requeued(self, table: pa.Table, fingerprint: Mapping[str, str]) -> pa.Table:
        """Convert events queued for another pattern, given its fingerprint, to this one's form."""

    @abstractmethod
    def still_droppable(self, dropped: Iterable[int], fingerprint: Mapping[str, str]) -> list[int]:
        """Convert the bits of events dropped because another pattern did not need them."""

    @abstractmethod
    def close(self) -> None:
        """End the life of rich conditions."""
