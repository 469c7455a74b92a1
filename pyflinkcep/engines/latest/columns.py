# SPDX-License-Identifier: Apache-2.0
"""The machine on columns: offers and matches of many events and rules as arrays of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.latest.machine import LatestMachine, LatestMatch
from pyflinkcep.engines.latest.rule import LatestRule

Ints = np.ndarray[Any, np.dtype[np.int64]]
Shorts = np.ndarray[Any, np.dtype[np.int32]]


@attrs.frozen(eq=False)
class Offers:
    """
    Which events satisfy which steps, with which keys, in any order; keys of one step in their own.

    A step's code is `step_codes` of its rule and its number; keys are codes of the caller's.
    """

    events: Shorts  # The index of the event
    steps: Shorts  # The code of the step
    keys: Ints

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int]]) -> Offers:
        """Return offers of (event, code of step, key)."""
        events, steps, keys = np.array([*rows], np.int64).reshape(-1, 3).T
        return cls(events.astype(np.int32), steps.astype(np.int32), np.ascontiguousarray(keys))


@attrs.frozen(eq=False)
class FoundRuns:
    """Matches, by rule and within a rule in their order."""

    rules: Shorts  # The rule of each
    keys: Ints  # Its key
    handles: Ints  # The events of all, those of a match side by side
    ends: Ints  # Where the events of each match end

    @classmethod
    def of(cls, matches: Iterable[LatestMatch]) -> FoundRuns:
        """Return matches of handles as arrays."""
        found = sorted(matches, key=lambda match: (match.rule, match.number))
        return cls(
            np.array([match.rule for match in found], np.int32),
            np.array([match.key for match in found], np.int64),
            np.array([handle for match in found for handle in match.events], np.int64),
            np.cumsum([len(match.events) for match in found], dtype=np.int64),
        )

    def listed(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """Return the matches as tuples: rule, key, handles."""
        starts = [0, *self.ends.tolist()]
        handles = self.handles.tolist()
        return [
            (rule, key, tuple(handles[start:end]))
            for rule, key, start, end in zip(
                self.rules.tolist(), self.keys.tolist(), starts, starts[1:], strict=False
            )
        ]


@attrs.frozen(eq=False)
class LatestColumns:
    """
    Rules over events in columns, batch after batch; matches that wait are told when decided.

    Examples
    --------
    >>> rules = LatestColumns([LatestRule.of(2, maxspan=10)])
    >>> rules.process(np.array([0, 10]), Offers.of([(0, 0, 7), (1, 1, 7)])).listed()
    [(0, 7, (0, 1))]
    """

    rules: Sequence[LatestRule]
    _machine: LatestMachine = attrs.field(init=False)

    @_machine.default
    def _make_machine(self) -> LatestMachine:
        return LatestMachine(self.rules)

    def process(
        self, times: Ints, offers: Offers, first: int = 0, *, is_last: bool = False
    ) -> FoundRuns:
        """
        Offer events to rules, and return the matches that this decides.

        Parameters
        ----------
        times : array of int64, ms
            The times of all events, ascending.
        offers : Offers
            Which steps want which of them.
        first : int
            The handle of the first event; those of the others follow.
        is_last : bool
            Whether no event will come after these, so that no match has to wait.
        """
        places = self._places()
        rows = sorted(
            zip(offers.events.tolist(), offers.steps.tolist(), offers.keys.tolist(), strict=True),
            key=lambda row: row[0],
        )
        found: list[LatestMatch] = []
        for event, own in groupby(rows, key=lambda row: row[0]):
            wanted = [(*places[step], key) for _, step, key in own]
            found += self._machine.process(first + event, int(times[event]), wanted)
        return FoundRuns.of([*found, *(self._machine.finish() if is_last else ())])

    def _places(self) -> list[tuple[int, int]]:
        """Return the rule and the number of each code of a step."""
        return [
            (number, step)
            for number, rule in enumerate(self.rules)
            for step in range(len(rule.missing) + 1)
        ]

    def advance(self, time: int) -> FoundRuns:
        """Return the matches decided by that no event up to `time` will still come."""
        return FoundRuns.of(self._machine.advance(time))
