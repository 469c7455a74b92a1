# SPDX-License-Identifier: Apache-2.0
"""Matching sorted events: of patterns in Python and in C, and from stored events on streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA, Expressions
from pyflinkcep.engines.flink.nfa.analysis import KeyNeeds
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.nfa.observer import StageObserver
from pyflinkcep.engines.flink.nfa.partial_matches import EndCounts
from pyflinkcep.engines.flink.operator import CepOperator, KeyState, PartialMatchLimit
from pyflinkcep.engines.flink.stored_state import (
    StateCounts,
    StateReader,
    StateWriter,
    count_states,
    damaged_state,
    refuse_damage,
)
from pyflinkcep.errors import StateFormatError
from pyflinkcep.expressions.codegen import MatchFunctions, generated
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.columns import Flags, Ints, integers
from pyflinkcep.matching.event_store import EventStore, Reader, SortedEvents
from pyflinkcep.matching.layout import KeyText, Layout, as_integers, naming_key
from pyflinkcep.matching.order import Order
from pyflinkcep.matching.results import KEPT, Found, Results
from pyflinkcep.matching.stretches import Events, Stretches, rows_of_needed_keys
from pyflinkcep.time import MAX_WATERMARK

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

# About how many events the results may have that a bounded job collects before handing them on.
MOST_EVENTS = 1 << 17
_MOST_STAGES = 1 << 7  # whose numbers fit 8 bits
NO_DEADLINE = MAX_WATERMARK  # The deadline of a key, or page, that waits only for events


class States(Protocol):
    """The states of the keys of a page, in columns."""

    lengths: Ints  # How many of `numbers` belong to each key
    counts: Ints  # How many of the page's events belong to each key
    numbers: Ints  # The concatenated states of the keys; see ``StateWriter``


def fields_of(page: States, what: str, version: int, width: int) -> Ints:
    """Return the keys' numbers as a row for each, if all keys have the same number of them."""
    if not (page.lengths == width + 1).all():
        raise damaged_state(f"a key of {what} does not have {width + 1} numbers")
    rows = page.numbers.reshape(-1, width + 1)
    if (rows[:, 0] != version).any():
        raise StateFormatError(
            f"state of {what} in format {int(rows[:, 0].max())}, "
            f"this release reads format {version}",
            "restore with the release that wrote it, or start from empty state",
        )
    return rows[:, 1:]


@attrs.frozen(eq=False)
class Items:
    """The work to do for the keys of a page of state."""

    positions: Ints  # For each item the position of its key in the page; -1 for a new key
    # Where each item's events are; there may be none.
    starts: Ints
    ends: Ints
    key_of: Callable[[int], Any]  # Returns the key of an item by its number, for errors
    due: pa.Table | None = None  # The due events, with what is not stored of them


@attrs.frozen(eq=False)
class Written:
    """The states of the keys that continue."""

    items: Ints  # The numbers of their items
    # For each one, as in a page.
    deadlines: Ints
    lengths: Ints
    counts: Ints
    numbers: Ints  # The concatenated states; see ``StateWriter``
    handles: Ints  # The events that the states refer to


class PageMatcher(ABC):
    """
    Matches keys' events on a stream.

    A matcher serves one task, and the task calls its methods in a fixed order. For each bucket
    of keys in a micro-batch:

    1. :meth:`set_events`, once the store has the events of the bucket's pages and the due ones;
    2. :meth:`run_page` for each page with due events or with a deadline that has passed; nothing
       stays open, the states of the keys that continue are returned;
    3. :meth:`take`, the results of all these pages.

    An error in user code leaves the matcher unusable and fails the task.
    """

    def set_events(self, store: EventStore) -> None:
        """Use another store: the events that handles refer to from now on."""
        self._store = store

    @abstractmethod
    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""

    @abstractmethod
    def take(self) -> Found:
        """Return the results of the pages so far, and clear them."""

    def count(self, page: States) -> StateCounts | None:
        """Return what a page's states hold; None if they are not partial matches."""
        return None


