# SPDX-License-Identifier: Apache-2.0
"""Events in files, of which the columns that matching needs are read first."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.errors import InputError
from pyflinkcep.tables.files import stamps
from pyflinkcep.tables.given import columns_of


@attrs.define(eq=False)
class StoredEvents:
    """The events of a file or folder."""

    path: str
    needed: pa.Table  # With the columns that are needed
    _stamps: list[tuple[str, int, int]]  # What the files were when these were read
    _whole: pa.Table | None = None

    @classmethod
    def of(cls, path: Any, sql: str, names: Iterable[str]) -> StoredEvents:
        """Read the columns with these names, and those whose names are in some SQL."""
        known, text = set(names), sql.replace("``", "`").lower()
        place = os.fspath(path)
        before = stamps(place) if os.path.exists(place) else []
        table = columns_of(place, lambda name: name in known or name.lower() in text)
        assert isinstance(table, pa.Table)
        return cls(place, table, before)

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
