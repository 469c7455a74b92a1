# SPDX-License-Identifier: Apache-2.0
"""The choice of how a query or a pattern is evaluated."""

from __future__ import annotations

import attrs

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.latest.chain import LatestChain
from pyflinkcep.engines.latest.chain import refused as not_latest
from pyflinkcep.engines.lists.chain import NotListedError, PatternChain, check_chain, refused
from pyflinkcep.errors import NotSupportedError, check_choice
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.expressions.tree import Operation, parts
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.model import CONTIGUOUS, Form, Query, Strategy

AUTOMATON, BACKTRACKING, EVENT_LISTS = "nfa", "backtracking", "eventLists"
LATEST = "latest"  # Which has answers of its own, and so is never chosen
AUTO = "auto"
EVALUATIONS = (AUTO, AUTOMATON, BACKTRACKING, EVENT_LISTS)
OUTPUTS = ("all", "onePerStart", "nonOverlapping")
_OF_PATTERNS = ("auto", AUTOMATON, EVENT_LISTS, LATEST)


@attrs.frozen
class Evaluation:
    """An evaluation that was chosen by the form of a query or pattern."""

    name: str  # Its name
    reason: str  # Why it was chosen
    # The evaluations among which the events decide, with `name` among them; empty if the form has
    # decided.
    candidates: tuple[str, ...] = ()

    @property
    def for_tables(self) -> str:
        """What to tell whoever has the events: the name, or "auto" if they decide."""
        return AUTO if self.candidates else self.name


def chosen(
    query: Query, evaluation: str = "auto", output: str = "all", is_limited: bool = False
) -> Evaluation:
    """Return how a query is evaluated."""
    how = _evaluation(query, evaluation, output)
    if evaluation == AUTO:
        how = attrs.evolve(how, candidates=alternatives(query, output, is_limited))
    if not is_limited or how.name == AUTOMATON:
        return how
    if evaluation == "auto" and query.form is Form.SEQ and output == "all":
        return Evaluation(AUTOMATON, "maxPartialMatches bounds its runs")
    raise NotSupportedError(
        f"maxPartialMatches is not available with {how.name} ({how.reason}), which keeps no "
        "partial matches",
        'leave it out; only "nfa", which lists all matches of a SEQ, has a bound',
    )


def _evaluation(query: Query, evaluation: str, output: str) -> Evaluation:
    check_choice("evaluation", evaluation, EVALUATIONS)
    check_choice("output", output, OUTPUTS)
    if evaluation == "auto":
        return _automatic(query, output)
    if query.form is Form.LIST and evaluation != EVENT_LISTS:
        raise NotSupportedError(
            f'evaluation="{evaluation}" does not support a pattern of elements with ;',
            'use "eventLists", the only one that answers it',
        )
    unlisted = _unlisted(query)
    if evaluation == EVENT_LISTS and unlisted:
        raise NotSupportedError(
            f'evaluation="eventLists" does not support {unlisted}',
            'use "nfa" or "backtracking", which answer every SEQ',
        )
    if evaluation == AUTOMATON and output != "all":
        return Evaluation(BACKTRACKING, f"nfa was asked for, and searches for output {output} too")
    return Evaluation(evaluation, "asked for")


def chosen_for_compressed(query: Query, evaluation: str = "auto") -> Evaluation:
    """Return how all matches of a query are counted without listing them."""
    own = AUTOMATON if query.form is Form.SEQ else EVENT_LISTS
    if chosen(query, evaluation).name != own and evaluation != "auto":
        raise NotSupportedError(
            f'evaluation="{evaluation}" lists matches, and cannot compress them',
            f'leave evaluation out, or use "{own}"',
        )
    return Evaluation(own, "compressed")


def alternatives(query: Query, output: str = "all", is_limited: bool = False) -> tuple[str, ...]:
    """Return lists and runs if the events may decide between them; nothing if the form does."""
    if query.form is Form.LIST or is_limited or _unlisted(query):
        return ()
    return EVENT_LISTS, AUTOMATON if output == "all" else BACKTRACKING


def hides_choice(query: Query, evaluation: str, output: str) -> bool:
    """Whether matches in a list are sorted, so that their order does not tell what was chosen."""
    if evaluation != AUTO or query.form is Form.LIST or is_contiguous(query):
        return False
    return output == "all" or not _unlisted(query)


def is_contiguous(query: Query) -> bool:
    """Whether each run goes on with the very next event of single components, or ends."""
    return all(query.strategy_of(name) in CONTIGUOUS for name in query.variables) and not any(
        part.repeats for part in query.positive
    )


def _unlisted(query: Query) -> str:
    """Return what lists do not support of a query; empty if they answer it."""
    if query.most_events is not None:
        return "WITHIN … EVENTS, whose window is not of time"
    every = (part for condition in query.conditions for part in parts(condition))
    if any(isinstance(part, Operation) and part.operator == "||" for part in every):
        return "|| of several events"  # a text that no event has
    strategies = {strategy for _, strategy in query.strategies}
    if query.form is Form.SEQ and (
        not strategies <= {Strategy.SKIP_TILL_ANY_MATCH}
        or any(part.repeats for part in query.positive)
    ):
        return "loops, nor strategies other than skip_till_any_match"
    return ""


def _automatic(query: Query, output: str) -> Evaluation:
    unlisted = _unlisted(query)
    if query.form is Form.LIST and unlisted:
        raise NotSupportedError(
            f"a pattern of elements with ; does not support {unlisted}",
            "write PATTERN SEQ(…), or compare attributes of single events",
        )
    if query.form is Form.LIST:
        return Evaluation(EVENT_LISTS, "elements with ;")
    if output != "all":
        return Evaluation(BACKTRACKING, f"output {output}: one run at a time is enough")
    if query.window is not None and not unlisted:
        return Evaluation(EVENT_LISTS, "single events under skip_till_any_match in a window")
    if is_contiguous(query):
        return Evaluation(BACKTRACKING, "contiguous events: runs are short, and never many")
    return Evaluation(AUTOMATON, "loops, contiguity or no window")


# --- patterns


def check_pattern_evaluation(evaluation: str) -> None:
    """Refuse an unknown evaluation."""
    check_choice("evaluation", evaluation, _OF_PATTERNS)


def chosen_for_pattern(
    pattern: Pattern,
    nfa: NFA,
    expressions: CompiledExpressions | None,
    evaluation: str,
    obstacle: str = "",
    order_is_seen: bool = False,
) -> Evaluation:
    """Return how a pattern is evaluated."""
    check_pattern_evaluation(evaluation)
    if evaluation == AUTOMATON:
        return Evaluation(AUTOMATON, "asked for")
    if evaluation == LATEST:
        LatestChain.of(pattern, nfa)
        if obstacle:
            raise not_latest(obstacle)
        return Evaluation(LATEST, "asked for")
    try:
        check_chain(pattern.stages(), nfa)
        if obstacle:
            raise refused(obstacle)
        chain = PatternChain.of(pattern, nfa, expressions)
    except NotListedError as cause:
        if evaluation == EVENT_LISTS:
            raise
        return Evaluation(AUTOMATON, cause.reason)
    if evaluation == EVENT_LISTS:
        return Evaluation(EVENT_LISTS, "asked for")
    if order_is_seen:
        return Evaluation(AUTOMATON, "the order of matches can be seen")
    if chain.query.window is None or len(chain.stages) == 1:
        return Evaluation(AUTOMATON, "it has one stage or no window")
    candidates = alternatives(chain.query)
    return Evaluation(EVENT_LISTS, "single stages joined by followedByAny, in a window", candidates)