class RowPages(PageMatcher):
    """Matches keys' events into rows of output."""

    def __init__(self) -> None:
        self._made: list[pa.Table] = []

    def take(self) -> Found:
        """Return the rows so far, and clear them."""
        made, self._made = self._made, []
        return Found.of_rows(pa.concat_tables(made) if made else None)


_EVENTS_AT_ONCE = 16_384


@attrs.frozen
class Wanted:
    """What is wanted of the matcher of a pattern."""

    timeouts: bool = False  # Timed-out partial matches
    reached: bool = False  # The stages that partial matches reach
    by_windows: bool = False  # That what the end of a window released has that time
    limit: PartialMatchLimit | None = None  # How many partial matches a key may have
    counts: bool = False  # Of the stages only counts, for keys of which it is possible


class PythonMatcher(PageMatcher):
    """
    Matches keys' events: of a bounded job with :meth:`run`, of a stream with :meth:`run_page`.

    In a bounded job the task calls for each chunk of sorted events:

    1. :meth:`set_events`, once the store has the chunk;
    2. :meth:`run`, whose results must be consumed before anything else is called. The last key of
       the chunk stays open, since its events may continue in the next one;
    3. :meth:`live`; the store then drops all other events.

    After the last chunk, :meth:`finish` ends the open key.
    """

    needs_python = True

    def __init__(
        self,
        rules: CepOperator,
        wanted: Wanted,
        known: int,
        functions: MatchFunctions | None,
    ) -> None:
        self._results = Results(rules.nfa.stages, wanted.timeouts)
        if wanted.reached:
            observed = attrs.evolve(rules.nfa, observer=StageObserver(self._results.reached))
            rules = attrs.evolve(rules, nfa=observed)
        self._rules = rules
        self._known = known
        self._functions = functions
        self._state: KeyState | None = None

    def set_events(self, store: EventStore) -> None:
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

    def close(self) -> None:
        """Do nothing: it has no events once nothing else has it."""

    def counted(self) -> list[tuple[int, int, int]]:
        """Return nothing: the stages that are reached are results."""
        return []

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


class KernelMatcher(PageMatcher):
    """Does what a :class:`PythonMatcher` does, in C."""

    def __init__(self, kernel: _kernel.Kernel, stages: list[str], processing_time: bool) -> None:
        self._kernel = kernel
        self._stages = stages
        self._processing_time = processing_time
        self._key: Any = None
        self._rows: tuple[np.ndarray[Any, Any] | None, int] | None = None

    def set_events(self, store: EventStore) -> None:
        """Use another store: the events that handles refer to from now on."""
        self._kernel.set_events(store.row, *store.field_arrays())

    def run(self, stretches: Stretches, continues: bool, key_before: Any) -> Iterator[Found]:
        """Match the stretches of a chunk; yield results as they come."""
        if not continues:
            yield self.finish(key_before)
        events, bounds = stretches.events, stretches.bounds
        columns = (events.times, events.handles, events.base, events.bits)
        at, row = 0, int(bounds[0])
        while at < len(bounds) - 1:
            with naming_key(lambda: stretches.key_of(self._kernel.failed)):
                at, row, self._key = self._kernel.run(
                    self._key, *columns, bounds, stretches.needed, at, row, MOST_EVENTS,
                    stretches.windows,
                )  # fmt: skip
            yield self.take()

    def finish(self, key: Any) -> Found:
        """End the open key with its final watermark, if one is open."""
        if self._key is not None:
            with naming_key(lambda: key):
                self._kernel.advance(self._key, MAX_WATERMARK)
            self._key = None
        return self.take()

    def live(self) -> list[int]:
        """Return the handles of the events that the open key holds."""
        return [] if self._key is None else self._key.live_handles()

    def close(self) -> None:
        """Let go of the events, which would stay in memory until Python looks for cycles."""
        self._kernel.set_events(None, 0, 0, ())

    @property
    def needs_python(self) -> bool:
        """Whether it keeps Python's lock, so that matchers of several threads take turns."""
        return self._kernel.needs_python

    def counted(self) -> list[tuple[int, int, int]]:
        """Return stages, and how many partial matches and keys reached them that are no results."""
        return self._kernel.reached()

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        if self._processing_time:
            self._kernel.helper.processing_time = watermark
        with naming_key(lambda: items.key_of(self._kernel.failed)):
            written = self._kernel.run_page(
                events.times,
                events.handles,
                events.base,
                events.bits,
                items.positions,
                items.starts,
                items.ends,
                page.numbers,
                _bounds(page.lengths),
                _bounds(page.counts),
                first_held,
                watermark,
            )
        return Written(*(np.frombuffer(data, np.int64) for data in written))

    def keep_rows(self, rows: np.ndarray[Any, Any] | None, begin: int) -> bool:
        """
        Give matches before timeouts from now on, by rows; return whether there can be so many.

        The row of a handle is itself, or that of its place, plus `begin`.
        """
        has_few = len(self._stages) <= _MOST_STAGES
        self._rows = (rows, begin) if has_few else None
        return has_few

    def take(self) -> Found:
        """Return the results so far, and clear them."""
        if self._rows is not None:
            *found, dropped = self._kernel.take_rows(*self._rows)
            return Found.of(self._stages, found, dropped, types=KEPT)
        *arrays, dropped = self._kernel.take_found()
        window, skipped, *by_event = self._kernel.take_ended()
        return Found.of(self._stages, arrays, dropped, EndCounts(window, skipped, by_event))

    def count(self, page: States) -> StateCounts:
        """Return what a page's states hold."""
        held, largest, oldest, *by_stage = self._kernel.count_states(page.numbers, page.lengths)
        return StateCounts(held, largest, oldest, by_stage)


