# SPDX-License-Identifier: Apache-2.0
"""Events of any number dealt to temporary files that fit memory: by key, or one key's by time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.matching.columns import POSITION, Ints, integers, plain_numbers
from pyflinkcep.matching.keys import Hashes, hashes, mixed
from pyflinkcep.matching.spill import SpillFile
from pyflinkcep.tables.order import Times, column_of, lazily, type_of_values
from pyflinkcep.tables.values import Field, grouping_key, key_getter

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
    key: Field | Sequence[str] | None  # Their key
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
