# SPDX-License-Identifier: Apache-2.0
"""From matches to the values of measures: picked or accumulated, without making Rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import localcontext
from itertools import pairwise
from typing import Any, Protocol

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.errors import CepRuntimeError
from pyflinkcep.expressions.numbers import EXACT, LEAST, MOST
from pyflinkcep.matching.columns import Ints, in_one_piece
from pyflinkcep.matching.results import Found

# From where on a sum of floats does not tell whether that of whole numbers fits 64 bits.
_LARGE = 1 << 62


@attrs.frozen
class LeafColumn:
    """A column of values, one for each row of output."""

    # ``first`` or ``last`` to pick, ``count``, ``sum``, ``total``, ``min``, ``max`` to accumulate,
    # ``array_agg`` for all values, ``rowtime`` for the time of the match, ``match_number``.
    function: str
    stage: str | None  # The stage, or variable, of the events; None for all events of the match
    # The column of an event; None to count the events themselves, for a value of the match, and for
    # the names of the variables that events are mapped to.
    column: str | None
    offset: int = 0  # For ``first`` and ``last``: how many events to skip
    shown: str = ""  # The SQL of what is accumulated, for errors
    shift: int = 0  # For ``first`` and ``last``: how many rows to move from there
    is_inside: bool = False  # Whether the row moved to is one of the match
    final: bool = False  # Whether it is over all events of the match, not only those so far
    by_variable: tuple[str, ...] = ()  # The column for the events of each variable, if they differ


Take = Callable[[Ints, Sequence[str]], pa.Table]  # Returns the events of handles, with some columns


class Matches(Protocol):
    """Matches, and the rows of output that show them."""

    @property
    def names(self) -> Sequence[str]:
        """The variables by number."""

    def seen(self, leaf: LeafColumn) -> Seen:
        """Return the events that a value is of, and which of them each row of output sees."""

    def moved(self, leaf: LeafColumn, handles: Ints, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the events at a distance from one of each of some rows of output."""
        # Only those that are there, with their rows of output, and the number of the variable of
        # each, -1 outside of the match.

    def of_match(self, function: str) -> pa.Array:
        """Return the ``rowtime`` or ``match_number`` for each row of output."""


