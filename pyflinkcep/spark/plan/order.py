# SPDX-License-Identifier: Apache-2.0
"""The order of events of equal time, by the columns that the user names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame

from pyflinkcep.errors import InvalidArgumentError
from pyflinkcep.matching.order import OrderColumns
from pyflinkcep.spark.plan.analysis import own_name
from pyflinkcep.spark.plan.keys import check_exists

__all__ = ["order_columns"]

_COLUMN = re.compile(r"(.+?)(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?", re.IGNORECASE)


def order_columns(dataframe: DataFrame, columns: Sequence[str], pattern: str) -> OrderColumns:
    """
    Read the columns that order events of equal time.

    Parameters
    ----------
    dataframe : DataFrame
        The events.
    columns : sequence of str
        Names, each optionally followed by ``ASC`` or ``DESC`` and ``NULLS FIRST`` or ``NULLS
        LAST``.
    pattern : str
        The pattern in one line, for errors.

    Raises
    ------
    InvalidArgumentError
        If they are not a list of strings.
    InputError
        If the events have no such column.
    """
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str) and len(columns) > 0
    if not is_list or not all(isinstance(column, str) for column in columns):
        raise InvalidArgumentError(
            f"orderBy: expected a list of column names, got {columns!r}",
            "write orderBy=['seq', 'price DESC']",
        )
    chosen = []
    for column in columns:
        found = _COLUMN.fullmatch(column.strip())
        name = column if found is None else found[1].strip("`")
        check_exists(dataframe, name, "order", pattern)
        own = own_name(dataframe, name)
        nulls = None if found is None or found[3] is None else found[3].upper() == "FIRST"
        descending = found is not None and (found[2] or "").upper() == "DESC"
        chosen.append((own, descending, nulls))
    return OrderColumns.of(chosen)
