# SPDX-License-Identifier: Apache-2.0
"""From a compiled pattern to a kernel that runs it, where there is one that can."""

from __future__ import annotations

import importlib
import os
from typing import Any, Protocol

from pyflinkcep.expressions.program import MatchValues, Slot, Type
from pyflinkcep.expressions.tree import WHOLE
from pyflinkcep.kernel.callbacks import KernelHelper
from pyflinkcep.nfa import NFA
from pyflinkcep.nfa.atoms import Atom
from pyflinkcep.operator import PartialMatchLimit
from pyflinkcep.pattern.aftermatch import (
    AfterMatchSkipStrategy,
    NoSkipStrategy,
    SkipPastLastStrategy,
    SkipToElementStrategy,
    SkipToFirstStrategy,
    SkipToLastStrategy,
    SkipToNextStrategy,
)

__all__ = ["Kernel", "make_kernel", "why_plain"]

_SWITCH = "PYFLINKCEP_KERNEL"
_MOST_BITS = 63
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
    A pattern, ready to run on events that are known by number; ``module.c`` and ``runs.c``.

    Attributes
    ----------
    helper : KernelHelper
        What it asks.
    failed : int
        The stretch, or the item of a page, that the last error came from.
    """

    helper: KernelHelper
    failed: int

    def set_events(self, view: Any, base: int, rows: int, fields: tuple[Any, ...]) -> None:
        """
        Say what handles mean from now on.

        Parameters
        ----------
        view : callable
            Gives the event of a handle as users' conditions see it.
        base, rows : int
            The handles of the events that `fields` are about: from `base` on.
        fields : tuple of (array, array of bool or None, bool)
            For each field of match expressions the values (int64 or float64), which of them
            are not NULL, and whether they are floats.
        """

    def new_key(self) -> Any:
        """Make a key that has seen nothing."""

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
        Match stretches of events, each of another key, all arrays of int64 but `needed`.

        Parameters
        ----------
        key : Key or None
            The key that the stretch to begin with goes on with, if it does.
        times : array, epoch milliseconds
            The events' times.
        handles : array or None, base : int
            The events' handles; `base` and the following numbers where None.
        bits : array or None
            The bits of the conditions known beforehand that hold for each event.
        bounds : array
            Where stretches begin, and where the last one ends.
        needed : array of bool
            Which stretches may begin a match; the others are passed over.
        stretch, row : int
            Where to begin.
        most_results : int
            How many results to come back with at the latest, or some more.

        Returns
        -------
        tuple of (int, int, Key or None)
            Where to go on, and the key that was at work there or, at the end, last.
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
        Match the keys of a page of state, and let time pass to a watermark.

        Parameters
        ----------
        times, handles, base, bits
            As for :meth:`run`.
        positions : array
            For each item the position of its key in the page, negative for a new one.
        starts, ends : array
            For each item where its events are.
        numbers, number_ends, event_ends : array
            The keys' states, and where each one's numbers and events end, after a first 0.
        first_held : int
            The handle of the page's first event.
        watermark : int, epoch milliseconds
            The watermark; in processing time the clock.

        Returns
        -------
        tuple of bytes
            Arrays of int64 about the items that go on: their numbers, deadlines, counts of
            numbers and of events, then all their numbers and handles.
        """

    def advance(self, key: Any, timestamp: int) -> None:
        """Let time pass for a key."""

    def write(self, key: Any) -> tuple[bytes, bytes]:
        """Give a key's state as numbers, and the handles of its events."""

    def read(self, numbers: Any, first_handle: int, handle_count: int) -> Any:
        """Make a key of its state; raise ValueError for numbers that are none."""

    def take_found(self) -> tuple[bytes, bytes, bytes, bytes, bytes, int]:
        """Take the results: is it a match, time, end of events; stages, handles; dropped."""


