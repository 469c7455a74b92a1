# SPDX-License-Identifier: Apache-2.0
"""Files that do not fit memory: their events dealt to temporary files, what each part has found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.errors import Field, KeyFields, NotSupportedError, counted
from pyflinkcep.matching.columns import POSITION, Ints, integers, plain_numbers
from pyflinkcep.matching.keys import Hashes, hashes, mixed
from pyflinkcep.matching.memory import give_back, memory_bytes
from pyflinkcep.matching.progress import Counts, counting
from pyflinkcep.matching.spill import SpillFile
from pyflinkcep.tables.files import EventFiles
from pyflinkcep.tables.found_rows import Results, Run
from pyflinkcep.tables.given import checked
from pyflinkcep.tables.order import Times, column_of, lazily, type_of_values
from pyflinkcep.tables.values import grouping_key, key_getter

_PROCESS = 256 << 20  # What Python, Arrow and NumPy take
_LEAST = 16  # bytes, of which no share is nothing
_PER_EVENT = 48  # What matching takes beside an event
_MOST_FILES = 256
_MOST_AT_ONCE = 64 << 20
_EVERY = 256  # Of how many events one tells how times are spread
Tables = Callable[[Sequence[str] | None], Iterable[pa.Table]]
"""Returns the events, some at a time, with some or all of their columns."""


@attrs.frozen
class Budget:
    """How much memory a job may take, and how much of it the events of a file may need."""

    whole: int

    @property
    def usable(self) -> int:
        """What is left for events, however little."""
        return max(self.whole - _PROCESS, self.whole // 4, _LEAST)

    @property
    def most(self) -> int:
        """What the events of one file may need."""
        return self.usable * 4 // 5

    @property
    def usual(self) -> int:
        """What they are to need, as keys differ in size."""
        return self.usable * 2 // 5

    @property
    def portion(self) -> int:
        """How many bytes of events are dealt at once."""
        return min(self.usable // 16, _MOST_AT_ONCE)

    def files(self, nbytes: int, rows: int, most: int = _MOST_FILES) -> int:
        """Return over how many files events are to be dealt."""
        return min(needed(nbytes, rows) // self.usual + 1, most)


def needed(nbytes: int, rows: int) -> int:
    """Return how many bytes matching events needs."""
    return nbytes + _PER_EVENT * rows


@attrs.frozen(eq=False)
class Dealing:
    """How events are dealt: each has a column with its place among all."""

    names: Sequence[str]  # The other columns
    timestamp: Field | None  # Their time
    key: KeyFields | None  # Their key
    budget: Budget
    # What is told how many events a key has that does not fit memory, and that is not dealt by
    # time; None if such keys are.
    of_large: Callable[[int], None] | None = None
    # The types of the keys that a function returned for some events; None for a mixture.
    key_types: set[pa.DataType | None] = attrs.field(factory=set)

    @property
    def key_type(self) -> pa.DataType | None:
        """The type of the keys that a function returned for all events; None for a mixture."""
        if None in self.key_types or not self.key_types:
            return None
        schemas = [pa.schema([("key", type_)]) for type_ in self.key_types]
        with suppress(pa.ArrowException):
            return pa.unify_schemas(schemas, promote_options="permissive").field("key").type
        return None

    def buckets(self, tables: Tables, count: int) -> Iterator[list[SpillFile]]:
        """
        Yield events, those of each key together.

        They are in one file if they fit memory, else those of one key in several, by time.
        """
        if self.key is None:
            assert self.of_large is None
            yield self._by_time(tables, count)
            return

        def place(table: pa.Table) -> Ints:
            return _scaled(self._hashes(table), count)

        for file in self._dealt(tables(None), place, count):
            if needed(file.nbytes, file.rows) <= self.budget.most:
                yield [file] if file.rows else []
            else:
                yield from self._again(file)
            file.close()

    def _again(self, file: SpillFile) -> Iterator[list[SpillFile]]:
        """Deal events again that do not fit memory, by how many each key has."""
        known, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        for table in file.tables():
            own, times = np.unique(self._hashes(table), return_counts=True)
            known, places = np.unique(np.r_[known, own], return_inverse=True)
            counts = np.bincount(places, np.r_[counts, times]).astype(np.int64)
        each = needed(file.nbytes, file.rows) // file.rows + 1
        is_large = counts * each > self.budget.most
        groups = np.cumsum(np.where(is_large, 0, counts)) * each // max(self.budget.usual, each)
        light = int(groups.max()) + 1
        groups[is_large] = light + np.arange(int(is_large.sum()))

        def place(table: pa.Table) -> Ints:
            return groups[np.searchsorted(known, self._hashes(table))]

        if len(known) == 1:
            yield self._parts(file)
            return
        dealt = self._dealt(file.tables(), place, int(groups.max()) + 1)
        for number, part in enumerate(dealt):
            if number < light:
                yield [part] if part.rows else []
            else:
                yield self._parts(part)
            part.close()

    def _parts(self, file: SpillFile) -> list[SpillFile]:
        """Return the events of one key that do not fit memory."""
        if self.of_large is not None:
            self.of_large(file.rows)
            return [file]
        return self._by_time(lambda _: file.tables(), self.budget.files(file.nbytes, file.rows))

    def _by_time(self, tables: Tables, count: int) -> list[SpillFile]:
        """Deal the events of one key, those of a millisecond together."""
        asked = [self.timestamp] if isinstance(self.timestamp, str) else None
        asked = [POSITION] if self.timestamp is None else asked
        sample = [self._times(table)[::_EVERY] for table in tables(asked)]
        times = np.sort(np.concatenate([np.zeros(0, np.int64), *sample]))
        cuts = np.unique(times[np.arange(1, count) * len(times) // count]) if len(times) else times

        def place(table: pa.Table) -> Ints:
            return np.searchsorted(cuts, self._times(table), "right")

        return [f for f in self._dealt(tables(None), place, len(cuts) + 1) if f.rows]

    def _times(self, table: pa.Table) -> Ints:
        if self.timestamp is None:
            return plain_numbers(table.column(POSITION))
        return Times.of(self.shown(table), self.timestamp).ms()

    def _hashes(self, table: pa.Table) -> Hashes:
        """Return a number for each event's key."""
        key = self.key
        is_list = isinstance(key, list | tuple) and all(isinstance(name, str) for name in key)
        if not isinstance(key, str) and not is_list:
            get = key_getter(key)  # type: ignore[arg-type]
            keys = [grouping_key(get(event)) for event in lazily(self.shown(table))]
            self.key_types.add(type_of_values(keys))
            return mixed(np.fromiter(map(_hash, keys), np.uint64, table.num_rows))
        names = [key] if isinstance(key, str) else key
        return hashes([column_of(table, name, "key") for name in names], _hash)  # type: ignore

    def shown(self, table: pa.Table) -> pa.Table:
        """Return events as the user gave them."""
        return table.select([name for name in self.names if name in table.column_names])

    def _dealt(
        self, tables: Iterable[pa.Table], place: Callable[[pa.Table], Ints], count: int
    ) -> list[SpillFile]:
        """Return files of events, those that have a number in the file of that number."""
        files = [SpillFile() for _ in range(count)]
        for table in _gathered(tables, self.budget.portion):
            places = place(table).astype(np.uint16)
            taken = table.take(integers(np.argsort(places, kind="stable"))) if count > 1 else table
            ends = np.cumsum(np.bincount(places, minlength=count)).tolist()
            for file, begin, end in zip(files, [0, *ends], ends, strict=False):
                if begin < end:
                    file.add(taken.slice(begin, end - begin))
        return files


