# SPDX-License-Identifier: Apache-2.0
"""What a bucket's state consists of, and where it is kept."""

from __future__ import annotations

from typing import Any, Protocol

import attrs

from pyflinkcep.errors import PatternChangedError
from pyflinkcep.operator.state_format import pack, unpack
from pyflinkcep.spark.state.fingerprint import LASTING, changes
from pyflinkcep.spark.state.pages import NO_DEADLINE

__all__ = ["BucketIndex", "BucketStorage", "PageId"]

PageId = tuple[int, int]
"""(key group, page of it)."""


class BucketStorage(Protocol):
    """Where a bucket's state is kept as bytes."""

    def read_index(self) -> bytes | None:
        """Give the index, None for a bucket that has no state."""

    def write_index(self, data: bytes | None) -> None:
        """Replace the index; None for a bucket that has no state any more."""

    def read_page(self, page: PageId) -> bytes:
        """Give a page."""

    def write_page(self, page: PageId, data: bytes | None) -> None:
        """Replace a page; None deletes it."""

    def read_segment(self, number: int) -> bytes:
        """Give a segment of the queue."""

    def write_segment(self, number: int, data: bytes | None) -> None:
        """Replace a segment of the queue; None deletes it."""


@attrs.define(eq=False)
class BucketIndex:
    """
    The table of contents of a bucket's state; read and written as a whole.

    Attributes
    ----------
    fingerprint : dict of str to str
        What the state was written for.
    pages : dict of (int, int) to int
        Each page that exists, with its deadline in epoch milliseconds.
    depths : dict of int to int
        Key groups that have more than one page, with the number of hash bits that divide them.
    segments : dict of int to int
        Each segment of the queue in order of arrival, with the earliest time in it.
    timer : int or None, epoch milliseconds
        The timer that is registered.
    dropped : dict of int to list of int
        Segments that came without some events, with those events' bits.
    """

    fingerprint: dict[str, Any]
    pages: dict[PageId, int] = attrs.field(factory=dict)
    depths: dict[int, int] = attrs.field(factory=dict)
    segments: dict[int, int] = attrs.field(factory=dict)
    timer: int | None = None
    dropped: dict[int, list[int]] = attrs.field(factory=dict)

    @classmethod
    def load(cls, data: bytes | None, fingerprint: dict[str, str], on_change: str) -> BucketIndex:
        """
        Read the index, or make a new one.

        Parameters
        ----------
        data : bytes or None
            What :meth:`to_bytes` gave.
        fingerprint : dict of str to str
            What now runs.
        on_change : {"fail", "restart"}
            What to do when something else was running before.

        Raises
        ------
        PatternChangedError
            When something else was running before and `on_change` is ``"fail"``, or when it
            was on other columns, keys or key groups.
        """
        if data is None:
            return cls(fingerprint)
        header, _ = unpack(data)
        index = cls(
            header["fingerprint"],
            {(group, page): deadline for group, page, deadline in header["pages"]},
            dict(header["depths"]),
            dict(header["segments"]),
            header["timer"],
            dict(header.get("dropped", ())),
        )
        differences = changes(index.fingerprint, fingerprint)
        if differences and on_change != "restart":
            raise PatternChangedError(
                "the checkpoint holds partial matches of another pattern: "
                + "; ".join(differences),
                'run the old pattern, or drop its partial matches with onPatternChange="restart"',
            )
        lasting = changes(
            *({fact: f.get(fact) for fact in LASTING} for f in (header["fingerprint"], fingerprint))
        )
        if lasting:
            raise PatternChangedError(
                "the checkpoint holds events that fit no restart: " + "; ".join(lasting),
                "keep what they were when the checkpoint was begun, or begin a new checkpoint",
            )
        return index

    def to_bytes(self) -> bytes | None:
        """Give the index as bytes, None when there is nothing to remember."""
        if not self.pages and not self.segments and self.timer is None:
            return None
        return pack(
            {
                "fingerprint": self.fingerprint,
                "pages": [[*page, deadline] for page, deadline in self.pages.items()],
                "depths": list(self.depths.items()),
                "segments": list(self.segments.items()),
                "timer": self.timer,
                "dropped": list(self.dropped.items()),
            },
            [],
        )

    def add_segment(self, earliest: int, dropped: frozenset[int]) -> int:
        """Take in a segment, the last in order of arrival; give its number."""
        number = max(self.segments, default=-1) + 1
        self.segments[number] = earliest
        if dropped:
            self.dropped[number] = sorted(dropped)
        return number

    def remove_segment(self, number: int) -> None:
        """Forget a segment."""
        del self.segments[number]
        self.dropped.pop(number, None)

    @property
    def deadline(self) -> int:
        """The earliest time at which the bucket must be looked at though no event may come."""
        return min([NO_DEADLINE, *self.pages.values(), *self.segments.values()])
