# SPDX-License-Identifier: Apache-2.0
"""A pattern in the compiler's form: linked stages, last to first."""

from __future__ import annotations

import weakref
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import attrs

from pyflinkcep.conditions import BooleanConditions, IterativeCondition
from pyflinkcep.errors import Place, UnusedResultWarning, caller
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.display import one_line, stage_table
from pyflinkcep.pattern.stage import Change, Quantifier, Stage, Times, WithinType

if TYPE_CHECKING:
    from pyflinkcep.show import Diagram


@attrs.define(eq=False)
class _Result:
    """The result of one call, its caller, and its later use."""

    call: str
    place: str
    pattern: weakref.ref[Any]
    used: bool = False
    shown: bool = False
    told: bool = False
    changed: list[_Result] = attrs.field(factory=list)

    def is_lost(self) -> bool:
        """Whether neither it nor a copy can still be used; notebooks keep what they show."""
        is_away = self.shown or self.pattern() is None
        return not self.used and is_away and all(copy.is_lost() for copy in self.changed)


class Usage:
    """
    The use of one pattern and of its changed copies.

    A copy is lost if it is gone, or was only shown at a prompt, and was used at most for copies
    that are lost too. Using the original after that suggests a forgotten assignment.
    """

    __slots__ = ("_origin", "_results")

    def __init__(self) -> None:
        self._origin: _Result | None = None
        self._results: list[_Result] = []

    def returned(self, call: str, copy: Any, usage: Usage) -> None:
        """Record that a call returned a changed copy, and the usage of the copy."""
        self._tell_lost()
        frame = caller()
        place = f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else "?"
        usage._origin = _Result(call, place, weakref.ref(copy))
        self._results = [result for result in self._results if not (result.used or result.told)]
        self._results.append(usage._origin)
        if self._origin is not None:
            self._origin.changed.append(usage._origin)

    def used(self) -> None:
        """Record that the pattern is used, and warn of lost copies."""
        if self._origin is not None:
            self._origin.used = True
        self._tell_lost()

    def shown(self) -> None:
        """Record that the pattern is shown at a prompt."""
        if self._origin is not None:
            self._origin.shown = True

    def __reduce__(self) -> tuple[type[Usage], tuple[()]]:
        return Usage, ()

    def _tell_lost(self) -> None:
        for result in self._results:
            if result.is_lost() and not result.told:
                result.told = True
                _warn(result)


def _warn(result: _Result) -> None:
    Place.here().warn(
        f"the result of {result.call}(...) at {result.place} was dropped, and the pattern is "
        f"used without it: patterns are immutable. Write pattern = pattern.{result.call}(...).",
        UnusedResultWarning,
    )


PatternT = TypeVar("PatternT", bound="LinkedStages[Any]")


@attrs.frozen(eq=False, repr=False)
class LinkedStages(Generic[PatternT]):
    """
    A stage and the pattern before it, with Flink's getters for both.

    Attributes
    ----------
    stage : Stage
        The last stage.
    previous : LinkedStages or None
        The pattern without it; None for the first stage.
    skip : AfterMatchSkipStrategy
        The strategy passed to ``begin``.
    """

    _stage: Stage
    _previous: PatternT | None
    _skip: AfterMatchSkipStrategy
    _usage: Usage = attrs.field(factory=Usage, init=False)

    def getPrevious(self) -> PatternT | None:
        """Return the pattern without its last stage; None for the first stage."""
        return self._previous

    def getName(self) -> str:
        """Return the last stage's name."""
        return self._read().name

    def getQuantifier(self) -> Quantifier:
        """Return the last stage's quantifier."""
        return self._read().quantifier

    def getTimes(self) -> Times | None:
        """Return the range of repetitions; None without a quantifier."""
        return self._read().times

    def getCondition(self) -> IterativeCondition:
        """Return the last stage's condition; by default the one that always holds."""
        condition = self._read().condition
        return BooleanConditions.trueFunction() if condition is None else condition

    def getUntilCondition(self) -> IterativeCondition | None:
        """Return the condition that ends the loop."""
        return self._read().until

    def getWindowSize(self, withinType: WithinType = WithinType.FIRST_AND_LAST) -> int | None:
        """Return the window in milliseconds; None if none was set."""
        return self._read().windows.get(withinType)

    def getAfterMatchSkipStrategy(self) -> AfterMatchSkipStrategy:
        """Return the skip strategy passed to ``begin``."""
        return self._skip

    def stages(self) -> list[PatternT]:
        """Return the pattern up to each of its stages, first to last; a group counts as one."""
        chain = []
        stage: PatternT | None = cast("PatternT", self)
        while stage is not None:
            stage._usage.used()
            chain.append(stage)
            stage = stage._previous
        return chain[::-1]

    def with_conditions(self, change: Change) -> PatternT:
        """Return the pattern with each condition replaced, including those inside groups."""
        made: PatternT | None = None
        for part in self.stages():
            made = part._replaced(part._stage.with_conditions(change), made, change)
        return cast("PatternT", made)

    def describe(self) -> str:
        """Return the pattern on one line, such as ``a → b+ ⇒ c``; for logs and job names."""
        self._usage.used()
        return one_line(stages_of(self))

    def diagram(self, automaton: bool = False) -> Diagram:
        """
        Return a picture of the pattern, which a notebook shows.

        Parameters
        ----------
        automaton : bool
            Whether to draw the states that the pattern is compiled to, with the edges that take an
            event, ignore it or try it on the next state, instead of its stages.

        Returns
        -------
        Diagram
            The picture, with ``svg``, ``mermaid``, ``dot`` and ``save(path)``.

        Raises
        ------
        MalformedPatternException
            If the automaton is asked for and the pattern cannot run.

        Examples
        --------
        >>> from pyflinkcep import Pattern
        >>> pattern = Pattern.begin("a").followedBy("b").oneOrMore()
        >>> pattern.diagram()
        Diagram(a → b+)
        >>> pattern.diagram(automaton=True).svg.startswith("<svg")
        True
        """
        self._usage.used()
        if automaton:
            return cast("Diagram", import_module("pyflinkcep").automaton_diagram(self))
        return self._drawn()

    def __repr__(self) -> str:
        self._usage.shown()
        return f"Pattern({one_line(stages_of(self))})"

    def _repr_html_(self) -> str:
        self._usage.shown()
        chain = stages_of(self)
        picture = self._drawn().html
        table = stage_table(chain, self._skip)
        return f"{picture}<details><summary>as a table</summary>{table}</details>"

    def _drawn(self) -> Diagram:
        """Return the stages as a diagram, whose modules no worker needs."""
        from pyflinkcep.pattern.stage_diagram import stage_diagram

        return stage_diagram(stages_of(self), self._skip)

    def _replaced(self, stage: Stage, previous: Any, change: Change) -> PatternT:
        return cast("PatternT", attrs.evolve(self, stage=stage, previous=previous))

    def _read(self) -> Stage:
        self._usage.used()
        return self._stage


def stage_of(pattern: LinkedStages[Any]) -> Stage:
    """Return the settings of the last stage of a pattern."""
    return pattern._stage


def stages_of(pattern: LinkedStages[Any]) -> tuple[Stage, ...]:
    """Return the settings of the stages of a pattern, first to last."""
    chain = [pattern._stage]
    before = pattern._previous
    while before is not None:
        chain.append(before._stage)
        before = before._previous
    return tuple(chain[::-1])
