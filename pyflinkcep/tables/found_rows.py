# SPDX-License-Identifier: Apache-2.0
"""Matches as rows of events, in memory or on disk: as dicts of records, and as columns of lists."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.errors import InputError
from pyflinkcep.matching.columns import PREFIX, Ints, in_one_piece, integers, plain_numbers
from pyflinkcep.matching.results import (
    MATCH_TIME,
    Found,
    Result,
    SharedPrefixes,
    known_times,
    stage_column,
)
from pyflinkcep.matching.spill import Block, SpillFile
from pyflinkcep.tables.events import Timeout, as_event
from pyflinkcep.tables.order import PER_MS, Times
from pyflinkcep.tables.records import records

_MOST_EVENTS = 1 << 17  # of the matches that become columns together


@attrs.frozen(eq=False)
class FoundRows:
    """Matches that are not dicts yet."""

    whole: Callable[[], pa.Table]  # Returns the events, with all of their columns
    # The matches and timeouts; handles are rows.
    found: Found | SharedPrefixes
    timed_out: Found
    stages: Sequence[str]  # The stages that can take events, in pattern order
    keys: Mapping[str, pa.ChunkedArray]  # The columns of the key, by name
    times: Times  # The times of events
    # The events, if the table was made of them; what was found consists of their values.
    given: Sequence[dict[str, Any]] | None = None

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.found)

    def made(self, begin: int, end: int) -> list[dict[str, list[Any]]]:
        """Return some of them as dicts."""
        return [match for _, _, match in self._results(self.found.between(begin, end))]

    def timeouts(self) -> list[Timeout[Any]]:
        """Return the partial matches that timed out."""
        return [Timeout(match, time) for _, time, match in self._results(self.timed_out)]

    def _results(self, found: Found) -> Iterator[Result]:
        rows, places = np.unique(found.handles, return_inverse=True)
        given = self.given
        if given is None:
            events: list[Any] = records(self.whole(), rows)
        else:
            events = [as_event(given[row]) for row in rows.tolist()]
        return found.results([events[place] for place in places.tolist()])

    def tables(self) -> Iterator[pa.Table]:
        """Yield the matches in columns, some at a time."""
        if not len(self):
            yield self.arrow()
        for part in self.found.parts(_MOST_EVENTS):
            yield attrs.evolve(self, found=part).arrow()

    def arrow(self) -> pa.Table:
        """Return the matches in columns."""
        found = self.found.between(0, len(self))
        names = [*self.keys, MATCH_TIME, *self.stages]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(
                f"toArrow() would have two columns named {repeated}",
                "rename the stage or the key column",
            )
        table, first = self.whole(), integers(found.handles[found.firsts])
        columns = [in_one_piece(column.take(first)) for column in self.keys.values()]
        columns.append(match_times(found, self.times))
        columns += [
            stage_column(found, stage, lambda rows: table.take(integers(rows)))
            for stage in self.stages
        ]
        fields = [
            pa.field(name, column.type, nullable=name not in self.stages)
            for name, column in zip(names, columns, strict=True)
        ]
        return pa.table(columns, schema=pa.schema(fields))


def match_times(found: Found, times: Times) -> pa.Array:
    """Return the times of matches, in the type of the times of events."""
    if not pa.types.is_timestamp(times.type):
        return integers(found.times)
    return known_times(found.times, PER_MS[times.type.unit]).cast(times.type)


MOST_EVENTS = 1 << 15  # of the matches that are written together
Place = tuple[int, int]
"""Where a key is among all: the time of its earliest event, and the place of its first one."""


@attrs.frozen(eq=False)
class Part:
    """Matches, and their events."""

    results: pa.Table
    events: pa.Table

    @classmethod
    def of(
        cls, found: Found, earliest: Ints, first: Ints, take: Callable[[Ints], pa.Table]
    ) -> Part:
        """Return what was found for keys with these places; `take` returns events by handle."""
        rows, places = np.unique(found.handles, return_inverse=True)
        bounds = integers(np.r_[0, found.ends].astype(np.int32))
        lists = (found.stage_of.astype(np.int32), places.astype(np.int32))
        own = (pa.ListArray.from_arrays(bounds, integers(numbers)) for numbers in lists)
        numbers = map(integers, (earliest, first, found.times))
        return cls(pa.table([*numbers, *own], _NAMES), take(rows))

    @classmethod
    def of_rows(cls, output: pa.Table, earliest: Ints, first: Ints) -> Part:
        """Return rows of output for keys with these places: each as a match of one event."""
        size = output.num_rows
        nothing = np.zeros(size, np.int64)
        ends, stages = np.arange(1, size + 1), nothing.astype(np.int32)
        found = Found([""], nothing.astype(np.uint8), nothing, ends, stages, nothing + ends - 1)
        return cls.of(found, earliest, first, lambda _: output)

    def taken(self, order: Ints) -> Part:
        """Return some of the matches, with their events."""
        results = self.results.take(integers(order))
        lists = in_one_piece(results.column("events"))
        rows, places = np.unique(plain_numbers(lists.flatten()), return_inverse=True)
        own = pa.ListArray.from_arrays(_bounds(lists), integers(places.astype(np.int32)))
        results = results.set_column(_NAMES.index("events"), "events", own)
        return Part(results, self.events.take(integers(rows)))

    @classmethod
    def joined(cls, parts: Sequence[Part]) -> Part:
        """Return the matches of several in the order of keys, those of a key in their order."""
        begin, moved = 0, []
        for part in parts:
            lists = in_one_piece(part.results.column("events"))
            own = integers(plain_numbers(lists.flatten()) + np.int32(begin))
            column = pa.ListArray.from_arrays(_bounds(lists), own)
            moved.append(part.results.set_column(_NAMES.index("events"), "events", column))
            begin += part.events.num_rows
        results = pa.concat_tables(moved).combine_chunks()
        events = pa.concat_tables([p.events for p in parts], promote_options="permissive")
        order = np.lexsort(cls(results, events).places[::-1])
        return cls(results.take(integers(order)), events)

    def found(self, stages: Sequence[str]) -> Found:
        """Return the matches; handles are rows of the events."""
        stage_of, handles = (in_one_piece(self.results.column(n)) for n in ("stages", "events"))
        ends = plain_numbers(_bounds(handles))[1:].astype(np.int64)
        times = plain_numbers(self.results.column("time"))
        kinds = np.ones(len(times), np.uint8)
        numbers = plain_numbers(stage_of.flatten()), plain_numbers(handles.flatten())
        return Found(stages, kinds, times, ends, numbers[0], numbers[1].astype(np.int64))

    @property
    def places(self) -> tuple[Ints, Ints]:
        """The places of the matches' keys."""
        earliest, first = (plain_numbers(self.results.column(name)) for name in _PLACES)
        return earliest, first

    @property
    def rows(self) -> pa.Table:
        """What was written as rows of output."""
        places = in_one_piece(self.results.column("events")).flatten()
        return self.events.take(places)


