# SPDX-License-Identifier: Apache-2.0
"""
Flink's operator: its rules for one key, and the keyed operator in memory.

The rules are lateness, order, timers and the emission of results. Specifies
``kernel/src/flink/operator.c`` and ``runs.c``; they must be changed together.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs

from pyflinkcep.engines.flink.nfa import (
    NFA,
    EventEvaluation,
    EventMatch,
    Expressions,
    NFAState,
    TimedOut,
)
from pyflinkcep.engines.flink.nfa.state import Ask
from pyflinkcep.engines.flink.sharedbuffer import SharedBuffer, SharedBufferAccessor
from pyflinkcep.errors import (
    CepRuntimeError,
    InvalidArgumentError,
    NotSupportedError,
    StateLimitError,
    check_choice,
)
from pyflinkcep.pattern.coercion import required_arguments
from pyflinkcep.time import MAX_WATERMARK, MIN_WATERMARK

Comparator = Any
"""A sort key of one event, a function of two that compares them, or an ``EventComparator``."""


def comparator_key(comparator: Comparator | None) -> Callable[[Any], Any] | None:
    """
    Turn a comparator into a sort key.

    >>> sorted([3, 1, 2], key=comparator_key(lambda a, b: b - a))
    [3, 2, 1]
    """
    if comparator is None:
        return None
    compare = getattr(comparator, "compare", None)
    if compare is not None:
        return functools.cmp_to_key(compare)
    if not callable(comparator):
        raise InvalidArgumentError(
            f"expected a comparator, got {comparator!r}",
            "pass a sort key or a function of two events",
        )
    key: Callable[[Any], Any] = comparator
    return functools.cmp_to_key(comparator) if required_arguments(comparator) == 2 else key


_POLICIES = ("fail", "dropOldest")


@attrs.frozen
class PartialMatchLimit:
    """
    The most partial matches of a key, and the policy for more.

    Differs from Flink, which has no such bound.
    """

    most: int = attrs.field()  # The bound; the start state does not count
    # Fail the job, or drop the partial matches that began first and count them.
    policy: str = attrs.field(default="fail")

    @most.validator
    def _check_most(self, _: object, most: int) -> None:
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise InvalidArgumentError(
                f"maxPartialMatches={most!r}", "pass a number from 1, or None for no bound"
            )

    @policy.validator
    def _check_policy(self, _: object, policy: str) -> None:
        check_choice("onTooManyPartialMatches", policy, _POLICIES)

    @classmethod
    def of(cls, most: int | None, policy: str) -> PartialMatchLimit | None:
        """Return the limit of two settings; None without one, for which a policy is refused."""
        check_choice("onTooManyPartialMatches", policy, _POLICIES)
        if most is None and policy != "fail":
            raise InvalidArgumentError(
                f"onTooManyPartialMatches={policy!r} without maxPartialMatches",
                "write maxPartialMatches=100_000, the most partial matches of a key, too",
            )
        return None if most is None else cls(most, policy)


def too_many(
    limit: PartialMatchLimit, count: int, timestamp: int, is_compressible: bool
) -> StateLimitError:
    """
    Make the error for a key with too many partial matches.

    `is_compressible` says whether the matches of the pattern can be counted without listing them.
    """
    return StateLimitError(
        f"{count} partial matches, maxPartialMatches is {limit.most}",
        f"{less_held(is_compressible)}, "
        'or use onTooManyPartialMatches="dropOldest", which loses matches',
        timestamp_ms=timestamp,
    )


def compressed_with_limit() -> NotSupportedError:
    """Make the error for a bound on partial matches of which equal ones are merged."""
    return NotSupportedError(
        "compressed matches do not support maxPartialMatches, which bounds those that are listed",
        "leave it out: equal partial matches are merged",
    )


def less_held(is_compressible: bool) -> str:
    """Return what to write in place of a pattern that holds too much."""
    counts = "count or aggregate the matches with .compressed(), which does not list them, "
    stricter = "give the pattern a shorter window or a stricter condition"
    return counts + stricter if is_compressible else stricter


def is_late(timestamp: Any, watermark: Any) -> Any:
    """
    Whether an event is late: its time is not after the watermark.

    Ports ``CepOperator.processElement`` (Flink 2.3.0): equal is late, contrary to its
    documentation.
    """
    return timestamp <= watermark


class Output(Protocol):
    """Receives an operator's results; times are epoch milliseconds."""

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a match."""

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Receive a timed-out partial match; `timestamp` is the end of its window."""

    def dropped(self, key: Any, count: int) -> None:
        """Receive the number of partial matches dropped because there were too many."""


