# SPDX-License-Identifier: Apache-2.0
"""What the last stage of a pattern matches, how often, and within which time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self, SupportsIndex, overload

import attrs

from pyflinkcep.conditions import SubtypeCondition
from pyflinkcep.errors import InvalidArgumentError, MissingConditionError
from pyflinkcep.pattern.coercion import Condition, as_condition, as_count
from pyflinkcep.pattern.linked import LinkedStages, PatternT
from pyflinkcep.pattern.quantifier import WithinType
from pyflinkcep.pattern.stage import Stage

__all__ = ["LastStage"]


@attrs.frozen(eq=False, repr=False)
class LastStage(LinkedStages[PatternT]):
    """A pattern whose last stage changes; each method returns a copy."""

    # --- the condition of the last stage

    def where(self, condition: Condition) -> Self:
        """
        Add a condition on the stage's events, in addition to the existing ones.

        Parameters
        ----------
        condition : callable, str, Column or IterativeCondition
            A function of (event) or (event, ctx) that returns a bool; a Spark SQL expression
            over the event's columns and, in ``first``, ``last``, ``count``, ``sum``, ``min``,
            ``max`` and ``avg``, over the events taken for a stage; or a condition object.

        Returns
        -------
        Pattern
            The pattern with the condition.

        Examples
        --------
        >>> from pyflinkcep import Pattern
        >>> Pattern.begin("a").where(lambda e: e.price > 3).where("volume < 10")
        Pattern(a)
        >>> Pattern.begin("up").where("price > coalesce(last(up.price), 0)").oneOrMore()
        Pattern(up+)
        """
        new = as_condition(condition, "The condition cannot be null.", self._stage.name)
        return self._with("where", self._stage.filtered(new))

    def or_(self, condition: Condition) -> Self:
        """
        Add an alternative to the existing conditions; see :meth:`where`.

        ``where(A).or_(B).where(C)`` means (A or B) and C.
        """
        new = as_condition(condition, "The condition cannot be null.", self._stage.name)
        return self._with("or_", self._stage.alternatively(new))

    def subtype(self, subtypeClass: type) -> Self:
        """Require the events to be instances of a class, in addition to the existing conditions."""
        if subtypeClass is None:
            raise MissingConditionError("The class cannot be null.", "pass a class")
        if not isinstance(subtypeClass, type):
            raise InvalidArgumentError(
                f"subtype: expected a class, got {subtypeClass!r}", "write subtype(MyEvent)"
            )
        return self._with("subtype", self._stage.filtered(SubtypeCondition(subtypeClass)))

    def until(self, untilCondition: Condition) -> Self:
        """
        Stop a loop at the first event that satisfies a condition; see :meth:`where`.

        Raises
        ------
        MalformedPatternException
            If the stage is not a ``oneOrMore`` or ``timesOrMore``, or has an until already.
        """
        new = as_condition(untilCondition, "The condition cannot be null", self._stage.name)
        return self._with("until", self._stage.ended_by(new))

    def within(
        self, windowTime: timedelta | None, withinType: WithinType = WithinType.FIRST_AND_LAST
    ) -> Self:
        """
        Bound the time a match may take.

        Parameters
        ----------
        windowTime : timedelta or None
            At least a millisecond; an event exactly this much later is outside. None has no effect.
        withinType : WithinType
            What the window measures.

        Returns
        -------
        Pattern
            The pattern with the window.

        Raises
        ------
        InvalidArgumentError
            If the window is zero or less.

        Notes
        -----
        Differs from Flink: there a window of zero or less is none.
        """
        if windowTime is None:
            return self
        return self._with("within", self._stage.within(windowTime, withinType))

    # --- how often the last stage matches

    def optional(self) -> Self:
        """Let the stage match nothing. Call it after the other quantifier; before, it is lost."""
        before = None if self._previous is None else self._previous._stage
        return self._with("optional", self._stage.optional(before))

    def oneOrMore(self, windowTime: timedelta | None = None) -> Self:
        """
        Let the stage match once or more.

        Parameters
        ----------
        windowTime : timedelta, optional
            The longest gap before a repetition. As in Flink it does not bound the loop itself.
        """
        return self._with("oneOrMore", self._stage.looping(1, windowTime, "oneOrMore"))

    def timesOrMore(self, times: SupportsIndex, windowTime: timedelta | None = None) -> Self:
        """Let the stage match `times` (at least 1) or more; see :meth:`oneOrMore`."""
        count = as_count(times, "timesOrMore")
        return self._with("timesOrMore", self._stage.looping(count, windowTime, "timesOrMore"))

    @overload
    def times(self, times: SupportsIndex, windowTime: timedelta | None = None, /) -> Self: ...
    @overload
    def times(
        self, from_: SupportsIndex, to: SupportsIndex, windowTime: timedelta | None = None, /
    ) -> Self: ...
    def times(self, from_: SupportsIndex, *rest: Any) -> Self:
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
        >>> from pyflinkcep import Pattern
        >>> Pattern.begin("a").times(2, 4)
        Pattern(a{2,4})
        """
        is_exact = not rest or rest[0] is None or isinstance(rest[0], timedelta)
        if len(rest) > (1 if is_exact else 2):
            raise InvalidArgumentError(
                f"times{(from_, *rest)!r}: too many arguments",
                "write times(n) or times(from, to), and a timedelta after the numbers",
            )
        fewest = as_count(from_, "times")
        most = None if is_exact else as_count(rest[0], "times")
        gaps = (*rest[0 if is_exact else 1 :], None)
        return self._with("times", self._stage.repeated(fewest, most, gaps[0]))

    def greedy(self) -> Self:
        """Let a loop or range take what the following stage could take as well."""
        return self._with("greedy", self._stage.greedy())

    def allowCombinations(self) -> Self:
        """Let repetitions skip events that fit as well (skip till any, inside the loop)."""
        return self._with("allowCombinations", self._stage.combining())

    def consecutive(self) -> Self:
        """Require the repetitions to follow each other directly."""
        return self._with("consecutive", self._stage.consecutive())

    # --- helpers

    def _with(self, call: str, stage: Stage) -> Self:
        """Return the pattern with its last stage changed by a call."""
        copy = attrs.evolve(self, stage=stage)
        self._usage.returned(call, copy, copy._usage)
        return copy
