# SPDX-License-Identifier: Apache-2.0
"""What correlations see of events, and what they answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

Groups = Sequence[tuple[Hashable, frozenset[str]]]
"""The groups of an event, each with the rules that it satisfies there."""


class Alert(NamedTuple):
    """The events of an alert; alerts of a correlation are in the order of `rank`."""

    rank: tuple[int, ...]
    time: int  # That of its last event, in ms
    events: tuple[int, ...]  # Their numbers, in order


class Correlating(Protocol):
    """A correlation over events in their final order, numbered from 0."""

    def process(self, event: int, time: int, groups: Groups) -> list[Alert]:
        """Return the alerts that an event decides."""

    def advance(self, time: int) -> list[Alert]:
        """Return the alerts decided by that no event up to `time` will still come."""
