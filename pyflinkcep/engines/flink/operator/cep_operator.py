# SPDX-License-Identifier: Apache-2.0
"""The operator's rules for one key: lateness, order, timers and the emission of results.

Specifies ``kernel/src/flink/operator.c`` and ``runs.c``; they must be changed together.
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
from pyflinkcep.engines.flink.nfa.steps import Ask
from pyflinkcep.engines.flink.sharedbuffer import SharedBuffer, SharedBufferAccessor
from pyflinkcep.errors import (
    CepRuntimeError,
    InvalidArgumentError,
    NotSupportedError,
    StateLimitError,
    check_choice,
)
from pyflinkcep.pattern.coercion import required_arguments
from pyflinkcep.time import MAX_WATERMARK

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
                self._enforce_limit(key, accessor, nfa_state, timestamp, output)
                if begun is None and nfa_state.is_new_start_partial_match:
                    begun = timestamp
                for match in matches:
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
    ) -> None:
        """Apply the limit to a key with too many partial matches."""
        limit = self.limit
        if limit is None:
            return
        surplus = len(nfa_state.partial_matches) - 1 - limit.most
        if surplus <= 0:
            return
        if limit.policy == "fail":
            count = limit.most + surplus
            raise too_many(limit, count, timestamp, self.nfa.is_compressible)
        self.nfa.drop_oldest(accessor, nfa_state, surplus)
        output.dropped(key, surplus)

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
