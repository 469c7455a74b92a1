# SPDX-License-Identifier: Apache-2.0
"""Events of a table in the order of matching: by key, time and place, on several cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.kernel.module import CompiledModule, compiled_module, naming_memory_errors
from pyflinkcep.matching import keys as identity
from pyflinkcep.matching.columns import Flags, Ints, integers, plain_numbers
from pyflinkcep.matching.memory import give_back
from pyflinkcep.matching.order import order_by
from pyflinkcep.matching.threads import cuts_between, heed, results
from pyflinkcep.tables.order import Keys, Rows, Times, ordered
from pyflinkcep.tables.row_groups import RowGroups, Unfit
from pyflinkcep.tables.typed_columns import ConditionBits, NumberColumn
from pyflinkcep.time import MAX_WATERMARK

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

_LEAST_PART = 1 << 15  # The fewest events that are worth a thread
_AT_ONCE = 1 << 16  # Events, whose columns fit the caches of a processor
_LONG = 1 << 12  # From how many events a key on they are sorted as numbers, not by merging
_MOST_COLUMNS = 6  # C moves at most 8: the row, the time, words of conditions, and fields
_BITS = 63  # of conditions in a word
_LOWER = 2**32 - 1  # The lower half of a time
_ROOM = 4  # How many numbers for each event the counts of keys may take, in all parts together
_MOST_BYTES = 7 << 26  # of events that are in their order at one time, unless a key has more
KINDS = 1 << 8
"""How many kinds of events, by the bits of conditions, can be told needless."""
Array = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class Placed:
    """Events in the order of matching, without those that it does not need."""

    rows: Rows | None  # Their rows; None if these are all rows, as they are
    times: Array | None  # Their times, see `ms`; None for those of all rows
    words: Sequence[Array]  # The bits of the conditions that hold, up to 63 in a word
    firsts: Ints  # Where keys begin
    size: int
    # What else matching needs of them, if it was moved too; integers in as few bytes as they need.
    fields: Sequence[Array] | None = None
    since: int = 0  # What the times are counted from, in epoch milliseconds

    def ms(self, places: slice | Ints) -> Ints:
        """Return the times of some events in epoch milliseconds."""
        assert self.times is not None
        found: Ints = self.times[places].astype(np.int64)
        found += self.since
        return found


@attrs.frozen(eq=False)
class Placing:
    """What orders the events of a table, and what is known of them beforehand."""

    times: Times
    keys: Keys
    conditions: ConditionBits  # The conditions that are decided beforehand
    needless: frozenset[int]  # The events that matching does not need, by their bits
    size: int
    groups: RowGroups | None = None  # Those of files, if they are read on the way
    fields: Sequence[NumberColumn] | None = None  # What else is moved with them, if it can be

    def placed(self, threads: int) -> Placed:
        """Return the events in their order."""
        (found,) = self._rounds(threads, None)
        return found

    def rounds(self, threads: int) -> Iterator[Placed]:
        """Yield the same of some keys after others: as many as need not much memory."""
        return self._rounds(threads, _MOST_BYTES)

    def _rounds(self, threads: int, most: int | None) -> Iterator[Placed]:
        module, source = compiled_module(), self.keys.source
        is_in_order = source is None and self.times.are_sorted
        words = -(-self.conditions.most // _BITS)
        has_many = words + len(self.fields or ()) > _MOST_COLUMNS
        if module is None or has_many or (is_in_order and not self.needless) or not self.size:
            yield self._plainly()
            return
        if (
            self.groups is not None and source is None
        ):  # or the first events of keys have to be seen
            groups = self.groups.without(self._is_needless)
            if not groups.groups:
                yield self._nothing()
                return
            yield from attrs.evolve(self, groups=groups)._by(module, source, threads, most)
            return
        yield from self._by(module, source, threads, most)

    def _by(
        self, module: CompiledModule, source: pa.ChunkedArray | None, threads: int, most: int | None
    ) -> Iterator[Placed]:
        with naming_memory_errors("sorting events by key"):
            try:
                try:
                    found = _Work.of(self, module, source, threads).placed(most)
                except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # it cannot number such keys
                    assert self.keys.codes is not None
                    codes = pa.chunked_array([integers(self.keys.codes)])
                    found = _Work.of(self, module, codes, threads).placed(most)
                yield from found
            except ValueError as cause:  # values that are not between the ends that a footer tells
                if self.groups is None:
                    raise
                raise Unfit from cause

    def _is_needless(self, ends: Mapping[str, tuple[int, int]]) -> bool:
        """Whether matching needs no event whose columns are between such ends."""
        possible = self.conditions.possible(ends)
        return possible is not None and possible <= self.needless

    def _nothing(self) -> Placed:
        """Return that no event is needed."""
        words = _words(self.conditions.some(0, 0))
        fields = [np.empty(0, own.dtype) for own in self.fields or ()]
        none = np.empty(0, np.int64)
        moved = None if self.fields is None else fields
        return Placed(np.empty(0, np.int32), none, words, none, 0, moved)

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

    def placed(self, most: int | None) -> Iterator[Placed]:
        """Return the events in their order: all, or those of some keys, in so many bytes."""
        count, groups = _parts(self.job.size, self.threads), self.job.groups
        if groups is None:
            cuts = np.linspace(0, self.job.size, count + 1).astype(np.int64).tolist()
        else:
            cuts = groups.cuts(count)
        parts = results([partial(self._numbered, *ends) for ends in pairwise(cuts)], self.threads)
        ends = [end for part in parts for end in part.ends]
        is_sorted = all(part.is_sorted for part in parts) and ends == sorted(ends)
        codes = self._merged(parts)
        order = _by_first_event(parts, codes)
        if not is_sorted:
            earliest = self._earliest(parts, codes, _size(order))
            order = order[np.argsort(earliest[order], kind="stable")]
        return self._scattered(parts, codes, order, is_sorted, most)

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
        lows = results([partial(self._lows, part) for part in parts], self.threads)
        for own, low in zip(codes, lows, strict=True):
            if own is None:
                np.minimum(earliest, low[:size], out=earliest)
            else:
                np.minimum.at(earliest, own, low)
        return earliest

    def _scattered(
        self,
        parts: list[_Part],
        codes: list[Any],
        order: Any,
        is_sorted: bool,
        most: int | None,
    ) -> Iterator[Placed]:
        """Yield the events of each key one after another, the keys in an order."""
        starts, firsts, size = _starts(parts, codes, order)
        fields, times_of = self.job.fields, self.job.times
        # Exact if they are still to be sorted by.
        convert = times_of.ms_of if is_sorted else times_of.exact_of
        since, time = self._span(convert)
        since_ms = since if is_sorted else int(times_of.ms_of_exact(np.array([since]))[0])
        dtype = _record(time, [own.dtype for own in parts[0].words], list(map(_type, fields or ())))
        rounds = 1 if most is None else -(-size * dtype.itemsize // most)
        cuts = cuts_between(firsts, size, rounds)
        room = np.empty(max(end - first for first, end in pairwise(cuts)), dtype)
        for first, end in pairwise(cuts):
            target = _Target(room[: end - first], first, since)
            moving = [
                partial(self._scatter, part, begins.copy(), target, convert)
                for part, begins in zip(parts, starts, strict=True)
            ]
            results(moving, self.threads)
            del moving
            if end == size:
                parts.clear()  # or they would stay in memory while these events are matched
            own_firsts = firsts[slice(*np.searchsorted(firsts, [first, end]))] - first
            if not is_sorted:
                self._sort_all(target, own_firsts, since_ms)
            moved = None if fields is None else target.columns("field")
            rows, times, words = target.rows, target.times, target.columns("word")
            yield Placed(rows, times, words, own_firsts, end - first, moved, since_ms)
            if len(cuts) > 2:
                give_back()  # what matching these events took

    def _span(self, convert: Callable[[Ints], Ints]) -> tuple[int, np.dtype[Any]]:
        """Return what times are counted from, and the type: of those near each other 4 bytes."""
        ends = pc.min_max(self.job.times.raw).as_py()
        least, most = convert(np.array([ends["min"], ends["max"]])).tolist()
        if most - least > _LOWER:
            return 0, np.dtype(np.int64)
        return least, np.dtype(np.uint32)

    def _sort_all(self, target: _Target, firsts: Ints, since_ms: int) -> None:
        """Sort the events of each key by their times."""
        size = len(target.records)
        shares = [
            partial(self._sort, target, firsts[(firsts >= a) & (firsts < b)], a, b, since_ms)
            for a, b in pairwise(cuts_between(firsts, size, _parts(size, self.threads)))
            if a < b
        ]
        results(shares, self.threads)

    # --- what a thread does

    def _numbered(self, begin: int, end: int) -> _Part:
        """Find the numbers of keys, and the bits of conditions, in some rows."""
        job, size, source, dictionary = self.job, end - begin, None, None
        if self.source is not None and job.groups is None:
            source = self.source.slice(begin, size)
        if source is not None and not self.is_whole:
            encoded = identity.encoded(source)
            dictionary, source = encoded.dictionary, pa.chunked_array([encoded.indices])
        numbering = self.numbering(None if dictionary is None else len(dictionary))
        # Together, since the allocator keeps what is large enough for the next match.
        both: Any = np.empty((2, size), np.int32)
        codes, lower = both
        needed = job.needed
        rows: Any = None if needed is None else np.empty(size, np.int32)
        are_kept = job.groups is not None and not job.fields  # else they are read again with these
        moments: list[_Moments] | None = [] if are_kept else None
        words: list[Array] = []
        kept: list[int] = []
        count, ends, is_sorted = 0, [], True
        for at, times, keys, bits in self._events(source, begin, end):
            length = len(times)
            is_block_sorted = not (times[1:] < times[:-1]).any()
            is_sorted = is_sorted and is_block_sorted
            ends += [int(times[0]), int(times[-1])]
            own = _words(bits)
            words = words or [np.empty(size, word.dtype) for word in own]
            index, until = None, count + length
            if needed is None:
                number = numbering.add(keys, None, None, codes[count:until], None)
            else:
                chosen = rows[count:until]
                number = numbering.add(keys, own[0], needed, codes[count:until], chosen)
                index = chosen[:number].astype(np.intp)
                chosen[:number] += at
            if moments is not None:
                chosen_times = times if index is None else times[index]
                moments.append(_Moments.of(chosen_times, lower[count:], is_block_sorted))
            for room, given in zip(words, own, strict=True):
                target = room[count : count + number]
                if index is None:
                    target[:] = given
                else:
                    np.take(given, index, out=target, mode="clip")
            kept.append(number)
            count += number
        values, counts, order = numbering.found()
        return _Part(
            begin,
            end,
            kept,
            None if needed is None else rows[:count],
            moments,
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

    def _events(
        self, keys: pa.ChunkedArray | None, begin: int, end: int, *, only_keys: bool = False
    ) -> Iterator[tuple[int, Ints, Array, Any]]:
        """Yield the place of the first of some events, their times, keys and conditions."""
        job, is_dense = self.job, self.range > 0
        bits: Any = None
        if job.groups is None:
            for at, length in _blocks(begin, end):
                own = _numbers(keys, at - begin, length, is_dense)
                bits = None if only_keys else job.conditions.some(at, length)
                yield at, job.times.some(at, length), own, bits
            return
        names = {*job.groups.named, *(() if only_keys else job.conditions.names)}
        for at, table in job.groups.batches(begin, end, names):
            size, (_, key) = table.num_rows, job.groups.named
            own = _numbers(None if key is None else table.column(key), 0, size, is_dense)
            bits = None if only_keys else job.conditions.on(table).some(0, size)
            yield at, job.groups.times_of(table), own, bits

    def _moved(
        self, begin: int, end: int, fields: Sequence[NumberColumn]
    ) -> Iterator[tuple[int, Ints, list[Array]]]:
        """Yield the place of the first of some events, their times, and fields of them."""
        job = self.job
        if job.groups is None:
            for at, length in _blocks(begin, end):
                values = [field.values(at, length).data for field in fields]
                yield at, job.times.some(at, length), values
            return
        names = {job.groups.named[0], *(field.name for field in fields)}
        for at, table in job.groups.batches(begin, end, names):
            values = [field.on(table).values(0, table.num_rows).data for field in fields]
            yield at, job.groups.times_of(table), values

    def _lows(self, part: _Part) -> Ints:
        """Find the earliest time of each code of a part, of all of its rows."""
        found = np.full(len(part.counts), MAX_WATERMARK)
        for codes, times in self._moments(part):
            self.module.least(codes, self.job.times.ms_of(times), found)
        return found

    def _moments(self, part: _Part) -> Iterator[tuple[Ints, Ints]]:
        """Yield the codes and times of some events."""
        if part.rows is None:
            if part.times is not None:
                yield from ((part.codes[some], own.times) for some, own in _kept_blocks(part))
                return
            for at, times, _ in self._moved(part.begin, part.end, ()):
                yield part.codes[at - part.begin :][: len(times)], times
            return
        # The codes of those that are not kept are not known any more.
        numbering = self.numbering(None if part.dictionary is None else len(part.dictionary))
        for _, times, keys, _ in self._events(part.source, part.begin, part.end, only_keys=True):
            codes: Any = np.empty(len(times), np.int32)
            numbering.add(keys, None, None, codes, None)
            yield codes, times

    def _scatter(
        self, part: _Part, starts: Array, target: _Target, convert: Callable[[Ints], Ints]
    ) -> None:
        """Write the events of a part to their places: those of each code from its start on."""
        records, since = target.records, target.since
        dtypes, offsets = zip(
            *(records.dtype.fields[own] for own in records.dtype.names), strict=True
        )
        for begin, rows, own, fields in self._kept(part):
            times = convert(own) - since if since else convert(own)
            some = slice(begin, begin + len(rows))
            given = rows, times, *(word[some] for word in part.words), *fields
            columns = tuple(map(_narrowed, given, dtypes))
            codes = part.codes[some]
            self.module.scatter(codes, starts, columns, records, offsets, target.first)

    def _kept(self, part: _Part) -> Iterator[tuple[int, Any, Ints, list[Array]]]:
        """Yield the place of the first of some kept events, their rows, times and fields."""
        job, count = self.job, 0
        if part.times is not None:
            for some, moments in _kept_blocks(part):
                rows: Any = np.arange(some.start, some.stop, dtype=np.int32) + np.int32(part.begin)
                if part.rows is not None:
                    rows = part.rows[some]
                yield some.start, rows, moments.times, []
            return
        blocks = self._moved(part.begin, part.end, job.fields or ())
        for (at, times, columns), number in zip(blocks, part.kept, strict=True):
            if part.rows is None:
                yield count, np.arange(at, at + number, dtype=np.int32), times, columns
            else:
                rows = part.rows[count : count + number]
                places = rows - at
                yield count, rows, times[places], [column[places] for column in columns]
            count += number

    def _sort(self, target: _Target, firsts: Ints, begin: int, end: int, since_ms: int) -> None:
        """Sort the events of some keys by their times, and make milliseconds of these."""
        some = slice(begin, end)
        times: Any = target.times[some].astype(np.int64)
        order = self._order(times, np.r_[firsts, end] - begin)
        if order is not None:
            target.records[some], times = target.records[some][order], times[order]
        target.times[some] = self.job.times.ms_of_exact(times + target.since) - since_ms

    def _order(self, times: Ints, bounds: Ints) -> Any:
        """Return the stable order within each key; None if it is that of the events."""
        keys = len(bounds) - 1
        if len(times) < keys * _LONG:
            found = self.module.order_within(bounds, times)
            return None if found is None else np.frombuffer(found, np.int32)
        numbers = np.repeat(np.arange(keys), np.diff(bounds))
        return order_by([times, numbers])


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


def _starts(
    parts: Sequence[_Part], codes: Sequence[Any], order: Any
) -> tuple[list[Array], Ints, int]:
    """Return where each part's events of each code begin, where keys do, and how many there are."""
    totals = np.zeros(_size(order), np.int32)
    every = slice(len(totals))
    for own, part in zip(codes, parts, strict=True):
        totals[every if own is None else own] += part.counts[every]
    counts = totals[order]
    ends = np.cumsum(counts, dtype=np.int64)
    begins = ends - counts
    starts = np.zeros_like(totals)
    starts[order] = begins
    found: list[Array] = []
    for own, part in zip(codes, parts, strict=True):
        found.append(starts.copy() if own is None else starts[own])
        starts[every if own is None else own] += part.counts[every]
    return found, begins[counts > 0], int(ends[-1])


