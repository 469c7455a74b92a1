# SPDX-License-Identifier: Apache-2.0
"""From a pattern to its automaton: states and transitions, from the last stage to the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
    RichOrCondition,
    SimpleCondition,
)
from pyflinkcep.engines.flink.nfa.atoms import Atom, Atoms, known_value
from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.state import (
    State,
    StateTable,
    StateTransition,
    StateTransitionAction,
    StateType,
    endless_loop,
    reached,
)
from pyflinkcep.errors import MalformedPatternException, NotSupportedError, did_you_mean
from pyflinkcep.expressions.tree import WHOLE, MatchExpression
from pyflinkcep.pattern.pattern import GroupPattern, Pattern, stage_of, stages_of
from pyflinkcep.pattern.stage import (
    ConsumingStrategy,
    Quantifier,
    QuantifierProperty,
    Times,
    WithinType,
)


class NFAStateNameHandler:
    """
    Hands out unique internal names.

    Ports ``org.apache.flink.cep.nfa.compiler.NFAStateNameHandler`` (Flink 2.3.0).
    Differs from Flink: a stage's name may contain a colon. Flink recovers it from the internal
    name, cut at the first colon, so that ``x:y`` and ``x:z`` share the key ``x`` in a match.

    >>> names = NFAStateNameHandler()
    >>> names.unique_internal_name("b"), names.unique_internal_name("b")
    ('b', 'b:0')
    """

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counters: dict[str, int] = {}  # by base: all smaller counters are taken

    def check_name_uniqueness(self, name: str) -> None:
        """Reserve a user's name; raise MalformedPatternException if it is taken."""
        if name in self._used:
            raise MalformedPatternException(
                f"Duplicate pattern name: {name}. Names must be unique.",
                "give every stage a unique name, also inside groups",
            )
        self._used.add(name)

    def unique_internal_name(self, base: str) -> str:
        """Return `base`, or `base` with the smallest free counter."""
        candidate, counter = base, self._counters.get(base, 0)
        while candidate in self._used:
            candidate = f"{base}:{counter}"
            counter += 1
        self._counters[base] = counter
        self._used.add(candidate)
        return candidate


def take_condition(stage: Pattern, group: GroupPattern | None) -> IterativeCondition:
    """Return the condition to take an event for the stage, false once its group's loop ends."""
    return _unless_group_ends(stage.getCondition(), group)


def true_condition(group: GroupPattern | None) -> IterativeCondition:
    """Return the condition that holds until the loop of the group ends."""
    return _unless_group_ends(BooleanConditions.trueFunction(), group)


def ignore_condition(
    stage: Pattern, group: GroupPattern | None, first_of_loop: bool
) -> IterativeCondition | None:
    """Return the condition to ignore an event before the stage; None if that is not allowed."""
    quantifier = stage.getQuantifier()
    strategy = quantifier.consumingStrategy
    if group is not None and stage.getPrevious() is None:
        quantifier = group.getQuantifier()
        strategy = (
            quantifier.consumingStrategy if first_of_loop else quantifier.innerConsumingStrategy
        )
    return _ignore_by_strategy(stage, group, strategy)


def inner_ignore_condition(stage: Pattern, group: GroupPattern | None) -> IterativeCondition | None:
    """
    Return the condition to ignore an event between repetitions; None if that is not allowed.

    As in Flink the first stage of a group repeats like the group; in alternatives like itself.
    """
    is_head = group is not None and group.combination is None and stage.getPrevious() is None
    source = group if group is not None and is_head else stage
    return _ignore_by_strategy(stage, group, source.getQuantifier().innerConsumingStrategy)


def extend_with_until(
    condition: IterativeCondition | None, until: IterativeCondition | None, is_take: bool
) -> IterativeCondition | None:
    """Return the condition of a loop's edge, which the loop's until condition closes."""
    if until is None:
        return condition
    if condition is None:
        return RichNotCondition(until) if is_take else None
    return RichAndCondition(RichNotCondition(until), condition)


