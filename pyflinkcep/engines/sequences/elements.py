# SPDX-License-Identifier: Apache-2.0
"""
Queries of single elements, ``A;!B;C``, by the automaton of SEQ.

SEQ goes by the order of events, elements by time. If no two elements have the same type, both are
the same once events of equal time come in the reverse order of the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from pyflinkcep.engines.table import Coded, EventTable
from pyflinkcep.sase.model import Form, Query

__all__ = ["as_sequence", "latest_element_first"]


def as_sequence(query: Query) -> Query | None:
    """Return a ``;`` query as SEQ; None if it has a closure, or two elements of one type."""
    types = [part.type for part in query.components]
    is_plain = len(set(types)) == len(types) and not any(p.repeats for p in query.positive)
    if not is_plain or len(query.positive) == 1:
        return None
    return attrs.evolve(query, form=Form.SEQ)


def latest_element_first(
    query: Query, table: EventTable
) -> Callable[[Sequence[int]], Sequence[int]]:
    """Return a function that orders the events of a partition, given by their positions."""
    places = {part.type: -place for place, part in enumerate(query.components)}
    if isinstance(table.types, Coded):
        own = np.array([places.get(name, 1) for name in table.types.names], np.int64)
        by_event = own[np.asarray(table.types.codes)]
    else:
        by_event = np.array([places.get(type_, 1) for type_ in table.types], np.int64)
    times = np.asarray(table.times, np.int64)

    def ordered(positions: Sequence[int]) -> Sequence[int]:
        at = np.asarray(positions, np.int64)
        found: list[int] = at[np.lexsort((by_event[at], times[at]))].tolist()
        return found

    return ordered
