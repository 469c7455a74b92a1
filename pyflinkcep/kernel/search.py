# SPDX-License-Identifier: Apache-2.0
"""Make the compiled search for matches with SQL's own meaning, when there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pyflinkcep.kernel.bridge import compiled_module

__all__ = ["Search", "make_search"]

_MOST_PLACES = 1 << 62


class Search(Protocol):
    """The search in the rows of a partition; ``search.c``."""

    def find(self, start: int, limit: int, is_open: bool) -> int | None:
        """
        Return where the preferred match ends that begins with a row.

        Parameters
        ----------
        start : int
            The row.
        limit : int
            The first row that is too late.
        is_open : bool
            Whether rows that have not come yet may belong to it.

        Returns
        -------
        int or None
            The row after its last one; -1 if rows that have not come yet decide, None if there is
            no match. The variables of its rows are in the labels.
        """


def make_search(
    code: tuple[tuple[int, int, int], ...],
    loops: int,
    size: int,
    first_row: int,
    flags: int,
    remembers: bool,
    most_remembered: int,
    initial: tuple[Any, ...],
    updates: tuple[Callable[..., Any] | None, ...],
    holds: Callable[..., bool],
    answers: tuple[bytearray | None, ...],
    labels: bytearray,
    hidden: bytearray,
) -> Search | None:
    """
    Make a search with the compiled kernel; None if there is none, or it is switched off.

    Parameters
    ----------
    code : tuple of (int, int, int)
        The program; see ``match_recognize/standard/program.py``.
    loops : int
        How many loops with MARK and CHECK are inside of each other at most.
    size : int
        The number of rows.
    first_row : int
        The first row of the partition, -1 if it is not there any more.
    flags : int
        How many places to mark as failed for good; 0 if they are remembered with what is known.
    remembers : bool
        Whether what is known of a match is all of it that conditions look at.
    most_remembered : int
        How many places to remember in one search.
    initial : tuple
        What is known of a match without rows.
    updates : tuple of callable or None
        By variable: makes of (what is known, row) what is known once the row is taken.
    holds : callable
        Whether the condition holds of (variable, row, what is known with the row taken).
    answers : tuple of bytearray or None
        By variable: 1 or 0 for each row, 2 for not asked yet; None if it depends on the match.
    labels, hidden : bytearray
        Where the variables of a match's rows go, and whether they are left out.
    """
    module = compiled_module()
    if module is None or (len(code) << loops) * (size + 1) >= _MOST_PLACES:
        return None
    search: Search = module.Search(
        code, loops, size, first_row, flags, remembers, most_remembered, initial, updates, holds,
        answers, labels, hidden,
    )  # fmt: skip
    return search
