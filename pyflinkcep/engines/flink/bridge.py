# SPDX-License-Identifier: Apache-2.0
"""Builds a kernel from a compiled pattern, if the kernel is available and can run it."""

from __future__ import annotations

from typing import Any, Protocol

from pyflinkcep.engines.flink.callbacks import KernelHelper
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import Atom, in_word, words
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.kernel.module import compiled_module, why_missing
from pyflinkcep.kernel.programs import instruction, slot_spec
from pyflinkcep.pattern.aftermatch import (
    AfterMatchSkipStrategy,
    NoSkipStrategy,
    SkipPastLastStrategy,
    SkipToElementStrategy,
    SkipToFirstStrategy,
    SkipToLastStrategy,
    SkipToNextStrategy,
)

__all__ = [
    "Kernel",
    "make_kernel",
    "why_plain",
]

_MOST_PARTIALS = 1 << 62
_SKIPS: dict[type[AfterMatchSkipStrategy], int] = {
    NoSkipStrategy: 0,
    SkipToNextStrategy: 1,
    SkipPastLastStrategy: 2,
    SkipToFirstStrategy: 3,
    SkipToLastStrategy: 4,
}
_OF_EVENT, _OF_MATCH, _EXPRESSION = range(3)


class Kernel(Protocol):
    """
    A pattern, ready to run on events known by handle; see ``module.c`` and ``runs.c``.

    Attributes
    ----------
    helper : KernelHelper
        Evaluates what needs Python.
    failed : int
        The stretch, or the item of a page, that the last error came from.

    Notes
    -----
    If memory runs out, the current key is cleared and every method raises
    :class:`~pyflinkcep.errors.OutOfMemoryError`; other keys can go on.
    """

    helper: KernelHelper
    failed: int

    def set_events(self, view: Any, base: int, rows: int, fields: tuple[Any, ...]) -> None:
        """
        Set the events that handles refer to from now on.

        Parameters
        ----------
        view : callable
            Returns the event of a handle as the user's conditions see it.
        base, rows : int
            `fields` describes the `rows` events whose handles begin at `base`.
        fields : tuple of (array, array of bool or None, bool)
            For each field of match expressions: its values (int64 or float64), which of them
            are not NULL, whether they are floats; for texts a list of str and None in their place.
        """

    def new_key(self) -> Any:
        """Return a new key."""

    def run(
        self,
        key: Any,
        times: Any,
        handles: Any,
        base: int,
        bits: Any,
        bounds: Any,
        needed: Any,
        stretch: int,
        row: int,
        most_results: int,
    ) -> tuple[int, int, Any]:
        """
        Match stretches of events, each of a different key.

        All arrays except `needed` are int64.

        Parameters
        ----------
        key : Key or None
            The key that the first stretch continues, if any.
        times : array, epoch milliseconds
            The events' times.
        handles : array or None, base : int
            The events' handles; None for `base` and the numbers after it.
        bits : array or None
            For each event the bits of the conditions known beforehand that hold: one number, or
            a row of numbers with 63 bits each, lowest first.
        bounds : array
            Where stretches begin, and where the last one ends.
        needed : array of bool
            Which stretches may begin a match; the others are skipped.
        stretch, row : int
            Where to begin.
        most_results : int
            Return once there are this many results, or a few more.

        Returns
        -------
        tuple of (int, int, Key or None)
            The stretch and row to continue at, and the current key there (at the end, the last).
        """

    def run_page(
        self,
        times: Any,
        handles: Any,
        base: int,
        bits: Any,
        positions: Any,
        starts: Any,
        ends: Any,
        numbers: Any,
        number_ends: Any,
        event_ends: Any,
        first_held: int,
        watermark: int,
    ) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes]:
        """
        Match the keys of a page of state, and advance time to a watermark.

        Parameters
        ----------
        times, handles, base, bits
            As for :meth:`run`.
        positions : array
            For each item the position of its key in the page; negative for a new key.
        starts, ends : array
            For each item where its events are.
        numbers, number_ends, event_ends : array
            The keys' states, and where the numbers and events of each end; both ends begin with 0.
        first_held : int
            The handle of the page's first event.
        watermark : int, epoch milliseconds
            The watermark; in processing time the clock.

        Returns
        -------
        tuple of bytes
            Arrays of int64 about the items that continue: their positions, deadlines, counts of
            numbers and of events, then all their numbers and handles.

        Raises
        ------
        StateFormatError
            If the numbers are damaged.
        """

    def count(
        self,
        live: tuple[tuple[int, ...], ...],
        times: Any,
        bits: Any,
        bounds: Any,
        held: int,
        before: int | None,
        watermark: int,
        weights: Any,
        stage: int,
        seeks_greatest: bool,
    ) -> tuple[tuple[bytes, list[int], list[int] | None], int | None, int | None]:
        """
        Count the matches of keys by event, without listing them.

        Handles are positions in `times`. For the arrays of events and the results see
        :class:`~pyflinkcep.engines.compressed.bridge.KeyedEvents` and ``Counted``.

        Parameters
        ----------
        live : tuple of tuple of int
            By state, the slots that distinguish partial matches.
        weights : array of uint64 below 2**63, or None
            The weight of each event that is taken for a stage.
        stage : int
            The index of that stage.
        seeks_greatest : bool
            Whether to find the greatest weight instead of the sum.
        """

    def advance(self, key: Any, timestamp: int) -> None:
        """Advance time for a key."""

    def write(self, key: Any) -> tuple[bytes, bytes]:
        """Return a key's state as numbers, and the handles of its events."""

    def read(self, numbers: Any, first_handle: int, handle_count: int) -> Any:
        """Restore a key from its state; raise StateFormatError if the numbers are damaged."""

    def take_found(self) -> tuple[bytes, bytes, bytes, bytes, bytes, int]:
        """Take the results: whether each is a match, its time, the end of its events; the events'
        stages and handles; the number of partial matches dropped.
        """


