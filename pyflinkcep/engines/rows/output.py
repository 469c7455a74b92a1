# SPDX-License-Identifier: Apache-2.0
"""From matches to output rows: which rows are shown, and the values of the measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import attrs

from pyflinkcep.engines.rows.successive import Match, Place
from pyflinkcep.match_recognize.leaves import LABEL, Leaf, labelled
from pyflinkcep.match_recognize.tree import Rows

__all__ = ["NONE", "Output", "OutputRows", "is_picked"]

NONE = -1
"""Stands for a missing row: the value is NULL."""

_MOST_ROWS = 8192
_EXACT = Context(prec=80)  # Python would round decimals to 28 digits


def is_picked(leaf: Leaf) -> bool:
    """Whether a leaf is the value of a column at a row, rather than computed."""
    return leaf.is_row and not leaf.has_label


@attrs.frozen(eq=False)
class OutputRows:
    """
    Some output rows of a partition, in columns.

    Attributes
    ----------
    rows : list of int
        The row of the partition that each output row shows.
    matched : list of bool
        Whether each output row is of a match; if not, all measures are NULL.
    values : list of list
        The values of each leaf; for a picked one (see :func:`is_picked`), the rows of the partition
        to pick from, :data:`NONE` for NULL.
    """

    rows: list[int]
    matched: list[bool]
    values: list[list[Any]]

    @classmethod
    def empty(cls, leaves: Sequence[Leaf]) -> OutputRows:
        """Return one without rows."""
        return cls([], [], [[] for _ in leaves])


class Output:
    """
    Collects the output rows of concatenated partitions.

    Parameters
    ----------
    rows : Rows
        The output rows of a match.
    leaves : sequence of Leaf
        What the measures take from a match.
    variables : sequence of str
        The variables by number.
    members : mapping of str to tuple of str
        The variables of each union.
    columns : callable
        Returns an argument's values for all rows, for computed leaves.
    """

    def __init__(
        self,
        rows: Rows,
        leaves: Sequence[Leaf],
        variables: Sequence[str],
        members: Mapping[str, tuple[str, ...]],
        columns: Callable[[str], Sequence[Any]],
    ) -> None:
        self._rows = rows
        self._leaves = leaves
        self._getters = [_Leaf(leaf, variables, members, columns) for leaf in leaves]
        self._has_unmatched = rows is Rows.WITH_UNMATCHED
        self._out = OutputRows.empty(leaves)

    @property
    def is_full(self) -> bool:
        """Whether there is enough to hand it on."""
        return len(self._out.rows) >= _MOST_ROWS

    def take(self) -> OutputRows:
        """Return what was collected, and clear it."""
        out, self._out = self._out, OutputRows.empty(self._leaves)
        return out

    def add(self, match: Match, part: range, place: Place) -> None:
        """
        Add the rows of a match, and the unmatched ones before it.

        Parameters
        ----------
        match : Match
            The match.
        part : range
            The rows of its partition.
        place : Place
            The progress of the search; updated with the settled rows.
        """
        settled = part.start + place.settled
        if self._has_unmatched and settled < match.start:
            self._add_unmatched(settled, match.start)
        settled = max(settled, match.end if match.labels else match.start + 1)
        place.settled = settled - part.start
        shown = _shown(match, self._rows)
        if shown:
            out = self._out
            out.rows.extend([match.start + max(at, 0) for at in shown])
            out.matched.extend([True] * len(shown))
            for values, getter in zip(out.values, self._getters, strict=True):
                values.extend(getter.values(match, shown, part))

    def settle(self, part: range, place: Place) -> None:
        """Add the rows that no match took, as far as the search has come."""
        if self._has_unmatched and place.settled < place.start:
            self._add_unmatched(part.start + place.settled, part.start + place.start)
        place.settled = max(place.settled, place.start)

    def _add_unmatched(self, start: int, end: int) -> None:
        out, count = self._out, end - start
        out.rows.extend(range(start, end))
        out.matched.extend([False] * count)
        for leaf, values in zip(self._leaves, out.values, strict=True):
            values.extend([NONE if is_picked(leaf) else None] * count)


def _shown(match: Match, rows: Rows) -> list[int]:
    """Return the rows of a match to show, counted from its first row; -1 for an empty match."""
    if not match.labels:
        return [] if rows is Rows.OMIT_EMPTY else [-1]
    if rows is Rows.ONE:
        return [len(match.labels) - 1]
    return [at for at, hidden in enumerate(match.hidden) if not hidden]


class _Leaf:
    """The values of a leaf for the rows of a match."""

    def __init__(
        self,
        leaf: Leaf,
        variables: Sequence[str],
        members: Mapping[str, tuple[str, ...]],
        columns: Callable[[str], Sequence[Any]],
    ) -> None:
        self._leaf = leaf
        self._is_picked = is_picked(leaf)
        self._nothing = NONE if self._is_picked else None
        self._names = variables
        names = None if leaf.variable is None else members.get(leaf.variable, (leaf.variable,))
        self._members = None
        if names is not None:
            self._members = frozenset(variables.index(name) for name in names)
        self._columns: list[Sequence[Any]] = []
        if leaf.argument not in (None, LABEL) and not self._is_picked:
            arguments = [labelled(leaf.argument or "", name) for name in variables]
            self._columns = [columns(argument) for argument in arguments]

    def values(self, match: Match, shown: Sequence[int], part: range) -> list[Any]:
        """Return the values for the shown rows of a match; `part` is its partition."""
        leaf = self._leaf
        if leaf.function == "match_number":
            return [match.number] * len(shown)
        rows = self._rows(match)
        counts = self._counts(match, rows, shown)
        if leaf.is_row:
            return [self._at_row(match, rows, count, part) for count in counts]
        return self._aggregated(match, rows, counts)

    def _rows(self, match: Match) -> Sequence[int]:
        """Return the rows of the leaf's variable, counted from the match's first row."""
        if self._members is None:
            return range(len(match.labels))
        return [at for at, label in enumerate(match.labels) if label in self._members]

    def _counts(self, match: Match, rows: Sequence[int], shown: Sequence[int]) -> list[int]:
        """Return for each shown row how many of the leaf's rows it sees."""
        if self._leaf.final:
            return [len(rows)] * len(shown)
        counts, count = [], 0
        if len(shown) == 1 and shown[0] == len(match.labels) - 1:
            return [len(rows)]
        for at in shown:
            while count < len(rows) and rows[count] <= at:
                count += 1
            counts.append(count)
        return counts

    def _at_row(self, match: Match, rows: Sequence[int], count: int, part: range) -> Any:
        leaf = self._leaf
        if count <= leaf.offset:
            return self._nothing
        at = rows[leaf.offset if leaf.function == "first" else count - 1 - leaf.offset]
        at += match.start + leaf.shift
        if at not in (range(match.start, match.end) if leaf.is_inside else part):
            return self._nothing
        return at if self._is_picked else self._value(match, at)

    def _value(self, match: Match, at: int) -> Any:
        """Return the argument's value at a row; NULL if it needs a label that is missing."""
        if match.start <= at < match.end:
            label = match.labels[at - match.start]
            return self._columns[label][at] if self._columns else self._names[label]
        return None

    # --- aggregates

    def _aggregated(self, match: Match, rows: Sequence[int], counts: Sequence[int]) -> list[Any]:
        if self._leaf.argument is None:
            return list(counts)
        results, done = [], 0
        accumulator = _Accumulator(self._leaf.function)
        for count in counts:
            while done < count:
                accumulator.add(self._value(match, match.start + rows[done]))
                done += 1
            results.append(accumulator.result())
        return results


class _Accumulator:
    """The values seen so far, in the form that an aggregate needs."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._count = 0
        self._value: Any = None
        self._all: list[Any] = []

    def add(self, value: Any) -> None:
        """Add a value."""
        if self._function == "array_agg":
            self._all.append(value)
            return
        if value is None:
            return
        self._count += 1
        if isinstance(value, int) and self._function in ("avg", "total"):
            value = float(value)
        if isinstance(value, float) and self._function in ("sum", "avg", "total"):
            value += 0.0  # not -0.0, as in Spark
        if self._value is None or self._function == "count":
            self._value = value
        elif self._function in ("sum", "avg", "total"):
            is_decimal = isinstance(value, Decimal)
            self._value = _EXACT.add(self._value, value) if is_decimal else self._value + value
        elif self._function == "min":
            old = self._value
            self._value = value if value < old or old != old else old
        else:
            old = self._value
            self._value = value if old < value or value != value else old

    def result(self) -> Any:
        """Return the aggregate of the added values."""
        if self._function == "array_agg":
            return list(self._all) or None
        if self._function == "count":
            return self._count
        if self._function == "avg" and self._count:
            return self._value / self._count
        return self._value
