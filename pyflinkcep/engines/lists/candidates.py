# SPDX-License-Identifier: Apache-2.0
"""The ordered event list of each element of a pattern."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.clauses import Clauses
from pyflinkcep.engines.lists.columns import Columns
from pyflinkcep.engines.lists.ranges import Ints, earlier, later
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.arrays import Values, holding
from pyflinkcep.expressions.tree import Column, Tree
from pyflinkcep.sase.model import Component, Form, Query

__all__ = ["ElementList", "Ranks"]


@attrs.frozen(eq=False, slots=False)
class Ranks:
    """
    The order of a table's events, as ascending numbers; computed on first use.

    Parameters
    ----------
    query : Query
        The query.
    table : EventTable
        The events.
    """

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

    @property
    def rank(self) -> Ints:
        """The rank of each event; equal for equal times in the form with ``;``."""
        return self._places[0]

    @property
    def until(self) -> Ints:
        """The first rank that is too late for the window of each event."""
        return self._places[1]

    @property
    def since(self) -> Ints:
        """The first rank that is not too early for the window of each event."""
        return self._places[2]

    @cached_property
    def _places(self) -> tuple[Ints, Ints, Ints]:
        query, table, times, size = self._query, self._table, self.times, self.size
        moments, rank = times, np.arange(size, dtype=np.int64)
        if query.form is Form.LIST or table.keys is not None:
            moments, rank = np.unique(times, return_inverse=True)
        if query.window is None:
            until, since = np.full(size, size, np.int64), np.zeros(size, np.int64)
        else:
            until = np.searchsorted(moments, later(times, query.window), "right")
            since = np.searchsorted(moments, earlier(times, query.window), "left")
        if query.form is Form.LIST or table.keys is None:
            return rank, until, since
        # Places in place of times, which begin anew with each key.
        base = np.asarray(table.keys, np.int64) * (size + 1)
        places = base + rank
        until, since = (np.searchsorted(places, base + moment) for moment in (until, since))
        return np.arange(size, dtype=np.int64), until, since


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
    """
    The candidate events of an element, by partition and order.

    Attributes
    ----------
    positions : array of int
        Their positions in the table.
    groups : array of int or None
        Their partitions; None if all events are in one.
    keys : array of int
        The sort keys: partition and rank in one number.
    """

    positions: Ints
    groups: Ints | None
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
