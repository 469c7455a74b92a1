# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern on any iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyflinkcep.errors import InputError
from pyflinkcep.nfa import EventMatch
from pyflinkcep.pattern import Pattern
from pyflinkcep.testing.harness import OperatorTestHarness

__all__ = ["match"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def match(
    pattern: Pattern,
    events: Iterable[Any],
    timestamp: str | Callable[[Any], Any] | None = None,
    key: str | Callable[[Any], Any] | None = None,
) -> list[EventMatch]:
    """
    Give the matches of a pattern on a list, or any other iterable, of events.

    Parameters
    ----------
    pattern : Pattern
        The pattern; its conditions are functions or condition objects, not SQL.
    events : iterable
        The events. Without `timestamp` they are in order, a millisecond apart.
    timestamp : str or callable, optional
        The field or function that gives an event's time: epoch milliseconds, or a datetime
        (UTC where it has no zone). Events are put in order of time first.
    key : str or callable, optional
        The field or function that gives an event's key; one key for all when not given.

    Returns
    -------
    list of dict of str to list
        Stage name to events, stages in pattern order; matches key by key.

    Examples
    --------
    >>> pattern = Pattern.begin("low").where(lambda n: n < 3).next("high").where(lambda n: n > 7)
    >>> match(pattern, [5, 2, 9, 1, 8])
    [{'low': [2], 'high': [9]}, {'low': [1], 'high': [8]}]
    """
    harness = OperatorTestHarness(pattern)
    time_of = None if timestamp is None else _getter(timestamp)
    key_of = None if key is None else _getter(key)
    for position, event in enumerate(events):
        time = position if time_of is None else _milliseconds(time_of(event), event)
        harness.processElement(event, time, None if key_of is None else key_of(event))
    harness.close()
    return [found for _, _, found in harness.matches]


def _getter(field: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    if callable(field):
        return field
    return lambda event: event[field] if isinstance(event, dict) else getattr(event, field)


def _milliseconds(time: Any, event: Any) -> int:
    if isinstance(time, datetime):
        moment = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(time, int):
        return time
    raise InputError(
        f"the time of event {event!r} is {time!r}",
        "give epoch milliseconds as int, or a datetime",
    )
