# SPDX-License-Identifier: Apache-2.0
"""Runs of a SEQ query: how they begin, continue and end."""

from __future__ import annotations

from typing import Any

from pyflinkcep.engines.compressed.payloads import Payloads
from pyflinkcep.engines.sequences.compiler import Slots
from pyflinkcep.engines.sequences.liveness import LOOPING, WAITING, Liveness
from pyflinkcep.engines.sequences.track import Track

__all__ = ["CLOSED", "Run", "Runs"]

CLOSED = -1
"""Stands for a candidate's number: a negated event has closed the gap."""

Pending = tuple[tuple[int, int, int], ...]
"""Negated components that cannot be decided yet: number, first and last candidate."""


class Run:
    """
    Runs in one state that nothing can tell apart later.

    Attributes
    ----------
    component : int
        The component of the last event.
    mode : int
        LOOPING, WAITING or both.
    slots : tuple
        What conditions read.
    start : int
        The position of the first event.
    gaps : tuple of int
        For each negated component that comes next, the number of candidates up to the last event,
        or CLOSED.
    pending : tuple
        Passed negated components that cannot be decided yet.
    payload : object
        What it carries.
    """

    __slots__ = ("component", "gaps", "mode", "payload", "pending", "slots", "start")

    def __init__(
        self,
        component: int,
        mode: int,
        slots: Slots,
        start: int,
        gaps: tuple[int, ...],
        pending: Pending,
        payload: Any,
    ) -> None:
        self.component = component
        self.mode = mode
        self.slots = slots
        self.start = start
        self.gaps = gaps
        self.pending = pending
        self.payload = payload


class Runs:
    """
    Makes the runs over the events of one partition.

    Parameters
    ----------
    track : Track
        The events.
    payloads : Payloads
        What runs carry.
    """

    def __init__(self, track: Track, payloads: Payloads) -> None:
        automaton = track.automaton
        self.track = track
        self._automaton = automaton
        self._payloads = payloads
        self._live = Liveness.of(automaton).slots
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
        payload = self._payloads.begun(0, at)
        return self._after(0, self._automaton.functions.initial, at, at, (), payload)

    def take(self, run: Run, at: int) -> Run:
        """Return the run whose loop takes one more event."""
        payload = self._payloads.taken(run.payload, run.component, at)
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
        payload = self._payloads.taken(run.payload, component, at)
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
