# SPDX-License-Identifier: Apache-2.0
"""A bound on the runs of a key, as a guard against runaway queries."""

from __future__ import annotations

import attrs

from pyflinkcep.errors import StateLimitError

__all__ = ["RunLimit"]


@attrs.frozen
class RunLimit:
    """
    The most runs of a key; those that are merged are one, whatever events they began with.

    Attributes
    ----------
    most : int, at least 1
        The bound.
    has_times : bool
        Whether events have times; numbers in their place are not shown.
    """

    most: int
    has_times: bool = True

    def exceeded(self, runs: int, timestamp: int) -> None:
        """
        Raise the error for a key with too many runs.

        Raises
        ------
        StateLimitError
            Always.
        """
        raise StateLimitError(
            f"{runs} partial matches, maxPartialMatches is {self.most}",
            "give the query WITHIN, or conditions that fewer events satisfy",
            timestamp_ms=timestamp if self.has_times else None,
        )
