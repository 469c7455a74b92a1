# SPDX-License-Identifier: Apache-2.0
"""The matches of a chain of stages on events in memory, by event lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.choice import EVENT_LISTS, chosen_for_pattern
from pyflinkcep.engines.flink.nfa import NFA, NFACompiler
from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.lists.chain import ChainEvents, PatternChain
from pyflinkcep.engines.queries import chain_frames
from pyflinkcep.expressions.local_match import local_expressions
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.events import as_event
from pyflinkcep.tables.sql import evaluated_here, over_stages

__all__ = ["chain_matches"]


def chain_matches(
    pattern: Pattern, given: Sequence[Any], exact: Sequence[int], keys: Sequence[Any]
) -> Iterator[dict[str, list[Any]]]:
    """
    Yield the matches of a pattern, in no particular order.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    given : sequence
        The events.
    exact : sequence of int, epoch microseconds
        Their times.
    keys : sequence
        Their keys.

    Raises
    ------
    NotSupportedError
        If the answer of lists could differ from the automaton's.
    """
    here = evaluated_here(pattern, given)
    nfa = NFACompiler.compile(here)
    expressions, fields = _expressions(nfa, given)
    chosen_for_pattern(here, nfa, expressions, EVENT_LISTS)
    chain = PatternChain.of(here, nfa, expressions)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    places = [numbers[key] for key in keys]
    times = [time // 1000 for time in exact]
    order = sorted(range(len(times)), key=lambda at: (places[at], exact[at]))
    events = [as_event(given[at]) for at in order]
    seen = _Seen(events, fields)
    lists = ChainEvents(
        [times[at] for at in order], seen.holding, seen.field, [places[at] for at in order]
    )
    for frame in chain_frames(chain, lists) if events else ():
        columns = [frame.singles[stage].tolist() for stage in chain.stages]
        for row in zip(*columns, strict=True):
            yield {s: [events[at]] for s, at in zip(chain.stages, row, strict=True)}


@attrs.frozen(eq=False)
class _Seen:
    """The conditions and fields of events."""

    events: Sequence[Any]
    fields: Callable[[Any], Sequence[Any]]

    def holding(self, atom: Atom) -> Any:
        """Return for each event whether a condition holds."""
        return np.fromiter(map(atom.function, self.events), bool, len(self.events))

    def field(self, number: int) -> list[Any]:
        """Return a field of each event."""
        return [self.fields(event)[number] for event in self.events]


def _expressions(
    nfa: NFA, given: Sequence[Any]
) -> tuple[CompiledExpressions | None, Callable[[Any], Sequence[Any]]]:
    named = over_stages(nfa)
    return local_expressions(named, given) if named else (None, lambda _: ())
