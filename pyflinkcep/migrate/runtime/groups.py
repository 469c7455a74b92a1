# SPDX-License-Identifier: Apache-2.0
"""Orders, groups and changes of lists, sets and maps."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

from pyflinkcep.migrate.runtime.strings import compare_text
from pyflinkcep.migrate.runtime.values import compare

__all__ = [
    "Matcher", "added", "as_map", "computed", "greatest_by", "grouped", "in_order", "index_in",
    "least_by", "merged", "natural_order", "order_by", "reduced", "reversed_order",
    "then_order",
]  # fmt: skip

Order = Callable[[Any, Any], int]


def natural_order(a: Any, b: Any) -> int:
    """
    Return a negative number, 0 or a positive one, as ``compareTo`` does.

    Examples
    --------
    >>> natural_order("a", "b"), natural_order(2, 2), natural_order(True, False)
    (-1, 0, 1)
    """
    return compare_text(a, b) if isinstance(a, str) else compare(a, b)


def order_by(key: Callable[[Any], Any], order: Order = natural_order) -> Order:
    """Return the order of values by a key."""
    return lambda a, b: order(key(a), key(b))


def reversed_order(order: Order) -> Order:
    """Return the opposite order."""
    return lambda a, b: order(b, a)


def then_order(first: Order, second: Order) -> Order:
    """Return an order, and another one for values that are the same in it."""
    return lambda a, b: first(a, b) or second(a, b)


def in_order(values: Iterable[Any], order: Order = natural_order) -> list[Any]:
    """
    Return values in an order.

    Examples
    --------
    >>> in_order([3, 1, 2], reversed_order(natural_order))
    [3, 2, 1]
    """
    return sorted(values, key=functools.cmp_to_key(order))


def greatest_by(values: Iterable[Any], order: Order = natural_order) -> Any:
    """Return the greatest value, the first of several; None if there is none."""
    return _best(values, lambda a, b: order(a, b) >= 0)


def least_by(values: Iterable[Any], order: Order = natural_order) -> Any:
    """Return the least value, the first of several; None if there is none."""
    return _best(values, lambda a, b: order(a, b) <= 0)


def _best(values: Iterable[Any], is_better: Callable[[Any, Any], bool]) -> Any:
    return reduced(values, lambda a, b: a if is_better(a, b) else b)


def reduced(values: Iterable[Any], function: Callable[[Any, Any], Any]) -> Any:
    """Return values combined by a function; None if there is none."""
    listed = list(values)
    return functools.reduce(function, listed) if listed else None


def grouped(
    values: Iterable[Any],
    key: Callable[[Any], Any],
    result: Callable[[list[Any]], Any],
    both: bool = False,
) -> dict[Any, Any]:
    """
    Return what becomes of the values of each key; with `both`, keys are true and false.

    Examples
    --------
    >>> grouped(["a", "bb", "cc"], len, len)
    {1: 1, 2: 2}
    """
    found: dict[Any, list[Any]] = {False: [], True: []} if both else {}
    for value in values:
        found.setdefault(key(value), []).append(value)
    return {name: result(group) for name, group in found.items()}


def as_map(
    values: Iterable[Any],
    key: Callable[[Any], Any],
    value: Callable[[Any], Any],
    merge: Callable[[Any, Any], Any] | None = None,
) -> dict[Any, Any]:
    """Return a map of values; raise if a key occurs twice and nothing merges them."""
    found: dict[Any, Any] = {}
    for one in values:
        name = key(one)
        if name in found and merge is None:
            raise ValueError(f"IllegalStateException: duplicate key {name}")
        new = value(one)
        found[name] = merge(found[name], new) if merge is not None and name in found else new
    return found


def merged(of: dict[Any, Any], key: Any, value: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Combine a value of a map with another one; return the new value."""
    before = of.get(key)
    of[key] = value if before is None else function(before, value)
    return of[key]


def computed(of: dict[Any, Any], key: Any, function: Callable[[Any], Any]) -> Any:
    """Return a value of a map, made and kept if there is none."""
    if of.get(key) is None:
        of[key] = function(key)
    return of[key]


def added(of: set[Any], value: Any) -> bool:
    """Add a value to a set; return whether it is new."""
    is_new = value not in of
    of.add(value)
    return is_new


def index_in(values: list[Any], value: Any) -> int:
    """Return the first place of a value; -1 if it is not there."""
    return values.index(value) if value in values else -1


class Matcher:
    """
    A search for a regular expression in a text.

    Examples
    --------
    >>> found = Matcher("b(.)", "abc")
    >>> found.matches(), found.find(), found.group(1)
    (False, True, 'c')
    """

    def __init__(self, pattern: str, text: str) -> None:
        self._pattern = re.compile(pattern, re.ASCII)
        self._text = text
        self._found: re.Match[str] | None = None
        self._at = 0

    def matches(self) -> bool:
        """Whether the whole text matches."""
        self._found = self._pattern.fullmatch(self._text)
        return self._found is not None

    def find(self) -> bool:
        """Whether there is another part that matches."""
        self._found = self._pattern.search(self._text, self._at)
        if self._found is not None:
            self._at = max(self._found.end(), self._found.start() + 1)
        return self._found is not None

    def group(self, place: int | str = 0) -> Any:
        """Return a part of what was found; raise if nothing was."""
        if self._found is None:
            raise ValueError("IllegalStateException: no match found")
        return self._found[place]
