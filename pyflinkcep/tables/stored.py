# SPDX-License-Identifier: Apache-2.0
"""Events in files, of which the columns that matching needs are read first."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.errors import CepError, InputError
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.column_match import ColumnMatch
from pyflinkcep.tables.files import stamps
from pyflinkcep.tables.given import columns_of
from pyflinkcep.tables.row_sql import OnlyByRow
from pyflinkcep.tables.sql import sql_of
from pyflinkcep.tables.values import Field


@attrs.define(eq=False)
class StoredEvents:
    """The events of a file or folder."""

    path: str
    needed: pa.Table  # With the columns that are needed
    _stamps: list[tuple[str, int, int]]  # What the files were when these were read
    _whole: pa.Table | None  # With all columns

    @classmethod
    def of(cls, path: Any, sql: str | None, names: Collection[object] = ()) -> StoredEvents:
        """
        Read the columns with these names, and those whose names are in some SQL.

        All are read without SQL, and of files that do not store columns apart.
        """
        text = None if sql is None else sql.replace("``", "`").casefold()
        left_out = []

        def is_needed(name: str) -> bool:
            needed = text is None or name in names or name.casefold() in text
            if not needed:
                left_out.append(name)
            return needed

        place = os.fspath(path)
        before = stamps(place)
        table = columns_of(place, is_needed)
        assert isinstance(table, pa.Table)
        return cls(place, table, before, None if left_out else table)

    @classmethod
    def of_pattern(
        cls,
        path: Any,
        pattern: Pattern,
        timestamp: Field | None,
        key: Field | Sequence[str] | None,
        others: Sequence[str] = (),
    ) -> StoredEvents:
        """Read the columns that a pattern, time and key need, and others: all for functions."""
        named = [timestamp, *(key if isinstance(key, list | tuple) else [key]), *others]
        is_named = all(name is None or isinstance(name, str) for name in named)
        return cls.of(path, sql_of(pattern) if is_named else None, named)

    @property
    def is_whole(self) -> bool:
        """Whether all columns have been read."""
        return self._whole is not None

    def analysed(
        self, pattern: Pattern, timestamp: Field | None, key: Field | Sequence[str] | None
    ) -> ColumnMatch | None:
        """Return a pattern on the needed columns; None if these are all, or will not do."""
        if not self.is_whole:
            with suppress(OnlyByRow, CepError):  # what is wrong is said of all columns
                return ColumnMatch.analysed(pattern, self.needed, timestamp, key)
        return None

    def whole(self) -> pa.Table:
        """Return the events with all columns, which are read when they are first asked for."""
        if self._whole is None:
            found = columns_of(self.path) if stamps(self.path) == self._stamps else None
            if not isinstance(found, pa.Table) or found.num_rows != self.needed.num_rows:
                raise InputError(
                    f"the files of {self.path!r} have changed since they were matched",
                    "match them again, or read them yourself and pass the table",
                )
            self._whole = found
        return self._whole
