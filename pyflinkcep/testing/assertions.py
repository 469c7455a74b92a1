# SPDX-License-Identifier: Apache-2.0
"""Compares matches with expected ones, and shows the difference line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import ndiff
from typing import Any

from pyflinkcep.errors import InvalidArgumentError, suggesting
from pyflinkcep.tables.values import field_getter


@suggesting
def assertMatches(
    actual: Iterable[Mapping[str, Sequence[Any]]],
    expected: Iterable[Mapping[str, Sequence[Any]]],
    by: str | Callable[[Any], Any] | None = None,
    ignoreOrder: bool = False,
) -> None:
    """
    Assert that matches are as expected.

    Parameters
    ----------
    actual : iterable of mapping of str to sequence
        The matches, as returned by :func:`pyflinkcep.match` or a harness.
    expected : iterable of mapping of str to sequence
        The expected matches. Stages that took nothing are absent.
    by : str or callable, optional
        Compare this field, or what this function returns, instead of whole events; `expected`
        then has those values.
    ignoreOrder : bool
        Whether the order of matches is ignored.

    Raises
    ------
    InvalidArgumentError
        If `actual` or `expected` is not a list of dicts of lists.
    InputError
        If an event has no field `by`.
    AssertionError
        If the matches differ. The message has a line for each match: ``-`` is missing, ``+`` is not
        expected.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> from pyflinkcep.testing import match
    >>> pattern = Pattern.begin("low").where(lambda e: e.n < 3).next("high")
    >>> events = [{"n": 5}, {"n": 2}, {"n": 9}]
    >>> assertMatches(match(pattern, events), [{"low": [2], "high": [9]}], by="n")
    >>> assertMatches(match(pattern, events), [{"low": [2], "high": [8]}], by="n")
    Traceback (most recent call last):
    ...
    AssertionError: 1 of 1 expected matches missing, 1 unexpected:
    - low: 2 | high: 8
    + low: 2 | high: 9
    """
    __tracebackhide__ = True
    value_of = _value_of(by)
    found = [
        {name: list(map(value_of, events)) for name, events in match.items()}
        for match in _checked(actual, "actual")
    ]
    wanted = [
        {name: list(events) for name, events in match.items()}
        for match in _checked(expected, "expected")
    ]
    if found == wanted or (ignoreOrder and _same(found, wanted)):
        return
    shown, hoped = list(map(_line, found)), list(map(_line, wanted))
    if ignoreOrder:
        shown, hoped = sorted(shown), sorted(hoped)
    lines = [line for line in ndiff(hoped, shown) if not line.startswith("?")]
    missing = sum(line.startswith("- ") for line in lines)
    surplus = sum(line.startswith("+ ") for line in lines)
    raise AssertionError(
        f"{missing} of {len(wanted)} expected matches missing, {surplus} unexpected:\n"
        + "\n".join(lines)
    )


def _checked(matches: Any, what: str) -> list[Mapping[str, Sequence[Any]]]:
    """Return matches as a list; refuse what is not a list of dicts of lists."""
    if isinstance(matches, str | Mapping) or not isinstance(matches, Iterable):
        raise InvalidArgumentError(
            f"assertMatches, {what}: expected a list of matches, got {matches!r:.300}",
            "write [{'stage': [event]}], or [] for no matches",
        )
    listed = list(matches)
    for match in listed:
        if not isinstance(match, Mapping):
            raise InvalidArgumentError(
                f"assertMatches, {what}: expected a dict of stage to events, got {match!r:.300}",
                "a harness lists (key, time, match): pass [m for _, _, m in harness.matches]",
            )
        for stage, events in match.items():
            if isinstance(events, str | Mapping) or not isinstance(events, Iterable):
                raise InvalidArgumentError(
                    f"assertMatches, {what}: expected a list of events of {stage!r}, "
                    f"got {events!r:.300}",
                    f"write {{{stage!r}: [event]}}; compare the rows of RETURN by ==",
                )
    return listed


def _same(found: list[Any], wanted: list[Any]) -> bool:
    """Whether two lists have the same elements, in any order; they need not be hashable."""
    rest = list(wanted)
    for match in found:
        if match not in rest:
            return False
        rest.remove(match)
    return not rest


def _value_of(by: str | Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if by is None:
        return lambda event: event
    return field_getter(by, "by")


def _line(match: Mapping[str, Sequence[Any]]) -> str:
    return " | ".join(f"{name}: {', '.join(map(repr, events))}" for name, events in match.items())
