# SPDX-License-Identifier: Apache-2.0
"""A page of state: many keys' partial matches together, each key's part found by its number."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from pyflinkcep.operator.state_format import pack, unpack
from pyflinkcep.spark.arrow.columns import Ints
from pyflinkcep.spark.arrow.ipc import read_table, write_table
from pyflinkcep.time import MAX_WATERMARK

__all__ = ["NO_DEADLINE", "Page"]

NO_DEADLINE = MAX_WATERMARK
"""The deadline of a key, or page, that waits for nothing but events."""


@attrs.define(eq=False)
class Page:
    """
    The states of some keys, in columns, so that keys that nothing happens to are only copied.

    Attributes
    ----------
    keys : pyarrow.Table
        The columns that tell keys apart, a row for each key.
    deadlines : array of int, epoch milliseconds
        When each key must be looked at though no event may come.
    lengths : array of int
        How many of `numbers` belong to each key.
    counts : array of int
        How many of `events` belong to each key.
    numbers : array of int
        The keys' states one after another; see ``StateWriter``.
    events : pyarrow.Table
        The events that the states refer to, one key's after another's.
    """

    keys: pa.Table
    deadlines: Ints
    lengths: Ints
    counts: Ints
    numbers: Ints
    events: pa.Table

    @classmethod
    def empty(cls, keys: pa.Schema, events: pa.Schema) -> Page:
        """Make a page without keys."""
        none = np.empty(0, np.int64)
        return cls(keys.empty_table(), none, none, none, none, events.empty_table())

    @classmethod
    def from_bytes(cls, data: bytes) -> Page:
        """Read what :meth:`to_bytes` wrote; raise StateFormatError for anything else."""
        _, (columns, numbers, keys, events) = unpack(data)
        three = _ints(columns).reshape(3, -1)
        return cls(
            read_table(keys),
            three[0],
            three[1],
            three[2],
            _ints(numbers),
            read_table(events),
        )

    def to_bytes(self) -> bytes:
        """Give the page in the versioned format of snapshots."""
        columns = np.concatenate([self.deadlines, self.lengths, self.counts])
        return pack(
            {},
            [
                columns.astype("<i8").tobytes(),
                self.numbers.astype("<i8").tobytes(),
                write_table(self.keys),
                write_table(self.events),
            ],
        )

    @property
    def deadline(self) -> int:
        """The earliest deadline of a key, :data:`NO_DEADLINE` when there is none."""
        return int(self.deadlines.min()) if len(self.deadlines) else NO_DEADLINE

    def keep(self, chosen: np.ndarray[Any, Any]) -> Page:
        """Give a page with only the keys that a mask chooses."""
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

    @staticmethod
    def concat(pages: list[Page]) -> Page:
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


def _ints(data: bytes) -> Ints:
    return np.frombuffer(data, "<i8").astype(np.int64, copy=False)
