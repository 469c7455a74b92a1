# SPDX-License-Identifier: Apache-2.0
"""Rows as dicts, and matches as the times of their events, whatever holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from pyflinkcep.errors import InvalidArgumentError

__all__ = ["Points", "check_count", "check_text", "dicts", "matches_of", "readable", "unit_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def dicts(name: str, rows: Any, most: int | None = None) -> list[dict[str, Any]]:
    """Return rows, or those of a DataFrame, as dicts: at most `most`."""
    if callable(getattr(rows, "collect", None)):
        rows = (rows if most is None else rows.limit(most)).collect()
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise InvalidArgumentError(
            f"{name}: expected rows or a DataFrame, got {rows!r}",
            "pass what funnel(), toDF() or match() return",
        )
    found: list[dict[str, Any]] = []
    for row in rows:
        if most is not None and len(found) == most:
            break
        own = row if isinstance(row, Mapping) else _fields(row)
        if own is None:
            raise InvalidArgumentError(
                f"{name}: expected rows as dicts or Rows, got {row!r}",
                "pass what funnel(), toDF() or match() return",
            )
        found.append(dict(own))
    return found


def check_text(name: str, argument: str, value: object) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise InvalidArgumentError(
            f"{name}: expected {argument} to be text, got {value!r}", f"write {argument}='text'"
        )


def check_count(name: str, argument: str, value: object) -> None:
    """Refuse what is no number of things."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgumentError(
            f"{name}: expected {argument} to be a whole number, at least 1, got {value!r}",
            f"write {argument}=20",
        )


def _fields(row: Any) -> Mapping[str, Any] | None:
    method = getattr(row, "asDict", None)
    return method() if callable(method) else None


@attrs.frozen
class Points:
    """
    A match as points in time.

    Attributes
    ----------
    label : str
        Its key, or its number.
    events : tuple of (str, int)
        The stage and the time of each event, in epoch milliseconds, in order of time.
    """

    label: str
    events: tuple[tuple[str, int], ...]

    @property
    def length_ms(self) -> int:
        """The time from the first event to the last."""
        return self.events[-1][1] - self.events[0][1]


def matches_of(
    name: str, matches: Any, time: str | Callable[[Any], Any], key: str | None, most: int
) -> list[Points]:
    """
    Return matches as points in time.

    Parameters
    ----------
    name : str
        The chart, for errors.
    matches : DataFrame or iterable
        Rows of ``toDF()``, or what ``match`` returns.
    time : str or callable
        The field or function of an event's time.
    key : str, optional
        The column of the rows that names a match.
    most : int
        The most matches.
    """
    if not isinstance(time, str) and not callable(time):
        raise InvalidArgumentError(
            f"{name}: expected time to be a field or a function of an event, got {time!r}",
            "write time='ts', or time=lambda event: event.ts",
        )
    if key is not None:
        check_text(name, "key", key)
    found = []
    for number, row in enumerate(dicts(name, matches, most)):
        events = [
            (stage, _milliseconds(name, event, time))
            for stage, taken in row.items()
            if isinstance(taken, list)
            for event in taken
        ]
        label = f"match {number}" if key is None else str(row.get(key))
        if events:
            found.append(Points(label, tuple(sorted(events, key=lambda event: event[1]))))
    return found


def _milliseconds(name: str, event: Any, time: str | Callable[[Any], Any]) -> int:
    try:
        if not isinstance(time, str):
            value = time(event)
        else:
            value = event[time] if isinstance(event, Mapping) else getattr(event, time)
    except (LookupError, AttributeError) as cause:
        raise InvalidArgumentError(
            f"{name}: the event {event!r} has no time {time!r}",
            "write time='ts' with the field that has it, or time=lambda event: event.ts",
        ) from cause
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidArgumentError(
            f"{name}: expected times in epoch milliseconds or datetimes, got {value!r}",
            "name the field with the event's time",
        )
    return int(value)


def unit_of(longest_ms: float) -> tuple[int, str]:
    """Return a unit for durations up to a length: its milliseconds, and its name."""
    return next(((ms, name) for ms, name in _UNITS if longest_ms >= 2 * ms), (1, "ms"))


def readable(milliseconds: float) -> str:
    """
    Return a duration to three digits.

    Examples
    --------
    >>> readable(90), readable(90_000), readable(5_400_000)
    ('90 ms', '90 s', '90 min')
    """
    size, unit = unit_of(milliseconds)
    return f"{milliseconds / size:.3g} {unit}"
