# SPDX-License-Identifier: Apache-2.0
"""Runs of a SEQ query: how they begin, continue and end; all at once, merged, or one at a time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.compressed.counting import NodePayloads, Payloads, paths
from pyflinkcep.engines.sequences.compiler import (
    LOOPING,
    WAITING,
    EdgeConditions,
    Fields,
    Negative,
    SaseAutomaton,
    Slots,
    live_slots,
)
from pyflinkcep.errors import StateLimitError
from pyflinkcep.sase.model import CONTIGUOUS, Strategy

_STRICT, _PARTITION = Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY
_ANY = Strategy.SKIP_TILL_ANY_MATCH

Step = tuple[bool, bool, int]
"""Whether the next component begins, whether the loop takes, and the mode without the event."""


@attrs.define(eq=False)
class Track:
    """The events of a partition, in order."""

    automaton: SaseAutomaton  # The query
    times: Sequence[int]  # The events' times
    fields: Sequence[Fields]  # What conditions read
    # For each event a bit for each component whose begin or take edge it passes by itself.
    begins: list[int]
    takes: list[int]
    mine: list[bool]  # For each event whether it passes the tests of the partition by itself
    # For each negated component the positions of events that pass its conditions by themselves; of
    # a negated sequence those of each of its events.
    absent: tuple[tuple[list[int], ...], ...]
    positions: Sequence[int]  # The places of the events in the table

    @classmethod
    def of(
        cls,
        automaton: SaseAutomaton,
        types: Sequence[str],
        times: Sequence[int],
        fields: Sequence[Fields],
        starts: Sequence[bool] | None = None,
        positions: Sequence[int] | None = None,
    ) -> Track:
        """Return the track of events, column by column; `starts` says which may begin a match."""
        nothing = automaton.functions.initial

        def passes(conditions: EdgeConditions, at: int) -> bool:
            return conditions.alone is None or conditions.alone(fields[at], nothing)

        bits = [(type_, 1 << number) for number, type_ in enumerate(automaton.types)]
        begins, takes = [0] * len(times), [0] * len(times)
        places = {
            type_: [n for n, t in enumerate(automaton.types) if t == type_] for type_, _ in bits
        }
        for at, type_ in enumerate(types):
            for number in places.get(type_, ()):
                if passes(automaton.begin[number], at):
                    begins[at] |= 1 << number
                if automaton.loops[number] and passes(automaton.take[number], at):
                    takes[at] |= 1 << number
            if starts is not None and not starts[at]:
                begins[at] &= ~1
        absent = tuple(
            tuple(
                [at for at, t in enumerate(types) if t == own.type and passes(own.conditions, at)]
                for own in part.events
            )
            for part in automaton.negatives
        )
        mine = [True] * len(times)
        if automaton.partition.alone is not None:
            mine = [passes(automaton.partition, at) for at in range(len(times))]
        own = range(len(times)) if positions is None else positions
        return cls(automaton, times, fields, begins, takes, mine, absent, own)

    # --- edges

    def may_begin(self, component: int, slots: Slots, at: int) -> bool:
        """Whether an event begins a component of a run."""
        if not self.begins[at] >> component & 1:
            return False
        joint = self.automaton.begin[component].joint
        return joint is None or joint(self.fields[at], slots)

    def may_take(self, component: int, slots: Slots, at: int) -> bool:
        """Whether a loop takes an event."""
        if not self.takes[at] >> component & 1:
            return False
        joint = self.automaton.take[component].joint
        return joint is None or joint(self.fields[at], slots)

    def may_leave(self, component: int, slots: Slots) -> bool:
        """Whether a run may leave a component unchanged."""
        joint = self.automaton.leave[component].joint
        return joint is None or joint((), slots)

    def ignores(self, component: int, slots: Slots, at: int, consumed: bool) -> bool:
        """Whether a run skips an event."""
        strategy = self.automaton.strategies[component]
        if strategy is _ANY:
            return True
        if strategy is _STRICT:
            return False
        if strategy is _PARTITION:
            return not self.in_partition(slots, at)
        return not consumed

    def in_partition(self, slots: Slots, at: int) -> bool:
        """Whether an event belongs to a run's partition."""
        joint = self.automaton.partition.joint
        return self.mine[at] and (joint is None or joint(self.fields[at], slots))

    def step(self, component: int, mode: int, slots: Slots, at: int) -> Step:
        """
        Return the effect of an event on a run whose last event is of a component.

        A run that both loops and waits is one run, so it reaches each match once.
        """
        begins = takes = False
        after = 0
        following = component + 1
        if mode & LOOPING:
            takes = self.may_take(component, slots, at)
            stays = self.ignores(component, slots, at, takes)
            if stays:
                after = LOOPING
            if following < self.automaton.size and self.may_leave(component, slots):
                begins = self.may_begin(following, slots, at)
                peeks = begins or not (takes or stays)
                if peeks and self.ignores(following, slots, at, begins):
                    after |= WAITING
        if mode & WAITING:
            begun = self.may_begin(following, slots, at)
            begins = begins or begun
            if self.ignores(following, slots, at, begun):
                after |= WAITING
        return begins, takes, after

    # --- negation

    def forbidden(self, negative: int, low: int, high: int, slots: Slots) -> bool:
        """Whether candidates of a negated component forbid a match."""
        part: Negative = self.automaton.negatives[negative]
        if part.is_sequence:
            may = self.may_forbid(negative, low, high)
            return may and self._follow(negative, low, high, slots)
        joint = part.events[0].conditions.joint
        if joint is None:
            return low < high
        candidates = self.absent[negative][0][low:high]
        return any(joint(self.fields[at], slots) for at in candidates)

    def may_forbid(self, negative: int, low: int, high: int) -> bool:
        """Whether there are such candidates, whatever conditions on the match say."""
        first, last = self.absent[negative][0], self.absent[negative][-1]
        if first is last:
            return low < high
        return low < len(first) and high > 0 and first[low] < last[high - 1]

    def _follow(self, negative: int, low: int, high: int, slots: Slots) -> bool:
        """Whether candidates of a negated sequence come one after another."""
        part, candidates = self.automaton.negatives[negative], self.absent[negative]
        end = candidates[-1][high - 1]
        reached = {slots: candidates[0][low] - 1}  # by slots, the earliest last event
        for own, event in zip(candidates, part.events, strict=True):
            before, reached = reached, {}
            for known, since in before.items():
                for at in own[bisect_right(own, since) : bisect_right(own, end)]:
                    joint = event.conditions.joint
                    if joint is None or joint(self.fields[at], known):
                        after = event.update(known, self.fields[at]) if event.update else known
                        reached[after] = min(at, reached.get(after, at))
                        if event.update is None:
                            break
        return bool(reached)

    def candidates_before(self, negative: int, at: int) -> int:
        """Return how many candidates of a negated component come before a position."""
        return bisect_left(self.absent[negative][-1], at)

    def candidates_to(self, negative: int, at: int) -> int:
        """Return how many come up to a position; of a sequence, how many that may begin it."""
        return bisect_right(self.absent[negative][0], at)

    def before_first(self, negative: int, start: int, last: int) -> tuple[int, int]:
        """Return the candidates before a match that are in the window of its last event."""
        window = self.automaton.query.window
        assert window is not None
        first, times = self.absent[negative][0], self.times
        low = bisect_left(first, times[last] - window, key=times.__getitem__)
        return low, self.candidates_before(negative, start)

    def after_last(self, negative: int, start: int, last: int) -> tuple[int, int]:
        """Return the candidates after a match that are in the window of its first event."""
        window = self.automaton.query.window
        assert window is not None
        final, times = self.absent[negative][-1], self.times
        high = bisect_right(final, times[start] + window, key=times.__getitem__)
        return self.candidates_to(negative, last), high


