# SPDX-License-Identifier: Apache-2.0
"""The fluent pattern builder: ``Pattern.begin("a").where(...).followedBy("b")...``."""

from __future__ import annotations

from typing import Any, NoReturn, overload

import attrs

from pyflinkcep.choices import Contiguity
from pyflinkcep.errors import (
    InvalidArgumentError,
    NotSupportedError,
)
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.coercion import Condition
from pyflinkcep.pattern.combined import combined, joined_by
from pyflinkcep.pattern.last_stage import LastStage
from pyflinkcep.pattern.linked import stages_of
from pyflinkcep.pattern.quantifier import Combination, ConsumingStrategy, Quantifier
from pyflinkcep.pattern.stage import Change, Stage

__all__ = ["GroupPattern", "Pattern"]


@attrs.frozen(eq=False, repr=False)
class Pattern(LastStage["Pattern"]):
    """
    A sequence of stages, each with a condition, a quantifier and a contiguity.

    Start with :meth:`begin`. A pattern is immutable: methods that describe the last stage
    (``where``, ``oneOrMore``, ``within`` …) return a changed copy, and methods that name a new
    stage (``next``, ``followedBy`` …) return a longer pattern. So two patterns may share a prefix,
    a refused call changes nothing, and a notebook cell can run twice.

    Warns
    -----
    UnusedResultWarning
        If the result of a method is discarded and the pattern is used without it.

    Notes
    -----
    Ports ``org.apache.flink.cep.pattern.Pattern`` (Flink 2.3.0).
    Differs from Flink: ``start.where(condition)`` on a line of its own has no effect, as with a
    DataFrame; write ``start = start.where(condition)``.

    Cost: a loop or ``followedByAny`` without a window keeps its partial matches forever.

    Examples
    --------
    >>> pattern = (
    ...     Pattern.begin("a").where(lambda e: e == "a")
    ...     .followedBy("b").where(lambda e: e == "b").oneOrMore()
    ... )
    >>> pattern
    Pattern(a → b+)
    >>> strict, loose = pattern.next("c"), pattern.followedBy("c")
    >>> strict, loose
    (Pattern(a → b+ ⇒ c), Pattern(a → b+ → c))
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
            Which partial matches a match makes superfluous; ``noSkip()`` by default.

        Raises
        ------
        InvalidArgumentError
            If an argument is of another kind.
        """
        skip = afterMatchSkipStrategy
        if skip is None:
            skip = AfterMatchSkipStrategy.noSkip()
        if not isinstance(skip, AfterMatchSkipStrategy):
            raise InvalidArgumentError(
                f"begin: expected an AfterMatchSkipStrategy, got {skip!r}",
                "write AfterMatchSkipStrategy.skipPastLastEvent(), or another of its methods",
            )
        return _pattern(name, ConsumingStrategy.STRICT, None, skip)

    @staticmethod
    def oneOf(*patterns: Pattern) -> GroupPattern:
        """
        Return a group that matches where one of several patterns does.

        Use it like a group: in ``begin``, ``next``, ``followedBy`` or ``followedByAny``, or first.
        It has the matches of the pattern with each alternative written in its place; events that
        fit several alternatives make a match for each.

        Parameters
        ----------
        patterns : Pattern
            The alternatives. Stages that none of the others has are missing in their matches.

        Raises
        ------
        InvalidArgumentError
            If there is none, or something else than a Pattern.
        MalformedPatternException
            If several alternatives may match without an event.
        NotSupportedError
            If an alternative has a window or a skip strategy of its own, or ends with
            ``notFollowedBy``.

        Notes
        -----
        Differs from Flink, which has no alternatives.

        Examples
        --------
        >>> from pyflinkcep.testing import match
        >>> card = Pattern.begin("card").where(lambda e: e == "card")
        >>> cash = Pattern.begin("cash").where(lambda e: e == "cash")
        >>> paid = Pattern.oneOf(card, cash).next("ship").where(lambda e: e == "ship")
        >>> paid
        Pattern((card | cash) ⇒ ship)
        >>> match(paid, ["cash", "ship"])
        [{'cash': ['cash'], 'ship': ['ship']}]
        """
        return _combined(Combination("oneOf"), patterns)

    @staticmethod
    def allOf(*patterns: Pattern, joinedBy: Contiguity = "followedBy") -> GroupPattern:
        """
        Return a group that matches where all of several patterns do, in any order.

        Each takes its events before the next one begins. Use it like :meth:`oneOf`: it has the
        matches of the pattern with each order of the patterns written in its place.

        Parameters
        ----------
        patterns : Pattern
            At most six patterns.
        joinedBy : {"followedBy", "next", "followedByAny"}
            How each follows the one before it. What is before the group is up to the method that
            appends it.

        Raises
        ------
        InvalidArgumentError
            If there is none or more than six, or something else than a Pattern.
        MalformedPatternException
            If one of them may match without an event.
        NotSupportedError
            As in :meth:`oneOf`, and if a loop in it has a window for the gaps.

        Notes
        -----
        Differs from Flink, which has no such group.

        Examples
        --------
        >>> from pyflinkcep.testing import match
        >>> order = Pattern.begin("order").where(lambda e: e == "order")
        >>> pay = Pattern.begin("pay").where(lambda e: e == "pay")
        >>> both = Pattern.allOf(order, pay).followedBy("ship").where(lambda e: e == "ship")
        >>> match(both, ["pay", "order", "ship"])
        [{'pay': ['pay'], 'order': ['order'], 'ship': ['ship']}]
        """
        return _combined(Combination("allOf", joined_by(joinedBy)), patterns)

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

    # --- helpers

    def _append(self, what: str | Pattern, strategy: ConsumingStrategy) -> Pattern:
        self._usage.used()
        return _pattern(what, strategy, self, self._skip)

    def _append_not(self, name: str, strategy: ConsumingStrategy) -> Pattern:
        self._stage.check_absence_may_follow(name)
        if isinstance(name, Pattern):
            raise InvalidArgumentError(
                "a group cannot be absent: expected the name of a NOT stage",
                "write a NOT stage with a condition that covers the unwanted events",
            )
        return self._append(name, strategy)


