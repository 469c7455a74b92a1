# SPDX-License-Identifier: Apache-2.0
"""The fluent pattern builder: ``Pattern.begin("a").where(...).followedBy("b")...``."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from math import factorial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex, cast, overload

import attrs

from pyflinkcep.conditions import BooleanConditions, IterativeCondition, SubtypeCondition
from pyflinkcep.errors import (
    Contiguity,
    InvalidArgumentError,
    MalformedPatternException,
    MissingConditionError,
    NotSupportedError,
    Place,
    UnusedResultWarning,
    caller,
)
from pyflinkcep.pattern.aftermatch import AfterMatchSkipStrategy
from pyflinkcep.pattern.coercion import Condition, as_condition, as_count
from pyflinkcep.pattern.display import SHOWN, one_line, stage_table
from pyflinkcep.pattern.stage import (
    Change,
    Combination,
    ConsumingStrategy,
    Quantifier,
    Stage,
    Times,
    WithinType,
)

if TYPE_CHECKING:
    from pyflinkcep.show import Diagram


_MOST_PARTS = 6
"""The most patterns of ``allOf``; it has that many factorial orders."""

_STRATEGIES = {shown.method: strategy for strategy, shown in SHOWN.items() if shown.between}


def joined_by(name: object) -> ConsumingStrategy:
    """Return the contiguity that a method of ``Pattern`` stands for."""
    if isinstance(name, str) and name in _STRATEGIES:
        return _STRATEGIES[name]
    raise InvalidArgumentError(
        f"allOf: expected joinedBy to be one of {list(_STRATEGIES)}, got {name!r}",
        "write joinedBy='next' for patterns directly after one another",
    )


def combined(combination: Combination, chains: Sequence[tuple[Stage, ...]]) -> Stage:
    """Return the stage that combines patterns."""
    method = combination.method
    if not chains:
        raise InvalidArgumentError(
            f"{method}: expected at least one Pattern", f"write Pattern.{method}(p, q)"
        )
    quantifier = Quantifier.one(ConsumingStrategy.STRICT)
    parts = tuple(Stage("GroupPattern", quantifier, inside=chain) for chain in chains)
    for part in parts:
        _check_part(part, f"{method}: ({one_line(part.inside)})")
    if combination.in_any_order:
        _check_orders(parts)
    elif sum(part.may_be_empty for part in parts) > 1:
        raise MalformedPatternException(
            "oneOf: several alternatives may match without an event, and so match alike",
            "leave optional() out of them, and write oneOf(...).optional()",
        )
    return Stage("GroupPattern", quantifier, inside=parts, combination=combination)


def _check_part(part: Stage, where: str) -> None:
    for stage in _with_groups(part):
        if WithinType.FIRST_AND_LAST in stage.windows:
            raise NotSupportedError(
                f"{where} has a window of its own: Flink's automaton has one window for a match",
                "write within(...) after the whole pattern",
            )
    last = part
    while last.inside and last.combination is None:
        last = last.inside[-1]
    if last.quantifier.consumingStrategy is ConsumingStrategy.NOT_FOLLOW:
        raise NotSupportedError(
            f"{where} ends with the NOT stage {last.name!r}, which only a whole pattern may",
            "write notFollowedBy after the whole, or between stages",
        )


def _check_orders(parts: Sequence[Stage]) -> None:
    if len(parts) > _MOST_PARTS:
        raise InvalidArgumentError(
            f"allOf: {len(parts)} patterns have {factorial(len(parts)):,} orders: expected at most "
            f"{_MOST_PARTS} patterns ({factorial(_MOST_PARTS)} orders)",
            "write one stage with times(n) and a condition that covers them, and check the events "
            "of a match afterwards",
        )
    for part in parts:
        where = f"allOf: ({one_line(part.inside)})"
        if part.may_be_empty:
            raise MalformedPatternException(
                f"{where} may match without an event, and has no place in an order then",
                "leave optional() out, and write oneOf(allOf(p, q), …) with the shorter pattern",
            )
        for stage in part.singles():
            if stage.times is not None and stage.times.window_ms is not None:
                raise NotSupportedError(
                    f"{where}: stage {stage.name!r} has a window for the gaps of its repetitions",
                    "write within(...) after the whole pattern",
                )


def _with_groups(stage: Stage) -> list[Stage]:
    return [stage, *(found for part in stage.inside for found in _with_groups(part))]


# --- results that are dropped


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


# --- patterns


@attrs.frozen(eq=False, repr=False)
class Pattern:
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

    _stage: Stage  # The last stage
    _previous: Pattern | None  # The pattern without it; None for the first stage
    _skip: AfterMatchSkipStrategy  # The strategy passed to ``begin``
    _usage: Usage = attrs.field(factory=Usage, init=False)

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

    # --- what it is

    def getPrevious(self) -> Pattern | None:
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

    def stages(self) -> list[Pattern]:
        """Return the pattern up to each of its stages, first to last; a group counts as one."""
        chain = []
        stage: Pattern | None = self
        while stage is not None:
            stage._usage.used()
            chain.append(stage)
            stage = stage._previous
        return chain[::-1]

    def with_conditions(self, change: Change) -> Pattern:
        """Return the pattern with each condition replaced, including those inside groups."""
        made: Pattern | None = None
        for part in self.stages():
            made = part._replaced(part._stage.with_conditions(change), made, change)
        assert made is not None
        return made

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

    # --- patterns as data

    @staticmethod
    def fromJson(
        document: Mapping[str, Any] | str,
        conditions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Pattern:
        """
        Return the pattern of a document, in the JSON of dynamic Flink CEP.

        Nothing in it is evaluated as code. Keys that mean nothing here are ignored.

        Parameters
        ----------
        document : dict or str
            The document, or its text.
        conditions : dict, optional
            The classes that conditions of type CLASS may name: for each name a function that takes
            the condition's ``args`` and returns anything that :meth:`where` takes.

        Returns
        -------
        Pattern
            The pattern. Conditions in AviatorScript become SQL, in which a comparison with a
            missing value does not hold.

        Raises
        ------
        InvalidArgumentError
            If the document cannot be read; its ``path`` says where: keys and positions.

        Examples
        --------
        >>> pattern = Pattern.begin("low").where("price < 5").next("high").where("price > 20")
        >>> Pattern.fromJson(pattern.toJson())
        Pattern(low ⇒ high)
        """
        read = import_module("pyflinkcep").pattern_from_json
        return cast("Pattern", read(document, conditions))

    def toJson(self, conditions: Mapping[str, Callable[..., Any]] | None = None) -> dict[str, Any]:
        """
        Return the pattern as a document of dynamic Flink CEP, which :meth:`fromJson` reads.

        SQL that AviatorScript can say becomes AVIATOR; other SQL, windows inside of the pattern,
        ``oneOf`` and ``allOf`` are written in ways that Flink does not know.

        Parameters
        ----------
        conditions : dict, optional
            Names for conditions in Python: functions without arguments that return them, and
            classes of ``subtype``.

        Returns
        -------
        dict
            Values that ``json.dumps`` writes.

        Raises
        ------
        NotSupportedError
            If a condition is a Python function that `conditions` has no name for, or a Column.

        Examples
        --------
        >>> document = Pattern.begin("low").where("price < 5").toJson()
        >>> document["nodes"][0]["condition"]
        {'type': 'AVIATOR', 'expression': 'price < 5'}
        """
        self._usage.used()
        write = import_module("pyflinkcep").pattern_to_json
        return cast("dict[str, Any]", write(self, conditions))

    # --- helpers

    def _replaced(self, stage: Stage, previous: Pattern | None, change: Change) -> Pattern:
        return attrs.evolve(self, stage=stage, previous=previous)

    def _read(self) -> Stage:
        self._usage.used()
        return self._stage

    def _with(self, call: str, stage: Stage) -> Self:
        """Return the pattern with its last stage changed by a call."""
        copy = attrs.evolve(self, stage=stage)
        self._usage.returned(call, copy, copy._usage)
        return copy

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

    def _replaced(self, stage: Stage, previous: Pattern | None, change: Change) -> Pattern:
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


def stage_of(pattern: Pattern) -> Stage:
    """Return the settings of the last stage of a pattern."""
    return pattern._stage


def stages_of(pattern: Pattern) -> tuple[Stage, ...]:
    """Return the settings of the stages of a pattern, first to last."""
    chain = [pattern._stage]
    before = pattern._previous
    while before is not None:
        chain.append(before._stage)
        before = before._previous
    return tuple(chain[::-1])
