# SPDX-License-Identifier: Apache-2.0
"""The table of contents of a bucket's state, and the small values stored in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from pyflinkcep.engines.flink.operator.state_format import (
    damaged_state,
    pack,
    refuse_damage,
    unpack,
)
from pyflinkcep.errors import PatternChangedError
from pyflinkcep.spark.state.fingerprint import KEY_GROUPS, LASTING, changes
from pyflinkcep.spark.state.held import PageNumbers, counts_from_bytes, counts_to_bytes
from pyflinkcep.spark.state.pages import NO_DEADLINE
from pyflinkcep.spark.state.sealed import seal, unseal
from pyflinkcep.spark.state.storage import PageId

__all__ = ["COMMON", "MOST_DEPTH", "RECENT", "BucketIndex"]

COMMON: PageId = (-1, 0)
"""The page of all keys whose key group has no page of its own; kept in the index if small."""

RECENT = -1
"""The segment of the queue kept in the index, always the last in order of arrival."""

MOST_DEPTH = 10
"""How many bits of the keys' hashes may divide a key group."""

_INT64 = range(-(1 << 63), 1 << 63)


@attrs.define(eq=False)
class BucketIndex:
    """
    The table of contents of a bucket's state; read and written as a whole.

    Attributes
    ----------
    fingerprint : dict of str to str
        The fingerprint of the pattern that the state was written for.
    pages : dict of (int, int) to int
        Each page that exists, with its deadline in epoch milliseconds.
    depths : dict of int to int
        Key groups with pages of their own, and the number of hash bits that divide them.
    segments : dict of int to int
        Each segment of the queue in order of arrival, with the earliest time in it.
    timer : int or None, epoch milliseconds
        The timer that is registered.
    dropped : dict of int to list of int
        Segments that came without some events, and the bits of those events.
    watermark : int or None, epoch milliseconds
        The watermark that the bucket has reached, if stored.
    common, recent : bytes or None
        The page :data:`COMMON`, if it is kept here, and the segment :data:`RECENT`.
    counts : dict of (int, int) to sequence of int
        What pages hold, by ``PageCounts.of_page``; pages that were last written before there were
        counts are missing.
    queued : dict of int to int
        The number of events in each segment; those written before there were counts are missing.

    Notes
    -----
    `counts` and `queued` are told to users and decide nothing. Releases without them read the index
    all the same.
    """

    fingerprint: dict[str, Any]
    pages: dict[PageId, int] = attrs.field(factory=dict)
    depths: dict[int, int] = attrs.field(factory=dict)
    segments: dict[int, int] = attrs.field(factory=dict)
    timer: int | None = None
    dropped: dict[int, list[int]] = attrs.field(factory=dict)
    watermark: int | None = None
    common: bytes | None = None
    recent: bytes | None = None
    counts: dict[PageId, PageNumbers] = attrs.field(factory=dict)
    queued: dict[int, int] = attrs.field(factory=dict)

    @classmethod
    def load(cls, data: bytes | None, fingerprint: dict[str, str], on_change: str) -> BucketIndex:
        """
        Read the index, or make a new one.

        Parameters
        ----------
        data : bytes or None
            The result of :meth:`to_bytes`.
        fingerprint : dict of str to str
            The fingerprint of the running pattern.
        on_change : {"fail", "restart"}
            The policy if another pattern wrote the state.

        Raises
        ------
        StateFormatError
            If the bytes are damaged, or of an unknown format.
        PatternChangedError
            If another pattern wrote the state and `on_change` is ``"fail"``, or if columns, keys or
            key groups differ.
        """
        if data is None:
            return cls(fingerprint)
        with refuse_damage():
            index = cls._of(*unpack(unseal(data)))
        _check_fingerprint(index.fingerprint, fingerprint, on_change)
        return index

    @classmethod
    def _of(cls, header: Mapping[str, Any], sections: list[bytes]) -> BucketIndex:
        pages = {(group, page): deadline for group, page, deadline in header["pages"]}
        held = dict(zip(header.get("held", ()), sections, strict=True))
        depths = dict(header["depths"])
        if "held" not in header:  # written before common pages existed
            depths = {group: depths.get(group, 0) for group, _ in pages}
        index = cls(
            header["fingerprint"],
            pages,
            depths,
            dict(header["segments"]),
            header["timer"],
            dict(header.get("dropped", ())),
            header.get("watermark"),
            held.get("common"),
            held.get("recent"),
            _counts(held.get("counts"), pages),
            dict(header.get("queued", ())),
        )
        index._check()
        return index

    def _check(self) -> None:
        """Check that every number is an integer in its range."""
        numbers = [*self.depths, *self.depths.values(), *self.segments, *self.segments.values()]
        numbers += [number for page in self.pages for number in page] + [*self.pages.values()]
        numbers += [number for number in (self.timer, self.watermark) if number is not None]
        numbers += [*self.queued, *self.queued.values()]
        if any(type(number) is not int or number not in _INT64 for number in numbers):
            raise damaged_state("a value of the index is not a number")
        dropped = [bits for kinds in self.dropped.values() for bits in kinds]
        if any(type(bits) is not int or bits < 0 for bits in dropped):
            raise damaged_state("the bits of dropped events")
        if any(depth not in range(MOST_DEPTH + 1) for depth in self.depths.values()):
            raise damaged_state("a key group is divided too often")
        for page in self.pages:
            depth = self.depths.get(page[0], -1)
            if page != COMMON and (depth < 0 or page[1] not in range(1 << depth)):
                raise damaged_state("the index names an impossible page")
        if self.common is not None and COMMON not in self.pages:
            raise damaged_state("the common page")
        if (RECENT in self.segments) != (self.recent is not None):
            raise damaged_state("the recent events")
        if (
            not isinstance(self.fingerprint, dict)
            or not self.dropped.keys() <= self.segments.keys()
        ):
            raise damaged_state("the index is inconsistent")

    def to_bytes(self) -> bytes | None:
        """Return the index as bytes; None if there is nothing to store."""
        nothing = self.timer is None and self.watermark is None
        if nothing and not self.pages and not self.segments:
            return None
        counts = counts_to_bytes(map(self.counts.get, self.pages)) if self.pages else None
        held = {"common": self.common, "recent": self.recent, "counts": counts}
        sections = {name: data for name, data in held.items() if data is not None}
        header = {
            "fingerprint": self.fingerprint,
            "pages": [[*page, deadline] for page, deadline in self.pages.items()],
            "depths": list(self.depths.items()),
            "segments": list(self.segments.items()),
            "timer": self.timer,
            "dropped": list(self.dropped.items()),
            "watermark": self.watermark,
            "held": list(sections),
            "queued": list(self.queued.items()),
        }
        return seal(pack(header, list(sections.values())))

    @property
    def deadline(self) -> int:
        """The earliest time at which the bucket must be processed even without events."""
        return min([NO_DEADLINE, *self.pages.values(), *self.segments.values()])


