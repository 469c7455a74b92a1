# SPDX-License-Identifier: Apache-2.0
"""Matches by joining ordered lists of events, column by column, here or in the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.clauses import Clauses, Columns, JoinPrograms, join_programs, named
from pyflinkcep.engines.lists.frame import (
    JOINING,
    Conditions,
    ElementList,
    Flags,
    Frame,
    Ints,
    Ranks,
    Stretches,
    TypeCodes,
    earlier,
    expanded,
    later,
)
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.arrays import Values, computed, ranked
from pyflinkcep.expressions.numbers import LEAST, MOST
from pyflinkcep.expressions.program import Op, Type
from pyflinkcep.expressions.tree import Tree
from pyflinkcep.kernel.module import CompiledModule, compiled_module, naming_memory_errors
from pyflinkcep.sase.model import Component, Form, Query
from pyflinkcep.sase.placement import constant_tests

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


_SAMPLE = 256


def join_order(lists: Mapping[str, ElementList], clauses: Clauses) -> tuple[str, ...]:
    """
    Return the single elements in join order.

    The join starts at the rarest and goes on to the left or the right, each time to the element
    that has fewer events, each clause that it makes decidable taken to hold for a third.
    """
    singles = [part.variable for part in clauses.query.positive if not part.repeats]
    left = right = min(range(len(singles)), key=lambda place: len(lists[singles[place]]))
    order = [singles[left]]

    def kept(name: str) -> float:
        return len(lists[name]) / 3.0 ** sum(1 for _ in clauses.decidable(name, order))

    while left > 0 and right + 1 < len(singles):
        if kept(singles[left - 1]) < kept(singles[right + 1]):
            left -= 1
            order.append(singles[left])
        else:
            right += 1
            order.append(singles[right])
    return (*order, *singles[:left][::-1], *singles[right + 1 :])


RARER = 16
"""How many times rarer than another an element must be for a search to pay off."""


def near_the_rarest(query: Query, ranks: Ranks, own: Mapping[str, Ints]) -> Mapping[str, Ints]:
    """Return the events that may take part in a match, or forbid one."""
    counts = {name: len(positions) for name, positions in own.items()}
    stretches = stretches_near_the_rarest(query, ranks, counts, own.__getitem__)
    if stretches is None:
        return own
    return {name: _inside(positions, stretches) for name, positions in own.items()}


def stretches_near_the_rarest(
    query: Query, ranks: Ranks, counts: Mapping[str, int], events_of: Callable[[str], Ints]
) -> Stretches | None:
    """
    Return the stretches that hold all events that may take part in a match, or forbid one.

    All events of a match, and those that a negated element or a closure reads, are within the
    window of every single event of the match, including one of the rarest element.
    """
    singles = [part.variable for part in query.positive if not part.repeats]
    if query.window is None or not ranks.is_one_group or not singles:
        return None
    rarest = min(singles, key=counts.__getitem__)
    if counts[rarest] * RARER > max(counts.values()):
        return None
    low, high = spans(query.window, ranks.times, events_of(rarest))
    return None if 2 * int((high - low).sum()) > ranks.size else (low, high)


def spans(window: int, times: Ints, positions: Ints) -> Stretches:
    """Return the stretches near some events; no two of them touch."""
    moments = np.take(times, positions)
    low = np.searchsorted(times, earlier(moments, window), "left")
    high = np.searchsorted(times, later(moments, window), "right")
    begins = np.ones(len(low), bool)
    begins[1:] = low[1:] > high[:-1]  # times ascend, and so do low and high
    ends = np.append(begins[1:], True)[: len(high)]
    return low[begins], high[ends]


def _inside(positions: Ints, stretches: Stretches) -> Ints:
    begin, end = (np.searchsorted(positions, bounds) for bounds in stretches)
    _, numbers = expanded(begin, end)
    return np.take(positions, numbers)


_MOST_ROWS = 1 << 20
_FIRST_CHUNK = 1 << 14


@attrs.frozen(eq=False)
class EventLists:
    """
    A query on ordered lists of events.

    Xia, Ding, Qiu, Xie: Complex event matching based on recursive comparison of event list,
    Journal of Shenyang Aerospace University 40(2), 2023. Differs from the paper: candidates are
    rows of a table that is joined element by element, without recursion.
    """

    query: Query  # The query
    ranks: Ranks  # The order of the events
    clauses: Clauses  # Its conditions, sorted by the events that they read
    conditions: Conditions  # Evaluates them
    lists: dict[str, ElementList]  # The candidate events of each element
    order: tuple[str, ...]  # The single elements in the order in which they are joined
    # Which events may be a match's first, and its last; None for all.
    starts: Flags | None = None
    ends: Flags | None = None
    # How many candidates of each element the plain join has tested.
    met: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, query: Query, table: EventTable) -> EventLists:
        """Return the lists of a table's events."""
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
        own = codes.positions(stretches)
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
        clauses = Clauses.of(query)
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
        order = join_order(lists, clauses)
        return cls(query, ranks, clauses, conditions, lists, order, starts, ends)

    def frames(self, joined: Iterable[Frame] | None = None) -> Iterator[Frame]:
        """Yield the matches, many at a time."""
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
        low, high = self.candidates(name, frame)
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

    def candidates(self, name: str, frame: Frame) -> tuple[Ints, Ints]:
        """Return which events of an element's list lie between those that are bound."""
        spans, rank = self.spans(frame), self.ranks.rank
        names = [part.variable for part in self.query.components]
        place = names.index(name)
        before = [spans[n] for n in names[:place] if n in spans]
        after = [spans[n] for n in names[place + 1 :] if n in spans]
        first, last = (before or after)[0][0], (after or before)[-1][1]
        low, high = self.ranks.since(last), self.ranks.until(first)
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
        for clause in self.clauses.decidable(newest, bound):
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
        ranges = {part.variable: self.candidates(part.variable, frame) for part in closures}
        kept = np.ones(frame.size, bool)
        for part in closures:
            low, high = ranges[part.variable]
            kept &= high - low >= part.least
        if closures:
            frame = Frame(frame.size, frame.singles, {**frame.closures, **ranges})
            frame = self._in_window(frame.rows(kept))
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
        return frame.rows(last < self.ranks.until(spans[names[0]][0]))

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
        ranges = [self.candidates(part.variable, frame) for part in parts]
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
            low, high = self.candidates(part.variable, found)
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


