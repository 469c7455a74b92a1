# SPDX-License-Identifier: Apache-2.0
"""The fluent pattern builder: ``Pattern.begin("a").where(...).followedBy("b")...``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, overload

from pyflinkcep.conditions import (
    RichAndCondition,
    RichOrCondition,
    SubtypeCondition,
    as_condition,
)
from pyflinkcep.errors import (
    InvalidArgumentError,
    MalformedPatternException,
    MissingConditionError,
    NotSupportedError,
)
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.quantifier import (
    ConsumingStrategy,
    Quantifier,
    QuantifierProperty,
    Times,
    WithinType,
)
from pyflinkcep.pattern.stage import Stage
from pyflinkcep.time import to_milliseconds

__all__ = ["GroupPattern", "Pattern"]

_OPTIONAL_BEFORE_NOT = (
    "Specifying a pattern with an optional path to NOT condition is not supported yet. "
    "You can simulate such pattern with two independent patterns, one with and the other "
    "without the optional part."
)


class Pattern(Stage):
    """
    A sequence of stages, each with a condition, a quantifier and a contiguity.

    Start with :meth:`begin`. Methods that describe a stage (``where``, ``oneOrMore``,
    ``within`` …) change it and return it; methods that name a new stage (``next``,
    ``followedBy`` …) return the new last stage, which points back to this one.

    Notes
    -----
    Ports ``org.apache.flink.cep.pattern.Pattern`` (Flink 2.3.0), mutability included: a
    prefix used in two patterns is one object.

    Cost: a loop or ``followedByAny`` without a window keeps its partial matches for ever.

    Examples
    --------
    >>> pattern = (
    ...     Pattern.begin("a").where(lambda e: e == "a")
    ...     .followedBy("b").where(lambda e: e == "b").oneOrMore()
    ... )
    >>> pattern
    Pattern(a → b+)
    """

    @overload
    @staticmethod
    def begin(
        name: str, afterMatchSkipStrategy: AfterMatchSkipStrategy | None = None
    ) -> Pattern: ...
    @overload
    @staticmethod
    def begin(
        name: Pattern, afterMatchSkipStrategy: AfterMatchSkipStrategy | None = None
    ) -> GroupPattern: ...
    @staticmethod
    def begin(
        name: str | Pattern, afterMatchSkipStrategy: AfterMatchSkipStrategy | None = None
    ) -> Pattern:
        """
        Start a pattern with a stage, or with a group of stages.

        Parameters
        ----------
        name : str or Pattern
            The stage's name, or the pattern to use as a group. Names are unique in a pattern.
        afterMatchSkipStrategy : AfterMatchSkipStrategy, optional
            What a match makes superfluous; ``noSkip()`` when not given.
        """
        skip = afterMatchSkipStrategy or AfterMatchSkipStrategy.noSkip()
        if isinstance(name, Pattern):
            return GroupPattern(None, name, ConsumingStrategy.STRICT, skip)
        return Pattern(name, None, ConsumingStrategy.STRICT, skip)

    # --- the condition of this stage

    def where(self, condition: Any) -> Pattern:
        """
        Add a condition that the stage's events must fulfil, besides those already there.

        Parameters
        ----------
        condition : callable, str, Column or IterativeCondition
            A function of (event) or (event, ctx) that returns a bool; a Spark SQL expression
            over the event's columns and, in ``first``, ``last``, ``count``, ``sum``, ``min``,
            ``max`` and ``avg``, over those of the events taken for a stage; or a condition
            object.

        Returns
        -------
        Pattern
            This stage.

        Examples
        --------
        >>> Pattern.begin("a").where(lambda e: e.price > 3).where("volume < 10")
        Pattern(a)
        >>> Pattern.begin("up").where("price > coalesce(last(up.price), 0)").oneOrMore()
        Pattern(up+)
        """
        new = as_condition(condition, "The condition cannot be null.", self._name)
        self._condition = new if self._condition is None else RichAndCondition(self._condition, new)
        return self

    def or_(self, condition: Any) -> Pattern:
        """
        Add an alternative: what is there already, or `condition`; see :meth:`where`.

        ``where(A).or_(B).where(C)`` means (A or B) and C.
        """
        new = as_condition(condition, "The condition cannot be null.", self._name)
        self._condition = new if self._condition is None else RichOrCondition(self._condition, new)
        return self

    def subtype(self, subtypeClass: type) -> Pattern:
        """Require the events to be instances of a class, after the conditions already there."""
        if subtypeClass is None:
            raise MissingConditionError("The class cannot be null.", "give a class")
        if not isinstance(subtypeClass, type):
            raise InvalidArgumentError(
                f"subtype takes a class, not {subtypeClass!r}", "write subtype(MyEvent)"
            )
        return self.where(SubtypeCondition(subtypeClass))

    def until(self, untilCondition: Any) -> Pattern:
        """
        Stop a loop at the first event that fulfils a condition; see :meth:`where`.

        Raises
        ------
        MalformedPatternException
            When the stage is no ``oneOrMore`` or ``timesOrMore``, or has an until already.
        """
        new = as_condition(untilCondition, "The condition cannot be null", self._name)
        if self._untilCondition is not None:
            raise MalformedPatternException(
                "Only one until condition can be applied.", "join the two conditions with or"
            )
        if not self._quantifier.hasProperty(QuantifierProperty.LOOPING):
            raise MalformedPatternException(
                "The until condition is only applicable to looping states.",
                f"put until() after oneOrMore() or timesOrMore(n) on stage {self._name!r}",
            )
        self._untilCondition = new
        return self

    def within(
        self, windowTime: timedelta | None, withinType: WithinType = WithinType.FIRST_AND_LAST
    ) -> Pattern:
        """
        Bound the time a match may take.

        Parameters
        ----------
        windowTime : timedelta or None
            An event exactly this much later is outside. None changes nothing; zero or less
            means no window, as in Flink.
        withinType : WithinType
            What the window measures.

        Returns
        -------
        Pattern
            This stage.
        """
        if windowTime is not None:
            self._windows[withinType] = to_milliseconds(windowTime, "within")
        return self

    # --- the next stage

    @overload
    def next(self, name: str) -> Pattern: ...
    @overload
    def next(self, name: Pattern) -> GroupPattern: ...
    def next(self, name: str | Pattern) -> Pattern:
        """Append a stage, or group, whose event must come directly after (strict contiguity)."""
        return self._append(name, ConsumingStrategy.STRICT)

    @overload
    def followedBy(self, name: str) -> Pattern: ...
    @overload
    def followedBy(self, name: Pattern) -> GroupPattern: ...
    def followedBy(self, name: str | Pattern) -> Pattern:
        """Append a stage, or group, that takes the next event that fits (relaxed contiguity)."""
        return self._append(name, ConsumingStrategy.SKIP_TILL_NEXT)

    @overload
    def followedByAny(self, name: str) -> Pattern: ...
    @overload
    def followedByAny(self, name: Pattern) -> GroupPattern: ...
    def followedByAny(self, name: str | Pattern) -> Pattern:
        """Append a stage, or group, that tries every later event that fits."""
        return self._append(name, ConsumingStrategy.SKIP_TILL_ANY)

    def notNext(self, name: str) -> Pattern:
        """Append a stage whose event must not come directly after."""
        return self._append_not(name, ConsumingStrategy.NOT_NEXT)

    def notFollowedBy(self, name: str) -> Pattern:
        """
        Append a stage whose event must not come before the next stage's.

        As the last stage it needs a window, at whose end the match is emitted.
        """
        return self._append_not(name, ConsumingStrategy.NOT_FOLLOW)

    # --- how often this stage matches

    def optional(self) -> Pattern:
        """Let the stage match nothing. Put it after the other quantifier: before, it is lost."""
        previous = self._previous
        if previous is not None and previous._quantifier.hasProperty(QuantifierProperty.GREEDY):
            raise MalformedPatternException(
                "Optional pattern cannot be preceded by greedy pattern",
                f"drop greedy() on {previous._name!r} or optional() on {self._name!r}",
            )
        self._quantifier = self._quantifier.optional()
        return self

    def oneOrMore(self, windowTime: timedelta | None = None) -> Pattern:
        """
        Let the stage match once or more.

        Parameters
        ----------
        windowTime : timedelta, optional
            The longest gap before a repetition. As in Flink it does not bound the loop itself.
        """
        return self._loop(1, windowTime, "oneOrMore")

    def timesOrMore(self, times: int, windowTime: timedelta | None = None) -> Pattern:
        """Let the stage match `times` (at least 1) or more; see :meth:`oneOrMore`."""
        return self._loop(times, windowTime, "timesOrMore")

    @overload
    def times(self, times: int, windowTime: timedelta | None = None, /) -> Pattern: ...
    @overload
    def times(self, from_: int, to: int, windowTime: timedelta | None = None, /) -> Pattern: ...
    def times(self, from_: int, *rest: Any) -> Pattern:
        """
        Let the stage match an exact number of times, or a number within a range.

        Parameters
        ----------
        from_ : int
            The exact count, at least 1; or, with `to`, the fewest. 0 means optional.
        to : int, optional
            The most, at least `from_`.
        windowTime : timedelta, optional
            The longest gap before a repetition; as in Flink not before the last one.

        Examples
        --------
        >>> Pattern.begin("a").times(2, 4)
        Pattern(a{2,4})
        """
        self._check_no_not_pattern()
        self._check_no_quantifier()
        to = rest[0] if rest and isinstance(rest[0], int) else None
        window, *surplus = [*rest[to is not None :], None]
        if len(surplus) > 1 or not isinstance(from_, int):
            raise InvalidArgumentError(
                f"times{(from_, *rest)!r}", "write times(n), times(from, to), or add a timedelta"
            )
        window_ms = None if window is None else to_milliseconds(window, "times")
        quantifier = Quantifier.times(self._quantifier.consumingStrategy)
        if to is not None:
            if from_ == 0:
                quantifier, from_ = quantifier.optional(), 1
            self._times = Times.of_range(from_, to, window_ms)
        else:
            self._times = Times.of(from_, window_ms)
        self._quantifier = quantifier
        return self

    def greedy(self) -> Pattern:
        """Let a loop or range take what the following stage could take as well."""
        self._check_no_not_pattern()
        if isinstance(self, GroupPattern):
            raise MalformedPatternException(
                "Option not applicable to group pattern", "put greedy() on a stage of the group"
            )
        self._quantifier = self._quantifier.greedy()
        return self

    def allowCombinations(self) -> Pattern:
        """Let repetitions skip events that fit as well (skip till any, inside the loop)."""
        self._quantifier = self._quantifier.combinations()
        return self

    def consecutive(self) -> Pattern:
        """Require the repetitions to follow each other directly."""
        self._quantifier = self._quantifier.consecutive()
        return self

    # --- helpers

    def _append(self, what: str | Pattern, strategy: ConsumingStrategy) -> Pattern:
        if isinstance(what, Pattern):
            return GroupPattern(self, what, strategy, self._afterMatchSkipStrategy)
        return Pattern(what, self, strategy, self._afterMatchSkipStrategy)

    def _append_not(self, name: str, strategy: ConsumingStrategy) -> Pattern:
        if self._quantifier.hasProperty(QuantifierProperty.OPTIONAL):
            raise NotSupportedError(
                _OPTIONAL_BEFORE_NOT, f"stage {self._name!r} is optional, {name!r} is a NOT stage"
            )
        if isinstance(name, Pattern):
            raise InvalidArgumentError(
                "a group cannot be absent: NOT stages take a name",
                "give the NOT stage a condition that covers the unwanted events",
            )
        return Pattern(name, self, strategy, self._afterMatchSkipStrategy)

    def _loop(self, times: int, windowTime: timedelta | None, what: str) -> Pattern:
        self._check_no_not_pattern()
        self._check_no_quantifier()
        window_ms = None if windowTime is None else to_milliseconds(windowTime, what)
        self._quantifier = Quantifier.looping(self._quantifier.consumingStrategy)
        self._times = Times.of_range(times, times, window_ms)
        return self


class GroupPattern(Pattern):
    """
    A pattern used as one stage of another.

    Notes
    -----
    Ports ``org.apache.flink.cep.pattern.GroupPattern`` (Flink 2.3.0); conditions belong to
    the stages inside.

    Examples
    --------
    >>> Pattern.begin("z").followedBy(Pattern.begin("a").next("b")).times(2)
    Pattern(z → (a ⇒ b){2})
    """

    def __init__(
        self,
        previous: Pattern | None,
        groupPattern: Pattern,
        strategy: ConsumingStrategy,
        afterMatchSkipStrategy: AfterMatchSkipStrategy,
    ) -> None:
        super().__init__("GroupPattern", previous, strategy, afterMatchSkipStrategy)
        self._groupPattern = groupPattern

    def getRawPattern(self) -> Pattern:
        """Give the last stage of the pattern inside."""
        return self._groupPattern

    def where(self, condition: Any) -> Pattern:
        """Raise NotSupportedError: a group has no condition of its own."""
        raise NotSupportedError(
            "GroupPattern does not support where clause.", "put where() on a stage of the group"
        )

    def or_(self, condition: Any) -> Pattern:
        """Raise NotSupportedError: a group has no condition of its own."""
        raise NotSupportedError(
            "GroupPattern does not support or clause.", "put or_() on a stage of the group"
        )

    def subtype(self, subtypeClass: type) -> Pattern:
        """Raise NotSupportedError: a group has no condition of its own."""
        raise NotSupportedError(
            "GroupPattern does not support subtype clause.", "put subtype() on a stage of the group"
        )

    def _label(self) -> str:
        return f"({self._groupPattern.describe()})"
