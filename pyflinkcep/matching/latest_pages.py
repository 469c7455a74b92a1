# SPDX-License-Identifier: Apache-2.0
"""A rule of the latest engine on a stream: the states of keys, read and written as pages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyflinkcep.engines.flink.stored_state import damaged_state
from pyflinkcep.engines.latest.columns import KeyStates, latest_rules
from pyflinkcep.engines.latest.machine import KeyState, LatestRule
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.latest import LatestEvents, ranks_of
from pyflinkcep.matching.matcher import NO_DEADLINE, Items, PageMatcher, States, Written, ranges
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events

VERSION = 1
"""Of the numbers of a key: it, then those of `KeyState.written`."""

_LAST_DEADLINE = NO_DEADLINE - 1
"""What is over later than any event can be is so at the end of the stream."""


class LatestPages(PageMatcher):
    """Processes the events of pages' keys with a sequence."""

    # A key's state is at most one run for each step: its events, and which runs they are.

    def __init__(self, latest: LatestEvents) -> None:
        self._latest = latest
        self._machine = latest_rules([latest.rule])
        self._found: list[Found] = []

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        machine = self._machine
        machine.clear()
        machine.read(_states(items, page, first_held), self._times)
        sizes = items.ends - items.starts
        places = ranges(items.starts, sizes)
        keys = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        handles = places + events.base if events.handles is None else events.handles[places]
        times = events.times[places]
        order = self._order(times, handles)
        handles, times, keys = handles[order], times[order], keys[order]
        assert events.bits is not None
        first = events.base + len(events.times)  # above all handles, which need not be in order
        offers = self._latest.offers(events.bits[places[order]], keys)
        every = [machine.process(times, offers, first), machine.advance(watermark)]
        machine.prune(watermark)

        def own(given: Ints) -> Ints:
            """Return the handles of events."""
            is_due = given >= first
            known = np.array(given)
            known[is_due] = handles[given[is_due] - first]
            return known

        for runs in every:
            if len(runs.ends):
                taken = own(runs.handles)
                lasts = self._times(taken[runs.ends - 1])
                self._found.append(self._latest.found(taken, runs.ends, lasts))
        return self._written(machine.written(), own)

    def _times(self, handles: Ints) -> Ints:
        layout = self._latest.layout
        return layout.times_ms(self._store.take(handles, [str(layout.time_column)]))

    def _order(self, times: Ints, handles: Ints) -> Ints:
        """Return the order by time and tie-breaker of events in order of key, time and arrival."""
        layout, tie = self._latest.layout, self._latest.tiebreaker
        if tie is None:
            return np.argsort(times, kind="stable")
        table = self._store.take(handles, [str(layout.time_column), tie])
        order: Ints = np.lexsort([ranks_of(table.column(tie)), layout.times(table)])
        return order

    def _written(self, states: KeyStates, own: Callable[[Ints], Ints]) -> Written:
        """Return the states of keys, those of the first items first."""
        order = np.argsort(states.keys, kind="stable")
        lengths = np.diff(states.number_ends, prepend=0)
        counts = np.diff(states.handle_ends, prepend=0)
        firsts = (states.number_ends - lengths)[order]
        numbers = states.numbers[ranges(firsts, lengths[order])]
        begins = (states.handle_ends - counts)[order]
        handles = own(states.handles)[ranges(begins, counts[order])]
        lengths, counts = lengths[order], counts[order]
        rule = self._latest.rule
        deadlines = deadlines_of(rule, numbers, lengths, handles, counts, self._times)
        numbers = np.insert(numbers, np.cumsum(lengths) - lengths, VERSION)
        return Written(states.keys[order], deadlines, lengths + 1, counts, numbers, handles)

    def take(self) -> Found:
        """Return the results of the pages so far, and clear them."""
        found, self._found = self._found, []
        return Found.concat(found) if found else Found.of(self._latest.stages, [b""] * 5)


def deadlines_of(
    rule: LatestRule,
    numbers: Ints,
    lengths: Ints,
    handles: Ints,
    counts: Ints,
    times_of: Callable[[Ints], Ints],
) -> Ints:
    """Return for each state of a rule when time alone has an effect."""
    deadlines = np.full(len(counts), NO_DEADLINE)
    if rule.maxspan is None or not len(counts):
        return deadlines
    times = times_of(handles)
    if not any(rule.missing):  # all is garbage when the last event that is kept is too old
        latest: Ints = np.maximum.reduceat(times, np.cumsum(counts) - counts)
        return np.minimum(latest, _LAST_DEADLINE - rule.maxspan) + rule.maxspan
    number = handle = 0  # where those of a key begin
    known = dict(zip(handles.tolist(), times.tolist(), strict=True))
    for place, (length, count) in enumerate(zip(lengths.tolist(), counts.tolist(), strict=True)):
        own = numbers[number : number + length].tolist()
        events = handles[handle : handle + count].tolist()
        state = KeyState.read(rule, own, events, known.__getitem__)
        decided, garbage = state.deadline(rule), state.last_time(rule)
        told = [min(at, _LAST_DEADLINE) for at in (decided, garbage) if at is not None]
        deadlines[place] = min(told, default=NO_DEADLINE)
        number, handle = number + length, handle + count
    return deadlines


def _states(items: Items, page: States, first_held: int) -> KeyStates:
    """Return the states of the keys of items; their keys are the numbers of the items."""
    known = items.positions[items.positions >= 0]
    begins, held = np.cumsum(page.lengths) - page.lengths, np.cumsum(page.counts) - page.counts
    lengths, counts = page.lengths[known] - 1, page.counts[known]
    if (lengths < 0).any() or (page.numbers[begins[known]] != VERSION).any():
        raise damaged_state("a key's numbers are of an unknown version")
    return KeyStates(
        np.zeros(len(known), np.int64),
        np.flatnonzero(items.positions >= 0),
        np.ascontiguousarray(page.numbers[ranges(begins[known] + 1, lengths)], np.int64),
        np.cumsum(lengths),
        first_held + ranges(held[known], counts),
        np.cumsum(counts),
    )