def _ignore_by_strategy(
    stage: Pattern, group: GroupPattern | None, strategy: ConsumingStrategy
) -> IterativeCondition | None:
    if strategy is ConsumingStrategy.SKIP_TILL_NEXT:
        return _unless_group_ends(RichNotCondition(stage.getCondition()), group)
    if strategy is ConsumingStrategy.SKIP_TILL_ANY:
        return _unless_group_ends(BooleanConditions.trueFunction(), group)
    return None


def _unless_group_ends(
    condition: IterativeCondition, group: GroupPattern | None
) -> IterativeCondition:
    until = None if group is None else group.getUntilCondition()
    return condition if until is None else RichAndCondition(RichNotCondition(until), condition)


ENDING_STATE_NAME = "$endState$"


class GraphBuilder:
    """
    Builds the automaton of one pattern.

    Ports ``NFACompiler.NFAFactoryCompiler`` (Flink 2.3.0). ``_stage``, ``_following`` and
    ``_group`` are the current stage, the one after it and the group around it.

    Differs from Flink: there are groups of several patterns, and *forks* for them. A fork is a
    state from which an event is tried on the first states of several patterns, its *branches*. It
    waits for nothing: an event that they ignore leads to the branches themselves. So each branch
    goes on as if it were the only one, and what a sequence says about the state after it holds for
    a fork and its branches. ``allOf`` has a fork for each set of patterns that are left, not for
    each order. A pattern without any is built as in Flink.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.states: list[State] = []
        self.window_times: dict[str, int] = {}
        self._branches: dict[State, int] = {}  # by fork: how many of its first edges lead to one
        self._uneven: list[State] = []  # forks whose branches have different gaps before them
        self._outside: dict[GroupPattern, tuple[Pattern, GroupPattern | None]] = {}
        self._names = NFAStateNameHandler()
        self._stop_states: dict[str, State] = {}
        self._original_states: dict[str, State] = {}
        self._first_of_loop: dict[int, bool] = {}
        self._group: GroupPattern | None = None
        self._following: Pattern | None = None
        self._stage = pattern
        self.window_time = pattern.getWindowSize(WithinType.FIRST_AND_LAST)
        sink = self._create_state(ENDING_STATE_NAME, StateType.FINAL)
        self.start = self._convert_stage(self._create_middle_states(sink))
        self.start.kind = StateType.START
        if any(fork is not self.start for fork in self._uneven):
            raise NotSupportedError(
                "oneOf or allOf: the first stages of its patterns differ in the window for the gap "
                "before them: Flink's automaton has one state before all of them",
                "give them the same within(gap, WithinType.PREVIOUS_AND_CURRENT), or none",
            )

    # --- the chain

    def _create_middle_states(self, sink: State) -> State:
        """Build all stages of the chain except the first, back to front."""
        last = sink
        while (previous := self._stage.getPrevious()) is not None:
            match self._strategy(self._stage):
                case ConsumingStrategy.NOT_FOLLOW:
                    last = self._create_pending_state(last) or last
                case ConsumingStrategy.NOT_NEXT:
                    last = self._create_not_next_state(last)
                case _:
                    last = self._convert_stage(last)
            self._following, self._stage = self._stage, previous
            window = previous.getWindowSize(WithinType.FIRST_AND_LAST)
            if window is not None and (self.window_time is None or window < self.window_time):
                self.window_time = window
        return last

    def _create_pending_state(self, last: State) -> State | None:
        """Build the final wait for the window to pass without the NOT event."""
        gap = self._stage.getWindowSize(WithinType.PREVIOUS_AND_CURRENT)
        if last.kind is not StateType.FINAL or (gap is None and self.window_time is None):
            return None
        not_condition = take_condition(self._stage, self._group)
        pending = self._create_stage_state(StateType.PENDING)
        stop = self._stop_state(not_condition, self._stage.getName())
        pending.add_proceed(stop, not_condition)
        pending.add_ignore(pending, RichNotCondition(not_condition))
        return pending

    def _create_not_next_state(self, last: State) -> State:
        not_condition = take_condition(self._stage, self._group)
        state = self._create_stage_state(StateType.NORMAL)
        stop = self._stop_state(not_condition, self._stage.getName())
        if last.kind is StateType.FINAL:
            state.add_ignore(last, RichNotCondition(not_condition))
        else:
            state.add_proceed(last, RichNotCondition(not_condition))
        state.add_proceed(stop, not_condition)
        return state

    def _convert_stage(self, sink: State) -> State:
        """Build the states of the current stage in front of `sink`; return its entry state."""
        stage, times = self._stage, self._stage.getTimes()
        if self._has(QuantifierProperty.LOOPING):
            assert times is not None
            self._mark_first_of_loop(value=False)
            looping = self._create_looping(self._copy_without_transitive_nots(sink))
            self._mark_first_of_loop(value=True)
            entry = self._create_times_state(looping, sink, times)
        elif self._has(QuantifierProperty.TIMES):
            assert times is not None
            entry = self._create_times_state(sink, sink, times)
        else:
            entry = self._create_singleton_state(
                sink,
                sink,
                take_condition(stage, self._group),
                ignore_condition(stage, self._group, self._is_first_of_loop()),
                self._has(QuantifierProperty.OPTIONAL),
            )
        self._add_stop_states(entry)
        return entry

    # --- building blocks

    def _create_singleton_state(
        self,
        sink: State,
        proceed: State | None,
        take: IterativeCondition,
        ignore: IterativeCondition | None,
        is_optional: bool,
    ) -> State:
        """Build one repetition of the stage; an optional one may be skipped to `proceed`."""
        stage = self._stage
        if isinstance(stage, GroupPattern):
            return self._create_group_state(stage, sink, proceed, is_optional)
        state = self._create_stage_state(StateType.NORMAL)
        target = self._copy_without_transitive_nots(sink)
        state.add_take(target, take)
        if is_optional:
            assert proceed is not None
            self._add_proceed_of_optional(state, proceed)
        if ignore is not None:
            twin = state
            if is_optional or self._is_head_of_optional_group(stage):
                # Without a continuation, so that skipping the optional part branches only once.
                twin = self._create_state(stage.getName(), StateType.NORMAL)
                twin.add_take(target, take)
                twin.add_ignore(twin, ignore)
                self._add_stop_states(twin)
            state.add_ignore(twin, ignore)
        return state

    def _add_proceed_of_optional(self, state: State, proceed: State) -> None:
        true, until = true_condition(self._group), self._stage.getUntilCondition()
        if not self._has(QuantifierProperty.GREEDY) or until is None:
            state.add_proceed(proceed, true)
            return
        original = self._original_states.get(proceed.name)
        if original is None:
            raise MalformedPatternException(
                f"stage {self._stage.getName()!r}: an optional greedy loop with until() after a "
                "notFollowedBy stage crashes Flink at run time",
                "drop greedy() or optional(), or use notNext() instead of notFollowedBy()",
            )
        state.add_proceed(original, RichAndCondition(true, until))
        state.add_proceed(proceed, RichAndCondition(true, RichNotCondition(until)))

    def _create_times_state(self, sink: State, proceed: State, times: Times) -> State:
        """Build the repetitions of a range, the optional ones last in the chain."""
        stage, until = self._stage, self._stage.getUntilCondition()
        inner = extend_with_until(inner_ignore_condition(stage, self._group), until, is_take=False)
        take = extend_with_until(take_condition(stage, self._group), until, is_take=True)
        assert take is not None
        self._mark_first_of_loop(value=False)
        if self._has(QuantifierProperty.GREEDY) and times.from_ != times.to:
            self._make_greedy(sink, take)
        last = sink
        for _ in range(times.from_, times.to):
            last = self._create_singleton_state(last, proceed, take, inner, is_optional=True)
            self._add_stop_state_to_looping(last)
        for _ in range(times.from_ - 1):
            last = self._create_singleton_state(last, None, take, inner, is_optional=False)
            self._add_stop_state_to_looping(last)
        self._mark_first_of_loop(value=True)
        return self._create_singleton_state(
            last,
            proceed,
            take,
            ignore_condition(stage, self._group, self._is_first_of_loop()),
            self._has(QuantifierProperty.OPTIONAL),
        )

    def _create_looping(self, sink: State) -> State:
        """Build the state that stays open for any further repetition."""
        stage, until = self._stage, self._stage.getUntilCondition()
        if isinstance(stage, GroupPattern):
            return self._create_looping_group_state(stage, sink)
        ignore = extend_with_until(inner_ignore_condition(stage, self._group), until, is_take=False)
        take = extend_with_until(take_condition(stage, self._group), until, is_take=True)
        true = true_condition(self._group)
        state = self._create_stage_state(StateType.NORMAL)
        if self._has(QuantifierProperty.GREEDY):
            if until is None:
                state.add_proceed(sink, true)
            else:
                original = self._copy(sink)
                self._original_states[sink.name] = original
                state.add_proceed(original, RichAndCondition(true, until))
                state.add_proceed(sink, RichAndCondition(true, RichNotCondition(until)))
            self._make_greedy(sink, take_condition(stage, self._group))
        else:
            state.add_proceed(sink, true)
        state.add_take(state, take)
        self._add_stop_state_to_looping(state)
        if ignore is not None:
            twin = self._create_state(stage.getName(), StateType.NORMAL)
            twin.add_take(state, take)
            twin.add_ignore(twin, ignore)
            state.add_ignore(twin, ignore)
            self._add_stop_state_to_looping(twin)
        return state

    def _create_group_state(
        self, group: GroupPattern, sink: State, proceed: State | None, is_optional: bool
    ) -> State:
        head = self._convert_group(group, sink)
        if is_optional:
            assert proceed is not None
            head.add_proceed(proceed, true_condition(self._group))
        return head

    def _create_looping_group_state(self, group: GroupPattern, sink: State) -> State:
        dummy = self._create_stage_state(StateType.NORMAL)
        head = self._convert_group(group, dummy)
        head.add_proceed(sink, true_condition(self._group))
        dummy.add_proceed(head, true_condition(self._group))
        return head

    def _convert_group(self, group: GroupPattern, sink: State) -> State:
        """Build what is inside a group; its last stage still sees what follows the group."""
        combination = group.combination
        if combination is None:
            return self._convert_chain(group.getRawPattern(), group, sink, self._following)
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

    def _convert_chain(
        self, chain: Pattern, group: GroupPattern, sink: State, following: Pattern | None
    ) -> State:
        """Build a chain inside a group, in front of `sink` and the stage `following`."""
        context = (self._stage, self._following, self._group)
        self._stage, self._following, self._group = chain, following, group
        head = self._convert_stage(self._create_middle_states(sink))
        self._stage, self._following, self._group = context
        return head

    def _make_greedy(self, sink: State, take: IterativeCondition) -> None:
        """Let a loop have every event that it could take, rather than what comes after it."""
        for state in self._with_branches(sink):
            for t in state.transitions:
                old = t.condition or BooleanConditions.trueFunction()
                t.condition = RichAndCondition(old, RichNotCondition(take))

    # --- groups of several patterns

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

    def _with_branches(self, state: State) -> Iterator[State]:
        yield state
        for edge in state.transitions[: self._branches.get(state, 0)]:
            yield from self._with_branches(edge.target)

    def _waiting(self, state: State) -> Iterator[State]:
        """Yield the state, or the branches of a fork."""
        return (found for found in self._with_branches(state) if found not in self._branches)

    # --- NOT stages

    def _current_not_conditions(self) -> list[tuple[IterativeCondition, str]]:
        """Return the notFollowedBy stages still in force at the beginning of the current stage."""
        return list(self._nots_before(self._stage, self._group))

    def _nots_before(
        self, stage: Pattern, group: GroupPattern | None
    ) -> Iterator[tuple[IterativeCondition, str]]:
        while (previous := stage.getPrevious()) is not None:
            is_not = self._strategy(previous) is ConsumingStrategy.NOT_FOLLOW
            if not is_not and not previous.getQuantifier().hasProperty(QuantifierProperty.OPTIONAL):
                return
            if is_not:
                yield take_condition(previous, group), previous.getName()
            stage = previous
        yield from self._nots_around(group)

    def _nots_around(self, group: GroupPattern | None) -> Iterator[tuple[IterativeCondition, str]]:
        """Yield those before several patterns; as in Flink a group does not look around itself."""
        if group in self._outside:
            yield from self._nots_before(*self._outside[group])

    def _stop_state(self, condition: IterativeCondition, name: str) -> State:
        stop = self._stop_states.get(name)
        if stop is None:
            stop = self._stop_states[name] = self._create_state(name, StateType.STOP)
            stop.add_take(stop, condition)
        return stop

    def _add_stop_states(self, state: State) -> None:
        for condition, name in self._current_not_conditions():
            stop = self._stop_state(condition, name)
            for waiting in self._waiting(state):
                if waiting is state or all(edge.target is not stop for edge in waiting.transitions):
                    waiting.add_proceed(stop, condition)

    def _add_stop_state_to_looping(self, state: State) -> None:
        following = self._following
        if following is not None and self._strategy(following) is ConsumingStrategy.NOT_FOLLOW:
            condition = take_condition(following, self._group)
            stop = self._stop_state(condition, following.getName())
            for waiting in self._waiting(state):
                waiting.add_proceed(stop, condition)

    def _copy_without_transitive_nots(self, sink: State) -> State:
        """
        Copy `sink` without the paths to NOT stages that no longer apply.

        Once an optional stage has taken an event, a notFollowedBy before it is over.
        """
        nots = self._current_not_conditions()
        if not nots or not self._has(QuantifierProperty.OPTIONAL):
            return sink
        return self._copy_without_stops(sink, {name for _, name in nots}, [])

    def _copy_without_stops(self, sink: State, names: set[str], path: list[State]) -> State:
        if sink in path:
            raise endless_loop(sink.stage)
        copy = self._create_state(sink.stage, sink.kind, base=sink.name)
        for t in sink.transitions:
            target = t.target
            if t.action is StateTransitionAction.PROCEED:
                if target.kind is not StateType.STOP:
                    target = self._copy_without_stops(target, names, [*path, sink])
                elif target.name in names:
                    continue
                copy.add_proceed(target, t.condition)
            elif t.action is StateTransitionAction.TAKE:
                copy.add_take(copy if target is sink else target, t.condition)
            else:
                copy.add_ignore(copy if target is sink else target, t.condition)
        if sink in self._branches:
            self._branches[copy] = self._branches[sink]
        return copy

    # --- states

    def _create_state(self, stage: str, kind: StateType, base: str | None = None) -> State:
        """Create a state of a stage, named after it or after another of its states."""
        state = State(self._names.unique_internal_name(base or stage), kind, stage)
        self.states.append(state)
        return state

    def _create_stage_state(self, kind: StateType) -> State:
        """Create a state of the current stage, with its gap window if any."""
        state = self._create_state(self._stage.getName(), kind)
        times = self._stage.getTimes()
        gap = self._stage.getWindowSize(WithinType.PREVIOUS_AND_CURRENT)
        if times is None:
            if gap is not None:
                self.window_times[state.name] = gap
        elif times.window_ms is not None and state.name != state.stage:
            self.window_times[state.name] = times.window_ms
        return state

    def _copy(self, state: State) -> State:
        copy = self._create_state(state.stage, state.kind)
        for t in state.transitions:
            copy.add(t.action, copy if t.target is state else t.target, t.condition)
        if state in self._branches:
            self._branches[copy] = self._branches[state]
            for edge in copy.transitions[: self._branches[copy]]:
                edge.target = self._copy(edge.target)
        return copy

    # --- properties of the current stage

    @staticmethod
    def _strategy(stage: Pattern) -> ConsumingStrategy:
        return stage.getQuantifier().consumingStrategy

    def _has(self, property_: QuantifierProperty) -> bool:
        return self._stage.getQuantifier().hasProperty(property_)

    def _is_head_of_optional_group(self, stage: Pattern) -> bool:
        group = self._group
        return (
            group is not None
            and stage.getPrevious() is None
            and group.getQuantifier().hasProperty(QuantifierProperty.OPTIONAL)
            and self._is_first_of_loop()
        )

    def _is_first_of_loop(self) -> bool:
        return self._first_of_loop.get(id(self._group), True)

    def _mark_first_of_loop(self, *, value: bool) -> None:
        if isinstance(self._stage, GroupPattern):
            self._first_of_loop[id(self._stage)] = value


# --- what is refused


_MOST_STATES = 100_000


def all_stages(pattern: Pattern) -> Iterator[Pattern]:
    """Return all stages, including those inside groups, from the last to the first."""
    stage: Pattern | None = pattern
    while stage is not None:
        if isinstance(stage, GroupPattern):
            yield stage
            for part in reversed(stage.getParts()):
                yield from all_stages(part)
        else:
            yield stage
        stage = stage.getPrevious()


def check_names(pattern: Pattern) -> None:
    """Refuse names that repeat, or that Flink reserves."""
    names = NFAStateNameHandler()
    names.check_name_uniqueness(ENDING_STATE_NAME)
    for stage in all_stages(pattern):
        if isinstance(stage, GroupPattern):
            continue
        names.check_name_uniqueness(stage.getName())


def check_size(pattern: Pattern) -> None:
    """
    Refuse a pattern with too many states.

    Flink makes a state for each repetition, in groups for each of each; it refuses no number.
    """
    states = _states(pattern)
    if states > _MOST_STATES:
        raise NotSupportedError(
            f"the pattern has {states} states, one for each of the times that a stage is "
            f"repeated: expected at most {_MOST_STATES}",
            "use smaller numbers, or oneOrMore() with a condition on count(...) in the next stage",
        )


def _states(pattern: Pattern) -> int:
    """Return about how many states a pattern has."""
    states = 0
    for stage in pattern.stages():
        times = stage.getTimes()
        states += _states_of_one(stage) * (1 if times is None else times.to)
    return states


def _states_of_one(stage: Pattern) -> int:
    """Return about how many states one repetition of a stage has."""
    if not isinstance(stage, GroupPattern):
        return 1
    parts = stage.getParts()
    inner = sum(map(_states, parts))
    if stage.combination is not None and stage.combination.in_any_order:
        inner *= 2 ** (len(parts) - 1)  # each part is in every set of parts that are left
    return inner


def check_skip_strategy(pattern: Pattern) -> None:
    """Refuse a skip strategy that does not name a top-level stage."""
    wanted = pattern.getAfterMatchSkipStrategy().getPatternName()
    names = [stage.getName() for stage in pattern.stages()]
    if wanted is not None and wanted not in names:
        raise MalformedPatternException(
            "The pattern name specified in AfterMatchSkipStrategy "
            "can not be found in the given Pattern",
            f"{wanted!r} is not among the stages {names}; stages inside groups do not count",
        )


def check_windows(pattern: Pattern, graph: GraphBuilder) -> None:
    """Refuse windows that contradict each other, and a wait for absence that never ends."""
    window = graph.window_time
    if window is not None and any(gap > window for gap in graph.window_times.values()):
        raise MalformedPatternException(
            "The window length between the previous and current event cannot be larger than "
            "the window length between the first and last event for a Pattern.",
            f"first to last {window} ms, gaps {graph.window_times}",
        )
    last = pattern.getQuantifier().consumingStrategy
    if (
        last is ConsumingStrategy.NOT_FOLLOW
        and pattern.getName() not in graph.window_times
        and window is None
    ):
        raise MalformedPatternException(
            "NotFollowedBy is not supported without windowTime as a last part of a Pattern!",
            f"add within(...) on stage {pattern.getName()!r}",
        )


def check_runs(graph: GraphBuilder) -> None:
    """
    Refuse what hangs or crashes Flink on the first event that no stage takes.

    A cycle of PROCEED edges further on, or one that an iterative condition may close, fails the job
    only when a partial match gets there; see :meth:`StateTable.resolve`.
    """
    for state in proceed_closure(graph.start, passes=_lets_an_unwanted_event_pass):
        if _has_proceed_cycle(state):
            raise endless_loop(state.stage)
        for stop in (t.target for t in state.transitions if t.target.kind is StateType.STOP):
            raise MalformedPatternException(
                f"stage {stop.stage!r}: everything before this NOT stage may stay empty: "
                "Flink crashes on such a pattern",
                "make one stage before the NOT stage mandatory",
            )


def check_expressions(atoms: Iterable[Atom], pattern: Pattern) -> None:
    """Refuse SQL that names a stage that cannot have taken anything, or names it wrongly."""
    stages = {
        stage.getName(): stage.getQuantifier().consumingStrategy
        for stage in all_stages(pattern)
        if not isinstance(stage, GroupPattern)
    }
    absent = (ConsumingStrategy.NOT_FOLLOW, ConsumingStrategy.NOT_NEXT)
    for atom in atoms:
        expression = atom.condition
        if not isinstance(expression, MatchExpression):
            continue
        where = f"stage {atom.stage!r}: the condition {expression.text!r}"
        for name in expression.stages():
            if name == WHOLE:
                if name in stages:
                    raise MalformedPatternException(
                        f"{where} looks at {name!r}, which is a stage and means the whole match",
                        "give the stage another name",
                    )
                continue
            if name not in stages:
                raise MalformedPatternException(
                    f"{where} looks at stage {name!r}: expected one of {list(stages)[::-1]}",
                    did_you_mean(
                        name,
                        stages,
                        "name the stage whose events are aggregated, as in avg(up.price)",
                    ),
                )
            if stages[name] in absent:
                raise MalformedPatternException(
                    f"{where} looks at stage {name!r}, which takes no events",
                    "name a stage other than a NOT stage",
                )
        for name in sorted(expression.owners & set(stages)):
            raise MalformedPatternException(
                f"{where} has a column of stage {name!r} outside an aggregate",
                f"name one of its events, for example last({name}.column)",
            )


def _has_proceed_cycle(state: State) -> bool:
    passes = _lets_an_unwanted_event_pass
    return any(
        state in proceed_closure(t.target, passes)
        for t in state.transitions
        if t.action is StateTransitionAction.PROCEED and passes(t)
    )


def _lets_an_unwanted_event_pass(edge: StateTransition) -> bool:
    """Whether the edge holds for any event that satisfies no condition on single events."""
    value, _ = known_value(
        edge.condition, lambda c: False if isinstance(c, SimpleCondition) else None
    )
    return value is True


def proceed_closure(start: State, passes: Callable[[StateTransition], bool]) -> list[State]:
    """Return the states reachable from a state without an event, the state itself first."""
    proceed = StateTransitionAction.PROCEED
    return reached(start, lambda edge: edge.action is proceed and passes(edge))


class NFACompiler:
    """
    Compiles patterns to automata.

    Ports ``org.apache.flink.cep.nfa.compiler.NFACompiler`` (Flink 2.3.0).
    Differs from Flink: patterns that would hang or crash Flink at run time are refused.
    """

    @staticmethod
    def compile(pattern: Pattern, timeoutHandling: bool = False) -> NFA:
        """
        Compile a pattern.

        >>> from pyflinkcep import Pattern
        >>> nfa = NFACompiler.compile(Pattern.begin("a").followedBy("b").oneOrMore())
        >>> sorted(nfa.tables)
        ['$endState$', 'a', 'b', 'b:0', 'b:1']
        """
        check_names(pattern)
        check_size(pattern)
        check_skip_strategy(pattern)
        graph = GraphBuilder(pattern)
        check_windows(pattern, graph)
        check_runs(graph)
        atoms = Atoms()
        for stage in all_stages(pattern):
            atoms.register(stage.getCondition(), stage.getName())
            until = stage.getUntilCondition()
            if until is not None:
                atoms.register_until(until, stage.getName())
        check_expressions(atoms, pattern)
        tables: dict[State, StateTable] = {}
        for state in graph.states:
            tables[state] = StateTable(state, atoms, tables, graph.window_times.get(state.name, 0))
        return NFA(
            tables={state.name: table for state, table in tables.items()},
            start=tables[graph.start],
            final=tables[graph.states[0]],
            atoms=tuple(atoms),
            window_time=graph.window_time or 0,
            window_times=dict(graph.window_times),
            handle_timeout=timeoutHandling,
            skip_strategy=pattern.getAfterMatchSkipStrategy(),
            description=pattern.describe(),
        )


def _led(part: Pattern, around: GroupPattern) -> Pattern:
    """Return a part whose first stage follows what is before the group, also if it is a group."""
    first, *others = part.stages()
    strategy = around.getQuantifier().consumingStrategy
    part = attrs.evolve(first, stage=stage_of(first).joined(strategy, None))
    for stage in others:
        part = attrs.evolve(stage, previous=part)
    return part