def _bounds(sizes: Ints) -> Ints:
    """Return where stretches of some sizes begin, and where the last one ends."""
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


PatternMatcher = PythonMatcher | KernelMatcher


def make_matcher(
    nfa: NFA,
    wanted: Wanted,
    expressions: CompiledExpressions | None,
    processing_time: bool = False,
    is_stream: bool = False,
) -> PatternMatcher:
    """Return a matcher, with the compiled kernel if it can run the pattern."""
    by_windows = wanted.by_windows and not processing_time
    known, limit = known_bits(nfa.atoms), wanted.limit
    kernel = make_kernel(
        nfa, known, limit, processing_time, is_stream, expressions, wanted.reached, by_windows
    )
    if kernel is not None:
        if wanted.counts:
            kernel.count_reached()
        return KernelMatcher(kernel, list(nfa.stages), processing_time)
    rules = CepOperator(nfa, None, processing_time, limit, by_windows=by_windows)
    functions = None if expressions is None else generated(expressions)
    return PythonMatcher(rules, wanted, known, functions)


@attrs.frozen(eq=False)
class KeyEvents:
    """The events of a page's keys, key by key: those of its state, then the due ones."""

    handles: Ints  # The events
    bounds: Ints  # Where those of each key begin, and where the last ones end
    held: Ints  # How many of each key are of its state
    numbers: Ints  # A row for each key: the numbers of its state; zeros for a new key
    is_known: Flags  # Which keys have state
    watermark: int  # The time reached
    key_of: Callable[[int], Any]  # Returns a key by its number, for errors


@attrs.frozen(eq=False)
class KeptEvents:
    """What becomes the state of keys."""

    goes_on: Flags  # Which keys have state afterwards
    since: Ints  # For each key its first event to keep, among all events
    deadlines: Ints  # For each key when time alone has an effect
    numbers: Ints  # A row for each key
    until: Ints | None = None  # For each key the end of what it keeps; None for all since then


