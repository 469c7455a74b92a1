# SPDX-License-Identifier: Apache-2.0
"""From a pattern to its automaton."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyflinkcep.conditions import IterativeCondition, SimpleCondition
from pyflinkcep.engines.flink.nfa.atoms import Atom, Atoms, known_value
from pyflinkcep.engines.flink.nfa.compiler.combined_builder import CombinedBuilder
from pyflinkcep.engines.flink.nfa.compiler.graph_builder import (
    ENDING_STATE_NAME,
    GraphBuilder,
    NFAStateNameHandler,
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
from pyflinkcep.pattern.pattern import GroupPattern, Pattern
from pyflinkcep.pattern.stage import ConsumingStrategy

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
