# SPDX-License-Identifier: Apache-2.0
"""What the data says about a query without a condition being evaluated: counts and windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from pyflinkcep.engines.lists.ranges import Ints
from pyflinkcep.engines.lists.type_codes import TypeCodes
from pyflinkcep.engines.table import EventTable
from pyflinkcep.sase.model import Query

__all__ = ["SAMPLE", "Facts", "Places", "at_random", "distinct_values", "values_at"]

SAMPLE = 64
"""So many events, and pairs of events, are asked."""

_SOUGHT = 1 << 11
"""Where events for the sample are sought."""

_RARE = 32
"""Types with fewer events in a sample are counted exactly."""

_TOO_FEW = 16
"""If fewer are found there, all events of the type are listed."""


@attrs.frozen
class Facts:
    """
    What is known of a table without evaluating a condition.

    Attributes
    ----------
    events : int
        The number of events.
    partitions : float
        The number of partitions.
    share : float
        Which share of a partition a window covers.
    counts : dict of str to float
        By positive variable, the number of its events.
    places : Places
        Where they are.
    """

    events: int
    partitions: float
    share: float
    counts: dict[str, float]
    places: Places = attrs.field(eq=False, repr=False)

    @classmethod
    def of(cls, query: Query, table: EventTable) -> Facts:
        """Return the facts of a table with at least one event."""
        places = Places.of(query, table)
        size = len(table.times)
        if table.keys is None:
            partitions = _distinct_tests(query, table)
            span = float(table.times[-1]) - float(table.times[0])  # as integers it may not fit
        else:
            times = np.asarray(table.times, np.int64)
            keys = np.asarray(table.keys)  # which go up one by one
            some = keys[:: size // SAMPLE + 1]
            firsts, ends = np.searchsorted(keys, some), np.searchsorted(keys, some, "right")
            partitions = float(keys[-1] - keys[0] + 1)
            span = float(np.mean(times[ends - 1].astype(float) - times[firsts].astype(float)))
        share = 1.0
        if query.window is not None:
            share = min(1.0, (query.window + 1) / (span + 1))
        elif query.most_events is not None:
            share = min(1.0, query.most_events * partitions / size)
        return cls(size, partitions, share, places.counts(), places)

    def counted(self) -> Facts:
        """Return the same with exact counts of what is rare."""
        return attrs.evolve(self, counts={**self.counts, **self.places.exactly(list(self.counts))})

    def passing(self, shares: Mapping[str, float]) -> Facts:
        """Return the same as if only a share of each variable's events were there."""
        return attrs.evolve(self, counts={v: n * shares[v] for v, n in self.counts.items()})


@attrs.frozen(eq=False, slots=False)
class Places:
    """Where the events of variables are, by their types."""

    _codes: TypeCodes
    _types: Mapping[str, str]
    _sample: Mapping[str, int]
    _known: dict[str, Ints] = attrs.field(factory=dict)
    _sought: list[tuple[Ints, Ints]] = attrs.field(factory=list)

    @classmethod
    def of(cls, query: Query, table: EventTable) -> Places:
        """Return where the events of a query's variables are."""
        types = {part.variable: part.type for part in query.positive}
        codes = TypeCodes.of(table.types, types.values())
        return cls(codes, types, codes.sampled())

    def counts(self) -> dict[str, float]:
        """Return about how many events there are, by variable."""
        size = len(self._codes.codes)
        scale = size / len(range(0, size, self._codes.step))
        return {v: max(self._sample[type_], 0.5) * scale for v, type_ in self._types.items()}

    def exactly(self, rare: Sequence[str]) -> dict[str, float]:
        """Return exactly how many events some variables have if `counts` may be far off."""
        if self._codes.step == 1:
            return {}
        own = {v: self._types[v] for v in rare if self._sample[self._types[v]] < _RARE}
        return {v: float(len(self._positions(type_))) for v, type_ in own.items()}

    def some(self, variable: str) -> Ints:
        """Return the places of some events at random, all if there are few."""
        at, types = self._at_random()
        type_ = self._types[variable]
        own: Ints = at[types == self._codes.names.index(type_)]
        if len(own) < _TOO_FEW and len(at) < len(self._codes.codes):
            own = self._positions(type_)
            if len(own) > SAMPLE:
                own = own[at_random(SAMPLE, len(own))]
        return own[:SAMPLE]

    def _positions(self, type_: str) -> Ints:
        if type_ not in self._known:
            self._known[type_] = self._codes.positions_of(type_)
        return self._known[type_]

    def _at_random(self) -> tuple[Ints, Ints]:
        """Return some events at random, and their types as indexes of the types' names, or -1."""
        if not self._sought:
            codes, size = self._codes, len(self._codes.codes)
            at = at_random(_SOUGHT, size) if size > _SOUGHT else np.arange(size)
            own = codes.codes[at]
            self._sought.append((at, np.where(own >= 0, codes.lists[own], -1)))
        return self._sought[0]


def at_random(number: int, size: int) -> Ints:
    """Return numbers below a size, the same each time."""
    chosen: Ints = (_uniform(number) * size).astype(np.int64)
    return chosen


@lru_cache(maxsize=8)
def _uniform(number: int) -> Any:
    return np.random.default_rng(0).random(number)


def _distinct_tests(query: Query, table: EventTable) -> float:
    """Return the number of partitions by ``[attr]``, estimated."""
    if query.is_global or not query.equal:
        return 1.0
    at = np.linspace(0, len(table.times) - 1, min(_SOUGHT, len(table.times))).astype(int)
    columns = [values_at(table.columns[name], at) for name in query.equal]
    return distinct_values(list(zip(*columns, strict=True)), len(table.times))


def distinct_values(values: Sequence[Any], size: float) -> float:
    """Return how many distinct values there are among `size`, given some at random."""
    number, distinct = len(values), len(set(values))
    if not number:
        return 1.0
    if number >= size:
        return float(distinct)
    twice = number - distinct  # pairs that are equal, about number ** 2 / (2 * all)
    least = float(distinct)
    return min(size, max(least, number * number / 2 / (twice + 0.5))) if twice < distinct else least


def values_at(column: Any, at: Any) -> list[Any]:
    """Return the values of a column at some places."""
    if isinstance(column, np.ndarray):
        values: list[Any] = column[at].tolist()
        return values
    return [column[place] for place in at.tolist()]
