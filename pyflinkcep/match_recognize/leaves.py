# SPDX-License-Identifier: Apache-2.0
"""What an expression takes of a match: a value at a row, or an aggregate over rows."""

from __future__ import annotations

import attrs

__all__ = ["LABEL", "LEAF", "Leaf", "labelled"]

LABEL = "__cep_label"
"""In an argument: the variable that the row is mapped to, which CLASSIFIER() gives."""

LEAF = "__cep_leaf"
"""What the columns are named that stand for leaves; the leaf's number follows."""


@attrs.frozen
class Leaf:
    """
    A value that an expression takes of the match.

    Attributes
    ----------
    function : str
        ``first`` or ``last`` for the value at one row; ``count``, ``sum``, ``avg``, ``min``,
        ``max`` or ``array_agg`` over rows; ``match_number``; ``rowtime``.
    variable : str or None
        The variable, or union of them, whose rows are meant; None for all rows of the match.
    argument : str or None
        SQL over the columns of a row, in which :data:`LABEL` stands for the row's variable;
        None for the rows themselves, which ``count`` counts.
    offset : int
        For ``first`` and ``last``: how many rows of the variable to pass over.
    shift : int
        For ``first`` and ``last``: how many rows of the partition to go on from there, PREV's
        being negative.
    final : bool
        Whether all rows of the match are meant, not only those up to the row at hand.
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
        """Whether its argument asks for the variable that a row is mapped to."""
        return self.argument is not None and LABEL in self.argument


def labelled(argument: str, variable: str) -> str:
    """Return an argument for the rows of a variable, whose name is put in for :data:`LABEL`."""
    name = variable.replace("\\", "\\\\").replace("'", "\\'")
    return argument.replace(LABEL, f"'{name}'")
