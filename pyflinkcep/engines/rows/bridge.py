# SPDX-License-Identifier: Apache-2.0
"""The compiled search for matches with the standard's meaning, if the kernel is available."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from pyflinkcep.expressions.program import Code
from pyflinkcep.expressions.rules import BY_ZERO, OVERFLOW
from pyflinkcep.kernel.module import compiled_module, instruction

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


_MOST_PLACES = 1 << 62
_Failed = Callable[[int, str], Exception]


class RowSearch(Protocol):
    """The search in the rows of concatenated partitions; see ``search.c``."""

    # For each row of the last match found: the index of its variable, and whether it is left out of
    # the output.
    labels: bytearray
    hidden: bytearray

    def turn_to(self, begin: int, end: int, has_first: bool) -> None:
        """Select a partition."""

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """Find the first match of the partition that begins at a row or later."""


class _CompiledSearch:
    """The compiled search with the buffers that it writes; see :class:`RowSearch`."""

    def __init__(
        self, search: _kernel.RowSearch, labels: bytearray, hidden: bytearray, failed: _Failed
    ) -> None:
        self.labels, self.hidden = labels, hidden
        self.turn_to = search.turn_to
        self._search = search
        self._failed = failed

    def find(self, start: int, number: int) -> tuple[int, int] | None:
        """See :class:`RowSearch`."""
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
) -> RowSearch | None:
    """Return a search by the compiled kernel; None if it was not built or is switched off."""
    module = compiled_module()
    if module is None or (len(code) << loops) * (rows + 1) >= _MOST_PLACES:
        return None
    labels, hidden = bytearray(rows), bytearray(rows)
    written = tuple(
        () if program is None else tuple(instruction(op, operand, ansi) for op, operand in program)
        for program in programs
    )
    search = module.RowSearch(
        code, loops, rows, has_flags, slots, written, has_number, ansi, most_remembered, fields,
        answers, labels, hidden, times, within, watermark,
    )  # fmt: skip
    return _CompiledSearch(search, labels, hidden, failed)