def _compiled() -> Any:
    """Give the compiled module, None without one or where it is switched off."""
    if os.environ.get(_SWITCH, "1") == "0":
        return None
    try:
        return importlib.import_module("pyflinkcep.kernel._kernel")
    except ImportError:  # no compiler where the package was built
        return None


def why_plain(nfa: NFA, values: MatchValues | None) -> str:
    """Say why a pattern must do without the kernel; empty where it need not."""
    if _compiled() is None:
        switched_off = os.environ.get(_SWITCH, "1") == "0"
        return f"{_SWITCH} is 0" if switched_off else "the package was built without a C compiler"
    if type(nfa.skip_strategy) not in _SKIPS:
        return f"the skip strategy {type(nfa.skip_strategy).__name__} is in Python"
    if values is not None and not values.is_numeric:
        return "a condition over earlier stages has strings"
    if any(atom.bit >> _MOST_BITS for atom in nfa.atoms):
        return f"there are more than {_MOST_BITS} conditions"
    return ""


def make_kernel(
    nfa: NFA,
    known: int = 0,
    limit: PartialMatchLimit | None = None,
    processing_time: bool = False,
    sets_timers: bool = True,
    values: MatchValues | None = None,
) -> Kernel | None:
    """
    Make a kernel for a pattern.

    Parameters
    ----------
    nfa : NFA
        The pattern.
    known : int
        The bits of the conditions that come with the events.
    limit : PartialMatchLimit, optional
        How many partial matches a key may have.
    processing_time : bool
        Whether the clock counts instead of the events' own times.
    sets_timers : bool
        Whether keys keep when they want to be looked at without an event.
    values : MatchValues, optional
        What the pattern's match expressions need.

    Returns
    -------
    Kernel or None
        None where the plain path must do: without a compiled kernel, with a skip strategy of a
        user's own, with expressions on texts, or with more conditions than a number has bits.
    """
    atoms = list(nfa.atoms)
    module = _compiled()
    if module is None or why_plain(nfa, values):
        return None
    helper = KernelHelper(nfa, limit)
    tables = list(nfa.tables.values())
    stages = {name: number for number, name in enumerate(nfa.stages)}
    kernel: Kernel = module.Kernel(
        helper,
        tuple((t.gap_ms, stages[t.state.stage], t.is_pending) for t in tables),
        tuple(_atom(atom, values) for atom in atoms),
        () if values is None else tuple(_slot(slot, stages) for slot in values.slots),
        tuple(stages),
        start=tables.index(nfa.start),
        final=tables.index(nfa.final),
        window_time=nfa.window_time,
        handle_timeout=nfa.handle_timeout,
        processing_time=processing_time,
        skip=_skip(nfa.skip_strategy, stages),
        known=known,
        limit=0 if limit is None else min(limit.most, _MOST_PARTIALS),
        drop_oldest=limit is not None and limit.policy == "dropOldest",
        sets_timers=sets_timers,
        ansi=values is not None and values.ansi,
    )
    return kernel


def _atom(atom: Atom, values: MatchValues | None) -> tuple[Any, ...]:
    if atom.expression is not None and values is not None:
        code = tuple((int(op), operand) for op, operand in values.programs[atom.expression])
        return _EXPRESSION, 0, None, code
    return (_OF_EVENT if atom.bit else _OF_MATCH), atom.bit, atom.function, ()


def _slot(slot: Slot, stages: dict[str, int]) -> tuple[Any, ...]:
    is_float = slot.type is Type.FLOAT
    stage = -1 if slot.stage == WHOLE else stages[slot.stage]
    return int(slot.function), stage, slot.field, slot.count, is_float


def _skip(strategy: AfterMatchSkipStrategy, stages: dict[str, int]) -> tuple[int, int, bool]:
    kind = _SKIPS[type(strategy)]
    if isinstance(strategy, SkipToElementStrategy):
        return kind, stages.get(strategy.patternName, -1), strategy.shouldThrowException
    return kind, -1, False
