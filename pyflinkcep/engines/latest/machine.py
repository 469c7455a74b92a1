# SPDX-License-Identifier: Apache-2.0
"""
The machine for rules: at most one run for each rule, key and step, the latest.

Conditions and keys are not its business: an event is offered to steps with keys. An event may end
one run, continue another and begin a third; it is never two steps of one run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple, TypeVar

import attrs

from pyflinkcep.errors import InvalidArgumentError, StateFormatError

_T = TypeVar("_T")


class Role(IntEnum):
    """What a step does with an event."""

    TAKES = 0
    LEADING = 1  # Missing, before the first event
    BETWEEN = 2  # Missing, between two events
    TRAILING = 3  # Missing, after the last event
    UNTIL = 4


@attrs.frozen(slots=False)
class LatestRule:
    """
    A sequence of steps; conditions and keys are the caller's.

    Steps are numbered in order, from 0; the number after the last is ``until``. The rank of a step
    is its number among those that take an event.
    """

    missing: tuple[bool, ...]  # For each step, repetitions written out, whether it must be missing
    maxspan: int | None = None  # The longest time from the first event to the last, in ms
    has_until: bool = False  # Whether events may be offered to ``until``

    def __attrs_post_init__(self) -> None:
        if all(self.missing):
            raise InvalidArgumentError("no step takes an event", "add a step that is not missing")
        if any(self.missing) and self.maxspan is None:
            raise InvalidArgumentError("a missing step without a maxspan", "add a maxspan")
        if self.maxspan is not None and self.maxspan < 0:
            raise InvalidArgumentError(f"maxspan: expected 0 or more, got {self.maxspan}", "in ms")

    @classmethod
    def of(cls, steps: int, maxspan: int | None = None) -> LatestRule:
        """Return a rule whose steps all take an event."""
        return cls((False,) * steps, maxspan)

    @property
    def size(self) -> int:
        """The number of events of a match."""
        return len(self.missing) - sum(self.missing)

    @property
    def until(self) -> int:
        """The number by which events are offered to ``until``."""
        return len(self.missing)

    @property
    def leads(self) -> bool:
        """Whether a missing step comes before the first event."""
        return self.missing[0]

    @property
    def trails(self) -> bool:
        """Whether a missing step comes after the last event."""
        return self.missing[-1]

    @cached_property
    def roles(self) -> tuple[tuple[Role, int], ...]:
        """
        The role of each step and of ``until``, and a rank.

        The rank is that of a step that takes an event, and for a step between two events that of
        the first of them.
        """
        found: list[tuple[Role, int]] = []
        rank, size = -1, self.size
        for missing in self.missing:
            rank += not missing
            role = Role.BETWEEN if 0 <= rank < size - 1 else Role.LEADING
            if missing and rank == size - 1:
                role = Role.TRAILING
            found.append((role if missing else Role.TAKES, rank))
        return *found, (Role.UNTIL, size)

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """When each step and ``until`` sees an event: later steps first, ``until`` after all."""
        return *range(len(self.missing) - 1, -1, -1), len(self.missing)

    def placed(self, events: Iterable[_T]) -> list[_T | None]:
        """Return the events of a match by step, None for a missing step."""
        given = iter(events)
        return [None if missing else next(given) for missing in self.missing]


def step_codes(rules: Sequence[LatestRule]) -> list[int]:
    """Return the code of each rule's step 0; its steps and ``until`` have those that follow."""
    found, code = [], 0
    for rule in rules:
        found.append(code)
        code += len(rule.missing) + 1
    return found


# --- runs


NEVER, BROKEN = -(2**63), -(2**63) + 1
"""In written state: no such time, and a run with an event where one must be missing."""

END = 2**63 - 1
"""The time after which no event comes."""


class Offer(NamedTuple):
    """An event satisfies a step of a rule, and has a key there; give each key of a step once."""

    rule: int  # The rule's number
    step: int  # The step's number, or `LatestRule.until`
    key: Hashable


class LatestMatch(NamedTuple):
    """The events of a match."""

    rule: int
    key: Any
    events: tuple[Any, ...]  # One for each step that takes an event
    number: int  # Ascending in the order of matches: by last event, rule, and keys as offered


@attrs.define
class Run:
    """The events taken so far."""

    events: tuple[Any, ...]
    first: int  # The time of the first
    last: int  # The time of the last
    before: int | None = None  # The latest time before `first` of a leading missing step
    between: int | None = None  # The earliest time after `last` of the missing step that follows
    is_broken: bool = False  # Whether an event came where one must be missing


@attrs.define(eq=False)
class Waiting:
    """A run with all its events, until it is known that no event of a trailing step comes."""

    run: Run
    number: int  # As of a match
    since: int  # An event up to `since` + maxspan stops it


