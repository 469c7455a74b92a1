# SPDX-License-Identifier: Apache-2.0
"""The choice of how a query is evaluated."""

from __future__ import annotations

import attrs

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError
from pyflinkcep.sase.model import Form, Query, Strategy

__all__ = ["BACKTRACKING", "EVALUATIONS", "EVENT_LISTS", "NFA", "OUTPUTS", "Evaluation", "chosen"]

NFA, BACKTRACKING, EVENT_LISTS = "nfa", "backtracking", "eventLists"
EVALUATIONS = ("auto", NFA, BACKTRACKING, EVENT_LISTS)
OUTPUTS = ("all", "onePerStart", "nonOverlapping")


@attrs.frozen
class Evaluation:
    """The name of an evaluation, and why it was chosen."""

    name: str
    reason: str


def chosen(query: Query, evaluation: str = "auto", output: str = "all") -> Evaluation:
    """
    Return how a query is evaluated.

    Parameters
    ----------
    query : Query
        The query.
    evaluation : {"auto", "nfa", "backtracking", "eventLists"}
        What the user requested.
    output : {"all", "onePerStart", "nonOverlapping"}
        Which matches are wanted.

    Raises
    ------
    InvalidArgumentError
        If the evaluation or output is unknown.
    NotSupportedError
        If the evaluation cannot answer the query.
    """
    if evaluation not in EVALUATIONS:
        raise InvalidArgumentError(
            f"expected an evaluation, got {evaluation!r}", f"use one of {', '.join(EVALUATIONS)}"
        )
    if output not in OUTPUTS:
        raise InvalidArgumentError(
            f"expected an output, got {output!r}", f"use one of {', '.join(OUTPUTS)}"
        )
    if evaluation == "auto":
        return _automatic(query, output)
    if query.form is Form.LIST and evaluation != EVENT_LISTS:
        raise NotSupportedError(
            f'evaluation="{evaluation}" with a pattern of elements with ;',
            'use "eventLists", the only one that answers it',
        )
    if query.form is Form.SEQ and evaluation == EVENT_LISTS and not _is_chain(query):
        raise NotSupportedError(
            'evaluation="eventLists" with loops or a strategy other than skip_till_any_match',
            'use "nfa" or "backtracking", which answer every SEQ',
        )
    return Evaluation(evaluation, "asked for")


def _is_chain(query: Query) -> bool:
    """Whether a SEQ has single components only, all under skip_till_any_match."""
    strategies = {strategy for _, strategy in query.strategies}
    return strategies <= {Strategy.SKIP_TILL_ANY_MATCH} and not any(
        part.repeats for part in query.positive
    )


def _automatic(query: Query, output: str) -> Evaluation:
    if query.form is Form.LIST:
        return Evaluation(EVENT_LISTS, "elements with ;")
    if output != "all":
        return Evaluation(BACKTRACKING, f"output {output}: one run at a time is enough")
    if _is_chain(query) and query.window is not None:
        return Evaluation(EVENT_LISTS, "single events under skip_till_any_match in a window")
    return Evaluation(NFA, "loops, contiguity or no window")