_ROWS = 1 << 18
"""How many rows to collect, at least, before all but the first of each start are dropped."""


def selected(lists: EventLists, frames: Iterable[Frame], output: str) -> Iterator[Frame]:
    """Yield one match of each start, or matches that do not overlap in their partition."""
    first = _first_of_starts(lists, frames)
    if first is None:
        return
    spans = lists.spans(first)
    names = lists.query.variables
    begins, ends = spans[names[0]][0], spans[names[-1]][1]
    order = np.lexsort((begins, lists.ranks.group[begins]))
    if output == "nonOverlapping":
        order = order[_apart(lists.ranks.group[begins][order], begins[order], ends[order])]
    yield first.rows(order)


def _first_of_starts(lists: EventLists, frames: Iterable[Frame]) -> Frame | None:
    best: Frame | None = None
    rest = iter(frames)
    while some := list(_some(rest, max(_ROWS, best.size if best else 0))):
        best = _first(lists, Frame.joined([best, *some] if best else some))
    return best


def _some(frames: Iterator[Frame], least: int) -> Iterator[Frame]:
    """Yield frames of so many rows together."""
    rows = 0
    while rows < least and (frame := next(frames, None)) is not None:
        rows += frame.size
        yield frame


def _first(lists: EventLists, frame: Frame) -> Frame:
    """Return the first row of each start; closures follow from the single events."""
    begins = lists.spans(frame)[lists.query.variables[0]][0]
    singles = [frame.singles[n] for n in lists.query.variables if n in frame.singles]
    order = np.lexsort((*reversed(singles), begins))
    ordered = begins[order]
    is_first = np.ones(frame.size, bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return frame.rows(order[is_first])


def _apart(groups: Ints, begins: Ints, ends: Ints) -> list[int]:
    """Return the rows that begin after the row chosen before them ends, in each partition."""
    chosen: list[int] = []
    group = free = -1
    rows = zip(groups.tolist(), begins.tolist(), ends.tolist(), strict=True)
    for row, (own, begin, end) in enumerate(rows):
        if own != group or begin > free:
            chosen.append(row)
            group, free = own, end
    return chosen


# --- the join in the kernel


_PORTION = 1 << 14
_NO_WINDOW = -1
_PLAIN = (
    Op.LIKE, Op.PREFIX_END, Op.DECIMAL, Op.UNITS, Op.INT_TO_DECIMAL, Op.DECIMAL_TO_FLOAT,
    Op.DECIMAL_TO_INT, Op.FIT,
)  # fmt: skip
"""The operations of several elements that only the plain path has."""


def joined_frames(
    lists: EventLists, met: Callable[[bytes], None] | None = None
) -> Iterable[Frame] | None:
    """Return the choices of single events that satisfy the conditions on these alone."""
    module = compiled_module()
    if module is None or not lists.conditions.columns.is_native:
        return None
    plan = _Plan(lists, module)
    if any(value.typed.type is Type.DECIMAL for value in plan.programs.values):
        return None
    with naming_memory_errors(JOINING):
        steps = tuple(plan.steps())
    if any(op in _PLAIN for *_, codes in steps for code in codes for op, _ in code):
        return None
    return plan.frames(steps, met)


@attrs.frozen(eq=False, slots=False)
class _Plan:
    """A join in the kernel's form."""

    lists: EventLists
    module: CompiledModule

    @cached_property
    def programs(self) -> JoinPrograms:
        """The conditions as programs."""
        order = set(self.lists.order)
        joining = [t for t in self.lists.clauses.associations if set(named(t)) <= order]
        return join_programs(tuple(joining), self._columns.types)

    def code(self, condition: Tree) -> tuple[tuple[int, Any], ...]:
        """Return the program of a condition, its texts being ranks."""
        code = ranked(self.programs.codes[condition], self._columns.ranks)
        return tuple((int(op), operand) for op, operand in code)

    def values(self) -> Iterator[tuple[str, Values]]:
        """Yield the variable of each value that conditions read, and it for each of its events."""
        ranks = self._columns.ranks
        taken: dict[tuple[str, str], Values] = {}  # each attribute once, because memory is slow
        for value in self.programs.values:
            name, positions = value.variable, self.lists.lists[value.variable].positions
            fields = [str(leaf.over.attribute) for leaf in value.program.leaves]
            for field in fields:
                if (name, field) not in taken:
                    taken[name, field] = self._columns.taken(field, positions)
            leaves = [taken[name, field] for field in fields]
            code = ranked(value.program.code, ranks)
            yield name, computed(code, leaves.__getitem__, ranks)

    @property
    def _columns(self) -> Columns:
        return self.lists.conditions.columns

    def frames(
        self, steps: tuple[Any, ...], met: Callable[[bytes], None] | None
    ) -> Iterator[Frame]:
        """Yield the rows of the join."""
        names = self.lists.order
        with naming_memory_errors(JOINING):
            join = self._join(steps)
        while True:
            rows = np.empty((_PORTION, len(names)), np.int64)
            size = join.rows(rows)
            if not size:
                if met is not None:
                    met(join.met())
                return
            yield Frame(size, {name: rows[:size, n] for n, name in enumerate(names)})

    def _join(self, steps: tuple[Any, ...]) -> _kernel.Join:
        lists = self.lists
        return self.module.Join(
            tuple(self._list(lists.lists[name]) for name in lists.order),
            self._by_time,
            tuple(self._fields()),
            steps,
            _NO_WINDOW if lists.query.window is None else lists.query.window,
        )

    @property
    def _by_time(self) -> bool:
        """Whether events of equal time have no order."""
        return self.lists.query.form is Form.LIST

    def _list(self, own: ElementList) -> tuple[Ints, Ints, Ints | None]:
        return own.positions, own.times, own.groups

    def _fields(self) -> Iterator[tuple[int, Any, Any]]:
        for name, values in self.values():
            size = len(self.lists.lists[name])
            data = np.broadcast_to(values.data, size)
            dtype = np.float64 if data.dtype.kind == "f" else np.int64
            valid = None
            if np.any(values.nulls):
                valid = np.array(np.broadcast_to(np.logical_not(values.nulls), size))
            yield self.lists.order.index(name), np.ascontiguousarray(data, dtype), valid

    def steps(self) -> Iterator[tuple[Any, ...]]:
        """Yield the steps of the join, with the programs of their conditions."""
        order = self.lists.order
        places = {part.variable: n for n, part in enumerate(self.lists.query.positive)}
        waiting = list(self.programs.codes)
        for number, name in enumerate(order):
            known = set(order[: number + 1])
            ready = [tree for tree in waiting if set(named(tree)) <= known]
            waiting = [tree for tree in waiting if tree not in ready]
            codes = tuple(map(self.code, ready))
            if not number:
                yield number, -1, -1, True, None, codes
                continue
            bound = sorted(order[:number], key=places.__getitem__)
            is_forward = places[name] > places[bound[-1]]
            neighbour, far = (bound[-1], bound[0]) if is_forward else (bound[0], bound[-1])
            barriers = self._barriers(neighbour, name, is_forward)
            yield number, order.index(neighbour), order.index(far), is_forward, barriers, codes

    def _barriers(self, neighbour: str, name: str, is_forward: bool) -> Ints | None:
        """Return for each item of the neighbour the first negated event that blocks it, if any."""
        found: Ints | None = None
        for part in self.lists.between:
            if set(self.lists.bounds(part)) == {neighbour, name}:
                own = self._barrier(part.variable, neighbour, is_forward)
                nearer = np.minimum if is_forward else np.maximum
                found = own if found is None else nearer(found, own)
        return found

    def _barrier(self, negated: str, neighbour: str, is_forward: bool) -> Ints:
        absent, near = self.lists.lists[negated], self.lists.lists[neighbour]
        links = self.module.links(self._list(near), self._list(absent), is_forward, self._by_time)
        places = np.frombuffer(links, np.int64) - (0 if is_forward else 1)
        inside = np.flatnonzero((places >= 0) & (places < len(absent)))
        if near.groups is not None and absent.groups is not None:
            inside = inside[near.groups[inside] == absent.groups[places[inside]]]
        barriers = np.full(len(near), MOST if is_forward else LEAST, np.int64)
        positions = absent.positions[places[inside]]
        barriers[inside] = self.lists.ranks.times[positions] if self._by_time else positions
        return barriers
