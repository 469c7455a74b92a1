# SPDX-License-Identifier: Apache-2.0
"""Events that many rules share: sorted once for each key, each condition computed once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.expressions.arrays import Program
from pyflinkcep.matching.columns import Ints
from pyflinkcep.tables.field_values import EventFields
from pyflinkcep.tables.order import Keys, Rows, Times, ordered
from pyflinkcep.tables.typed_columns import SqlColumns
from pyflinkcep.tables.values import Field


@attrs.frozen(eq=False)
class Route:
    """All events by one key: in the order of matching."""

    keys: Keys
    rows: Rows  # The row of each place in the order
    places: Rows  # The place of each row
    times: Ints  # The time of each place, in milliseconds
    groups: Rows  # The number of the key of each place, in order

    @classmethod
    def of(cls, table: pa.Table, times: Times, key: Sequence[str]) -> Route:
        """Sort events by a key and by time."""
        size = table.num_rows
        keys = Keys.of(table, list(key) or None)
        order, firsts = ordered(times, keys.codes)
        rows: Any = np.arange(size, dtype=np.int32) if order is None else order
        places = np.empty(size, np.int32)
        places[rows] = np.arange(size, dtype=np.int32)
        groups = np.zeros(size, np.int32)
        if firsts is not None and size:
            groups[firsts[1:]] = 1
            groups = np.cumsum(groups, dtype=np.int32)
        return cls(attrs.evolve(keys, codes=None), rows, places, times.ms(rows), groups)


@attrs.define(eq=False)
class SharedEvents:
    """The events of a table, for rules with any keys."""

    table: pa.Table
    timestamp: Field | None
    type: str  # The column of the event's type
    times: Times
    sql: SqlColumns
    fields: EventFields
    _routes: dict[tuple[str, ...], Route] = attrs.field(factory=dict)
    _programs: dict[str, Program | None] = attrs.field(factory=dict)
    _holding: dict[str, Rows] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, table: pa.Table, timestamp: Field | None, type_: str, texts: Iterable[str]
    ) -> SharedEvents:
        """Return events, for rules with some SQL conditions."""
        return cls(
            table,
            timestamp,
            type_,
            Times.of(table, timestamp),
            SqlColumns(table, dict.fromkeys(texts)),
            EventFields.of_table(table),
        )

    def route(self, key: Sequence[str]) -> Route:
        """Return the events by a key."""
        known = tuple(key)
        if known not in self._routes:
            self._routes[known] = Route.of(self.table, self.times, known)
        return self._routes[known]

    def program(self, text: str) -> Program | None:
        """Return the program of a condition; None if it can only be asked row by row."""
        if text not in self._programs:
            self._programs[text] = self.sql.program(text, is_condition=True)
        return self._programs[text]

    def holding(self, text: str) -> Rows:
        """Return the rows for which a condition with a program holds, in order."""
        if text not in self._holding:
            program = self.program(text)
            assert program is not None
            flags: Any = self.sql.bits({1: program})
            self._holding[text] = np.flatnonzero(flags).astype(np.int32)
        return self._holding[text]
