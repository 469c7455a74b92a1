# SPDX-License-Identifier: Apache-2.0
"""Candidates as a table: ranges of them, and one row for each choice of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import repeat
from typing import Any, Literal

import attrs
import numpy as np

from pyflinkcep.engines.lists.clauses import Clauses, Columns, column_of, each_of
from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.expressions.aggregates import AGGREGATES
from pyflinkcep.expressions.arrays import Values, holding
from pyflinkcep.expressions.compiler import kind_of_aggregate
from pyflinkcep.expressions.numbers import EXACT, decimal_aggregate
from pyflinkcep.expressions.program import Kind, Type
from pyflinkcep.expressions.tree import ALL, Aggregate, Column, Leaf, Tree
from pyflinkcep.kernel.module import compiled_module, naming_memory_errors
from pyflinkcep.sase.attributes import LAST
from pyflinkcep.sase.model import Component, Form, Query

Ints = np.ndarray[Any, np.dtype[np.int64]]

Stretches = tuple[Ints, Ints]
"""Where stretches of events begin and end, in ascending order."""


_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def later(times: Ints, milliseconds: int) -> Ints:
    """Return times moved into the future; those beyond the last time are the last."""
    return np.where(times > _MOST - milliseconds, _MOST, times + milliseconds)


def earlier(times: Ints, milliseconds: int) -> Ints:
    """Return times moved into the past; those before the first time are the first."""
    return np.where(times < _LEAST + milliseconds, _LEAST, times - milliseconds)


def expanded(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of all ranges in a row: (range of each, number)."""
    counts = np.maximum(high - low, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return rows, low[rows] + np.arange(len(rows)) - begins[rows]


_SAMPLE = 4096

JOINING = "event lists are joined"


@attrs.frozen(eq=False)
class TypeCodes:
    """The types of events as numbers."""

    codes: Any  # The code of each event's type, or of another type
    lists: Any  # For each code the index of its type in `names`, or -1
    names: Sequence[str]  # The types to find

    @classmethod
    def of(cls, types: Sequence[Any], wanted: Iterable[str]) -> TypeCodes:
        """Return the codes of events' types."""
        numbers = {name: number for number, name in enumerate(dict.fromkeys(wanted))}
        if isinstance(types, Coded):
            codes = np.asarray(types.codes)
            lists = np.array([numbers.get(name, -1) for name in types.names], np.int32)
        else:
            codes = np.fromiter(map(numbers.get, types, repeat(-1)), np.int32, len(types))
            lists = np.arange(len(numbers), dtype=np.int32)
        return cls(codes, lists, list(numbers))

    @property
    def numbers(self) -> Any:
        """For each event the index of its type in `names`, or -1."""
        return np.append(self.lists, np.int32(-1))[self.codes]  # where the code is -1 too

    def counts(self) -> dict[str, int]:
        """Return how often each type occurs."""
        known = np.bincount(self.codes + 1, minlength=len(self.lists) + 1)  # -1 is no type
        counts = dict.fromkeys(self.names, 0)
        for code in np.flatnonzero(self.lists >= 0).tolist():
            counts[self.names[self.lists[code]]] += int(known[code + 1])
        return counts

    def sampled(self) -> dict[str, int]:
        """Return about how often each type occurs, by sample."""
        step = len(self.codes) // _SAMPLE + 1
        counts = attrs.evolve(self, codes=self.codes[::step]).counts()
        return {name: step * count for name, count in counts.items()}

    def positions(self, stretches: Stretches | None = None) -> dict[str, Ints]:
        """Return the positions of each type's events; with stretches, of those within them."""
        module = compiled_module()
        if module is None:
            return self.plain_positions(stretches)
        codes, (low, high) = np.ascontiguousarray(self.codes, np.int32), stretches or (None, None)
        with naming_memory_errors(JOINING):
            found = module.split(codes, self.lists, len(self.names), low, high)
        return dict(zip(self.names, (np.frombuffer(own, np.int64) for own in found), strict=True))

    def plain_positions(self, stretches: Stretches | None) -> dict[str, Ints]:
        """Return the same without the kernel."""
        if stretches is None:
            return {name: self.positions_of(name) for name in self.names}
        places = expanded(*stretches)[1]
        inside = attrs.evolve(self, codes=self.codes[places])
        return {name: places[inside.positions_of(name)] for name in self.names}

    def positions_of(self, name: str) -> Ints:
        """Return the positions of a type's events."""
        codes = np.flatnonzero(self.lists == self.names.index(name))
        own = self.codes == codes[0] if len(codes) == 1 else np.isin(self.codes, codes)
        return np.flatnonzero(own)


# --- the order of events, lists and rows of them


@attrs.frozen(eq=False, slots=False)
class Ranks:
    """The order of a table's events, as ascending numbers; computed on first use."""

    _query: Query
    _table: EventTable

    @property
    def is_one_group(self) -> bool:
        """Whether all events are in one partition."""
        return self._table.keys is None and (self._query.is_global or not self._query.equal)

    @property
    def size(self) -> int:
        """The number of events."""
        return len(self.times)

    @cached_property
    def times(self) -> Ints:
        """The times of the events."""
        return np.asarray(self._table.times, np.int64)

    @cached_property
    def group(self) -> Ints:
        """The partition of each event; -1 if it is in none."""
        return _groups(self._query, self._table)

    @cached_property
    def rank(self) -> Ints:
        """The rank of each event; equal for equal times in the form with ``;``."""
        return self._moments[1] if self._query.form is Form.LIST else np.arange(self.size)

    def since(self, events: Ints) -> Ints:
        """Return the first rank that is not too early for the window of each of some events."""
        return self._reached(events, earlier, "left")

    def until(self, events: Ints) -> Ints:
        """Return the first rank that is too late for it."""
        return self._reached(events, later, "right")

    def _reached(
        self, events: Ints, moved: Callable[[Ints, int], Ints], side: Literal["left", "right"]
    ) -> Ints:
        window = self._query.window
        if window is None:
            found = np.full(len(events), 0 if side == "left" else self.size)
        else:
            found = np.searchsorted(self._moments[0], moved(self.times[events], window), side)
        if self._query.form is Form.LIST or self._table.keys is None:
            return found
        # Places in place of times, which begin anew with each key.
        base = np.asarray(self._table.keys, np.int64) * (self.size + 1)
        places: Ints = np.searchsorted(base + self._moments[1], base[events] + found)
        return places

    @cached_property
    def _moments(self) -> tuple[Ints, Ints]:
        """The times in ascending order, and the number of each event's."""
        if self._query.form is Form.LIST or self._table.keys is not None:
            return np.unique(self.times, return_inverse=True)
        return self.times, np.arange(self.size)


def _groups(query: Query, table: EventTable) -> Ints:
    """Return the partition of each event; an event with NULL has one of its own, or none."""
    if table.keys is not None and (query.is_global or not query.equal):
        return np.asarray(table.keys, np.int64)  # whose numbers go up one by one
    groups = np.full(len(table.times), -1, np.int64)
    number = 0
    for positions, is_null in table.partitions(query):
        if not is_null:
            own = (
                slice(positions.start, positions.stop)
                if isinstance(positions, range)
                else positions
            )
            groups[own] = number
            number += 1
        elif query.form is Form.SEQ:
            groups[positions] = np.arange(number, number + len(positions))
            number += len(positions)
    return groups


@attrs.frozen(eq=False, slots=False)
class ElementList:
    """The candidate events of an element, by partition and order."""

    positions: Ints  # Their positions in the table
    groups: Ints | None  # Their partitions; None if all events are in one
    _ranks: Ranks

    @classmethod
    def of(
        cls, part: Component, own: Ints, ranks: Ranks, clauses: Clauses, columns: Columns
    ) -> ElementList:
        """Return the list of an element: the events of its type under its constant constraints."""
        positions = own
        if ranks.is_one_group:
            groups = None
        else:
            positions = positions[ranks.group[positions] >= 0]
        for clause in clauses.constant[part.variable]:
            positions = positions[_holding(clause, positions, columns)]
        if not ranks.is_one_group:
            groups = ranks.group[positions]
            order = np.argsort(groups, kind="stable")
            positions, groups = positions[order], groups[order]
        return cls(positions, groups, ranks)

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def times(self) -> Ints:
        """Their times."""
        return np.take(self._ranks.times, self.positions)

    @cached_property
    def keys(self) -> Ints:
        """The sort keys: partition and rank in one number."""
        groups = 0 if self.groups is None else self.groups
        keys: Ints = groups * (self._ranks.size + 1) + self._ranks.rank[self.positions]
        return keys

    def first_from(self, groups: Ints, ranks: Ints) -> Ints:
        """Return for each partition and rank the index of the first event of at least that rank."""
        return np.searchsorted(self.keys, groups * (self._ranks.size + 1) + ranks)


def _holding(clause: Tree, positions: Ints, columns: Columns) -> Any:
    asked = columns.program(clause)

    def field(number: int) -> Values:
        leaf = asked.leaves[number]
        assert isinstance(leaf, Column)
        return columns.taken(str(leaf.attribute), positions)

    return holding(asked.code, len(positions), field, columns.ranks)


Flags = np.ndarray[Any, np.dtype[np.bool_]]


@attrs.frozen(eq=False)
class Frame:
    """Rows of chosen events."""

    size: int  # The number of rows
    singles: Mapping[str, Ints]  # By variable, the position of its event in each row
    # By variable, where its events begin and end in its list.
    closures: Mapping[str, tuple[Ints, Ints]] = attrs.field(factory=dict)

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Any) -> Frame:
        """Return rows of single events, given by their positions in the order of `names`."""
        columns = np.asarray(rows, np.int64).T
        return cls(len(rows), dict(zip(names, columns, strict=True)))

    @classmethod
    def joined(cls, frames: Sequence[Frame]) -> Frame:
        """Return the rows of several frames with the same elements."""
        first = frames[0]
        singles = {n: np.concatenate([f.singles[n] for f in frames]) for n in first.singles}
        closures = {}
        for name in first.closures:
            low, high = zip(*(frame.closures[name] for frame in frames), strict=True)
            closures[name] = np.concatenate(low), np.concatenate(high)
        return cls(sum(frame.size for frame in frames), singles, closures)

    def rows(self, chosen: Any) -> Frame:
        """Return some of the rows, by number or by flag."""
        singles = {name: positions[chosen] for name, positions in self.singles.items()}
        closures = {name: (a[chosen], b[chosen]) for name, (a, b) in self.closures.items()}
        size = int(np.count_nonzero(chosen)) if chosen.dtype == bool else len(chosen)
        return Frame(size, singles, closures)

    def with_single(self, name: str, positions: Ints) -> Frame:
        """Return the frame with one more event in each row."""
        return Frame(self.size, {**self.singles, name: positions}, self.closures)


