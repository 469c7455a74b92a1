# SPDX-License-Identifier: Apache-2.0
"""Asking the users' conditions about one event, each at most once where that is enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyflinkcep.errors import CepError, ConditionError, MissingConditionError
from pyflinkcep.nfa.nfa_state import ComputationState
from pyflinkcep.nfa.steps import Ask, Atom, StateTable, Step
from pyflinkcep.sharedbuffer import SharedBufferAccessor

__all__ = ["EventEvaluation"]


class EventEvaluation:
    """
    The conditions' answers for one event; also the context that iterative conditions get.

    Parameters
    ----------
    accessor : SharedBufferAccessor
        Where the events of partial matches are.
    view : callable or None
        Turns what the buffer holds into the event as the user knows it; None if it is that.
    event : object
        What the buffer would hold for the event.
    timestamp : int, epoch milliseconds
        The event's time.
    known, values : int
        The bits of conditions answered before, and which of them hold.
    processing_time : int or None, epoch milliseconds
        The clock that conditions see; the wall clock when None.
    """

    __slots__ = (
        "_accessor",
        "_event",
        "_matched",
        "_partial",
        "_processing_time",
        "_timestamp",
        "_view",
        "known",
        "values",
    )

    def __init__(
        self,
        accessor: SharedBufferAccessor,
        view: Callable[[Any], Any] | None,
        event: Any,
        timestamp: int,
        known: int = 0,
        values: int = 0,
        processing_time: int | None = None,
    ) -> None:
        self._accessor = accessor
        self._view = view
        self._event = event
        self._timestamp = timestamp
        self.known = known
        self.values = values
        self._processing_time = processing_time
        self._partial: ComputationState | None = None
        self._matched: dict[str, list[Any]] | None = None

    def decide(self, partial: ComputationState) -> Step:
        """Give the step of a partial match, asking what it takes."""
        table: StateTable = partial.table
        node = table.root or table.first()
        while node.__class__ is Ask:
            atom = node.atom
            bit = atom.bit
            if not bit:
                if self._partial is not partial:
                    self._partial, self._matched = partial, None
                holds = self._ask(atom)
            elif self.known & bit:
                holds = self.values & bit != 0
            else:
                holds = self._ask(atom)
                self.known |= bit
                if holds:
                    self.values |= bit
            following = node.yes if holds else node.no
            node = following if following is not None else node.grow(holds)
        return node  # type: ignore[return-value]

    def _ask(self, atom: Atom) -> bool:
        event = self._event if self._view is None else self._view(self._event)
        try:
            answer = atom.condition.filter(event, self)
        except CepError:
            raise
        except Exception as cause:
            raise ConditionError(
                f"Failure happened in filter function. {type(cause).__name__}: {cause}",
                f"the condition {atom.condition!r} must give True or False for every event",
                stage=atom.stage,
                timestamp_ms=self._timestamp,
            ) from cause
        if answer is True or answer is False:
            return answer
        plain = answer.item() if hasattr(answer, "item") else answer
        if isinstance(plain, bool):
            return plain
        raise ConditionError(
            f"the condition {atom.condition!r} returned {_short(answer)}, which is no bool",
            "return True or False, for example with bool(...) or 'is not None'",
            stage=atom.stage,
            timestamp_ms=self._timestamp,
        )

    # --- the context of iterative conditions

    def getEventsForPattern(self, name: str) -> list[Any]:
        """Give the events accepted for a stage, oldest first."""
        if name is None:
            raise MissingConditionError("getEventsForPattern(None)", "name a stage")
        if self._matched is None:
            self._matched = self._extract()
        return list(self._matched.get(name, ()))

    def _extract(self) -> dict[str, list[Any]]:
        partial = self._partial
        if partial is None:
            return {}
        paths = self._accessor.extract_patterns(partial.previousBufferEntry, partial.version)
        if len(paths) > 1:
            raise ConditionError(
                f"the partial match in state {partial.table.name!r} has {len(paths)} paths",
                timestamp_ms=self._timestamp,
            )
        view = self._view
        return {
            stage: [e.event if view is None else view(e.event) for e in entries]
            for path in paths
            for stage, entries in path.items()
        }

    def timestamp(self) -> int:
        """Give the time of the event under test, epoch milliseconds."""
        return self._timestamp

    def currentProcessingTime(self) -> int:
        """Give the clock, epoch milliseconds."""
        if self._processing_time is not None:
            return self._processing_time
        return time.time_ns() // 1_000_000


def _short(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) < 80 else text[:77] + '...'} ({type(value).__name__})"
