# SPDX-License-Identifier: Apache-2.0
"""Events that many rules share: sorted once for each key, each condition computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.errors import Field
from pyflinkcep.expressions.arrays import EventTree, Program, Values
from pyflinkcep.expressions.tree import Literal, Tree
from pyflinkcep.matching.columns import Flags, Ints
from pyflinkcep.rules.event_needs import EventNeeds, Form, Shape, form_of
from pyflinkcep.rules.value_ranges import OrderedColumn, ValueIndex, ValueRange, ranges_of
from pyflinkcep.tables.eql_match import EqlEvents
from pyflinkcep.tables.field_values import EventFields
from pyflinkcep.tables.order import Keys, Rows, Times, ordered
from pyflinkcep.tables.records import RecordReader
from pyflinkcep.tables.rule_rows import RuleRows, RuleTests
from pyflinkcep.tables.typed_columns import SqlColumns, row_types

Condition = str | Tree
"""SQL about one event, or a condition of EQL."""

_NOTHING: Rows = np.zeros(0, np.int32)

_MOST_CONDITIONS = 62
"""The most conditions of a pattern whose combinations are looked at."""

_FEW = 1 << 16
"""Rows that are sorted in about the time that it takes to ask a condition of them."""

_SELECTIVE = 4
"""An index pays for a condition that holds for at most this part of the events."""


@attrs.frozen(eq=False)
class Route:
    """All events by one key: in the order of matching."""

    keys: Keys
    rows: Rows  # The row of each place in the order
    places: Rows  # The place of each row
    times: Ints  # The time of each place, in milliseconds
    groups: Rows  # The number of the key of each place, in order
    are_in_order: bool  # Whether places are rows

    @classmethod
    def of(cls, table: pa.Table, times: Times, key: Sequence[str], are_sent: bool) -> Route:
        """Sort events by a key and by time, unless they were so when they were sent."""
        size = table.num_rows
        keys = Keys.of(table, list(key) or None)
        order, firsts = None, None
        if are_sent and keys.codes is not None and _are_in_order(keys.codes, times.exact()):
            firsts = np.r_[0, np.cumsum(np.bincount(keys.codes))[:-1]]
        else:
            order, firsts = ordered(times, keys.codes)
        rows: Any = np.arange(size, dtype=np.int32) if order is None else order
        places = np.empty(size, np.int32)
        places[rows] = np.arange(size, dtype=np.int32)
        groups = np.zeros(size, np.int32)
        if firsts is not None and size:
            groups[firsts[1:]] = 1
            groups = np.cumsum(groups, dtype=np.int32)
        keys = attrs.evolve(keys)  # without its numbers, which the order makes superfluous
        return cls(keys, rows, places, times.ms(rows), groups, order is None)

    def places_of(self, rows: Rows) -> Rows:
        """Return the places of some rows."""
        return rows if self.are_in_order else self.places.take(rows)


def _are_in_order(codes: Ints, times: Ints) -> bool:
    """Whether the events of each key are side by side and in the order of time."""
    is_same = codes[1:] == codes[:-1]
    return bool(
        len(codes) and ((codes[1:] > codes[:-1]) | (is_same & (times[1:] >= times[:-1]))).all()
    )


@attrs.define(eq=False)
class Conjunct:
    """A part of conditions that has to hold, and the values for which it does, if it has one."""

    program: Program
    index: ValueIndex | None = None
    chosen: Flags = attrs.field(factory=lambda: np.zeros(0, bool))


class Conditions:
    """Conditions by number: equal ones have one."""

    def __init__(self, every: Iterable[Condition] = ()) -> None:
        self.every = list(every)
        self._numbers = {condition: number for number, condition in enumerate(self.every)}
        self._tests = RuleTests.of(()), 0

    def tests(self) -> RuleTests:
        """Return the conditions of EQL, made ready; SQL is among them as what never holds."""
        tests, count = self._tests
        if count < len(self.every):
            tests = RuleTests.of(
                Literal(False) if isinstance(one, str) else one for one in self.every
            )
            self._tests = tests, len(self.every)
        return tests

    def number(self, condition: Condition) -> int:
        """Return the number of a condition."""
        found = self._numbers.setdefault(condition, len(self.every))
        if found == len(self.every):
            self.every.append(condition)
        return found


@attrs.define(eq=False, slots=False)
class SharedEvents:
    """The events of a table, for rules with any keys."""

    table: pa.Table
    timestamp: Field | None
    type: str  # The column of the event's type
    conditions: Conditions
    sql: SqlColumns
    fields: EventFields
    # The rows for which each condition holds, if all is known that is asked.
    given: Mapping[int, Rows] | None = None
    _routes: dict[tuple[str, ...], Route] = attrs.field(factory=dict)
    _of_text: dict[str, list[Conjunct] | None] = attrs.field(factory=dict)
    _parts: dict[Tree, Conjunct | None] = attrs.field(factory=dict)
    _holding: dict[int, Rows] = attrs.field(factory=dict)
    _columns: dict[str, Values] = attrs.field(factory=dict)
    _needs: dict[Shape, EventNeeds] = attrs.field(factory=dict)
    _forms: dict[Form, Form] = attrs.field(factory=dict)
    _asked: set[str] = attrs.field(factory=set)
    _indexes: dict[str, ValueIndex | None] = attrs.field(factory=dict)
    _asked_in_order: set[str] = attrs.field(factory=set)
    _columns_in_order: dict[str, OrderedColumn | None] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls,
        table: pa.Table,
        timestamp: Field | None,
        type_: str,
        texts: Iterable[str] = (),
        zone: str = "",
        conditions: Conditions | None = None,
        given: Mapping[int, Rows] | None = None,
    ) -> SharedEvents:
        """Return events, for rules with some SQL conditions, by a clock if it is known."""
        return cls(
            table,
            timestamp,
            type_,
            conditions or Conditions(),
            SqlColumns(table, dict.fromkeys(texts), row_types(table.schema, zone)),
            EventFields.of_table(table),
            given,
        )

    @cached_property
    def times(self) -> Times:
        """The times of events."""
        return Times.of(self.table, self.timestamp)

    @cached_property
    def ms(self) -> Ints:
        """The time of each event, in milliseconds."""
        return self.times.ms()

    @cached_property
    def in_time(self) -> EqlEvents:
        """The events in the order of time."""
        return EqlEvents.of(self.fields, [self.times.exact()], self.ms, None)

    @cached_property
    def reader(self) -> RecordReader:
        """Makes records of events."""
        return RecordReader(self.table)

    @cached_property
    def _rows_of_trees(self) -> RuleRows:
        """The rows of conditions of EQL."""
        return self.conditions.tests().on(self.fields)

    def route(self, key: Sequence[str]) -> Route:
        """Return the events by a key."""
        known = tuple(key)
        if known not in self._routes:
            self._routes[known] = Route.of(self.table, self.times, known, self.given is not None)
        return self._routes[known]

    def form_of(self, shape: Shape, nfa: NFA) -> Form | None:
        """Return the form of an automaton, one object for all that have it."""
        found = form_of(shape, nfa)
        return found if found is None else self._forms.setdefault(found, found)

    def needs(self, shape: Shape, nfa: NFA) -> EventNeeds:
        """Return which events a pattern wants, which is decided once for patterns of one shape."""
        if shape not in self._needs:
            are_few = len(nfa.atoms) <= _MOST_CONDITIONS
            self._needs[shape] = EventNeeds.of(nfa) if are_few else EventNeeds(frozenset(), None)
        return self._needs[shape]

    def computes(self, text: str) -> bool:
        """Whether a condition is known, or has programs, so that it is not asked row by row."""
        return self.given is not None or self._conjuncts(text) is not None

    def _conjuncts(self, text: str) -> list[Conjunct] | None:
        """Return what all has to hold for a condition; equal parts of several are one."""
        if text not in self._of_text:
            trees = self.sql.conjuncts(text)
            found = None if trees is None else [self._conjunct(tree) for tree in trees]
            known = [part for part in found or () if part is not None]
            self._of_text[text] = known if found and len(known) == len(found) else None
        return self._of_text[text]

    def _conjunct(self, tree: EventTree) -> Conjunct | None:
        if tree.tree not in self._parts:
            program = self.sql.program_of(tree, is_condition=True)
            self._parts[tree.tree] = None if program is None else Conjunct(program)
        return self._parts[tree.tree]

    def holding(self, number: int) -> Rows:
        """Return the rows for which a condition holds, SQL with programs or of EQL, in order."""
        if self.given is not None:
            return self.given.get(number, _NOTHING)
        if number not in self._holding:
            condition = self.conditions.every[number]
            rows = self._in_ranges(condition)
            if rows is None and isinstance(condition, str):
                rows = self._rows(condition)
            elif rows is None:
                rows = self._rows_of_trees.rows(number).astype(np.int32)
            self._holding[number] = rows
        return self._holding[number]

    def _in_ranges(self, condition: Condition) -> Rows | None:
        """Return the rows for a condition that is ranges of values; None if many may have these."""
        ranges = self._ranges(condition)
        least, best = self.table.num_rows // _SELECTIVE + 1, -1
        bounds = (0, 0)
        columns: list[OrderedColumn] = []
        for place, own in enumerate(ranges or ()):
            column = self._ordered(own.column)
            found = None if column is None else column.bounds(own)
            if column is None or found is None:
                return None
            columns.append(column)
            if found[1] - found[0] < least:
                least, best, bounds = found[1] - found[0], place, found
        if ranges is None or best < 0:
            return None
        rows = columns[best].rows_between(*bounds)
        for place, own in enumerate(ranges):
            if place != best:
                rows = columns[place].among(rows, own)
        return rows

    def _ranges(self, condition: Condition) -> Sequence[ValueRange] | None:
        """Return the ranges that a condition is, of columns of the table."""
        if not isinstance(condition, str):
            return ranges_of(condition)
        tree = self.sql.tree(condition)
        ranges = None if tree is None else ranges_of(tree.tree)
        if ranges is None:
            return None
        names = [self.sql.name_of(own.column) for own in ranges]
        if all(own.column == name for own, name in zip(ranges, names, strict=True)):
            return ranges
        return [attrs.evolve(own, column=name) for own, name in zip(ranges, names, strict=True)]

    def _ordered(self, name: str) -> OrderedColumn | None:
        """Return a column in order: of many rows from the second condition on that could use it."""
        if name not in self._columns_in_order:
            is_asked = name in self._asked_in_order
            self._asked_in_order.add(name)
            if not is_asked and self.table.num_rows > _FEW:
                return None
            is_there = name in self.table.column_names
            found = OrderedColumn.of(self.table.column(name)) if is_there else None
            self._columns_in_order[name] = found
        return self._columns_in_order[name]

    def _rows(self, text: str) -> Rows:
        parts = self._conjuncts(text) or []
        by_column: dict[str, list[Conjunct]] = {}
        for part in parts:
            if self._is_indexed(part):
                by_column.setdefault(part.program.columns[0], []).append(part)
        best, least = "", self.table.num_rows // _SELECTIVE + 1
        for name, own in by_column.items():
            index, chosen = self._indexed(own)
            count = index.count(chosen)
            if count < least:
                best, least = name, count
        if best:
            index, chosen = self._indexed(by_column[best])
            rows = index.rows_of(chosen)
            waiting = [part for part in parts if part not in by_column[best]]
        else:
            flags: Any = self.sql.bits({1: parts[0].program}).some(0, self.table.num_rows)
            rows, waiting = np.flatnonzero(flags).astype(np.int32), parts[1:]
        for part in waiting:
            rows = self._among(part.program, rows)
        return rows

    def _indexed(self, parts: Sequence[Conjunct]) -> tuple[ValueIndex, Flags]:
        """Return the index of parts about one column, and the values for which all hold."""
        index = parts[0].index
        assert index is not None
        chosen = parts[0].chosen
        for part in parts[1:]:
            chosen = chosen & part.chosen
        return index, chosen

    def _among(self, program: Program, rows: Rows) -> Rows:
        """Return those of some rows for which a condition holds."""

        def taken(name: str) -> Values:
            own = self._values(name)
            return Values(own.data[rows], own.nulls if own.nulls is False else own.nulls[rows])

        return rows[self.sql.holding_of(program, len(rows), taken)]

    def _values(self, name: str) -> Values:
        """Return all values of a column as programs read them."""
        if name not in self._columns:
            self._columns[name] = self.sql.number_column(name).values(0, self.table.num_rows)
        return self._columns[name]

    def _is_indexed(self, part: Conjunct) -> bool:
        """Whether an index tells for which values of a column a part holds."""
        if part.index is None and len(set(part.program.columns)) == 1:
            part.index = self._index(part.program.columns[0])
            if part.index is not None:
                size = len(part.index.ends)
                part.chosen = self.sql.holding_of(part.program, size, part.index.value_of)
        return part.index is not None

    def _index(self, name: str) -> ValueIndex | None:
        """Return the index of a column, from the second condition on that could use it."""
        if name not in self._asked:
            self._asked.add(name)
            return None
        if name not in self._indexes:
            self._indexes[name] = ValueIndex.of(self._values(name))
        return self._indexes[name]
