# SPDX-License-Identifier: Apache-2.0
"""
OptiSeq's Algorithms 1 and 2 as in the paper, one event at a time, to test the join.

The paper contradicts itself in places; here, ranges are open at neighbours, a closure takes all
events between them once both are bound, and negated elements are searched for between their
neighbours at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import attrs

from pyflinkcep.engines.lists.clauses import Clauses, each_of
from pyflinkcep.engines.table import EventTable
from pyflinkcep.expressions.tree import Tree
from pyflinkcep.sase.model import Component, Query
from pyflinkcep.sase.returns import Returns

Chosen = dict[str, list[int]]
"""A set r of the paper: variable to positions."""


def start_cep(query: Query, table: EventTable) -> list[Chosen]:
    """
    Return the matches of a ``;`` query (Algorithm 1, StartCEP).

    Start events are those of the rarest single element; VerifyEvents extends each.
    """
    found: list[Chosen] = []
    for positions, is_null in table.partitions(query):
        if not is_null:
            verifier = _Verifier.of(query, table, positions)
            for start in verifier.lists[verifier.start]:
                candidates = verifier.verify_events({verifier.start: [start]})
                found.extend(filter(verifier.satisfies, candidates))
    return found


@attrs.frozen(eq=False)
class _Verifier:
    """One partition's lists."""

    query: Query
    table: EventTable
    clauses: Clauses
    lists: Mapping[str, list[int]]
    start: str

    @classmethod
    def of(cls, query: Query, table: EventTable, positions: Iterable[int]) -> _Verifier:
        clauses = Clauses.of(query)
        asked = Returns(query, lambda at, name: table.columns[name][at])
        lists: dict[str, list[int]] = {part.variable: [] for part in query.components}
        for at, part in product(positions, query.components):
            is_one = table.types[at] == part.type
            tests = (table.columns[name][at] == value.value for name, value in query.constants)
            own = clauses.constant.get(part.variable, ())
            if is_one and all(tests) and all(asked.holds(c, {part.variable: [at]}) for c in own):
                lists[part.variable].append(at)
        singles = [part.variable for part in query.positive if not part.repeats]
        return cls(query, table, clauses, lists, min(singles, key=lambda name: len(lists[name])))

    def verify_events(self, chosen: Chosen) -> Iterator[Chosen]:
        """Yield the candidates with a start event (Algorithm 2, VerifyEvents)."""
        names = [part.variable for part in self.query.components]
        place = names.index(self.start)
        before, after = names[:place][::-1], names[place + 1 :]
        forward_first = not before or (after and self._average(before) >= self._average(after))
        order = [*after, *before] if forward_first else [*before, *after]
        parts = [self.query.component(name) for name in order]
        late = [part for part in parts if part.repeats or part.negated]
        late.sort(key=lambda part: part.negated)
        yield from self._extend([p for p in parts if p not in late] + late, chosen)

    def _average(self, names: Sequence[str]) -> float:
        return sum(len(self.lists[name]) for name in names) / len(names)

    def _extend(self, parts: Sequence[Component], chosen: Chosen) -> Iterator[Chosen]:
        if not parts:
            yield chosen
            return
        part, *rest = parts
        between = [at for at in self.lists[part.variable] if self._in_range(part, at, chosen)]
        if part.negated:
            if not any(self._stands(part, at, chosen) for at in between):
                yield from self._extend(rest, chosen)
        elif not part.repeats:
            for at in between:
                yield from self._extend(rest, {**chosen, part.variable: [at]})
        elif len(between) >= part.least:
            longer = {**chosen, part.variable: between}
            if self._fits(longer):
                yield from self._extend(rest, longer)

    def _in_range(self, part: Component, at: int, chosen: Chosen) -> bool:
        """Whether an event lies in [tx, ty] of the chosen events."""
        times, window = self.table.times, self.query.window
        place = self.query.place(part.variable)
        bound = [(self.query.place(name), own) for name, own in chosen.items()]
        low = max((times[own[-1]] for p, own in bound if p < place), default=None)
        high = min((times[own[0]] for p, own in bound if p > place), default=None)
        first = min(times[own[0]] for _, own in bound)
        last = max(times[own[-1]] for _, own in bound)
        inside = window is None or last - window <= times[at] <= first + window
        above = low is None or times[at] > low
        return inside and above and (high is None or times[at] < high)

    def _fits(self, chosen: Chosen) -> bool:
        """Whether the chosen events fit in the window."""
        times = [self.table.times[at] for own in chosen.values() for at in own]
        return self.query.window is None or max(times) - min(times) <= self.query.window

    def _stands(self, part: Component, at: int, chosen: Chosen) -> bool:
        clauses = self.clauses.absent.get(part.variable, ())
        return all(self._everywhere(c, {**chosen, part.variable: [at]}) for c in clauses)

    def satisfies(self, chosen: Chosen) -> bool:
        """Whether the association constraints hold."""
        return all(self._everywhere(clause, chosen) for clause in self.clauses.associations)

    def _everywhere(self, clause: Tree, chosen: Chosen) -> bool:
        """Whether a clause holds for each event of the closures that it names."""
        asked = Returns(self.query, self._attribute)
        loops = each_of(clause, self.query)
        for members in product(*(chosen[name] for name in loops)):
            each = dict(zip(loops, members, strict=True))
            if not asked.holds(clause, chosen, each):
                return False
        return True

    def _attribute(self, at: int, name: str) -> Any:
        return self.table.columns[name][at]
