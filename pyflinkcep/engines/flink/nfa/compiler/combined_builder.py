# SPDX-License-Identifier: Apache-2.0
"""Groups of several patterns as states: alternatives, and patterns in any order."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from pyflinkcep.conditions import IterativeCondition, RichOrCondition
from pyflinkcep.engines.flink.nfa.compiler.graph_builder import (
    GraphBuilder,
    make_greedy,
    true_condition,
)
from pyflinkcep.engines.flink.nfa.state import State, StateType
from pyflinkcep.errors import NotSupportedError
from pyflinkcep.pattern.linked_stages import stage_of, stages_of
from pyflinkcep.pattern.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.stage import ConsumingStrategy, Quantifier, QuantifierProperty


class CombinedBuilder(GraphBuilder):
    """
    Builds the automaton of a pattern, groups of several patterns included.

    A *fork* is a state from which an event is tried on the first states of several patterns, its
    *branches*. It waits for nothing: an event that they ignore leads to the branches themselves.
    So each branch goes on as if it were the only one, and what a sequence says about the state
    after it holds for a fork and its branches.

    ``allOf`` has a fork for each set of patterns that are left, not for each order.

    Differs from Flink, which has no such groups. A pattern without any is built as there.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._branches: dict[State, int] = {}  # by fork: how many of its first edges lead to one
        self._uneven: list[State] = []  # forks whose branches have different gaps before them
        self._outside: dict[GroupPattern, tuple[Pattern, GroupPattern | None]] = {}
        super().__init__(pattern)
        if any(fork is not self.start for fork in self._uneven):
            raise NotSupportedError(
                "oneOf or allOf: the first stages of its patterns differ in the window for the gap "
                "before them: Flink's automaton has one state before all of them",
                "give them the same within(gap, WithinType.PREVIOUS_AND_CURRENT), or none",
            )

    def _convert_group(self, group: GroupPattern, sink: State) -> State:
        combination = group.combination
        if combination is None:
            return super()._convert_group(group, sink)
        if any(part.may_be_empty for part in stage_of(group).inside) and (
            self._current_not_conditions()
        ):
            raise NotSupportedError(
                "oneOf: an alternative that may match without an event follows a notFollowedBy "
                "stage, which Flink's automaton would end with any alternative",
                "leave optional() out of the alternative, and write oneOf(...).optional()",
            )
        if sink.transitions:
            sink = self._copy_without_transitive_nots(sink)
        if combination.in_any_order:
            return self._in_any_order(group, sink, combination.joinedBy)
        around = self._around(group)
        branches = [
            self._convert_chain(_led(part, around), around, self._own(sink, part), self._following)
            for part in group.getParts()
        ]
        return self._fork(branches)

    def _in_any_order(self, group: GroupPattern, sink: State, joined: ConsumingStrategy) -> State:
        """Build one fork for each set of parts that are left."""
        parts = group.getParts()
        later = self._around(group, joined)
        made: dict[frozenset[int], State] = {frozenset(): sink}

        def before(left: frozenset[int]) -> State:
            if left not in made:
                branches = [branch(number, left, later) for number in sorted(left)]
                made[left] = self._fork(branches) if len(branches) > 1 else branches[0]
            return made[left]

        def branch(number: int, left: frozenset[int], around: GroupPattern) -> State:
            part, rest = parts[number], left - {number}
            following = None if rest else self._following
            sink = self._own(before(rest), part)
            return self._convert_chain(_led(part, around), around, sink, following)

        first, every = self._around(group), frozenset(range(len(parts)))
        return self._fork([branch(number, every, first) for number in sorted(every)])

    def _fork(self, branches: list[State]) -> State:
        fork = self._create_state(self._stage.getName(), StateType.NORMAL)
        for branch in reversed(branches):  # the last edge that passes an event on comes first
            fork.add_proceed(branch, true_condition(self._group))
        self._branches[fork] = len(branches)
        gaps = {self.window_times.get(branch.name) for branch in branches}
        gap = gaps.pop()
        if gaps:
            self._uneven.append(fork)
        elif gap is not None:
            self.window_times[fork.name] = gap
        return fork

    # --- what is around the parts

    def _around(
        self, group: GroupPattern, strategy: ConsumingStrategy | None = None
    ) -> GroupPattern:
        """Return the group as its parts see it."""
        is_first = strategy is None and self._first_of_loop.get(id(group), True)
        quantifier = Quantifier.one(strategy or self._strategy_into(group, is_first))
        until, outer = group.getUntilCondition(), self._group
        if outer is not None and (ends := outer.getUntilCondition()) is not None:
            until = ends if until is None else RichOrCondition(ends, until)
        around = attrs.evolve(
            group, stage=attrs.evolve(stage_of(group), quantifier=quantifier, until=until)
        )
        if is_first:
            self._outside[around] = group, outer
        return around

    def _strategy_into(self, group: GroupPattern, is_first: bool) -> ConsumingStrategy:
        quantifier, outer = group.getQuantifier(), self._group
        if is_first and outer is not None and group.getPrevious() is None:
            is_first, quantifier = self._is_first_of_loop(), outer.getQuantifier()
        return quantifier.consumingStrategy if is_first else quantifier.innerConsumingStrategy

    def _nots_around(self, group: GroupPattern | None) -> Iterator[tuple[IterativeCondition, str]]:
        if group in self._outside:
            yield from self._nots_before(*self._outside[group])

    def _own(self, sink: State, part: Pattern) -> State:
        """Return a state for a part to go on to, a copy if the part changes it."""
        is_greedy = any(
            single.quantifier.hasProperty(QuantifierProperty.GREEDY)
            for stage in stages_of(part)
            for single in stage.singles()
        )
        if not is_greedy or not sink.transitions:
            return sink
        copy = self._copy(sink)
        for old, new in zip(self._with_branches(sink), self._with_branches(copy), strict=True):
            if old.name in self.window_times:
                self.window_times[new.name] = self.window_times[old.name]
        return copy

    # --- forks stand for their branches

    def _with_branches(self, state: State) -> Iterator[State]:
        yield state
        for edge in state.transitions[: self._branches.get(state, 0)]:
            yield from self._with_branches(edge.target)

    def _waiting(self, state: State) -> Iterator[State]:
        """Yield the state, or the branches of a fork."""
        return (found for found in self._with_branches(state) if found not in self._branches)

    def _make_greedy(self, sink: State, take: IterativeCondition) -> None:
        for state in self._with_branches(sink):
            make_greedy(state, take)

    def _add_stop_states(self, state: State) -> None:
        if state not in self._branches:
            super()._add_stop_states(state)
            return
        for condition, name in self._current_not_conditions():
            stop = self._stop_state(condition, name)
            for waiting in self._waiting(state):
                if all(edge.target is not stop for edge in waiting.transitions):
                    waiting.add_proceed(stop, condition)

    def _add_stop_state_to_looping(self, state: State) -> None:
        for waiting in self._waiting(state):
            super()._add_stop_state_to_looping(waiting)

    def _copy(self, state: State) -> State:
        copy = super()._copy(state)
        count = self._branches.get(state, 0)
        for edge in copy.transitions[:count]:
            edge.target = self._copy(edge.target)
        if count:
            self._branches[copy] = count
        return copy

    def _copy_without_stops(self, sink: State, names: set[str], path: list[State]) -> State:
        copy = super()._copy_without_stops(sink, names, path)
        if sink in self._branches:
            self._branches[copy] = self._branches[sink]
        return copy


def _led(part: Pattern, around: GroupPattern) -> Pattern:
    """Return a part whose first stage follows what is before the group, also if it is a group."""
    first, *others = part.stages()
    strategy = around.getQuantifier().consumingStrategy
    part = attrs.evolve(first, stage=stage_of(first).joined(strategy, None))
    for stage in others:
        part = attrs.evolve(stage, previous=part)
    return part
