# SPDX-License-Identifier: Apache-2.0
"""The runs at a component by the value that an equality asks of the next event."""

from __future__ import annotations

from typing import Any

from pyflinkcep.engines.sequences.equalities import Equality, equality_of
from pyflinkcep.engines.sequences.runs import Run
from pyflinkcep.engines.sequences.track import Track
from pyflinkcep.sase.model import CONTIGUOUS

__all__ = ["JoinedRuns"]

_NAN = float("nan")

_Keyed = dict[Any, Run]


class JoinedRuns:
    """
    The live runs at a component, so that an event meets only those that it may change.

    An event that fails a clause ``field = slot`` of an edge changes no run by that edge, if the
    strategies let runs skip it.

    Parameters
    ----------
    track : Track
        The events.
    component : int
        The component of the runs' last event.
    """

    def __init__(self, track: Track, component: int) -> None:
        automaton = track.automaton
        self._track = track
        self._component = component
        around = automaton.strategies[component : component + 2]
        is_last = component + 1 == automaton.size
        begin = None if is_last else equality_of(automaton.begin[component + 1].codes[1])
        take = equality_of(automaton.take[component].codes[1])
        is_found = not any(strategy in CONTIGUOUS for strategy in around) and (begin or take)
        edges: tuple[Equality | None, ...] = (begin, take) if is_found else ()
        self._edges: list[tuple[Equality | None, dict[Any, _Keyed]]] = [(e, {}) for e in edges]

    def put(self, key: Any, run: Run) -> None:
        """Add a run."""
        for equality, by_value in self._edges:
            if equality is not None and (value := run.slots[equality.slot]) is not None:
                by_value.setdefault(_comparable(value), {})[key] = run

    def remove(self, key: Any, run: Run) -> None:
        """Remove a run."""
        for equality, by_value in self._edges:
            if equality is not None and (value := run.slots[equality.slot]) is not None:
                own = by_value[_comparable(value)]
                del own[key]
                if not own:
                    del by_value[_comparable(value)]

    def met(self, at: int) -> list[tuple[Any, Run]] | None:
        """Return the runs that an event may change; None if it may change any."""
        if not self._edges:
            return None
        track, component = self._track, self._component
        fits = track.begins[at] >> (component + 1) & 1, track.takes[at] >> component & 1
        found: _Keyed = {}
        for (equality, by_value), fitting in zip(self._edges, fits, strict=True):
            if not fitting:
                continue
            if equality is None:
                return None
            value = track.fields[at][equality.field]
            if value is not None:
                found.update(by_value.get(_comparable(value), {}))
        return list(found.items())


def _comparable(value: Any) -> Any:
    """Return what values that SQL may call equal have in common: whole numbers become doubles."""
    if isinstance(value, str):
        return value
    try:
        number = float(value)
    except OverflowError:  # beyond all doubles
        return value
    return _NAN if number != number else number
