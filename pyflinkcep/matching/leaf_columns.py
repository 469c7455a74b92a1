# SPDX-License-Identifier: Apache-2.0
"""From matches to the values of measures: picked or accumulated, without making Rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import localcontext
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.expressions.decimals import EXACT
from pyflinkcep.expressions.tokens import LEAST, MOST
from pyflinkcep.matching.columns import Ints, in_one_piece
from pyflinkcep.matching.results import Found

_LARGE = 1 << 62
"""From where on a sum of floats does not tell whether that of whole numbers fits 64 bits."""


@attrs.frozen
class LeafColumn:
    """A column of values, one per match."""

    # ``first`` or ``last`` to pick, ``count``, ``sum``, ``total``, ``min``, ``max`` to accumulate,
    # ``array_agg`` for all values, ``rowtime`` for the time of the match.
    function: str
    stage: str | None  # The stage of the events; None for all events of the match
    # The column of an event; None to count the events themselves, and for ``rowtime``.
    column: str | None
    offset: int = 0  # For ``first`` and ``last``: how many events to skip
    shown: str = ""  # The SQL of what is accumulated, for errors


class _Events(Protocol):
    def take(self, handles: Ints, names: Sequence[str]) -> pa.Table:
        """Return the events of handles, with some columns."""


@attrs.frozen(eq=False)
class LeafColumns:
    """The values that measures need from each match."""

    leaves: Sequence[LeafColumn]  # The values
    ansi: bool  # Whether a sum out of range is an error

    def of(self, found: Found, events: _Events, times: Callable[[], pa.Array]) -> list[Any]:
        """Return a column for each value."""
        columns: list[Any] = []
        stages = {leaf.stage: _Stage.of(found, leaf.stage) for leaf in self.leaves}
        picked = self._picked(stages, events)
        for number, leaf in enumerate(self.leaves):
            if number in picked:
                columns.append(picked[number])
            elif leaf.function == "rowtime":
                columns.append(times())
            else:
                columns.append(self._accumulated(leaf, stages[leaf.stage], events))
        return columns

    def _picked(self, stages: dict[str | None, _Stage], events: _Events) -> dict[int, Any]:
        """Return the picked columns; all values at the same events are taken at once."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for number, leaf in enumerate(self.leaves):
            if leaf.function in ("first", "last"):
                groups.setdefault((leaf.stage, leaf.function, leaf.offset), []).append(number)
        picked = {}
        for (stage, function, offset), numbers in groups.items():
            handles, found = stages[stage].at(function, offset)
            names = list(dict.fromkeys(str(self.leaves[number].column) for number in numbers))
            table = events.take(handles, names)
            if not found.all():
                places = np.cumsum(found) - 1
                table = table.take(pa.array(np.where(found, places, 0), mask=~found))
            for number in numbers:
                picked[number] = table.column(str(self.leaves[number].column))
        return picked

    # --- aggregates

    def _accumulated(self, leaf: LeafColumn, stage: _Stage, events: _Events) -> pa.Array:
        if leaf.column is None:
            return pa.array(stage.counts)
        column = in_one_piece(events.take(stage.handles, [leaf.column]).column(0))
        if leaf.function == "array_agg":
            return pa.ListArray.from_arrays(pa.array(stage.begins, pa.int32()), column)
        valid = np.asarray(column.is_valid())
        counts = stage.sums(valid)
        if leaf.function == "count":
            return pa.array(counts)
        if leaf.function in ("sum", "total"):
            return self._summed(leaf, stage, column, counts)
        best = stage.best(column, valid, leaf.function == "max")
        return column.take(pa.array(best, mask=counts == 0))

    def _summed(self, leaf: LeafColumn, stage: _Stage, column: pa.Array, counts: Ints) -> pa.Array:
        if pa.types.is_decimal(column.type):
            values = column.to_pylist()
            with localcontext(EXACT):
                sums = [
                    sum((v for v in values[start:end] if v is not None), start=0) if count else None
                    for start, end, count in zip(
                        stage.begins, stage.begins[1:], counts, strict=False
                    )
                ]
            return pa.array(sums)
        if pa.types.is_null(column.type):
            return pa.nulls(len(counts))
        plain = column.fill_null(0).to_numpy(zero_copy_only=False)
        if leaf.function == "total":
            plain = plain.astype(np.float64)
        if plain.dtype.kind == "f":
            plain = plain + plain.dtype.type(0)  # not -0.0, as in Spark
        if self.ansi and plain.dtype.kind in "iu" and stage.overflows(plain):
            raise CepRuntimeError(
                f"SUM of {leaf.shown or leaf.column} overflows bigint",
                "sum a decimal or a double: SUM(cast(A.x AS double))",
            )
        return pa.array(stage.sums(plain), mask=counts == 0)


@attrs.frozen(eq=False)
class _Stage:
    """The events of a stage: where each match's begin, where the last ends, and their handles."""

    begins: Ints
    handles: Ints

    @classmethod
    def of(cls, found: Found, stage: str | None) -> _Stage:
        if stage is None:
            return cls(np.r_[0, found.ends], found.handles)
        return cls(*found.of_stage(stage))

    @property
    def counts(self) -> Ints:
        """The number of events of each match."""
        counts: Ints = np.diff(self.begins)
        return counts

    def at(self, function: str, offset: int) -> tuple[Ints, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return the handles of the events at an offset, and which matches have one."""
        found = self.counts > offset
        firsts, ends = self.begins[:-1], self.begins[1:]
        places = firsts + offset if function == "first" else ends - 1 - offset
        return self.handles[places[found]], found

    def sums(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the sum of each match's values; 0 for none."""
        if values.dtype.kind == "f":  # one after another, which decides how they are rounded
            matches = np.repeat(np.arange(len(self.counts)), self.counts)
            return np.bincount(matches, values.astype(np.float64), len(self.counts))
        sums: np.ndarray[Any, Any] = np.zeros(len(self.begins) - 1, np.int64)
        filled = np.flatnonzero(self.counts)
        if len(filled):
            sums[filled] = np.add.reduceat(values.astype(np.int64), self.begins[filled])
        return sums

    def overflows(self, values: np.ndarray[Any, Any]) -> bool:
        """Whether the sum of a match's whole numbers does not fit 64 bits."""
        about = np.abs(self.sums(values.astype(np.float64)))
        for match in np.flatnonzero(about >= _LARGE).tolist():
            total = sum(values[self.begins[match] : self.begins[match + 1]].tolist())
            if not LEAST <= total <= MOST:
                return True
        return False

    def best(self, column: pa.Array, valid: np.ndarray[Any, Any], greatest: bool) -> Ints:
        """Return the position of each match's least or greatest value; arbitrary if it has none."""
        size = len(column)
        ranks = np.empty(size, np.int64)
        ranks[pc.sort_indices(column).to_numpy()] = np.arange(size)  # NaN sorts after all numbers
        ranks[~valid] = -1 if greatest else size
        best: Ints = np.zeros(len(self.begins) - 1, np.int64)
        filled = np.flatnonzero(self.counts)
        if len(filled):
            places = ranks * (size + 1) + np.arange(size)
            reduce = np.maximum if greatest else np.minimum
            best[filled] = reduce.reduceat(places, self.begins[filled]) % (size + 1)
        return np.minimum(best, max(size - 1, 0))
