# SPDX-License-Identifier: Apache-2.0
"""What became of events in memory, and of the partial matches that they began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from pyflinkcep.choices import OnTooManyPartialMatches
from pyflinkcep.conditions import IterativeCondition
from pyflinkcep.engines.flink.nfa import NFACompiler
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.pattern import Pattern
from pyflinkcep.runtime import RuntimeContext
from pyflinkcep.testing.events import Table, events_of
from pyflinkcep.testing.sql import Evaluated, evaluated_here, expressions_over_stages
from pyflinkcep.testing.values import (
    delay_ms,
    epoch_milliseconds,
    grouping_key,
    key_getter,
    times_of,
)
from pyflinkcep.trace.result import Trace
from pyflinkcep.trace.run import Input, traced

__all__ = ["trace"]


def trace(
    pattern: Pattern,
    events: Table | Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    delayThreshold: timedelta | None = None,
    maxPartialMatches: int | None = None,
    onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
) -> Trace:
    """
    Return what a pattern did with events in memory, event by event.

    The matches are those of :func:`match`: the same code finds them, while it is watched.

    Parameters
    ----------
    pattern, events, timestamp, key, delayThreshold
        As for :func:`match`.
    maxPartialMatches, onTooManyPartialMatches
        As for :class:`OperatorTestHarness`.

    Returns
    -------
    Trace
        What became of each event and partial match: as text, which says for each event that could
        begin a match how far it got and what failed there; as a picture (``diagram()``), which
        notebooks show; and as data (``events``, ``partials``, ``found``). ``text(full=True)`` tells
        all that each event did.

    Raises
    ------
    CepError
        As :func:`match`.

    Notes
    -----
    Cost: each event is recorded for each partial match that it passes by, so trace few events.

    Examples
    --------
    >>> pattern = Pattern.begin("low").where("n < 3").next("high").where("n > 7")
    >>> trace(pattern, [{"n": 1}, {"n": 5}, {"n": 2}, {"n": 9}])
    low ⇒ high: 4 events, 1 match
    <BLANKLINE>
    event 0 at 0: n=1
      got to 'low', stage 1 of 2: low 0
      ended by event 1: 'high' had to follow directly
        high: n > 7 was false for event 1: n = 5
    <BLANKLINE>
    event 2 at 2: n=2
      match 0: low 2, high 3
    <BLANKLINE>
    2 events could not begin a match
      low: n < 3 was false 2 times, last for event 3: n = 9
    """
    if not isinstance(pattern, Pattern):
        raise InvalidArgumentError(
            f"trace: expected a Pattern, got {pattern!r}", "write trace(pattern, events, ...)"
        )
    given = list(events_of(events))
    here = evaluated_here(pattern, given)
    nfa = NFACompiler.compile(here, timeoutHandling=True)
    nfa.open(RuntimeContext())
    times = range(len(given)) if timestamp is None else times_of(given, timestamp)
    key_of = None if key is None else key_getter(key)
    arrived = Input(
        given,
        [epoch_milliseconds(time, event) for time, event in zip(times, given, strict=True)],
        [None if key_of is None else grouping_key(key_of(event)) for event in given],
        None if delayThreshold is None else delay_ms(delayThreshold),
    )
    limit = PartialMatchLimit.of(maxPartialMatches, onTooManyPartialMatches)
    return traced(here, nfa, arrived, expressions_over_stages(nfa, given), limit, _sql_of)


def _sql_of(condition: IterativeCondition) -> str | None:
    return condition.text if isinstance(condition, Evaluated) else None
