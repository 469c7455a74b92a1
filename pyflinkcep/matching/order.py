# SPDX-License-Identifier: Apache-2.0
"""The order of events of equal key and time by columns, with Spark's order of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyflinkcep.engines.flink.operator import Comparator, comparator_key
from pyflinkcep.matching.columns import Ints

__all__ = ["Order", "OrderColumns", "TieOrder", "as_order"]


@attrs.frozen
class OrderColumns:
    """
    Columns that order events of equal key and time.

    Attributes
    ----------
    columns : tuple of (str, bool, bool)
        For each its name, whether it is descending, and whether nulls come first.
    """

    columns: tuple[tuple[str, bool, bool], ...]

    @classmethod
    def of(cls, columns: Iterable[tuple[str, bool, bool | None]]) -> OrderColumns:
        """Fill in where nulls go: first ascending, last descending, as in Spark."""
        return cls(
            tuple(
                (name, descending, not descending if nulls is None else nulls)
                for name, descending, nulls in columns
            )
        )

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _, _ in self.columns]

    def __str__(self) -> str:
        """Return it as SQL."""
        return ", ".join(
            f"{name} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
            for name, descending, nulls_first in self.columns
        )

    def ranked(self, groups: Ints, table: pa.Table) -> Ints:
        """
        Return the order of events.

        Parameters
        ----------
        groups : array of int64
            A number for each event; events of different groups stay in the groups' order.
        table : pyarrow.Table
            The events, with these columns; equal ones keep their order.
        """
        keys = {"group": pa.array(groups)}
        sorting = [("group", "ascending")]
        for number, (name, descending, nulls_first) in enumerate(self.columns):
            column = table.column(name)
            if column.null_count:
                keys[f"null {number}"] = column.is_null()
                sorting.append((f"null {number}", "descending" if nulls_first else "ascending"))
            if pa.types.is_floating(column.type) and descending:  # NaN is the greatest number
                keys[f"nan {number}"] = pc.fill_null(pc.is_nan(column), False)
                sorting.append((f"nan {number}", "descending"))
            keys[f"value {number}"] = column
            sorting.append((f"value {number}", "descending" if descending else "ascending"))
        keys["place"] = pa.array(np.arange(len(groups)))
        sorting.append(("place", "ascending"))
        order: Ints = pc.sort_indices(pa.table(keys), sort_keys=sorting).to_numpy()
        return order.astype(np.int64)


TieOrder = Comparator | OrderColumns
"""The user's order of events of equal time."""

Order = Callable[[Any], Any] | OrderColumns
"""A sort key of Rows, or columns to sort by."""


def as_order(comparator: TieOrder | None) -> Order | None:
    """Return what events of equal time are sorted by; None if they keep their order."""
    return comparator if isinstance(comparator, OrderColumns) else comparator_key(comparator)