_PLACES = [f"{PREFIX}earliest", f"{PREFIX}first"]
_NAMES = [*_PLACES, "time", "stages", "events"]


def _bounds(lists: pa.Array) -> pa.Array:
    return integers(np.r_[0, np.cumsum(plain_numbers(lists.value_lengths()))].astype(np.int32))


@attrs.frozen(eq=False)
class Run:
    """Matches, or rows of output, in a file, in the order of their keys."""

    file: SpillFile
    blocks: list[tuple[Block, Block]] = attrs.field(factory=list)

    def add(self, part: Part) -> None:
        """Write some matches."""
        self.blocks.append((self.file.add(part.results), self.file.add(part.events)))

    def part(self, number: int) -> Part:
        """Read some matches."""
        return Part(*map(self.file.read, self.blocks[number]))

    def __len__(self) -> int:
        """Return the number of matches."""
        return sum(blocks[0].rows for blocks in self.blocks)


class _Head:
    """The first matches of a run that have not been taken."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._next = 0
        self.go_on()

    def go_on(self) -> None:
        """Read the next matches."""
        self.part = self._run.part(self._next)
        self.places = self.part.places
        self._next += 1
        self._begin = 0

    @property
    def has_more(self) -> bool:
        """Whether there are others in the file."""
        return self._next < len(self._run.blocks)

    @property
    def last(self) -> Place:
        """The place of the last key."""
        earliest, first = self.places
        return int(earliest[-1]), int(first[-1])

    @property
    def is_taken(self) -> bool:
        """Whether nothing is left."""
        return self._begin == len(self.places[0])

    def until(self, place: Place | None) -> Part | None:
        """Take the matches of keys up to a place, of all keys without one."""
        begin, (earliest, first) = self._begin, self.places
        self._begin = len(earliest)
        if place is not None:
            is_before = (earliest < place[0]) | ((earliest == place[0]) & (first <= place[1]))
            self._begin = int(np.count_nonzero(is_before))
        return self.part.taken(np.arange(begin, self._begin)) if begin < self._begin else None


@attrs.frozen(eq=False, slots=False)
class Results:
    """Matches, or rows of output, in runs."""

    runs: Sequence[Run]

    def __len__(self) -> int:
        """Return the number of matches."""
        return sum(map(len, self.runs))

    def parts(self) -> Iterator[Part]:
        """Yield the matches in the order of keys."""
        heads = [_Head(run) for run in self.runs if run.blocks]
        if len(heads) == 1:
            run, _ = self.in_order
            yield from map(run.part, range(len(run.blocks)))
            return
        while heads:
            bound = min((head.last for head in heads if head.has_more), default=None)
            taken = [part for head in heads if (part := head.until(bound)) is not None]
            if taken:
                yield Part.joined(taken)
            for head in heads:
                if head.is_taken and head.has_more:
                    head.go_on()
            heads = [head for head in heads if not head.is_taken]

    @cached_property
    def in_order(self) -> tuple[Run, list[int]]:
        """The matches in one run, and how many there are before each block of it."""
        own = [run for run in self.runs if run.blocks]
        run = own[0] if len(own) == 1 else Run(SpillFile())
        if len(own) > 1:
            for part in self.parts():
                run.add(part)
        return run, [0, *np.cumsum([blocks[0].rows for blocks in run.blocks]).tolist()]


@attrs.frozen(eq=False)
class SpilledRows:
    """Matches that are on disk; see :class:`FoundRows`."""

    results: Results  # The matches and timeouts
    timed_out: Results
    stages: Sequence[str]  # The stages by number
    shown: Sequence[str]  # The stages that can take events, in pattern order
    names: Sequence[str]  # The columns of events
    keys: Mapping[str, str]  # The columns of the key, and their names among those of events
    times: Times  # No times, but in the type of the events'
    schema: pa.Schema  # The columns in the files

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self.results)

    def _rows(self, part: Part) -> FoundRows:
        events = part.events.select(list(self.names))
        keys = {name: part.events.column(column) for name, column in self.keys.items()}
        found, nothing = part.found(self.stages), Found.of(self.stages, [b""] * 5)
        return FoundRows(lambda: events, found, nothing, self.shown, keys, self.times)

    def made(self, begin: int, end: int) -> list[dict[str, list[Any]]]:
        """Return some of them as dicts."""
        run, starts = self.results.in_order
        matches: list[dict[str, list[Any]]] = []
        at, end = begin, min(end, len(self))
        while at < end:
            number = bisect_right(starts, at) - 1
            first = starts[number]
            own = self._rows(run.part(number)).made(at - first, end - first)
            matches += own
            at += len(own)
        return matches

    def timeouts(self) -> list[Timeout[Any]]:
        """Return the partial matches that timed out."""
        rows = map(self._rows, self.timed_out.parts())
        return [
            Timeout(match, time)
            for own in rows
            for match, time in zip(
                own.made(0, len(own)), own.found.between(0, len(own)).times.tolist(), strict=True
            )
        ]

    def tables(self) -> Iterator[pa.Table]:
        """Yield the matches in columns, some at a time."""
        if not len(self):
            yield self.arrow()
        for part in self.results.parts():
            yield self._rows(part).arrow()

    def arrow(self) -> pa.Table:
        """Return the matches in columns."""
        if len(self):
            return pa.concat_tables(list(self.tables()), promote_options="permissive")
        nothing = Found.of(self.stages, [b""] * 5)
        part = Part.of(nothing, nothing.times, nothing.times, lambda _: self.schema.empty_table())
        return self._rows(part).arrow()


@attrs.frozen(eq=False)
class SpilledOutput:
    """Rows of output that are on disk, as a table of Arrow that is read when it is looked at."""

    results: Results  # The rows
    schema: pa.Schema  # Their columns

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.results)

    def slice(self, begin: int, size: int) -> pa.Table:
        """Return some of the rows."""
        run, starts = self.results.in_order
        taken = [self.schema.empty_table()]
        at, end = begin, min(begin + size, self.num_rows)
        while at < end:
            number = bisect_right(starts, at) - 1
            part = self._rows(run.part(number)).slice(at - starts[number], end - at)
            taken.append(part)
            at += part.num_rows
        return pa.concat_tables(taken)

    def _rows(self, part: Part) -> pa.Table:
        return part.rows.cast(self.schema)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows, some at a time."""
        if not self.num_rows:
            yield self.schema.empty_table()
        yield from map(self._rows, self.results.parts())

    def read(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables(list(self.tables()))


@attrs.define(eq=False)
class OutputWriter:
    """Writes rows of output, the types of whose columns may depend on their values."""

    schema: pa.Schema  # The columns so far

    def write(self, run: Run, output: pa.Table, earliest: Ints, first: Ints) -> None:
        """Write the output of keys with these places."""
        both = [self.schema, output.schema]
        self.schema = pa.unify_schemas(both, promote_options="permissive")
        for begin in range(0, output.num_rows, MOST_EVENTS):
            own = slice(begin, begin + MOST_EVENTS)
            some = output.slice(begin, MOST_EVENTS)
            run.add(Part.of_rows(some, earliest[own], first[own]))

    def output(self, results: Results) -> SpilledOutput:
        """Return what was written."""
        return SpilledOutput(results, self.schema)