class EventPages(RowPages):
    """Matches keys' events; see :class:`PageMatcher`."""

    # A key's state is events, and numbers: the version of their format, then `width` others.

    what: ClassVar[str]
    version: ClassVar[int]
    width: ClassVar[int]

    def run_page(
        self, events: Events, items: Items, page: States, first_held: int, watermark: int
    ) -> Written:
        """Match events of a page's keys, and advance their time to the watermark."""
        stored = fields_of(page, self.what, self.version, self.width)
        self.check(stored, page.counts)
        is_known = items.positions >= 0
        known = items.positions[is_known]
        numbers = np.zeros((len(is_known), self.width), np.int64)
        numbers[is_known] = stored[known]
        held, begins = np.zeros((2, len(is_known)), np.int64)
        held[is_known] = page.counts[known]
        begins[is_known] = first_held + (np.cumsum(page.counts) - page.counts)[known]
        sizes = np.stack([held, items.ends - items.starts], axis=1).reshape(-1)
        firsts = np.stack([begins, events.base + items.starts], axis=1).reshape(-1)
        handles = ranges(firsts, sizes)
        if events.handles is not None:  # due events in an order of their own, after those held
            is_due = handles >= events.base
            handles[is_due] = events.handles[handles[is_due] - events.base]
        bounds = np.r_[0, np.cumsum(sizes)][::2]
        keys = KeyEvents(handles, bounds, held, numbers, is_known, watermark, items.key_of)
        kept = self.matched(keys)
        going = np.flatnonzero(kept.goes_on)
        until = bounds[1:] if kept.until is None else kept.until
        since, counts = kept.since[going], (until - kept.since)[going]
        versions = np.full((len(going), 1), self.version, np.int64)
        return Written(
            going,
            kept.deadlines[going],
            np.full(len(going), 1 + self.width, np.int64),
            counts,
            np.hstack([versions, kept.numbers[going]]).reshape(-1),
            handles[ranges(since, counts)],
        )

    def check(self, numbers: Ints, counts: Ints) -> None:
        """Refuse damaged state: numbers that do not fit the counts of events."""

    @abstractmethod
    def matched(self, keys: KeyEvents) -> KeptEvents:
        """Collect what the events add; return what to keep."""


def ranges(firsts: Ints, sizes: Ints) -> Ints:
    """Return the numbers of all ranges in a row."""
    offsets: Ints = np.repeat(firsts - (np.cumsum(sizes) - sizes), sizes)
    return offsets + np.arange(len(offsets))


@attrs.define(eq=False)
class ChunkMatching:
    """Matches key by key, in chunks that never separate events of equal key and time."""

    layout: Layout  # The columns of the events
    reader: Reader  # Makes of events what conditions see
    rules: CepOperator  # Tells which events may begin a match
    matcher: PatternMatcher  # Finds the matches
    order: Order | None = None  # The order of events of equal time
    needs: KeyNeeds | None = None  # What a key needs to have a match, if only these are wanted
    store: EventStore | None = attrs.field(init=False, default=None)  # The events, by handle
    _last: pa.Table | None = attrs.field(init=False, default=None)  # The event before a chunk

    def found(self, chunks: Iterable[SortedEvents]) -> Iterator[Found]:
        """Yield what is found, as it comes; handles are the places of events in their order."""
        try:
            for events in chunks:
                yield from self._found(events)
                del events  # or they would stay in memory while the next ones are made
            yield self.matcher.finish(self._last_key)
        finally:
            self.matcher.close()

    def rows_needed(self, events: pa.Table) -> Ints | None:
        """Return the rows, of all events, of keys that may have a match; None for all."""
        return rows_of_needed_keys(events, self.layout, self.rules, self.needs)

    def _found(self, events: SortedEvents) -> Iterator[Found]:
        layout, chunk = self.layout, events.table
        if self.store is None:
            self.store = EventStore(self.reader, events.schema(layout.payload))
        base, times = self.store.add(events), layout.times_ms(chunk)
        stretches = Stretches.of(
            chunk, times, base, layout, self.rules, self.order, self.store, self.needs
        )
        continues = self._last is not None and not layout.is_other_key(self._last, chunk)
        key_before = self._last_key
        self._last = chunk.take(integers(np.array([chunk.num_rows - 1])))
        self.matcher.set_events(self.store)
        yield from self.matcher.run(stretches, continues, key_before)
        self.store.keep(self.matcher.live())

    @property
    def _last_key(self) -> KeyText | None:
        """The key of the event before the next chunk, for errors."""
        if self._last is None or not self.layout.key_columns:
            return None
        return KeyText(self.layout, self._last, 0)
