# SPDX-License-Identifier: Apache-2.0
"""The pattern that ClickHouse's function ``windowFunnel`` looks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pyflinkcep.errors import InvalidArgumentError, NotSupportedError, did_you_mean, suggesting
from pyflinkcep.expressions.tree import quoted_name
from pyflinkcep.pattern.coercion import Condition
from pyflinkcep.pattern.pattern import Pattern
from pyflinkcep.time import window_milliseconds

_ONCE, _INCREASE = "strict_once", "strict_increase"
_OTHERS = {
    "strict_order": "it gives a key up at the first event out of order after a start, also for "
    "starts that come later; stages joined with next() try each start on its own",
    "strict_deduplication": "it gives a key up at the first step that repeats, also for starts "
    "that come later; notFollowedBy() between two stages forbids an event for each start",
    "allow_reentry": "it belongs to strict_order",
}


@suggesting
def windowFunnel(
    window: timedelta,
    conditions: Mapping[str, Condition],
    modes: str | Sequence[str] = (),
    timestamp: str | None = None,
) -> Pattern:
    """
    Return the pattern that ClickHouse's ``windowFunnel(window, modes…)`` looks for.

    By :meth:`PatternStream.funnel` as many keys reach stage k as ``windowFunnel`` returns k or more
    for, with the differences that Notes name.

    Parameters
    ----------
    window : timedelta
        The longest time from the first event to the last; an event exactly at its end counts.
    conditions : mapping of str to str, Column or callable
        The steps in order: the name of each, and its condition as for :meth:`Pattern.where`.
    modes : {"strict_once", "strict_increase"}, or a list of them
        ``strict_once``: an event counts for one step only, as always here. ``strict_increase``: the
        times of steps increase strictly.
    timestamp : str, optional
        The time column, for ``strict_increase``.

    Returns
    -------
    Pattern
        Stages joined with ``followedBy``, within the window.

    Raises
    ------
    NotSupportedError
        If a mode is one whose meaning no pattern has; the message says what differs.
    InvalidArgumentError
        If there are no conditions, a mode is unknown, or `timestamp` is missing or not needed.

    Notes
    -----
    With both modes the answers are ClickHouse's. Without ``strict_once`` it counts an event that
    satisfies several conditions for all of these steps, and forgets a start when the next one
    comes. Without ``strict_increase`` it sorts events of equal time by step; here they keep their
    order. Neither matters if an event satisfies one condition and times differ within a key.

    Examples
    --------
    >>> windowFunnel(timedelta(minutes=5), {"view": "page = 'item'", "buy": "page = 'paid'"})
    Pattern(view → buy)
    """
    if not isinstance(conditions, Mapping) or not conditions:
        raise InvalidArgumentError(
            f"windowFunnel: expected conditions by the names of steps, got {conditions!r}",
            "write {'view': \"page = 'item'\", 'buy': \"page = 'paid'\"}",
        )
    increases = _INCREASE in _checked(modes)
    if not isinstance(timestamp, str) if increases else timestamp is not None:
        raise InvalidArgumentError(
            f"windowFunnel: {_INCREASE!r} needs the column of times, and nothing else does; "
            f"got timestamp={timestamp!r}",
            f"write modes={_INCREASE!r}, timestamp='ts'",
        )
    pattern: Pattern | None = None
    before = ""
    for name, condition in conditions.items():
        begun = Pattern.begin(name) if pattern is None else pattern.followedBy(name)
        pattern = begun.where(condition)
        if before and increases:
            column = quoted_name(str(timestamp))
            pattern = pattern.where(f"{column} > last({quoted_name(before)}.{column})")
        before = name
    assert pattern is not None
    longest = window_milliseconds(window, "windowFunnel") + 1
    return pattern.within(timedelta(milliseconds=longest))


def _checked(modes: Any) -> list[str]:
    """Return the modes, if each is one that a pattern has."""
    given = list(modes) if isinstance(modes, list | tuple | set | frozenset) else [modes]
    for mode in given:
        if isinstance(mode, str) and mode in _OTHERS:
            raise NotSupportedError(
                f"windowFunnel does not support the mode {mode!r}", _OTHERS[mode]
            )
        if mode not in (_ONCE, _INCREASE):
            known = [_ONCE, _INCREASE, *_OTHERS]
            hint = did_you_mean(str(mode), known, f"write one of {_ONCE!r} and {_INCREASE!r}")
            raise InvalidArgumentError(f"windowFunnel: unknown mode {mode!r}", hint)
    return given
