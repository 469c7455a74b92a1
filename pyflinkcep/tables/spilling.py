# SPDX-License-Identifier: Apache-2.0
"""Files that do not fit memory: their events as they are dealt, and what is found in each part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import pyarrow as pa

from pyflinkcep.errors import NotSupportedError, counted
from pyflinkcep.matching.columns import POSITION, Ints, plain_numbers
from pyflinkcep.matching.memory import give_back, memory_bytes
from pyflinkcep.matching.progress import Counts, counting
from pyflinkcep.matching.spill import SpillFile
from pyflinkcep.tables.buckets import Budget, Dealing, needed, numbered
from pyflinkcep.tables.files import EventFiles
from pyflinkcep.tables.given import checked
from pyflinkcep.tables.spilled_rows import PartT, Results, Run

Matching = Callable[[pa.Table, Ints, Run[PartT]], int]
"""Writes what it finds in events with these places among all; returns how many keys they have."""


@attrs.frozen(eq=False)
class Spilling:
    """The events of files, and within how much memory they are matched."""

    files: EventFiles  # The files
    names: Sequence[str]  # The columns to read
    memory: int | str | None  # How much memory to take; None for what is usual
    prepared: Callable[[pa.Table], pa.Table] = lambda table: table  # Adds columns

    @classmethod
    def of(cls, path: Any, memory: int | str | None) -> Spilling:
        """Return the events of files with all columns."""
        files = EventFiles.of(os.fspath(path))
        return cls(files, files.dataset.schema.names, memory)

    @property
    def budget(self) -> Budget:
        """How much memory to take."""
        return Budget(memory_bytes(self.memory))

    @property
    def _size(self) -> tuple[int, int]:
        """How many bytes the events take, and how many there are; none if that is not known."""
        return self.files.nbytes(self.names), max(self.files.rows, 0)

    @property
    def fits(self) -> bool:
        """Whether the events fit memory as a table."""
        return needed(*self._size) <= self.budget.most

    @property
    def count(self) -> int:
        """Over how many files to deal the events."""
        return self.budget.files(*self._size)

    @property
    def nothing(self) -> pa.Table:
        """A table with the columns of events, and no event."""
        return self.prepared(checked(self.files.nothing.select(list(self.names))))

    def tables(
        self, columns: Sequence[str] | None, counts: Counts | None = None
    ) -> Iterator[pa.Table]:
        """Yield the events, each with its place among all, and count those with all columns."""
        read = self.names if columns is None else columns
        if read == [POSITION]:
            read = self.names[:1]
        tables = map(checked, self.files.tables(list(read)))
        for table in numbered(map(self.prepared, tables) if columns is None else tables):
            yield table
            if counts is not None and columns is None:
                counts.events += table.num_rows
                counts.tell()

    def found(self, key: Sequence[str], match: Matching[PartT], of: type[PartT]) -> Results[PartT]:
        """Return what is found in the events, those of each key by themselves."""
        dealing = Dealing(
            self.nothing.column_names, None, list(key), self.budget, of_large=self._refuse
        )
        file, runs = SpillFile(), list[Run[PartT]]()
        with counting() as counts:
            for parts in dealing.buckets(partial(self.tables, counts=counts), self.count):
                if not parts:
                    continue
                events = read(*parts)
                run = Run(file, of)
                places = plain_numbers(events.column(POSITION))
                counts.keys += match(events.drop_columns([POSITION]), places, run)
                counts.tasks += 1
                counts.matches += len(run)
                counts.tell()
                runs.append(run)
                del events, places
                give_back()
        return Results([run for run in runs if run.blocks], of)

    def _refuse(self, rows: int) -> None:
        """Refuse a key that does not fit memory, if it is said how much that is."""
        if self.memory is not None:
            raise NotSupportedError(
                f"memory={self.memory!r} is less than the {counted(rows, 'event', 'events')} of "
                "one key need, whose matches are found with all of them at once",
                "give it more memory, or partition by more columns",
            )

    def refused(self, what: str, hint: str) -> NotSupportedError:
        """Return the error for what needs all events in memory."""
        return NotSupportedError(
            f"memory={self.memory!r} is less than {self.files.path!r} needs, and {what}", hint
        )


def read(*files: SpillFile) -> pa.Table:
    """Return the tables of files as one."""
    return pa.concat_tables([table for file in files for table in file.tables()])