@attrs.define
class KeyState:
    """What a rule keeps for one key: a run for each rank but the last."""

    slots: list[Run | None]
    leading: int | None = None  # The latest time of a leading missing step
    leading_before: int | None = None  # The latest time before that
    waiting: list[Waiting] = attrs.field(factory=list)

    @classmethod
    def of(cls, rule: LatestRule) -> KeyState:
        """Return the state before any event."""
        return cls([None] * (rule.size - 1))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return self.leading is None and not self.waiting and not any(self.slots)

    def last_time(self, rule: LatestRule) -> int | None:
        """
        Return the time when all that is kept is garbage or decided; None if never.

        At a watermark of that time or later the state may be dropped, after `advance`.
        """
        if rule.maxspan is None:
            return None if any(self.slots) else NEVER
        times = [run.first for run in self.slots if run is not None]
        times += [one.since for one in self.waiting]
        times += [] if self.leading is None else [self.leading]
        return max(times) + rule.maxspan if times else NEVER

    def deadline(self, rule: LatestRule) -> int | None:
        """Return the watermark that decides the first match that waits; None if none waits."""
        since = min((one.since for one in self.waiting), default=None)
        return None if since is None or rule.maxspan is None else since + rule.maxspan

    # --- events

    def offered(
        self, rule: LatestRule, role: tuple[Role, int], event: Any, time: int
    ) -> Run | None:
        """Offer an event to a step; return the run that it completes, if any."""
        does, rank = role
        if does is Role.TAKES:
            return self._taken(rule, rank, event, time)
        if does is Role.UNTIL:
            self.slots = [None] * len(self.slots)
        elif does is Role.LEADING:
            if self.leading is None or self.leading < time:
                self.leading, self.leading_before = time, self.leading
        elif does is Role.TRAILING:
            self.waiting = [one for one in self.waiting if one.run.last >= time]
        else:
            run = self.slots[rank]
            if run is not None and run.between is None and run.last < time:
                run.between = time
        return None

    def _taken(self, rule: LatestRule, rank: int, event: Any, time: int) -> Run | None:
        if rank == 0:
            before = self.leading_before if self.leading == time else self.leading
            run = Run((event,), time, time, before)
        else:
            earlier, self.slots[rank - 1] = self.slots[rank - 1], None
            if earlier is None or (
                rule.maxspan is not None and time - earlier.first > rule.maxspan
            ):
                return None
            run = earlier
            run.is_broken |= run.between is not None and run.between < time
            run.events, run.last, run.between = (*run.events, event), time, None
        if rank == rule.size - 1:
            return run
        self.slots[rank] = run
        return None

    def completed(self, rule: LatestRule, run: Run, number: int) -> bool:
        """Whether a run is a match; one that has to wait is kept."""
        if run.is_broken:
            return False
        if rule.leads and run.before is None:
            return True
        since = run.first if run.before is None else run.before
        if rule.trails:
            self.waiting.append(Waiting(run, number, since))
            return False
        return not rule.leads or run.last - since > (rule.maxspan or 0)

    def decided(self, rule: LatestRule, time: int) -> list[Waiting]:
        """Return runs that are matches, since no event up to `time` will still come."""
        span = rule.maxspan or 0
        found = [one for one in self.waiting if one.since + span <= time or time == END]
        if found:
            self.waiting = [one for one in self.waiting if one not in found]
        return found

    def prune(self, rule: LatestRule, time: int) -> None:
        """Drop what is garbage if no event up to `time` will still come."""
        if rule.maxspan is None:
            return
        past = time - rule.maxspan
        self.slots = [None if run is None or run.first <= past else run for run in self.slots]
        if self.leading_before is not None and self.leading_before <= past:
            self.leading_before = None
        if self.leading is not None and self.leading <= past:
            self.leading = None

    # --- stored state

    def written(self) -> tuple[list[int], list[Any]]:
        """
        Return the state as numbers and events; times of events are not among the numbers.

        Without missing steps this is one number for each 62 steps. See `read`.
        """
        numbers: list[int] = []
        for low in range(0, len(self.slots), 62):
            part = self.slots[low : low + 62]
            numbers.append(sum(1 << at for at, run in enumerate(part) if run is not None))
        events = [event for run in self.slots if run is not None for event in run.events]
        runs = [run for run in self.slots if run is not None]
        if self._has_missing():
            for run in runs:
                between = NEVER if run.between is None else run.between
                numbers += [_stored(run.before), BROKEN if run.is_broken else between]
            numbers += [_stored(self.leading), _stored(self.leading_before), len(self.waiting)]
            for one in self.waiting:
                numbers.append(_stored(one.run.before))
                events += one.run.events
        return numbers, events

    def _has_missing(self) -> bool:
        runs = [run for run in self.slots if run is not None]
        marked = any(run.before is not None or run.between is not None for run in runs)
        broken = any(run.is_broken for run in runs)
        return bool(self.waiting) or self.leading is not None or marked or broken

    @classmethod
    def read(
        cls,
        rule: LatestRule,
        numbers: Sequence[int],
        events: Sequence[Any],
        time_of: Callable[[Any], int],
    ) -> KeyState:
        """Return the state that was written; `time_of` tells the time of an event."""
        try:
            return cls._read(rule, iter(numbers), iter(events), time_of)
        except StopIteration:
            raise StateFormatError("the state of a rule ends early", "restore a backup") from None

    @classmethod
    def _read(
        cls,
        rule: LatestRule,
        numbers: Iterator[int],
        events: Iterator[Any],
        time_of: Callable[[Any], int],
    ) -> KeyState:
        def run_of(size: int) -> Run:
            taken = tuple([next(events) for _ in range(size)])
            return Run(taken, time_of(taken[0]), time_of(taken[-1]))

        state = cls.of(rule)
        for low in range(0, len(state.slots), 62):
            mask = next(numbers)
            for rank in range(low, min(low + 62, len(state.slots))):
                if mask >> (rank - low) & 1:
                    state.slots[rank] = run_of(rank + 1)
        rest = list(numbers)
        if not rest:
            return state
        numbers = iter(rest)
        for run in state.slots:
            if run is not None:
                run.before, between = _loaded(next(numbers)), next(numbers)
                run.is_broken = between == BROKEN
                run.between = None if run.is_broken else _loaded(between)
        state.leading, state.leading_before = _loaded(next(numbers)), _loaded(next(numbers))
        for _ in range(next(numbers)):
            before, run = _loaded(next(numbers)), run_of(rule.size)
            run.before = before
            state.waiting.append(Waiting(run, 0, run.first if before is None else before))
        return state


