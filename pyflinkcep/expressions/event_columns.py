# SPDX-License-Identifier: Apache-2.0
"""Access to the columns of Python objects: mappings, Rows, objects with attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyflinkcep.errors import InputError, did_you_mean

__all__ = ["column", "element", "given", "member"]

Function = Callable[[Any], Any]


def column(name: str) -> Function:
    """Return a function that reads a column of an event."""
    return lambda event: member(event, name)


def member(owner: Any, name: str) -> Any:
    """Return a column of an event, or a field of a struct; names are compared as in Spark."""
    found = _exact_member(owner, name)
    if found is _MISSING:
        names = _names_of(owner)
        same = [other for other in names if other.casefold() == name.casefold()]
        if len(same) != 1:
            raise InputError(
                f"the event {_short(owner)} has no column {name!r}",
                did_you_mean(name, names, f"its columns are {names}"),
            )
        found = _exact_member(owner, same[0])
    return _of_python(found)


def given(place: int) -> Function:
    """Return a function that reads one of a sequence of values."""
    return lambda values: _of_python(values[place])


def _of_python(found: Any) -> Any:
    """Return a value, a NumPy scalar as Python's."""
    item = getattr(found, "item", None)
    return item() if callable(item) and not isinstance(found, Mapping) else found


_MISSING = object()


def _exact_member(owner: Any, name: str) -> Any:
    if isinstance(owner, Mapping):
        return owner.get(name, _MISSING)
    return getattr(owner, name, _MISSING)


def _names_of(owner: Any) -> list[str]:
    if isinstance(owner, Mapping):
        return [str(name) for name in owner]
    names: Iterable[str] = (
        getattr(owner, "_fields", None) or getattr(owner, "__fields__", None) or ()
    )
    return list(names) or [name for name in dir(owner) if not name.startswith("_")]


def _short(event: Any) -> str:
    text = repr(event)
    return text if len(text) < 80 else text[:77] + "..."


def element(whole: Any, key: Any) -> Any:
    """Return the element of an array at an index, or of a map under a key."""
    if isinstance(whole, Mapping):
        return whole.get(key)
    try:
        if key >= 0:
            return whole[key]
    except (IndexError, TypeError) as cause:
        raise InputError(
            f"expected an index below {len(whole)}, got {key!r}", "test size()"
        ) from cause
    raise InputError(f"expected an index from 0, got {key!r}", "use element_at() on Spark")