@attrs.frozen(eq=False, repr=False)
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

    _parts: tuple[Pattern, ...] = attrs.field(kw_only=True)

    @property
    def combination(self) -> Combination | None:
        """How the patterns inside are combined; None for a single one."""
        return self._stage.combination

    def getParts(self) -> tuple[Pattern, ...]:
        """Return the patterns inside: those of ``oneOf`` or ``allOf``, or the only one."""
        return self._parts

    def getRawPattern(self) -> Pattern:
        """Return the pattern inside; NotSupportedError for ``oneOf`` and ``allOf``."""
        if self.combination is not None:
            method = self.combination.method
            raise NotSupportedError(f"{method}: expected a group of one pattern", "use getParts()")
        return self._parts[0]

    def where(self, condition: Condition) -> NoReturn:
        """Raise NotSupportedError: a group has no condition of its own."""
        raise _no_condition("where", "where()")

    def or_(self, condition: Condition) -> NoReturn:
        """Raise NotSupportedError: a group has no condition of its own."""
        raise _no_condition("or", "or_()")

    def subtype(self, subtypeClass: type) -> NoReturn:
        """Raise NotSupportedError: a group has no condition of its own."""
        raise _no_condition("subtype", "subtype()")

    def _replaced(self, stage: Stage, previous: Any, change: Change) -> Pattern:
        parts = tuple(part.with_conditions(change) for part in self._parts)
        return attrs.evolve(self, stage=stage, previous=previous, parts=parts)


def _no_condition(clause: str, call: str) -> NotSupportedError:
    return NotSupportedError(
        f"GroupPattern does not support {clause} clause.", f"put {call} on a stage of the group"
    )


def _pattern(
    what: str | Pattern,
    strategy: ConsumingStrategy,
    previous: Pattern | None,
    skip: AfterMatchSkipStrategy,
) -> Pattern:
    """Return the pattern with one more stage or group."""
    if isinstance(what, Pattern):
        what._usage.used()
        if isinstance(what, GroupPattern) and what.combination and what.getPrevious() is None:
            # Not a group in a group: then the contiguity would be lost, as in Flink.
            before = None if previous is None else previous._stage
            return GroupPattern(
                what._stage.joined(strategy, before), previous, skip, parts=what._parts
            )
        stage = Stage("GroupPattern", Quantifier.one(strategy), inside=stages_of(what))
        return GroupPattern(stage, previous, skip, parts=(what,))
    if not isinstance(what, str):
        raise InvalidArgumentError(
            f"expected the name of a stage or a Pattern, got {what!r}",
            "write begin('name'), next('name') or followedBy(Pattern.begin(...))",
        )
    return Pattern(Stage(what, Quantifier.one(strategy)), previous, skip)


def _combined(combination: Combination, patterns: tuple[Pattern, ...]) -> GroupPattern:
    """Return the pattern whose only stage is a group of several patterns."""
    method = combination.method
    for part in patterns:
        if not isinstance(part, Pattern):
            raise InvalidArgumentError(
                f"{method}: expected a Pattern, got {part!r}",
                f"write Pattern.{method}(Pattern.begin('a').where(...), ...)",
            )
        if part.getAfterMatchSkipStrategy().isSkipStrategy():
            raise NotSupportedError(
                f"{method}: {part!r} has a skip strategy, which is about whole matches",
                f"pass it to Pattern.begin(Pattern.{method}(...), skipStrategy)",
            )
        part._usage.used()
    stage = combined(combination, [stages_of(part) for part in patterns])
    return GroupPattern(stage, None, AfterMatchSkipStrategy.noSkip(), parts=patterns)
