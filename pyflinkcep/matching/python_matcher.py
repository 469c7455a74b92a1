# SPDX-License-Identifier: Apache-2.0
"""The matcher in pure Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.flink.nfa import NFA, Expressions
from pyflinkcep.engines.flink.nfa.observer import StageObserver
from pyflinkcep.engines.flink.operator import CepOperator, KeyState
from pyflinkcep.engines.flink.operator.state_codec import StateReader, StateWriter
from pyflinkcep.engines.flink.operator.state_counts import StateCounts, count_states
from pyflinkcep.engines.flink.operator.state_format import refuse_damage
from pyflinkcep.expressions.codegen import MatchFunctions
from pyflinkcep.matching.answers import as_integers
from pyflinkcep.matching.columns import Ints
from pyflinkcep.matching.matcher import MOST_EVENTS, NO_DEADLINE, Items, States, Store, Written
from pyflinkcep.matching.results import Found, Results
from pyflinkcep.matching.stretches import Events, Stretches
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["PythonMatcher", "StoredStates"]

_EVENTS_AT_ONCE = 16_384


class PythonMatcher:
    """
    See :class:`~pyflinkcep.matching.matcher.PatternMatcher`.

    Parameters
    ----------
    rules : CepOperator
        The operator's rules.
    wants_timeouts : bool
        Whether timeouts are needed.
    known : int
        The bits of the conditions whose answers come with the events.
    functions : MatchFunctions or None
        The pattern's match expressions.
    wants_reached : bool
        Whether stages that partial matches reach are needed.
    """

    def __init__(
        self,
        rules: CepOperator,
        wants_timeouts: bool,
        known: int,
        functions: MatchFunctions | None,
        wants_reached: bool = False,
    ) -> None:
        self._results = Results(rules.nfa.stages, wants_timeouts)
        if wants_reached:
            observed = attrs.evolve(rules.nfa, observer=StageObserver(self._results.reached))
            rules = attrs.evolve(rules, nfa=observed)
        self._rules = rules
        self._known = known
        self._functions = functions
        self._state: KeyState | None = None

    def set_events(self, store: Store) -> None:
        """Use another store: the events that handles refer to from now on."""
        expressions = None
        if self._functions is not None:
            expressions = Expressions(self._functions, store.fields)
        self._rules = attrs.evolve(self._rules, view=store.row, expressions=expressions)

    # --- bounded jobs

    def run(self, stretches: Stretches, continues: bool, key_before: Any) -> Iterator[Found]:
        """Match the stretches of a chunk; yield results as they come."""
        if not continues:
            yield self.finish(key_before)
        bounds, times = stretches.bounds.tolist(), stretches.events.times
        for number, needed in enumerate(stretches.needed.tolist()):
            if number:
                self._end_key(stretches.key_of(number - 1))
            if self._state is None and needed:
                self._state = self._rules.new_key()
            if self._state is None:
                continue
            key = stretches.key_of(number)
            for start, end in _portions(times, bounds[number], bounds[number + 1]):
                self._process(key, self._state, stretches.events, start, end)
                self._state.timers.clear()  # nothing waits for a watermark here
                if self._results.events >= MOST_EVENTS:
                    yield self.take()
        yield self.take()

    def finish(self, key: Any) -> Found:
        """End the open key with its final watermark, if one is open."""
        self._end_key(key)
        return self.take()

    def _end_key(self, key: Any) -> None:
        if self._state is not None:
            self._rules.advance_time(key, self._state, MAX_WATERMARK, self._results)
            self._state = None

    def live(self) -> list[int]:
        """Return the handles of the events that the open key holds."""
        return [] if self._state is None else self._state.buffer.live_events()

    def take(self) -> Found:
        """Return the results so far, and clear them."""
        return self._results.take()

    def _process(
        self,
        key: Any,
        state: KeyState,
        events: Events,
        start: int,
        end: int,
        now: int | None = None,
    ) -> None:
        base, bits, handles = events.base, events.bits, events.handles
        self._rules.process_events(
            key,
            state,
            events.times[start:end].tolist(),
            range(base + start, base + end) if handles is None else handles[start:end].tolist(),
            self._results,
            self._known,
            None if bits is None else as_integers(bits[start:end]),
            now,
        )

    # --- streams

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        rules, writer = self._rules, _PageWriter(self._rules.nfa)
        now = watermark if rules.processing_time else None
        stored = StoredStates(rules.nfa, page, first_held)
        columns = (items.positions.tolist(), items.starts.tolist(), items.ends.tolist())
        for item, (position, start, end) in enumerate(zip(*columns, strict=True)):
            key = items.key_of(item)
            state = rules.new_key() if position < 0 else stored.state(position)
            if start < end:
                self._process(key, state, events, start, end, now)
            rules.advance_time(key, state, watermark, self._results)
            if not rules.is_idle(state):
                writer.add(item, state)
            self._results.ended(state.nfa_state.ended)
        return writer.written()

    def count(self, page: States) -> StateCounts:
        """Return what a page's states hold."""
        numbers, lengths = page.numbers.tolist(), page.lengths.tolist()
        return count_states(numbers, lengths, self._rules.nfa.stages)


class StoredStates:
    """The states of a page."""

    def __init__(self, nfa: NFA, page: States, first_held: int) -> None:
        self._numbers = page.numbers
        self._lengths = np.r_[0, np.cumsum(page.lengths)]
        self._counts = np.r_[0, np.cumsum(page.counts)]
        handles = range(first_held, first_held + int(self._counts[-1]))
        self._reader = StateReader(nfa, (), handles, list(nfa.tables), nfa.stages)

    def state(self, position: int) -> KeyState:
        """Read the state of a key."""
        numbers = self._numbers[self._lengths[position] : self._lengths[position + 1]]
        with refuse_damage():
            first, last = self._counts[position : position + 2].tolist()
            self._reader.seek(numbers.tolist(), first, last)
            state = self._reader.read()
            self._reader.end()
            return state


class _PageWriter:
    """Collects the states of the keys that continue."""

    def __init__(self, nfa: NFA) -> None:
        self._writer = StateWriter(nfa)
        self._columns: list[list[int]] = [[], [], [], []]

    def add(self, item: int, state: KeyState) -> None:
        """Add a key's state."""
        writer = self._writer
        numbers, events = len(writer.numbers), len(writer.events)
        writer.first_event = events
        writer.write(state)
        deadline = min(state.timers, default=NO_DEADLINE)
        row = (item, deadline, len(writer.numbers) - numbers, len(writer.events) - events)
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def written(self) -> Written:
        """Return them as columns."""
        lists = [*self._columns, self._writer.numbers, self._writer.events]
        return Written(*(np.asarray(values, np.int64) for values in lists))


def _portions(times: Ints, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split long stretches where the time changes, since each portion becomes Python objects."""
    while start < end:
        cut = start + _EVENTS_AT_ONCE
        while cut < end and times[cut] == times[cut - 1]:
            cut += 1
        yield start, min(cut, end)
        start = cut
