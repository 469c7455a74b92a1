# SPDX-License-Identifier: Apache-2.0
"""Matches by joining ordered lists of events, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.candidates import ElementList, Ranks
from pyflinkcep.engines.lists.clauses import Clauses, named
from pyflinkcep.engines.lists.columns import Columns
from pyflinkcep.engines.lists.frame import Conditions, Flags, Frame
from pyflinkcep.engines.lists.nearness import near_the_rarest, stretches_near_the_rarest
from pyflinkcep.engines.lists.order import join_order
from pyflinkcep.engines.lists.ranges import Ints, expanded
from pyflinkcep.engines.lists.type_codes import Split, TypeCodes
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Component, Query
from pyflinkcep.sase.parts import constant_tests

__all__ = ["EventLists"]

_MOST_ROWS = 1 << 20
_FIRST_CHUNK = 1 << 14


@attrs.frozen(eq=False)
class EventLists:
    """
    A query on ordered lists of events.

    Attributes
    ----------
    query : Query
        The query.
    ranks : Ranks
        The order of the events.
    clauses : Clauses
        Its conditions, sorted by the events that they read.
    conditions : Conditions
        Evaluates them.
    lists : dict of str to ElementList
        The candidate events of each element.
    order : tuple of str
        The single elements in the order in which they are joined.
    starts, ends : array of bool or None
        Which events may be a match's first, and its last; None for all.
    met : dict of str to int
        How many candidates of each element the plain join has tested.

    Notes
    -----
    Xia, Ding, Qiu, Xie: Complex event matching based on recursive comparison of event list,
    Journal of Shenyang Aerospace University 40(2), 2023. Differs from the paper: candidates are
    rows of a table that is joined element by element, without recursion.
    """

    query: Query
    ranks: Ranks
    clauses: Clauses
    conditions: Conditions
    lists: dict[str, ElementList]
    order: tuple[str, ...]
    starts: Flags | None = None
    ends: Flags | None = None
    met: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, query: Query, table: EventTable, split: Split | None = None) -> EventLists:
        """Return the lists of a table's events; `split` is for :meth:`TypeCodes.positions`."""
        ranks = Ranks(query, table)
        types = {part.variable: part.type for part in query.components}
        codes = TypeCodes.of(table.types, types.values())
        sample = codes.sampled()
        stretches = stretches_near_the_rarest(
            query,
            ranks,
            {variable: sample[type_] for variable, type_ in types.items()},
            lambda variable: codes.positions_of(types[variable]),
        )
        own = codes.positions(split, stretches)
        return cls._of(query, table, ranks, {v: own[type_] for v, type_ in types.items()})

    @classmethod
    def of_positions(cls, query: Query, table: EventTable, own: Mapping[str, Ints]) -> EventLists:
        """Return the lists of a table's events; `own` has the positions that fit each element."""
        ranks = Ranks(query, table)
        return cls._of(query, table, ranks, near_the_rarest(query, ranks, own))

    @classmethod
    def _of(
        cls, query: Query, table: EventTable, ranks: Ranks, own: Mapping[str, Ints]
    ) -> EventLists:
        clauses = Clauses.once(query)
        columns = Columns.of(table, [*query.conditions, *constant_tests(query)])
        starts, ends = (
            None if flags is None else np.asarray(flags, bool)
            for flags in (table.starts, table.ends)
        )
        lists = {}
        for part in query.components:
            positions = own[part.variable]
            if starts is not None and part is query.positive[0] and not part.repeats:
                positions = positions[starts[positions]]
            if ends is not None and part is query.positive[-1] and not part.repeats:
                positions = positions[ends[positions]]
            lists[part.variable] = ElementList.of(part, positions, ranks, clauses, columns)
        conditions = Conditions(query, columns, lists)
        order = join_order(lists, clauses, conditions)
        return cls(query, ranks, clauses, conditions, lists, order, starts, ends)

    def frames(self, joined: Iterable[Frame] | None = None) -> Iterator[Frame]:
        """
        Yield the matches, many at a time.

        Parameters
        ----------
        joined : iterable of Frame, optional
            The choices of single events that satisfy all conditions on these alone, apart from
            those in :attr:`at_end`, if they have been joined elsewhere.
        """
        if any(not len(self.lists[part.variable]) for part in self.query.positive):
            return
        for frame in self._joins() if joined is None else map(self._after_join, joined):
            frame = self._bounded(self._finished(frame))
            if frame.size:
                yield frame

    def _after_join(self, frame: Frame) -> Frame:
        for part in self.at_end:
            frame = self._allowed(frame, (part,))
        return frame

    def _joins(self) -> Iterator[Frame]:
        """Yield the choices of single events that satisfy all conditions on these alone."""
        start = self.lists[self.order[0]].positions
        for begin in range(0, len(start), _FIRST_CHUNK):
            chunk = start[begin : begin + _FIRST_CHUNK]
            frame = Frame(len(chunk), {self.order[0]: chunk})
            yield from self._joined(self._checked(frame, self.order[:1]), 1)

    def _joined(self, frame: Frame, bound: int) -> Iterator[Frame]:
        """Yield the matches of candidates with `bound` elements, in halves if there are many."""
        if not frame.size:
            return
        if bound == len(self.order):
            yield frame
            return
        name = self.order[bound]
        low, high = self._range(name, frame)
        if frame.size > 1 and int((high - low).sum()) > _MOST_ROWS:
            half = np.arange(frame.size) < frame.size // 2
            yield from self._joined(frame.rows(half), bound)
            yield from self._joined(frame.rows(~half), bound)
            return
        rows, numbers = expanded(low, high)
        self.met[name] = self.met.get(name, 0) + len(numbers)
        longer = frame.rows(rows).with_single(name, self.lists[name].positions[numbers])
        yield from self._joined(self._checked(longer, self.order[: bound + 1]), bound + 1)

    def _bounded(self, frame: Frame) -> Frame:
        """Drop rows whose first or last event, of a closure, may not begin or end a match."""
        first, last = self.query.positive[0], self.query.positive[-1]
        if self.starts is not None and frame.size and first.repeats:
            frame = frame.rows(self.starts[self.spans(frame)[first.variable][0]])
        if self.ends is not None and frame.size and last.repeats:
            frame = frame.rows(self.ends[self.spans(frame)[last.variable][1]])
        return frame

    # --- ranges of candidates

    def spans(self, frame: Frame) -> dict[str, tuple[Ints, Ints]]:
        """Return the first and last event of each element that is bound."""
        spans = {name: (at, at) for name, at in frame.singles.items()}
        for name, (low, high) in frame.closures.items():
            positions = self.lists[name].positions
            spans[name] = positions[low], positions[high - 1]
        return spans

    def _range(self, name: str, frame: Frame) -> tuple[Ints, Ints]:
        """Return which events of an element's list lie between those that are bound."""
        spans, rank = self.spans(frame), self.ranks.rank
        names = [part.variable for part in self.query.components]
        place = names.index(name)
        before = [spans[n] for n in names[:place] if n in spans]
        after = [spans[n] for n in names[place + 1 :] if n in spans]
        first, last = (before or after)[0][0], (after or before)[-1][1]
        low, high = self.ranks.since[last], self.ranks.until[first]
        if before:
            low = np.maximum(low, rank[before[-1][1]] + 1)
        if after:
            high = np.minimum(high, rank[after[0][0]])
        group = self.ranks.group[first]
        own = self.lists[name]
        low, high = own.first_from(group, low), own.first_from(group, high)
        return low, np.maximum(low, high)

    # --- conditions

    def _checked(self, frame: Frame, bound: Sequence[str]) -> Frame:
        """Drop the rows that fail a condition that the newest single element makes decidable."""
        newest, known = bound[-1], set(bound)
        for clause in self.clauses.associations:
            names = set(named(clause))
            if newest in names and names <= known:
                frame = frame.rows(self.conditions.holding(clause, frame))
        for part in self._constant():
            neighbours = self._neighbours(part)
            if newest in neighbours and neighbours <= known:
                frame = self._allowed(frame, (part,))
        return frame

    def _finished(self, frame: Frame) -> Frame:
        """Add the closures, and drop the rows that fail a condition about them."""
        closures = [part for part in self.query.positive if part.repeats]
        singles = {part.variable for part in self.query.positive if not part.repeats}
        ranges = {part.variable: self._range(part.variable, frame) for part in closures}
        kept = np.ones(frame.size, bool)
        for part in closures:
            low, high = ranges[part.variable]
            kept &= high - low >= part.least
        for name, (low, high) in ranges.items():
            frame = frame.with_closure(name, low, high)
        frame = self._in_window(frame.rows(kept)) if closures else frame
        for clause in self.clauses.associations:
            if not set(named(clause)) <= singles:
                frame = frame.rows(self.conditions.holding(clause, frame))
        decided = [part for part in self._constant() if self._is_single(part)]
        for parts in self.query.negations:
            if parts[0] not in decided:
                frame = self._allowed(frame, parts)
        return frame

    def _in_window(self, frame: Frame) -> Frame:
        """Drop the rows whose closures exceed the window."""
        if self.query.window is None or not frame.size:
            return frame
        spans, names = self.spans(frame), self.query.variables
        last = self.ranks.rank[spans[names[-1]][1]]
        return frame.rows(last < self.ranks.until[spans[names[0]][0]])

    # --- negation

    def _constant(self) -> Iterator[Component]:
        """Yield the negated elements, outside of sequences, whose conditions read only these."""
        for part, *others in self.query.negations:
            if not others and part.variable not in self.clauses.absent:
                yield part

    @property
    def between(self) -> list[Component]:
        """The negated elements between two single ones whose conditions read only these."""
        return [p for p in self._constant() if len(self.bounds(p)) == 2 and self._is_single(p)]

    @property
    def at_end(self) -> list[Component]:
        """The other negated elements that depend on single elements only."""
        alone = [part for part in self._constant() if self._is_single(part)]
        return [part for part in alone if part not in self.between]

    def _is_single(self, part: Component) -> bool:
        """Whether a negated element depends on single elements only."""
        return self._neighbours(part) <= {p.variable for p in self.query.positive if not p.repeats}

    def bounds(self, part: Component) -> tuple[str, ...]:
        """Return the neighbours of a negated element: two, or one at an end."""
        place = self.query.place(part.variable)
        before = [p.variable for p in self.query.components[:place] if not p.negated]
        after = [p.variable for p in self.query.components[place:] if not p.negated]
        return *before[-1:], *after[:1]

    def _neighbours(self, part: Component) -> set[str]:
        """Return what a negated element depends on: its neighbours, or all elements at an end."""
        bounds = self.bounds(part)
        return set(bounds) if len(bounds) == 2 else {p.variable for p in self.query.positive}

    def _allowed(self, frame: Frame, parts: Sequence[Component]) -> Frame:
        """Drop the rows that an event of a negated element forbids, or a sequence of several."""
        asked = [self.clauses.absent.get(part.variable, ()) for part in parts]
        ranges = [self._range(part.variable, frame) for part in parts]
        if len(parts) == 1 and not asked[0]:
            low, high = ranges[0]
            return frame.rows(high <= low)
        counts = (np.asarray(high - low, float) for low, high in ranges)
        if frame.size > 1 and reduce(np.multiply, counts).sum() > _MOST_ROWS:
            half = np.arange(frame.size) < frame.size // 2
            halves = (self._allowed(frame.rows(own), parts) for own in (half, ~half))
            return Frame.joined(list(halves))
        found, rows = frame, np.arange(frame.size)
        read = {name for clauses in asked for clause in clauses for name in named(clause)}
        for part, clauses in zip(parts, asked, strict=True):
            low, high = self._range(part.variable, found)
            if part.variable not in read:  # any of its events is as good as the first
                high = np.minimum(high, low + 1)
            again, numbers = expanded(low, high)
            positions = self.lists[part.variable].positions[numbers]
            found, rows = found.rows(again).with_single(part.variable, positions), rows[again]
            for clause in clauses:
                held = self.conditions.holding(clause, found)
                found, rows = found.rows(held), rows[held]
        return frame.rows(np.bincount(rows, minlength=frame.size) == 0)

    # --- matches

    def matches(self, frame: Frame) -> Iterator[dict[str, list[int]]]:
        """Yield the rows of a frame as matches."""
        columns: list[tuple[str, Any]] = []
        for part in self.query.positive:
            name = part.variable
            if name in frame.singles:
                columns.append((name, frame.singles[name].reshape(-1, 1).tolist()))
            else:
                own = self.lists[name].positions
                ranges = zip(*(a.tolist() for a in frame.closures[name]), strict=True)
                columns.append((name, [own[low:high].tolist() for low, high in ranges]))
        for row in range(frame.size):
            yield {name: events[row] for name, events in columns}
