# SPDX-License-Identifier: Apache-2.0
"""A query, and what follows from it alone, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.expressions.tree import Aggregate, Tree, attribute_of
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.as_pattern import as_pattern, usable_sql, why_no_pattern
from pyflinkcep.sase.computed import computed_for, functions
from pyflinkcep.sase.model import Form, Query
from pyflinkcep.sase.placement import Placement, placed


def slots_by_variable(query: Query, placement: Placement) -> dict[str, tuple[str, ...]]:
    """
    Return what distinguishes runs, by the variable of their last event.

    Runs that agree in all of it are merged, since no later condition can tell them apart. With a
    window, the time of the first event distinguishes runs too.

    Notes
    -----
    Agrawal and others, SIGMOD 2008, section 5.2: the bits M, for V[t…].
    """
    names = query.variables
    found = {}
    for number, name in enumerate(names):
        edges = placement[name]
        ahead = [*edges.take, *edges.leave] if query.positive[number].repeats else []
        for later in names[number + 1 :]:
            edges = placement[later]
            ahead += [*edges.begin, *edges.take, *edges.leave]
        ahead += [
            c for part in query.components if part.negated for c in placement[part.variable].absent
        ]
        taken = set(names[: number + 1])
        read = _aggregates(clause.tree for clause in ahead)
        shown = [_text(slot) for slot in read if slot.stage in taken]
        if query.is_global:
            shown += [f"first({names[0]}.{attribute})" for attribute in query.equal]
        found[name] = tuple(dict.fromkeys(shown))
    found[names[-1]] = found[names[-1]] if query.positive[-1].repeats else ()
    return found


def _aggregates(trees: Iterable[Tree]) -> Iterator[Aggregate]:
    for tree in trees:
        yield from functions(tree)


def _text(slot: Aggregate) -> str:
    argument = "*" if slot.argument is None else attribute_of(slot.argument)
    return f"{slot.function}({slot.stage}.{argument})"


def slots_explained(query: Query, slots: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a line for each variable: what distinguishes the runs that have just taken it."""
    started = "the time of its first event" if query.window is not None else ""
    if query.most_events is not None:
        started = "the number of its first event"
    for name, own in slots.items():
        if query.positive[-1].variable == name and not query.positive[-1].repeats:
            continue  # a match
        apart = ", ".join([*own, *([started] if started else [])])
        yield f"after {name}: {apart or 'nothing, they are one run'}"


@attrs.frozen(eq=False, slots=False)
class AnalysedQuery:
    """
    A query, analysed; each result is computed when it is first asked for, and kept.

    Examples
    --------
    >>> from pyflinkcep.sase import parse
    >>> query = AnalysedQuery(parse("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x"))
    >>> query.slots
    {'a': (), 'b': ('last(b.x)',), 'c': ()}
    >>> query.why_no_pattern is None
    True
    """

    query: Query  # The query
    type_column: str = "type"  # The column that holds an event's type

    @cached_property
    def edges(self) -> Placement:
        """The clauses by variable and edge; empty for a ``;`` query."""
        return placed(self.query) if self.query.form is Form.SEQ else {}

    @cached_property
    def slots(self) -> Mapping[str, tuple[str, ...]]:
        """What distinguishes runs, by the variable of their last event; empty for a ``;`` query."""
        is_plain = self.edges and not self.query.is_composed
        return slots_by_variable(self.query, self.edges) if is_plain else {}

    @cached_property
    def computed(self) -> Mapping[str, tuple[str, ...]]:
        """The attributes that SQL computes, each with the event types that need it."""
        return computed_for(self.query)

    @cached_property
    def usable_sql(self) -> str:
        """Which events the query can use, if its strategies skip all others."""
        return usable_sql(self.query, self.type_column, self.edges)

    @cached_property
    def why_no_pattern(self) -> str | None:
        """Why no pattern has the matches of the query; None if one has."""
        if self.query.totals is not None:
            return "it totals the matches of windows: SLIDE"
        return why_no_pattern(self.query, self.edges)

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern that has the same matches."""
        if self.why_no_pattern is not None:
            raise NotSupportedError(
                f"no pattern has the matches of this query: {self.why_no_pattern}",
                "run the query itself: CEP.pattern(events, query)",
            )
        return as_pattern(self.query, self.type_column, self.edges)
