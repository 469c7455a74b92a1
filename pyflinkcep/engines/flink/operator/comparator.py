# SPDX-License-Identifier: Apache-2.0
"""The order of events of equal time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pyflinkcep.errors import InvalidArgumentError

__all__ = ["Comparator", "comparator_key"]

Comparator = Any
"""A sort key of one event, a function of two that compares them, or an ``EventComparator``."""


def comparator_key(comparator: Comparator | None) -> Callable[[Any], Any] | None:
    """
    Turn a comparator into a sort key.

    Parameters
    ----------
    comparator : callable or None
        A function of one event that returns a sort key, or of two events that compares them like
        Java's ``Comparator``; or an object with a method ``compare`` of two events.

    Raises
    ------
    InvalidArgumentError
        If it is neither.

    Examples
    --------
    >>> sorted([3, 1, 2], key=comparator_key(lambda a, b: b - a))
    [3, 2, 1]
    """
    if comparator is None:
        return None
    compare = getattr(comparator, "compare", None)
    if compare is not None:
        return functools.cmp_to_key(compare)
    if not callable(comparator):
        raise InvalidArgumentError(
            f"expected a comparator, got {comparator!r}",
            "pass a sort key or a function of two events",
        )
    key: Callable[[Any], Any] = comparator
    try:
        parameters = inspect.signature(comparator).parameters.values()
    except (TypeError, ValueError):
        return key
    required = sum(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        for p in parameters
    )
    return functools.cmp_to_key(comparator) if required == 2 else key
