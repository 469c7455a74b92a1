# SPDX-License-Identifier: Apache-2.0
"""Which inputs of a stream have brought nothing of late, by the offsets of its checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import attrs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyflinkcep.time import moment_text

__all__ = ["Arrivals"]

_NONE = "-"
"""The offset of an input that has none yet."""


@attrs.frozen
class Arrivals:
    """
    When the inputs of a stream brought something.

    Attributes
    ----------
    last : tuple of (int or None)
        The micro-batch in which each input brought something for the last time; None if it never
        did.
    first : int
        The first micro-batch that the checkpoint still knows.
    times : mapping of int to int, epoch milliseconds
        When micro-batches were planned.
    """

    last: tuple[int | None, ...]
    first: int
    times: Mapping[int, int]

    @classmethod
    def read(cls, session: SparkSession, checkpoint: str) -> Arrivals | None:
        """Read the offsets of a checkpoint; return None if there are none, or of another form."""
        try:
            reader = session.read.option("pathGlobFilter", "[0-9]*")
            folder = re.sub(r"([\\{}\[\]*?])", r"\\\1", checkpoint)  # a path, not a glob
            files = reader.text(f"{folder}/offsets", wholetext=True)
            rows = files.select(F.input_file_name(), "value").collect()
            return cls.of({int(name.rpartition("/")[2]): text for name, text in rows})
        except Exception:  # the query may remove old ones meanwhile; and it is but a hint
            return None

    @classmethod
    def of(cls, offsets: Mapping[int, str]) -> Arrivals | None:
        """Compare the offsets of micro-batches, the texts of their files by their numbers."""
        batches = {number: text.rstrip("\n").split("\n") for number, text in offsets.items()}
        if not batches or any(lines[0] != "v1" or len(lines) < 3 for lines in batches.values()):
            return None
        times = {
            number: int(json.loads(lines[1])["batchTimestampMs"])
            for number, lines in batches.items()
        }
        before: Sequence[str] = ()
        last: dict[int, int | None] = {}
        for number in sorted(batches):
            now = batches[number][2:]
            for place, (old, new) in enumerate(zip_longest(before, now, fillvalue=_NONE)):
                last[place] = number if new not in (old, _NONE) else last.get(place)
            before = now
        return cls(tuple(last.values()), min(batches), times)

    @property
    def newest(self) -> int | None:
        """The last micro-batch in which any input brought something; None if none did."""
        return max((batch for batch in self.last if batch is not None), default=None)

    def when(self, batch: int) -> str:
        """Return the name of a micro-batch, and when it was planned."""
        or_before = " or before" if 0 < batch == self.first else ""
        return f"micro-batch {batch}{or_before} ({moment_text(self.times[batch])})"

    def idle(self) -> str:
        """
        Return in words which inputs brought nothing when others did.

        Examples
        --------
        >>> Arrivals((4, 2), 0, {2: 60_000, 4: 90_000}).idle()
        'input 2 of 2 has brought nothing since micro-batch 2 (1970-01-01 00:01:00 UTC)'
        """
        return ", ".join(
            f"input {place} of {len(self.last)} has brought nothing "
            + ("yet" if batch is None else f"since {self.when(batch)}")
            for place, batch in enumerate(self.last, 1)
            if batch != self.newest
        )