@attrs.frozen(eq=False)
class FoundMatches:
    """Matches each of which is one row of output."""

    found: Found
    times: Callable[[], pa.Array]  # Returns their times
    names: Sequence[str] = ()

    def seen(self, leaf: LeafColumn) -> Seen:
        """See :class:`Matches`."""
        begins, handles = np.r_[0, self.found.ends], self.found.handles
        if leaf.stage is not None:
            begins, handles = self.found.of_stage(leaf.stage)
        return Seen(begins, handles, begins[:-1], begins[1:])

    def moved(self, leaf: LeafColumn, handles: Ints, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """See :class:`Matches`; only values of the standard's dialect move."""
        raise NotImplementedError(leaf)

    def of_match(self, function: str) -> pa.Array:
        """See :class:`Matches`."""
        return self.times()


@attrs.frozen(eq=False)
class LeafColumns:
    """The values that measures need from each match."""

    leaves: Sequence[LeafColumn]  # The values
    ansi: bool  # Whether a sum out of range is an error

    def of(self, matches: Matches, take: Take) -> list[Any]:
        """Return a column for each value."""
        columns: dict[int, Any] = {}
        picks: dict[LeafColumn, list[int]] = {}
        for number, leaf in enumerate(self.leaves):
            if leaf.function in ("first", "last"):
                place = attrs.evolve(leaf, column=None, by_variable=(), shown="")
                picks.setdefault(place, []).append(number)
            elif leaf.function in ("rowtime", "match_number"):
                columns[number] = matches.of_match(leaf.function)
            else:
                columns[number] = self._accumulated(leaf, matches, take)
        for place, numbers in picks.items():
            leaves = [self.leaves[number] for number in numbers]
            columns |= zip(numbers, _picked(place, leaves, matches, take), strict=True)
        return [columns[number] for number in range(len(self.leaves))]

    def _accumulated(self, leaf: LeafColumn, matches: Matches, take: Take) -> pa.Array:
        seen = matches.seen(leaf)
        if leaf.function == "count" and not (leaf.column or leaf.by_variable):
            return pa.array(seen.counts)
        (column,) = _taken([leaf], seen.handles, seen.labels, matches.names, take)
        if leaf.function == "array_agg":
            return seen.lists(column)
        valid = np.asarray(column.is_valid())
        counts = seen.sums(valid)
        if leaf.function == "count":
            return pa.array(counts)
        if leaf.function in ("sum", "total"):
            return self._summed(leaf, seen, column, counts)
        best = seen.best(column, valid, leaf.function == "max")
        return column.take(pa.array(best, mask=counts == 0))

    def _summed(self, leaf: LeafColumn, seen: Seen, column: pa.Array, counts: Ints) -> pa.Array:
        if pa.types.is_null(column.type):
            return pa.nulls(len(counts))
        if pa.types.is_decimal(column.type):
            return pa.array(seen.exact_sums(column.to_pylist()))
        plain = column.fill_null(0).to_numpy(zero_copy_only=False)
        if leaf.function == "total":
            plain = plain.astype(np.float64)
        if plain.dtype.kind == "f":
            plain = plain + plain.dtype.type(0)  # not -0.0, as in Spark
        elif self.ansi and seen.overflows(plain):
            raise CepRuntimeError(
                f"SUM of {leaf.shown or leaf.column} overflows bigint",
                "sum a decimal or a double: SUM(cast(A.x AS double))",
            )
        return pa.array(seen.sums(plain), mask=counts == 0)


def _picked(
    place: LeafColumn, leaves: Sequence[LeafColumn], matches: Matches, take: Take
) -> Iterator[Any]:
    """Yield the values of the same events, which are taken at once."""
    seen = matches.seen(place)
    rows = np.flatnonzero(seen.counts > place.offset)
    at = seen.firsts[rows] + place.offset
    if place.function == "last":
        at = seen.ends[rows] - 1 - place.offset
    handles, labels = seen.handles[at], None if seen.labels is None else seen.labels[at]
    if place.shift:
        handles, rows, labels = matches.moved(place, handles, rows)
    for column in _taken(leaves, handles, labels, matches.names, take):
        if len(rows) == len(seen.firsts):
            yield column
            continue
        places = np.full(len(seen.firsts), -1)
        places[rows] = np.arange(len(rows))
        yield _at(column, places)


def _taken(
    leaves: Sequence[LeafColumn],
    handles: Ints,
    labels: Ints | None,
    names: Sequence[str],
    take: Take,
) -> Iterator[pa.Array]:
    """Yield what values are of events, which are mapped to variables."""
    wanted = [name for leaf in leaves for name in (leaf.column, *leaf.by_variable) if name]
    table = take(handles, list(dict.fromkeys(wanted))) if wanted else None
    for leaf in leaves:
        if leaf.column is not None and table is not None:
            yield in_one_piece(table.column(leaf.column))
            continue
        assert labels is not None
        if leaf.by_variable and table is not None:
            own = pa.concat_arrays([in_one_piece(table.column(name)) for name in leaf.by_variable])
            yield _at(own, np.where(labels < 0, -1, labels * len(labels) + np.arange(len(labels))))
        else:
            yield _at(pa.array(names, pa.string()), labels)


def _at(column: pa.Array, places: Ints) -> pa.Array:
    """Return the values at places, NULL at -1."""
    return column.take(pa.array(np.maximum(places, 0), mask=places < 0))


@attrs.frozen(eq=False)
class Seen:
    """The events of matches, and which of them each row of output sees."""

    begins: Ints  # Where the events of each match begin, and where those of the last one end
    handles: Ints
    # Where the events begin and end that a row of output sees: some of a match, from its first on.
    firsts: Ints
    ends: Ints
    labels: Ints | None = None  # The variable that each event is mapped to

    @property
    def counts(self) -> Ints:
        """The number of events that each row sees."""
        counts: Ints = self.ends - self.firsts
        return counts

    def _last(self, running: np.ndarray[Any, Any], nothing: Any) -> np.ndarray[Any, Any]:
        """Return for each row the last of running values, or what it is without events."""
        found = np.full(len(self.firsts), nothing, running.dtype)
        filled = np.flatnonzero(self.counts)
        found[filled] = running[self.ends[filled] - 1]
        return found

    def lists(self, column: pa.Array) -> pa.Array:
        """Return the values that each row sees; NULL for none."""
        counts = self.counts
        ends = np.cumsum(counts)
        places = np.arange(int(counts.sum())) + np.repeat(self.firsts - ends + counts, counts)
        offsets = pa.array(np.r_[0, ends], pa.int32())
        values = column.take(pa.array(places))
        return pa.ListArray.from_arrays(offsets, values, mask=pa.array(counts == 0))

    def sums(self, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the sum of the values that each row sees; 0 for none."""
        if values.dtype.kind != "f":
            running = np.r_[0, np.cumsum(values.astype(np.int64))]
            sums: np.ndarray[Any, Any] = running[self.ends] - running[self.firsts]
            return sums
        # One after another, which decides how they are rounded.
        values = values.astype(np.float64)
        if len(self.firsts) == len(self.begins) - 1 and (self.ends == self.begins[1:]).all():
            return np.bincount(
                np.repeat(np.arange(len(self.counts)), self.counts), values, len(self.counts)
            )
        parts = [np.cumsum(values[begin:end]) for begin, end in pairwise(self.begins.tolist())]
        return self._last(np.concatenate([np.zeros(0), *parts]), 0.0)

    def exact_sums(self, values: Sequence[Any]) -> list[Any]:
        """Return the sums of decimals; None for none."""
        running: list[Any] = []
        with localcontext(EXACT):
            for begin, end in pairwise(self.begins.tolist()):
                total = None
                for value in values[begin:end]:
                    if value is not None:
                        total = value if total is None else total + value
                    running.append(total)
        pairs = zip(self.firsts.tolist(), self.ends.tolist(), strict=True)
        return [running[end - 1] if end > first else None for first, end in pairs]

    def overflows(self, values: np.ndarray[Any, Any]) -> bool:
        """Whether a sum of whole numbers does not fit 64 bits."""
        about = np.abs(self.sums(values.astype(np.float64)))
        for row in np.flatnonzero(about >= _LARGE).tolist():
            if not LEAST <= sum(values[self.firsts[row] : self.ends[row]].tolist()) <= MOST:
                return True
        return False

    def best(self, column: pa.Array, valid: np.ndarray[Any, Any], greatest: bool) -> Ints:
        """Return where the least or greatest value is that each row sees; any if there is none."""
        order, nulls = ("descending", "at_start") if greatest else ("ascending", "at_end")
        if pa.types.is_float16(column.type):
            column = column.cast(pa.float32())
        # NaN is greater than all numbers.
        by_rank = pc.array_sort_indices(column, order=order, null_placement=nulls).to_numpy()
        size = len(column)
        ranks = np.empty(size + 1, np.int64)
        ranks[by_rank] = np.arange(size)
        ranks[:-1][~valid] = size
        matches = np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))
        below = matches * (size + 1)  # so that each match begins anew
        least = np.minimum.accumulate(ranks[:-1] - below) + below
        best: Ints = np.r_[by_rank, 0][self._last(least, size)].astype(np.int64)
        return best
