# SPDX-License-Identifier: Apache-2.0
"""What ``match`` returns: a sequence of matches, made into dicts when they are looked at."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from pyflinkcep.errors import Field, KeyFields, NotSupportedError, counted
from pyflinkcep.show.model import Plot, Plotted
from pyflinkcep.tables.events import EventT, Timeout
from pyflinkcep.tables.values import key_getter
from pyflinkcep.traces.model import event_text

if TYPE_CHECKING:
    import pyarrow as pa

    from pyflinkcep.tables.found_rows import FoundRows, SpilledOutput, SpilledRows


_AT_ONCE = 1024
_MOST_ROWS, _MOST_EVENTS = 20, 5
"""How many rows a notebook shows, and how many events of a stage."""
ItemT = TypeVar("ItemT")


class _Shown:
    """A sequence that notebooks show as a table."""

    _nouns = ("row", "rows")

    def _repr_html_(self: Any) -> str:
        """Return the first items as a table of HTML."""
        from pyflinkcep.show.diagram import html_table

        rows = [self._shown(item) for item in self[:_MOST_ROWS]]
        names = list(dict.fromkeys(name for row in rows for name in row))
        caption = counted(len(self), *self._nouns)
        caption += f", the first {len(rows)}" if len(rows) < len(self) else ""
        cells = ([_cell(row.get(name, "")) for name in names] for row in rows)
        return html_table(names, cells, caption)

    def _shown(self, item: dict[str, Any]) -> Mapping[str, Any]:
        """Return the columns of an item."""
        return item


class _OfEvents(_Shown, Plotted):
    """Matches that may know the fields of time and key of their events."""

    _nouns = ("match", "matches")
    _time: Field | None = None
    _key: KeyFields | None = None

    def knowing(self, time: Field | None, key: KeyFields | None) -> Self:
        """Return the matches, which are to know the fields of time and key of their events."""
        self._time, self._key = time, key
        return self

    def plotted(self: Any, time: Field | None, key: KeyFields | None) -> Plot:
        """Return the matches, and the fields of time and key: those given, or those known."""
        return self, self._time if time is None else time, self._key if key is None else key

    def _shown(self, item: dict[str, Any]) -> Mapping[str, Any]:
        key = self._key
        firsts = [events[0] for events in item.values() if events]
        if key is None or not firsts:
            return item
        names: Sequence[Any] = key if isinstance(key, list | tuple) else [key]
        own = {n if isinstance(n, str) else "key": key_getter(n)(firsts[0]) for n in names}
        return {**own, **item}


class ListedMatches(list[dict[str, Any]], _OfEvents):
    """A list of matches that notebooks show as a table."""


class _Lazy(_Shown, Sequence[ItemT]):
    """Items that are made, some at a time, when they are looked at; equal to a list of them."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self._begin = 0
        self._made: list[ItemT] = []

    def _some(self, begin: int, end: int) -> list[ItemT]:
        """Make the items from one number to another."""
        raise NotImplementedError

    @overload
    def __getitem__(self, at: int) -> ItemT: ...
    @overload
    def __getitem__(self, at: slice) -> list[ItemT]: ...
    def __getitem__(self, at: int | slice) -> Any:
        """Return an item, or a list of some."""
        places = range(len(self))[at]
        if isinstance(places, int):
            if not self._begin <= places < self._begin + len(self._made):
                self._begin = places - places % _AT_ONCE
                self._made = self._some(self._begin, self._begin + _AT_ONCE)
            return self._made[places - self._begin]
        if places.step == 1:
            return self._some(places.start, places.stop)
        return [self[place] for place in places]

    def __iter__(self) -> Iterator[ItemT]:
        """Yield the items."""
        for begin in range(0, len(self), _AT_ONCE):
            yield from self._some(begin, begin + _AT_ONCE)

    def __eq__(self, other: object) -> bool:
        """Whether a list, or another such sequence, has equal items."""
        if not isinstance(other, type(self) | list):
            return NotImplemented
        pairs = zip(self, other, strict=False)
        return len(self) == len(other) and all(bool(left == right) for left, right in pairs)

    def __repr__(self) -> str:
        """Return the list of items as text."""
        return repr(list(self))

    def toArrow(self) -> pa.Table:
        """Return the items as a table of Arrow."""
        raise NotImplementedError

    def toPandas(self) -> Any:
        """Return the items as a DataFrame of pandas; see :meth:`toArrow`."""
        from pyflinkcep.matching.columns import pandas_of  # which loads Arrow

        return pandas_of(self.toArrow())

    def toPolars(self) -> Any:
        """Return the items as a DataFrame of polars; see :meth:`toArrow`."""
        from importlib import import_module

        return import_module("polars").from_arrow(self.toArrow())

    def _tables(self) -> Iterator[pa.Table]:
        """Yield the items in tables of Arrow, at least one."""
        yield self.toArrow()

    def toBatches(self) -> Iterator[pa.RecordBatch]:
        """
        Yield the items in batches of Arrow, so that they are never in memory all at once.

        Yields
        ------
        pyarrow.RecordBatch
            Some of the items, with the columns of :meth:`toArrow`.

        Raises
        ------
        CepError
            Where :meth:`toArrow` raises it.

        Examples
        --------
        >>> import pyarrow as pa
        >>> rows = OutputTable(pa.table({"user": ["anna", "bert"], "times": [3, 1]}))
        >>> [batch.num_rows for batch in rows.toBatches()]
        [2]
        """
        for table in self._tables():
            yield from (batch for batch in table.to_batches() if batch.num_rows)

    def toParquet(self, path: str | os.PathLike[str]) -> None:
        """
        Write the items to a file of Parquet, with the columns of :meth:`toArrow`.

        They are never in memory all at once. The file is there when it is complete: until then
        its name ends in ``.part``.

        Parameters
        ----------
        path : str or path
            The file. Another one of this name is replaced.

        Raises
        ------
        OSError
            If the file cannot be written.
        CepError
            Where :meth:`toArrow` raises it.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
        >>> rows = OutputTable(pa.table({"user": ["anna", "bert"], "times": [3, 1]}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rows.toParquet(f"{folder}/rows.parquet")
        ...     pq.read_table(f"{folder}/rows.parquet").num_rows
        2
        """
        import pyarrow.parquet as pq  # which takes some time to load

        part = f"{os.fspath(path)}.part"
        tables = self._tables()
        first = next(tables)
        try:
            with pq.ParquetWriter(part, first.schema) as writer:
                writer.write_table(first)
                del first
                for table in tables:
                    writer.write_table(table)
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):
                os.remove(part)
            raise


