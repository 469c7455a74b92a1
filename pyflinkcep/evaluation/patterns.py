# SPDX-License-Identifier: Apache-2.0
"""The choice of how a pattern is evaluated, and its matches by event lists."""

from __future__ import annotations

from collections.abc import Iterator

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.evaluation.choice import EVENT_LISTS, Evaluation
from pyflinkcep.evaluation.choice import NFA as AUTOMATON
from pyflinkcep.eventlists.chain import ChainEvents, PatternChain, check_chain
from pyflinkcep.eventlists.frame import Frame
from pyflinkcep.eventlists.refusals import reason, refused
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.kernel.joining import joined_frames
from pyflinkcep.nfa import NFA
from pyflinkcep.pattern import Pattern

__all__ = ["chain_frames", "check_pattern_evaluation", "chosen_for_pattern"]

_EVALUATIONS = ("auto", AUTOMATON, EVENT_LISTS)


def check_pattern_evaluation(evaluation: str) -> None:
    """Refuse an unknown evaluation."""
    if evaluation not in _EVALUATIONS:
        raise InvalidArgumentError(
            f"expected an evaluation of a pattern, got {evaluation!r}",
            f"use one of {', '.join(_EVALUATIONS)}",
        )


def chosen_for_pattern(
    pattern: Pattern,
    nfa: NFA,
    expressions: CompiledExpressions | None,
    evaluation: str,
    obstacle: str = "",
    order_is_seen: bool = False,
) -> Evaluation:
    """
    Return how a pattern is evaluated.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    nfa : NFA
        The pattern, compiled.
    expressions : CompiledExpressions or None
        The programs of its match expressions.
    evaluation : {"auto", "nfa", "eventLists"}
        What the user requested.
    obstacle : str
        Another reason against lists; empty if there is none.
    order_is_seen : bool
        Whether users can see the order of the matches, which lists do not keep.

    Raises
    ------
    InvalidArgumentError
        If the evaluation is unknown.
    NotSupportedError
        If lists were requested and could differ from the automaton; the message says why.
    """
    check_pattern_evaluation(evaluation)
    if evaluation == AUTOMATON:
        return Evaluation(AUTOMATON, "asked for")
    try:
        check_chain(pattern.stages(), nfa)
        if obstacle:
            raise refused(obstacle)
        chain = PatternChain.of(pattern, nfa, expressions)
    except NotSupportedError as cause:
        if evaluation == EVENT_LISTS:
            raise
        return Evaluation(AUTOMATON, reason(cause))
    if evaluation == EVENT_LISTS:
        return Evaluation(EVENT_LISTS, "asked for")
    if order_is_seen:
        return Evaluation(AUTOMATON, "the order of matches can be seen")
    if chain.query.window is None or len(chain.stages) == 1:
        return Evaluation(AUTOMATON, "it has one stage or no window")
    return Evaluation(EVENT_LISTS, "single stages joined by followedByAny, in a window")


def chain_frames(chain: PatternChain, events: ChainEvents) -> Iterator[Frame]:
    """Yield the matches of a chain, many at a time, as columns of positions by stage."""
    lists = chain.lists(events)
    return lists.frames(joined_frames(lists))
