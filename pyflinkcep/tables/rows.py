# SPDX-License-Identifier: Apache-2.0
"""Events of any form: as a table if they are columns, and one by one, with the same values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.tables.events import Record, as_event, library

if TYPE_CHECKING:
    import pyarrow as pa


_MANY = 1000
"""From how many dicts on it pays to load Arrow."""


def table_or_rest(source: Any) -> tuple[pa.Table | None, Any]:
    """Return events as a table, None if they are none, and as what ``rows_of`` takes."""
    if not has_columns(source):
        return None, source
    from pyflinkcep.tables.given import columns_of  # which loads Arrow

    found = columns_of(source)
    is_table = found is not None and not isinstance(found, dict)
    return found if is_table else None, source if found is None else found


def table_of_dicts(source: Any) -> pa.Table | None:
    """Return many dicts with the same fields as a table; None for fewer, and for other events."""
    if not isinstance(source, list | tuple) or len(source) < _MANY:
        return None
    if set(map(type, source)) != {dict} or not source[0]:
        return None
    names = list(source[0])
    if any(list(row) != names for row in source):
        return None
    return table_or_rest({name: [row[name] for row in source] for name in names})[0]


def rows_of(source: Any) -> list[Any]:
    """Return events one by one, with the values that they have as a table."""
    if library(source) == "pyspark":
        raise InvalidArgumentError(
            f"expected events in memory, got a {type(source).__name__} of Spark",
            "write match(pattern, frame.collect(), ...), or CEP.pattern(frame, pattern) for a job",
        )
    table, rest = table_or_rest(source)
    if table is not None:
        import numpy as np

        from pyflinkcep.tables.records import records  # which loads Arrow

        return list(records(table, np.arange(table.num_rows)))
    if isinstance(rest, dict):
        rows = zip(*rest.values(), strict=True)
        return [Record(zip(rest, row, strict=True)) for row in rows]
    if not isinstance(rest, Iterable):
        raise InvalidArgumentError(
            f"expected events, got {source!r}",
            "pass a list, columns by name, a pandas or polars DataFrame, or an Arrow table",
        )
    return list(map(as_event, rest))


def has_columns(source: Any) -> bool:
    """Whether events are columns, or a path, rather than an iterable of objects."""
    if isinstance(source, list | tuple):
        return bool(source) and library(source[0]) == "pyarrow"
    is_named = isinstance(source, Mapping | str | os.PathLike)
    return (
        is_named
        or library(source) in ("pandas", "polars", "pyarrow")
        or (hasattr(source, "__arrow_c_stream__") and library(source) != "pyspark")
    )
