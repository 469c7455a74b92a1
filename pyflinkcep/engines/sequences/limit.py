# SPDX-License-Identifier: Apache-2.0
"""A bound on the runs of a key, as a guard against runaway queries."""

from __future__ import annotations

import attrs

from pyflinkcep.errors import StateLimitError


@attrs.frozen
class RunLimit:
    """The most runs of a key; those that are merged are one, whatever events they began with."""

    most: int  # The bound
    has_times: bool = True  # Whether events have times; numbers in their place are not shown

    def exceeded(self, runs: int, timestamp: int) -> None:
        """Raise the error for a key with too many runs."""
        raise StateLimitError(
            f"{runs} partial matches, maxPartialMatches is {self.most}",
            "give the query WITHIN, or conditions that fewer events satisfy",
            timestamp_ms=timestamp if self.has_times else None,
        )
