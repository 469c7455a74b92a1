# SPDX-License-Identifier: Apache-2.0
"""How often a stage may match and how its events must follow each other."""

from __future__ import annotations

from enum import Enum

import attrs

from pyflinkcep.errors import InvalidArgumentError, MalformedPatternException


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
