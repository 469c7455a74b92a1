# SPDX-License-Identifier: Apache-2.0
"""The settings of the work on buckets, of a pattern, a query or a clause."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from types import MappingProxyType
from zoneinfo import ZoneInfo

import attrs
import pyarrow as pa

from pyflinkcep.engines.flink.operator import CepOperator
from pyflinkcep.errors import InputError
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.matching.layout import Layout
from pyflinkcep.matching.matcher import PageMatcher
from pyflinkcep.matching.order import Order
from pyflinkcep.spark.arrow.rows import RowReader
from pyflinkcep.spark.state.bucket_state import BucketState, StateShape
from pyflinkcep.spark.state.key_groups import KeyGroups
from pyflinkcep.time import MIN_WATERMARK

_DAY = 24 * 3600 * 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (datetime(1, 1, 3, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST = (datetime(9999, 12, 29, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@attrs.frozen
class WallClock:
    """
    The clock of a session's time zone, which Spark reads a ``timestamp_ntz`` by.

    Notes
    -----
    When clocks are set back, an hour is shown twice; when they are set forward, Spark reads the
    hour that they skip as the next one. The clock here runs behind in these two hours, so that an
    event after the watermark in either time is not before it in the other.

    Examples
    --------
    >>> hour = 3_600_000
    >>> WallClock("Asia/Tokyo").shows(0) // hour, WallClock("-05:00").shows(0) // hour
    (9, -5)
    >>> back = 1_730_613_600_000  # in New York it is 2 o'clock, and again 1 o'clock
    >>> clock = WallClock("America/New_York")
    >>> [(clock.shows(back + n * hour // 2) - clock.shows(back)) / hour for n in (-3, -2, 0, 1)]
    [-0.5, -2.7777777777777776e-07, 0.0, 0.5]
    """

    zone: str  # The time zone, as ``spark.sql.session.timeZone`` names it

    def __attrs_post_init__(self) -> None:
        _zone(self.zone)

    def shows(self, moment: int) -> int:
        """Return the latest time that no later event can have, epoch milliseconds as if in UTC."""
        if not _FIRST <= moment <= _LAST:
            return moment
        here = self._offset(moment)
        after, before = self._offset(moment + _DAY), self._offset(moment - _DAY)
        if after < here:  # set back soon: the time just after will be shown again
            changed = self._change(moment, moment + _DAY)
            return min(moment + here, changed + after - 1)
        if before < here and moment < self._change(moment - _DAY, moment) + here - before:
            return moment + before
        return moment + here

    def reaches(self, time: int) -> int:
        """Return the first moment at which the clock :meth:`shows` a time or a later one."""
        if not _FIRST <= time <= _LAST:
            return time
        low, high = time - 2 * _DAY, time + 2 * _DAY
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.shows(middle) >= time else (middle + 1, high)
        return low

    def _offset(self, moment: int) -> int:
        """Return how far the clock is ahead of UTC at a moment, in milliseconds."""
        inside = min(max(moment, _FIRST), _LAST)
        local = (_EPOCH + timedelta(milliseconds=inside)).astimezone(_zone(self.zone))
        return (local.utcoffset() or timedelta()) // timedelta(milliseconds=1)

    def _change(self, low: int, high: int) -> int:
        """Return the moment between two at which the clock is set."""
        first = self._offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._offset(middle) == first else (low, middle)
        return high


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    if name == "Z":
        return UTC
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        sign, hours, minutes, seconds = fixed.groups(default="0")
        offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as cause:  # ZoneInfoNotFoundError is a KeyError
        raise InputError(
            f"Python does not know the session's time zone {name!r}, "
            "by which Spark reads a timestamp_ntz",
            "set spark.sql.session.timeZone to a region such as 'Europe/Berlin'; on a system "
            "without time zones, install tzdata",
        ) from cause


@attrs.frozen(eq=False, kw_only=True)
class BucketPlan:
    """The settings of a stream's operator, made on the driver."""

    matching: Matching  # What is matched; all other settings are those of any stream
    layout: Layout  # The layout of packed events
    schema: pa.Schema  # The columns of packed events
    key_groups: KeyGroups  # The partition of the keys
    processing_time: bool  # Whether the job runs in processing time
    fingerprint: dict[str, str]  # The settings that stored state depends on
    on_pattern_change: str  # The policy for the state of another pattern
    # What facts of the fingerprint were while no checkpoint said them.
    unsaid: Mapping[str, str] = attrs.field(factory=dict)
    # Events withheld from matching, as bits of the conditions that Spark evaluated.
    dropped: frozenset[int] = frozenset()
    # How far the watermark is behind the latest event of a micro-batch; None for Spark's.
    delay_ms: int | None = None
    # Whether the events come from another stateful operator, which follows Spark's watermark: then
    # only events at or before the watermark that a bucket has reached are late.
    is_downstream: bool = False
    allows_null_keys: bool = False  # Whether all columns of a key may be null
    # Reads Spark's watermark as the events' time, if that is a ``timestamp_ntz``.
    clock: WallClock | None = None
    # How far the watermark is ahead of Spark's, put behind for the operators that follow.
    ahead_ms: int = 0
    # How far an event may be ahead of the others; None for any distance.
    max_ahead_ms: int | None = None
    # Whether events without key or time are counted and passed by; else they are refused.
    drops_nulls: bool = False

    def task(self, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run on a worker; `context` is for rich conditions."""
        return self.matching.task(self, context)

    def watermark_of(self, latest: int) -> int:
        """Return the watermark for the latest event time of a micro-batch."""
        if self.delay_ms is None:
            return MIN_WATERMARK
        return max(latest - self.delay_ms, MIN_WATERMARK)


# Does what comes before the events of a micro-batch join the queue: rules change. Given the state,
# the watermark up to which events of the queue are processed, events and publications, it returns
# the events that are needed, and what is told of publications.
Arriving = Callable[
    [BucketState, int, Sequence[pa.Table], Mapping[int, str]],
    tuple[Sequence[pa.Table], pa.Table | None],
]


@attrs.frozen(eq=False)
class BucketTask:
    """A :class:`BucketPlan` ready to run on a worker; it holds no state of any key."""

    plan: BucketPlan
    matcher: PageMatcher  # Matches the events of keys
    # Tells whether a key's events may begin a match; None if unknown.
    rules: CepOperator | None = None
    order: Order | None = None  # The order of events of equal time
    shape: StateShape = attrs.field(init=False)
    reader: RowReader = attrs.field(init=False)
    opened: ExitStack = attrs.field(factory=ExitStack)  # Ends the life of rich conditions
    arriving: Arriving | None = None  # Is called in each micro-batch, if rules change

    @shape.default
    def _shape(self) -> StateShape:
        layout, schema = self.plan.layout, self.plan.schema
        held, keys = (
            pa.schema([schema.field(name) for name in names])
            for names in (layout.payload, layout.key_signature)
        )
        return StateShape(layout.pattern, self.plan.key_groups, schema, held, keys)

    @reader.default
    def _reader(self) -> RowReader:
        return RowReader(self.plan.layout.schema)

    def close(self) -> None:
        """End the life of rich conditions, if there are any."""
        self.opened.close()


class Matching(ABC):
    """What is matched in buckets: a pattern, a query or a clause, with settings of its own."""

    # The stages that take events, and their numbers, if its matcher counts partial matches.
    counted_stages: Mapping[str, int] = MappingProxyType({})
    # Whether events that arrive count if they are late or too far ahead; else only those count
    # whose times come beside them, since an event may arrive at several places.
    counts_arrived = True

    @abstractmethod
    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return a plan with this ready to run on a worker; `context` is for rich conditions."""

    def requeued(
        self, task: BucketTask, table: pa.Table, fingerprint: Mapping[str, str]
    ) -> pa.Table:
        """Convert events queued for another pattern, given its fingerprint, to this one's form."""
        return table.select(task.plan.schema.names)

    def still_droppable(
        self, task: BucketTask, dropped: Iterable[int], fingerprint: Mapping[str, str]
    ) -> list[int]:
        """Convert the bits of events dropped because another pattern did not need them."""
        return []


@attrs.frozen(eq=False, kw_only=True)
class PagesMatching(Matching):
    """What needs no more than pages, which are made anew on each worker."""

    pages: Callable[[], PageMatcher]  # Makes them
    order: Order | None = None  # The order of events of equal time

    def task(self, plan: BucketPlan, context: RuntimeContext) -> BucketTask:
        """Return the plan ready to run."""
        return BucketTask(plan, self.pages(), order=self.order)