@attrs.define(eq=False)
class KeyState:
    """The state of one key between calls."""

    nfa_state: NFAState  # Partial matches and waiting matches
    buffer: SharedBuffer = attrs.field(factory=SharedBuffer)  # Their events
    # When the key must be processed even without events: ends of windows.
    timers: set[int] = attrs.field(factory=set)


@attrs.frozen(eq=False)
class CepOperator:
    """
    The rules of Flink's operator, separate from the state they work on.

    An engine calls for each key, in this order:

    1. :meth:`new_key`, once; :meth:`may_begin` tells whether an event needs a state at all.
    2. :meth:`process_events`, with events in their final order, by ascending time. Before the first
       event of each time, windows that are over end.
    3. :meth:`advance_time`, when the watermark or clock has passed these events.
    4. :meth:`is_idle`: if true, the key's state may be discarded.

    Steps 2 and 3 repeat; results go to the output while they run, in Flink's order.

    Ports ``org.apache.flink.cep.operator.CepOperator`` (Flink 2.3.0). Every engine (the test
    harness, Spark batch, Spark streaming) keeps its own queue of early events and hands them over
    in order; everything after that is here.
    """

    nfa: NFA  # The compiled pattern
    # Turns a stored event into the event as the user's conditions see it.
    view: Callable[[Any], Any] | None = None
    processing_time: bool = False  # Whether time is the clock's instead of the events'
    limit: PartialMatchLimit | None = None  # How many partial matches a key may have
    # The pattern's match expressions, if the engine can evaluate them.
    expressions: Expressions | None = None
    # Whether a match that the end of a window released has that time, as if the watermark moved
    # with every millisecond, in place of the time of the event or watermark that ended it.
    by_windows: bool = False

    def new_key(self) -> KeyState:
        """Return the state of a new key."""
        return KeyState(self.nfa.create_initial_state())

    def may_begin(self, bits: int, known: int) -> bool:
        """Whether an event may change anything for a key that has nothing pending."""
        node: Any = self.nfa.start.first()
        while isinstance(node, Ask):
            if not node.atom.bit & known:
                return True
            node = node.following(bits & node.atom.bit != 0)
        return not node.keeps

    def process_events(
        self,
        key: Any,
        state: KeyState,
        timestamps: Sequence[int],
        events: Sequence[Any],
        output: Output,
        known: int = 0,
        values: Sequence[int] | None = None,
        processing_time: int | None = None,
    ) -> None:
        """Match events of a key in their final order."""
        nfa, nfa_state, accessor = self.nfa, state.nfa_state, state.buffer.get_accessor()
        evaluation = EventEvaluation(
            self.view, known, processing_time, self.expressions, nfa.observer
        )
        answers = itertools.repeat(0) if values is None else values
        now: int | None = None
        begun = timestamps[0] if nfa_state.is_new_start_partial_match and len(timestamps) else None
        try:
            for timestamp, event, bits in zip(timestamps, events, answers, strict=False):
                # Once per time: its first event may move a partial match to a state whose gap is
                # already over, and in Flink the second event can still use it.
                if timestamp != now:
                    self._advance(key, accessor, nfa_state, timestamp, output)
                now = timestamp
                evaluation.begin(event, timestamp, bits)
                matches = nfa.process(accessor, nfa_state, timestamp, evaluation, event)
                released = self._enforce_limit(key, accessor, nfa_state, timestamp, output)
                if begun is None and nfa_state.is_new_start_partial_match:
                    begun = timestamp
                for match in (*matches, *released):
                    output.match(key, timestamp, match)
        except CepRuntimeError as error:
            raise error.at_key(key) from error.__cause__
        if begun is not None and nfa.window_time > 0:
            self._set_timers(state, timestamps, begun)

    def _enforce_limit(
        self,
        key: Any,
        accessor: SharedBufferAccessor,
        nfa_state: NFAState,
        timestamp: int,
        output: Output,
    ) -> list[EventMatch]:
        """Apply the limit to a key with too many partial matches; return what that releases."""
        limit = self.limit
        if limit is None:
            return []
        surplus = len(nfa_state.partial_matches) - 1 - limit.most
        if surplus <= 0:
            return []
        if limit.policy == "fail":
            count = limit.most + surplus
            raise too_many(limit, count, timestamp, self.nfa.is_compressible)
        released = self.nfa.drop_oldest(accessor, nfa_state, surplus)
        output.dropped(key, surplus)
        return released

    def _set_timers(self, state: KeyState, timestamps: Sequence[int], begun: int) -> None:
        """
        Set the timers that end windows, after events that include the start of a match at `begun`.

        Flink sets one for each event from then on, whether it begins a match or not. They matter if
        a partial match has no timer of its own, because a gap ends it earlier or because it began
        at or before the epoch. Otherwise one for each partial match will do.
        """
        window, timers = self.nfa.window_time, state.timers
        partials = state.nfa_state.partial_matches
        earliest = partials[0].start_event_id
        if self.nfa.window_times or (earliest is not None and earliest.timestamp <= 0):
            later = (self.timer_after(time + window) for time in timestamps if time >= begun)
            timers.update(timer for timer in later if timer <= MAX_WATERMARK)
            return
        new: set[int] = set()
        for partial in reversed(partials):
            start = partial.start_event_id
            if start is not None:
                timer = self.timer_after(start.timestamp + window)
                if timer > MAX_WATERMARK:
                    continue  # beyond any watermark
                if timer in timers:
                    break  # those of earlier starts were set before
                new.add(timer)
        timers |= new

    def advance_time(self, key: Any, state: KeyState, timestamp: int, output: Output) -> None:
        """Advance time for a key whose events up to then were processed."""
        state.timers = {timer for timer in state.timers if timer > timestamp}
        try:
            accessor = state.buffer.get_accessor()
            self._advance(key, accessor, state.nfa_state, timestamp, output)
        except CepRuntimeError as error:
            raise error.at_key(key) from error.__cause__
        state.nfa_state.reset_flags()

    def timer_after(self, timestamp: int) -> int:
        """Return when a timer fires: the clock must pass its time, a watermark reach it."""
        return timestamp + 1 if self.processing_time else timestamp

    def is_idle(self, state: KeyState) -> bool:
        """
        Whether nothing is pending, so that the key needs no state.

        With gap windows a remaining timer still decides when a later partial match times out, so
        the key waits for it.
        """
        return state.nfa_state.is_initial() and not (self.nfa.window_times and state.timers)

    def _advance(
        self,
        key: Any,
        accessor: SharedBufferAccessor,
        nfa_state: NFAState,
        timestamp: int,
        output: Output,
    ) -> None:
        now: int | None = None
        while now != timestamp:
            now = self.nfa.release_time(nfa_state, timestamp) if self.by_windows else timestamp
            pending: list[tuple[EventMatch, int]]
            timed_out: list[TimedOut]
            pending, timed_out = self.nfa.advance_time(accessor, nfa_state, now)
            for match, time in pending:
                output.match(key, time if self.by_windows else timestamp, match)
            for match, deadline in timed_out:
                output.timeout(key, deadline, match)


