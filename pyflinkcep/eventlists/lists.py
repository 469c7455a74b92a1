# SPDX-License-Identifier: Apache-2.0
"""For each element of a pattern the events that may be it, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from pyflinkcep.eventlists.clauses import Clauses
from pyflinkcep.eventlists.columns import Columns, Values, holding
from pyflinkcep.sase.model import Component, Form, Query
from pyflinkcep.sase.table import EventTable, constants_hold
from pyflinkcep.sase.tree import Expression, Function, Reference

__all__ = ["ElementList", "Ranks"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


@attrs.frozen(eq=False)
class Ranks:
    """
    The order of a table's events, as numbers that grow with it.

    Attributes
    ----------
    rank : array of int
        For each event its place: equal for equal times in the form with ``;``.
    group : array of int
        For each event the number of its partition; -1 if it is in none.
    until, since : array of int
        For each event the first rank that is too late for its window, and the first that is not
        too early.
    """

    rank: Ints
    group: Ints
    until: Ints
    since: Ints

    @classmethod
    def of(cls, query: Query, table: EventTable) -> Ranks:
        """Return the ranks of a table's events."""
        times = np.asarray(table.times, np.int64)
        size, groups = len(times), _groups(query, table)
        moments, rank = times, np.arange(size, dtype=np.int64)
        if query.form is Form.LIST or table.keys is not None:
            moments, rank = np.unique(times, return_inverse=True)
        if query.window is None:
            until, since = np.full(size, size, np.int64), np.zeros(size, np.int64)
        else:
            until = np.searchsorted(moments, times + query.window, "right")
            since = np.searchsorted(moments, times - query.window, "left")
        if query.form is Form.LIST or table.keys is None:
            return cls(rank, groups, until, since)
        # Places in place of times, which begin anew with each key.
        base = np.asarray(table.keys, np.int64) * (size + 1)
        places = base + rank
        until, since = (np.searchsorted(places, base + moment) for moment in (until, since))
        return cls(np.arange(size, dtype=np.int64), groups, until, since)

    @property
    def size(self) -> int:
        """The number of events."""
        return len(self.rank)


def _groups(query: Query, table: EventTable) -> Ints:
    """Return the partition of each event; an event with NULL is alone in one, or in none."""
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


@attrs.frozen(eq=False)
class ElementList:
    """
    The events that may be an element, by partition and order.

    Attributes
    ----------
    positions : array of int
        Their positions in the table.
    keys : array of int
        What they are sorted by: partition and rank in one number.
    """

    positions: Ints
    keys: Ints
    _ranks: Ranks

    @classmethod
    def of(
        cls, part: Component, table: EventTable, ranks: Ranks, clauses: Clauses, columns: Columns
    ) -> ElementList:
        """Return the list of an element; its constant constraints are the filter."""
        types = np.asarray(table.types, object)
        own = np.flatnonzero(types == part.type)
        if clauses.constants:
            held = [constants_hold(clauses.query, table, at) for at in own.tolist()]
            own = own[np.asarray(held, bool)]
        positions = np.asarray(own, np.int64)
        positions = positions[ranks.group[positions] >= 0]
        for clause in clauses.constant.get(part.variable, ()):
            positions = positions[_holding(clause, positions, columns)]
        keys = ranks.group[positions] * (ranks.size + 1) + ranks.rank[positions]
        order = np.argsort(keys, kind="stable")
        return cls(positions[order], keys[order], ranks)

    def __len__(self) -> int:
        return len(self.positions)

    def first_from(self, groups: Ints, ranks: Ints) -> Ints:
        """Return for each partition and rank where the events from that rank on begin."""
        return np.searchsorted(self.keys, groups * (self._ranks.size + 1) + ranks)


def _holding(clause: Expression, positions: Ints, columns: Columns) -> Any:
    def value_of(reference: Reference | Function) -> Values:
        assert isinstance(reference, Reference)
        return columns.taken(str(reference.attribute), positions)

    return holding(clause, len(positions), value_of, columns)


ListsByVariable = Mapping[str, ElementList]
