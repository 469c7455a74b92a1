# SPDX-License-Identifier: Apache-2.0
"""The settings of one stage: how often it matches, how events follow, and the rules for changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from enum import Enum
from typing import Self

import attrs

from pyflinkcep.conditions import IterativeCondition, RichAndCondition, RichOrCondition
from pyflinkcep.errors import InvalidArgumentError, MalformedPatternException, NotSupportedError
from pyflinkcep.time import window_milliseconds


class QuantifierProperty(Enum):
    """The properties of a quantifier; several may hold at once."""

    SINGLE = "SINGLE"
    LOOPING = "LOOPING"
    TIMES = "TIMES"
    OPTIONAL = "OPTIONAL"
    GREEDY = "GREEDY"


class ConsumingStrategy(Enum):
    """How an event of a stage must follow the previous one (its contiguity)."""

    STRICT = "STRICT"
    SKIP_TILL_NEXT = "SKIP_TILL_NEXT"
    SKIP_TILL_ANY = "SKIP_TILL_ANY"
    NOT_FOLLOW = "NOT_FOLLOW"
    NOT_NEXT = "NOT_NEXT"


class WithinType(Enum):
    """
    What a window of :meth:`~pyflinkcep.Pattern.within` measures.

    ``FIRST_AND_LAST`` bounds the time from the first to the last event of a match,
    ``PREVIOUS_AND_CURRENT`` the gap between one event of a match and the next.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from pyflinkcep import Pattern, match
    >>> step = Pattern.begin("gate").next("dock")
    >>> soon = step.within(timedelta(minutes=30), WithinType.PREVIOUS_AND_CURRENT)
    >>> len(match(soon, {"at": [0, 2_000_000]}, timestamp="at"))
    0
    """

    PREVIOUS_AND_CURRENT = "PREVIOUS_AND_CURRENT"
    FIRST_AND_LAST = "FIRST_AND_LAST"


@attrs.frozen
class Combination:
    """How a group combines several patterns: one of them, or all in any order."""

    method: str  # The method of ``Pattern`` that made it
    # Contiguity between one pattern and the next, of ``allOf``.
    joinedBy: ConsumingStrategy = ConsumingStrategy.SKIP_TILL_NEXT

    @property
    def in_any_order(self) -> bool:
        """Whether all patterns must match."""
        return self.method == "allOf"


@attrs.frozen
class Times:
    """The range of repetitions of a stage."""

    from_: int  # The fewest repetitions
    to: int  # The most repetitions; a looping stage has no upper bound and keeps ``to == from_``
    window_ms: int | None = None  # The longest gap between repetitions; None if unbounded

    @classmethod
    def of(cls, times: int, window_ms: int | None = None) -> Times:
        """Make an exact count; raise InvalidArgumentError if it is below 1."""
        if times <= 0:
            raise InvalidArgumentError(
                "You should give a positive number greater than 0.",
                f"times({times}): leave the stage out, or use times(0, n) for an optional one",
            )
        return cls(times, times, window_ms)

    @classmethod
    def of_range(cls, from_: int, to: int, window_ms: int | None = None) -> Times:
        """Make a range; raise InvalidArgumentError if it is empty or starts below 1."""
        if from_ <= 0:
            raise InvalidArgumentError(
                "The from should be a positive number greater than 0.",
                f"got {from_}; use optional() for a stage that may be missing",
            )
        if to < from_:
            raise InvalidArgumentError(
                f"The to should be a number greater than or equal to from: {from_}.",
                f"got to={to}; write times({to}, {from_}) or one exact count",
            )
        return cls(from_, to, window_ms)


@attrs.frozen
class Quantifier:
    """
    The quantifier of one stage.

    Ports ``org.apache.flink.cep.pattern.Quantifier`` (Flink 2.3.0).
    Differs from Flink: a quantifier is immutable; :class:`~pyflinkcep.Pattern` replaces it.
    """

    properties: frozenset[QuantifierProperty]  # The properties that hold
    # Contiguity between the previous stage and the first event of this one.
    consumingStrategy: ConsumingStrategy
    # Contiguity between the repetitions of this stage.
    innerConsumingStrategy: ConsumingStrategy = ConsumingStrategy.SKIP_TILL_NEXT

    @classmethod
    def one(cls, strategy: ConsumingStrategy) -> Quantifier:
        """Make the quantifier of a stage that matches one event."""
        return cls(frozenset({QuantifierProperty.SINGLE}), strategy)

    @classmethod
    def looping(cls, strategy: ConsumingStrategy) -> Quantifier:
        """Make the quantifier of ``oneOrMore`` and ``timesOrMore``."""
        return cls(frozenset({QuantifierProperty.LOOPING}), strategy)

    @classmethod
    def times(cls, strategy: ConsumingStrategy) -> Quantifier:
        """Make the quantifier of ``times``."""
        return cls(frozenset({QuantifierProperty.TIMES}), strategy)

    def hasProperty(self, property_: QuantifierProperty) -> bool:
        """Whether `property_` holds."""
        return property_ in self.properties

    def optional(self) -> Quantifier:
        """Return the quantifier with OPTIONAL added."""
        if self.hasProperty(QuantifierProperty.OPTIONAL):
            raise MalformedPatternException(
                "Optional already applied!", "call optional() once per stage"
            )
        if self.consumingStrategy in (ConsumingStrategy.NOT_NEXT, ConsumingStrategy.NOT_FOLLOW):
            raise MalformedPatternException(
                "NOT pattern cannot be optional",
                "leave optional() out: a NOT stage takes no event",
            )
        return self._with(QuantifierProperty.OPTIONAL)

    def greedy(self) -> Quantifier:
        """Return the quantifier with GREEDY added."""
        if self.innerConsumingStrategy is ConsumingStrategy.SKIP_TILL_ANY:
            raise MalformedPatternException(
                "Option not applicable to FollowedByAny pattern",
                "drop one: a loop takes as much as it can, or tries all combinations",
            )
        if self.hasProperty(QuantifierProperty.SINGLE):
            raise MalformedPatternException(
                "Option not applicable to singleton quantifier",
                "put greedy() after oneOrMore(), timesOrMore(n) or times(from, to)",
            )
        return self._with(QuantifierProperty.GREEDY)

    def combinations(self) -> Quantifier:
        """Return the quantifier with SKIP_TILL_ANY between repetitions."""
        if self.hasProperty(QuantifierProperty.SINGLE):
            raise MalformedPatternException(
                f"Combinations not applicable to {self}!",
                "put allowCombinations() after oneOrMore(), times(...) or timesOrMore(n)",
            )
        return self._with_inner(
            ConsumingStrategy.SKIP_TILL_ANY, ConsumingStrategy.STRICT, "Combinations"
        )

    def consecutive(self) -> Quantifier:
        """Return the quantifier with STRICT contiguity between repetitions."""
        if not self.properties & {QuantifierProperty.LOOPING, QuantifierProperty.TIMES}:
            raise MalformedPatternException(
                f"Consecutive not applicable to {self}!",
                "put consecutive() after oneOrMore(), times(...) or timesOrMore(n)",
            )
        return self._with_inner(
            ConsumingStrategy.STRICT, ConsumingStrategy.SKIP_TILL_ANY, "Consecutive"
        )

    def _with(self, property_: QuantifierProperty) -> Quantifier:
        return attrs.evolve(self, properties=self.properties | {property_})

    def _with_inner(
        self, wanted: ConsumingStrategy, excluded: ConsumingStrategy, name: str
    ) -> Quantifier:
        if self.innerConsumingStrategy is excluded:
            raise MalformedPatternException(
                "You can apply either combinations or consecutive, not both!",
                "keep one of the two",
            )
        if self.innerConsumingStrategy is wanted:
            raise MalformedPatternException(f"{name} already applied!", "call it once per stage")
        return attrs.evolve(self, innerConsumingStrategy=wanted)

    def __str__(self) -> str:
        names = ", ".join(p.value for p in QuantifierProperty if p in self.properties)
        return (
            f"Quantifier{{properties=[{names}], consumingStrategy={self.consumingStrategy.value}, "
            f"innerConsumingStrategy={self.innerConsumingStrategy.value}}}"
        )


Change = Callable[[IterativeCondition], IterativeCondition]
"""Returns the replacement of a condition."""


@attrs.frozen
class Stage:
    """
    The settings of one stage.

    A stage is immutable: each method checks its rule and returns a changed copy.
    """

    name: str  # The stage's name
    quantifier: Quantifier  # How often it matches, and how its events follow each other
    # The condition on its events; None if every event fits.
    condition: IterativeCondition | None = None
    until: IterativeCondition | None = None  # The condition that ends a loop
    times: Times | None = None  # The range of repetitions; None without a quantifier
    windows: Mapping[WithinType, int] = attrs.field(factory=dict)  # The windows set on this stage
    inside: tuple[Stage, ...] = ()  # The stages of a group; empty for a single stage
    # How a group combines patterns, each of which is a group in `inside`; None for a sequence.
    combination: Combination | None = None

    @property
    def is_absent(self) -> bool:
        """Whether it is a NOT stage, which takes no events."""
        strategy = self.quantifier.consumingStrategy
        return strategy in (ConsumingStrategy.NOT_FOLLOW, ConsumingStrategy.NOT_NEXT)

    @property
    def may_be_empty(self) -> bool:
        """Whether the stage may match without an event."""
        if self.is_absent or self.quantifier.hasProperty(QuantifierProperty.OPTIONAL):
            return True
        if self.combination is not None:
            return any(part.may_be_empty for part in self.inside)
        return bool(self.inside) and all(stage.may_be_empty for stage in self.inside)

    @property
    def _ends_greedily(self) -> bool:
        """Whether a greedy loop may come last; Flink does not look into a group."""
        if self.combination is None:
            return self.quantifier.hasProperty(QuantifierProperty.GREEDY)
        return any(part.inside[-1]._ends_greedily for part in self.inside)

    def singles(self) -> Iterator[Stage]:
        """Yield the single stages of a group, in order; the stage itself if it is no group."""
        if not self.inside:
            yield self
        for stage in self.inside:
            yield from stage.singles()

    def joined(self, strategy: ConsumingStrategy, before: Stage | None) -> Self:
        """Return the first stage of a pattern as one that follows another, `before`."""
        stage = attrs.evolve(
            self, quantifier=attrs.evolve(self.quantifier, consumingStrategy=strategy)
        )
        if self.quantifier.hasProperty(QuantifierProperty.OPTIONAL):
            stage.check_optional(before)
        return stage

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
        if kind is WithinType.PREVIOUS_AND_CURRENT:
            self._check_no_gap(window)
        return attrs.evolve(
            self, windows={**self.windows, kind: window_milliseconds(window, "within")}
        )

    def optional(self, before: Stage | None) -> Self:
        """Return the stage as optional, given the stage before it."""
        self.check_optional(before)
        return attrs.evolve(self, quantifier=self.quantifier.optional())

    def looping(self, times: int, gap: timedelta | None, method: str) -> Self:
        """Return the stage with ``oneOrMore`` or ``timesOrMore``, whichever `method` is."""
        self._check_unquantified()
        self._check_no_gap(gap)
        quantifier = Quantifier.looping(self.quantifier.consumingStrategy)
        window_ms = _milliseconds(gap, method)
        return attrs.evolve(
            self, quantifier=quantifier, times=Times.of_range(times, times, window_ms)
        )

    def repeated(self, from_: int, to: int | None, gap: timedelta | None) -> Self:
        """Return the stage with ``times``: an exact number, or a range if `to` is set."""
        self._check_unquantified()
        self._check_no_gap(gap)
        window_ms = _milliseconds(gap, "times")
        quantifier = Quantifier.times(self.quantifier.consumingStrategy)
        if to is None:
            return attrs.evolve(self, quantifier=quantifier, times=Times.of(from_, window_ms))
        if from_ == 0:
            self.check_optional(None)
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
        is_choice = self.combination is not None and self.may_be_empty
        if is_choice or self.quantifier.hasProperty(QuantifierProperty.OPTIONAL):
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

    def check_optional(self, before: Stage | None) -> None:
        """Raise MalformedPatternException if it cannot be optional after another."""
        if before is not None and before._ends_greedily:
            raise MalformedPatternException(
                "Optional pattern cannot be preceded by greedy pattern",
                f"drop greedy() on {before.name!r} or optional() on {self.name!r}",
            )
        if self.combination is not None and any(part.may_be_empty for part in self.inside):
            raise MalformedPatternException(
                "oneOf: an alternative may match without an event, and the whole would too",
                "leave optional() out of one of them",
            )

    def _check_no_gap(self, gap: timedelta | None) -> None:
        if gap is not None and self.combination is not None:
            raise NotSupportedError(
                f"{self.combination.method}: expected no window for gaps on the whole, got {gap}",
                "put within(gap, WithinType.PREVIOUS_AND_CURRENT) on the first stage of each part",
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
