# SPDX-License-Identifier: Apache-2.0
"""
Evaluates users' conditions on one event, each at most once if possible.

Specifies ``kernel/src/flink/evaluation.c``, ``context.c`` and ``paths.c``; change them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from pyflinkcep.engines.flink.nfa.atoms import Atom
from pyflinkcep.engines.flink.nfa.state import Ask, StateTable, Step
from pyflinkcep.engines.flink.sharedbuffer import (
    DeweyNumber,
    NodeId,
    SharedBufferEdge,
    SharedBufferNode,
)
from pyflinkcep.errors import CepError, ConditionError, MissingConditionError
from pyflinkcep.expressions.codegen import MatchFunctions
from pyflinkcep.time import clock_ms

if TYPE_CHECKING:
    from pyflinkcep.engines.flink.nfa.observer import Observer


Path = dict[str, list[Any]]
"""Stage name to events as the user sees them, oldest first."""

_MOST_KEPT_EVENTS = 1_000_000
_UNSEEN = object()


@attrs.frozen(eq=False)
class Expressions:
    """A pattern's match expressions, and the source of their values."""

    functions: MatchFunctions  # The expressions
    # Returns the fields of an event, given what the buffer holds for it.
    fields: Callable[[Any], Sequence[Any]]


@attrs.define(eq=False)
class EventEvaluation:
    """The conditions' answers, event by event; also the context of iterative conditions."""

    # Turns what the buffer holds for an event into the event as conditions see it.
    _view: Callable[[Any], Any] | None = None
    # The bits of the conditions whose answers come with an event.
    always_known: int = attrs.field(default=0, alias="known")
    _processing_time: int | None = None
    _expressions: Expressions | None = None
    _observer: Observer | None = None
    known: int = attrs.field(init=False, default=0)  # The bits of the conditions answered
    values: int = attrs.field(init=False, default=0)  # Those of the answers that are true
    # The event under test, as it is held, seen, and read by match expressions.
    _event: Any = attrs.field(init=False, default=None)
    _row: Any = attrs.field(init=False, default=None)
    _fields: Sequence[Any] | None = attrs.field(init=False, default=None)
    _timestamp: int = attrs.field(init=False, default=0)
    # The partial match under test, and the events that it has taken.
    _node: SharedBufferNode | None = attrs.field(init=False, default=None)
    _version: DeweyNumber | None = attrs.field(init=False, default=None)
    _path: Path | None = attrs.field(init=False, default=None)
    _paths: dict[SharedBufferEdge, Path] = attrs.field(init=False, factory=dict)
    _paths_size: int = attrs.field(init=False, default=0)

    def begin(self, event: Any, timestamp: int, values: int = 0) -> None:
        """Begin the next event."""
        self._event = event
        self._row = _UNSEEN
        self._fields = None
        self._timestamp = timestamp
        self.known = self.always_known
        self.values = values

    def holds(self, atom: Atom) -> bool:
        """Whether a condition on one event holds; evaluate it if unknown."""
        bit = atom.bit
        if self.known & bit:
            return self.values & bit != 0
        holds = self._answer(atom)
        self.known |= bit
        if holds:
            self.values |= bit
        return holds

    def on_event_alone(self, table: StateTable) -> Step | Ask:
        """Return the step in a state, or the first condition on what a partial match has taken."""
        step: Any = table.first()
        while step.__class__ is Ask and step.atom.bit:
            step = step.following(self.holds(step.atom))
        return step  # type: ignore[no-any-return]

    def decide(self, node: SharedBufferNode | None, version: DeweyNumber, ask: Ask) -> Step:
        """Return the step of a partial match, from the first condition that depends on it."""
        if self._version is not version or self._node is not node:
            self._node = node
            self._version = version
            self._path = None
        step: Any = ask
        while step.__class__ is Ask:
            atom = step.atom
            holds = self.holds(atom) if atom.bit else self._answer(atom)
            step = (step.yes if holds else step.no) or step.following(holds)
        return step  # type: ignore[no-any-return]

    def _answer(self, atom: Atom) -> bool:
        """Evaluate a condition."""
        if atom.bit or atom.expression is None or self._expressions is None:
            holds = self._ask(atom)
        else:
            holds = self._compute(atom, self._expressions)
        if self._observer is not None:
            self._observer.answered(atom, holds, self._node, self._version)
        return holds

    def _ask(self, atom: Atom) -> bool:
        row = self._row
        if row is _UNSEEN:
            view = self._view
            row = self._row = self._event if view is None else view(self._event)
        try:
            answer = atom.function(row) if atom.bit else atom.function(row, self)
        except CepError:
            raise
        except (Exception, SystemExit) as cause:
            raise condition_failed(atom, cause, self._timestamp) from cause
        except KeyboardInterrupt as stop:  # passed on to the caller, with its location
            raise stop from condition_failed(atom, stop, self._timestamp)
        if answer is True or answer is False:
            return answer
        return as_bool(atom, answer, self._timestamp)

    # --- match expressions

    def _compute(self, atom: Atom, expressions: Expressions) -> bool:
        """Whether a match expression holds for the current event and partial match."""
        node, version = self._node, self._version
        functions, fields = expressions.functions, self._fields
        try:
            if fields is None:
                fields = self._fields = expressions.fields(self._event)
            slots: tuple[Any, ...] | None = functions.initial
            if node is not None and version is not None:
                edge = self._edge(node, version)
                slots = edge.values
                if slots is None:
                    slots = self._accumulate(node, edge, expressions)
            assert atom.expression is not None
            assert slots is not None
            return functions.conditions[atom.expression](fields, slots)
        except ArithmeticError as cause:
            raise expression_failed(atom, cause, self._timestamp) from cause

    def _accumulate(
        self, node: SharedBufferNode, edge: SharedBufferEdge, expressions: Expressions
    ) -> tuple[Any, ...]:
        """
        Return the slots after a step, computed from the last earlier step that has slots.

        An edge belongs to one run, so what it leads to never changes.
        """
        functions, fields = expressions.functions, expressions.fields
        updates, other = functions.updates, functions.other
        missing = []
        slots = edge.values
        while slots is None:
            missing.append((node, edge))
            if edge.target is None:
                slots = functions.initial
            else:
                node = edge.target
                edge = self._edge(node, edge.version)
                slots = edge.values
        for node, edge in reversed(missing):
            update = updates.get(node.stage, other)
            if update is not None:
                slots = update(slots, fields(node.entry.event))
            edge.values = slots
        return slots

    # --- the context of iterative conditions

    def getEventsForPattern(self, name: str) -> list[Any]:
        """Return the events accepted for a stage, oldest first."""
        if name is None:
            raise MissingConditionError("getEventsForPattern(None)", "name a stage")
        path = self._path
        if path is None:
            node, version = self._node, self._version
            if node is None or version is None:
                return []
            edge = self._edge(node, version)
            path = self._path = self._paths.get(edge) or self._walk(node, edge)
        events = path.get(name)
        return events.copy() if events else []

    def _walk(self, node: SharedBufferNode, edge: SharedBufferEdge) -> Path:
        """
        Return the path to a node, built from that of an earlier node if possible.

        Partial matches need it again with every event, and most have moved by at most one event
        since. Paths are kept until they hold too many events.
        """
        paths, view = self._paths, self._view
        if self._paths_size > _MOST_KEPT_EVENTS:
            paths.clear()
            self._paths_size = 0
        last, known, missing = edge, paths.get(edge), []
        while known is None:
            missing.append(node)
            if edge.target is None:
                known = {}
            else:
                node, edge = edge.target, self._edge(edge.target, edge.version)
                known = paths.get(edge)
        path = {stage: events.copy() for stage, events in known.items()}
        for step in reversed(missing):
            event = step.entry.event if view is None else view(step.entry.event)
            path.setdefault(step.stage, []).append(event)
        self._paths_size += sum(map(len, path.values()))
        paths[last] = path
        return path

    def _edge(self, node: SharedBufferNode, version: DeweyNumber) -> SharedBufferEdge:
        """Return the step by which a run came to a node."""
        edges = node.edges
        if len(edges) == 1:
            return edges[0]
        ways = [e for e in node.edges_of(version) if version.is_compatible_with(e.version)]
        if len(ways) != 1:
            at = NodeId(node.entry.event_id, node.stage)
            raise ambiguous(len(ways), at, self._timestamp)
        return ways[0]

    def timestamp(self) -> int:
        """Return the time of the event under test, epoch milliseconds."""
        return self._timestamp

    def currentProcessingTime(self) -> int:
        """Return the clock, epoch milliseconds."""
        if self._processing_time is not None:
            return self._processing_time
        return clock_ms()


