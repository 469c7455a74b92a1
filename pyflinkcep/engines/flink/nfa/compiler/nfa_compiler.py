# SPDX-License-Identifier: Apache-2.0
"""From a pattern to its automaton."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from pyflinkcep.conditions import IterativeCondition, RichOrCondition, SimpleCondition
from pyflinkcep.engines.flink.nfa.atoms import Atom, Atoms, known_value
from pyflinkcep.engines.flink.nfa.compiler.graph_builder import (
    ENDING_STATE_NAME,
    GraphBuilder,
    NFAStateNameHandler,
    make_greedy,
    true_condition,
)
from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.state import (
    State,
    StateTransition,
    StateTransitionAction,
    StateType,
    endless_loop,
    reached,
)
from pyflinkcep.engines.flink.nfa.steps import StateTable
from pyflinkcep.errors import MalformedPatternException, NotSupportedError, did_you_mean
from pyflinkcep.expressions.tree import WHOLE, MatchExpression
from pyflinkcep.pattern.linked_stages import stage_of, stages_of
from pyflinkcep.pattern.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.stage import ConsumingStrategy, Quantifier, QuantifierProperty

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
    return known_value(edge.condition, _of_unwanted)[0] is True


def _of_unwanted(condition: IterativeCondition) -> bool | None:
    return False if isinstance(condition, SimpleCondition) else None


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
        graph = CombinedBuilder(pattern)
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
