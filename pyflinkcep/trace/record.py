# SPDX-License-Identifier: Apache-2.0
"""All that a trace holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pyflinkcep.trace.model import PartialMatch, TracedEvent, TracedMatch

__all__ = ["Record"]


@attrs.frozen(repr=False)
class Record:
    """
    What a pattern did with events.

    Attributes
    ----------
    pattern : str
        The pattern on one line.
    stages : mapping of str to int
        The stages that take events, in order, and the fewest events of each.
    events : tuple of TracedEvent
        The events, by their numbers.
    partials : tuple of PartialMatch
        The partial matches, by their numbers.
    found : tuple of TracedMatch
        The matches by their numbers, those that were dropped last.
    matches : list of dict
        The matches as ``match`` returns them.
    timeouts : list of (dict, int)
        The partial matches whose window ended, and its end in epoch milliseconds.
    keys : list
        The keys of the events, each once.
    values : list
        The events themselves, by their numbers.
    """

    pattern: str
    stages: Mapping[str, int]
    events: tuple[TracedEvent, ...]
    partials: tuple[PartialMatch, ...]
    found: tuple[TracedMatch, ...]
    matches: list[dict[str, list[Any]]]
    timeouts: list[tuple[dict[str, list[Any]], int]]
    keys: list[Any] = attrs.field(init=False)
    values: list[Any] = attrs.field(init=False, eq=False)

    @keys.default
    def _each_once(self) -> list[Any]:
        return list({repr(event.key): event.key for event in self.events}.values())

    @values.default
    def _themselves(self) -> list[Any]:
        return [event.event for event in self.events]

    def families(self) -> dict[int, list[PartialMatch]]:
        """Return the partial matches by their first event, in order."""
        found: dict[int, list[PartialMatch]] = {}
        for partial in self.partials:
            found.setdefault(partial.steps[0][0], []).append(partial)
        return dict(sorted(found.items()))
