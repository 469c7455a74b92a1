# SPDX-License-Identifier: Apache-2.0
"""The values that an expression takes from a match: at a row, or aggregated over rows."""

from __future__ import annotations

import attrs

__all__ = ["LABEL", "LEAF", "Leaf", "labelled"]

LABEL = "__cep_label"
"""Stands in an argument for the variable that the row is mapped to, as CLASSIFIER() returns."""

LEAF = "__cep_leaf"
"""The prefix of the columns that stand for leaves; the leaf's number follows."""


@attrs.frozen
class Leaf:
    """
    A value that an expression takes from the match.

    Attributes
    ----------
    function : str
        ``first`` or ``last`` for the value at one row; ``count``, ``sum``, ``avg``, ``min``,
        ``max`` or ``array_agg`` over rows; ``match_number``; ``rowtime``.
    variable : str or None
        The variable, or union of variables, of the rows; None for all rows of the match.
    argument : str or None
        SQL over the columns of a row, in which :data:`LABEL` stands for the row's variable; None
        for the rows themselves, to ``count`` them.
    offset : int
        For ``first`` and ``last``: how many rows of the variable to skip.
    shift : int
        For ``first`` and ``last``: how many rows of the partition to move from there; negative for
        PREV.
    final : bool
        Whether it sees all rows of the match, not only those up to the current row.
    """

    function: str
    variable: str | None
    argument: str | None = None
    offset: int = 0
    shift: int = 0
    final: bool = False

    @property
    def is_row(self) -> bool:
        """Whether it is a value at one row."""
        return self.function in ("first", "last")

    @property
    def has_label(self) -> bool:
        """Whether its argument uses the variable that a row is mapped to."""
        return self.argument is not None and LABEL in self.argument


def labelled(argument: str, variable: str) -> str:
    """Return an argument for the rows of a variable, with its name in place of :data:`LABEL`."""
    name = variable.replace("\\", "\\\\").replace("'", "\\'")
    return argument.replace(LABEL, f"'{name}'")
