# SPDX-License-Identifier: Apache-2.0
"""A rule on a stream, key by key: the keys with events, or whose time came."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.matching.columns import Flags, Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.matcher import NO_DEADLINE, Items, PageMatcher
from pyflinkcep.matching.results import Found
from pyflinkcep.matching.stretches import Events
from pyflinkcep.rules.page_events import PageEvents
from pyflinkcep.rules.rule_states import Kept, RuleStates


@attrs.define(eq=False)
class PageStates:
    """See :class:`~pyflinkcep.matching.matcher.States`."""

    lengths: Ints
    counts: Ints
    numbers: Ints


@attrs.frozen(eq=False)
class DueKeys:
    """The due events that a rule wants, key by key."""

    rows: Ints
    bits: Ints | None
    bounds: Ints  # Where those of each key begin, and where the last ones end
    owners: Ints  # The item of each key
    keys: Ints  # The number of each key

    @classmethod
    def of(cls, run: PageEvents, number: int, names: Sequence[str]) -> DueKeys:
        """Return those of a rule."""
        rows, bits = run.wanted(number)
        owners = run.owner_of(rows)
        keys = run.keys(names)[rows]
        order = np.lexsort([keys, owners])
        rows, owners, keys = rows[order], owners[order], keys[order]
        firsts = np.flatnonzero(changes(owners, keys))
        own = None if bits is None else bits[order]
        return cls(rows, own, np.r_[firsts, len(rows)], owners[firsts], keys[firsts])

    def positions(self, states: RuleStates) -> Ints:
        """Return the number of each key's state; -1 for a new key."""
        return positions_of((states.keys, states.items), (self.keys, self.owners))


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


@attrs.frozen(eq=False)
class RunningKeys(ABC):
    """Runs a rule for keys of pages."""

    # The numbers of a key's state are its deadline, and what a stream of this rule alone stores.

    matcher: PageMatcher
    key: Sequence[str]  # The columns of the key
    code: int  # The number of the rule

    @abstractmethod
    def may_begin(self, due: DueKeys) -> Flags:
        """Return for each key whether its events may begin a match."""

    @abstractmethod
    def store(self, run: PageEvents, rows: Ints) -> EventStore:
        """Return some events as the matcher sees them."""

    def run(self, run: PageEvents, number: int, states: RuleStates) -> tuple[list[Kept], Found]:
        """Match the events that the rule wants; return what is kept, and matches."""
        due = DueKeys.of(run, number, self.key)
        positions = due.positions(states)
        begins = np.cumsum(states.lengths) - states.lengths
        deadlines = states.numbers[begins]
        chosen = np.flatnonzero((positions >= 0) | self.may_begin(due))
        positions = positions[chosen]
        has_events = np.zeros(len(states), bool)
        has_events[positions[positions >= 0]] = True
        is_over = ~has_events & (deadlines <= run.watermark) & (deadlines != NO_DEADLINE)
        waiting = np.flatnonzero(is_over)
        rests = ~has_events & ~is_over
        kept: list[Kept] = [(states.only(rests), deadlines[rests])] if rests.any() else []
        if not len(chosen) and not len(waiting):
            return kept, self.matcher.take()
        with_state = positions[positions >= 0]
        own = states.take(np.r_[with_state, waiting])
        positions[positions >= 0] = np.arange(len(with_state))
        positions = np.r_[positions, len(with_state) + np.arange(len(waiting))]
        rows = np.concatenate([own.handles, due.rows])
        owners = np.r_[due.owners[chosen], states.items[waiting]]
        keys = np.r_[due.keys[chosen], states.keys[waiting]]
        nothing = np.zeros(len(waiting), np.int64)
        starts = np.r_[due.bounds[:-1][chosen], nothing]

        def key_of(item: int) -> Any:
            is_due = item < len(chosen)
            at = (
                due.rows[starts[item]]
                if is_due
                else states.take(waiting[[item - len(chosen)]]).handles[0]
            )
            table = run.shared.table
            return {name: table.column(name)[int(at)].as_py() for name in self.key} or None

        items = Items(positions, starts, np.r_[due.bounds[1:][chosen], nothing], key_of)
        events = Events(run.shared.ms[due.rows], None, len(own.handles), due.bits)
        self.matcher.set_events(self.store(run, rows))
        firsts = np.cumsum(own.lengths) - own.lengths
        page = PageStates(own.lengths - 1, own.counts, np.delete(own.numbers, firsts))
        written = self.matcher.run_page(events, items, page, 0, run.watermark)
        found = self.matcher.take()
        places = np.cumsum(written.lengths) - written.lengths
        made = RuleStates(
            owners[written.items],
            np.full(len(written.items), self.code, np.int64),
            keys[written.items],
            written.lengths + 1,
            written.counts,
            np.insert(written.numbers, places, written.deadlines),
            rows[written.handles],
        )
        return [*kept, (made, written.deadlines)], attrs.evolve(found, handles=rows[found.handles])