def _cell(value: Any) -> str:
    """Return a value, or the events of a stage, as text."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else event_text(value)
    more = [f"and {len(value) - _MOST_EVENTS} more"] if len(value) > _MOST_EVENTS else []
    return "\n".join([*map(event_text, value[:_MOST_EVENTS]), *more])


class Matches(_OfEvents, _Lazy[dict[str, list[EventT]]]):
    """
    The matches, each a dict of stage name to events, with timeouts and late events.

    It is a sequence, equal to a list of the same matches, which notebooks show as a table. Those of
    a table are numbers of rows until they are looked at.

    Parameters
    ----------
    matches : iterable of dict
        The matches.

    Attributes
    ----------
    late : list
        The events that came after the watermark had passed them.
    numPartialMatchesDropped : int
        The number of partial matches dropped because a key had too many.

    Examples
    --------
    >>> found = Matches([{"a": [1]}, {"a": [2]}])
    >>> found[-1], len(found), found[:1], found == [{"a": [1]}, {"a": [2]}]
    ({'a': [2]}, 2, [{'a': [1]}], True)
    """

    def __init__(self, matches: Iterable[dict[str, list[EventT]]] = ()) -> None:
        super().__init__()
        self._lookup: FoundRows | SpilledRows | None = None
        self._listed = list(matches)
        self._timeouts: list[Timeout[EventT]] | None = []
        self._has_timeouts = True
        self.late: list[EventT] = []
        self.numPartialMatchesDropped = 0

    @classmethod
    def of(cls, lookup: FoundRows | SpilledRows, dropped: int = 0) -> Matches[Any]:
        """Return matches that are made when they are looked at."""
        found = cls()
        found._lookup = lookup
        found._timeouts = None
        found.numPartialMatchesDropped = dropped
        return found

    @classmethod
    def listed(cls, lookup: FoundRows, dropped: int = 0) -> Matches[Any]:
        """Return matches that are made now."""
        found = cls(lookup.made(0, len(lookup)))
        found._timeouts = lookup.timeouts()
        found.numPartialMatchesDropped = dropped
        return found

    def add(self, match: dict[str, list[EventT]]) -> None:
        """Add a match to those that are there already."""
        self._listed.append(match)

    @property
    def timeouts(self) -> list[Timeout[EventT]]:
        """The partial matches that timed out."""
        if not self._has_timeouts:
            raise NotSupportedError(
                "timeouts are not available from match(…) by event lists or latest runs",
                'write evaluation="nfa"',
            )
        if self._timeouts is None:
            self._timeouts = [] if self._lookup is None else self._lookup.timeouts()
        return self._timeouts

    def __len__(self) -> int:
        """Return the number of matches."""
        return len(self._listed if self._lookup is None else self._lookup)

    def _some(self, begin: int, end: int) -> list[dict[str, list[EventT]]]:
        if self._lookup is None:
            return self._listed[begin:end]
        return self._lookup.made(begin, end)

    def __add__(self, other: Any) -> list[Any]:
        """Return a list of these matches and others."""
        return [*self, *other] if isinstance(other, Matches | list) else NotImplemented

    def __radd__(self, other: Any) -> list[Any]:
        """Return a list of others and these matches."""
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def toArrow(self) -> pa.Table:
        """
        Return the matches as a table with the columns of ``toDF()``.

        Returns
        -------
        pyarrow.Table
            The key, ``matchTimestamp``, and for each stage the list of its events.

        Raises
        ------
        NotSupportedError
            If the events are objects, or their values have no type in Arrow.
        InputError
            If a key and a stage have one name.
        """
        if self._lookup is None:
            raise NotSupportedError(
                "toArrow() needs events in columns",
                "pass the events as a table: Arrow, pandas, polars or columns by name",
            )
        return self._lookup.arrow()

    def _tables(self) -> Iterator[pa.Table]:
        yield from super()._tables() if self._lookup is None else self._lookup.tables()


class OutputTable(_Lazy[dict[str, Any]]):
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

    def __init__(self, table: pa.Table, dropped: int = 0) -> None:
        super().__init__()
        self._table = table
        self._spilled: SpilledOutput | None = None
        self.numPartialMatchesDropped = dropped

    @classmethod
    def spilled(cls, rows: SpilledOutput, dropped: int = 0) -> OutputTable:
        """Return rows that are on disk."""
        found = cls(rows, dropped)
        found._spilled = rows
        return found

    def __len__(self) -> int:
        """Return the number of rows."""
        size: int = self._table.num_rows
        return size

    def _some(self, begin: int, end: int) -> list[dict[str, Any]]:
        from pyflinkcep.matching.columns import values_of  # which loads Arrow

        size = max(min(end, len(self)) - begin, 0)  # of a table without columns Arrow takes any
        part = self._table.slice(begin, size)
        columns = dict(zip(part.column_names, map(values_of, part.columns), strict=True))
        return [{name: own[row] for name, own in columns.items()} for row in range(size)]

    def toArrow(self) -> pa.Table:
        """Return the rows as a table of Arrow, with the columns that ``CEP.sql`` gives."""
        return self._table if self._spilled is None else self._spilled.read()

    def _tables(self) -> Iterator[pa.Table]:
        yield from super()._tables() if self._spilled is None else self._spilled.tables()