CLOSED = -1
"""Stands for a candidate's number: a negated event has closed the gap."""

Pending = tuple[tuple[int, int, int], ...]
"""Negated components that cannot be decided yet: number, first and last candidate."""


@attrs.frozen
class RunLimit:
    """The most runs of a key; those that are merged are one, whatever events they began with."""

    most: int  # The bound
    has_times: bool = True  # Whether events have times; numbers in their place are not shown

    def exceeded(self, runs: int, timestamp: int) -> None:
        """Raise the error for a key with too many runs."""
        raise StateLimitError(
            f"{runs} partial matches, maxPartialMatches is {self.most}",
            "give the query WITHIN, or conditions that fewer events satisfy",
            timestamp_ms=timestamp if self.has_times else None,
        )


@attrs.define(eq=False)
class Run:
    """Runs in one state that nothing can tell apart later."""

    component: int  # The component of their last event
    mode: int  # LOOPING, WAITING or both
    slots: Slots
    start: int  # The position of the first event
    gaps: tuple[int, ...]  # For each negated component after `component`, its first candidate
    pending: Pending
    payload: Any  # What the runs carry


class Runs:
    """Makes the runs over the events of one partition."""

    def __init__(self, track: Track, payloads: Payloads) -> None:
        automaton = track.automaton
        self.track = track
        self._automaton = automaton
        self._payloads = payloads
        self._live = live_slots(automaton)
        ends = (0, automaton.size)
        self.minds_position = any(part.gap in ends for part in automaton.negatives)
        self.minds_time = automaton.query.window is not None
        self._ends = [n for n, part in enumerate(automaton.negatives) if part.gap in ends]
        self._gaps: list[list[int]] = [[] for _ in range(automaton.size)]
        for number, part in enumerate(automaton.negatives):
            if part.gap not in ends:
                self._gaps[part.gap - 1].append(number)

    def closing_positions(self) -> dict[int, set[int]]:
        """Return where negated components that read only their event close a gap."""
        closing: dict[int, set[int]] = {}
        for component, numbers in enumerate(self._gaps):
            for number in filter(self._decides_alone, numbers):
                for at in self.track.absent[number][0]:
                    closing.setdefault(at, set()).add(component)
        return closing

    def _decides_alone(self, number: int) -> bool:
        part = self._automaton.negatives[number]
        return not part.judges and part.needs == part.gap

    def key(self, run: Run) -> Any:
        """Return what distinguishes a run from those at its component that continue otherwise."""
        slots = run.slots
        values = tuple([slots[n] for n in self._live[4 * run.component + run.mode]])
        start: int | None = None
        if self.minds_position:
            start = run.start
        elif self.minds_time:
            start = self.track.times[run.start]
        return run.mode, values, run.gaps, run.pending, start

    def state(self, run: Run) -> Any:
        """Return the same of all runs, but for the events that they began with."""
        return run.component, self.key(run)[:-1]

    def completes(self, run: Run, at: int) -> bool:
        """Whether a run that has just taken an event is a match."""
        last = self._automaton.size - 1
        return (
            run.component == last
            and self.track.may_leave(last, run.slots)
            and not self._forbidden(run, at)
        )

    def goes_on(self, run: Run) -> bool:
        """Whether a run can take more events."""
        return run.component < self._automaton.size - 1 or self._automaton.loops[run.component]

    # --- events

    def begin(self, at: int) -> Run:
        """Return the run that begins with an event."""
        payload = self._payloads.begun(0, self.track.positions[at])
        return self._after(0, self._automaton.functions.initial, at, at, (), payload)

    def take(self, run: Run, at: int) -> Run:
        """Return the run whose loop takes one more event."""
        place = self.track.positions[at]
        payload = self._payloads.taken(run.payload, run.component, place)
        return self._after(run.component, run.slots, run.start, at, run.pending, payload)

    def enter(self, run: Run, at: int) -> Run | None:
        """Return the run that begins the next component; None if a negated one forbids it."""
        component = run.component + 1
        negatives = self._automaton.negatives
        pending = list(run.pending)
        for number, low in zip(self._gaps[run.component], run.gaps, strict=True):
            high = self.track.candidates_before(number, at)
            if self.track.may_forbid(number, low, high):
                pending.append((number, low, high))
        payload = self._payloads.taken(run.payload, component, self.track.positions[at])
        begun = self._after(component, run.slots, run.start, at, (), payload)
        for number, low, high in pending:
            if negatives[number].needs > component:
                begun.pending = (*begun.pending, (number, low, high))
            elif self.track.forbidden(number, low, high, begun.slots):
                return None
        return begun

    def _after(
        self, component: int, slots: Slots, start: int, at: int, pending: Pending, payload: Any
    ) -> Run:
        """Return a run that has just taken an event for a component."""
        update = self._automaton.updates[component]
        if update is not None:
            slots = update(slots, self.track.fields[at])
        gaps = tuple(self.track.candidates_to(n, at) for n in self._gaps[component])
        mode = LOOPING if self._automaton.loops[component] else WAITING
        return Run(component, mode, slots, start, gaps, pending, payload)

    def closed(self, run: Run, mode: int) -> Run | None:
        """Return a run after an event that closes its gap: only its loop can open it again."""
        gaps = tuple(
            CLOSED if self._decides_alone(number) else low
            for number, low in zip(self._gaps[run.component], run.gaps, strict=True)
        )
        return self.moved(run, mode & LOOPING, gaps)

    def moved(self, run: Run, mode: int, gaps: tuple[int, ...] | None = None) -> Run | None:
        """Return a run that skipped an event, in another mode; None if it ends."""
        if not mode:
            return None
        gaps = run.gaps if gaps is None else gaps
        parts = run.component, mode, run.slots, run.start, gaps, run.pending, run.payload
        return Run(*parts)

    def _forbidden(self, run: Run, at: int) -> bool:
        """Whether a negated component forbids the match of a run that ends here."""
        track = self.track
        for number, low, high in run.pending:
            if track.forbidden(number, low, high, run.slots):
                return True
        for number in self._ends:
            first = self._automaton.negatives[number].gap == 0
            bounds = track.before_first if first else track.after_last
            if track.forbidden(number, *bounds(number, run.start, at), run.slots):
                return True
        return False


