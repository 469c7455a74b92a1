# SPDX-License-Identifier: Apache-2.0
"""Events in files, of which the columns that matching needs are read first."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.errors import CepError, Field, InputError, KeyFields
from pyflinkcep.matching.columns import values_of
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.column_match import ColumnMatch
from pyflinkcep.tables.files import EventFiles, stamps
from pyflinkcep.tables.given import columns_of
from pyflinkcep.tables.order import Keys
from pyflinkcep.tables.row_groups import RowGroups
from pyflinkcep.tables.row_sql import OnlyByRow
from pyflinkcep.tables.sql import sql_of
from pyflinkcep.tables.values import grouping_key


@attrs.define(eq=False)
class StoredEvents:
    """The events of a file or folder, which are read when they are first asked for."""

    files: EventFiles
    names: Collection[str]  # The columns that are needed
    _stamps: list[tuple[str, int, int]]  # What the files were when these were chosen
    _needed: pa.Table | None = None
    _whole: pa.Table | None = None

    @classmethod
    def of(
        cls,
        path: Any,
        sql: str | None,
        names: Collection[object] = (),
        files: EventFiles | None = None,
    ) -> StoredEvents:
        """
        Choose the columns with these names, and those whose names are in some SQL.

        All are read without SQL, and of files that do not store columns apart.
        """
        text = None if sql is None else sql.replace("``", "`").casefold()
        place = os.fspath(path)
        before = stamps(place)
        own = EventFiles.of(place) if files is None else files
        every = own.dataset.schema.names
        if text is None or not own.is_parquet:
            return cls(own, every, before)
        chosen = [name for name in every if name in names or name.casefold() in text]
        return cls(own, chosen or every[:1], before)

    @classmethod
    def of_pattern(
        cls,
        path: Any,
        pattern: Pattern,
        timestamp: Field | None,
        key: KeyFields | None,
        others: Sequence[str] = (),
        files: EventFiles | None = None,
    ) -> StoredEvents:
        """Choose the columns that a pattern, time and key need, and others: all for functions."""
        named = [timestamp, *(key if isinstance(key, list | tuple) else [key]), *others]
        is_named = all(name is None or isinstance(name, str) for name in named)
        return cls.of(path, sql_of(pattern) if is_named else None, named, files)

    @property
    def is_whole(self) -> bool:
        """Whether all columns are needed."""
        return len(self.names) == len(self.files.dataset.schema.names)

    @property
    def needed(self) -> pa.Table:
        """The events with the columns that are needed."""
        if self._needed is None:
            found = columns_of(self.files, self.names.__contains__)
            assert isinstance(found, pa.Table)
            self._needed = found
        return self._needed

    def analysed(
        self,
        pattern: Pattern,
        timestamp: Field | None,
        key: KeyFields | None,
        *,
        keeps: bool = False,
    ) -> ColumnMatch | None:
        """
        Return a pattern on the needed columns; None if these are all, or will not do.

        They are read while they are matched if that is possible, unless the job keeps them.
        """
        if self.is_whole:
            return None
        with suppress(OnlyByRow, CepError):  # what is wrong is said of all columns
            job = None
            if not keeps and isinstance(timestamp, str) and isinstance(key, str | None):
                job = self._by_groups(pattern, timestamp, key)
            if job is not None:
                return job
            return ColumnMatch.analysed(pattern, self.needed, timestamp, key)
        return None

    def _by_groups(self, pattern: Pattern, timestamp: str, key: str | None) -> ColumnMatch | None:
        """Return a pattern on events that are read meanwhile; None where tables are needed."""
        groups = RowGroups.of(self.files, list(self.names), timestamp, key)
        if groups is None:
            return None
        table = groups.extremes
        if groups.has_codes:  # which no condition is to see
            job = ColumnMatch.analysed(pattern, table.drop_columns([key]), timestamp, None)
            job = attrs.evolve(job, keys=Keys.of(table, key))
        else:
            job = ColumnMatch.analysed(pattern, table, timestamp, key)
        if not job.is_of_numbers:
            return None
        groups = groups.with_numbers(job.numbers_of_texts)

        def read() -> ColumnMatch:
            found = ColumnMatch.analysed(pattern, self.needed, timestamp, key)
            return attrs.evolve(found, keys=attrs.evolve(found.keys, columns=keys.columns))

        keys = job.keys
        if key is not None:
            columns = _Columns([key], self.whole)
            keys = attrs.evolve(keys, value_of=self._key_of(key), columns=columns)
        return attrs.evolve(job, keys=keys, groups=groups, read=read)

    def _key_of(self, name: str) -> Callable[[int], Any]:
        """Return what returns the key of an event by its row."""
        return lambda row: grouping_key(values_of(self.whole().column(name).slice(row, 1))[0])

    def whole(self) -> pa.Table:
        """Return the events with all columns."""
        if self.is_whole:
            return self.needed
        if self._whole is None:
            path = self.files.path
            found = columns_of(self.files) if stamps(path) == self._stamps else None
            if not isinstance(found, pa.Table) or found.num_rows != self.files.rows:
                raise InputError(
                    f"the files of {path!r} have changed since they were matched",
                    "match them again, or read them yourself and pass the table",
                )
            self._whole = found
        return self._whole


@attrs.frozen(eq=False)
class _Columns(Mapping[str, pa.ChunkedArray]):
    """Columns of a table that is read when one of them is asked for."""

    names: Sequence[str]
    table: Callable[[], pa.Table]

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.table().column(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