def as_bool(atom: Atom, answer: Any, timestamp: int) -> bool:
    """Accept a NumPy boolean; raise ConditionError for anything else."""
    plain = answer
    if getattr(answer, "shape", None) == ():  # a NumPy scalar, not an array
        plain = answer.item()
    if isinstance(plain, bool):
        return plain
    raise ConditionError(
        f"the condition {atom.condition!r}: expected a bool, got {_short(answer)}",
        "return True or False, for example with bool(...) or 'is not None'",
        stage=atom.stage,
        timestamp_ms=timestamp,
    )


def condition_failed(atom: Atom, cause: BaseException, timestamp: int) -> ConditionError:
    """Make the error for a condition that raised `cause`."""
    return ConditionError(
        f"Failure happened in filter function. {type(cause).__name__}: {cause}",
        f"make the condition {atom.condition!r} return True or False for every event",
        stage=atom.stage,
        timestamp_ms=timestamp,
    )


def expression_failed(atom: Atom, cause: ArithmeticError, timestamp: int) -> ConditionError:
    """Make the error for a match expression without a value."""
    return ConditionError(
        f"the condition {repr(atom.condition)!r} failed. {cause}",
        "test for it first: CASE WHEN v <> 0 THEN 1 / v END",
        stage=atom.stage,
        timestamp_ms=timestamp,
    )


def ambiguous(ways: int, node: NodeId, timestamp: int) -> ConditionError:
    """Make the error for a partial match whose versions do not determine its path."""
    return ConditionError(f"a partial match has {ways} paths to {node}", timestamp_ms=timestamp)


def _short(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) < 80 else text[:77] + '...'} ({type(value).__name__})"