def why_plain(nfa: NFA) -> str:
    """Return why a pattern cannot use the kernel; empty if it can."""
    missing = why_missing()
    if missing:
        return missing
    if type(nfa.skip_strategy) not in _SKIPS:
        return f"the skip strategy {type(nfa.skip_strategy).__name__} is in Python"
    return ""


def make_kernel(
    nfa: NFA,
    known: int = 0,
    limit: PartialMatchLimit | None = None,
    processing_time: bool = False,
    sets_timers: bool = True,
    expressions: CompiledExpressions | None = None,
) -> Kernel | None:
    """
    Make a kernel for a pattern.

    Parameters
    ----------
    nfa : NFA
        The pattern.
    known : int
        The bits of the conditions whose answers come with the events.
    limit : PartialMatchLimit, optional
        How many partial matches a key may have.
    processing_time : bool
        Whether time is the clock's instead of the events'.
    sets_timers : bool
        Whether keys record when to wake without an event.
    expressions : CompiledExpressions, optional
        The programs of the pattern's match expressions.

    Returns
    -------
    Kernel or None
        None if only the plain path can run it; see :func:`why_plain`.
    """
    atoms = list(nfa.atoms)
    module = compiled_module()
    if module is None or why_plain(nfa):
        return None
    helper = KernelHelper(nfa, limit)
    word_count = 1 + max((in_word(atom.bit)[0] for atom in atoms), default=0)
    tables = list(nfa.tables.values())
    stages = {name: number for number, name in enumerate(nfa.stages)}
    kernel: Kernel = module.Kernel(
        helper,
        tuple((t.gap_ms, stages[t.state.stage], t.is_pending) for t in tables),
        tuple(_atom(atom, expressions) for atom in atoms),
        () if expressions is None else tuple(slot_spec(slot, stages) for slot in expressions.slots),
        tuple(stages),
        start=tables.index(nfa.start),
        final=tables.index(nfa.final),
        window_time=nfa.window_time,
        handle_timeout=nfa.handle_timeout,
        processing_time=processing_time,
        skip=_skip(nfa.skip_strategy, stages),
        known=words(known, word_count),
        limit=0 if limit is None else min(limit.most, _MOST_PARTIALS),
        drop_oldest=limit is not None and limit.policy == "dropOldest",
        sets_timers=sets_timers,
        ansi=expressions is not None and expressions.ansi,
    )
    return kernel


def _atom(atom: Atom, expressions: CompiledExpressions | None) -> tuple[Any, ...]:
    if atom.expression is not None and expressions is not None:
        code = tuple(
            instruction(op, operand) for op, operand in expressions.programs[atom.expression]
        )
        return _EXPRESSION, 0, 0, None, code
    return (_OF_EVENT if atom.bit else _OF_MATCH), *in_word(atom.bit), atom.function, ()


def _skip(strategy: AfterMatchSkipStrategy, stages: dict[str, int]) -> tuple[int, int, bool]:
    kind = _SKIPS[type(strategy)]
    if isinstance(strategy, SkipToElementStrategy):
        return kind, stages.get(strategy.patternName, -1), strategy.shouldThrowException
    return kind, -1, False