@attrs.define
class RunCounts:
    """What became of runs, by the component of their last event."""

    met: list[int]  # How often an event was tried on a run
    merged: list[int]  # How many runs became part of an equal one
    # How many runs were alive at most, and the sum of those alive after each event.
    most: list[int]
    sum: list[int]
    events: int = 0  # How many events were processed

    @classmethod
    def none(cls, size: int) -> RunCounts:
        """Return the counts before the first event."""
        return cls([0] * size, [0] * size, [0] * size, [0] * size)

    @classmethod
    def of_kernel(cls, numbers: bytes) -> RunCounts:
        """Return the counts of the kernel's lister."""
        met, merged, most, total, events = (
            np.frombuffer(numbers, np.int64).reshape(-1, 5).T.tolist()
        )
        return cls(met, merged, most, total, max(events, default=0))

    @property
    def mean(self) -> list[float]:
        """How many runs were alive on average."""
        return [total / max(1, self.events) for total in self.sum]


class MergedRuns:
    """
    The runs over the events of one partition.

    Runs are merged if they are in the same state and agree in V[t…]: the slots that a later
    condition reads, and their start if a window or a negation depends on it.

    Agrawal and others, SIGMOD 2008, section 5.2: merging equivalent runs.
    """

    def __init__(
        self,
        track: Track,
        payloads: Payloads,
        limit: RunLimit | None = None,
        counts: RunCounts | None = None,
    ) -> None:
        self._track = track
        self._automaton = track.automaton
        self._runs = Runs(track, payloads)
        self._merged = payloads.merged
        self._alive: list[dict[Any, Run]] = [{} for _ in range(self._automaton.size)]
        self._closing = self._runs.closing_positions()
        self._limit = limit
        self._counts = counts or RunCounts.none(self._automaton.size)

    def matches(self) -> Iterator[tuple[int, Any]]:
        """Yield the place of each event that completes matches, and what their runs carry."""
        for at, place in enumerate(self._track.positions):
            for payload in self._event(at):
                yield place, payload

    def earliest_start(self) -> int | None:
        """Return the place at which the first live run began."""
        starts = [run.start for alive in self._alive for run in alive.values()]
        return self._track.positions[min(starts)] if starts else None

    def _event(self, at: int) -> Iterator[Any]:
        runs = self._runs
        taking: list[Run] = []
        staying: list[Run] = []
        for component in self._affected(at):
            self._advance(component, at, taking, staying)
        if self._track.begins[at] & 1:
            taking.append(runs.begin(at))
        for run in taking:
            if runs.completes(run, at):
                yield run.payload
            if runs.goes_on(run):
                self._put(run)
        for run in staying:
            self._put(run)
        for component, alive in enumerate(self._alive):
            self._counts.sum[component] += len(alive)
            self._counts.most[component] = max(self._counts.most[component], len(alive))
        self._counts.events += 1
        if self._limit is not None and (taking or staying):
            self._enforce(self._limit, at)

    def _enforce(self, limit: RunLimit, at: int) -> None:
        """Refuse too many runs in the window of an event, dropping those out of it."""
        if sum(map(len, self._alive)) <= limit.most:
            return
        times, window = self._track.times, self._automaton.query.window
        if window is not None:
            for alive in self._alive:
                for key, run in list(alive.items()):
                    if times[run.start] < times[at] - window:
                        del alive[key]
        distinct = {self._runs.state(run) for alive in self._alive for run in alive.values()}
        if len(distinct) > limit.most:
            limit.exceeded(len(distinct), times[at])

    def _affected(self, at: int) -> Iterator[int]:
        """Yield the components whose runs the event may change."""
        begins, takes = self._track.begins[at], self._track.takes[at]
        closing = self._closing.get(at, ())
        strategies, last = self._automaton.strategies, self._automaton.size - 1
        for component, runs in enumerate(self._alive):
            if runs and (
                begins >> (component + 1) & 1
                or takes >> component & 1
                or component in closing
                or strategies[component] in CONTIGUOUS
                or (component < last and strategies[component + 1] in CONTIGUOUS)
            ):
                yield component

    def _advance(self, component: int, at: int, taking: list[Run], staying: list[Run]) -> None:
        """Process an event for the runs whose last event is of a component."""
        track, alive, runs = self._track, self._alive[component], self._runs
        window = self._automaton.query.window
        closes = component in self._closing.get(at, ())
        oldest = None if window is None else track.times[at] - window
        for key, run in list(alive.items()):
            if oldest is not None and track.times[run.start] < oldest:
                del alive[key]
                continue
            self._counts.met[component] += 1
            begins, takes, mode = track.step(component, run.mode, run.slots, at)
            if begins:
                begun = runs.enter(run, at)
                if begun is not None:
                    taking.append(begun)
            if takes:
                taking.append(runs.take(run, at))
            if closes or mode != run.mode:
                del alive[key]
                stays = runs.closed(run, mode) if closes else runs.moved(run, mode)
                if stays is not None:
                    staying.append(stays)

    def _put(self, run: Run) -> None:
        """Add a run to the live ones, or merge it into its equal."""
        alive = self._alive[run.component]
        key = self._runs.key(run)
        other = alive.get(key)
        if other is None:
            alive[key] = run
        else:
            self._counts.merged[run.component] += 1
            other.payload = self._merged(other.payload, run.payload)
            other.start = min(other.start, run.start)


