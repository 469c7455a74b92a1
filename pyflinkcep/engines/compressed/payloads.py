# SPDX-License-Identifier: Apache-2.0
"""What merged runs carry for the matches that they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyflinkcep.engines.compressed.counting import Total

__all__ = ["NO_WEIGHTS", "Ended", "MeasuredValues", "Payloads", "Weighing"]

MeasuredValues = tuple[str, Sequence[Any] | None, str]
"""A variable, the values of the table's events or None to count them, and the requested aggregate:
"count", "sum", "avg", "min", "max" or "stddev"; the other parts of the total are undefined."""

Ended = tuple[int, int, tuple[Total, ...]]
"""The position of an event, the number of matches that it completes, and totals over them."""

Weighing = tuple[Any, int, bool]
"""Weights or None, the component of their events, and whether to find the greatest."""

NO_WEIGHTS: Weighing = (None, -1, False)


class Payloads(Protocol):
    """What runs carry: their path, or their number."""

    def begun(self, component: int, at: int) -> Any:
        """Return the payload of a run that begins with an event."""

    def taken(self, payload: Any, component: int, at: int) -> Any:
        """Return the payload after one more event."""

    def merged(self, one: Any, other: Any) -> Any:
        """Return the payload of both runs merged."""
