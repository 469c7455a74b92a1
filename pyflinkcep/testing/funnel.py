# SPDX-License-Identifier: Apache-2.0
"""How far keys and partial matches get in events in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import attrs

from pyflinkcep.engines.flink.nfa import EventMatch
from pyflinkcep.engines.flink.nfa.observer import StageObserver
from pyflinkcep.engines.flink.operator import CepOperator, KeyedCepOperator
from pyflinkcep.errors import suggesting
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.events import Table
from pyflinkcep.tables.rows import rows_of
from pyflinkcep.tables.values import field_getter, grouping_key
from pyflinkcep.testing.trace import Run, checked
from pyflinkcep.trace.funnel import Funnel, FunnelSettings, Reach, counted_funnel, funnel_steps
from pyflinkcep.trace.run import feed, over_numbers

__all__ = ["funnel"]


@suggesting
def funnel(
    pattern: Pattern,
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
    by: str | Sequence[str] = (),
    quantiles: float | Sequence[float] = (0.5, 0.9),
) -> Funnel:
    """
    Return how many keys reached each stage in events in memory, and how long it took.

    Parameters
    ----------
    pattern, events, timestamp, key, delayThreshold
        As for :func:`match`.
    by : str or list of str
        The fields to group by; a partial match is in the group of its first event.
    quantiles : float or list of float, from 0 to 1
        Which quantiles of the time to return.

    Returns
    -------
    Funnel
        A row for each group and stage, in ``rows``, with the columns of
        :meth:`pyflinkcep.PatternStream.funnel`; as text; and as a picture (``diagram()``), which
        notebooks show.

    Raises
    ------
    CepError
        As :func:`match`; or if `by` or `quantiles` are of the wrong kind.

    Examples
    --------
    >>> pattern = Pattern.begin("view").where("x = 'v'").followedBy("buy").where("x = 'b'")
    >>> log = [("ann", 0, "v"), ("bob", 10, "v"), ("ann", 60, "b"), ("cid", 70, "b")]
    >>> events = [{"user": user, "ts": ts, "x": x} for user, ts, x in log]
    >>> funnel(pattern, events, timestamp="ts", key="user")
    view → buy
      view  2 keys, 2 partial matches
      buy   1 key, 1 partial match, 50% of the first, 50% of the one before, p50 60 ms, p90 60 ms
    """
    settings = FunnelSettings.of("funnel", by, quantiles)
    given = rows_of(checked("funnel", pattern, events))
    run = Run.of(pattern, given, timestamp, key, delayThreshold)
    steps = funnel_steps(pattern)
    output = _Output(run.given.times, {step.stage: step.number for step in steps})
    operator = CepOperator(
        attrs.evolve(run.nfa, observer=StageObserver(output.reached)),
        given.__getitem__,
        expressions=over_numbers(run.expressions, given),
    )
    feed(KeyedCepOperator(operator, output, run.given.order_of_numbers), run.given)
    getters = [field_getter(name, "by") for name in settings.by]
    reaches = [
        Reach(
            tuple(grouping_key(get(given[first])) for get in getters),
            run.given.keys[first],
            step,
            since,
        )
        for first, step, since in output.found
    ]
    name = run.nfa.description
    return counted_funnel(name, steps, _sorted(reaches), settings, has_key=key is not None)


def _sorted(reaches: list[Reach]) -> list[Reach]:
    """Sort by group, nulls first; by its text if values of a field cannot be compared."""
    try:
        return sorted(reaches, key=lambda one: [(v is not None, v or 0) for v in one.group])
    except TypeError:
        return sorted(reaches, key=lambda one: repr(one.group))


@attrs.define(eq=False)
class _Output:
    """Collects the stages reached: the first event, the step, and the time since the one before."""

    times: Sequence[int]
    steps: dict[str, int]
    found: list[tuple[int, int, int | None]] = attrs.field(factory=list)

    def reached(self, timestamp: int, taken: EventMatch) -> None:
        before = [number for numbers in taken.values() for number in numbers][:-1]
        newest = max((self.times[number] for number in before), default=None)
        since = None if newest is None else timestamp - newest
        stage = next(reversed(taken))
        first = next(iter(taken.values()))[0]
        self.found.append((first, self.steps[stage], since))

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Ignore a match."""

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        """Ignore a timeout."""

    def dropped(self, key: Any, count: int) -> None:
        """Ignore that partial matches were dropped."""

    def late(self, key: Any, event: Any) -> None:
        """Ignore a late event."""