def _stored(time: int | None) -> int:
    return NEVER if time is None else time


def _loaded(number: int) -> int | None:
    return None if number == NEVER else number


@attrs.define
class LatestMachine:
    """
    Rules over one stream of events, in their final order: by time, tie-breaker and arrival.

    Examples
    --------
    >>> machine = LatestMachine([LatestRule.of(2, maxspan=10)])
    >>> machine.process("a", 0, [Offer(0, 0, "key")])
    []
    >>> machine.process("b", 10, [Offer(0, 1, "key")])
    [LatestMatch(rule=0, key='key', events=('a', 'b'), number=0)]
    """

    rules: Sequence[LatestRule]
    states: dict[tuple[int, Any], KeyState] = attrs.field(factory=dict)  # By rule and key
    _number: int = 0  # Of the next match
    _deadlines: list[tuple[int, int, int, Any]] = attrs.field(factory=list)
    _ties: Iterator[int] = attrs.field(factory=count)  # So that keys are not compared

    def process(
        self, event: Any, time: int, offers: Iterable[tuple[int, int, Hashable]]
    ) -> list[LatestMatch]:
        """
        Show an event to the steps that it is offered to; return the matches that this decides.

        Offers may come in any order, but keys of one step in their own. Times must not fall.
        """
        found = self.advance(time - 1)
        for rule_number, step, key in sorted(offers, key=self._turn):
            rule, state = self.rules[rule_number], self.states.get((rule_number, key))
            if state is None:
                state = self.states[rule_number, key] = KeyState.of(rule)
            run = state.offered(rule, rule.roles[step], event, time)
            if run is not None:
                if state.completed(rule, run, self._number):
                    found.append(LatestMatch(rule_number, key, run.events, self._number))
                elif state.waiting and state.waiting[-1].number == self._number:
                    self._wait(rule_number, key, state.waiting[-1].since)
                self._number += 1
            if state.is_empty:
                del self.states[rule_number, key]
        return found

    def _turn(self, offer: tuple[int, int, Hashable]) -> tuple[int, int]:
        return offer[0], self.rules[offer[0]].turns[offer[1]]

    def clear(self) -> None:
        """Drop the state of all keys."""
        self.states.clear()
        self._deadlines.clear()

    def restore(self, rule: int, key: Hashable, state: KeyState) -> None:
        """Go on from the state of a key."""
        self.states[rule, key] = state
        for one in state.waiting:
            one.number = self._number
            self._number += 1
            self._wait(rule, key, one.since)

    def _wait(self, rule: int, key: Any, since: int) -> None:
        span = self.rules[rule].maxspan or 0
        heappush(self._deadlines, (since + span, next(self._ties), rule, key))

    def advance(self, time: int) -> list[LatestMatch]:
        """Return the matches decided by that no event up to `time`, or after `END`, will come."""
        found = []
        while self._deadlines and (self._deadlines[0][0] <= time or time == END):
            _, _, rule, key = heappop(self._deadlines)
            state = self.states.get((rule, key))
            if state is None:
                continue
            for one in state.decided(self.rules[rule], time):
                found.append(LatestMatch(rule, key, one.run.events, one.number))
            if state.is_empty:
                del self.states[rule, key]
        return sorted(found, key=lambda match: match.number)

    def finish(self) -> list[LatestMatch]:
        """Return the matches decided by that no event will come."""
        return self.advance(END)

    def prune(self, time: int) -> None:
        """Drop what is garbage if no event up to `time` will still come; call `advance` first."""
        for (rule, key), state in list(self.states.items()):
            state.prune(self.rules[rule], time)
            if state.is_empty:
                del self.states[rule, key]
