# SPDX-License-Identifier: Apache-2.0
"""Harnesses for feeding a pattern by hand, in memory, without Spark or a JVM."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyflinkcep.engines.flink.nfa import EventEvaluation, EventMatch, NFACompiler, TimedOut
from pyflinkcep.engines.flink.operator import (
    CepOperator,
    Comparator,
    KeyedCepOperator,
    PartialMatchLimit,
    comparator_key,
)
from pyflinkcep.engines.flink.sharedbuffer import SharedBuffer
from pyflinkcep.engines.flink.stored_state import restore, snapshot
from pyflinkcep.errors import NotSupportedError, OnTooManyPartialMatches
from pyflinkcep.functions import RuntimeContext
from pyflinkcep.pattern import Pattern
from pyflinkcep.tables.events import as_event
from pyflinkcep.tables.rows import rows_of
from pyflinkcep.tables.sql import evaluated_here, expressions_over_stages
from pyflinkcep.tables.values import epoch_milliseconds, grouping_key, watermark
from pyflinkcep.time import MAX_WATERMARK


class NFATestHarness:
    """
    One key's automaton, fed by hand in order of time.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    timeoutHandling : bool
        Whether :meth:`advanceTime` reports timed-out partial matches.
    examples : sequence, optional
        Some events, from which the types in SQL over stages are seen.

    Notes
    -----
    Ports ``NFATestHarness`` of Flink's tests.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> harness = NFATestHarness(
    ...     Pattern.begin("a").where(lambda e: e == "a").followedBy("b").where(lambda e: e == "b")
    ... )
    >>> [harness.process(e, ts) for ts, e in enumerate("axb")]
    [[], [], [{'a': ['a'], 'b': ['b']}]]
    """

    def __init__(
        self, pattern: Pattern, timeoutHandling: bool = False, examples: Sequence[Any] = ()
    ) -> None:
        given = rows_of(examples)
        self._nfa = NFACompiler.compile(evaluated_here(pattern, given), timeoutHandling)
        self._expressions = expressions_over_stages(self._nfa, given)
        self._nfa.open(RuntimeContext())
        self._state = self._nfa.create_initial_state()
        self._buffer = SharedBuffer()

    def advanceTime(self, timestamp: int | datetime) -> tuple[list[EventMatch], list[TimedOut]]:
        """
        Advance time.

        Parameters
        ----------
        timestamp : int, epoch milliseconds, or datetime
            The time reached.

        Returns
        -------
        tuple of (list of dict, list of tuple)
            Matches that waited for time to pass, and (partial match, end of its window).
        """
        time = watermark(timestamp)
        pending, timed_out = self._nfa.advance_time(self._buffer.get_accessor(), self._state, time)
        return [match for match, _ in pending], timed_out

    def process(self, event: Any, timestamp: int | datetime) -> list[EventMatch]:
        """
        Process an event; call :meth:`advanceTime` first if windows matter.

        Parameters
        ----------
        event : object
            The event; a dict has its fields as attributes too, as a Row on Spark.
        timestamp : int, epoch milliseconds, or datetime
            Its time.

        Returns
        -------
        list of dict of str to list
            The matches it completes, in Flink's order.
        """
        event, timestamp = as_event(event), epoch_milliseconds(timestamp, event)
        evaluation = EventEvaluation(expressions=self._expressions)
        evaluation.begin(event, timestamp)
        accessor = self._buffer.get_accessor()
        return self._nfa.process(accessor, self._state, timestamp, evaluation, event)

    @property
    def partialMatches(self) -> int:
        """The number of partial matches, including the start state's."""
        return len(self._state.partial_matches)

    @property
    def stateChanged(self) -> bool:
        """Whether anything changed since this was last called; Flink's ``isStateChanged``."""
        changed = self._state.state_changed
        self._state.reset_flags()
        return changed

    @property
    def bufferNodes(self) -> int:
        """The number of nodes in the shared buffer."""
        return self._buffer.node_count

    @property
    def bufferedEvents(self) -> int:
        """The number of events in the shared buffer."""
        return len(self._buffer.events)


