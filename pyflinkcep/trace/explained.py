# SPDX-License-Identifier: Apache-2.0
"""From a pattern and events to an answer why it matches what it matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.flink.nfa import NFA, Expressions
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.errors import counted
from pyflinkcep.pattern import Pattern
from pyflinkcep.trace.advice import advised
from pyflinkcep.trace.counting import Answered
from pyflinkcep.trace.run import Input, single_stages, watched
from pyflinkcep.trace.why import WhyNot
from pyflinkcep.trace.why_facts import ConditionCount, counted_facts

__all__ = ["explained"]

_PARTIALS = 20_000
"""After how many partial matches to stop: a pattern that doubles them would never end."""
_MANY = 20
"""How many partial matches of a key are many."""
_ALL_OF, _MISSES = 1000, 20
"""How many events are recorded in full; of more, the first misses of each partial match are."""


def explained(
    pattern: Pattern,
    nfa: NFA,
    given: Input,
    expressions: Expressions | None,
    limit: PartialMatchLimit | None,
    sql_of: Callable[[IterativeCondition], str | None],
    more: Mapping[str, int],
    *,
    has_key: bool,
    sample: str = "",
    counts: Callable[[list[ConditionCount]], Sequence[ConditionCount]] = list,
    missing: str = "",
) -> WhyNot:
    """
    Return why a pattern has the matches it has.

    Parameters
    ----------
    pattern, nfa, given, expressions, limit, sql_of
        See :func:`pyflinkcep.trace.run.watched`.
    more : mapping of str to int
        Further numbers about the input, by what they count.
    has_key : bool
        Whether events have keys.
    sample : str
        What is looked at, if not all.
    counts : callable
        Replaces the counts of conditions by those over all events, if these are a sample.
    missing : str
        Why there are no events, if that is known.
    """
    brief = _MISSES if len(given.events) > _ALL_OF else None
    trace, recorder = watched(pattern, nfa, given, expressions, limit, sql_of, brief, _PARTIALS)
    if len(trace.partials) == _PARTIALS:
        keys = len({partial.key for partial in trace.partials})
        is_much = keys * _MANY < _PARTIALS
        why = ": this pattern makes very many" if is_much else f" of {counted(keys, 'key')}"
        stopped = f"stopped at {_PARTIALS} partial matches{why}"
        sample = f"{sample}, {stopped}" if sample else stopped
    answered = Answered(nfa, given.events, sql_of)
    stages = list(single_stages(pattern))
    order = {stage.name: place for place, stage in enumerate(stages)}
    conditions = sorted(  # those of until() of a group last
        counts(answered.counts(recorder)), key=lambda count: order.get(count.stage, len(order))
    )
    facts = counted_facts(trace, conditions, more, has_key=has_key, sample=sample)
    longer = answered.longer_windows(trace, facts.beginnings, stages)
    early = answered.too_early(trace, facts.beginnings, stages)
    return WhyNot(facts, tuple(advised(facts, longer, early, missing)))
