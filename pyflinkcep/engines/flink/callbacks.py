# SPDX-License-Identifier: Apache-2.0
"""The parts of the kernel written in Python: fetching table entries, and raising errors."""

from __future__ import annotations

from typing import Any

from pyflinkcep.engines.flink.nfa import NFA
from pyflinkcep.engines.flink.nfa.evaluation import (
    ambiguous,
    as_bool,
    condition_failed,
    expression_failed,
)
from pyflinkcep.engines.flink.nfa.steps import Ask, Move, Step
from pyflinkcep.engines.flink.operator import PartialMatchLimit
from pyflinkcep.engines.flink.operator.limit import less_held, too_many
from pyflinkcep.engines.flink.operator.state_format import damaged_state
from pyflinkcep.engines.flink.sharedbuffer import EventId, NodeId
from pyflinkcep.engines.flink.sharedbuffer.buffer import lost_path
from pyflinkcep.errors import CepError, MissingConditionError, OutOfMemoryError
from pyflinkcep.expressions.rules import BY_ZERO, OVERFLOW
from pyflinkcep.time import clock_ms

__all__ = ["KernelHelper"]


class KernelHelper:
    """
    Serves the callbacks of a kernel.

    Parameters
    ----------
    nfa : NFA
        The pattern.
    limit : PartialMatchLimit or None
        How many partial matches a key may have.

    Attributes
    ----------
    processing_time : int or None, epoch milliseconds
        The clock that conditions see; None for the wall clock.
    """

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
