# SPDX-License-Identifier: Apache-2.0
"""Make the compiled search for matches with SQL's own meaning, when there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pyflinkcep.expressions.codegen import BY_ZERO, OVERFLOW
from pyflinkcep.expressions.program import Code
from pyflinkcep.kernel.bridge import compiled_module, instruction

__all__ = ["Search", "make_search"]

_MOST_PLACES = 1 << 62
_Failed = Callable[[int, str], Exception]


class Search(Protocol):
    """
    The search in the rows of partitions laid one after another; ``search.c``.

    Attributes
    ----------
    labels, hidden : bytearray
        The variables of the rows of the match that was found last, by their number, and whether
        they are left out of the output; from its first row on.
    """

    labels: bytearray
    hidden: bytearray

    def turn_to(self, begin: int, end: int, has_first: bool) -> None:
        """
        Turn to a partition.

        Parameters
        ----------
        begin, end : int
            Its rows.
        has_first : bool
            Whether the first of them is the first that the partition has had.
        """

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """
        Find the first match of the partition that begins with a row or a later one.

        Parameters
        ----------
        start : int
            The row; calls go on to later ones.
        number : int
            The number of the match.

        Returns
        -------
        tuple of (int, int) or None
            Its first row, and the row after its last one: the preferred match of those that begin
            there. In place of the latter -1 if rows that have not come yet decide. None if there
            is no match.

        Raises
        ------
        ConditionError
            If a condition cannot be computed.
        """


class _Compiled:
    """The compiled search with the buffers that it writes; see :class:`Search`."""

    def __init__(self, search: Any, labels: bytearray, hidden: bytearray, failed: _Failed) -> None:
        self.labels, self.hidden = labels, hidden
        self.turn_to = search.turn_to
        self._search = search
        self._failed = failed

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """See :class:`Search`."""
        try:
            found: tuple[int, int] | None = self._search.find(start, number)
        except ArithmeticError as cause:
            message = OVERFLOW if isinstance(cause, OverflowError) else BY_ZERO
            raise self._failed(self._search.asked, message) from cause
        return found


def make_search(
    code: tuple[tuple[int, int, int], ...],
    loops: int,
    rows: int,
    has_flags: bool,
    slots: tuple[tuple[int, tuple[int, ...], int, int, bool], ...],
    programs: tuple[Code | None, ...],
    has_number: bool,
    ansi: bool,
    most_remembered: int,
    fields: tuple[tuple[Any, Any, bool], ...],
    answers: tuple[bytearray | None, ...],
    times: Any,
    within: int,
    watermark: int | None,
    failed: _Failed,
) -> Search | None:
    """
    Make a search with the compiled kernel; None if there is none, or it is switched off.

    Parameters
    ----------
    code : tuple of (int, int, int)
        The program; see ``match_recognize/standard/program.py``.
    loops : int
        How many loops with MARK and CHECK are inside of each other at most.
    rows : int
        The number of rows.
    has_flags : bool
        Whether to mark places as failed for good; else they are remembered with the slots.
    slots, programs, has_number
        The conditions; see ``match_recognize/standard/tables.py``.
    ansi : bool
        Whether overflow and division by zero are errors.
    most_remembered : int
        How many places to remember in one search.
    fields : tuple of (array, array of bool or None, bool)
        As for :meth:`~pyflinkcep.kernel.Kernel.set_events`.
    answers : tuple of bytearray or None
        By variable: 1 or 0 for each row, 2 for not asked yet; None to ask every time.
    times : array of int64 or None
        The rows' times, which rise in a partition; None for no window.
    within : int
        The length of the window.
    watermark : int or None
        The time after which all rows are that have not come; None if none are to come.
    failed : callable
        Makes the error for a variable's condition that cannot be computed, given what is wrong.
    """
    module = compiled_module()
    if module is None or (len(code) << loops) * (rows + 1) >= _MOST_PLACES:
        return None
    labels, hidden = bytearray(rows), bytearray(rows)
    written = tuple(
        () if program is None else tuple(instruction(op, operand) for op, operand in program)
        for program in programs
    )
    search = module.Search(
        code, loops, rows, has_flags, slots, written, has_number, ansi, most_remembered, fields,
        answers, labels, hidden, times, within, watermark,
    )  # fmt: skip
    return _Compiled(search, labels, hidden, failed)
