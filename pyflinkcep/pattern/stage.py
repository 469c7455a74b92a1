# SPDX-License-Identifier: Apache-2.0
"""The settings of one stage of a pattern, and the rules for changing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Self

import attrs

from pyflinkcep.conditions import IterativeCondition, RichAndCondition, RichOrCondition
from pyflinkcep.errors import InvalidArgumentError, MalformedPatternException, NotSupportedError
from pyflinkcep.pattern.quantifier import (
    ConsumingStrategy,
    Quantifier,
    QuantifierProperty,
    Times,
    WithinType,
)
from pyflinkcep.time import window_milliseconds

__all__ = ["Change", "Stage"]

Change = Callable[[IterativeCondition], IterativeCondition]
"""Returns the replacement of a condition."""


@attrs.frozen
class Stage:
    """
    The settings of one stage.

    A stage is immutable: each method checks its rule and returns a changed copy.

    Attributes
    ----------
    name : str
        The stage's name.
    quantifier : Quantifier
        How often it matches, and how its events follow each other.
    condition : IterativeCondition or None
        The condition on its events; None if every event fits.
    until : IterativeCondition or None
        The condition that ends a loop.
    times : Times or None
        The range of repetitions; None without a quantifier.
    windows : mapping of WithinType to int, milliseconds
        The windows set on this stage.
    inside : tuple of Stage
        The stages of a group; empty for a single stage.
    """

    name: str
    quantifier: Quantifier
    condition: IterativeCondition | None = None
    until: IterativeCondition | None = None
    times: Times | None = None
    windows: Mapping[WithinType, int] = attrs.field(factory=dict)
    inside: tuple[Stage, ...] = ()

    @property
    def is_absent(self) -> bool:
        """Whether it is a NOT stage, which takes no events."""
        strategy = self.quantifier.consumingStrategy
        return strategy in (ConsumingStrategy.NOT_FOLLOW, ConsumingStrategy.NOT_NEXT)

    def filtered(self, condition: IterativeCondition) -> Self:
        """Return the stage with one more condition, joined by AND."""
        joined = (
            condition if self.condition is None else RichAndCondition(self.condition, condition)
        )
        return attrs.evolve(self, condition=joined)

    def alternatively(self, condition: IterativeCondition) -> Self:
        """Return the stage with an alternative to its conditions."""
        joined = condition if self.condition is None else RichOrCondition(self.condition, condition)
        return attrs.evolve(self, condition=joined)

    def ended_by(self, until: IterativeCondition) -> Self:
        """Return the loop with the condition that ends it."""
        if self.until is not None:
            raise MalformedPatternException(
                "Only one until condition can be applied.", "join the two conditions with or"
            )
        if not self.quantifier.hasProperty(QuantifierProperty.LOOPING):
            raise MalformedPatternException(
                "The until condition is only applicable to looping states.",
                f"put until() after oneOrMore() or timesOrMore(n) on stage {self.name!r}",
            )
        return attrs.evolve(self, until=until)

    def within(self, window: timedelta, kind: WithinType) -> Self:
        """Return the stage with a window, which replaces one of the same kind."""
        if not isinstance(kind, WithinType):
            raise InvalidArgumentError(
                f"within: expected a WithinType, got {kind!r}",
                "write WithinType.FIRST_AND_LAST or WithinType.PREVIOUS_AND_CURRENT",
            )
        return attrs.evolve(
            self, windows={**self.windows, kind: window_milliseconds(window, "within")}
        )

    def optional(self, before: Stage | None) -> Self:
        """Return the stage as optional, given the stage before it."""
        if before is not None and before.quantifier.hasProperty(QuantifierProperty.GREEDY):
            raise MalformedPatternException(
                "Optional pattern cannot be preceded by greedy pattern",
                f"drop greedy() on {before.name!r} or optional() on {self.name!r}",
            )
        return attrs.evolve(self, quantifier=self.quantifier.optional())

    def looping(self, times: int, gap: timedelta | None, method: str) -> Self:
        """Return the stage with ``oneOrMore`` or ``timesOrMore``, whichever `method` is."""
        self._check_unquantified()
        quantifier = Quantifier.looping(self.quantifier.consumingStrategy)
        window_ms = _milliseconds(gap, method)
        return attrs.evolve(
            self, quantifier=quantifier, times=Times.of_range(times, times, window_ms)
        )

    def repeated(self, from_: int, to: int | None, gap: timedelta | None) -> Self:
        """Return the stage with ``times``: an exact number, or a range if `to` is set."""
        self._check_unquantified()
        window_ms = _milliseconds(gap, "times")
        quantifier = Quantifier.times(self.quantifier.consumingStrategy)
        if to is None:
            return attrs.evolve(self, quantifier=quantifier, times=Times.of(from_, window_ms))
        if from_ == 0:
            quantifier, from_ = quantifier.optional(), 1
        return attrs.evolve(self, quantifier=quantifier, times=Times.of_range(from_, to, window_ms))

    def greedy(self) -> Self:
        """Return the loop or range as greedy: it also takes what the next stage could take."""
        self._check_present()
        if self.inside:
            raise MalformedPatternException(
                "Option not applicable to group pattern", "put greedy() on a stage of the group"
            )
        return attrs.evolve(self, quantifier=self.quantifier.greedy())

    def combining(self) -> Self:
        """Return the loop or range as one whose repetitions may skip events that fit."""
        return attrs.evolve(self, quantifier=self.quantifier.combinations())

    def consecutive(self) -> Self:
        """Return the loop or range as one whose repetitions follow each other directly."""
        return attrs.evolve(self, quantifier=self.quantifier.consecutive())

    def with_conditions(self, change: Change) -> Self:
        """Return the stage, or group, with each of its conditions replaced."""
        return attrs.evolve(
            self,
            condition=None if self.condition is None else change(self.condition),
            until=None if self.until is None else change(self.until),
            inside=tuple(stage.with_conditions(change) for stage in self.inside),
        )

    def check_absence_may_follow(self, name: str) -> None:
        """Raise NotSupportedError if a NOT stage, `name`, cannot come after this one."""
        if self.quantifier.hasProperty(QuantifierProperty.OPTIONAL):
            raise NotSupportedError(
                "Specifying a pattern with an optional path to NOT condition is not supported yet. "
                "You can simulate such pattern with two independent patterns, one with and the "
                "other without the optional part.",
                f"stage {self.name!r} is optional, {name!r} is a NOT stage",
            )

    def _check_present(self) -> None:
        if self.is_absent:
            raise MalformedPatternException(
                "Option not applicable to NOT pattern",
                f"put the option on another stage: {self.name!r} takes no events",
            )

    def _check_unquantified(self) -> None:
        self._check_present()
        if not self.quantifier.hasProperty(QuantifierProperty.SINGLE):
            raise MalformedPatternException(
                "Already applied quantifier to this Pattern. "
                f"Current quantifier is: {self.quantifier}",
                f"quantify stage {self.name!r} once, with optional() after it if it may be missing",
            )


def _milliseconds(gap: timedelta | None, method: str) -> int | None:
    return None if gap is None else window_milliseconds(gap, method)
