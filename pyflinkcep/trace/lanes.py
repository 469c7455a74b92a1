# SPDX-License-Identifier: Apache-2.0
"""Partial matches and matches while a trace is made."""

from __future__ import annotations

from typing import Any

import attrs

from pyflinkcep.trace.model import Ending, Miss

__all__ = ["Completed", "Lane", "Step"]


@attrs.frozen
class Step:
    """An event that was taken: its number, its stage, its time and its id in the buffer."""

    event: int
    stage: str
    time: int
    event_id: Any = attrs.field(eq=False)


@attrs.define(eq=False)
class Lane:
    """
    A partial match so far.

    Attributes
    ----------
    number : int
        Its number.
    key : object
        Its key.
    parent : int or None
        The partial match that it was forked from.
    steps : tuple of Step
        What it has taken.
    misses : list of Miss
        What it could not take.
    deadline : int or None, epoch milliseconds
        When its window ends.
    waits_for : tuple of str
        The stages that could take the next event.
    ending : Ending or None
        How it ended.
    became : Completed or None
        The match with which it ended.
    """

    number: int
    key: Any
    parent: int | None
    steps: tuple[Step, ...]
    misses: list[Miss] = attrs.field(factory=list)
    deadline: int | None = None
    waits_for: tuple[str, ...] = ()
    ending: Ending | None = None
    became: Completed | None = None

    @property
    def last_time(self) -> int:
        """The time of its last event."""
        return self.steps[-1].time


@attrs.define(eq=False)
class Completed:
    """
    A match so far.

    Attributes
    ----------
    lane : Lane
        The partial match that became it.
    steps : tuple of Step
        Its events.
    completed : int or None
        The event that completed it.
    number : int or None
        Its number among those that came out.
    emitted : int or None
        The event at which it came out.
    held_back_by : int or None
        The partial match that it waited for first.
    discarded_by : int or None
        The match that made it superfluous.
    """

    lane: Lane
    steps: tuple[Step, ...]
    completed: int | None
    number: int | None = None
    emitted: int | None = None
    held_back_by: int | None = None
    discarded_by: int | None = None

    @property
    def events(self) -> dict[str, list[int]]:
        """Stage to the numbers of its events."""
        found: dict[str, list[int]] = {}
        for step in self.steps:
            found.setdefault(step.stage, []).append(step.event)
        return found
