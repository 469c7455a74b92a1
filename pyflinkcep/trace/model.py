# SPDX-License-Identifier: Apache-2.0
"""A trace as data; events are named by their number, from 0, in the order given."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

__all__ = [
    "Answer",
    "Effect",
    "End",
    "Ending",
    "Miss",
    "PartialMatch",
    "TracedEvent",
    "TracedMatch",
]


class End(Enum):
    """Why a partial match is no more, or still waits."""

    MATCH = "match"
    """It became a match, which came out."""
    HELD = "held back"
    """It became a match that waits for a partial match that began earlier."""
    CONTIGUITY = "contiguity"
    """The event could not be taken, and may not be skipped."""
    UNTIL = "until"
    """The event satisfied the condition of ``until``, and nothing could follow."""
    NOT = "not"
    """The event of a NOT stage came."""
    WINDOW = "window"
    """The window of the match had passed."""
    GAP = "gap"
    """The window between two events had passed."""
    SKIP = "skip"
    """A match made it superfluous, by the skip strategy; it may have been a match itself."""
    LIMIT = "limit"
    """There were too many partial matches."""
    INPUT = "input"
    """The input ended, and it had no window to wait for."""


@attrs.frozen
class Answer:
    """
    A condition's answer for an event, and the values compared.

    Attributes
    ----------
    stage : str
        The stage that it was written for.
    condition : str
        The condition.
    holds : bool
        Whether it holds.
    until : bool
        Whether it is the condition of an ``until``.
    failed : tuple of (str, tuple of (str, object))
        If it does not hold, the parts that do not, each with what it compared and the values;
        empty for functions.
    values : tuple of (str, object)
        All that was compared, and the values.
    """

    stage: str
    condition: str
    holds: bool
    until: bool = False
    failed: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    values: tuple[tuple[str, Any], ...] = ()


@attrs.frozen
class Miss:
    """An event that a partial match could not take for a stage, and the answers that decided."""

    event: int
    stage: str
    answers: tuple[Answer, ...]


@attrs.frozen
class Effect:
    """
    What an event did to a partial match.

    Attributes
    ----------
    partial : int
        The number of the partial match.
    what : str
        ``began``, ``took``, ``forked`` (a copy of another goes on), ``passed by``, ``matched`` or
        ``ended``.
    stage : str
        The stage that took the event, if any.
    """

    partial: int
    what: str
    stage: str = ""


@attrs.frozen
class Ending:
    """
    How a partial match ended.

    Attributes
    ----------
    kind : End
        Why.
    time : int or None, epoch milliseconds
        When; None if the input ended.
    event : int or None
        The event that ended it, if one did.
    stages : tuple of str
        The stages that it waited for, or the NOT stage whose event came.
    match : int or None
        The match that it became, or that made it superfluous.
    partial : int or None
        The partial match that holds it back.
    answers : tuple of Answer
        The conditions of the NOT stage, if its event came.
    """

    kind: End
    time: int | None = None
    event: int | None = None
    stages: tuple[str, ...] = ()
    match: int | None = None
    answers: tuple[Answer, ...] = ()
    partial: int | None = None


@attrs.frozen
class PartialMatch:
    """
    A partial match, from its first event to its end.

    Attributes
    ----------
    number : int
        Its number, in the order in which they began.
    key : object
        Its key.
    parent : int or None
        The partial match that it was forked from.
    steps : tuple of (int, str)
        The events that it took, each with the stage, those of its parent first.
    began : int, epoch milliseconds
        The time of its first event.
    deadline : int or None, epoch milliseconds
        When its window ends, as it was last; None without one.
    misses : tuple of Miss
        What it could not take, with the answers that decided.
    ending : Ending
        How it ended.
    reached : int
        How many stages of the pattern it has come to.
    """

    number: int
    key: Any
    parent: int | None
    steps: tuple[tuple[int, str], ...]
    began: int
    deadline: int | None
    misses: tuple[Miss, ...]
    ending: Ending
    reached: int

    @property
    def events(self) -> dict[str, list[int]]:
        """Stage to the numbers of its events."""
        found: dict[str, list[int]] = {}
        for number, stage in self.steps:
            found.setdefault(stage, []).append(number)
        return found


@attrs.frozen
class TracedMatch:
    """
    A match, from when it was complete to when it came out.

    Attributes
    ----------
    number : int
        Its number, in the order in which matches came out; those that did not are last.
    partial : int
        The partial match that became it, or that goes on after it.
    events : mapping of str to list of int
        Stage to the numbers of its events.
    completed : int or None
        The event that completed it; None if a window's end did.
    came_out : bool
        Whether it came out; otherwise it was dropped, or still waits.
    emitted : int or None
        The event at which it came out; None if time passing let it out.
    held_back_by : int or None
        The partial match for which it had to wait first, since it began earlier.
    discarded_by : int or None
        The match that made it superfluous before it came out.
    """

    number: int
    partial: int
    events: Mapping[str, list[int]]
    completed: int | None
    came_out: bool
    emitted: int | None
    held_back_by: int | None = None
    discarded_by: int | None = None


@attrs.frozen
class TracedEvent:
    """
    An event, and what it did.

    Attributes
    ----------
    number : int
        Its number in the order given.
    event : object
        The event.
    time : int, epoch milliseconds
        Its time.
    key : object
        Its key.
    late : bool
        Whether it came too late.
    answers : tuple of Answer
        The conditions about this event alone that were evaluated.
    begins : tuple of Miss
        Why it could not begin a match, for each stage that could have; empty if it did.
    effects : tuple of Effect
        What it did to partial matches.
    """

    number: int
    event: Any
    time: int
    key: Any
    late: bool = False
    answers: tuple[Answer, ...] = ()
    begins: tuple[Miss, ...] = ()
    effects: tuple[Effect, ...] = ()
