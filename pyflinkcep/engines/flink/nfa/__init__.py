# SPDX-License-Identifier: Apache-2.0
"""The automaton, compiled from a pattern and run over the events of a key."""

from pyflinkcep.engines.flink.nfa.compiler import NFACompiler
from pyflinkcep.engines.flink.nfa.evaluation import EventEvaluation, Expressions
from pyflinkcep.engines.flink.nfa.nfa import NFA, TimedOut
from pyflinkcep.engines.flink.nfa.partial_matches import ComputationState, EventMatch, NFAState
from pyflinkcep.engines.flink.nfa.state import (
    State,
    StateTransition,
    StateTransitionAction,
    StateType,
)

__all__ = [
    "NFA",
    "ComputationState",
    "EventEvaluation",
    "EventMatch",
    "Expressions",
    "NFACompiler",
    "NFAState",
    "State",
    "StateTransition",
    "StateTransitionAction",
    "StateType",
    "TimedOut",
]
