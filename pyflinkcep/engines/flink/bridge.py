# SPDX-License-Identifier: Apache-2.0
"""Builds a kernel from a compiled pattern, if the kernel is available and can run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.analysis import Unbranched, bits_of_own_ways
from pyflinkcep.engines.flink.nfa.atoms import Atom, in_word, words
from pyflinkcep.engines.flink.nfa.evaluation import (
    ambiguous,
    as_bool,
    condition_failed,
    expression_failed,
)
from pyflinkcep.engines.flink.nfa.state import Ask, Move, Step
from pyflinkcep.engines.flink.operator import PartialMatchLimit, less_held, too_many
from pyflinkcep.engines.flink.sharedbuffer import EventId, NodeId, lost_path
from pyflinkcep.engines.flink.stored_state import damaged_state
from pyflinkcep.errors import CepError, MissingConditionError, OutOfMemoryError
from pyflinkcep.expressions.program import BY_ZERO, OVERFLOW, CompiledExpressions
from pyflinkcep.kernel.module import compiled_module, instruction, slot_spec, why_missing
from pyflinkcep.pattern.aftermatch import (
    AfterMatchSkipStrategy,
    NoSkipStrategy,
    SkipPastLastStrategy,
    SkipToElementStrategy,
    SkipToFirstStrategy,
    SkipToLastStrategy,
    SkipToNextStrategy,
)
from pyflinkcep.time import clock_ms

if TYPE_CHECKING:
    from pyflinkcep.kernel import _kernel


class KernelHelper:
    """Serves the callbacks of a kernel."""

    def __init__(self, nfa: NFA, limit: PartialMatchLimit | None) -> None:
        self.processing_time: int | None = None
        self._nfa = nfa
        self._limit = limit
        self._atoms = list(nfa.atoms)
        self._tables = list(nfa.tables.values())
        self._stages = nfa.stages

    # --- the tables

    def first(self, state: int) -> tuple[Any, ...]:
        """Return the first decision for an event in a state."""
        return self._described(self._tables[state].first())

    def following(self, ask: Ask, holds: bool) -> tuple[Any, ...]:
        """Return the decision that follows an answer."""
        return self._described(ask.following(holds))

    def _described(self, node: Ask | Step) -> tuple[Any, ...]:
        if isinstance(node, Ask):
            return self._atoms.index(node.atom), node, None, 0
        return -1, None, tuple(self._move(move) for move in node.moves), int(node.ending)

    def _move(self, move: Move) -> tuple[Any, ...]:
        return (
            self._tables.index(move.target),
            self._stages.index(move.stage) if move.takes else -1,
            move.increase,
            move.takes,
            move.stays,
            move.continues,
            move.completes,
            move.adds_stage,
        )

    # --- errors

    def as_bool(self, atom: int, timestamp: int, answer: Any) -> bool:
        """Return a boolean, including NumPy's, as a bool; raise for anything else."""
        return as_bool(self._atoms[atom], answer, timestamp)

    def failed(self, atom: int, timestamp: int, cause: BaseException) -> None:
        """Raise the error for a condition that failed, or was interrupted."""
        if isinstance(cause, CepError):
            raise cause
        error = condition_failed(self._atoms[atom], cause, timestamp)
        if isinstance(cause, KeyboardInterrupt):
            raise cause from error
        raise error from cause

    def expression_failed(self, atom: int, timestamp: int, overflow: int) -> None:
        """Raise the error for a match expression without a value."""
        cause = ArithmeticError(OVERFLOW if overflow else BY_ZERO)
        raise expression_failed(self._atoms[atom], cause, timestamp) from cause

    def ambiguous(self, ways: int, stage: int, at: int, number: int, timestamp: int) -> None:
        """Raise the error for a partial match whose version fits several paths."""
        raise ambiguous(ways, NodeId(EventId(at, number), self._stages[stage]), timestamp)

    def damaged(self) -> None:
        """Raise the error for state that cannot be read."""
        raise damaged_state("damaged numbers")

    def lost_path(self) -> None:
        """Raise the error for a partial match whose version fits no path."""
        raise lost_path()

    def skip_missed(self, ways: list[list[tuple[int, int, int]]]) -> None:
        """Raise the error for a skip strategy that finds nothing to skip to."""
        paths: list[dict[str, list[EventId]]] = []
        for way in ways:
            events: dict[str, list[EventId]] = {}
            for stage, timestamp, number in way:
                events.setdefault(self._stages[stage], []).append(EventId(timestamp, number))
            paths.append(events)
        self._nfa.skip_strategy.pruning_id(paths)

    def too_many(self, count: int, timestamp: int) -> None:
        """Raise the error for a key with too many partial matches."""
        assert self._limit is not None
        raise too_many(self._limit, count, timestamp, self._nfa.is_compressible)

    def out_of_memory(self, partials: int, timestamp: int) -> None:
        """Raise the error for memory that ran out; `partials` is 0 outside matching."""
        held = f" with {partials - 1} partial matches of the key" if partials else ""
        raise OutOfMemoryError(
            f"out of memory{held}",
            f"{less_held(self._nfa.is_compressible)}, or give the workers more memory",
            timestamp_ms=timestamp if partials else None,
            pattern=self._nfa.description,
        )

    # --- for the context of iterative conditions, which is a kernel object

    def no_stage(self) -> None:
        """Raise the error for a condition that names no stage."""
        raise MissingConditionError("getEventsForPattern(None)", "name a stage")

    def now(self) -> int:
        """Return the clock, epoch milliseconds."""
        if self.processing_time is not None:
            return self.processing_time
        return clock_ms()


