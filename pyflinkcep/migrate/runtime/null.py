# SPDX-License-Identifier: Apache-2.0
"""Null, and what is not translated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyflinkcep.errors import FunctionError, NotSupportedError

__all__ = ["kept_if", "mapped", "not_translated", "or_else", "present"]

T = TypeVar("T")
R = TypeVar("R")


def present(value: T | None) -> T:
    """
    Return a value; raise where Java has a NullPointerException.

    Examples
    --------
    >>> present("a")
    'a'
    """
    if value is None:
        raise FunctionError("null where Java calls a method: NullPointerException", "test for None")
    return value


def not_translated(where: str, why: str) -> NotSupportedError:
    """Make the error of a function that a person has to write."""
    return NotSupportedError(f"{where} is not translated: {why}", "write it in Python")


def or_else(value: T | None, other: T) -> T:
    """Return a value, or another if it is null."""
    return other if value is None else value


def mapped(value: T | None, function: Callable[[T], R]) -> R | None:
    """Return a function's value, or null for null."""
    return None if value is None else function(value)


def kept_if(value: T | None, test: Callable[[T], object]) -> T | None:
    """Return a value that satisfies a condition; null otherwise."""
    return value if value is not None and test(value) else None
