# SPDX-License-Identifier: Apache-2.0
"""Builds a kernel from a compiled pattern, if the kernel is available and can run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel

__all__ = [
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
    gives_reached: bool = False,
    by_windows: bool = False,
) -> _kernel.Kernel | None:
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
    gives_reached : bool
        Whether stages that partial matches reach are among the results.
    by_windows : bool
        See :class:`~pyflinkcep.engines.flink.operator.CepOperator`.

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
    return module.Kernel(
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
        gives_reached=gives_reached,
        by_windows=by_windows,
    )


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