_MOST_PARTIALS = 1 << 62
_SKIPS: dict[type[AfterMatchSkipStrategy], int] = {
    NoSkipStrategy: 0,
    SkipToNextStrategy: 1,
    SkipPastLastStrategy: 2,
    SkipToFirstStrategy: 3,
    SkipToLastStrategy: 4,
}
_OF_EVENT, _OF_MATCH, _EXPRESSION = range(3)


def knows_skip(strategy: AfterMatchSkipStrategy) -> bool:
    """Whether a skip strategy is none of the user's."""
    return type(strategy) in _SKIPS


def why_plain(nfa: NFA) -> str:
    """Return why a pattern cannot use the kernel; empty if it can."""
    missing = why_missing()
    if missing:
        return missing
    if not knows_skip(nfa.skip_strategy):
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
    """Make a kernel for a pattern."""
    atoms = list(nfa.atoms)
    module = compiled_module()
    if module is None or why_plain(nfa):
        return None
    helper = KernelHelper(nfa, limit)
    word_count = 1 + max((in_word(atom.bit)[0] for atom in atoms), default=0)
    tables = list(nfa.tables.values())
    stages = {name: number for number, name in enumerate(nfa.stages)}
    is_free = not limit and not processing_time
    queues = _unbranched(nfa, known, stages) if is_free else ((), b"")
    has_ways = is_free and not gives_reached and not queues[0]
    own_ways = bits_of_own_ways(nfa, known) if has_ways else None
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
        unbranched=queues,
        own_ways=-1 if own_ways is None else own_ways,
    )


def _unbranched(nfa: NFA, known: int, stages: dict[str, int]) -> tuple[tuple[int, ...], bytes]:
    """Return the table of a pattern whose partial matches do not branch, empty for others."""
    found = Unbranched.of(nfa, known)
    if found is None:
        return (), b""
    return tuple(stages[stage] for stage in found.stages), bytes(found.actions)


def _atom(atom: Atom, expressions: CompiledExpressions | None) -> tuple[Any, ...]:
    if atom.expression is not None and expressions is not None:
        code = tuple(
            instruction(op, operand, expressions.ansi)
            for op, operand in expressions.programs[atom.expression]
        )
        return _EXPRESSION, 0, 0, None, code
    return (_OF_EVENT if atom.bit else _OF_MATCH), *in_word(atom.bit), atom.function, ()


def _skip(strategy: AfterMatchSkipStrategy, stages: dict[str, int]) -> tuple[int, int, bool]:
    kind = _SKIPS[type(strategy)]
    if isinstance(strategy, SkipToElementStrategy):
        return kind, stages.get(strategy.patternName, -1), strategy.shouldThrowException
    return kind, -1, False