class KeyedOutput(Output, Protocol):
    """Receives the results of a keyed operator."""

    def late(self, key: Any, event: Any) -> None:
        """Receive an event that came too late."""


@attrs.define(eq=False)
class KeyContext:
    """The state of a key and its queue."""

    state: KeyState  # Partial matches, their events, and timers
    # Events that wait for the watermark, by time in epoch milliseconds.
    queue: dict[int, list[Any]] = attrs.field(factory=dict)


@attrs.define(eq=False)
class KeyedCepOperator:
    """Flink's keyed operator in memory."""

    operator: CepOperator  # The rules
    output: KeyedOutput  # Receives matches, timeouts and late events
    # A sort key for events of equal time; by default they keep the order of arrival.
    order: Callable[[Any], Any] | None = None
    keys: dict[Any, KeyContext] = attrs.field(factory=dict)  # The keys with anything pending
    watermark: int = MIN_WATERMARK  # The last watermark; in processing time the clock
    # The number of late events; Flink's ``numLateRecordsDropped`` if no output takes them.
    late_dropped: int = 0

    def process_element(self, key: Any, event: Any, timestamp: int) -> None:
        """Process an event."""
        if self.operator.processing_time:
            self._process_now(key, event)
        elif is_late(timestamp, self.watermark):
            self.late_dropped += 1
            self.output.late(key, event)
        else:
            self._context(key).queue.setdefault(timestamp, []).append(event)

    def advance_watermark(self, watermark: int) -> None:
        """Advance the watermark, or the clock, and process everything that waited for it."""
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        due = []
        for number, (key, context) in enumerate(self.keys.items()):
            timers = [self.operator.timer_after(time) for time in context.queue]
            earliest = min([*timers, *context.state.timers], default=None)
            if earliest is not None and earliest <= watermark:
                due.append((earliest, number, key))
        for _, _, key in sorted(due, key=lambda entry: entry[:2]):
            self._on_timer(key)

    def _context(self, key: Any) -> KeyContext:
        context = self.keys.get(key)
        if context is None:
            context = self.keys[key] = KeyContext(self.operator.new_key())
        return context

    def _on_timer(self, key: Any) -> None:
        """Process what waited for the watermark, in order of time, then advance time."""
        context = self.keys[key]
        limit = self.watermark
        for timestamp in sorted(time for time in context.queue if time <= limit):
            events = context.queue.pop(timestamp)
            if self.order is not None:
                events.sort(key=self.order)
            times = [timestamp] * len(events)
            self.operator.process_events(key, context.state, times, events, self.output)
        self.operator.advance_time(key, context.state, limit, self.output)
        self._forget_if_idle(key, context)

    def _process_now(self, key: Any, event: Any) -> None:
        now, context = self.watermark, self._context(key)
        if self.order is not None:
            # Wait for the clock to move on, since events of the same instant must still be ordered.
            context.queue.setdefault(now, []).append(event)
            return
        self.operator.process_events(
            key, context.state, [now], [event], self.output, processing_time=now
        )
        context.state.nfa_state.reset_flags()
        self._forget_if_idle(key, context)

    def _forget_if_idle(self, key: Any, context: KeyContext) -> None:
        if not context.queue and self.operator.is_idle(context.state):
            del self.keys[key]


