# SPDX-License-Identifier: Apache-2.0
"""Random patterns and inputs for hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
from hypothesis import strategies as st

from pyflinkcep import AfterMatchSkipStrategy, CepError, Pattern, SimpleCondition, WithinType
from pyflinkcep.conditions import ConditionContext
from pyflinkcep.engines.flink.nfa import NFACompiler, State, StateTransitionAction

NAMES = "abc"


@attrs.frozen
class Event:
    """An event with a name to match and a number to tell it by."""

    name: str
    number: int
    price: int


@attrs.frozen
class NameIn(SimpleCondition):
    """The event has one of some names."""

    names: frozenset[str]

    def filter(self, value: Event, ctx: Any = None) -> bool:
        """Look the name up."""
        return value.name in self.names


@attrs.frozen(eq=False)
class Rising:
    """The price is above that of the last event accepted for a stage."""

    stage: str

    def __call__(self, event: Event, ctx: ConditionContext) -> bool:
        """Compare, reading the partial match."""
        earlier = list(ctx.getEventsForPattern(self.stage))
        return not earlier or event.price > earlier[-1].price


@attrs.frozen
class StageSpec:
    """One stage: its contiguity, what it takes, and the builder calls made on it."""

    op: str
    names: frozenset[str]
    rising: bool = False
    calls: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    group: tuple[StageSpec, ...] = ()

    @property
    def is_not(self) -> bool:
        """Whether the stage is about an absent event."""
        return self.op.startswith("not")


@attrs.frozen
class PatternSpec:
    """A whole pattern, as data."""

    stages: tuple[StageSpec, ...]
    skip: AfterMatchSkipStrategy | None = None
    window: tuple[int, str] | None = None

    @property
    def ends_with_not(self) -> bool:
        """Whether the last stage, groups opened, is about an absent event."""
        last = self.stages[-1]
        while last.group:
            last = last.group[-1]
        return last.is_not

    def conditions(self) -> dict[str, frozenset[str]]:
        """Return the names each stage takes, by stage."""
        return dict(_conditions(self.stages, ""))

    def build(self, condition: Callable[[frozenset[str]], Any] = NameIn) -> Pattern:
        """Build the pattern, its conditions on names as told; raise what the builder raises."""
        pattern = _build(self.stages, self.skip, "", condition)
        if self.window is not None:
            length, kind = self.window
            pattern = pattern.within(timedelta(milliseconds=length), WithinType[kind])
        return pattern


def _conditions(stages: tuple[StageSpec, ...], prefix: str) -> Any:
    for number, stage in enumerate(stages):
        name = f"{prefix}s{number}"
        if stage.group:
            yield from _conditions(stage.group, f"{name}_")
        else:
            yield name, stage.names


def _build(
    stages: tuple[StageSpec, ...],
    skip: AfterMatchSkipStrategy | None,
    prefix: str,
    condition: Callable[[frozenset[str]], Any],
) -> Pattern:
    pattern: Any = Pattern
    for number, stage in enumerate(stages):
        name = f"{prefix}s{number}"
        what = _build(stage.group, None, f"{name}_", condition) if stage.group else name
        first = [skip] if number == 0 and skip is not None else []
        pattern = getattr(pattern, stage.op)(what, *first)
        if not stage.group:
            pattern = pattern.where(condition(stage.names))
            if stage.rising:
                pattern = pattern.where(Rising(name))
        for method, arguments in stage.calls:
            given = (condition(a.names) if isinstance(a, NameIn) else a for a in arguments)
            pattern = getattr(pattern, method)(*given)
    assert isinstance(pattern, Pattern)
    return pattern


_NAME_SETS = st.frozensets(st.sampled_from(NAMES), min_size=1, max_size=2)
_QUANTIFIERS = st.one_of(
    st.just(("oneOrMore", ())),
    st.tuples(st.just("times"), st.tuples(st.integers(1, 3))),
    st.tuples(st.just("times"), st.sampled_from([(1, 2), (2, 3), (0, 2)])),
    st.tuples(st.just("timesOrMore"), st.tuples(st.integers(1, 2))),
)
_AFTER_NOTHING = st.sampled_from(["next", "followedBy", "followedByAny"])
_CONTIGUITY = st.sampled_from(
    ["next", "followedBy", "followedBy", "followedByAny", "notNext", "notFollowedBy"]
)


@st.composite
def _calls(draw: st.DrawFn) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    calls: list[tuple[str, tuple[Any, ...]]] = []
    if draw(st.booleans()):
        quantifier = draw(_QUANTIFIERS)
        calls.append(quantifier)
        inner = draw(st.sampled_from(["", "", "consecutive", "allowCombinations", "greedy"]))
        if inner:
            calls.append((inner, ()))
        if quantifier[0] in ("oneOrMore", "timesOrMore") and draw(st.integers(0, 4)) == 0:
            calls.append(("until", (NameIn(draw(_NAME_SETS)),)))
    if draw(st.integers(0, 3)) == 0:
        calls.append(("optional", ()))
    return tuple(calls)


@st.composite
def _stages(draw: st.DrawFn, depth: int = 0) -> tuple[StageSpec, ...]:
    stages: list[StageSpec] = []
    for number in range(draw(st.integers(1, 4 if depth == 0 else 2))):
        op = "begin" if number == 0 else draw(_CONTIGUITY)
        if op.startswith("not"):
            stages.append(StageSpec(op, draw(_NAME_SETS)))
        elif depth < 2 and draw(st.integers(0, 6)) == 0:
            calls = draw(_calls())
            stages.append(StageSpec(op, frozenset(), False, calls, draw(_stages(depth + 1))))
        else:
            rising = draw(st.integers(0, 5)) == 0
            stages.append(StageSpec(op, draw(_NAME_SETS), rising, draw(_calls())))
    return tuple(stages)


_SKIPS = st.sampled_from(
    [
        None,
        None,
        AfterMatchSkipStrategy.skipToNext(),
        AfterMatchSkipStrategy.skipPastLastEvent(),
        AfterMatchSkipStrategy.skipToFirst("s0"),
        AfterMatchSkipStrategy.skipToLast("s0"),
    ]
)
_WINDOWS = st.one_of(
    st.none(),
    st.tuples(
        st.integers(2, 9),
        st.sampled_from(["FIRST_AND_LAST", "FIRST_AND_LAST", "PREVIOUS_AND_CURRENT"]),
    ),
)


def is_buildable(spec: PatternSpec) -> bool:
    """Whether Flink would build the pattern, and not hang on it."""
    try:
        nfa = NFACompiler.compile(spec.build())
    except CepError:
        return False
    return not any(_reaches_itself(table.state) for table in nfa.tables.values())


def _reaches_itself(state: State) -> bool:
    """Whether PROCEED edges lead in a circle, on which Flink hangs."""
    reached: list[State] = []
    found = [state]
    for at in found:
        targets = [t.target for t in at.transitions if t.action is StateTransitionAction.PROCEED]
        reached += targets
        found += [target for target in targets if target not in found]
    return state in reached


def patterns(windows: st.SearchStrategy[Any] = _WINDOWS) -> st.SearchStrategy[PatternSpec]:
    """Return patterns of every kind that can be built and compiled and do not hang Flink."""
    return st.builds(PatternSpec, _stages(), _SKIPS, windows).filter(is_buildable)


@st.composite
def timed_events(draw: st.DrawFn, most: int = 12) -> list[tuple[Event, int]]:
    """Return events with times that never fall; several may have the same time."""
    time, events = 1, []
    rows = st.tuples(st.sampled_from(NAMES), st.integers(1, 4), st.sampled_from([0, 1, 1, 3]))
    for number, (name, price, step) in enumerate(draw(st.lists(rows, max_size=most))):
        time += step
        events.append((Event(name, number, price), time))
    return events


@st.composite
def plain_patterns(draw: st.DrawFn) -> PatternSpec:
    """Return patterns of single mandatory stages: no NOT, loop, group, window or skip strategy."""
    stages = [
        StageSpec("begin" if number == 0 else draw(_AFTER_NOTHING), draw(_NAME_SETS))
        for number in range(draw(st.integers(1, 4)))
    ]
    return PatternSpec(tuple(stages))
