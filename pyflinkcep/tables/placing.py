# SPDX-License-Identifier: Apache-2.0
"""Events of a table in the order of matching: by key, time and place, on several cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.kernel.module import CompiledModule, compiled_module, naming_memory_errors
from pyflinkcep.matching import keys as identity
from pyflinkcep.matching.columns import Flags, Ints, integers, plain_numbers
from pyflinkcep.matching.order import order_by
from pyflinkcep.matching.threads import heed, results
from pyflinkcep.tables.order import Keys, Rows, Times, ordered
from pyflinkcep.tables.row_groups import RowGroups, Unfit
from pyflinkcep.tables.typed_columns import ConditionBits
from pyflinkcep.time import MAX_WATERMARK

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

_LEAST_PART = 1 << 15  # The fewest events that are worth a thread
_AT_ONCE = 1 << 16  # Events, whose columns fit the caches of a processor
_LONG = 1 << 12  # From how many events a key on they are sorted as numbers, not by merging
_MOST_CONDITIONS = 6 * 63  # C moves at most 8 columns: the row, the time, and words of conditions
_ROOM = 4  # How many numbers for each event the counts of keys may take, in all parts together
KINDS = 1 << 8
"""How many kinds of events, by the bits of conditions, can be told needless."""
Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class Placed:
    """Events in the order of matching, without those that it does not need."""

    rows: Rows | None  # Their rows; None if these are all rows, as they are
    times: Ints | None  # Their times in epoch milliseconds; None for those of all rows
    words: Sequence[Array]  # The bits of the conditions that hold, up to 63 in a word
    firsts: Ints  # Where keys begin
    size: int


@attrs.frozen(eq=False)
class Placing:
    """What orders the events of a table, and what is known of them beforehand."""

    times: Times
    keys: Keys
    conditions: ConditionBits  # The conditions that are decided beforehand
    needless: frozenset[int]  # The events that matching does not need, by their bits
    size: int
    groups: RowGroups | None = None  # Those of files, if they are read on the way

    def placed(self, threads: int) -> Placed:
        """Return the events in their order."""
        module, source = compiled_module(), self.keys.source
        is_in_order = source is None and self.times.are_sorted
        has_many = self.conditions.most > _MOST_CONDITIONS
        if module is None or has_many or (is_in_order and not self.needless) or not self.size:
            return self._plainly()
        with naming_memory_errors("sorting events by key"):
            try:
                return _Work.of(self, module, source, threads).placed()
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # Arrow cannot number such keys
                assert self.keys.codes is not None
                codes = pa.chunked_array([integers(self.keys.codes)])
                return _Work.of(self, module, codes, threads).placed()

    @property
    def needed(self) -> Flags | None:
        """Which events matching needs, by their bits; None if all."""
        if not self.needless:
            return None
        found = np.ones(KINDS, bool)
        found[list(self.needless)] = False
        return found

    def _plainly(self) -> Placed:
        """Return the events in their order: what C does, and on how many threads it may be."""
        if self.groups is not None:
            raise Unfit
        order, firsts = ordered(self.times, self.keys.codes)
        firsts = np.zeros(1, np.int64) if firsts is None else firsts
        bits = self.conditions.some(0, self.size)
        needed, words = self.needed, _words(bits)
        if order is None and needed is None:
            return Placed(None, None, words, firsts, self.size)
        rows: Any = np.arange(self.size, dtype=np.int32) if order is None else order
        if needed is not None:
            stays = needed[bits][rows]
            before = np.r_[0, np.cumsum(stays)]
            firsts = np.unique(before[firsts])
            rows, firsts = rows[stays], firsts[firsts < before[-1]]
        times = self.times.ms(rows)
        return Placed(rows, times, [word[rows] for word in words], firsts, len(rows))


def _words(bits: Any) -> list[Array]:
    """Return bits of conditions as an array for each word."""
    if bits is None:
        return []
    return [bits] if bits.ndim == 1 else [np.ascontiguousarray(word) for word in bits.T]


# --- in C


@attrs.frozen(eq=False)
class _Work:
    """The work of ordering events, in parts for threads."""

    job: Placing
    module: CompiledModule
    source: pa.ChunkedArray | None  # The key of each event; None for one key
    is_whole: bool  # Whether keys are integers, without NULL
    # The least of these, and the size of their range; 0 if it is too large.
    least: int
    range: int
    threads: int

    @classmethod
    def of(
        cls, job: Placing, module: CompiledModule, source: pa.ChunkedArray | None, threads: int
    ) -> _Work:
        """Look at the keys."""
        least, width = 0, 1
        # Numbers of texts and the like have a range, too, of which each part has its own
        is_whole = source is None or (pa.types.is_integer(source.type) and not source.null_count)
        if source is not None and is_whole:
            ends = pc.min_max(source).as_py()
            least, width = ends["min"], ends["max"] - ends["min"] + 1
            # Each part counts by the whole range.
            is_wide = width * _parts(job.size, threads) > _ROOM * job.size
            if (width > _AT_ONCE and (width > job.size or is_wide)) or ends["max"] >= 2**63:
                least = width = 0
        return cls(job, module, source, is_whole, least, width, threads)

    def placed(self) -> Placed:
        """Return the events in their order."""
        count, groups = _parts(self.job.size, self.threads), self.job.groups
        if groups is None:
            cuts = np.linspace(0, self.job.size, count + 1).astype(np.int64).tolist()
        else:
            cuts = groups.cuts(count)
        parts = results([_Numbered(self, *ends) for ends in pairwise(cuts)], self.threads)
        ends = [end for part in parts for end in part.ends]
        is_sorted = all(part.is_sorted for part in parts) and ends == sorted(ends)
        if groups is not None and not is_sorted:
            raise Unfit  # all events have to be seen twice
        codes = self._merged(parts)
        order = _by_first_event(parts, codes)
        if not is_sorted:
            earliest = self._earliest(parts, codes, _size(order))
            order = order[np.argsort(earliest[order], kind="stable")]
        return self._scattered(parts, codes, order, is_sorted)

    def numbering(self, size: int | None = None) -> _kernel.Numbering:
        """Return a numbering of keys, or of this many codes."""
        if size is not None:
            return self.module.Numbering(0, size)
        return self.module.Numbering(self.least, self.range)

    def _merged(self, parts: Sequence[_Part]) -> list[Any]:
        """Return for each code of each part that of its key among all; None if it is the same."""
        if len(parts) == 1 or (self.is_whole and self.range):
            return [None] * len(parts)
        sizes = np.cumsum([len(part.counts) for part in parts])
        if self.is_whole:
            values = np.concatenate([part.values for part in parts if part.values is not None])
            codes: Any = np.empty(len(values), np.int32)
            self.numbering().add(values, None, None, codes, None)
        else:
            codes = identity.codes(pa.chunked_array([part.dictionary for part in parts]))
        return np.split(codes, sizes[:-1])

    def _earliest(self, parts: Sequence[_Part], codes: Sequence[Any], size: int) -> Ints:
        """Return the time of the earliest event by code."""
        earliest = np.full(size, MAX_WATERMARK)
        lows = results([_Earliest(self, part) for part in parts], self.threads)
        for own, low in zip(codes, lows, strict=True):
            if own is None:
                np.minimum(earliest, low[:size], out=earliest)
            else:
                np.minimum.at(earliest, own, low)
        return earliest

    def _scattered(
        self, parts: Sequence[_Part], codes: Sequence[Any], order: Any, is_sorted: bool
    ) -> Placed:
        """Return the events of each key one after another, the keys in an order."""
        totals = np.zeros(_size(order), np.int32)
        every = slice(len(totals))
        for own, part in zip(codes, parts, strict=True):
            totals[every if own is None else own] += part.counts[every]
        counts = totals[order]
        ends = np.cumsum(counts, dtype=np.int64)
        begins, size = ends - counts, int(ends[-1])
        firsts = begins[counts > 0]
        starts = np.zeros_like(totals)
        starts[order] = begins
        target = _Target.of(size, [word.dtype for word in parts[0].words])
        scattered = []
        for part, own in zip(parts, codes, strict=True):
            begins = starts.copy() if own is None else starts[own]
            scattered.append(_Scattered(self, part, begins, target, not is_sorted))
            starts[every if own is None else own] += part.counts[every]
        results(scattered, self.threads)
        if not is_sorted:
            count = _parts(size, self.threads)
            places = np.searchsorted(firsts, np.linspace(0, size, count + 1)[1:-1])
            cuts = [0, *dict.fromkeys(firsts[places[places < len(firsts)]].tolist()), size]
            shares = [
                _Sorted(self, target, firsts[(firsts >= begin) & (firsts < end)], begin, end)
                for begin, end in pairwise(cuts)
                if begin < end
            ]
            results(shares, self.threads)
        return Placed(target.rows, target.times, target.words, firsts, size)


def _parts(size: int, threads: int) -> int:
    """Return how many parts some events are worth."""
    return min(threads, size // _LEAST_PART) or 1


def _by_first_event(parts: Sequence[_Part], codes: Sequence[Any]) -> Any:
    """Return the codes of keys that have events, by the first event of each."""
    found: list[Any] = []
    for part, own in zip(parts, codes, strict=True):
        order: Any = np.arange(len(part.counts)) if part.order is None else part.order
        found.append(order if own is None else own[order])
    if len(found) == 1:
        return found[0]
    is_known = np.zeros(max(map(_size, found)), bool)
    for number, own in enumerate(found):
        found[number] = own[~is_known[own]]
        is_known[own] = True
    return np.concatenate(found)


def _size(codes: Any) -> int:
    """Return how many codes there are up to the last one."""
    return int(codes.max()) + 1


@attrs.frozen(eq=False)
class _Target:
    """The events in their order, which all parts write to: what a key has of one is together."""

    records: Array  # All columns
    rows: Rows
    times: Ints
    words: Sequence[Array]

    @classmethod
    def of(cls, size: int, words: Sequence[np.dtype[Any]]) -> _Target:
        """Return room for events with such words."""
        names = [f"word{number}" for number in range(len(words))]
        fields = [("time", np.int64), ("row", np.int32), *zip(names, words, strict=True)]
        records = np.empty(size, np.dtype(fields, align=True))
        return cls(records, records["row"], records["time"], [records[name] for name in names])

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where a record has its row, its time, and its words."""
        fields = self.records.dtype.fields or {}
        names = ("row", "time", *(name for name in fields if name.startswith("word")))
        return tuple(fields[name][1] for name in names)


