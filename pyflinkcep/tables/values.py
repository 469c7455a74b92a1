# SPDX-License-Identifier: Apache-2.0
"""Times, keys and fields of events in memory, by Spark's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from pyflinkcep.errors import (
    CepError,
    Field,
    InputError,
    InvalidArgumentError,
    KeyFields,
    Place,
    TimeUnitWarning,
    did_you_mean,
)
from pyflinkcep.functions import check_arguments, function_name
from pyflinkcep.time import (
    MAX_WATERMARK,
    MIN_WATERMARK,
    exact_moment,
    plain,
    to_milliseconds,
    wrong_unit,
)


def epoch_milliseconds(time: Any, event: Any) -> int:
    """Return an event's time in epoch milliseconds."""
    return exact_time(time, event) // 1000


def exact_time(time: Any, event: Any) -> int:
    """Return an event's time in epoch microseconds; see :func:`epoch_milliseconds`."""
    is_plain = type(time) is int
    if isinstance(time, str):
        raise InputError(
            f"the time of event {event!r}: expected epoch milliseconds or a datetime, got {time!r}",
            "for times as text, write timestamp=textTime('ts') or textTime('ts', '%d.%m.%Y %H:%M')",
        )
    exact = time * 1000 if is_plain else exact_moment(time, f"the time of event {event!r}")
    if not MIN_WATERMARK < exact // 1000 <= MAX_WATERMARK:
        raise InputError(
            f"the time of event {event!r}: expected epoch milliseconds of 64 bits, got "
            f"{exact // 1000}",
            "pass epoch milliseconds, not nanoseconds or a value that stands for a missing time",
        )
    return exact


def times_of(events: Sequence[Any], field: Field) -> list[int]:
    """Return the times of events in epoch milliseconds; see :func:`exact_times_of`."""
    return [time // 1000 for time in exact_times_of(events, field)]


def tie_order(events: Sequence[Any], exact: Sequence[int]) -> Callable[[Any], int] | None:
    """Return the order of events within a millisecond; None if they have whole milliseconds."""
    if not any(time % 1000 for time in exact):
        return None
    known = dict(zip(map(id, events), exact, strict=True))
    return lambda event: known[id(event)]


def exact_times_of(events: Sequence[Any], field: Field | None) -> list[int]:
    """
    Return the times of events in epoch microseconds, by which they are ordered.

    Without a field they are in order, a millisecond apart.
    """
    if field is None:
        return list(range(0, 1000 * len(events), 1000))
    get = field_getter(field, "timestamp")
    given = [get(event) for event in events]
    times = [exact_time(t, event) for t, event in zip(given, events, strict=True)]
    if times and not any(isinstance(plain(time), datetime) for time in given):
        what = f"timestamp={field!r}" if isinstance(field, str) else "timestamp"
        warn_of_unit(min(times) // 1000, max(times) // 1000, what)
    return times


def warn_of_unit(earliest: int, latest: int, what: str) -> None:
    """Warn at the user's line if whole numbers look like another unit than milliseconds."""
    warning = wrong_unit(earliest, latest, what)
    if warning is not None:
        Place.here().warn(warning, TimeUnitWarning)


def has_time(event: Any, field: Field) -> bool:
    """Whether an event has a time at all."""
    return plain(field_getter(field, "timestamp")(event)) is not None


def watermark(time: Any) -> int:
    """Return a watermark, or a time of the clock, in epoch milliseconds."""
    given = time if type(time) is int else exact_moment(time, "the watermark") // 1000
    return max(MIN_WATERMARK, min(given, MAX_WATERMARK))


def delay_ms(threshold: timedelta) -> int:
    """Return how far the watermark is behind the latest time, in milliseconds."""
    milliseconds = to_milliseconds(threshold, "delayThreshold")
    if milliseconds < 0:
        raise InvalidArgumentError(
            f"delayThreshold: expected zero or more, got {threshold!r}",
            "write timedelta(0) if no event may come late",
        )
    return milliseconds


class _Nan(float):
    """NaN as a key, which is equal to itself."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nan)

    def __hash__(self) -> int:
        return hash(_Nan)


def grouping_key(key: Any) -> Any:
    """Return a key as Spark groups by it: NaN equals NaN, and a missing value is null."""
    value = plain(key)
    if isinstance(value, list | tuple) or type(value).__name__ == "ndarray":
        return tuple(map(grouping_key, value))
    try:
        hash(value)
    except TypeError as cause:
        raise InputError(
            f"expected a key that can be compared, got {type(key).__name__}: {key!r}",
            "use a text, a number, a time, or a tuple of them as key",
        ) from cause
    return _Nan("nan") if value != value else value


def key_getter(key: KeyFields) -> Callable[[Any], Any]:
    """Return a function that returns the key of an event, by a field, several or a function."""
    if not isinstance(key, list | tuple) or not key:
        return field_getter(key, "key")
    getters = [field_getter(name, "key") for name in key]
    return lambda event: tuple(get(event) for get in getters)


def field_getter(field: Any, what: str) -> Callable[[Any], Any]:
    """Return a function that returns a field of an event."""
    if callable(field):
        check_arguments(field, "(event)", f"{what}: ")
        return _guarded(field, what)
    if isinstance(field, str):
        return _named(field, what)
    raise InvalidArgumentError(
        f"{what}: expected the name of a field or a function of the event, got {field!r}",
        f"write {what}='name', or {what}=lambda event: event.name",
    )


def _guarded(function: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """Return a function of the user's, whose errors say for which event it raised."""

    def get(event: Any) -> Any:
        try:
            return function(event)
        except CepError:
            raise
        except Exception as cause:
            raise InputError(
                f"{what}: {function_name(function)} raised {type(cause).__name__}: {cause}, for "
                f"the event {event!r:.300}",
                f"write {what}='name', or {what}=lambda event: event.name",
            ) from cause

    return get


_ANY_FIELD = "pass the name of a field that every event has, or a function of the event"


def _names_of(event: Any) -> list[str]:
    """Return the names of an event's fields."""
    names = list(event) if isinstance(event, dict) else dir(event)
    return [name for name in names if isinstance(name, str) and not name.startswith("_")]


def _named(field: str, what: str) -> Callable[[Any], Any]:
    def get(event: Any) -> Any:
        try:
            return event[field] if isinstance(event, dict) else getattr(event, field)
        except (LookupError, AttributeError) as cause:
            raise InputError(
                f"{what}={field!r}: the event {event!r} has no {field!r}",
                did_you_mean(field, _names_of(event), _ANY_FIELD),
            ) from cause

    return get
