# SPDX-License-Identifier: Apache-2.0
"""What the engine knows of a rule: steps, which of them must be missing, and its span of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import TypeVar

import attrs

from pyflinkcep.errors import InvalidArgumentError

_T = TypeVar("_T")


class Role(IntEnum):
    """What a step does with an event."""

    TAKES = 0
    LEADING = 1  # Missing, before the first event
    BETWEEN = 2  # Missing, between two events
    TRAILING = 3  # Missing, after the last event
    UNTIL = 4


@attrs.frozen(slots=False)
class LatestRule:
    """
    A sequence of steps; conditions and keys are the caller's.

    Steps are numbered in order, from 0; the number after the last is ``until``. The rank of a step
    is its number among those that take an event.
    """

    missing: tuple[bool, ...]  # For each step, repetitions written out, whether it must be missing
    maxspan: int | None = None  # The longest time from the first event to the last, in ms
    has_until: bool = False  # Whether events may be offered to ``until``

    def __attrs_post_init__(self) -> None:
        if all(self.missing):
            raise InvalidArgumentError("no step takes an event", "add a step that is not missing")
        if any(self.missing) and self.maxspan is None:
            raise InvalidArgumentError("a missing step without a maxspan", "add a maxspan")
        if self.maxspan is not None and self.maxspan < 0:
            raise InvalidArgumentError(f"maxspan: expected 0 or more, got {self.maxspan}", "in ms")

    @classmethod
    def of(cls, steps: int, maxspan: int | None = None) -> LatestRule:
        """Return a rule whose steps all take an event."""
        return cls((False,) * steps, maxspan)

    @property
    def size(self) -> int:
        """The number of events of a match."""
        return len(self.missing) - sum(self.missing)

    @property
    def until(self) -> int:
        """The number by which events are offered to ``until``."""
        return len(self.missing)

    @property
    def leads(self) -> bool:
        """Whether a missing step comes before the first event."""
        return self.missing[0]

    @property
    def trails(self) -> bool:
        """Whether a missing step comes after the last event."""
        return self.missing[-1]

    @cached_property
    def roles(self) -> tuple[tuple[Role, int], ...]:
        """
        The role of each step and of ``until``, and a rank.

        The rank is that of a step that takes an event, and for a step between two events that of
        the first of them.
        """
        found: list[tuple[Role, int]] = []
        rank, size = -1, self.size
        for missing in self.missing:
            rank += not missing
            role = Role.BETWEEN if 0 <= rank < size - 1 else Role.LEADING
            if missing and rank == size - 1:
                role = Role.TRAILING
            found.append((role if missing else Role.TAKES, rank))
        return *found, (Role.UNTIL, size)

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """When each step and ``until`` sees an event: later steps first, ``until`` after all."""
        return *range(len(self.missing) - 1, -1, -1), len(self.missing)

    def placed(self, events: Iterable[_T]) -> list[_T | None]:
        """Return the events of a match by step, None for a missing step."""
        given = iter(events)
        return [None if missing else next(given) for missing in self.missing]


def step_codes(rules: Sequence[LatestRule]) -> list[int]:
    """Return the code of each rule's step 0; its steps and ``until`` have those that follow."""
    found, code = [], 0
    for rule in rules:
        found.append(code)
        code += len(rule.missing) + 1
    return found