@attrs.frozen(eq=False)
class Conditions:
    """Evaluates clauses on the rows of a frame."""

    query: Query
    columns: Columns
    lists: Mapping[str, ElementList]

    def holding(self, clause: Tree, frame: Frame) -> Flags:
        """Return for each row whether a clause holds for every event of the closures it names."""
        rows, opened = None, frame
        for name in each_of(clause, self.query):
            low, high = opened.closures[name]
            again, numbers = expanded(low, high)
            opened = opened.rows(again).with_single(name, self.lists[name].positions[numbers])
            rows = again if rows is None else rows[again]
        asked = self.columns.program(clause)
        values = [self._value(leaf, opened) for leaf in asked.leaves]
        found = holding(asked.code, opened.size, values.__getitem__, self.columns.ranks)
        if rows is None:
            return found
        fails = np.bincount(rows[~found], minlength=frame.size)
        return np.equal(fails, 0)

    def _value(self, reference: Leaf, frame: Frame) -> Values:
        if isinstance(reference, Aggregate):
            return self._aggregate(reference, frame)
        name, attribute = reference.variable, str(reference.attribute)
        if name in frame.singles and reference.index in (None, ALL):
            return self.columns.taken(attribute, frame.singles[name])
        low, high = frame.closures[name]
        at = high - 1 if reference.index == LAST else low
        return self.columns.taken(attribute, self.lists[name].positions[at])

    def _aggregate(self, function: Aggregate, frame: Frame) -> Values:
        over = function.over
        low, high = frame.closures[over.variable]
        if over.attribute is None:
            return Values(high - low)
        positions = self.lists[over.variable].positions
        if function.function in ("first", "last"):
            at = low if function.function == "first" else high - 1
            return self.columns.taken(over.attribute, positions[at])
        rows, numbers = expanded(low, high)
        values = self.columns.taken(over.attribute, positions[numbers])
        known = np.broadcast_to(np.logical_not(values.nulls), len(numbers))
        kind = dict(self.columns.types).get(over.attribute, Kind.BIGINT)
        return _reduced(function.function, kind, values.data[known], rows[known], frame.size)