@attrs.define(eq=False)
class _Stoppable:
    """A part of the work, block by block."""

    work: _Work

    @staticmethod
    def blocks(begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield blocks of rows."""
        for at in range(begin, end, _AT_ONCE):
            heed()
            yield at, min(_AT_ONCE, end - at)


@attrs.frozen(eq=False)
class _Part:
    """Some rows, whose keys have numbers of their own."""

    begin: int
    end: int
    kept: Sequence[int]  # How many events of each block are kept
    rows: Rows | None  # The rows of these; None if all are kept
    times: Ints | None  # Their times in their own unit; None if the table has them
    codes: Ints  # The codes of their keys
    words: Sequence[Array]
    # By code: the value of the key, if neither it nor the dictionary tells, and how many are kept.
    values: Ints | None
    counts: Array
    order: Array | None  # The codes by the first event of each; None if that is how they count
    dictionary: pa.Array | None
    source: pa.ChunkedArray | None  # The keys of all rows, from `begin` on, as integers
    is_sorted: bool  # Whether the times of all its rows are
    ends: Sequence[int]  # The first and the last of them


@attrs.define(eq=False)
class _Numbered(_Stoppable):
    """Finds the numbers of keys, and the bits of conditions, in some rows."""

    begin: int
    end: int

    def run(self) -> _Part:
        """Do it."""
        work, job = self.work, self.work.job
        size, source, dictionary = self.end - self.begin, None, None
        if work.source is not None and job.groups is None:
            source = work.source.slice(self.begin, size)
        if source is not None and not work.is_whole:
            encoded = identity.encoded(source)
            dictionary, source = encoded.dictionary, pa.chunked_array([encoded.indices])
        numbering = work.numbering(None if dictionary is None else len(dictionary))
        codes: Any = np.empty(size, np.int32)
        needed = job.needed
        rows: Any = None if needed is None else np.empty(size, np.int32)
        moments: Any = None if job.groups is None else np.empty(size, np.int64)
        words: list[Array] = []
        kept: list[int] = []
        count, ends, is_sorted = 0, [], True
        for at, times, keys, bits in self._events(source):
            length = len(times)
            is_sorted = is_sorted and not (times[1:] < times[:-1]).any()
            ends += [int(times[0]), int(times[-1])]
            own = _words(bits)
            words = words or [np.empty(size, word.dtype) for word in own]
            end = count + length
            if needed is None:
                number = numbering.add(keys, None, None, codes[count:end], None)
            else:
                chosen = rows[count:end]
                number = numbering.add(keys, own[0], needed, codes[count:end], chosen)
                places = chosen[:number]
                own = [own[0][places]]
                times = times[places]
                places += at
            for word, held in zip(words, own, strict=True):
                word[count : count + number] = held
            if moments is not None:
                moments[count : count + number] = times
            kept.append(number)
            count += number
        values, counts, order = numbering.found()
        return _Part(
            self.begin,
            self.end,
            kept,
            None if needed is None else rows[:count],
            None if moments is None else moments[:count],
            codes[:count],
            [word[:count] for word in words],
            None if values is None else np.frombuffer(values, np.int64),
            np.frombuffer(counts, np.int32),
            None if order is None else np.frombuffer(order, np.int32),
            dictionary,
            source,
            is_sorted and ends == sorted(ends),
            ends[:1] + ends[-1:],
        )

    def _events(self, keys: pa.ChunkedArray | None) -> Iterator[tuple[int, Ints, Array, Any]]:
        """Yield the place of the first of some events, their times, keys and conditions."""
        work, job = self.work, self.work.job
        if job.groups is None:
            for at, length in self.blocks(self.begin, self.end):
                own = _numbers(keys, at - self.begin, length, work.range > 0)
                yield at, job.times.some(at, length), own, job.conditions.some(at, length)
            return
        for at, table in job.groups.batches(self.begin, self.end):
            size = table.num_rows
            time, key = (table.column(name) for name in job.groups.named)
            times = plain_numbers(time.chunk(0).view(f"int{time.type.bit_width}"))
            bits = job.conditions.on(table).some(0, size)
            own = _numbers(key, 0, size, work.range > 0)
            yield at, times.astype(np.int64, copy=False), own, bits


def _numbers(column: pa.ChunkedArray | None, begin: int, size: int, is_dense: bool) -> Array:
    """Return integers in 64 bits, or 32 if their range is known: zeros of no column."""
    if column is None:
        return np.zeros(size, np.int32)
    found: Array = plain_numbers(column.slice(begin, size))
    if found.dtype == np.uint64:
        return found.view(np.int64)
    return found if is_dense and found.dtype == np.int32 else found.astype(np.int64, copy=False)


@attrs.define(eq=False)
class _OfPart(_Stoppable):
    """Goes through the events of a part that are kept."""

    part: _Part

    def events(self) -> Iterator[tuple[int, int, Any, Ints]]:
        """Yield where those of a block begin and end, their rows, and the block's own times."""
        part, count = self.part, 0
        if part.times is not None:
            for at, length in self.blocks(0, len(part.times)):
                some = slice(at, at + length)
                rows: Any = np.arange(at, at + length, dtype=np.int32) + np.int32(part.begin)
                if part.rows is not None:
                    rows = part.rows[some]
                yield at, at + length, rows, part.times[some]
            return
        blocks = self.blocks(part.begin, part.end)
        for (at, length), number in zip(blocks, part.kept, strict=True):
            if part.rows is None:
                rows = np.arange(at, at + length, dtype=np.int32)
            else:
                rows = part.rows[count : count + number]
            times = self.work.job.times.some(at, length)
            yield count, count + number, rows, times if number == length else times[rows - at]
            count += number


@attrs.define(eq=False)
class _Earliest(_OfPart):
    """Finds the earliest time of each code of a part, of all of its rows."""

    def run(self) -> Ints:
        """Do it."""
        part, work = self.part, self.work
        numbering = work.numbering(None if part.dictionary is None else len(part.dictionary))
        found = np.full(len(part.counts), MAX_WATERMARK)
        for at, length in self.blocks(part.begin, part.end):
            codes: Any = part.codes[at - part.begin :][:length]
            if part.rows is not None:  # those of the others are not known any more
                codes = np.empty(length, np.int32)
                keys = _numbers(part.source, at - part.begin, length, work.range > 0)
                numbering.add(keys, None, None, codes, None)
            work.module.least(codes, work.job.times.ms_of(work.job.times.some(at, length)), found)
        return found


@attrs.define(eq=False)
class _Scattered(_OfPart):
    """Writes the events of a part to their places."""

    starts: Array  # Where those of each code go
    target: _Target
    is_exact: bool  # Whether times are still to be sorted by

    def run(self) -> None:
        """Do it."""
        part, times_of, target = self.part, self.work.job.times, self.target
        offsets = target.offsets
        for begin, end, rows, own in self.events():
            times = times_of.exact_of(own) if self.is_exact else times_of.ms_of(own)
            words = (word[begin:end] for word in part.words)
            columns = tuple(map(np.ascontiguousarray, (rows, times, *words)))
            codes = part.codes[begin:end]
            self.work.module.scatter(codes, self.starts, columns, target.records, offsets)


@attrs.define(eq=False)
class _Sorted(_Stoppable):
    """Sorts the events of some keys by their times, and makes milliseconds of these."""

    target: _Target
    firsts: Ints
    begin: int
    end: int

    def run(self) -> None:
        """Do it."""
        target, some = self.target, slice(self.begin, self.end)
        order = self._order(np.ascontiguousarray(target.times[some]))
        if order is not None:
            target.records[some] = target.records[some][order]
        target.times[some] = self.work.job.times.ms_of_exact(target.times[some])

    def _order(self, times: Ints) -> Any:
        """Return the stable order within each key; None if it is that of the events."""
        bounds = np.r_[self.firsts, self.end] - self.begin
        if len(times) < len(self.firsts) * _LONG:
            found = self.work.module.order_within(bounds, times)
            return None if found is None else np.frombuffer(found, np.int32)
        numbers = np.repeat(np.arange(len(self.firsts)), np.diff(bounds))
        return order_by([times, numbers])