def numbered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables with the place of each row among all."""
    begin = 0
    for table in tables:
        places = integers(np.arange(begin, begin + table.num_rows))
        yield table.append_column(POSITION, places)
        begin += table.num_rows


def _gathered(tables: Iterable[pa.Table], nbytes: int) -> Iterator[pa.Table]:
    """Yield tables that are joined to larger ones."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        del table
        if size >= nbytes:
            yield _joined(held)
            size = 0
    if held:
        yield _joined(held)


def _joined(held: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(held)
    held.clear()
    return table


def _scaled(numbers: Hashes, count: int) -> Ints:
    """Return numbers of any size as numbers below a small one."""
    found = ((numbers >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
    return found.astype(np.int64)


def _hash(value: Any) -> int:
    return hash(grouping_key(value)) & (2**64 - 1)


Matching = Callable[[pa.Table, Ints, Run], int]
"""Writes what it finds in events with these places among all; returns how many keys they have."""


@attrs.frozen(eq=False)
class Spilling:
    """The events of files, and within how much memory they are matched."""

    files: EventFiles  # The files
    names: Sequence[str]  # The columns to read
    memory: int | str | None  # How much memory to take; None for what is usual
    prepared: Callable[[pa.Table], pa.Table] = lambda table: table  # Adds columns

    @classmethod
    def of(cls, path: Any, memory: int | str | None) -> Spilling:
        """Return the events of files with all columns."""
        files = EventFiles.of(os.fspath(path))
        return cls(files, files.dataset.schema.names, memory)

    @property
    def budget(self) -> Budget:
        """How much memory to take."""
        return Budget(memory_bytes(self.memory))

    @property
    def _size(self) -> tuple[int, int]:
        """How many bytes the events take, and how many there are; none if that is not known."""
        return self.files.nbytes(self.names), max(self.files.rows, 0)

    @property
    def fits(self) -> bool:
        """Whether the events fit memory as a table."""
        return needed(*self._size) <= self.budget.most

    @property
    def count(self) -> int:
        """Over how many files to deal the events."""
        return self.budget.files(*self._size)

    @property
    def nothing(self) -> pa.Table:
        """A table with the columns of events, and no event."""
        return self.prepared(checked(self.files.nothing.select(list(self.names))))

    def tables(
        self, columns: Sequence[str] | None, counts: Counts | None = None
    ) -> Iterator[pa.Table]:
        """Yield the events, each with its place among all, and count those with all columns."""
        read = self.names if columns is None else columns
        if read == [POSITION]:
            read = self.names[:1]
        tables = map(checked, self.files.tables(list(read)))
        for table in numbered(map(self.prepared, tables) if columns is None else tables):
            yield table
            if counts is not None and columns is None:
                counts.events += table.num_rows
                counts.tell()

    def found(self, key: Sequence[str], match: Matching) -> Results:
        """Return what is found in the events, those of each key by themselves."""
        dealing = Dealing(
            self.nothing.column_names, None, list(key), self.budget, of_large=self._refuse
        )
        file, runs = SpillFile(), list[Run]()
        with counting() as counts:
            for parts in dealing.buckets(partial(self.tables, counts=counts), self.count):
                if not parts:
                    continue
                events = read(*parts)
                run = Run(file)
                places = plain_numbers(events.column(POSITION))
                counts.keys += match(events.drop_columns([POSITION]), places, run)
                counts.tasks += 1
                counts.matches += len(run)
                counts.tell()
                runs.append(run)
                del events, places
                give_back()
        return Results([run for run in runs if run.blocks])

    def _refuse(self, rows: int) -> None:
        """Refuse a key that does not fit memory, if it is said how much that is."""
        if self.memory is not None:
            raise NotSupportedError(
                f"memory={self.memory!r} is less than the {counted(rows, 'event', 'events')} of "
                "one key need, whose matches are found with all of them at once",
                "give it more memory, or partition by more columns",
            )

    def refused(self, what: str, hint: str) -> NotSupportedError:
        """Return the error for what needs all events in memory."""
        return NotSupportedError(
            f"memory={self.memory!r} is less than {self.files.path!r} needs, and {what}", hint
        )


def read(*files: SpillFile) -> pa.Table:
    """Return the tables of files as one."""
    return pa.concat_tables([table for file in files for table in file.tables()])
