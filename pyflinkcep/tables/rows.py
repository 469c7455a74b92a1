# SPDX-License-Identifier: Apache-2.0
"""Events in any form as a table if they are columns, and as single events, the same in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyflinkcep.tables.events import events_of, is_objects

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["rows_of", "table_of_dicts", "table_or_none"]

_MANY = 1000
"""From how many dicts on it pays to load Arrow."""


def table_or_none(source: Any) -> pa.Table | None:
    """Return events as a table; None for objects, and for columns that Arrow has no type for."""
    if is_objects(source):
        return None
    from pyflinkcep.tables.given import table_of  # which loads Arrow

    return table_of(source)


def table_of_dicts(source: Any) -> pa.Table | None:
    """Return many dicts with the same fields as a table; None for fewer, and for other events."""
    if not isinstance(source, list | tuple) or len(source) < _MANY:
        return None
    if set(map(type, source)) != {dict} or not source[0]:
        return None
    names = list(source[0])
    if any(list(row) != names for row in source):
        return None
    from pyflinkcep.tables.given import table_of  # which loads Arrow

    return table_of({name: [row[name] for row in source] for name in names})


def rows_of(source: Any) -> list[Any]:
    """
    Return events one by one, with the values that they have as a table.

    Raises
    ------
    InvalidArgumentError
        If they are neither events nor a table.
    """
    table = table_or_none(source)
    return list(events_of(source if table is None else table))
