# SPDX-License-Identifier: Apache-2.0
"""From stages that partial matches reached to output rows, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pyflinkcep.matching.columns import Flags, Ints
from pyflinkcep.matching.event_store import EventStore
from pyflinkcep.matching.keys import one_of_each
from pyflinkcep.matching.matcher import MOST_EVENTS
from pyflinkcep.matching.results import REACHED, Found
from pyflinkcep.matching.retyping import retyped
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.spark.arrow.internals import arrow_schema
from pyflinkcep.spark.worker.consumers import MAIN, MatchTimes, Outputs, key_columns

__all__ = ["FirstTimes", "ReachedConsumer"]

_MOST = 1 << 62


@attrs.define(eq=False)
class ReachedConsumer:
    """
    Makes a row of each stage that a partial match reached.

    Attributes
    ----------
    schemas : dict of str to StructType
        The main output: key, columns of the first event, stage, step, time, milliseconds since the
        event before and since the first.
    first_columns : sequence of str
        The columns taken from a partial match's first event, those of the key first.
    stages : sequence of str
        The stages that take events, in pattern order.
    times : MatchTimes
        The time column of events.
    key_count : int or None
        If not None, two more columns tell whether it is the first time that the key came to the
        group and to the stage in it, so that nobody need sort to count keys; the key is the first
        columns of `first_columns`, as many as this.
    """

    schemas: dict[str, StructType]
    first_columns: Sequence[str]
    stages: Sequence[str]
    times: MatchTimes
    key_count: int | None = None
    wants_timeouts: bool = attrs.field(init=False, default=False)
    wants_reached: bool = attrs.field(init=False, default=True)
    shows_time: bool = attrs.field(init=False, default=True)
    by_windows: bool = attrs.field(init=False, default=True)
    most_events: int = attrs.field(init=False, default=MOST_EVENTS)
    _firsts: FirstTimes | None = attrs.field(init=False, default=None)

    def open(self, context: RuntimeContext) -> None:
        """Begin to look for first times."""
        self._firsts = None if self.key_count is None else FirstTimes(self.key_count)

    def close(self) -> None:
        """Do nothing."""

    def consume(self, found: Found, events: EventStore) -> Outputs:
        """Make the rows."""
        schema = arrow_schema(self.schemas[MAIN])
        found = found.only(found.kinds == REACHED)
        if not len(found):
            return {MAIN: schema.empty_table()}
        firsts, lasts = found.firsts, found.ends - 1
        taken = self.times.of_events(found, events)
        since_first = taken[lasts] - taken[firsts]
        numbers = np.asarray(
            [self.stages.index(name) if name in self.stages else -1 for name in found.stages]
        )[found.stage_of[lasts]]
        own = key_columns(found, events, self.first_columns)
        columns = [
            *own,
            pa.array(self.stages).take(pa.array(numbers)),
            pa.array(numbers + 1),
            self.times.column_of(taken[lasts]),
            pa.array(_since_previous(taken, firsts, lasts), mask=firsts == lasts),
            pa.array(since_first),
        ]
        if self._firsts is not None:
            columns += map(pa.array, self._firsts.of(own, numbers))
        made = [retyped(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return {MAIN: pa.table(made, schema=schema)}


@attrs.define(eq=False)
class FirstTimes:
    """
    Tells when a key comes to a group, and to a stage in it, for the first time.

    Attributes
    ----------
    key_count : int
        How many columns are the key; the others are the group.
    """

    key_count: int
    _last: list[pa.Array] = attrs.field(factory=list)
    _seen: set[tuple[Any, ...]] = attrs.field(factory=set)

    def of(self, columns: Sequence[pa.ChunkedArray], numbers: Ints) -> tuple[Flags, Flags]:
        """
        Return for each row whether its key is new in its group, and at its stage there.

        Parameters
        ----------
        columns : sequence of pyarrow.ChunkedArray
            The key and the group; the rows of a key come one after another, in one call or more.
        numbers : array of int
            The numbers of the stages.
        """
        runs, continues = self._runs(columns[: self.key_count], len(numbers))
        groups = columns[self.key_count :]
        codes = runs
        for column in groups:
            codes = _paired(codes, _codes(column))
        flags = _firsts(codes), _firsts(_paired(codes, numbers + 1))
        if not continues:
            self._seen = set()
        for flag, steps in zip(flags, (np.full_like(numbers, -1), numbers), strict=True):
            for row in np.flatnonzero(flag & (runs == 0)).tolist():
                flag[row] = (place := _place(groups, row, steps)) not in self._seen
                self._seen.add(place)
        if runs[-1]:
            open_ = np.flatnonzero((flags[0] | flags[1]) & (runs == runs[-1])).tolist()
            self._seen = {_place(groups, row, numbers) for row in open_}
            self._seen |= {(*place[:-1], -1) for place in self._seen}
        return flags

    def _runs(self, keys: Sequence[pa.ChunkedArray], size: int) -> tuple[Ints, bool]:
        """Return the number of each row's key from 0, and whether the first one was open."""
        changed = np.zeros(size + 1, bool)
        is_first = not self._last and bool(keys)
        for at, column in enumerate(keys):
            before = self._last[at] if self._last else column.slice(0, 1).combine_chunks()
            own = pa.chunked_array([before, *column.chunks], column.type)
            codes = _codes(own)
            changed[1:] |= codes[1:] != codes[:-1]
        self._last = [column.slice(size - 1, 1).combine_chunks() for column in keys]
        continues = not changed[1] and not is_first
        changed[1] = False
        runs: Ints = np.cumsum(changed[1:], dtype=np.int64)
        return runs, continues


def _codes(column: pa.ChunkedArray) -> Ints:
    """Return numbers from 0 that tell the values of a column apart; null and NaN are values."""
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([pa.array([_text(value) for value in column.to_pylist()])])
    elif pa.types.is_floating(column.type):
        column = one_of_each(column)
    encoded = column.combine_chunks().dictionary_encode().indices
    codes: Ints = pc.add(pc.cast(encoded, pa.int64()), 1).fill_null(0).to_numpy()
    return codes


def _paired(left: Ints, right: Ints) -> Ints:
    """Return numbers that tell pairs of numbers from 0 apart."""
    width = int(right.max()) + 1
    if int(left.max()) >= _MOST // width:
        left = np.unique(left, return_inverse=True)[1]
    return left * width + right


def _firsts(codes: Ints) -> Flags:
    """Return where each number comes for the first time."""
    found = np.zeros(len(codes), bool)
    found[np.unique(codes, return_index=True)[1]] = True
    return found


def _place(groups: Sequence[pa.ChunkedArray], row: int, numbers: Ints) -> tuple[Any, ...]:
    return *(_text(column[row].as_py()) for column in groups), int(numbers[row])


def _text(value: Any) -> str:
    """Return a text that is the same for values of one group, such as 0.0 and -0.0 in a list."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return repr(value)
    return f"[{', '.join(map(_text, value))}]"


def _since_previous(taken: Ints, firsts: Ints, lasts: Ints) -> Ints:
    """Return the time between the last event of each and the newest before it."""
    before = taken.copy()
    before[lasts] = np.iinfo(np.int64).min
    newest: Ints = np.maximum.reduceat(before, firsts)
    since: Ints = np.where(firsts == lasts, 0, taken[lasts] - newest)
    return since
