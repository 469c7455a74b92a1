# SPDX-License-Identifier: Apache-2.0
"""The states of many rules in a page: entries side by side, whose events are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.flink.stored_state import damaged_state
from pyflinkcep.errors import StateFormatError
from pyflinkcep.matching.columns import Flags, Ints
from pyflinkcep.matching.matcher import Items, States, Written, ranges

VERSION = 1
"""Of the format of an entry."""

# The numbers of a place are its entries one after another. One is the rule's code, the hash of the
# key, a head, the numbers of the state, and which of the place's events it refers to. The head is,
# from the lowest bits on: the version in 6, whether the counts follow as two numbers, whether the
# references are in it; 16 bits each for the counts of numbers and references; three references.
_LONG, _INLINE = 1 << 6, 1 << 7
_MOST = (1 << 16) - 1
_SEVERAL = 16  # Entries of so many places are read at once
_FEW = 3  # How many references fit into the head, if all are bytes
_HEAD = 3  # Where what follows a head begins


@attrs.frozen(eq=False)
class RuleStates:
    """States of rules for keys, in columns."""

    items: Ints  # For each the number of the item of its place
    codes: Ints  # The code of its rule
    keys: Ints  # The hash of its key
    lengths: Ints  # How many of `numbers` are its own
    counts: Ints  # How many of `handles` are its own
    numbers: Ints
    handles: Ints  # The events that it refers to

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self.items)

    @classmethod
    def of(cls, items: Items, page: States, first_held: int) -> RuleStates:
        """Read the states of the items of a page."""
        known = np.flatnonzero(items.positions >= 0)
        positions = items.positions[known]
        ends = np.cumsum(page.lengths)[positions]
        numbers = np.ascontiguousarray(page.numbers, "<i8")
        owner, at = _entries(numbers, known, ends - page.lengths[positions], ends)
        if not len(at):
            return cls.empty()
        codes, keys, head, length, count = _read(numbers, at)
        begins = at + _HEAD + 2 * (head & _LONG != 0)
        refs = _references(numbers, head, begins + length, count)
        held = np.cumsum(page.counts) - page.counts
        places = items.positions[owner]
        if (refs >= np.repeat(page.counts[places], count)).any() or (refs < 0).any():
            raise damaged_state("a rule refers to an event that is not there")
        handles = refs + np.repeat(first_held + held[places], count)
        own = numbers[ranges(begins, length)]
        return cls(owner, codes, keys, length, count, own, handles)

    @classmethod
    def empty(cls) -> RuleStates:
        """Return no states."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none, none, none, none, none)

    @classmethod
    def concat(cls, parts: Sequence[RuleStates]) -> RuleStates:
        """Join states."""
        columns = zip(*(attrs.astuple(part, recurse=False) for part in parts), strict=True)
        return cls(*map(np.concatenate, columns)) if parts else cls.empty()

    def take(self, chosen: Ints) -> RuleStates:
        """Return some states, in the given order."""
        numbers, handles = (
            own[ranges((np.cumsum(sizes) - sizes)[chosen], sizes[chosen])]
            for own, sizes in ((self.numbers, self.lengths), (self.handles, self.counts))
        )
        items, codes, keys = self.items[chosen], self.codes[chosen], self.keys[chosen]
        sizes = self.lengths[chosen], self.counts[chosen]
        return RuleStates(items, codes, keys, *sizes, numbers, handles)

    def only(self, chosen: Flags) -> RuleStates:
        """Return the states that a mask chooses."""
        return self.take(np.flatnonzero(chosen))

    def written(self, deadlines: Ints) -> Written:
        """Return the pages of states, given the deadline of each."""
        if not len(self):
            none = self.items
            return Written(none, none, none, none, none, none)
        order = np.argsort(self.items, kind="stable")
        own, deadlines = self.take(order), deadlines[order]
        firsts = np.flatnonzero(np.r_[True, own.items[1:] != own.items[:-1]])
        handles, sizes, refs = own._distinct(firsts)
        is_long = (own.lengths >= _MOST) | (own.counts >= _MOST)
        most = np.zeros(len(own), np.int64)
        some = np.flatnonzero(own.counts)
        begins = np.cumsum(own.counts) - own.counts
        if len(some):
            most[some] = np.maximum.reduceat(refs, begins[some])
        is_inline = (own.counts <= _FEW) & (most < 256) & ~is_long
        head: Any = VERSION | is_long * _LONG | is_inline * _INLINE
        head = head | np.where(is_long, 0, own.lengths << 8 | own.counts << 24)
        for place in range(_FEW):
            has = np.flatnonzero(is_inline & (own.counts > place))
            head[has] |= refs[begins[has] + place] << (40 + 8 * place)
        words = np.where(is_inline, 0, (own.counts + 1) // 2)
        lengths = _HEAD + 2 * is_long + own.lengths + words
        numbers = np.zeros(int(lengths.sum()), "<i8")
        at = np.cumsum(lengths) - lengths
        numbers[at], numbers[at + 1], numbers[at + 2] = own.codes, own.keys, head
        long = np.flatnonzero(is_long)
        numbers[at[long] + 3], numbers[at[long] + 4] = own.lengths[long], own.counts[long]
        own_at = at + _HEAD + 2 * is_long
        numbers[ranges(own_at, own.lengths)] = own.numbers
        apart = np.where(is_inline, 0, own.counts)
        halves = numbers.view("<i4")
        halves[ranges(2 * (own_at + own.lengths), apart)] = refs[ranges(begins, apart)]
        return Written(
            own.items[firsts],
            np.minimum.reduceat(deadlines, firsts),
            np.add.reduceat(lengths, firsts),
            sizes,
            numbers.astype(np.int64, copy=False),
            handles,
        )

    def _distinct(self, firsts: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the events of places, each once, their counts, and which of them are meant."""
        places = np.zeros(len(self), np.int64)
        places[firsts[1:]] = 1
        owner = np.repeat(np.cumsum(places), self.counts)
        order = np.lexsort([self.handles, owner])
        handles, owner = self.handles[order], owner[order]
        is_new = np.r_[True, (handles[1:] != handles[:-1]) | (owner[1:] != owner[:-1])]
        is_new = is_new[: len(handles)]
        sizes = np.bincount(owner[is_new], minlength=len(firsts)).astype(np.int64)
        numbers = np.cumsum(is_new) - 1 - (np.cumsum(sizes) - sizes)[owner]
        refs = np.empty(len(handles), np.int64)
        refs[order] = numbers
        return handles[is_new], sizes, refs


Kept = tuple[RuleStates, Ints]
"""States, and for each when time alone has an effect."""


def _entries(numbers: Ints, places: Ints, at: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the place of each entry and where it begins, given where those of places do."""
    owners, begins = [places[:0]], [at[:0]]
    # The next entries of all places at once; most have few.
    while len(at) > _SEVERAL:
        owners.append(places)
        begins.append(at)
        at = at + _size(numbers, at, ends)
        goes_on = at < ends
        places, at, ends = places[goes_on], at[goes_on], ends[goes_on]
    for place, begin, end in zip(places.tolist(), at.tolist(), ends.tolist(), strict=True):
        own = _entries_of(numbers[begin:end])
        owners.append(np.full(len(own), place))
        begins.append(np.asarray(own, np.int64) + begin)
    found, every = np.concatenate(owners), np.concatenate(begins)
    order = np.lexsort([every, found])
    return found[order], every[order]


def _size(numbers: Ints, at: Ints, ends: Ints) -> Ints:
    """Return the numbers of entries, which are not beyond some ends."""
    if (at + _HEAD > ends).any():
        raise damaged_state("an entry of a rule ends early")
    _, _, head, length, count = _read(numbers, at)
    words = np.where(head & _INLINE != 0, 0, (count + 1) // 2)
    size: Ints = _HEAD + 2 * (head & _LONG != 0) + length + words
    if (at + size > ends).any():
        raise damaged_state("an entry of a rule is longer than its place")
    return size


def _entries_of(numbers: Ints) -> list[int]:
    """Return where the entries of a place begin, which may be many."""
    found, at, listed = list[int](), 0, numbers.tolist()
    end = len(listed)
    while at < end:
        found.append(at)
        head = listed[at + 2] if at + _HEAD <= end else 0
        count = head >> 24 & _MOST
        is_wrong = head & _INLINE and count > _FEW
        if head & (_LONG | _LONG - 1) != VERSION or is_wrong:  # long, or refused
            at += int(_size(numbers, np.asarray([at]), np.asarray([end]))[0])
            continue
        at += _HEAD + (head >> 8 & _MOST) + (0 if head & _INLINE else (count + 1) // 2)
    if at > end:
        raise damaged_state("an entry of a rule is longer than its place")
    return found


def _read(numbers: Ints, at: Ints) -> tuple[Ints, ...]:
    """Return codes, keys, heads, and the counts of numbers and references of some entries."""
    head = numbers[at + 2]
    versions = head & (_LONG - 1)
    if (versions != VERSION).any():
        raise StateFormatError(
            f"states of rules in format {int(versions.max())}, this release reads format {VERSION}",
            "restore with the release that wrote them, or start from empty state",
        )
    length, count = head >> 8 & _MOST, head >> 24 & _MOST
    long = np.flatnonzero(head & _LONG)
    if len(long):
        if (at[long] + _HEAD + 2 > len(numbers)).any():
            raise damaged_state("an entry of a rule ends early")
        length[long], count[long] = numbers[at[long] + 3], numbers[at[long] + 4]
        if (length[long] < 0).any() or (count[long] < 0).any():
            raise damaged_state("an entry of a rule has no length")
    if (count[head & _INLINE != 0] > _FEW).any():
        raise damaged_state("too many references in the head of an entry")
    return numbers[at], numbers[at + 1], head, length, count


def _references(numbers: Ints, head: Ints, at: Ints, counts: Ints) -> Ints:
    """Return which of its place's events each entry refers to."""
    is_inline = head & _INLINE != 0
    begins = np.cumsum(counts) - counts
    refs = np.zeros(int(counts.sum()), np.int64)
    for place in range(_FEW):
        has = np.flatnonzero(is_inline & (counts > place))
        refs[begins[has] + place] = head[has] >> (40 + 8 * place) & 0xFF
    apart = np.where(is_inline, 0, counts)
    refs[ranges(begins, apart)] = numbers.view("<i4")[ranges(2 * at, apart)]
    return refs


@attrs.define(eq=False)
class PageStates:
    """See :class:`~pyflinkcep.matching.matcher.States`."""

    lengths: Ints
    counts: Ints
    numbers: Ints

    @classmethod
    def of(cls, states: RuleStates) -> PageStates:
        """Return what a rule by itself has of states: all but their deadlines."""
        firsts = np.cumsum(states.lengths) - states.lengths
        return cls(states.lengths - 1, states.counts, np.delete(states.numbers, firsts))


def kept_of(written: Written, owners: Ints, codes: Ints, keys: Ints, rows: Ints) -> Kept:
    """Return the states of items that go on, given what each item, and each handle, stands for."""
    items, places = written.items, np.cumsum(written.lengths) - written.lengths
    made = RuleStates(
        owners[items],
        codes[items],
        keys[items],
        written.lengths + 1,
        written.counts,
        np.insert(written.numbers, places, written.deadlines),
        rows[written.handles],
    )
    return made, written.deadlines


def positions_of(known: Sequence[Ints], asked: Sequence[Ints]) -> Ints:
    """Return for rows of columns the number of the equal one among those known; -1 for none."""
    size = len(known[0])
    every = [np.concatenate(pair) for pair in zip(known, asked, strict=True)]
    order = np.lexsort(every)
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(changes(*(own[order] for own in every)))
    found = np.full(len(order) + 1, -1, np.int64)
    found[codes[:size]] = np.arange(size)
    return found[codes[size:]]


def changes(*columns: Ints) -> Flags:
    """Return whether rows of columns differ from the one before."""
    found = np.zeros(len(columns[0]), bool)
    found[:1] = True
    for own in columns:
        found[1:] |= own[1:] != own[:-1]
    return found
