# SPDX-License-Identifier: Apache-2.0
"""What ``matchRecognize`` returns: rows in columns, made into dicts when they are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OutputTable"]

_AT_ONCE = 1024


class OutputTable(Sequence[dict[str, Any]]):
    """
    The output of a clause, a sequence of rows.

    It is equal to a list of the same dicts. The rows are columns until they are looked at.

    Parameters
    ----------
    table : pyarrow.Table
        The rows.
    dropped : int
        The number of partial matches dropped because a key had too many.

    Attributes
    ----------
    numPartialMatchesDropped : int
        The number of partial matches dropped because a key had too many.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = OutputTable(pa.table({"user": ["anna", "bert"], "times": [3, 1]}))
    >>> rows[-1], len(rows), rows == [{"user": "anna", "times": 3}, {"user": "bert", "times": 1}]
    ({'user': 'bert', 'times': 1}, 2, True)
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, table: pa.Table, dropped: int = 0) -> None:
        self._table = table
        self._begin = 0
        self._made: list[dict[str, Any]] = []
        self.numPartialMatchesDropped = dropped

    def _rows(self, begin: int, end: int) -> list[dict[str, Any]]:
        from pyflinkcep.matching.pieces import values_of  # which loads Arrow

        size = max(min(end, len(self)) - begin, 0)  # of a table without columns Arrow takes any
        part = self._table.slice(begin, size)
        columns = dict(zip(part.column_names, map(values_of, part.columns), strict=True))
        return [{name: own[row] for name, own in columns.items()} for row in range(size)]

    def __len__(self) -> int:
        """Return the number of rows."""
        size: int = self._table.num_rows
        return size

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        """Return a row, or a list of some."""
        places = range(len(self))[at]
        if isinstance(places, int):
            if not self._begin <= places < self._begin + len(self._made):
                self._begin = places - places % _AT_ONCE
                self._made = self._rows(self._begin, self._begin + _AT_ONCE)
            return self._made[places - self._begin]
        if places.step == 1:
            return self._rows(places.start, places.stop)
        return [self[place] for place in places]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows."""
        for begin in range(0, len(self), _AT_ONCE):
            yield from self._rows(begin, begin + _AT_ONCE)

    def __eq__(self, other: object) -> bool:
        """Whether a list, or another output, has equal rows."""
        if not isinstance(other, OutputTable | list):
            return NotImplemented
        pairs = zip(self, other, strict=False)
        return len(self) == len(other) and all(left == right for left, right in pairs)

    def __repr__(self) -> str:
        """Return the list of rows as text."""
        return repr(list(self))

    def toArrow(self) -> pa.Table:
        """Return the rows as a table of Arrow, with the columns that ``CEP.sql`` gives."""
        return self._table

    def toPandas(self) -> Any:
        """Return the rows as a DataFrame of pandas."""
        from pyflinkcep.matching.pieces import pandas_of

        return pandas_of(self._table)

    def toPolars(self) -> Any:
        """Return the rows as a DataFrame of polars."""
        from importlib import import_module

        return import_module("polars").from_arrow(self._table)
