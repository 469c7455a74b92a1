# SPDX-License-Identifier: Apache-2.0
"""A page of state: the partial matches of many keys, in columns."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.engines.flink.operator.state_format import (
    damaged_state,
    pack,
    refuse_damage,
    unpack,
)
from pyflinkcep.errors import StateFormatError
from pyflinkcep.matching.columns import HASH, Flags, Ints
from pyflinkcep.matching.matcher import NO_DEADLINE
from pyflinkcep.spark.arrow.ipc import read_table, write_table
from pyflinkcep.spark.state.sealed import seal, unseal
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["AT_THE_END", "NO_DEADLINE", "Page", "read_stored"]

AT_THE_END = MAX_WATERMARK - 1
"""The deadline of a key, or page, that waits for events or the end of the input."""


@attrs.define(eq=False)
class Page:
    """
    The states of some keys in columns, so that untouched keys are only copied.

    Attributes
    ----------
    keys : pyarrow.Table
        The columns that identify keys, a row for each key.
    deadlines : array of int, epoch milliseconds
        When each key must be processed even without events.
    lengths : array of int
        How many of `numbers` belong to each key.
    counts : array of int
        How many of `events` belong to each key.
    numbers : array of int
        The concatenated states of the keys; see ``StateWriter``.
    events : pyarrow.Table
        The events that the states refer to, key by key.
    """

    keys: pa.Table
    deadlines: Ints
    lengths: Ints
    counts: Ints
    numbers: Ints
    events: pa.Table

    @classmethod
    def empty(cls, keys: pa.Schema, events: pa.Schema) -> Page:
        """Return a page without keys."""
        none = np.empty(0, np.int64)
        return cls(keys.empty_table(), none, none, none, none, events.empty_table())

    @classmethod
    def from_bytes(cls, data: bytes, keys: pa.Schema, events: pa.Schema) -> Page:
        """
        Read the result of :meth:`to_bytes`.

        Parameters
        ----------
        data : bytes
            The page.
        keys, events : pyarrow.Schema
            The required columns.

        Raises
        ------
        StateFormatError
            If it is anything else, truncated or damaged.
        """
        value = unseal(data)
        with refuse_damage():
            _, (columns, numbers, key_table, event_table) = unpack(value)
            deadlines, lengths, counts = _ints(columns).reshape(3, -1)
            page = cls(
                read_stored(key_table, keys),
                deadlines,
                lengths,
                counts,
                _ints(numbers),
                read_stored(event_table, events),
            )
        page._check()
        return page

    def _check(self) -> None:
        """Check all counts before using them to repeat or split anything."""
        parts = ((self.lengths, len(self.numbers)), (self.counts, self.events.num_rows))
        for counts, total in parts:
            in_range = bool(((counts >= 0) & (counts <= total)).all())
            if not in_range or sum(counts.tolist()) != total:
                raise damaged_state(f"the parts of its keys do not add up to {total}")
        if self.keys.num_rows != len(self.deadlines):
            raise damaged_state(f"{self.keys.num_rows} keys, {len(self.deadlines)} deadlines")
        if HASH in self.keys.column_names and self.keys.column(HASH).null_count:
            raise damaged_state("a key without its hash")

    def fields(self, what: str, version: int, width: int) -> Ints:
        """
        Return the keys' numbers as a row for each, if all keys have the same number of them.

        Parameters
        ----------
        what : str
            What the state is of, for errors.
        version : int
            The version that the first number of each key must be.
        width : int
            How many numbers come after it.

        Raises
        ------
        StateFormatError
            If the state is of another version, or damaged.
        """
        if not (self.lengths == width + 1).all():
            raise damaged_state(f"a key of {what} does not have {width + 1} numbers")
        rows = self.numbers.reshape(-1, width + 1)
        if (rows[:, 0] != version).any():
            raise StateFormatError(
                f"state of {what} in format {int(rows[:, 0].max())}, "
                f"this release reads format {version}",
                "restore with the release that wrote it, or start from empty state",
            )
        return rows[:, 1:]

    def to_bytes(self) -> bytes:
        """Return the page in the versioned format of snapshots, sealed."""
        columns = np.concatenate([self.deadlines, self.lengths, self.counts])
        sections = [
            columns.astype("<i8").tobytes(),
            self.numbers.astype("<i8").tobytes(),
            write_table(self.keys),
            write_table(self.events),
        ]
        return seal(pack({}, sections))

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.lengths)

    @property
    def deadline(self) -> int:
        """The earliest deadline of a key; :data:`NO_DEADLINE` if there is none."""
        return int(self.deadlines.min()) if len(self.deadlines) else NO_DEADLINE

    def keep(self, chosen: Flags) -> Page:
        """Return a page with only the keys that a mask chooses."""
        if chosen.all():
            return self
        mask = pa.array(chosen)
        return Page(
            self.keys.filter(mask),
            self.deadlines[chosen],
            self.lengths[chosen],
            self.counts[chosen],
            self.numbers[np.repeat(chosen, self.lengths)],
            self.events.filter(pa.array(np.repeat(chosen, self.counts))),
        )

    def divide(self, numbers: Ints) -> dict[int, Page]:
        """
        Return the parts of a page.

        Parameters
        ----------
        numbers : array of int
            The number of each key's part.
        """
        found, counts = np.unique(numbers, return_counts=True)
        if len(found) < 2:
            return {int(number): self for number in found}
        ordered = self._take(np.argsort(numbers, kind="stable"))
        ends = np.cumsum(counts)
        number_ends = np.r_[0, np.cumsum(ordered.lengths)]
        event_ends = np.r_[0, np.cumsum(ordered.counts)]
        parts = {}
        for number, start, end in zip(found, ends - counts, ends, strict=True):
            first, last = int(event_ends[start]), int(event_ends[end])
            parts[int(number)] = Page(
                ordered.keys.slice(start, end - start),
                ordered.deadlines[start:end],
                ordered.lengths[start:end],
                ordered.counts[start:end],
                ordered.numbers[number_ends[start] : number_ends[end]],
                ordered.events.slice(first, last - first),
            )
        return parts

    def _take(self, order: Ints) -> Page:
        """Return the page with its keys in another order."""
        return Page(
            self.keys.take(pa.array(order)),
            self.deadlines[order],
            self.lengths[order],
            self.counts[order],
            self.numbers[_within(self.lengths, order)],
            self.events.take(pa.array(_within(self.counts, order))),
        )

    @staticmethod
    def concat(pages: Sequence[Page]) -> Page:
        """Join pages."""
        if len(pages) == 1:
            return pages[0]
        return Page(
            pa.concat_tables([page.keys for page in pages]),
            np.concatenate([page.deadlines for page in pages]),
            np.concatenate([page.lengths for page in pages]),
            np.concatenate([page.counts for page in pages]),
            np.concatenate([page.numbers for page in pages]),
            pa.concat_tables([page.events for page in pages]),
        )


def read_stored(data: bytes, schema: pa.Schema | None) -> pa.Table:
    """
    Read a stored table.

    Parameters
    ----------
    data : bytes
        The table as Arrow.
    schema : pyarrow.Schema or None
        The required columns; None for any.

    Raises
    ------
    StateFormatError
        If it has other columns or is damaged.

    Notes
    -----
    A checksum finds damage, not a forgery, whose offsets Arrow would follow anywhere.
    """
    with refuse_damage():
        table = read_table(data)
        table.validate(full=True)
    if schema is not None and (table.schema.names, table.schema.types) != (
        schema.names,
        schema.types,
    ):
        raise damaged_state(f"expected columns {schema.names}, got {table.schema.names}")
    return table


def _within(sizes: Ints, order: Ints) -> Ints:
    """Return the positions of the elements of parts after reordering the parts."""
    starts = np.cumsum(sizes) - sizes
    sizes, starts = sizes[order], starts[order]
    positions: Ints = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return positions + np.arange(len(positions))


def _ints(data: bytes) -> Ints:
    return np.frombuffer(data, "<i8").astype(np.int64, copy=False)