def _counts(data: bytes | None, pages: Collection[PageId]) -> dict[PageId, PageNumbers]:
    if data is None:
        return {}
    found = zip(pages, counts_from_bytes(data, len(pages)), strict=True)
    return {page: own for page, own in found if own is not None}


def _check_fingerprint(stored: dict[str, Any], current: dict[str, str], on_change: str) -> None:
    lasting = changes(*({fact: f.get(fact) for fact in LASTING} for f in (stored, current)))
    if lasting:
        facts = [fact for fact in LASTING if stored.get(fact) != current.get(fact)]
        count, _, tasks = str(stored.get(KEY_GROUPS)).removesuffix(" tasks").partition(" for ")
        words = {KEY_GROUPS: f"keyGroups={count}" + (f", parallelTasks={tasks}" if tasks else "")}
        again = [words.get(fact, f"the same {fact}") for fact in facts]
        raise PatternChangedError(
            "the checkpoint holds state that depends on what is different now: "
            + "; ".join(lasting),
            f"go on with {', '.join(again)}, as the checkpoint began, or start a new checkpoint",
        )
    differences = changes(stored, current)
    if differences and on_change != "restart":
        raise PatternChangedError(
            "the checkpoint holds partial matches of another pattern: " + "; ".join(differences),
            'run the old pattern, or drop its partial matches with onPatternChange="restart"',
        )