class OperatorTestHarness:
    """
    Flink's keyed operator in memory: disorder, watermarks, late data, timeouts, snapshots.

    Parameters
    ----------
    pattern : Pattern
        The pattern.
    timeoutHandling : bool
        Whether timed-out partial matches are collected in :attr:`timeouts`.
    lateDataOutput : bool
        Whether late events are collected in :attr:`lateData`; otherwise they are only counted.
    comparator : callable, optional
        Orders events of equal time: a sort key, or a function of two events.
    processingTime : bool
        Whether to use the clock instead of the events' times; :meth:`setProcessingTime` sets it.
    maxPartialMatches : int, at least 1, optional
        The most partial matches of a key.
    onTooManyPartialMatches : {"fail", "dropOldest"}
        The policy for a key with more.
    examples : sequence, optional
        Some events, from which the types in SQL over stages are seen.

    Attributes
    ----------
    numPartialMatchesDropped : int
        The number of partial matches dropped because there were too many.
    matches, timeouts : list of (key, timestamp, match)
        The results so far; timestamps in epoch milliseconds.
    lateData : list of (key, event)
        The late events so far.

    Examples
    --------
    >>> from pyflinkcep import Pattern
    >>> harness = OperatorTestHarness(
    ...     Pattern.begin("a").where(lambda e: e == "a").next("b").where(lambda e: e == "b")
    ... )
    >>> harness.processElement("b", 2, key="k")
    >>> harness.processElement("a", 1, key="k")
    >>> harness.processWatermark(5)
    >>> harness.matches
    [('k', 2, {'a': ['a'], 'b': ['b']})]
    """

    def __init__(
        self,
        pattern: Pattern,
        timeoutHandling: bool = False,
        lateDataOutput: bool = False,
        comparator: Comparator | None = None,
        processingTime: bool = False,
        maxPartialMatches: int | None = None,
        onTooManyPartialMatches: OnTooManyPartialMatches = "fail",
        examples: Sequence[Any] = (),
    ) -> None:
        self.matches: list[tuple[Any, int, EventMatch]] = []
        self.timeouts: list[tuple[Any, int, EventMatch]] = []
        self.lateData: list[tuple[Any, Any]] = []
        self.numPartialMatchesDropped = 0
        self._lateDataOutput, self._closed = lateDataOutput, False
        given = rows_of(examples)
        nfa = NFACompiler.compile(evaluated_here(pattern, given), timeoutHandling)
        nfa.open(RuntimeContext())
        order = comparator_key(comparator)
        limit = PartialMatchLimit.of(maxPartialMatches, onTooManyPartialMatches)
        rules = CepOperator(
            nfa,
            processing_time=processingTime,
            limit=limit,
            expressions=expressions_over_stages(nfa, given),
        )
        self._operator = KeyedCepOperator(rules, _Collect(self), order)

    def processElement(self, event: Any, timestamp: int | datetime, key: Any = None) -> None:
        """Process an event of a key at a time: epoch milliseconds, or a datetime (UTC)."""
        self._check_open()
        time = epoch_milliseconds(timestamp, event)
        self._operator.process_element(grouping_key(key), as_event(event), time)

    def processWatermark(self, timestamp: int | datetime) -> None:
        """Advance the watermark, epoch milliseconds; one before the last is ignored."""
        self._check_open()
        self._operator.advance_watermark(watermark(timestamp))

    def setProcessingTime(self, timestamp: int | datetime) -> None:
        """
        Advance the clock, epoch milliseconds.

        Raises
        ------
        NotSupportedError
            Without `processingTime`.
        """
        self._check_open()
        if not self._operator.operator.processing_time:
            raise NotSupportedError(
                "setProcessingTime() needs a harness in processing time",
                "write OperatorTestHarness(pattern, processingTime=True), or processWatermark()",
            )
        self._operator.advance_watermark(watermark(timestamp))

    def close(self) -> None:
        """End the input: in event time, the final watermark. The harness takes no more events."""
        if not self._operator.operator.processing_time:
            self._operator.advance_watermark(MAX_WATERMARK)
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise NotSupportedError(
                "the harness is closed: its input has ended", "make another harness"
            )

    def snapshotAndRestore(self) -> OperatorTestHarness:
        """Return a harness restored from this one's state as bytes, with the results so far."""
        old, serializer = self._operator, _PickleSerializer()
        copy = object.__new__(OperatorTestHarness)
        copy.matches, copy.timeouts = list(self.matches), list(self.timeouts)
        copy.lateData = list(self.lateData)
        copy.numPartialMatchesDropped = self.numPartialMatchesDropped
        copy._lateDataOutput, copy._closed = self._lateDataOutput, self._closed
        copy._operator = KeyedCepOperator(old.operator, _Collect(copy), old.order)
        restore(copy._operator, snapshot(old, serializer, serializer), serializer, serializer)
        return copy

    @property
    def numLateRecordsDropped(self) -> int:
        """The number of late events dropped; 0 while `lateDataOutput` takes them."""
        return 0 if self._lateDataOutput else self._operator.late_dropped

    @property
    def keysWithState(self) -> int:
        """The number of keys with any state."""
        return len(self._operator.keys)


class _Collect:
    """Collects an operator's results in the harness's lists."""

    def __init__(self, harness: OperatorTestHarness) -> None:
        self._harness = harness

    def match(self, key: Any, timestamp: int, match: EventMatch) -> None:
        self._harness.matches.append((key, timestamp, match))

    def timeout(self, key: Any, timestamp: int, match: EventMatch) -> None:
        self._harness.timeouts.append((key, timestamp, match))

    def dropped(self, key: Any, count: int) -> None:
        self._harness.numPartialMatchesDropped += count

    def late(self, key: Any, event: Any) -> None:
        if self._harness._lateDataOutput:
            self._harness.lateData.append((key, event))


class _PickleSerializer:
    """Pickles events and keys: good enough for a test, never for a checkpoint."""

    def dumps(self, objects: Sequence[Any]) -> bytes:
        return pickle.dumps(list(objects))

    def loads(self, data: bytes) -> Sequence[Any]:
        loaded: list[Any] = pickle.loads(data)
        return loaded
