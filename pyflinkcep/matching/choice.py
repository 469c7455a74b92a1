# SPDX-License-Identifier: Apache-2.0
"""The choice of a matcher."""

from __future__ import annotations

from pyflinkcep.engines.flink.bridge import make_kernel
from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.engines.flink.operator import CepOperator, PartialMatchLimit
from pyflinkcep.expressions.codegen import generated
from pyflinkcep.expressions.program import CompiledExpressions
from pyflinkcep.matching.kernel_matcher import KernelMatcher
from pyflinkcep.matching.matcher import PatternMatcher
from pyflinkcep.matching.python_matcher import PythonMatcher

__all__ = ["make_matcher"]


def make_matcher(
    nfa: NFA,
    wants_timeouts: bool,
    limit: PartialMatchLimit | None,
    expressions: CompiledExpressions | None,
    processing_time: bool = False,
    is_stream: bool = False,
    wants_reached: bool = False,
    by_windows: bool = False,
) -> PatternMatcher:
    """
    Return a matcher, with the compiled kernel if it can run the pattern.

    Parameters
    ----------
    nfa : NFA
        The pattern.
    wants_timeouts : bool
        Whether timeouts are needed.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.
    expressions : CompiledExpressions or None
        The programs of the pattern's match expressions.
    processing_time : bool
        Whether time is the clock's instead of the events'.
    is_stream : bool
        Whether keys wait for watermarks.
    wants_reached : bool
        Whether stages that partial matches reach are needed.
    by_windows : bool
        Whether a match that the end of a window released has that time; never in processing time.
    """
    by_windows = by_windows and not processing_time
    known = known_bits(nfa.atoms)
    kernel = make_kernel(
        nfa,
        known,
        limit,
        processing_time,
        sets_timers=is_stream,
        expressions=expressions,
        gives_reached=wants_reached,
        by_windows=by_windows,
    )
    if kernel is not None:
        return KernelMatcher(kernel, list(nfa.stages), processing_time)
    rules = CepOperator(nfa, None, processing_time, limit, by_windows=by_windows)
    functions = None if expressions is None else generated(expressions)
    return PythonMatcher(rules, wants_timeouts, known, functions, wants_reached)