def _reduced(name: str, kind: Kind, data: Any, rows: Ints, size: int) -> Values:
    """Return an aggregate for each row; `rows`, in ascending order, has the row of each value."""
    counts = np.bincount(rows, minlength=size)
    if name == "count":
        return Values(counts)
    if kind.digits is not None and name in ("sum", "avg"):
        return _of_decimals(name, kind, data, rows, counts)
    aggregate = AGGREGATES[name]
    nulls = counts < aggregate.least
    with np.errstate(all="ignore"):  # infinities, NaN and numbers that wrap around are values
        if aggregate.of_list is not None:
            found: Any = np.zeros(size)
            parts = np.split(np.asarray(data, np.float64), np.cumsum(counts)[:-1])
            for row in np.flatnonzero(~nulls).tolist():
                found[row] = aggregate.of_list(parts[row].tolist())
        elif name == "avg" or (name == "sum" and data.dtype.kind == "f"):
            # Whole numbers are averaged as doubles, which are added in the order of their events.
            found = np.bincount(rows, np.asarray(data, np.float64), size)
            found = found / np.maximum(counts, 1) if name == "avg" else found
        else:
            reduce = {"min": np.fmin, "max": np.maximum}.get(name, np.add)
            found = np.zeros(size, data.dtype)
            if len(data):
                some = counts > 0
                found[some] = reduce.reduceat(data, (np.cumsum(counts) - counts)[some])
        return Values(found, nulls)


def _of_decimals(name: str, kind: Kind, data: Any, rows: Ints, counts: Ints) -> Values:
    """Return sums or averages of decimals, exactly; NULL if they do not fit their digits."""
    assert kind.digits is not None
    totals = [Decimal(0)] * len(counts)
    for row, value in zip(rows.tolist(), data.tolist(), strict=True):
        own = value if kind.type is Type.DECIMAL else Decimal(repr(value))
        totals[row] = EXACT.add(totals[row], own)
    found = [
        decimal_aggregate(name, total, count, kind.digits) if count else None
        for total, count in zip(totals, counts.tolist(), strict=True)
    ]
    return column_of(found, kind_of_aggregate(name, kind))