@attrs.frozen(eq=False)
class Input:
    """Events in the order in which they arrive at a keyed operator in memory."""

    events: Sequence[Any]  # The events, as conditions see them
    times: Sequence[int]  # Their times
    keys: Sequence[Any]  # Their keys, hashable
    # How far the watermark is behind the latest time; None to sort the events first.
    delay: int | None = None
    # A sort key for events of equal time; by default they keep their order.
    order: Callable[[Any], Any] | None = None
    # A key of which later events are left out, and the time of its last one: what is to become of
    # its partial matches after that is not known.
    cut: tuple[Any, int] | None = None

    @property
    def order_of_numbers(self) -> Callable[[int], Any] | None:
        """The order for events that are known by their numbers."""
        order, events = self.order, self.events
        return None if order is None else lambda number: order(events[number])

    def feed(self, keyed: KeyedCepOperator, *, by_number: bool = True) -> None:
        """Let the events arrive, as they are or as their numbers, and then the end."""
        latest: int | None = None
        elements = range(len(self.times)) if by_number else self.events
        for element, time, key in zip(elements, self.times, self.keys, strict=True):
            keyed.process_element(key, element, time)
            latest = time if latest is None else max(latest, time)
            if self.delay is not None:
                # As in Flink: this time may still come.
                keyed.advance_watermark(latest - self.delay - 1)
        if self.cut is not None:
            key, last = self.cut
            keyed.advance_watermark(last)
            keyed.keys.pop(key, None)
        keyed.advance_watermark(MAX_WATERMARK)
