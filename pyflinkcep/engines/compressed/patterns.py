# SPDX-License-Identifier: Apache-2.0
"""The matches of a pattern without a skip strategy, counted, aggregated or as nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import attrs

from pyflinkcep.engines.compressed.bridge import KernelPatternCounter, KeyedEvents
from pyflinkcep.engines.compressed.counting import CountPayloads, Measure, Total, added
from pyflinkcep.engines.compressed.nodes import Node, NodePayloads
from pyflinkcep.engines.compressed.pattern_runs import PatternRuns, refuse_incompressible
from pyflinkcep.engines.compressed.payloads import Ended, MeasuredValues, Payloads
from pyflinkcep.engines.compressed.sums import RequestedTotal, Weighed, exact_totals, weighed_totals
from pyflinkcep.engines.flink.nfa import NFA, EventEvaluation
from pyflinkcep.engines.flink.nfa.atoms import known_bits
from pyflinkcep.expressions.codegen import MatchFunctions, generated
from pyflinkcep.expressions.program import CompiledExpressions

__all__ = ["CompressiblePattern", "EventViews", "PatternMatches"]


@attrs.frozen(eq=False)
class EventViews:
    """
    Events by position, as conditions see them.

    Attributes
    ----------
    row : callable
        Returns an event as the user's functions see it.
    fields : callable
        Returns what match expressions read from an event.
    columns : tuple
        The same for all events; see :meth:`Kernel.set_events`.
    answers : callable
        Returns for each event the answers of conditions known beforehand, as bits of an integer.
    """

    row: Callable[[int], Any]
    fields: Callable[[int], Sequence[Any]]
    columns: tuple[Any, ...]
    answers: Callable[[], Sequence[int]]


@attrs.frozen(eq=False)
class CompressiblePattern:
    """
    A pattern whose matches can be compressed.

    Attributes
    ----------
    nfa : NFA
        The pattern.
    expressions : CompiledExpressions or None
        The programs of its match expressions.
    functions : MatchFunctions or None
        The expressions.
    variables : tuple of str
        The stages that take events; nodes refer to them by index.
    counter : KernelPatternCounter or None
        The pattern in the kernel; None if the plain path must count.
    """

    nfa: NFA
    expressions: CompiledExpressions | None
    functions: MatchFunctions | None
    variables: tuple[str, ...]
    counter: KernelPatternCounter | None

    @classmethod
    def of(
        cls, nfa: NFA, expressions: CompiledExpressions | None, variables: tuple[str, ...]
    ) -> CompressiblePattern:
        """
        Prepare a pattern.

        Raises
        ------
        NotSupportedError
            If the pattern's matches cannot be compressed.
        """
        refuse_incompressible(nfa)
        functions = None if expressions is None else generated(expressions)
        counter = KernelPatternCounter.of(nfa, expressions)
        return cls(nfa, expressions, functions, variables, counter)

    def nodes(self) -> Payloads:
        """Return the payloads that make nodes with the indexes of variables."""
        places = {name: number for number, name in enumerate(self.variables)}
        return _NodesOfStages([places.get(stage, -1) for stage in self.nfa.stages])


class _NodesOfStages(NodePayloads):
    """Nodes with the indexes of variables instead of those of stages."""

    def __init__(self, variables: Sequence[int]) -> None:
        self._variables = variables

    def begun(self, component: int, at: int) -> Node:
        return self._variables[component], at, None

    def taken(self, payload: Node, component: int, at: int) -> Node:
        return self._variables[component], at, payload


@attrs.define(eq=False)
class PatternMatches:
    """
    The matches of a pattern on the events of keys.

    A place is the position of the event that completes matches. For matches that end with the
    watermark, not at an event, it is the negative of the position after the key's last event.

    Attributes
    ----------
    pattern : CompressiblePattern
        The pattern.
    events : KeyedEvents
        The events.
    views : EventViews
        The events as conditions see them.
    begun, deadline : int or None, epoch milliseconds
        Set once matches have been requested: when the last key's first live partial match began,
        and when the first window of one ends.
    failed : int
        The index of the key that an error came from.
    """

    pattern: CompressiblePattern
    events: KeyedEvents
    views: EventViews
    begun: int | None = None
    deadline: int | None = None
    failed: int = 0
    _answers: Sequence[int] | None = attrs.field(default=None, init=False)

    def totals_by_event(self, measures: Sequence[MeasuredValues]) -> Iterator[Ended]:
        """Yield where matches end, their number, and the requested totals of the measures."""
        stages = self.pattern.nfa.stages
        asked = [(stages.index(stage), values, function) for stage, values, function in measures]
        return exact_totals(asked, self._weighed, self._counted)

    def roots_by_event(self) -> Iterator[tuple[int, list[Node]]]:
        """Yield where matches end, and their nodes."""
        for at, ended in groupby(self._all_ended(self.pattern.nodes()), itemgetter(0)):
            yield at, [node for _, node in ended]

    def _weighed(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended] | None:
        """Return the numbers and totals from the kernel; None if it cannot compute them."""
        loops = [True] * len(self.pattern.nfa.stages)
        weighed = Weighed.all_of(measures, loops, len(self.events.times))
        if self.pattern.counter is None or weighed is None:
            return None
        return self._by_kernel(self.pattern.counter, weighed)

    def _by_kernel(
        self, counter: KernelPatternCounter, measures: Sequence[Weighed]
    ) -> Iterator[Ended]:
        kernel, counting = counter.kernel, counter.over(self.events)
        kernel.set_events(self.views.row, 0, len(self.events.times), self.views.columns)
        try:
            yield from weighed_totals(counting, measures)
        finally:
            self.failed = kernel.failed
        if counting.last is not None:
            self.begun, self.deadline = counting.last.begun, counting.last.deadline

    def _counted(self, measures: Sequence[RequestedTotal]) -> Iterator[Ended]:
        """Yield the numbers and totals from merged partial matches."""
        payloads = CountPayloads([Measure(stage, values) for stage, values, _ in measures])
        for at, ended in groupby(self._all_ended(payloads), itemgetter(0)):
            counted: Iterator[tuple[int, int, tuple[Total, ...]]]
            counted = ((at, *payload) for _, payload in ended)
            yield at, *added(counted, len(measures))

    # --- partial matches

    def _all_ended(self, payloads: Payloads) -> Iterator[tuple[int, Any]]:
        for key in range(len(self.events.bounds) - 1):
            yield from self.ended(key, payloads)

    def ended(self, key: int, payloads: Payloads) -> Iterator[tuple[int, Any]]:
        """Yield lazily where matches of a key end and what they carry."""
        self.failed = key
        pattern, events = self.pattern, self.events
        runs = PatternRuns(pattern.nfa, payloads, pattern.expressions, pattern.functions)
        start, end = events.bounds[key : key + 2].tolist()
        since = start + events.held
        for at, payload in self._shown(runs, start, end):
            if at >= since:
                yield at, payload
        if since == end:
            self._pass_again(runs)
        joins = end > start and int(events.times[end - 1]) == events.watermark
        for payload in runs.advance(events.watermark):
            yield end - 1 if joins else -end, payload
        self.begun, self.deadline = runs.earliest_start(), runs.deadline()

    def _shown(self, runs: PatternRuns, start: int, end: int) -> Iterator[tuple[int, Any]]:
        """Process a key's events; yield what ends with each, including runs begun earlier."""
        evaluation = EventEvaluation(self.views.row, known_bits(self.pattern.nfa.atoms))
        times = self.events.times[start:end].tolist()
        if self._answers is None:
            self._answers = self.views.answers()
        answers, before = self._answers, None
        for at, time in enumerate(times, start):
            if at == start + self.events.held:
                self._pass_again(runs)
            if time != before:  # once per time, as in CepOperator
                yield from ((at, payload) for payload in runs.advance(time))
            evaluation.begin(at, time, answers[at])
            found = runs.process(at, time, evaluation, partial(self.views.fields, at))
            yield from ((at, payload) for payload in found)
            before = time

    def _pass_again(self, runs: PatternRuns) -> None:
        """Advance to the time before the new events, and discard what ends by it."""
        if self.events.before is not None:
            for _ in runs.advance(self.events.before):
                pass
