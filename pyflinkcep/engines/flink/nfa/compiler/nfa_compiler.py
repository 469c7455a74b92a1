# SPDX-License-Identifier: Apache-2.0
"""From a pattern to its automaton."""

from __future__ import annotations

from pyflinkcep.engines.flink.nfa.atoms import Atoms
from pyflinkcep.engines.flink.nfa.compiler.checks import (
    all_stages,
    check_expressions,
    check_names,
    check_runs,
    check_size,
    check_skip_strategy,
    check_windows,
    proceed_closure,
)
from pyflinkcep.engines.flink.nfa.compiler.combined_builder import CombinedBuilder
from pyflinkcep.engines.flink.nfa.nfa import NFA
from pyflinkcep.engines.flink.nfa.state import State, StateType
from pyflinkcep.engines.flink.nfa.steps import StateTable
from pyflinkcep.pattern.pattern import Pattern

__all__ = ["NFACompiler"]


class NFACompiler:
    """
    Compiles patterns to automata.

    Notes
    -----
    Ports ``org.apache.flink.cep.nfa.compiler.NFACompiler`` (Flink 2.3.0).
    Differs from Flink: patterns that would hang or crash Flink at run time are refused.
    """

    @staticmethod
    def compile(pattern: Pattern, timeoutHandling: bool = False) -> NFA:
        """
        Compile a pattern.

        Parameters
        ----------
        pattern : Pattern
            The last stage, as the fluent calls return it.
        timeoutHandling : bool
            Whether timed-out partial matches are needed.

        Returns
        -------
        NFA
            The automaton; it holds no run state and may serve any number of keys.

        Raises
        ------
        MalformedPatternException
            If names repeat, the skip strategy does not name a top-level stage, windows contradict
            each other, the last stage is a ``notFollowedBy`` without a window, an SQL condition
            refers to an unknown stage, or the pattern would hang or crash Flink.
        NotSupportedError
            If the pattern has more than 100,000 states.

        Examples
        --------
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

    @staticmethod
    def canProduceEmptyMatches(pattern: Pattern) -> bool:
        """
        Whether the pattern could match nothing at all, as ``a?`` does.

        Examples
        --------
        >>> from pyflinkcep import Pattern
        >>> NFACompiler.canProduceEmptyMatches(Pattern.begin("a").oneOrMore().optional())
        True
        """
        check_size(pattern)
        graph = CombinedBuilder(pattern)
        return any(state.kind is StateType.FINAL for state in proceed_closure(graph.start))
