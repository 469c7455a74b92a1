# SPDX-License-Identifier: Apache-2.0
"""From a chain of stages to states and transitions, built from the last stage to the first."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.conditions import (
    BooleanConditions,
    IterativeCondition,
    RichAndCondition,
    RichNotCondition,
)
from pyflinkcep.engines.flink.nfa.state import State, StateTransitionAction, StateType, endless_loop
from pyflinkcep.errors import MalformedPatternException
from pyflinkcep.pattern.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.stage import ConsumingStrategy, QuantifierProperty, Times, WithinType


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

    def clear(self) -> None:
        """Forget all names."""
        self._used.clear()
        self._counters.clear()


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


def make_greedy(state: State, take: IterativeCondition) -> None:
    """Give the loop before `state` every event that it could take."""
    for t in state.transitions:
        old = t.condition or BooleanConditions.trueFunction()
        t.condition = RichAndCondition(old, RichNotCondition(take))


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
    """

    def __init__(self, pattern: Pattern) -> None:
        self.states: list[State] = []
        self.window_times: dict[str, int] = {}
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
        """Build the chain inside a group; its last stage still sees what follows the group."""
        return self._convert_chain(group.getRawPattern(), group, sink, self._following)

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
        make_greedy(sink, take)

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
        """Yield those before a group; as in Flink a group does not look around itself."""
        return iter(())

    def _stop_state(self, condition: IterativeCondition, name: str) -> State:
        stop = self._stop_states.get(name)
        if stop is None:
            stop = self._stop_states[name] = self._create_state(name, StateType.STOP)
            stop.add_take(stop, condition)
        return stop

    def _add_stop_states(self, state: State) -> None:
        for condition, name in self._current_not_conditions():
            state.add_proceed(self._stop_state(condition, name), condition)

    def _add_stop_state_to_looping(self, state: State) -> None:
        following = self._following
        if following is not None and self._strategy(following) is ConsumingStrategy.NOT_FOLLOW:
            condition = take_condition(following, self._group)
            state.add_proceed(self._stop_state(condition, following.getName()), condition)

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
