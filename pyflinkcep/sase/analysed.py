# SPDX-License-Identifier: Apache-2.0
"""A query, and what follows from it alone, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs

from pyflinkcep.errors import NotSupportedError
from pyflinkcep.pattern import Pattern
from pyflinkcep.sase.as_pattern import as_pattern, why_no_pattern
from pyflinkcep.sase.computed import computed_for
from pyflinkcep.sase.model import Form, Query
from pyflinkcep.sase.placement import Placement, placed
from pyflinkcep.sase.slots import slots_by_variable
from pyflinkcep.sase.sql import usable_sql

__all__ = ["AnalysedQuery"]


@attrs.frozen(eq=False, slots=False)
class AnalysedQuery:
    """
    A query, analysed; each result is computed when it is first asked for, and kept.

    Attributes
    ----------
    query : Query
        The query.
    type_column : str
        The column that holds an event's type.

    Examples
    --------
    >>> from pyflinkcep.sase import parse
    >>> query = AnalysedQuery(parse("PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x > b[i-1].x"))
    >>> query.slots
    {'a': (), 'b': ('last(b.x)',), 'c': ()}
    >>> query.why_no_pattern is None
    True
    """

    query: Query
    type_column: str = "type"

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
        """
        The pattern that has the same matches.

        Raises
        ------
        NotSupportedError
            If there is no such pattern; the message says why.
        """
        if self.why_no_pattern is not None:
            raise NotSupportedError(
                f"no pattern has the matches of this query: {self.why_no_pattern}",
                "run the query itself: CEP.pattern(events, query)",
            )
        return as_pattern(self.query, self.type_column, self.edges)