_MOST_SHARED = 1 << 18
"""This many failed configurations, or two for each event and component if that is more, are kept
from one start to the next. Only runs that differ in what conditions read exceed that: up to starts
times events."""

Way = list[tuple[int, int]]
"""A match: (component, place in the table) of each event."""


class DepthFirstSearch:
    """
    The search over the events of one partition.

    Agrawal and others, SIGMOD 2008: the backtracking algorithm. A configuration that failed once
    fails again, so each is tried once per start.
    """

    def __init__(self, track: Track, watermark: int | None = None) -> None:
        self._track = track
        self._watermark = watermark
        self.undecided: int | None = None
        self._runs = Runs(track, NodePayloads())
        self.met = 0
        self._last = track.automaton.size - 1
        self._following = _following_begins(track)
        self._minds_start = self._runs.minds_time or self._runs.minds_position
        self._most_tried = max(_MOST_SHARED, 2 * track.automaton.size * len(track.times))
        self._looks_ahead = track.automaton.query.looks_ahead

    def ways(self, output: str) -> Iterator[Way]:
        """Yield all matches, or the first of each start, or one after another."""
        tried: set[Any] = set()
        start = 0
        while start < len(self._track.times):
            if output == "all":
                if self._track.begins[start] & 1:
                    yield from self._from(start)
                start += 1
                continue
            found = self._first(start, tried)
            if self.undecided is not None:
                return
            start += 1
            if found is not None:
                run, at = found
                yield next(paths(run.payload))
                tried.clear()
                if output == "nonOverlapping":
                    start = at + 1

    # --- searching

    def _from(self, start: int) -> Iterator[Way]:
        runs, track = self._runs, self._track
        waiting: list[tuple[Run, int, bool]] = [(runs.begin(start), start, True)]
        while waiting:
            run, at, is_new = waiting.pop()
            if is_new and runs.completes(run, at):
                yield next(paths(run.payload))
            if not runs.goes_on(run) or not self._may_end(run, at):
                continue
            for next_at in range(at + 1, self._end(run)):
                self.met += 1
                begins, takes, mode = track.step(run.component, run.mode, run.slots, next_at)
                begun = runs.enter(run, next_at) if begins else None
                if begun is not None:
                    waiting.append((begun, next_at, True))
                if takes:
                    waiting.append((runs.take(run, next_at), next_at, True))
                if not mode:
                    break
                if mode != run.mode:
                    stays = runs.moved(run, mode)
                    assert stays is not None
                    run = stays

    def _first(self, start: int, tried: set[Any]) -> tuple[Run, int] | None:
        """Return the first match of a start, its end too; None if there is none or not yet."""
        runs = self._runs
        if not self._track.begins[start] & 1:
            return None
        is_open = self._is_open(start)
        if is_open and self._looks_ahead:
            self.undecided = self._track.positions[start]
            return None
        if self._minds_start or len(tried) > self._most_tried:
            tried.clear()
        waiting: list[tuple[Run, int, bool]] = [(runs.begin(start), start, True)]
        while waiting:
            run, at, is_new = waiting.pop()
            if is_new and runs.completes(run, at):
                return run, at
            if not runs.goes_on(run) or not (is_open or not is_new or self._may_end(run, at)):
                continue
            configuration = at, run.component, runs.key(run)
            if configuration in tried:
                continue
            tried.add(configuration)
            if at + 1 < self._end(run):
                waiting.extend(reversed(list(self._choices(run, at + 1))))
            elif is_open:
                self.undecided = self._track.positions[start]
                return None
        return None

    def _is_open(self, start: int) -> bool:
        """Whether more events may arrive within the window of a start."""
        window = self._track.automaton.query.window
        if self._watermark is None:
            return False
        return window is None or self._track.times[start] + window > self._watermark

    def _choices(self, run: Run, at: int) -> Iterator[tuple[Run, int, bool]]:
        """Yield what a run may do with an event: begin, wait, take or skip it."""
        runs, track = self._runs, self._track
        self.met += 1
        begins, takes, mode = track.step(run.component, run.mode, run.slots, at)
        begun = runs.enter(run, at) if begins else None
        if begun is not None:
            yield begun, at, True
        for state in (WAITING, LOOPING):
            if state == LOOPING and takes:
                yield runs.take(run, at), at, True
            stays = runs.moved(run, mode & state)
            if stays is not None:
                yield stays, at, False

    def _end(self, run: Run) -> int:
        """Return where the window of a run ends."""
        window = self._track.automaton.query.window
        if window is None:
            return len(self._track.times)
        times = self._track.times
        return bisect_right(times, times[run.start] + window)

    def _may_end(self, run: Run, at: int) -> bool:
        """Whether the window has events that may begin the missing components."""
        end = self._end(run)
        for component in range(run.component + 1, self._last + 1):
            at = self._following[component][at + 1]
            if at >= end:
                return False
        return True


def _following_begins(track: Track) -> list[list[int]]:
    """Return for each component and position the next event that may begin it."""
    size = len(track.times)
    table = []
    for component in range(track.automaton.size):
        following = [size] * (size + 2)
        for at in range(size - 1, -1, -1):
            begins = track.begins[at] >> component & 1
            following[at] = at if begins else following[at + 1]
        table.append(following)
    return table