def _size(codes: Any) -> int:
    """Return how many codes there are up to the last one."""
    return int(codes.max()) + 1


@attrs.frozen(eq=False)
class _Target:
    """The events in their order, which all parts write to: what a key has of one is together."""

    records: Array  # All columns; see `_record`
    first: int  # The place of the first of them
    since: int  # What the times are counted from

    @property
    def rows(self) -> Rows:
        found: Rows = self.records["row"]
        return found

    @property
    def times(self) -> Array:
        found: Array = self.records["time"]
        return found

    def columns(self, kind: str) -> list[Array]:
        """Return the words, or the fields."""
        names = self.records.dtype.names or ()
        return [self.records[name] for name in names if name.startswith(kind)]


def _type(field: NumberColumn) -> np.dtype[Any]:
    """Return the type of a field in records: 4 bytes, if all of its integers fit them."""
    low, high = field.range or (-_LOWER, _LOWER)
    return np.dtype(np.int32) if -(1 << 31) <= low <= high < 1 << 31 else field.dtype


def _narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers in another type; raise ValueError if one is not between the known ends."""
    found = np.ascontiguousarray(values, dtype)
    if dtype.kind in "iu" and dtype != values.dtype and (found != values).any():
        raise ValueError("a number is out of range")
    return found


def _record(
    time: np.dtype[Any], words: Sequence[np.dtype[Any]], fields: Sequence[np.dtype[Any]]
) -> np.dtype[Any]:
    """Return what records of events have: the row, the time, words and fields, without gaps."""
    columns: list[tuple[str, np.dtype[Any]]] = [
        ("row", np.dtype(np.int32)),
        ("time", time),
        *((f"word{number}", dtype) for number, dtype in enumerate(words)),
        *((f"field{number}", dtype) for number, dtype in enumerate(fields)),
    ]
    return np.dtype(columns)


@attrs.frozen(eq=False)
class _Moments:
    """Times of a block in their own unit: of those near each other only the lower half."""

    least: int | None  # None if all bytes are kept
    kept: Array

    @classmethod
    def of(cls, times: Ints, room: Array, is_sorted: bool) -> _Moments:
        """Keep some times, in a part of some room if that is enough."""
        if not len(times):
            return cls(None, times)
        ends = times[[0, -1]] if is_sorted else np.array([times.min(), times.max()])
        least, most = ends.tolist()
        if most - least > _LOWER:
            return cls(None, times.copy())
        kept = room[: len(times)]
        kept[:] = times
        return cls(least, kept)

    @property
    def times(self) -> Ints:
        """The times."""
        if self.least is None:
            return self.kept
        found = (self.kept.view(np.uint32) - np.uint32(self.least & _LOWER)).astype(np.int64)
        found += self.least
        return found


@attrs.frozen(eq=False)
class _Part:
    """Some rows, whose keys have numbers of their own."""

    begin: int
    end: int
    kept: Sequence[int]  # How many events of each block are kept
    rows: Rows | None  # The rows of these; None if all are kept
    times: Sequence[_Moments] | None  # Their times, by block; None if they are read again
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


def _blocks(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield blocks of rows, and stop where the work is to stop."""
    for at in range(begin, end, _AT_ONCE):
        heed()
        yield at, min(_AT_ONCE, end - at)


def _kept_blocks(part: _Part) -> Iterator[tuple[slice, _Moments]]:
    """Yield the kept events of each block whose times are kept."""
    begin = 0
    for own in part.times or ():
        heed()
        end = begin + len(own.kept)
        yield slice(begin, end), own
        begin = end


def _numbers(column: pa.ChunkedArray | None, begin: int, size: int, is_dense: bool) -> Array:
    """Return integers in 64 bits, or 32 if their range is known: zeros of no column."""
    if column is None:
        return np.zeros(size, np.int32)
    found: Array = plain_numbers(column.slice(begin, size))
    if found.dtype == np.uint64:
        return found.view(np.int64)
    return found if is_dense and found.dtype == np.int32 else found.astype(np.int64, copy=False)
